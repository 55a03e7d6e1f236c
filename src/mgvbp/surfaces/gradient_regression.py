r"""Regression of whitened gradients on 1 and ε, with the contribution of each draw to the error.

:math:`v = L^{-1}\nabla \log p(\theta) + \varepsilon` is the gradient in ε of :math:`h = \log p - \log q`. By the
theorems of Bonnet and Price its regression on 1 and ε under q has the coefficients :math:`g = E[v]` and
:math:`-2G = E[\nabla v]`: the whitened gradients of the lower bound. For a Gaussian p they are exact, whatever the
draws ("sticking the landing", Roeder, Wu and Duvenaud 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs

from mgvbp.core.linalg import SINGULAR, Array, collinear, symmetric_part
from mgvbp.families import BlockDiagonal, Diagonal, Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces import constants
from mgvbp.surfaces.surface import orthogonal

WRITTEN_OUT = 12
"""For blocks of at most this many parameters the matrices ½ sym(r aᵀ) are written out; larger blocks take products of
(N, N) matrices instead."""


@dataclass(frozen=True)
class Draws:
    """What a regression is given, for N draws of d parameters."""

    eps: Array
    """The draws in the frame, (N, d)."""
    v: Array
    """Gradients of h at the draws, (N, d)."""
    weights: Array
    """Weights of the draws, (N,), which add up to 1."""
    twins: NDArray[np.intp]
    """Index of each draw's mirror image, (N,); its own index if it has none."""
    batches: tuple[slice, ...] = ()
    """Rows of more than one pair that are not independent of each other, but of all others."""


@dataclass(frozen=True)
class Products:
    """Matrices ``½ sym(r aᵀ)``, which add up to G, for the rows r of ``residuals`` and a of ``influence``, (N, d)."""

    family: Family
    residuals: Array
    influence: Array

    def gram(self, rows: NDArray[np.intp]) -> Array:
        """Inner products of the matrices of some draws, (k, k), over the entries of the family."""
        R, A = self.residuals[rows], self.influence[rows]
        if isinstance(self.family, Diagonal):
            product = R * A
            return 0.25 * (product @ product.T)
        total, entries = np.zeros((len(R), len(R))), []
        for block in self._blocks:
            r, a = R[:, block], A[:, block]
            if r.shape[1] <= WRITTEN_OUT:
                outer = r[:, :, None] * a[:, None, :]
                entries.append((outer + outer.swapaxes(1, 2)).reshape(len(R), -1))
            else:
                cross = r @ a.T
                total += 0.125 * ((r @ r.T) * (a @ a.T) + cross * cross.T)
        if entries:
            written = np.concatenate(entries, axis=1)
            total += 0.0625 * (written @ written.T)
        return total

    def inner(self, one: NDArray[np.intp], two: NDArray[np.intp]) -> Array:
        """Inner products of the matrices of draws ``one`` with those of draws ``two``, one by one, (k,)."""
        r, a, s, b = self.residuals[one], self.influence[one], self.residuals[two], self.influence[two]
        if isinstance(self.family, Diagonal):
            return np.asarray(0.25 * np.einsum("nd,nd->n", r * a, s * b))

        def dot(x: Array, y: Array, block: NDArray[np.intp] | slice) -> Array:
            return np.asarray(np.einsum("nd,nd->n", x[:, block], y[:, block]))

        total = np.zeros(len(r))
        for block in self._blocks:
            total += 0.125 * (dot(r, s, block) * dot(a, b, block) + dot(r, b, block) * dot(s, a, block))
        return total

    def summed(self, batches: Sequence[slice]) -> Array:
        """The sums of the matrices of the draws in each batch, as rows of the family's entries, (k, entries)."""
        R, A = self.residuals, self.influence
        return np.array([0.5 * symmetric_part(R[rows].T @ A[rows])[self.family.mask] for rows in batches])

    @property
    def _blocks(self) -> list[NDArray[np.intp]] | list[slice]:
        return list(self.family.blocks) if isinstance(self.family, BlockDiagonal) else [slice(None)]


@dataclass(frozen=True)
class Entries:
    """The same matrices, written out: one row of ``entries`` (N, k) for each draw."""

    entries: Array

    def gram(self, rows: NDArray[np.intp]) -> Array:
        """Inner products of the rows of some draws, (k, k)."""
        kept = self.entries[rows]
        return kept @ kept.T

    def inner(self, one: NDArray[np.intp], two: NDArray[np.intp]) -> Array:
        """Inner products of the rows ``one`` with the rows ``two``, one by one, (k,)."""
        return np.asarray(np.einsum("nk,nk->n", self.entries[one], self.entries[two]))

    def summed(self, batches: Sequence[slice]) -> Array:
        """The sums of the rows in each batch, (k, entries)."""
        return np.array([self.entries[rows].sum(axis=0) for rows in batches])


