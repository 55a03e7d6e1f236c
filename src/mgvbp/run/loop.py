"""The loop: ask, evaluate, tell, until something says stop."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.errors import ConvergenceWarning, DivergenceError, warn_user
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.methods.optimizer import Info
from mgvbp.posterior.trace import DRAWS, EVALUATIONS, Row, Trace, trace_of
from mgvbp.run.progress import Reporter

Evaluate = Callable[[int, Array], tuple[Array, ...]]
"""Takes the iteration and its draws (S, d); returns the values (and derivatives), as `Problem.evaluate_at` does."""
WORSE = 4.0
"""Standard errors of the start's lower bound by which a result must be below it to be called worse. With 2 of them, a
run that ends where it began would be called worse in one of fifty cases; with 8, large falls of noisy bounds would
pass."""
LOST = 1.0
"""Nats, beyond the noise, by which the last average may be below the best one in a run that has converged."""


class Iteration(NamedTuple):
    """What a callback sees of an iteration."""

    iteration: int
    gaussian: Gaussian
    """The approximation from which the iteration's draws came."""
    lower_bound: float
    smoothed: float
    n_evaluations: int


Callback = Callable[[Iteration], object]


class AskTell(Protocol):
    """What the loop needs of an optimiser."""

    state: Any
    """All that changes in a run, as an immutable object."""

    @property
    def gaussian(self) -> Gaussian:
        """The current approximation."""

    @property
    def trying(self) -> bool:
        """Whether the draws of `ask` lie so far out that the function may fail there."""

    def ask(self) -> Array:
        """Draws to evaluate."""

    def tell(self, values: ArrayLike, gradients: ArrayLike | None = None) -> Info:
        """Take the values at the draws of `ask`, and the derivatives that the optimiser needs."""


class Standing(NamedTuple):
    """The result of a judge after an iteration: which iterate is best, and whether to stop."""

    best: Gaussian | GaussianMixture
    lower_bound: float
    smoothed: float
    ending: Ending | None
    converged: bool


class Judge(Protocol):
    """Decides after iteration ``t``, whose draws came from ``q``, which iterate is best and whether to stop."""

    state: Any
    """What the judge remembers, as an immutable object."""

    def __call__(self, t: int, q: Gaussian, info: Info) -> Standing:
        """Return where the run stands."""


class Start(NamedTuple):
    """The first iterate, and the mean of the lower bounds of the first epoch with its standard error."""

    q: Gaussian
    bound: float
    se: float

    def surpasses(self, bound: float) -> bool:
        """Whether a bound is lower than that of the start, by more than its noise."""
        return bound < self.bound - WORSE * self.se


class Window(NamedTuple):
    """What `Patience` remembers: the last bounds, the best iterate with its bound and iteration, and the start."""

    recent: tuple[float, ...] = ()
    best: Gaussian | None = None
    bound: float = -math.inf
    at: int = 0
    start: Start | None = None


