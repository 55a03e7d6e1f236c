r"""Ask and tell draw by draw, in any order: for evaluations that cost very different amounts of time.

If a step waits for the slowest of its draws, all workers wait. If it takes the draws that return first, it sees the
cheap ones, and if the cost depends on θ the result is wrong. Here a step waits for *all* of its draws, but meanwhile
the workers go on with draws for later steps.

By the time such a draw is used, q has moved. The draw is kept or exchanged by a maximal coupling (Jacob, O'Leary &
Atchadé 2020, Algorithm 2): θ from the old q stays with probability :math:`\min(1, q_{new}(θ)/q_{old}(θ))`, whether or
not its value is known. Otherwise it is discarded, and a draw from the normalised difference
:math:`\max(0, q_{new} - q_{old})` takes its place. The outcome is *exactly* a draw from the new q, independent of the
others. So every step has S independent draws from its own q, as in `Optimizer`: there are no weights, no draw is
stale, and delays have no influence on the distribution of the iterates. The cost is the discarded draws: their share
is :math:`TV(q_{old}, q_{new})`, the least that is possible.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.auto import Auto
from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods import Method, resolve_method
from mgvbp.methods.optimizer import STREAM, Info, Optimizer, State
from mgvbp.problem.problem import Problem, checked_derivatives, checked_values

TRIES = 10_000
"""Most tries of the rejection sampling that replaces a draw. The probability that a draw must be replaced and that n
tries all fail is below 1/(en)."""


class Draw(NamedTuple):
    """A draw to evaluate."""

    number: int
    """Its number, with which its value is told."""
    theta: Array
    """The point to evaluate, (d,)."""


@dataclass
class Batch:
    """The draws of a step, by number; all of them are from the current q."""

    theta: dict[int, Array] = field(default_factory=dict)
    told: dict[int, tuple[Array, ...]] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)
    """Numbers of the draws that have not been handed out yet."""


class Told(Optimizer):
    """An optimiser that is told about draws which it did not make."""

    def tell_about(self, theta: Array, *found: Array) -> Info:
        """Take a step with draws (S, d) from the current q and their values (and derivatives)."""
        mean, factor, *_ = self.state.frame
        self._asked = self.state, self.family.to_frame(factor, theta - mean), theta
        return self.tell(*found)


class Asynchronous:
    """An ask/tell run of a named method whose draws are evaluated independently of each other.

    Parameters
    ----------
    method : str or Method
        A named method, such as "mgvbp" or ``MGVBP(step_size=...)``.
    target : int, Gaussian or Problem
        As for `Optimizer`.
    ahead : int
        For how many later steps draws are handed out in advance. With more, workers wait less for the slowest draw of
        a step, and more draws are discarded. With 0 they wait for every step.
    **options
        As for `Optimizer`, without ``draws``: the draws are always independent.

    Attributes
    ----------
    discarded : int
        How many draws were handed out and not used, as q had moved on.
    given_up : int
        How many draws were given up by `give_up`.

    Notes
    -----
    Draws depend on what was told before they were made, so that only a run told in the same order repeats itself.

    Examples
    --------
    Three workers, one of them slow:

    >>> import mgvbp
    >>> run = mgvbp.Asynchronous(mgvbp.MGVBP(step_size=0.1), 2, rng=0)
    >>> slow = run.ask()
    >>> while run.iteration < 100:
    ...     for _ in range(20):
    ...         if (draw := run.ask()) is not None:
    ...             infos = run.tell(draw.number, -((draw.theta - 3.0) ** 2).sum())
    ...     infos = run.tell(slow.number, -((slow.theta - 3.0) ** 2).sum())
    ...     slow = run.ask()
    >>> run.gaussian.mean.round(3)
    array([3., 3.])
    """

    def __init__(
        self, method: str | Method, target: int | Gaussian | Problem, *, ahead: int = 2, **options: Any
    ) -> None:
        if "draws" in options:
            raise InvalidInputError(
                "draws that may be exchanged one by one are independent: leave draws= out"
            )
        named = resolve_method("auto" if isinstance(method, Auto) else method)
        self._optimizer = Told(named, target, draws="mc", **options)
        self._ahead = positive_integer(ahead, "ahead", least=0)
        self._batches: deque[Batch] = deque()
        self._rng = np.random.default_rng((*self.state.key, self.state.iteration, STREAM, 1))
        self._made = self.discarded = self.given_up = 0

    @property
    def gaussian(self) -> Gaussian:
        """The current approximation."""
        return self._optimizer.gaussian

    @property
    def state(self) -> State:
        """What another run needs to go on from here; open draws are not in it."""
        return self._optimizer.state

    @property
    def iteration(self) -> int:
        """Steps taken."""
        return self.state.iteration

    @property
    def num_draws(self) -> int:
        """Draws per step, S."""
        return self._optimizer.num_draws

    def ask(self) -> Draw | None:
        """A draw to evaluate; None if there is nothing to do until more values are told."""
        for batch in self._batches:
            if not batch.waiting and len(batch.theta) < self.num_draws:
                self._add(batch, self.gaussian.sample(1, self._rng)[0])
            if batch.waiting:
                number = batch.waiting.popleft()
                return Draw(number, batch.theta[number].copy())
        if len(self._batches) > self._ahead:
            return None
        self._batches.append(Batch())
        return self.ask()

    def tell(
        self, number: int, value: float, gradient: ArrayLike | None = None, squares: ArrayLike | None = None
    ) -> list[Info]:
        """Take the value of a draw and the derivatives (d,) that the estimator needs, then all steps now possible.

        The result has an `Info` for each step. Values of draws that were discarded, given up or told before are
        ignored.
        """
        if (batch := self._batch_of(number)) is None:
            return []
        theta = batch.theta[number][None]
        derivatives = {"values": [], "gradients": [gradient], "squares": [gradient, squares]}
        batch.told[number] = (
            checked_values([value], theta, "log_likelihood")[0],
            *(
                checked_derivatives([d], theta, "grad")[0]
                for d in derivatives[self._optimizer.estimator.needs]
            ),
        )
        return self._advance()

    def give_up(self, number: int) -> list[Info]:
        """Wait no longer for a draw: its step leaves it out, like one whose value is not finite.

        The posterior is then conditional on the region where draws are not given up. `Info.dropped` counts such
        draws.
        """
        if self._batch_of(number) is None:
            return []
        self.given_up += 1
        nothing = np.full(self._optimizer.dim, math.nan)
        return self.tell(number, math.nan, nothing, nothing)

    def _batch_of(self, number: int) -> Batch | None:
        positive_integer(number, "the number of a draw", least=0)
        if number >= self._made or any(number in batch.waiting for batch in self._batches):
            raise InvalidInputError(f"there is no draw {number}; the numbers are those of ask()")
        open_ = (batch for batch in self._batches if number in batch.theta and number not in batch.told)
        return next(open_, None)

    def _add(self, batch: Batch, theta: Array) -> None:
        batch.theta[self._made] = theta
        batch.waiting.append(self._made)
        self._made += 1

    def _advance(self) -> list[Info]:
        """Take the steps whose draws are all known."""
        infos = []
        while self._batches and len(self._batches[0].told) == self.num_draws:
            batch, old = self._batches[0], self.gaussian
            # the order in which the draws were made, not that in which they were told
            theta = np.array(list(batch.theta.values()))
            found = (np.array(rows) for rows in zip(*(batch.told[k] for k in batch.theta), strict=True))
            infos.append(self._optimizer.tell_about(theta, *found))
            self._batches.popleft()
            for later in self._batches:
                self._couple(later, old)
        return infos

    def _couple(self, batch: Batch, old: Gaussian) -> None:
        """Turn the draws of a batch, which are from ``old``, into draws from the current q."""
        if not batch.theta:
            return
        numbers, before = list(batch.theta), np.array(list(batch.theta.values()))
        after, kept = coupled(before, old, self.gaussian, self._rng)
        batch.theta = {}  # a new draw takes the place of the old one, so that the order does not depend on the draws
        for number, theta, same in zip(numbers, after, kept, strict=True):
            if same:
                batch.theta[number] = theta
                continue
            batch.told.pop(number, None)
            if number in batch.waiting:
                batch.waiting.remove(number)
            else:
                self.discarded += 1
            self._add(batch, theta)


def coupled(
    theta: Array, old: Gaussian, new: Gaussian, rng: np.random.Generator
) -> tuple[Array, NDArray[np.bool_]]:
    """Turn draws (S, d) from ``old`` into draws from ``new``, keep as many as possible, and say which are kept.

    Examples
    --------
    >>> old, new = Gaussian(0.0, 1.0, dim=2), Gaussian(0.1, 1.0, dim=2)
    >>> theta, kept = coupled(old.sample(100_000, 0), old, new, np.random.default_rng(1))
    >>> round(float(1.0 - kept.mean()), 3)  # TV = 2 Φ(√2 0.1 / 2) − 1 = 0.0564
    0.056
    """
    theta = theta.copy()
    kept = np.log(rng.random(len(theta))) <= new.log_density_at(theta) - old.log_density_at(theta)
    for row in np.flatnonzero(~kept):
        for _ in range(TRIES):
            candidate = new.sample(1, rng)
            if math.log(rng.random()) > (old.log_density_at(candidate) - new.log_density_at(candidate))[0]:
                break
        theta[row] = candidate[0]
    return theta, kept
