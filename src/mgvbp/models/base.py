"""What all models of a response given covariates share: checks, blocks of rows, predictive densities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from mgvbp.core.checks import as_floats, as_generator, as_name, shown
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.families.gaussian import Gaussian, frozen
from mgvbp.problem.parameters import Parameters
from mgvbp.problem.predictive import PredictiveDraws
from mgvbp.transforms import Real

BLOCK = 2**17
"""The numbers (draws × rows) of a block: 1 MB an array, so that a few arrays stay in cache."""
DRAWS = 256
"""The most draws of a block."""


class RegressionModel(ABC):
    """Responses ``y`` that are independent given the rows of ``X`` and the parameters θ.

    A model is its log-likelihood: a function of an (S, d) array of draws of the unconstrained θ, ready for
    `mgvbp.fit`. An intercept is a column of ones in ``X``; none is added.

    Parameters
    ----------
    X : array_like of shape (N, k)
    y : array_like of shape (N,)
    names : sequence of str, optional
        A label for each column of ``X``; by default the names of the columns of a frame, or else ``x0``, ``x1``, ...

    Attributes
    ----------
    X : ndarray of shape (N, k)
    y : ndarray of shape (N,)
    names : tuple of str
    parameters : Parameters
        Names, shapes and constraints of what θ stands for.
    dim : int
        The length of θ.
    default_prior : Gaussian or None
        The prior of `mgvbp.fit` where none is given.
    """

    X: Array
    y: Array
    names: tuple[str, ...]
    parameters: Parameters

    def __init__(self, X: ArrayLike, y: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.X = frozen(np.array(checked_design(X), order="C"))
        self.names = checked_names(column_names(X) if names is None else names, self.X.shape[1])
        self.y = frozen(self._checked_response(y, len(self.X)).copy())
        self.parameters = self._parameters()
        self._design = self.X  # what the blocks of rows are cut from

    @property
    def dim(self) -> int:
        """The length of θ."""
        return self.parameters.dim

    @property
    def default_prior(self) -> Gaussian | None:
        """The prior of a fit that is given none; None where there is no default: the prior is then flat."""
        return None

    def __call__(self, theta: ArrayLike) -> Array:
        """Log-likelihood at each row of ``theta``, (S, d) -> (S,)."""
        return self._log_likelihood(self._checked_draws(theta))

    def pointwise(self, theta: ArrayLike) -> Array:
        """Log-likelihood of each observation, (S, d) -> (S, N): what LOO needs."""
        draws = self._checked_draws(theta)
        values = np.empty((len(draws), len(self.y)))
        for some, rows in blocks(*values.shape):
            values[some, rows] = self._log_density(draws[some], self._design[rows], self.y[rows])
        return values

    def predictive(self, theta: ArrayLike, X: ArrayLike) -> Array:
        """The mean of the response at new rows for each draw, (S, d) and (M, k) -> (S, M)."""
        return self._predictive(self._checked_draws(theta), self._checked_rows(X))

    def predict(
        self,
        theta: ArrayLike,
        X: ArrayLike | None = None,
        *,
        rng: int | np.random.Generator = 0,
        **given: Any,
    ) -> PredictiveDraws:
        """New responses at the rows of ``X`` (M, k), or of the data, for each draw; ``posterior.predict(X)`` calls it.

        Further arguments are those of `predictive`.
        """
        draws = self._checked_draws(theta)
        means = self._predictive(draws, self._design) if X is None else self.predictive(draws, X, **given)
        noisy = self._simulated(draws, means, as_generator(rng))
        return PredictiveDraws(noisy, means, index=getattr(X, "index", None))

    def log_predictive_density(self, theta: ArrayLike, X: ArrayLike, y: ArrayLike) -> Array:
        """``log mean_s p(y_i | x_i, θ_s)`` of each new observation; (S, d), (M, k) and (M,) -> (M,)."""
        design = self._checked_rows(X)
        return self._log_mean_density(theta, design, self._checked_response(y, len(design), new=True))

    def _log_mean_density(self, theta: ArrayLike, X: Array, y: Array) -> Array:
        draws = self._checked_draws(theta)
        step = max(1, BLOCK // len(draws))
        parts = [slice(i, i + step) for i in range(0, len(y), step)]
        values = [logsumexp(self._log_density(draws, X[rows], y[rows]), axis=0) for rows in parts]
        return np.asarray(np.concatenate(values) - np.log(len(draws)))

    def _log_likelihood(self, theta: Array) -> Array:
        """The sum of `_log_density` over the rows, in blocks; models with a shorter way override it."""
        total = np.zeros(len(theta))
        for some, rows in blocks(len(theta), len(self.y)):
            total[some] += self._log_density(theta[some], self._design[rows], self.y[rows]).sum(axis=1)
        return total

    def _parameters(self) -> Parameters:
        """What θ stands for; ``X`` and ``y`` are set."""
        return Parameters(beta=Real(self.X.shape[1]))

    def _checked_response(self, y: ArrayLike, n: int, *, new: bool = False) -> Array:
        """``y`` as (n,) floats of this model's support; ``new`` where it is to be predicted."""
        return checked_response(y, n)

    @abstractmethod
    def _log_density(self, theta: Array, X: Array, y: Array) -> Array:
        """``log p(y_i | x_i, θ_s)``; (S, d), (n, k) and (n,) -> (S, n)."""

    @abstractmethod
    def _predictive(self, theta: Array, X: Array) -> Array: ...

    @abstractmethod
    def _simulated(self, theta: Array, means: Array, rng: np.random.Generator) -> Array:
        """New responses whose means given the draws are ``means`` (S, M); those of classes are (S, M, K)."""

    def _checked_draws(self, theta: ArrayLike) -> Array:
        if isinstance(theta, Mapping):
            raise InvalidTypeError(
                "theta must be rows of the unconstrained θ, posterior.sample(n), "
                "not the dict of posterior.draws(n)"
            )
        draws = as_floats(theta, "theta", finite=False)
        dim = self.parameters.dim
        if draws.ndim != 2 or draws.shape[1] != dim or len(draws) == 0:
            advice = "; these models take all draws at once: leave vectorized=False out; one is theta[None]"
            raise InvalidInputError(
                f"theta has shape {draws.shape}; expected (S, {dim}): {', '.join(self.parameters.labels)}"
                f"{advice if draws.shape == (dim,) else ''}"
            )
        return draws

    def _checked_rows(self, X: ArrayLike) -> Array:
        design = checked_design(X)
        if design.shape[1] != len(self.names):
            raise InvalidInputError(
                f"X has {design.shape[1]} columns; the model was given {len(self.names)}: "
                f"{', '.join(self.names)}"
            )
        return design

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.y)} rows, {len(self.names)} columns)"


