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
    needs = optimizer.estimator.needs
    outcome, failures = execution.run(problem, optimizer, needs, judge, iterations, limit)
    if resumption := _resumption(outcome, execution):
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
    first = method.start(problem, max_evaluations=settings.max_evaluations, **settings.start)
    means = _means(settings.starts, first, problem.prior)
    optimizer: Search | MultiStart = first
    if not isinstance(settings.starts, int | np.integer) or len(means) > 1:
        keys = [(*first.key, k) for k in range(len(means))]
        runs = [
            method.start(problem, **{**settings.start, "initial_mean": m, "rng": k})
            for m, k in zip(means, keys, strict=True)
        ]
        budget = first.max_evaluations * (1 if settings.max_evaluations else len(means))
        optimizer = MultiStart(runs, budget)

    def judge(t: int, q: Gaussian, info: Info) -> Verdict:
        bound = optimizer.lower_bound
        return Verdict(optimizer.gaussian, bound, bound, optimizer.stop_reason, optimizer.converged)

    needs: Needs = "gradients" if uses_gradient(problem) else "values"
    iterations = settings.max_iterations or math.inf
    outcome, failures = execution.run(problem, optimizer, needs, judge, iterations, math.inf)
    if not outcome.converged:
        advice = _resumption(outcome, execution) or (
            "try a larger max_evaluations, another start (starts=, initial_mean=, initial_variance=) or a "
            "reparametrised model"
        )
        warn_user(
            f"not converged, {outcome.stop_reason}: the lower bound may be {optimizer.gap:.2g} nats below its maximum; "
            f"{advice}",
            ConvergenceWarning,
        )
    if isinstance(optimizer, MultiStart) and optimizer.disagreement:
        warn_user(optimizer.disagreement, ConvergenceWarning)
    return _posterior(
        problem,
        outcome,
        failures,
        "auto",
        "gradient" if needs == "gradients" else "regression",
        optimizer.lower_bound_se,
        optimizer.gap,
        optimizer.gap_se,
    )


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
) -> Posterior:
    trace = outcome.trace
    if dropped := int(trace.dropped.sum()):
        warn_user(
            f"{dropped:,} of {trace.n_evaluations[-1]:,} draws had non-finite values and were left out "
            "(trace.dropped): the result is conditional on the region where the function is finite"
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
        failures=failures.counts,
        parameters=problem.parameters,
        log_density=log_density,
        pointwise=getattr(problem.log_likelihood, "pointwise", None),
    )
