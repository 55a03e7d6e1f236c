r"""Directions in which the bound is flatter than its surface says, and what fresh draws say along them.

A leap from q leads to the maximum of its surface. Where the target is far from Gaussian the bound itself may bend less:
in a hierarchy the scale of the effects and the effects move together along a ridge. With x = (mean, precision) in the
frame of q, scaled so that :math:`\tfrac12 \|x\|^2` is the KL divergence, and r(x) the leap from x, the *rates* are the
eigenvalues λ of :math:`A = -\partial r / \partial x`: a leap leaves the share :math:`1 - \lambda` of the way. Along an
eigenvector v a leap r stands for :math:`\tfrac12 (r \cdot v)^2 / \lambda` nats instead of
:math:`\tfrac12 (r \cdot v)^2`, and so does its noise.

The least rates are found by some of Lanczos's steps on all draws. Then fresh draws say how long the leap is along their
vectors: on the draws that chose q it is too short, since q is their optimum, noise included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.steps.leap import step
from mgvbp.auto.steps.polish import Look, coordinates, gaussian
from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian


class Hidden(NamedTuple):
    """Nats beyond what a surface states."""

    noise: float
    """What the noise of all draws costs more along slow directions."""
    shown: float
    """How far below its maximum the bound is along them according to fresh draws, if that is no chance."""
    needed: float
    """Effective fresh draws whose noise costs a share of the tolerance, or a share of all draws if that is less."""


def hidden(
    q: Gaussian,
    whole: Look,
    shares: list[tuple[Look, float]],
    fresh: Look,
    sizes: tuple[float, float],
    tol: float,
) -> Hidden:
    """What slow directions at ``q`` hide.

    Parameters
    ----------
    q : Gaussian
    whole, fresh : callable
        They fit surfaces at a Gaussian, to all draws and to those that have not chosen q.
    shares : list of (callable, float)
        Each fits surfaces to its own share of all draws, and how much that weighs: they differ by noise.
    sizes : (float, float)
        The effective numbers of all draws, and of the fresh ones.
    tol : float
        Nats that matter.
    """
    leap = _leap(q, whole)
    here, there = leap(0.0), _leap(q, fresh)(0.0)
    several = [r for r in (_leap(q, share)(0.0) for share, _ in shares) if r is not None]
    if here is None or there is None or len(several) < len(shares):
        return Hidden(0.0, 0.0, 0.0)
    rates, V = _slowest(leap, here)
    stretch = 1.0 / np.clip(rates, 1.0 / constants.MOST_SLOW, 1.0)
    weights = np.array([weight for _, weight in shares])[:, None]
    along = np.array(several) @ V.T
    squares = np.square(weights * (along - (weights * along).sum(axis=0))).sum(axis=0)
    variances = squares / (1.0 - float(np.square(weights).sum()))  # of the mean of the shares
    doubtful = 0.5 * constants.SLOWER * stretch
    cost = doubtful * variances * sizes[0]  # of the noise of one fresh draw
    chance = cost / sizes[1] + doubtful * variances  # of the fresh draws, and of those that have chosen q
    risen = doubtful * np.square(V @ there)
    shown = np.where(risen > constants.BY_CHANCE * chance, risen - chance, 0.0)
    needed = min(float(cost.sum()) / (constants.FRESH_NOISE * tol), constants.FRESH_SHARE * sizes[0])
    return Hidden(0.5 * float((stretch - 1.0) @ variances), float(shown.sum()), needed)


def _leap(q: Gaussian, look: Look) -> Callable[[Array | float], Array | None]:
    """The leap r(x) as a function of x; its value is None where there is no surface."""
    origin = coordinates(q, q)
    scale = np.where(np.arange(len(origin)) < q.dim, 1.0, math.sqrt(2.0))

    def leap(x: Array | float) -> Array | None:
        moved = gaussian(q, origin + scale * x)
        surface = None if moved is None else look(moved)
        target = None if surface is None else step(surface, 1.0)
        return None if target is None else np.asarray((coordinates(q, target) - origin) / scale - x)

    return leap


def _slowest(leap: Callable[[Array | float], Array | None], here: Array) -> tuple[Array, Array]:
    """The rates (k,) below `constants.SLOW`, and their vectors (k, p), by Lanczos's steps from the leap ``here``."""
    size = constants.SLOW_STEP
    vectors: list[Array] = []
    products: list[Array] = []
    following = here
    for _ in range(constants.MOST_LANCZOS):
        length = float(np.linalg.norm(following))
        if length < constants.ROUND_OFF:
            break
        after = leap(size * following / length)
        if after is None:
            break
        vectors.append(following / length)
        products.append((here - after) / size)
        basis, following = np.array(vectors), products[-1]
        for _ in range(2):  # twice is enough (Kahan)
            following = following - basis.T @ (basis @ following)
    if not vectors:
        return np.empty(0), np.empty((0, len(here)))
    basis = np.array(vectors)
    T = basis @ np.array(products).T
    rates, U = np.linalg.eigh(0.5 * (T + T.T))
    slow = rates < constants.SLOW
    return rates[slow], U.T[slow] @ basis
