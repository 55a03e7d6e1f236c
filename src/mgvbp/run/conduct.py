"""From a problem and settings to a posterior: choose the search and the judge, run them, warn about the outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto import (
    NEEDS_GRADIENTS,
    Aim,
    Auto,
    MixtureSearch,
    Search,
    StreamSearch,
    affordable,
    extended,
    streams,
    uses_gradient,
)
from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import REFUTED, Ending, Outcome
from mgvbp.errors import ConvergenceWarning, InvalidInputError, NonFiniteWarning, warn_user
from mgvbp.estimators import Estimator
from mgvbp.families import Family, Structured
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.methods import Method, resolve_method
from mgvbp.methods.base import TRY
from mgvbp.methods.optimizer import Info
from mgvbp.posterior.distance import rough
from mgvbp.posterior.failures import Failures
from mgvbp.posterior.posterior import Posterior
from mgvbp.problem.problem import Needs, Problem
from mgvbp.run.advice import GROWS, UNBOUNDED, better_way, distance, expected, grows, more, too_many
from mgvbp.run.density import Density
from mgvbp.run.execution import Execution
from mgvbp.run.loop import LOST, Limits, Patience, Run, Standing

NEAR = 0.01
"""Nats from the maximum within which a named method that came to its limit has converged: the default tol of `Auto`."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of `fit` that change the result; `fit` describes them."""

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
    noise: float | None
    rng: tuple[int, ...]
    aim: Aim | None = None
    """What a mixture is to reach; None for a Gaussian."""

    @property
    def several_starts(self) -> bool:
        """Whether more than one start is to be tried, or where to start was given by ``starts``."""
        return not isinstance(self.starts, int) or self.starts != 1

    def start(self, *more: str) -> dict[str, Any]:
        """The options with which a run starts: those of any method, and ``more``."""
        names = ("family", "initial_mean", "initial_variance", "rng", *more)
        return {name: getattr(self, name) for name in names}


def conduct(problem: Problem, settings: Settings, execution: Execution) -> Posterior:
    """Fit, by `Auto` or by a named method."""
    family, method = settings.family, settings.method
    if isinstance(family, Structured) and not uses_gradient(problem):
        raise InvalidInputError(problem.missing_gradient or NEEDS_GRADIENTS.format(family=family.name))
    if isinstance(method, Auto):
        streamed = streams(problem, family)
        if streamed and not uses_gradient(problem):
            raise InvalidInputError(
                "method='auto' needs gradients with minibatches, of a function with value_and_grad (networks and "
                "mgvbp.from_jax have it) and of the prior: choose a named method, as method='mgvbp', or leave "
                "batch_size out"
            )
        if streamed or affordable(family, problem):
            own = ("auto", "gradient") if problem.has_gradient else ("auto",)
            if settings.estimator not in own or (settings.draws, settings.num_draws) != ("auto", None):
                raise InvalidInputError(
                    "method='auto' chooses its own draws; estimator=, draws= and num_draws= go with a named method "
                    "such as method='mgvbp'"
                )
            return (_streamed if streamed else _automatic)(problem, method, settings, execution)
    if settings.noise is not None:
        raise InvalidInputError("noise= goes with method='auto'; a named method averages over noise as it is")
    if settings.several_starts:
        raise InvalidInputError("starts= goes with method='auto'; a named method takes initial_mean=")
    if isinstance(method, Auto):
        message = too_many(family, gradient=uses_gradient(problem))
        warn_user(message, ConvergenceWarning, "too-many-parameters")
        method = "mgvbp"
    return _named(problem, resolve_method(method), settings, execution)


