"""All points that satisfy linear inequalities, as a smooth one-to-one image of all real vectors."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit, logit

from mgvbp.core.linalg import Array

EDGE, INSIDE = 1e-6, 1e-3
"""A point nearer to an end of an interval than the first part of its width is moved to the second part."""
TINY = 1e-12
"""Coefficients below this, of rows whose largest is 1, are rounding."""


class Polytope:
    """The inside of ``{x : A x ≥ b}``, entry after entry: each is between bounds that the entries before it set.

    The bounds ``low(x_1..x_{j−1}) < x_j < high(x_1..x_{j−1})`` are those for which the entries after it can still be
    chosen. They are linear and come from Fourier-Motzkin elimination of the later entries. With both bounds
    ``x_j = low + (high − low) s(θ_j)``, s the logistic function; with one, its distance from the bound is ``exp(θ_j)``;
    with none it is θ_j.

    Parameters
    ----------
    A : ndarray of shape (rows, d)
    b : ndarray of shape (rows,)
        Rows with an infinite ``b`` say nothing.

    Examples
    --------
    The coefficients of a stationary GARCH(1, 1), alpha > 0, beta > 0 and alpha + beta < 1:

    >>> region = Polytope(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([0.0, 0.0, -1.0]))
    >>> region.point(np.zeros((1, 2)))
    array([[0.5 , 0.25]])
    """

    def __init__(self, A: Array, b: Array) -> None:
        known = np.isfinite(b)
        rows = np.column_stack([A, -b])[known]  # rows · (x, 1) ≥ 0
        self.dim = A.shape[1]
        self._bounds: list[tuple[Array, Array]] = []
        for j in reversed(range(self.dim)):
            rows = distinct(rows)
            lower, upper = rows[rows[:, j] > TINY], rows[rows[:, j] < -TINY]
            lower, upper = lower / lower[:, [j]], upper / -upper[:, [j]]
            # x_j ≥ −lower · (x_1..x_{j−1}, 1) and x_j ≤ upper · (x_1..x_{j−1}, 1)
            kept = [*range(j), self.dim]
            self._bounds.insert(0, (-lower[:, kept], upper[:, kept]))
            both = (lower[:, None] + upper[None]).reshape(-1, rows.shape[1])
            rows = np.concatenate([rows[np.abs(rows[:, j]) <= TINY], both])

    def point(self, theta: Array) -> Array:
        """The points (S, d) of the rows of ``theta`` (S, d)."""
        return self._walk(theta)[0]

    def log_jacobian(self, theta: Array) -> Array:
        """``log |det ∂x/∂θ|``, (S, d) -> (S,); the derivatives make a triangular matrix."""
        return self._walk(theta)[1]

    def _walk(self, theta: Array) -> tuple[Array, Array]:
        x, slopes = np.ones((len(theta), self.dim + 1)), np.zeros(len(theta))
        for j in range(self.dim):
            t, (low, high) = theta[:, j], self._ends(x, j)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                width = high - low
                if np.isfinite(width).all():
                    x[:, j] = low + width * expit(t)
                    slopes += np.log(width) + log_expit(t) + log_expit(-t)
                elif np.isfinite(low).all():
                    x[:, j] = low + np.exp(t)
                    slopes += t
                elif np.isfinite(high).all():
                    x[:, j] = high - np.exp(t)
                    slopes += t
                else:
                    x[:, j] = t
        return x[:, : self.dim], slopes

    def theta(self, x: Array) -> Array:
        """The θ (S, d) of points (S, d); nan or infinite for a point outside."""
        extended = np.column_stack([x, np.ones(len(x))])
        theta = np.empty_like(x)
        for j in range(self.dim):
            low, high = self._ends(extended, j)
            with np.errstate(divide="ignore", invalid="ignore"):
                if np.isfinite(high - low).all():
                    theta[:, j] = logit((x[:, j] - low) / (high - low))
                elif np.isfinite(low).all():
                    theta[:, j] = np.log(x[:, j] - low)
                elif np.isfinite(high).all():
                    theta[:, j] = np.log(high - x[:, j])
                else:
                    theta[:, j] = x[:, j]
        return theta

    def inside(self, x: Array) -> Array:
        """``x`` (d,), or if it is at the edge a point near it inside."""
        result = np.append(x, 1.0)
        for j in range(self.dim):
            low, high = (float(end[0]) for end in self._ends(result[None], j))
            width = high - low if np.isfinite(high - low) else max(1.0, abs(x[j]))
            if result[j] - low < EDGE * width:
                result[j] = low + INSIDE * width
            elif high - result[j] < EDGE * width:
                result[j] = high - INSIDE * width
        return result[: self.dim]

    def bounded(self) -> list[bool]:
        """Which entries have a lower and an upper bound."""
        return [len(lower) > 0 and len(upper) > 0 for lower, upper in self._bounds]

    def _ends(self, x: Array, j: int) -> tuple[Array, Array]:
        """The bounds (S,) of entry j given the entries before it, of rows (S, d + 1) that end with 1."""
        before = x[:, [*range(j), self.dim]]
        lower, upper = self._bounds[j]
        return (
            (before @ lower.T).max(axis=1, initial=-np.inf),
            (before @ upper.T).min(axis=1, initial=np.inf),
        )


def distinct(rows: Array) -> Array:
    """Rows in units of their largest coefficient; of those that differ in the constant alone, the strictest."""
    size = np.abs(rows[:, :-1]).max(axis=1, initial=0.0)
    rows = rows[size > TINY] / size[size > TINY, None]
    strictest: dict[tuple[float, ...], Array] = {}
    for row in rows:
        key = tuple((np.round(row[:-1], 10) + 0.0).tolist())
        if key not in strictest or row[-1] < strictest[key][-1]:
            strictest[key] = row
    return np.array(list(strictest.values())).reshape(-1, rows.shape[1])
