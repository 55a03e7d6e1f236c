r"""A Gaussian process through the values of a log density: what a Gaussian or a mixture misses of it.

The kernel is that of quadratics whose coefficients change slowly from place to place,

.. math:: k(x, y) = a\, (1 + b\, x^\top y)^2 \exp\Bigl(-\tfrac12 \sum_j (s_j - t_j)^2 / \ell_j^2\Bigr),
          \qquad s = A^\top x, \quad t = A^\top y,

because a log posterior is often quadratic given one or two parameters, the scales of a hierarchy for example: their
length ℓ is short, all others are long. The axes A are those of the parameters as the user wrote them, or those of the
frame, whichever explain the values better. Far from the points the process falls back to its mean, a constant. The
numbers a, b and ℓ maximise the marginal likelihood, with a wide prior around what a nearly Gaussian target needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri

from mgvbp.core.linalg import Array

LEARN_FROM = 300
"""Most points that a, b and ℓ are learned from: more hardly change them, and the time grows with the cube."""
LEARNING_STEPS = 30
"""Steps of L-BFGS in which they are learned; each later round goes on from there."""
BLOCK = 128
"""Rows of a kernel's matrix that are computed at a time: with 1,000 points they fit the processor's cache, which takes
half the time."""
NUGGET = 1e-6
"""Variance, relative to a, that is added to each point so that the equations are well conditioned."""
ROUNDING = 1e-12
"""Variance that is added to each point besides, relative to the kernel's there, which is 10⁸ nats² and more far out.
With none the matrix has no factor; with 10⁻⁶ the fence of a mixture's surrogate shut every long bent tail out."""
SPREADS = (3.0, 2.0, 1.5)
"""Standard deviations of the prior of log a, log b and log ℓ around their usual values: it keeps them from running
away where points say little. The KL on eight schools does not change at half or double."""

LONGEST = 3.0
"""Most by which log ℓ exceeds its usual value: a process that is sure of its quadratics for ever trusts them far
beyond its points."""