def _named(problem: Problem, method: Method, settings: Settings, execution: Execution) -> Posterior:
    optimizer = method.start(problem, **settings.start("estimator", "draws", "num_draws"))
    limit = math.inf if settings.max_evaluations is None else settings.max_evaluations
    if limit < math.inf:
        what = f"max_evaluations (one iteration takes {optimizer.num_draws})"
        positive_integer(limit, what, least=optimizer.num_draws)
    judge = Patience(method.window, method.patience, epoch=problem.num_batches, last=not method.climbs)
    limits = Limits(settings.max_iterations or method.max_iterations, limit)
    start, needs = optimizer.gaussian, optimizer.estimator.needs
    outcome, failures = execution.run(problem, optimizer, needs, judge, limits)
    settled = outcome.ending.outcome is Outcome.SETTLED
    limited = outcome.ending.outcome in (Outcome.MAX_ITERATIONS, Outcome.MAX_EVALUATIONS)
    if limited and judge.fell is None and method.climbs and problem.num_batches == 1:
        outcome = _near(outcome, method.window)
    if judge.fell is not None and (settled or limited):
        last = float(outcome.trace.smoothed[-1])
        ending = Ending.of(Outcome.FELL, first=judge.fell.bound, last=last)
        outcome = outcome._replace(ending=ending, converged=False)
        kept = "the start" if outcome.best is judge.fell.q else "the best iterate"
        message = f"diverged, {ending.sentence}, and {kept} is returned: {ending.advice}"
        warn_user(message, ConvergenceWarning, ending.outcome.name)
    elif settled and method.climbs and not outcome.converged:
        later = float(outcome.trace.smoothed[-1])
        warn_user(
            f"not converged: the best lower bound, {outcome.lower_bound:.6g}, is far above the last ones, "
            f"{later:.6g}, and was noise or has been lost; {TRY}",
            ConvergenceWarning,
            "lost-bound",
        )
    elif grows(outcome, start):
        warn_user(f"not converged: {GROWS}{better_way(problem)}", ConvergenceWarning, "grows")
    elif resumption := execution.resumption(outcome):
        message = f"not converged, {outcome.ending.sentence}: {resumption}"
        warn_user(message, ConvergenceWarning, outcome.ending.outcome.name)
    name = type(method).__name__
    if shortened := int(np.count_nonzero(outcome.trace.reductions)):
        warn_user(
            f"{name} lost positive definiteness and shortened its step in {shortened} of {len(outcome.trace)} "
            f"iterations (trace.reductions); {TRY}",
            ConvergenceWarning,
            "shortened-steps",
        )
    return _posterior(problem, outcome, failures, method=name, estimator=optimizer.estimator.name)


def _near(outcome: Run, window: int) -> Run:
    """A run that came to a limit near the optimum has converged, and says how near.

    The gap of an iteration is ½‖g‖² + ‖G‖² of noisy gradients, which is too large on average. So its mean over the
    last window may be taken at its word where it is small.
    """
    gap, last = float(np.mean(outcome.trace.gap[-window:])), outcome.trace.smoothed[-1]
    if len(outcome.trace) < window or not gap <= NEAR or not outcome.lower_bound - last <= LOST:
        return outcome
    ending = Ending.of(Outcome.NEAR, reached=outcome.ending.sentence, window=window, gap=gap)
    return outcome._replace(ending=ending, converged=True)


def _streamed(problem: Problem, method: Auto, settings: Settings, execution: Execution) -> Posterior:
    """Fit a network, or minibatches, by `StreamSearch`."""
    streamed, out = "not for networks and minibatches", "leave it out"
    if settings.several_starts:
        raise InvalidInputError(f"starts= is {streamed}: {out}")
    if settings.noise:
        raise InvalidInputError(f"noise= is {streamed}: {out}")
    if settings.aim is not None:
        raise InvalidInputError(f"family='mixture' and 'auto' are {streamed}: {out}")
    if isinstance(settings.family, Structured):
        raise InvalidInputError(f"a structured precision is {streamed}: leave family= out, or batch_size")
    options = settings.start("max_iterations", "max_evaluations")
    search = StreamSearch(problem, tol=method.tol, **options)
    limits = Limits(search.most, math.inf)
    of = getattr(problem.log_likelihood, "remark", None)
    last: tuple[Array | None, str] = None, ""

    def remark() -> str:
        """How well a network predicts, computed once for each best point."""
        nonlocal last
        theta = search.state.best.q.mean if search.state.best else search.state.point.best
        if of is not None and last[0] is not theta:
            last = theta, f", {of(theta)}"
        return last[1]

    outcome, failures = execution.run(problem, search, "gradients", SearchJudge(search), limits, remark)
    if not outcome.converged:
        advice = execution.resumption(outcome) or outcome.ending.advice
        unknown = "" if search.state.best else "there is no lower bound yet"
        remarks = "; ".join(text for text in (unknown, advice) if text)
        message = f"not converged, {outcome.ending.sentence}: {remarks}"
        warn_user(message, ConvergenceWarning, outcome.ending.outcome.name)
    found = {"lower_bound_se": search.best.lower_bound_se if search.state.best else None}
    return _posterior(problem, outcome, failures, method="auto", estimator="gradient", **found)


class SearchJudge:
    """The judge of ``auto``: its search knows which start is best, and when to stop."""

    state = None

    def __init__(self, search: Search | MixtureSearch | StreamSearch) -> None:
        self._search = search

    def __call__(self, t: int, q: Gaussian, info: Info) -> Standing:
        """Return where the run stands."""
        best, search = self._search.best, self._search
        return Standing(best.q, best.lower_bound, best.lower_bound, search.ending, search.converged)


