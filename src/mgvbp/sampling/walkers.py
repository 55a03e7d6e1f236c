"""Walkers in lockstep: each is a computation that asks for points, and one batch answers all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.sampling.points import Asking, Kernel, Move, Point

Evaluate = Callable[[Array], tuple[Array, Array | None]]
"""Log densities (S,) of the target at θ (S, d), and their gradients (S, d) or None; neither need be finite."""
Report = Callable[[int, int], None]
"""Called with the number of draws and of evaluations so far."""


class BudgetSpentError(Exception):
    """The next batch would exceed the number of evaluations that are allowed."""


@dataclass
class Engine:
    """Evaluates positions in the frame of ``q``, counts them, and keeps to a limit."""

    evaluate: Evaluate
    q: Gaussian
    limit: float = math.inf
    n_evaluations: int = 0
    rejected: int = 0
    """Evaluations that were not a number."""

    def points(self, positions: Array) -> list[Point]:
        """The points at positions (S, d)."""
        if self.n_evaluations + len(positions) > self.limit:
            raise BudgetSpentError
        family, factor = self.q.family, self.q.factor
        values, gradients = self.evaluate(self.q.mean + family.from_frame(factor, positions))
        self.n_evaluations += len(positions)
        unknown = np.isnan(values) | np.isposinf(values)
        self.rejected += int(np.count_nonzero(unknown))
        values = np.where(unknown, -np.inf, values)
        whitened: Iterable[Array | None] = [None] * len(values)
        if gradients is not None:
            whitened = family.solve(factor, np.where(np.isfinite(gradients), gradients, np.nan))
        return [Point(x, float(v), g) for x, v, g in zip(positions, values, whitened, strict=True)]

    def run(self, walks: Sequence[Asking[None]], after: Callable[[], None]) -> None:
        """Advance all walks to their ends; ``after`` is called after each batch."""
        asked = {k: next(walk) for k, walk in enumerate(walks)}
        while asked:
            points = self.points(np.array(list(asked.values())))
            for k, point in zip(list(asked), points, strict=True):
                try:
                    asked[k] = walks[k].send(point)
                except StopIteration:
                    del asked[k]
            after()


@dataclass
class Walker:
    """A chain: where it is, and its record, in which a move may stand for several transitions."""

    point: Point
    rng: np.random.Generator
    record: list[Move] = field(default_factory=list)

    def walk(
        self,
        kernels: Callable[[], Sequence[Kernel]],
        transitions: int,
        stride: int,
        learn: Callable[[float], None],
    ) -> Asking[None]:
        """Apply the kernels one after the other, and record every ``stride``-th transition.

        What is recorded of acceptance and divergence is the last kernel's. ``learn`` is given its acceptance.
        """
        diverged, acceptance = False, 0.0
        for t in range(1, transitions + 1):
            for kernel in kernels():
                move = yield from kernel.move(self.point, self.rng)
                self.point = move.point
            learn(move.acceptance)
            diverged, acceptance = diverged or move.diverged, acceptance + move.acceptance / stride
            if t % stride == 0:
                self.record.append(Move(self.point, acceptance, diverged))
                diverged, acceptance = False, 0.0
