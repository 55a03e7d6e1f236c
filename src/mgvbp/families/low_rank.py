r"""A diagonal precision with a low-rank addition: :math:`P = D + U U^\top`, in memory of d (1 + rank) numbers.

A family array has the root of D in its first column and U (d, rank) in the others. With the thin singular value
decomposition :math:`D^{-1/2} U = Q\,\mathrm{diag}(s)\,W^\top` and :math:`k = \sqrt{1 + s^2}`, the frame is

.. math::
    L = D^{1/2} K, \qquad K = I + Q\,\mathrm{diag}(k - 1)\,Q^\top, \qquad
    K^{-1} = I + Q\,\mathrm{diag}(1/k - 1)\,Q^\top ,

so that :math:`L L^\top = P` without a triangular matrix. Each operation takes O(d rank²); the variances are those of
Woodbury's formula, :math:`\Sigma = D^{-1/2} (I - Q\,\mathrm{diag}(s^2/k^2)\,Q^\top)\,D^{-1/2}`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.base import Indices, positive_roots
from mgvbp.families.structured import Structured


class Parts(NamedTuple):
    """The decomposition of a family array: :math:`P = D^{1/2} (I + Q s^2 Q^T) D^{1/2}`."""

    root: Array
    """The root of D, (d,)."""
    Q: Array
    """Orthonormal columns, (d, rank)."""
    s: Array
    """Singular values, the largest first, (rank,)."""
    k: Array
    """:math:`\\sqrt{1 + s^2}`, (rank,)."""


class LowRank(Structured):
    """A precision that is diagonal plus one of low rank: few directions in which the data say more than elsewhere.

    Parameters
    ----------
    rank : int, optional
        Columns of U, at most d − 1. By default as many, up to 64, as raise the lower bound by more than the tolerance.

    Examples
    --------
    Five hundred coefficients, and three directions in which they are known well.

    >>> import mgvbp
    >>> U = np.random.default_rng(0).standard_normal((500, 3))
    >>> def log_density(theta):
    ...     return -0.5 * (theta**2).sum(axis=1) - 0.5 * ((theta @ U - 1.0) ** 2).sum(axis=1)
    >>> def gradient(theta):
    ...     return -theta - (theta @ U - 1.0) @ U.T
    >>> posterior = mgvbp.fit(log_density, dim=500, grad=gradient, family=mgvbp.LowRank())
    >>> posterior.converged, posterior.family
    (True, LowRank(3))
    """

    name = "low-rank"

    def __init__(self, rank: int | None = None) -> None:
        self.rank = None if rank is None else positive_integer(rank, "rank")
        self.dim = 0 if self.rank is None else self.rank + 1  # until `resolved`

    def resolved(self, dim: int) -> LowRank:
        """The family of ``dim`` parameters."""
        if self.rank is not None and self.rank >= dim > 1:
            raise InvalidInputError(
                f"rank must be less than the number of parameters, {dim}; got {self.rank}: take family='full'"
            )
        return self.of(dim, self.rank)

    @classmethod
    def of(cls, dim: int, rank: int | None) -> LowRank:
        """The family of ``dim`` parameters with a U of so many columns, which may be none."""
        self = cls.__new__(cls)
        self.dim, self.rank = dim, rank
        return self

    fitted_by = "it is fitted by method='auto', with gradients of the log-likelihood of all data"
    shift = from_dense = cholesky = gradient = moved = Structured._outside  # type: ignore[assignment]

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim, 1 + (self.rank or 0))

    @property
    def num_monomials(self) -> int:
        return 1 + self.dim * (2 + (self.rank or 0))

    # --- factors ----------------------------------------------------------------------------------

    def factor(self, *, variance: Array | None = None, precision: Array | None = None) -> Array:
        """The factor of a diagonal matrix; U is zero."""
        given = variance if precision is None else precision
        assert given is not None
        if given.ndim == 2:
            raise InvalidInputError(
                f"the low-rank family starts from variances of shape () or ({self.dim},); got shape {given.shape}"
            )
        root = positive_roots(given)
        out = np.zeros(self.shape)
        out[:, 0] = root if variance is None else 1.0 / root
        return out

    def parts(self, L: Array) -> Parts:
        """The decomposition of a family array."""
        root = L[:, 0]
        orthogonal, triangular = np.linalg.qr(L[:, 1:] / root[:, None])
        rotation, s, _ = np.linalg.svd(triangular)
        return Parts(root, orthogonal @ rotation, s, np.hypot(1.0, s))

    def log_root(self, L: Array) -> float:
        root, _, _, k = self.parts(L)
        return float(np.log(root).sum() + np.log(k).sum())

    def diagonal(self, L: Array) -> Array:
        root, Q, _, k = self.parts(L)
        return root * (1.0 + np.square(Q) @ (k - 1.0))

    # --- vectors ----------------------------------------------------------------------------------

    def from_frame(self, L: Array, v: Array) -> Array:
        root, Q, _, k = self.parts(L)
        return np.asarray((v + (v @ Q * (1.0 / k - 1.0)) @ Q.T) / root)

    def to_frame(self, L: Array, v: Array) -> Array:
        root, Q, _, k = self.parts(L)
        w = v * root
        return np.asarray(w + (w @ Q * (k - 1.0)) @ Q.T)

    def solve(self, L: Array, v: Array) -> Array:
        root, Q, _, k = self.parts(L)
        w = v / root
        return np.asarray(w + (w @ Q * (1.0 / k - 1.0)) @ Q.T)

    def times(self, L: Array, v: Array) -> Array:
        root, Q, _, k = self.parts(L)
        return np.asarray((v + (v @ Q * (k - 1.0)) @ Q.T) * root)

    # --- what users see ---------------------------------------------------------------------------

    def dense_factor(self, L: Array) -> Array:
        self.dense()
        return np.asfortranarray(self.times(L, np.eye(self.dim)).T)

    def precision(self, L: Array) -> Array:
        self.dense()
        return np.diag(np.square(L[:, 0])) + L[:, 1:] @ L[:, 1:].T

    def precision_blocks(self, L: Array, blocks: Indices) -> Array:
        U = L[blocks, 1:]
        diagonal = np.square(L[blocks, 0])[..., None] * np.eye(blocks.shape[-1])
        return np.asarray(diagonal + U @ np.swapaxes(U, -1, -2))

    def variances(self, L: Array) -> Array:
        root, Q, _, k = self.parts(L)
        squares = np.square(Q)
        outside = np.maximum(1.0 - squares.sum(axis=1), 0.0)  # of the span of Q
        return np.asarray((outside + squares @ (1.0 / np.square(k))) / np.square(root))

    def __repr__(self) -> str:
        return f"LowRank({'' if self.rank is None else self.rank})"
