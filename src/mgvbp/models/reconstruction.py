"""The reconstruction benchmark: a regression without derivatives where a coefficient changes sign."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_generator, positive_integer, positive_number, require_memory, true_or_false
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.gaussian import LOG_2PI
from mgvbp.models.base import RegressionModel
from mgvbp.models.linear import LeastSquares


class Simulation(NamedTuple):
    """Simulated data and the coefficients behind them."""

    X: Array
    y: Array
    beta: Array


class Reconstruction(RegressionModel):
    """``y_i = f(x_i) + σ ε_i`` with bits ``x_i ∈ {0, 1}^d``, standard normal errors and known σ; θ = β.

    The paper's non-differentiable model (after Lyu and Tsang 2019):

        ``f(x) = ‖sign(x − ½) − β‖² − ‖sign(β) − β‖²``.

    The paper prints squared norms. Its results cannot come from them: at β = 0 they leave a mean square of
    about 400 in y, but its initial lower bound of −11591 (n = 2000, σ = 1) needs about 10. That, and the paper's
    53 nats between log-likelihood and bound, are of the size that norms without the squares give. ``squared``
    chooses.

    `predictive` gives f.

    Parameters
    ----------
    X : array_like of shape (N, d)
        Zeros and ones.
    y : array_like of shape (N,)
    sigma : float
        The standard deviation of the errors.
    squared : bool
        Whether the norms are squared, as printed, or not, as in the paper's results.

    Examples
    --------
    >>> data = Reconstruction.simulate(100, dim=3, rng=0)
    >>> model = Reconstruction(data.X, data.y)
    >>> model([data.beta, -data.beta]).round(1)
    array([-152. , -579.9])
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, sigma: float = 1.0, squared: bool = True) -> None:
        super().__init__(X, y)
        checked_bits(self.X)
        self.sigma = positive_number(sigma, "sigma")
        self.squared = true_or_false(squared, "squared")
        self._squares = LeastSquares(slopes(self.X), self.y)

    @staticmethod
    def simulate(
        n: int,
        dim: int = 20,
        sigma: float = 1.0,
        squared: bool = True,
        rng: int | np.random.Generator = 0,
    ) -> Simulation:
        """Simulate as the paper does: β uniform on (0, 1), fair bits, normal errors."""
        rows, columns = positive_integer(n, "n"), positive_integer(dim, "dim")
        require_memory(2 * rows * columns, f"{rows:,} rows of {columns:,} bits", "simulate fewer")
        generator = as_generator(rng)
        beta = generator.random(columns)
        X = generator.integers(2, size=(rows, columns)).astype(np.float64)
        noise = positive_number(sigma, "sigma") * generator.standard_normal(rows)
        f = regression_function(beta[None], X, true_or_false(squared, "squared"))[0]
        return Simulation(X, f + noise, beta)

    def _checked_rows(self, X: ArrayLike) -> Array:
        return checked_bits(super()._checked_rows(X))

    def _log_likelihood(self, theta: Array) -> Array:
        if not self.squared:
            return super()._log_likelihood(theta)
        squares = self._squares(coefficients(theta)) / self.sigma**2
        return np.asarray(-0.5 * squares - len(self.y) * (np.log(self.sigma) + 0.5 * LOG_2PI))

    def _log_density(self, theta: Array, X: Array, y: Array) -> Array:
        standardised = (y - self._predictive(theta, X)) / self.sigma
        return np.asarray(-0.5 * standardised**2 - np.log(self.sigma) - 0.5 * LOG_2PI)

    def _predictive(self, theta: Array, X: Array) -> Array:
        return regression_function(theta, X, self.squared)

    def _simulated(self, theta: Array, means: Array, rng: np.random.Generator) -> Array:
        return means + self.sigma * rng.standard_normal(means.shape)


def regression_function(beta: Array, X: Array, squared: bool) -> Array:
    """The model's f, (S, d) and (n, d) -> (S, n)."""
    if squared:
        return np.asarray(coefficients(beta) @ slopes(X).T)
    near = np.square(np.sign(beta) - beta).sum(axis=1)[:, None]
    # ‖s − β‖² of s = ±1: as far as from sign(β), and 4|β_j| more for every sign that differs
    far = near + np.maximum(coefficients(beta) @ slopes(X).T, 0.0)
    return np.asarray(np.sqrt(far) - np.sqrt(near))


def coefficients(beta: Array) -> Array:
    """``(‖β‖₁ + ½ #{β_j = 0}, β)``, (S, d) -> (S, d + 1).

    The squared f is linear in them: with ``s = sign(x − ½)`` all cancels but ``2(‖β‖₁ − sᵀβ)``, and one for
    every β_j that is exactly zero. So its sum of squares costs as little as that of a linear regression.
    """
    first = np.abs(beta).sum(axis=1) + 0.5 * np.count_nonzero(beta == 0.0, axis=1)
    return np.column_stack([first, beta])


def slopes(X: Array) -> Array:
    """``(2, −2 sign(x − ½))``, the factors of these coefficients; (N, d) -> (N, d + 1)."""
    return np.column_stack([np.full(len(X), 2.0), 2.0 - 4.0 * X])


def checked_bits(X: Array) -> Array:
    """``X`` if it holds zeros and ones only."""
    bad = (X != 0.0) & (X != 1.0)
    if bad.any():
        raise InvalidInputError(f"X must be 0 or 1; got {X[bad][0]:g}")
    return X