def _automatic(problem: Problem, method: Auto, settings: Settings, execution: Execution) -> Posterior:
    if problem.has_gradient and not uses_gradient(problem):
        message = f"the gradient is not used: {problem.missing_gradient}"
        warn_user(message, ConvergenceWarning, "gradient-not-used")
    options = settings.start("max_evaluations", "starts", "noise")
    gaussian, aim = method.start(problem, **options), settings.aim
    search = gaussian if aim is None else MixtureSearch(gaussian, aim, settings.max_evaluations)
    _go_on(search, execution)
    start, limits = search.gaussian, Limits(settings.max_iterations or math.inf, math.inf)
    needs: Needs = "gradients" if search.rules.needs_gradients else "values"
    judge = SearchJudge(search)
    outcome, failures = execution.run(problem, search, needs, judge, limits, lambda: expected(search))
    found, sentence = search.best, outcome.ending.sentence
    starts = search.state.starts if isinstance(search, MixtureSearch) else search.state
    climbed = max((climb.value for climb in starts.active.climbs), default=-math.inf)
    if grows(outcome, start) or (not outcome.converged and climbed > UNBOUNDED):
        warn_user(f"not converged, {sentence}: {GROWS}{better_way(problem)}", ConvergenceWarning, "grows")
    elif not outcome.converged:
        advice = execution.resumption(outcome) or outcome.ending.advice
        refuted = outcome.ending.outcome in REFUTED
        tol = method.tolerance(problem.dim)
        far = "" if refuted else distance(found.gap, tol) + more(outcome.ending.outcome, search, tol)
        remarks = [text for text in (far, advice) if text]
        message = f"not converged, {sentence}: {'; '.join(remarks)}{better_way(problem)}"
        warn_user(message, ConvergenceWarning, outcome.ending.outcome.name)
    several = isinstance(found.q, GaussianMixture)
    if starts.disagreement and not several:
        warn_user(starts.disagreement, ConvergenceWarning, "other-optima")
    about = None
    if isinstance(found.q, Gaussian) and found.lower_bound > -math.inf:
        about = rough(found.q, starts.best.archive)
    return _posterior(
        problem,
        outcome,
        failures,
        method="auto",
        estimator="gradient" if needs == "gradients" else "regression",
        lower_bound_se=found.lower_bound_se,
        gap=found.gap,
        gap_se=found.gap_se,
        rough_kl=about,
        other_optima=() if several and starts.other_optima else starts.other_optima,
        checks=found.checks,
        distance=search.best.distance if isinstance(search, MixtureSearch) else None,
        archive=starts.best.archive,
    )


def _go_on(search: Search | MixtureSearch, execution: Execution) -> None:
    """Resume a search that has come to its limit, if it has been given a larger one since."""
    recorder = execution.recorder
    snapshot = recorder.start if recorder is not None else None
    if recorder is None or snapshot is None or not isinstance(search, Search):
        return
    before, now = snapshot.search.budget, search.max_evaluations
    if now == before:
        return
    if now < before:
        raise InvalidInputError(
            f"max_evaluations is {now}, but the fit had {before}: give more, or leave it out"
        )
    state, standing = extended(search.rules, snapshot.search, now), snapshot.standing
    if standing is not None:
        standing = standing._replace(ending=state.ending)
    recorder.begin_at(replace(snapshot, search=state, standing=standing))


def _posterior(problem: Problem, outcome: Run, failures: Failures, **found: Any) -> Posterior:
    """The posterior of a run, with what was ``found`` about it.

    There is a warning if draws failed, or had no finite value in the second half of the run: earlier ones were met on
    the way, and hardly matter.
    """
    trace = outcome.trace
    dropped = int(trace.dropped.sum())
    late = trace.dropped_late
    # an ending outside of the region says it already
    if dropped and (failures.total or (late and outcome.ending.outcome is not Outcome.OUTSIDE)):
        twice = f"; of these, after two attempts each, {failures}" if failures.total else ""
        so = "the result is conditional on the region where the function is finite"
        if not late:
            so = "they were met on the way, and hardly matter"
        warn_user(
            f"{dropped:,} of {trace.n_evaluations[-1]:,} draws had non-finite values and were left out "
            f"(trace.dropped), {late:,} of them in the second half of the run: {so}{twice}{better_way(problem)}",
            NonFiniteWarning,
        )
    best = outcome.best
    mixture, q = (best, best.moments) if isinstance(best, GaussianMixture) else (None, best)
    return Posterior(
        q.mean,
        q.factor,
        q.family,
        mixture=mixture,
        lower_bound=outcome.lower_bound,
        converged=outcome.converged,
        stop_reason=outcome.ending.sentence,
        trace=trace,
        failures=failures.counts,
        parameters=problem.parameters,
        log_density=Density(problem),
        pointwise=getattr(problem.log_likelihood, "pointwise", None),
        model=problem.log_likelihood,
        **found,
    )
