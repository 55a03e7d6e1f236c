"""A run of `Auto` by ask and tell, with one start or several.

Several starts are first screened one after the other: each runs until its gap is below `constants.SCREENING_GAP`.
Then the best of them runs to its end. The screening takes at most half of ``max_evaluations``, in equal shares. If a
share would not suffice to fit a surface, fewer starts are screened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto import constants
from mgvbp.auto.state import Phase, SearchState
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.core.threads import one_thread
from mgvbp.errors import DivergenceError
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods.optimizer import Info


class Decisions(Protocol):
    """What a run needs of `Rules`, or of `ByPairs`, whose states have what a run reads of a `SearchState`."""

    needs_gradients: ClassVar[bool]

    def ask(self, state: Any) -> Array:
        """The draws to evaluate next."""

    def tell(
        self, state: Any, theta: Array, values: ArrayLike, gradients: ArrayLike | None
    ) -> tuple[Any, Info]:
        """The state after these values."""

    def extended(self, state: Any, max_evaluations: int) -> Any:
        """The state with another limit."""

    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, ...]:
        """The log density at the draws, and its gradients if they are used."""


@dataclass(frozen=True, eq=False)
class Starts:
    """All starts of a search, each with its own state."""

    states: tuple[SearchState, ...]
    current: int
    """The start that is worked on."""
    chosen: bool
    """Whether the screening is over, so that ``current`` is the best start, which runs to its end."""
    budget: int
    """Evaluations for all starts together."""
    asked_for: int
    """Starts that the user wanted."""
    spent: int = 0
    lost: int = 0
    """Starts that were dropped because no value was finite."""

    @classmethod
    def of(cls, states: Sequence[SearchState], least: int, budget: int) -> Starts:
        """Keep as many of the states as the budget allows to screen; a first surface takes ``least`` draws."""
        if len(states) == 1:
            return cls((states[0],), 0, True, budget, 1)
        kept = states[: max(1, budget // (4 * least))]
        share = budget // (2 if budget // (4 * least) > 1 else 1) // len(kept)
        screened = tuple(replace(state, max_evaluations=share) for state in kept)
        return cls(screened, 0, False, budget, len(states))

    @property
    def active(self) -> SearchState:
        """The start that is worked on."""
        return self.states[self.current]

    @property
    def best(self) -> SearchState:
        """The start that was chosen; until then, the one with the largest lower bound so far."""
        return self.active if self.chosen else max(self.states, key=lambda state: state.lower_bound)

    @property
    def ending(self) -> Ending | None:
        """Why the search ended, if it has."""
        ending = self.active.ending if self.chosen else None
        limited = ending is not None and ending.outcome is Outcome.MAX_EVALUATIONS
        return Ending.of(Outcome.MAX_EVALUATIONS, limit=self.budget) if limited else ending

    @property
    def other_optima(self) -> tuple[float, ...] | None:
        """Lower bounds of starts that went elsewhere, the largest first; None if there was but one start."""
        if self.asked_for == 1 or len(self.states) + self.lost == 1:
            return None
        best = self.best.q
        others = [
            other.lower_bound
            for other in self.states
            if math.isfinite(other.lower_bound)
            and np.abs((other.q.mean - best.mean) / best.std).max() > constants.DIFFERENT
        ]
        return tuple(sorted(others, reverse=True))

    @property
    def disagreement(self) -> str:
        """A remark about starts that were not tried or went elsewhere; empty if all found the same optimum."""
        tried, others = len(self.states), self.other_optima
        remarks = []
        if tried + self.lost < self.asked_for:
            remarks.append(f"max_evaluations was enough to try {tried} of {self.asked_for} starts")
        if others:
            listed = ", ".join(f"{bound:.2f}" for bound in others)
            remarks.append(
                f"{len(others)} of {tried} starts went to other optima (lower bounds {listed}; best "
                f"{self.best.lower_bound:.2f}): the posterior may have several modes, of which a Gaussian shows one"
            )
        return "; ".join(remarks)


class Search:
    """An ask/tell run of `Auto`; batches differ in size.

    Parameters
    ----------
    rules : Rules or ByPairs
    state : Starts
        All that changes. A search with a copy of it continues bit for bit.

    Examples
    --------
    See `Auto.start`.
    """

    def __init__(self, rules: Decisions, state: Starts) -> None:
        self.rules, self.state = rules, state
        self._asked: tuple[Starts, Array] | None = None

    @property
    def gaussian(self) -> Gaussian:
        """The approximation of the start that is worked on."""
        return self.state.active.q

    @property
    def best(self) -> SearchState:
        """The best start so far."""
        return self.state.best

    @property
    def lower_bound(self) -> float:
        """The lower bound of the best start; −inf while nothing is known."""
        return self.best.lower_bound

    @property
    def lower_bound_se(self) -> float:
        """The standard error of `lower_bound`."""
        return self.best.lower_bound_se

    @property
    def gap(self) -> float:
        """Nats that `lower_bound` is expected to be below the family's optimum; inf while nothing is known."""
        return self.best.gap

    @property
    def gap_se(self) -> float:
        """The standard deviation of `gap`."""
        return self.best.gap_se

    @property
    def n_evaluations(self) -> int:
        """Evaluations so far, of all starts."""
        return self.state.spent

    @property
    def max_evaluations(self) -> int:
        """The most evaluations that the search makes."""
        return self.state.budget

    @property
    def ending(self) -> Ending | None:
        """Why the search ended; None while it goes on."""
        return self.state.ending

    @property
    def stop_reason(self) -> str:
        """Why the search ended, in a sentence; empty while it goes on."""
        return self.ending.sentence if self.ending else ""

    @property
    def converged(self) -> bool:
        """Whether the result is certified."""
        return self.ending is not None and self.ending.outcome is Outcome.CERTIFIED

    @property
    def trying(self) -> bool:
        """Whether the next draws try to refute a result: some of them lie far out, where the function may fail."""
        return self.state.active.far_out

    def ask(self) -> Array:
        """The draws to evaluate, (n, d); the same ones until `tell`."""
        return self._pending().copy()

    def _pending(self) -> Array:
        """The draws of the current state, made once."""
        if self._asked is None or self._asked[0] is not self.state:
            self._asked = self.state, self.rules.ask(self.state.active)
        return self._asked[1]

    def tell(self, values: ArrayLike, gradients: ArrayLike | None = None) -> Info:
        """Take the values (n,) of the draws last asked for; decide what to draw next, or stop.

        A search with gradients is also told those, (n, d).
        """
        theta = self._pending()
        with one_thread(theta.shape[1]):
            self.state, info = told(self.rules, self.state, theta, values, gradients)
        return info