@dataclass(frozen=True)
class GradientFit:
    """Whitened gradients of the bound and their errors."""

    g: Array
    G: Array
    fitted: Array
    """The gradients v as the regression predicts them, (N, d)."""
    predicted: Array
    """h less its mean under q, as the regression predicts it, (N,)."""
    own: Array
    """The part of ``predicted`` that is due to the draw itself and its twin, (N,)."""
    residuals: Array
    """Residuals of v by a regression that leaves out the draw and its twin, (N, d)."""
    errors: Array
    """What each draw contributes to the error of g, (N, d)."""
    bends: Products | Entries
    """What each draw contributes to the error of G, over the family's entries."""


def linear(draws: Draws, family: Family) -> GradientFit | None:
    """Weighted least squares on 1 and ε, for all components of v at once; None where it is singular."""
    eps, v, root = draws.eps, draws.v, np.sqrt(draws.weights)[:, None]
    N, d = eps.shape
    Z = np.empty((N, 1 + d), order="F")
    Z[:, 0], Z[:, 1:] = 1.0, eps
    Q, R = orthogonal(root * Z)
    pivots = np.abs(R.diagonal())
    if not pivots.min() > SINGULAR * pivots.max():
        return None
    rotated = Q.T @ (root * v)
    coefficients = dtrsm(1.0, R, rotated)
    fitted = Z @ coefficients
    residuals = _leave_out(Q, root * (v - fitted), draws.twins) / root
    influence = root * dtrsm(1.0, R, Q, side=1, trans_a=1)  # of each draw on each row of the coefficients
    g, G = coefficients[0], symmetric_part(-0.5 * coefficients[1:])
    return GradientFit(
        g=g,
        G=G,
        fitted=fitted,
        predicted=quadratic(eps, g, G),
        own=_own_share(eps, influence, residuals, draws.twins),
        residuals=residuals,
        errors=influence[:, :1] * residuals,
        bends=Products(family, residuals, influence[:, 1:]),
    )


class Slopes(NamedTuple):
    """Draws of which only sums over the gradients are taken, which spares the gradients in the frame."""

    q: Gaussian
    eps: Array
    """The draws in the frame of q, (N, d)."""
    weights: Array
    """Their weights, (N,), which add up to 1."""
    gradients: Array
    """Gradients of the log density by θ, (N, d)."""

    def sums(self, rows: Array) -> Array:
        """``rows`` (k, N) times the gradients v of h in the frame, (k, d)."""
        return np.asarray(self.q.family.solve(self.q.factor, rows @ self.gradients) + rows @ self.eps)


class Followed(NamedTuple):
    """What a surface is followed by: g, G and the mean over the draws of what they predict of h."""

    g: Array
    G: Array
    mean: float


def linear_followed(draws: Slopes) -> Followed | None:
    """What `linear` has, without any errors; None where it is singular."""
    Z = np.concatenate([np.ones((1, len(draws.eps))), draws.eps.T])
    weighted = draws.weights * Z
    gram = weighted @ Z.T
    factor, failed = dpotrf(gram, lower=1)
    if failed or collinear(factor, gram.diagonal()):
        return None
    coefficients = dpotrs(factor, draws.sums(weighted), lower=1)[0]
    g, G = coefficients[0], symmetric_part(-0.5 * coefficients[1:])
    return Followed(g, G, float(gram[0, 1:] @ g - np.vdot(gram[1:, 1:], G) + G.trace()))


def quadratic(eps: Array, g: Array, G: Array) -> Array:
    """``gᵀε − εᵀGε + tr G``, which has mean 0 under N(0, I)."""
    return np.asarray(eps @ g - np.einsum("ni,ni->n", eps @ G, eps) + G.trace())


def _own_share(eps: Array, influence: Array, residuals: Array, twins: NDArray[np.intp]) -> Array:
    """What the draw and its twin contribute to the quadratic that the regression predicts at the draw, (N,).

    Without a draw the coefficients are less by its influence (1 + d,) times its residual (d,). Rows of coefficients for
    ε are −2G: a draw with influence a on them adds ½ (a·ε)(r·ε) − ½ a·r.
    """

    def share(a: Array, r: Array) -> Array:
        slope = np.einsum("nd,nd->n", r, eps)
        bend = np.einsum("nd,nd->n", a[:, 1:], eps) * slope - np.einsum("nd,nd->n", a[:, 1:], r)
        return np.asarray(a[:, 0] * slope + 0.5 * bend)

    own = share(influence, residuals)
    paired = twins != np.arange(len(twins))
    return own + np.where(paired, share(influence[twins], residuals[twins]), 0.0) if paired.any() else own


def _leave_out(Q: Array, residuals: Array, twins: NDArray[np.intp]) -> Array:
    """Residuals (N, d) of a regression with orthonormal columns Q that leaves out the draw and its twin."""
    own = np.maximum(1.0 - np.einsum("np,np->n", Q, Q), constants.EVEN_LEVERAGE)
    paired = twins != np.arange(len(twins))
    shared = np.where(paired, np.einsum("np,np->n", Q, Q[twins]), 0.0)
    # the determinant of I − QQᵀ, restricted to the draw and its twin
    determinant = np.maximum(own * own[twins] - shared**2, constants.EVEN_LEVERAGE * own * own[twins])
    others = (shared / determinant)[:, None] * residuals[twins]
    return np.asarray(np.where(paired, own[twins] / determinant, 1.0 / own)[:, None] * residuals + others)