@dataclass(frozen=True, eq=False)
class Process:
    """A fitted process."""

    points: Array
    """(N, d)."""
    values: Array
    """The values at the points, (N,)."""
    noise: Array
    """The variance of each value, (N,)."""
    numbers: Array
    """log a, log b and the d logarithms of ℓ."""
    axes: Array
    """The matrix A, (d, d), whose columns are directions of one length each."""
    _fitted: tuple[Array, Array, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        K = self.kernel(self.points, self.points)
        K.flat[:: len(K) + 1] *= 1.0 + ROUNDING
        K.flat[:: len(K) + 1] += self.noise + NUGGET * self.scale
        root, failed = dpotrf(K, lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the kernel's matrix is singular")
        ones = cho_solve((root, True), np.ones(len(K)), check_finite=False)
        mean = float(ones @ self.values / ones.sum())
        dual = cho_solve((root, True), self.values - mean, check_finite=False)
        object.__setattr__(self, "_fitted", (root, dual, mean))

    @property
    def scale(self) -> float:
        """The number a."""
        return float(np.exp(self.numbers[0]))

    @property
    def bend(self) -> float:
        """The number b."""
        return float(np.exp(self.numbers[1]))

    @cached_property
    def _shortened(self) -> Array:
        """The axes, each divided by its length, (d, d)."""
        return np.asarray(self.axes * np.exp(-self.numbers[2:]))

    def kernel(self, x: Array, y: Array) -> Array:
        """The kernel of all pairs of rows, (M, d) and (N, d) -> (M, N)."""
        near, quadratic = self._parts(x, y)
        near *= quadratic
        near *= quadratic
        return near

    def variances(self, x: Array) -> Array:
        """The kernel of each row with itself, (M, d) -> (M,): the variance far from all points."""
        return np.asarray(self.scale * (1.0 + self.bend * np.einsum("md,md->m", x, x)) ** 2)

    @property
    def log_likelihood(self) -> float:
        """The logarithm of the values' likelihood, without its constant."""
        root, dual, mean = self._fitted
        return float(-0.5 * dual @ (self.values - mean) - np.log(root.diagonal()).sum())

    def predict(self, x: Array) -> Array:
        """The expected value at each row, (M, d) -> (M,)."""
        _, dual, mean = self._fitted
        return np.asarray(mean + self.kernel(x, self.points) @ dual)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """The expected value (M,) and its gradient (M, d)."""
        _, dual, mean = self._fitted
        value, gradient = self.weighted(x, self.points, dual)
        return mean + value, gradient

    def uncertain(self, x: Array) -> Array:
        """The variance of the value at each row given all points, (M, d) -> (M,)."""
        root, _, _ = self._fitted
        half = solve_triangular(root, self.kernel(self.points, x), lower=True, check_finite=False)
        return np.asarray(np.maximum(self.variances(x) - np.einsum("nm,nm->m", half, half), 0.0))

    def left_out(self) -> tuple[Array, Array]:
        """The expected value at each point given all others (N,), and its variance (N,)."""
        root, dual, _ = self._fitted
        precision = np.square(solve_triangular(root, np.eye(len(root)), lower=True)).sum(axis=0)
        return self.values - dual / precision, 1.0 / precision  # Rasmussen and Williams 2006, eq. (5.12)

    def weighted(self, x: Array, points: Array, weights: Array) -> tuple[Array, Array]:
        """``Σ_n w_n k(x, p_n)`` (M,) and its gradient (M, d); the weights are (N,) or, for each row, (M, N)."""
        rows = [slice(i, i + BLOCK) for i in range(0, len(x), BLOCK)]
        parts = [self._weighted(x[r], points, weights if weights.ndim == 1 else weights[r]) for r in rows]
        totals, slopes = zip(*parts, strict=True)
        return np.concatenate(totals), np.concatenate(slopes)

    def _weighted(self, x: Array, points: Array, weights: Array) -> tuple[Array, Array]:
        near, quadratic = self._parts(x, points)
        near *= quadratic
        near *= weights
        slope = 2.0 * self.bend * (near @ points)
        near *= quadratic
        total = near.sum(axis=1)
        slope -= ((x * total[:, None] - near @ points) @ self._shortened) @ self._shortened.T
        return total, slope

    def _parts(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The factors ``a exp(−½ ‖Aᵀ(x − y)/ℓ‖²)`` and ``1 + b xᵀy``, (M, N) each."""
        u, v = x @ self._shortened, y @ self._shortened
        square_u, square_v = -0.5 * np.einsum("md,md->m", u, u), -0.5 * np.einsum("nd,nd->n", v, v)
        log_a = float(self.numbers[0])
        # sums of squares, products and constants are one product of matrices each
        near = np.column_stack([u, square_u + log_a, np.ones(len(x))]) @ np.vstack(
            [v.T, np.ones(len(y)), square_v]
        )
        np.minimum(near, log_a, out=near)  # rounding
        np.exp(near, out=near)
        quadratic = np.column_stack([self.bend * x, np.ones(len(x))]) @ np.vstack([y.T, np.ones(len(y))])
        return near, quadratic


def usual(dim: int) -> Array:
    """The centre of the prior of a process' numbers: lengths of a few times the radius of a standard normal."""
    return np.concatenate([[1.0, -1.5], np.full(dim, 0.5 + np.log(2.0 * np.sqrt(dim)))])


def learned(
    points: Array,
    values: Array,
    noise: Array,
    start: Array,
    axes: Sequence[Array],
    rng: np.random.Generator,
    steps: int = LEARNING_STEPS,
) -> Process:
    """The process of the points (N, d), whose numbers and axes maximise the marginal likelihood of some of them.

    ``axes`` are the choices of the matrix A; the numbers go on from ``start``.
    """
    some = np.arange(len(points))
    if len(points) > LEARN_FROM:
        some = rng.choice(len(points), LEARN_FROM, replace=False)
    found = [_maximised(points[some], values[some], noise[some], start, A, steps) for A in axes]
    (numbers, _), A = min(zip(found, axes, strict=True), key=lambda choice: choice[0][1])
    return Process(points, values, noise, numbers, A)


def _maximised(
    x: Array, y: Array, variance: Array, start: Array, axes: Array, steps: int
) -> tuple[Array, float]:
    """The numbers that maximise the marginal likelihood of the values ``y`` (n,), and minus its logarithm there."""
    s = x @ axes
    apart = np.square(s[:, None] - s[None])  # (n, n, d)
    products = x @ x.T
    d = x.shape[1]
    centre, spread = usual(d), np.concatenate([SPREADS[:2], np.full(d, SPREADS[2])])

    @np.errstate(over="ignore", invalid="ignore")  # the first step of a line search may lead anywhere
    def loss(numbers: Array) -> tuple[float, Array]:
        a, b, inverse = np.exp(numbers[0]), np.exp(numbers[1]), np.exp(-2.0 * numbers[2:])
        quadratic = 1.0 + b * products
        K = a * np.exp(-0.5 * (apart @ inverse)) * quadratic**2
        V = K.copy()
        V.flat[:: len(V) + 1] += variance + NUGGET * a
        root, failed = dpotrf(V, lower=1, overwrite_a=1)
        if failed or not np.isfinite(root[-1, -1]):
            return 1e10, np.zeros_like(numbers)
        half_log_det = np.log(root.diagonal()).sum()
        inverted = dpotri(root, lower=1, overwrite_c=1)[0]
        inverted = np.tril(inverted) + np.tril(inverted, -1).T
        ones = inverted.sum(axis=1)
        rest = y - ones @ y / ones.sum()
        dual = inverted @ rest
        W = (np.outer(dual, dual) - inverted) * K
        where = np.where(np.abs(quadratic) < 1e-9, 1e-9, quadratic)
        gradient = np.concatenate(
            [
                [-0.5 * W.sum(), -b * (W * products / where).sum()],
                -0.5 * np.tensordot(W, apart, axes=2) * inverse,
            ]
        )
        away = (numbers - centre) / spread
        fit = 0.5 * rest @ dual + half_log_det + 0.5 * away @ away
        return float(fit), gradient + away / spread

    from scipy.optimize import minimize  # slow to import

    # with a bound on either side of all of them L-BFGS-B begins with a longer step
    bounds = [(None, None)] * 2 + [(None, most) for most in centre[2:] + LONGEST]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    return np.asarray(found.x), float(found.fun)