def told(
    rules: Decisions, starts: Starts, theta: Array, values: ArrayLike, gradients: ArrayLike | None
) -> tuple[Starts, Info]:
    """Take the values at the draws of the active start, and go to the next start once this one is screened."""
    states, current, spent = starts.states, starts.current, starts.spent + len(theta)
    try:
        state, info = rules.tell(starts.active, theta, values, gradients)
    except DivergenceError:  # no value is finite: drop this start, unless it is the only one
        if len(states) == 1:
            raise
        left = (*states[:current], *states[current + 1 :])
        starts = replace(starts, states=left, lost=starts.lost + 1, spent=spent)
        info = Info(
            -math.inf, math.inf, 0.0, len(theta), 0, math.inf, math.inf, len(theta), Phase.SURVEY.value
        )
    else:
        screened = not starts.chosen and (state.ending is not None or state.gap < constants.SCREENING_GAP)
        states = (*states[:current], state, *states[current + 1 :])
        starts = replace(starts, states=states, current=current + bool(screened), spent=spent)
    return (_chosen(rules, starts) if starts.current == len(starts.states) else starts), info


def _chosen(rules: Decisions, starts: Starts) -> Starts:
    """Choose the best of the screened starts and give it what is left of the budget."""
    current = int(np.argmax([state.lower_bound for state in starts.states]))
    return extended(rules, replace(starts, current=current, chosen=True), starts.budget)


def extended(rules: Decisions, starts: Starts, budget: int) -> Starts:
    """The starts with another budget; the chosen one goes on, if the old one had ended it."""
    starts = replace(starts, budget=budget)
    if not starts.chosen:
        return starts
    best, current = starts.active, starts.current
    best = rules.extended(best, budget - starts.spent + best.n_evaluations)
    return replace(starts, states=(*starts.states[:current], best, *starts.states[current + 1 :]))
