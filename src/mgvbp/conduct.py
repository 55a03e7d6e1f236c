"""From a problem and settings to a posterior: which search, which judge, and what to say about the outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.attempts import Failures
from mgvbp.auto import Auto, MultiStart, affordable, uses_gradient
from mgvbp.auto.search import Search
from mgvbp.checks import as_floats, positive_integer
from mgvbp.errors import ConvergenceWarning, InvalidInputError, NonFiniteWarning, warn_user
from mgvbp.estimators import Estimator
from mgvbp.execution import Execution
from mgvbp.families import Family
from mgvbp.gaussian import Gaussian
from mgvbp.loop import INTERRUPTED, Patience, Run, Verdict
from mgvbp.methods import Method, resolve_method
from mgvbp.optimizer import STREAM, Info
from mgvbp.posterior import Posterior
from mgvbp.problem import Needs, Prior, Problem, log_prior

UNBOUNDED = 1e10
"""Nats that no data give: a billion observations, each known to four digits."""
FARTHEST = 1e12
"""Initial standard deviations from the start at which a run without a lower bound has run away."""
GROWS = "the density grows without bound: is it the negative log-likelihood, or is a prior missing?"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What `fit` was asked for that makes a difference to the result; see there."""

    method: str | Method | Auto
    family: Family
    estimator: str | Estimator
    draws: str
    num_draws: int | None
    initial_mean: ArrayLike | None
    initial_variance: ArrayLike | None
    max_iterations: int | None
    max_evaluations: int | None
    starts: int | ArrayLike
    rng: tuple[int, ...]

    @property
    def start(self) -> dict[str, Any]:
        """Where and how a run of any method starts."""
        names = ("family", "initial_mean", "initial_variance", "rng")
        return {name: getattr(self, name) for name in names}


def conduct(problem: Problem, settings: Settings, execution: Execution) -> Posterior:
    """Fit, by `Auto` or by a named method."""
    family, method = settings.family, settings.method
    if isinstance(method, Auto):
        if problem.num_batches > 1:
            raise InvalidInputError(
                "method='auto' needs the same function at every iteration: with minibatches choose a named method, "
                "as method='mgvbp', or leave batch_size out"
            )
        if affordable(family, problem):
            own = ("auto", "gradient") if problem.has_gradient else ("auto",)
            if settings.estimator not in own or (settings.draws, settings.num_draws) != ("auto", None):
                raise InvalidInputError(
                    "method='auto' chooses its own draws; estimator=, draws= and num_draws= go with a named method "
                    "such as method='mgvbp'"
                )
            return _automatic(problem, method, settings, execution)
    if not isinstance(settings.starts, int) or settings.starts != 1:
        raise InvalidInputError("starts= goes with method='auto'; a named method takes initial_mean=")
    if isinstance(method, Auto):
        warn_user(
            f"the {family.name} family has {family.num_monomials:,} coefficients at d = {family.dim}, too many for "
            "auto: running mgvbp, which has no certificate; consider a gradient (grad=), family='diagonal' or "
            "BlockDiagonal, which need fewer draws",
            ConvergenceWarning,
        )
        method = "mgvbp"
    return _named(problem, resolve_method(method), settings, execution)


def _named(problem: Problem, method: Method, settings: Settings, execution: Execution) -> Posterior:
    optimizer = method.start(
        problem,
        estimator=settings.estimator,
        draws=settings.draws,
        num_draws=settings.num_draws,
        **settings.start,
    )
    limit = math.inf if settings.max_evaluations is None else settings.max_evaluations
    if limit < math.inf:
        name = f"max_evaluations (one iteration takes {optimizer.num_draws})"
        positive_integer(limit, name, least=optimizer.num_draws)
    judge = Patience(method.window, method.patience, epoch=problem.num_batches, last=not method.climbs)
    iterations = settings.max_iterations or method.max_iterations
    start, needs = optimizer.gaussian, optimizer.estimator.needs
    outcome, failures = execution.run(problem, optimizer, needs, judge, iterations, limit)
    if _grows(outcome, start):
        warn_user(f"not converged: {GROWS}", ConvergenceWarning)
    elif resumption := _resumption(outcome, execution):
        warn_user(f"not converged, {outcome.stop_reason}: {resumption}", ConvergenceWarning)
    name = type(method).__name__
    if shortened := int(np.count_nonzero(outcome.trace.reductions)):
        warn_user(
            f"{name} lost positive definiteness and shortened its step in {shortened} of {len(outcome.trace)} "
            "iterations (trace.reductions); try a smaller step_size, or MGVBP, which cannot lose it",
            ConvergenceWarning,
        )
    return _posterior(problem, outcome, failures, name, optimizer.estimator.name)


