r"""NUTS, the No-U-Turn sampler, as a computation that asks for gradients (Hoffman and Gelman 2014; Betancourt 2017).

A leapfrog trajectory of the Hamiltonian :math:`H = -\log p(x) + \frac12 \|r\|^2` is doubled, forward or backward in
time, until its ends turn back: until the sum ρ of the momenta and that of an end have a negative product. A point of
the trajectory is drawn with weights :math:`e^{-H}`, with a preference for the newest half (multinomial, biased
progressive sampling). The metric is I in a `Frame` in which the target has about covariance I, so that trajectories
are short.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.sampling.frame import Frame
from mgvbp.sampling.points import Asking, Move, Point

DEEPEST = 10
"""Doublings of a trajectory at most, as in Stan: 1,023 steps, far more than a target takes in a frame of its own."""
LOST = 1000.0
"""Nats of energy by which a trajectory may be off; beyond, the integrator has lost it (Betancourt 2017)."""


class Phase(NamedTuple):
    """A point with its momentum and the gradient of the log density, both by the frame's coordinates z."""

    point: Point
    momentum: Array
    gradient: Array

    @property
    def energy(self) -> float:
        """``H = −log p + ½‖r‖²``; infinite where the density is zero or its gradient is not known."""
        if not (math.isfinite(self.point.value) and np.isfinite(self.gradient).all()):
            return math.inf
        return 0.5 * float(self.momentum @ self.momentum) - self.point.value


class Tree(NamedTuple):
    """A piece of a trajectory, from its end that is earlier in time to the later one."""

    first: Phase
    last: Phase
    drawn: Point
    log_weight: float
    """Of all its points together."""
    momenta: Array
    """Their sum ρ."""
    accepted: float
    """The sum over its points of the probability with which Metropolis would accept them from the start."""
    steps: int
    turned: bool = False
    diverged: bool = False

    @property
    def ended(self) -> bool:
        """Whether the trajectory must not be extended."""
        return self.turned or self.diverged


@dataclass(frozen=True, eq=False)
class Nuts:
    """The kernel with steps of length ``step_size`` in a frame of the target."""

    frame: Frame
    step_size: float

    def move(self, point: Point, rng: np.random.Generator) -> Asking[Move]:
        """Follow one trajectory and draw a point of it."""
        start = self._phase(point, rng.standard_normal(len(point.position)))
        tree = Tree(start, start, point, 0.0, start.momentum, 0.0, 0)
        for depth in range(DEEPEST):
            forward = bool(rng.random() < 0.5)
            edge = tree.last if forward else tree.first
            new = yield from self._extension(edge, forward, depth, start.energy, rng)
            newer = not new.ended and -rng.exponential() < new.log_weight - tree.log_weight
            tree = joined(tree, new, forward, newer)
            if tree.ended:
                break
        return Move(tree.drawn, tree.accepted / tree.steps, tree.diverged)

    def _extension(
        self, edge: Phase, forward: bool, depth: int, energy: float, rng: np.random.Generator
    ) -> Asking[Tree]:
        """A piece of ``2^depth`` steps beyond ``edge``; shorter if it turns or diverges."""
        if depth == 0:
            end = yield from self.leapfrog(edge, self.step_size if forward else -self.step_size)
            excess = end.energy - energy
            weight, accepted = -excess, math.exp(min(0.0, -excess))
            return Tree(end, end, end.point, weight, end.momentum, accepted, 1, diverged=not excess < LOST)
        tree = yield from self._extension(edge, forward, depth - 1, energy, rng)
        if tree.ended:
            return tree
        edge = tree.last if forward else tree.first
        new = yield from self._extension(edge, forward, depth - 1, energy, rng)
        total = np.logaddexp(tree.log_weight, new.log_weight)
        return joined(tree, new, forward, not new.ended and -rng.exponential() < new.log_weight - total)

    def leapfrog(self, phase: Phase, step: float) -> Asking[Phase]:
        """One step of the integrator; it is undone by a step of ``−step``."""
        half = phase.momentum + 0.5 * step * phase.gradient
        point = yield phase.point.position + step * self.frame.direction(half)
        end = self._phase(point, half)
        return end._replace(momentum=half + 0.5 * step * end.gradient)

    def _phase(self, point: Point, momentum: Array) -> Phase:
        assert point.gradient is not None
        return Phase(point, momentum, self.frame.gradient(point.gradient))


def joined(tree: Tree, new: Tree, forward: bool, newer: bool) -> Tree:
    """The trajectory of a piece and its extension; its draw is the new one's if ``newer``."""
    early, late = (tree, new) if forward else (new, tree)
    momenta = tree.momenta + new.momenta
    # the last two look across the seam, where a turn would be missed
    turned = (
        turns(early.first, late.last, momenta)
        or turns(early.first, late.first, early.momenta + late.first.momentum)
        or turns(early.last, late.last, late.momenta + early.last.momentum)
    )
    return Tree(
        early.first,
        late.last,
        new.drawn if newer else tree.drawn,
        float(np.logaddexp(tree.log_weight, new.log_weight)),
        momenta,
        tree.accepted + new.accepted,
        tree.steps + new.steps,
        turned or new.turned,
        new.diverged,
    )


def turns(first: Phase, last: Phase, momenta: Array) -> bool:
    """Whether one of the ends moves against the sum of the momenta."""
    return bool(first.momentum @ momenta <= 0.0 or last.momentum @ momenta <= 0.0)