class Patience:
    """The paper's rule: stop when the average over a window has not improved for ``patience`` iterations.

    The best iterate is the one with the largest average of the lower bound over a full window. Before the first
    window is full, it is the one with the largest lower bound. With ``last`` the last iterate counts as the best, for
    methods whose fixed point is not the maximum of the bound.

    With minibatches an epoch has ``epoch`` iterations, and iterates are compared by averages over whole epochs.
    Otherwise the iterate with the luckiest batches would win. Before the first epoch has ended, the last iterate is
    the best.

    A run may end below where it began, if its steps are too large. Then the start is the best iterate, and `fell` says
    so. (With ``last`` it is the best one after the start, if that is above the start.)
    """

    def __init__(self, window: int, patience: int, *, epoch: int = 1, last: bool = False) -> None:
        self._window, self._patience = (epoch * math.ceil(steps / epoch) for steps in (window, patience))
        self._epoch, self._last = epoch, last
        self.state = Window()

    def __call__(self, t: int, q: Gaussian, info: Info) -> Standing:
        """Return where the run stands."""
        recent, best, bound, at, _ = self.state
        recent = (*recent, info.lower_bound)[-self._window :]
        smoothed = math.fsum(recent) / len(recent)
        current = info.lower_bound if self._epoch == 1 and t < self._window else smoothed
        better = current > bound and t % self._epoch == 0
        if best is None or t <= self._epoch or t == self._window or better:
            best, bound, at = q, current, t
        start = self._start(t, q, info)
        self.state = Window(recent, best, bound, at, start)
        stop = t - at >= self._patience
        ending = Ending.of(Outcome.SETTLED, patience=self._patience) if stop else None
        if self._last and not start.surpasses(smoothed):
            return Standing(q, smoothed, smoothed, ending, stop)
        if start.surpasses(bound):
            return Standing(start.q, start.bound, smoothed, ending, False)
        # a best bound far above all later ones was noise, or has been lost
        lost = bound - smoothed > LOST + WORSE * info.lower_bound_se
        return Standing(best, bound, smoothed, ending, stop and not self._last and not lost)

    def _start(self, t: int, q: Gaussian, info: Info) -> Start:
        """The start, of whose lower bound the first epoch tells more and more."""
        begun = self.state.start or Start(q, 0.0, 0.0)
        if t > self._epoch:
            return begun
        bound = begun.bound + (info.lower_bound - begun.bound) / t
        return Start(begun.q, bound, math.hypot((t - 1) * begun.se, info.lower_bound_se) / t)

    @property
    def fell(self) -> Start | None:
        """The start, if the run is now below it; else None."""
        start, recent = self.state.start, self.state.recent
        bound = math.fsum(recent) / max(1, len(recent)) if self._last else self.state.bound
        return start if start is not None and start.surpasses(bound) else None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a run between two iterations: all that it needs to go on."""

    search: Any
    """The state of the optimiser."""
    judge: Any
    """The state of the judge."""
    standing: Standing | None = None
    """What the judge returned after the last iteration."""
    iterations: int = 0
    """Iterations that have ended."""
    rows: Sequence[Row] = ()
    """One row for each of them; a list may go on growing, so that a snapshot is cheap."""
    finite: int = 0
    """Draws so far whose value was finite."""

    @property
    def trace(self) -> Trace:
        """The rows of its iterations as columns."""
        return trace_of(self.rows[: self.iterations])


class Run(NamedTuple):
    """How a run ended."""

    best: Gaussian | GaussianMixture
    lower_bound: float
    trace: Trace
    ending: Ending
    converged: bool


class Limits(NamedTuple):
    """The largest numbers of iterations and evaluations."""

    iterations: float
    evaluations: float


def run(
    optimizer: AskTell,
    evaluate: Evaluate,
    judge: Judge,
    limits: Limits,
    callback: Callback | None,
    report: Reporter,
    start: Snapshot | None = None,
    keep: Callable[[Snapshot], None] | None = None,
) -> Run:
    """Iterate until the judge, the callback or a limit says stop; begin at ``start``, if it is given.

    ``keep`` is called with a snapshot after every iteration. An interrupt (control-C) ends the run with the best
    iterate so far if there is a lower bound; else it is raised. A `DivergenceError` ends the run in the same way if
    some value was finite; else it is raised.
    """
    snapshot = start or Snapshot(optimizer.state, judge.state)
    optimizer.state, judge.state = snapshot.search, snapshot.judge
    standing, rows, finite = snapshot.standing, list(snapshot.rows[: snapshot.iterations]), snapshot.finite
    evaluations = int(rows[-1][EVALUATIONS]) if rows else 0
    evaluation: tuple[Array, ...] = ()
    info: Info | None = None
    ending = _ended(standing, rows, limits)
    try:
        while ending is None:
            q = optimizer.gaussian
            theta = optimizer.ask()
            t = len(rows) + 1
            evaluation = lenient(evaluate, t, theta) if optimizer.trying else evaluate(t, theta)
            evaluations += len(theta)
            info = optimizer.tell(*evaluation)
            finite += len(theta) - info.dropped
            standing = judge(t, q, info)
            rows.append(_row(info, standing.smoothed, evaluations))
            if keep is not None:
                keep(Snapshot(optimizer.state, judge.state, standing, t, rows, finite))
            report(t, standing.smoothed, evaluations)
            seen = Iteration(t, q, info.lower_bound, standing.smoothed, evaluations)
            stopped = callback is not None and callback(seen)
            ending = _ended(standing, rows, limits)
            if stopped and standing.ending is None:
                ending = Ending.of(Outcome.CALLBACK)
    except KeyboardInterrupt:
        if standing is None or not rows or standing.lower_bound == -math.inf:
            raise
        ending = Ending.of(Outcome.INTERRUPTED)
    except DivergenceError as error:
        if standing is None or finite == 0:
            if evaluation and np.isnan(evaluation[0]).all():
                error.add_note("the function is nan at every draw: check the data for nan")
            raise
        last = (*rows[-1][:EVALUATIONS], evaluations, *rows[-1][EVALUATIONS + 1 :])
        rows = [*rows[:-1], last]  # a new list, since a snapshot may hold the old one
        ending = Ending.of(Outcome.BROKE_DOWN, error=error)
        message = f"the run broke down and returns its best iterate: {error}"
        warn_user(message, ConvergenceWarning, ending.outcome.name)
    assert standing is not None
    converged = standing.converged and ending is standing.ending
    return Run(standing.best, standing.lower_bound, trace_of(rows), ending, converged)


def lenient(evaluate: Evaluate, t: int, theta: Array) -> tuple[Array, ...]:
    """Evaluate draws at which the function may fail: warnings are not shown, and what raises has the value nan."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return evaluate(t, theta)
        except Exception:  # whatever the user's function raises, for some draw or other
            parts = [_attempted(evaluate, t, row[None]) for row in theta]
        shapes = next((tuple(column.shape for column in part) for part in parts if part), ((1,),))
        missing = tuple(np.full(shape, np.nan) for shape in shapes)
        columns = zip(*(part or missing for part in parts), strict=True)
        return tuple(np.concatenate(column) for column in columns)


def _attempted(evaluate: Evaluate, t: int, theta: Array) -> tuple[Array, ...]:
    """What one draw evaluates to; empty if the function raises."""
    try:
        return evaluate(t, theta)
    except Exception:
        return ()


def _ended(standing: Standing | None, rows: list[Row], limits: Limits) -> Ending | None:
    """The reason to stop after these iterations; None if the run goes on."""
    if standing is None or standing.ending is not None:
        return standing.ending if standing else None
    if len(rows) >= limits.iterations:
        return Ending.of(Outcome.MAX_ITERATIONS, limit=limits.iterations)
    if rows[-1][EVALUATIONS] + rows[-1][DRAWS] > limits.evaluations:  # type: ignore[operator]
        return Ending.of(Outcome.MAX_EVALUATIONS, limit=limits.evaluations)
    return None


def _row(info: Info, smoothed: float, evaluations: int) -> Row:
    """The row of one iteration, in the order of the columns of `Trace`."""
    return (
        info.phase, info.lower_bound, smoothed, info.gap, info.noise, info.step_size, info.radius,
        info.num_draws, evaluations, info.dropped, info.reductions,
    )  # fmt: skip
