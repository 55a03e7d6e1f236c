"""Relatives of the other adversaries, with numbers that a generator drew after the checks against their kind were made.

They show whether a check knows a class or only its examples. Every second one is hidden among other coordinates.
"""

from __future__ import annotations

import numpy as np

from .base import add
from .common import bump, normal
from .pieces import Piece
from .targets_forms import ripples
from .targets_modes import blobs, double_well, two
from .targets_slow import banana, valley
from .targets_tails import plateau, shoulder, step, student, two_scales, wall

rng = np.random.default_rng(1919)


def between(low: float, high: float) -> float:
    """A number between two others, evenly on the scale of logarithms."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def pit(depth: float, centre: float, width: float) -> Piece:
    """A normal with a trench, or a pit, of this depth."""
    return Piece(lambda x: -0.5 * x**2 - depth * np.exp(-0.5 * ((x - centre) / width) ** 2))


def relatives(kind: str, make, count: int, gradients: bool = True) -> None:
    """Add ``count`` targets of a kind; every second one is rotated with one to four other coordinates."""
    for k in range(count):
        others = [normal] * (int(rng.integers(1, 5)) if k % 2 else 0)
        add(
            kind,
            f"relative_{make.__name__}_{k}",
            make(),
            *others,
            mix=200 + k if others else None,
            shift=float(rng.uniform(-1.0, 1.0)),
            gradients=gradients,
        )


def walls():
    return wall(between(1e2, 1e7), rng.uniform(2.0, 4.5), int(rng.integers(1, 3)))


def steps():
    return step(between(30.0, 1e4), rng.uniform(1.5, 4.0), int(rng.integers(1, 3)))


def trenches():
    centre = rng.uniform(1.5, 3.6)
    return pit(
        between(5.0, 20.0) * np.exp(0.5 * centre**2), rng.choice([-1.0, 1.0]) * centre, between(0.04, 0.3)
    )


def lines():
    return plateau(rng.uniform(1.5, 3.0), between(0.1, 1.0))


def shoulders():
    return shoulder(-rng.uniform(1.0, 3.0), rng.uniform(2.5, 5.0), between(0.3, 2.0))


def scales():
    return two_scales(1, rng.uniform(0.05, 0.8), between(3.0, 40.0))


def waves():
    return ripples(between(0.2, 4.0), between(2.0, 15.0), rng.uniform(0.0, 6.0))


def pairs():
    return two(rng.uniform(0.2, 0.85), rng.uniform(3.0, 7.0), between(0.4, 1.5))


def wells():
    return double_well(between(1.0, 8.0))


def groups():
    centres, weights = rng.uniform(-5.0, 5.0, 3), rng.uniform(-2.0, 0.0, 3)
    widths = np.exp(rng.uniform(-1.0, 0.3, 3))

    def f(x):
        return np.logaddexp.reduce([bump(x, *part) for part in zip(centres, widths, weights, strict=True)])

    return Piece(f, starts=tuple(centres))


def islands():
    return blobs(2, rng.uniform(2.0, 4.0), between(0.4, 1.2), rng.uniform(0.3, 0.8))


def bananas():
    return banana(between(0.5, 8.0), between(0.2, 1.5))


def valleys():
    a, b = between(1.0, 3.0), between(0.7, 2.5)
    return valley(lambda x: a * np.sin(b * x), between(0.15, 0.5))


def tails():
    return student(1, between(1.0, 6.0))


relatives("drop", walls, 6)
relatives("drop", steps, 4, gradients=False)
relatives("drop", trenches, 6)
relatives("rise", lines, 4)
relatives("rise", shoulders, 4)
relatives("rise", scales, 4)
relatives("ripple", waves, 6)
relatives("modes", pairs, 6)
relatives("modes", groups, 4)
relatives("modes", islands, 4)
relatives("saddle", wells, 4)
relatives("slow", bananas, 4)
relatives("slow", valleys, 4)
relatives("tails", tails, 2)