class SmoothRegression(RegressionModel):
    """A regression with a gradient.

    ``mgvbp.fit(model, prior, grad=model.gradient)`` uses it. By itself `mgvbp.fit` does so with more than 20
    parameters.
    """

    def gradient(self, theta: ArrayLike) -> Array:
        """The gradient of the log-likelihood at each row of ``theta``, (S, d) -> (S, d).

        Examples
        --------
        >>> import mgvbp
        >>> model = mgvbp.models.LogisticRegression([[1.0], [1.0], [1.0]], [0, 1, 1])
        >>> model.gradient([[0.0]])
        array([[0.5]])
        """
        draws = self._checked_draws(theta)
        total = np.zeros_like(draws)
        with np.errstate(over="ignore", invalid="ignore"):  # where the likelihood is zero there is no slope
            for some, rows in blocks(len(draws), len(self.y)):
                total[some] += self._slopes(draws[some], self._design[rows], self.y[rows])
        return total

    @abstractmethod
    def _slopes(self, theta: Array, X: Array, y: Array) -> Array:
        """The gradient of the log-likelihood of some rows, (S, d), (n, k) and (n,) -> (S, d)."""


def blocks(draws: int, rows: int, numbers: int = 1) -> Iterator[tuple[slice, slice]]:
    """Slices of draws and rows that cover all pairs, of about `BLOCK` numbers at ``numbers`` a pair."""
    height = max(1, BLOCK // (min(draws, DRAWS) * numbers))
    for s in range(0, draws, DRAWS):
        for i in range(0, rows, height):
            yield slice(s, s + DRAWS), slice(i, i + height)


def checked_design(X: ArrayLike) -> Array:
    """``X`` as a finite (N, k) array with at least one row and one column."""
    design = as_floats(X, "X")
    if design.ndim != 2:
        advice = "; one column is X[:, None]" if design.ndim == 1 else ""
        raise InvalidInputError(f"X has shape {design.shape}; expected (N, k), rows of covariates{advice}")
    if design.size == 0:
        raise InvalidInputError(f"X is empty: shape {design.shape}; expected at least one row and one column")
    return design


def checked_response(y: ArrayLike, n: int) -> Array:
    """``y`` as ``n`` finite numbers."""
    response = as_floats(y, "y")
    if response.shape != (n,):
        raise InvalidInputError(
            f"y has shape {response.shape}; expected ({n},), one number for each row of X"
        )
    return response


def column_names(X: ArrayLike) -> list[str] | None:
    """The names of the columns of a frame, if they are different words."""
    columns = list(getattr(X, "columns", ()))
    words = [name for name in columns if isinstance(name, str) and name and name.isprintable()]
    return words if words and len(set(words)) == len(columns) else None


def checked_names(names: Sequence[str] | None, k: int) -> tuple[str, ...]:
    """One label for each of ``k`` columns."""
    if names is None:
        return tuple(f"x{j}" for j in range(k))
    try:
        labels = (names,) if isinstance(names, str) else tuple(names)
    except TypeError:
        labels = ()
    if len(labels) != k or not all(isinstance(label, str) for label in labels) or len(set(labels)) != k:
        raise InvalidInputError(
            f"names must be {k} different strings, one for each column of X; got {shown(names)}"
        )
    return tuple(as_name(label, "a name") for label in labels)


def refuse(bad: NDArray[np.bool_], y: Array, expected: str) -> None:
    """Raise if some entries of ``y`` are bad; the message shows the first of them."""
    if bad.any():
        i = int(np.argmax(bad))
        raise InvalidInputError(f"y must {expected}; got {y[i]:g} in row {i}")