def _automatic(problem: Problem, method: Auto, settings: Settings, execution: Execution) -> Posterior:
    if problem.has_gradient and not uses_gradient(problem):
        warn_user(f"the gradient is not used: {problem.missing_gradient}", ConvergenceWarning)
    first = method.start(problem, max_evaluations=settings.max_evaluations, **settings.start)
    start, means = first.gaussian, _means(settings.starts, first, problem.prior)
    optimizer: Search | MultiStart = first
    if not isinstance(settings.starts, int | np.integer) or len(means) > 1:
        keys = [(*first.key, k) for k in range(len(means))]
        runs = [
            method.start(problem, **{**settings.start, "initial_mean": m, "rng": k})
            for m, k in zip(means, keys, strict=True)
        ]
        budget = first.max_evaluations * (1 if settings.max_evaluations else len(means))
        optimizer = MultiStart(runs, budget)

    def best() -> Search:
        return optimizer.best if isinstance(optimizer, MultiStart) else optimizer

    def judge(t: int, q: Gaussian, info: Info) -> Verdict:
        bound = best().lower_bound
        return Verdict(best().gaussian, bound, bound, optimizer.stop_reason, optimizer.converged)

    needs: Needs = "gradients" if uses_gradient(problem) else "values"
    iterations = settings.max_iterations or math.inf
    outcome, failures = execution.run(problem, optimizer, needs, judge, iterations, math.inf)
    found = best()
    if _grows(outcome, start):
        warn_user(f"not converged, {outcome.stop_reason}: {GROWS}", ConvergenceWarning)
    elif not outcome.converged:
        advice = _resumption(outcome, execution) or (
            "try a larger max_evaluations, another start (starts=, initial_mean=, initial_variance=) or a "
            "reparametrised model"
        )
        distance = _distance(found.gap, method.tol)
        warn_user(f"not converged, {outcome.stop_reason}: {distance}; {advice}", ConvergenceWarning)
    if isinstance(optimizer, MultiStart) and optimizer.disagreement:
        warn_user(optimizer.disagreement, ConvergenceWarning)
    return _posterior(
        problem,
        outcome,
        failures,
        "auto",
        "gradient" if needs == "gradients" else "regression",
        found.lower_bound_se,
        found.gap,
        found.gap_se,
        optimizer.other_optima if isinstance(optimizer, MultiStart) else None,
    )


def _grows(outcome: Run, start: Gaussian) -> bool:
    """Whether the run went up without an end, or so far that there was no surface."""
    if outcome.converged or outcome.lower_bound > -math.inf:
        return not outcome.converged and outcome.lower_bound > UNBOUNDED
    return bool((np.abs(outcome.best.mean - start.mean) > FARTHEST * start.std).any())


def _distance(gap: float, tol: float) -> str:
    """How far the optimum may be, and why that is not the end where it is near."""
    if gap == math.inf:
        return "nothing is known yet about how far the lower bound is below its maximum"
    unconfirmed = f", within tol = {tol:g}, but fresh draws have not confirmed that" if gap < tol else ""
    return f"the lower bound may be {gap:.2g} nats below its maximum{unconfirmed}"


def _resumption(outcome: Run, execution: Execution) -> str:
    """How to go on after control-C, if there is a checkpoint."""
    recorder = execution.recorder
    return recorder.resumption if recorder is not None and outcome.stop_reason == INTERRUPTED else ""


def _means(starts: int | ArrayLike, first: Search, prior: Prior | None) -> list[Array]:
    q = first.gaussian
    if isinstance(starts, int | float | str | np.generic) or starts is None:
        number = positive_integer(starts, "starts")
        source = prior if isinstance(prior, Gaussian) else q
        return [q.mean, *source.sample(number - 1, np.random.default_rng((*first.key, STREAM)))]
    means = as_floats(starts, "starts")
    if means.ndim != 2 or means.shape[1] != q.dim or len(means) == 0:
        raise InvalidInputError(f"starts has shape {means.shape}; expected a number, or means (K, {q.dim})")
    return list(means)


def _posterior(
    problem: Problem,
    outcome: Run,
    failures: Failures,
    method: str,
    estimator: str,
    lower_bound_se: float | None = None,
    gap: float | None = None,
    gap_se: float | None = None,
    other_optima: tuple[float, ...] | None = None,
) -> Posterior:
    trace = outcome.trace
    if dropped := int(trace.dropped.sum()):
        late = int(trace.dropped[trace.n_evaluations > trace.n_evaluations[-1] // 2].sum())
        warn_user(
            f"{dropped:,} of {trace.n_evaluations[-1]:,} draws had non-finite values and were left out "
            f"(trace.dropped), {f'{late:,}' if late else 'none'} of them in the second half of the run: "
            + (
                "the result is conditional on the region where the function is finite"
                if late
                else "they were met on the way, and hardly matter"
            )
            + (f"; of these, after two attempts each, {failures}" if failures.total else ""),
            NonFiniteWarning,
        )

    def log_density(theta: Array) -> Array:
        return problem.evaluate(theta.copy()) + log_prior(problem.prior, theta)

    return Posterior(
        outcome.best.mean,
        outcome.best.factor,
        outcome.best.family,
        lower_bound=outcome.lower_bound,
        lower_bound_se=lower_bound_se,
        converged=outcome.converged,
        stop_reason=outcome.stop_reason,
        trace=trace,
        method=method,
        estimator=estimator,
        gap=gap,
        gap_se=gap_se,
        other_optima=other_optima,
        failures=failures.counts,
        parameters=problem.parameters,
        log_density=log_density,
        pointwise=getattr(problem.log_likelihood, "pointwise", None),
    )
