r"""A sparse precision: conditional independence is a zero in it, and the factor L keeps few entries.

A family array has the entries of L column by column, the rows in an order that keeps L sparse (minimum degree, of
SuperLU). The family holds all precisions on the pattern of L: that of the matrix given, closed so that two rows of a
column are a pair themselves (a chordal graph). The density then is a product of regressions, one for each column,

.. math::
    \varepsilon_j = L_{jj}\,\delta_j + \sum_{i > j} L_{ij}\,\delta_i, \qquad \delta = \theta - \mu ,

so that the Fisher information of L consists of one block for each column, :math:`\Sigma + e_j e_j^\top / L_{jj}^2` at
the rows of the column. All covariances that this needs are on the pattern, where Takahashi's recursion finds them
without the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.core.checks import as_floats, as_generator, positive_integer, shown
from mgvbp.core.linalg import NOT_POSITIVE_DEFINITE, Array
from mgvbp.errors import InvalidInputError, NotPositiveDefiniteError
from mgvbp.families import patterns
from mgvbp.families.base import Indices
from mgvbp.families.neighbours import Neighbours
from mgvbp.families.patterns import Edges
from mgvbp.families.structured import Structured

if TYPE_CHECKING:
    from scipy.sparse import csc_array


class SparsePrecision(Structured):
    """A precision with few entries, in which all others are zero: parameters that are independent given the rest.

    Parameters
    ----------
    pattern : SciPy sparse matrix of shape (d, d), array of shape (d, d), or graph of networkx
        Its non-zeros, or edges, are the pairs of parameters that may depend on each other given all others. The pairs
        that a sparse factorisation adds are in the family too.

    See Also
    --------
    banded, arrow, block_arrow, local, of_hessian : ways to make a pattern.

    Examples
    --------
    A random walk with observations: each state depends on its neighbours.

    >>> import mgvbp
    >>> y = np.sin(np.arange(200.0))
    >>> def log_density(theta):
    ...     return -0.5 * ((y - theta) ** 2).sum(axis=1) - 2.0 * (np.diff(theta) ** 2).sum(axis=1)
    >>> def gradient(theta):
    ...     steps = 4.0 * np.diff(theta, prepend=theta[:, :1], append=theta[:, -1:])
    ...     return y - theta + np.diff(steps)
    >>> family = SparsePrecision.banded(200, 1)
    >>> posterior = mgvbp.fit(log_density, dim=200, grad=gradient, family=family)
    >>> posterior.converged, family.shape, posterior.std[:3].round(3)
    (True, (399,), array([0.625, 0.545, 0.513]))
    """

    name = "sparse"

    def __init__(self, pattern: Any) -> None:
        dim, edges = patterns.edges_of(pattern)
        self._set(dim, edges)

    def _set(self, dim: int, edges: Edges, order: Indices | None = None) -> None:
        self.dim = positive_integer(dim, "dim")
        self.edges = edges
        self._local: tuple[tuple[str, ...], int] | None = None
        if order is not None:
            self.order = order

    @classmethod
    def from_edges(cls, dim: int, edges: Edges, order: Indices | None = None) -> SparsePrecision:
        """The family of these pairs (i, j), i > j, whose factor has its rows in this order."""
        self = cls.__new__(cls)
        self._set(dim, edges, order)
        return self

    # --- ways to make one -------------------------------------------------------------------------

    @classmethod
    def banded(cls, dim: int, width: int) -> SparsePrecision:
        """Entries that are at most ``width`` apart may depend on each other given all others."""
        return cls.from_edges(positive_integer(dim, "dim"), patterns.band(dim, width))

    @classmethod
    def arrow(cls, dim: int, hubs: int, *, order: int = 0) -> SparsePrecision:
        """The last ``hubs`` entries depend on all; the others on those that are at most ``order`` apart."""
        local = positive_integer(dim, "dim") - positive_integer(hubs, "hubs", least=0)
        return cls.from_edges(*patterns.arrow([1] * local, hubs, order))

    @classmethod
    def block_arrow(cls, sizes: Sequence[int], hubs: int, *, order: int = 0) -> SparsePrecision:
        """Blocks of these sizes, followed by ``hubs`` entries that depend on all.

        With ``order`` a block also depends on those that are at most so many blocks away, as states of several
        numbers do.

        Examples
        --------
        >>> SparsePrecision.block_arrow([2, 2, 2], hubs=1).num_entries
        25
        """
        return cls.from_edges(*patterns.arrow(sizes, hubs, order))

    @classmethod
    def local(cls, *names: str, order: int = 0) -> SparsePrecision:
        """For named parameters: those of these vectors with the same first index depend on each other and on the rest.

        They are independent of those with another first index, given all parameters that are not named. With ``order``
        neighbours that are at most so many apart depend on each other too: 1 for the states of a Markov chain. The
        pattern is made when the labels are known, in `fit`.

        Examples
        --------
        >>> family = SparsePrecision.local("effect").resolved(["mu", "effect[0]", "effect[1]", "effect[2]"])
        >>> family.num_entries  # effects are independent given mu
        10
        """
        if not names or not all(isinstance(name, str) for name in names):
            raise InvalidInputError(f"give the names of vectors, as in local('effects'); got {shown(names)}")
        self = cls.from_edges(1, (np.empty(0, np.intp), np.empty(0, np.intp)))
        self._local = names, positive_integer(order, "order", least=0)
        return self

    @classmethod
    def of_hessian(
        cls, function: Any, at: ArrayLike, *, rng: int | np.random.Generator = 0, spread: float = 1.0
    ) -> SparsePrecision:
        """The pattern of the Hessian of a JAX function of one draw, (d,) -> scalar, or of a `from_jax` likelihood.

        It is looked at in two draws of a Gaussian about ``at`` (d,) with standard deviations ``spread``: an entry that
        is zero at both is taken for zero. The prior's own pairs have to be added, unless it is diagonal.
        """
        centre = as_floats(at, "at")
        if centre.ndim != 1:
            raise InvalidInputError(f"at must be a point (d,); got shape {centre.shape}")
        draws = centre + spread * as_generator(rng).standard_normal((2, len(centre)))
        edges = patterns.probed(getattr(function, "traced", function), draws)
        assert edges is not None  # any share of them may be other than zero
        return cls.from_edges(len(centre), edges)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names that `local` was given and that wait for labels; None for a family that is complete."""
        return None if self._local is None else self._local[0]

    def resolved(self, labels: Sequence[str] | None) -> SparsePrecision:
        """The family of parameters with these labels, if it was made by `local`; else itself."""
        if self._local is None:
            return self
        if labels is None:
            raise InvalidInputError(
                "SparsePrecision.local(...) needs parameters with names: fit a mgvbp.Model"
            )
        names, order = self._local
        group = patterns.groups_by_name(labels, names)
        return self.from_edges(len(labels), patterns.grouped(group, order))

    def without(self, entries: Indices) -> SparsePrecision:
        """The family of all others given these entries."""
        kept = np.ones(self.dim, bool)
        kept[entries] = False
        place = np.cumsum(kept) - 1
        i, j = self.edges
        inside = kept[i] & kept[j]
        return self.from_edges(int(kept.sum()), (place[i[inside]], place[j[inside]]))

    # --- the pattern ------------------------------------------------------------------------------

    @cached_property
    def hubs(self) -> Indices:
        """The entries on which many others depend, sorted; see `Neighbours`."""
        return np.sort(self.order[self.neighbours.hubs[0]])

    @cached_property
    def order(self) -> Indices:
        """The parameter of each row of L: an order of minimum degree, (d,)."""
        return patterns.minimum_degree(self.dim, self.edges)

    @cached_property
    def place(self) -> Indices:
        """The row of L of each parameter, (d,)."""
        place = np.empty(self.dim, np.intp)
        place[self.order] = np.arange(self.dim)
        return place

    @cached_property
    def _pattern(self) -> tuple[Indices, Indices]:
        """The first entry of each column of L, (d + 1,), and the row of each entry, (nnz,)."""
        a, b = (self.place[end] for end in self.edges)
        rows, columns = patterns.sorted_edges(self.dim, a, b)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=self.dim))])
        ptr, rows = self._kernels.closure(ptr.astype(np.intp), rows)
        return ptr, rows[np.lexsort((rows, self._columns_of(ptr)))]

    def _columns_of(self, ptr: Indices) -> Indices:
        return np.repeat(np.arange(self.dim), np.diff(ptr))

    @cached_property
    def _columns(self) -> Indices:
        """The column of each entry of L."""
        return self._columns_of(self._pattern[0])

    @property
    def _kernels(self) -> Any:
        from mgvbp.families import sparse_kernels  # numba takes a while to import

        return sparse_kernels

    def _run(self, kernel: str, L: Array, *arguments: Any) -> Any:
        """Call a kernel with a factor that it only reads: numba compiles it once, and not for each kind of array."""
        fixed = L.view()
        fixed.flags.writeable = False
        return getattr(self._kernels, kernel)(*self._pattern, fixed, *arguments)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._pattern[1]),)

    @property
    def num_entries(self) -> int:
        """How many entries the precision may have."""
        return 2 * self.shape[0] - self.dim

    @property
    def num_monomials(self) -> int:
        return 1 + self.dim + self.shape[0]

    @cached_property
    def neighbours(self) -> Neighbours:
        """The pairs that were given, as rows of L."""
        return Neighbours(self.dim, *(self.place[end] for end in self.edges))

    @cached_property
    def _given(self) -> tuple[NDArray[np.bool_], Indices]:
        """The pairs of `neighbours` on and below the diagonal, and where they are in a family array."""
        rows, near = self.neighbours.rows, self.neighbours.near
        lower = rows >= near
        codes = self._columns * self.dim + self._pattern[1]
        return lower, np.searchsorted(codes, near[lower] * self.dim + rows[lower])

    # --- vectors ----------------------------------------------------------------------------------

    def _applied(
        self, kernel: str, L: Array, v: Array, *, scatter: bool = True, gather: bool = True
    ) -> Array:
        rows = np.atleast_2d(v)
        X = np.ascontiguousarray((rows[:, self.order] if gather else rows).T)
        self._run(kernel, L, X)
        return np.asarray(X[self.place].T if scatter else X.T).reshape(v.shape)

    # ε belongs to the columns of L, so that it needs no order of its own: row k of the frame is column k

    def from_frame(self, L: Array, v: Array) -> Array:
        return self._applied("solve_upper", L, v, gather=False)

    def to_frame(self, L: Array, v: Array) -> Array:
        return self._applied("times_upper", L, v, scatter=False)

    def solve(self, L: Array, v: Array) -> Array:
        return self._applied("solve_lower", L, v, scatter=False)

    def times(self, L: Array, v: Array) -> Array:
        return self._applied("times_lower", L, v, gather=False)

    # --- matrices on the pattern ------------------------------------------------------------------

    def shift(self, A: Array, c: float | Array) -> Array:
        out, first = A.copy(), self._pattern[0][:-1]
        out[first] += c if np.ndim(c) == 0 else np.asarray(c)[self.order]
        return out

    def from_dense(self, A: Array) -> Array:
        return A[self.order[self._pattern[1]], self.order[self._columns]]

    def cholesky(self, F: Array) -> Array:
        return self._factored("cholesky", F)

    def _factored(self, kernel: str, A: Array) -> Array:
        L, positive = getattr(self._kernels, kernel)(*self._pattern, A)
        if not positive:
            raise NotPositiveDefiniteError(NOT_POSITIVE_DEFINITE)
        return np.asarray(L)

    def factor(self, *, variance: Array | None = None, precision: Array | None = None) -> Array:
        if variance is None or variance.ndim < 2:
            return super().factor(variance=variance, precision=precision)
        # the Gaussian of the family with these covariances on the pattern
        return self._factored("factor_of_covariance", self.from_dense(variance))

    def entries(self, L: Array) -> Array:
        """The precision on the pattern, as a family array."""
        return np.asarray(self._run("square", L))

    def covariances(self, L: Array) -> Array:
        """The covariance on the pattern, as a family array."""
        return np.asarray(self._run("selected_inverse", L))

    def diagonal(self, L: Array) -> Array:
        return np.asarray(L[self._pattern[0][:-1]][self.place])

    def variances(self, L: Array) -> Array:
        return self.diagonal(self.covariances(L))

    def matrix(self, A: Array) -> csc_array:
        """A symmetric family array as a SciPy sparse matrix, (d, d)."""
        from scipy.sparse import csc_array

        i, j = self.order[self._pattern[1]], self.order[self._columns]
        off = i != j
        return csc_array(
            (np.concatenate([A, A[off]]), (np.concatenate([i, j[off]]), np.concatenate([j, i[off]]))),
            shape=(self.dim, self.dim),
        )

    def precision_matrix(self, L: Array) -> csc_array:
        """The precision as a SciPy sparse matrix."""
        return self.matrix(self.entries(L))

    def dense_factor(self, L: Array) -> Array:
        self.dense()
        R = np.zeros((self.dim, self.dim), order="F")
        R[self.order[self._pattern[1]], self._columns] = L
        return R

    def precision(self, L: Array) -> Array:
        self.dense()
        return self.precision_matrix(L).toarray()

    def precision_blocks(self, L: Array, blocks: Indices) -> Array:
        P = self.precision_matrix(L)
        flat = blocks.reshape(-1, blocks.shape[-1])
        found = np.array([P[block][:, block].toarray() for block in flat])
        return found.reshape(*blocks.shape, blocks.shape[-1])

    # --- coordinates ------------------------------------------------------------------------------

    def gradient(self, L: Array, delta: Array, v: Array, batches: int = 1) -> Array:
        Z = self.covariances(L)
        shares = (np.ascontiguousarray(delta[:, self.order].T), np.ascontiguousarray(v.T))
        return np.asarray(self._run("whitened_gradient", L, Z, *shares, batches))

    def inner(self, A: Array, B: Array) -> float:
        """The trace of the product of two symmetric matrices on the pattern."""
        first = self._pattern[0][:-1]
        return 2.0 * float(A @ B) - float(A[first] @ B[first])

    def whitened(self, L: Array, dL: Array) -> Array:
        """A change of the factor in the coordinates of `gradient`, whose squares are twice the KL divergence."""
        return np.asarray(self._run("whitened", L, self.covariances(L), dL))

    def moved(self, L: Array, t: Array, beta: float) -> Array:
        r"""The columns of L move along the natural gradient; the diagonal is multiplied by :math:`1 + x + x^2/2`."""
        dL = beta * self._run("natural", L, self.covariances(L), t)
        out, first = L + dL, self._pattern[0][:-1]
        x = dL[first] / L[first]
        out[first] = L[first] * (1.0 + x + 0.5 * x * x)
        return np.asarray(out)

    def curvature(self, delta: Array, slopes: Array) -> Array | None:
        r"""The expected Hessian on the pattern that was given, from gradients: each row regressed on its neighbours.

        ``slopes`` (S, d) are half the differences of the gradients at :math:`\mu \pm\delta`. For a quadratic function
        whose Hessian is on the pattern the result is exact. None if the draws are too few.
        """
        H = self.neighbours.regressed(*(rows[:, self.order].T for rows in (delta, slopes)))
        if H is None:
            return None
        (lower, where), out = self._given, np.zeros(self.shape)
        out[where] = H[lower]
        return out

    def __repr__(self) -> str:
        if self._local is not None:
            return f"SparsePrecision.local({', '.join(map(repr, self._local[0]))})"
        return f"SparsePrecision({self.dim} parameters, {len(self.edges[0]):,} pairs)"
