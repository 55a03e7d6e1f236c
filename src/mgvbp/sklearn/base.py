"""What the estimators share: their parameters, checked and scaled data, and the linear predictor's distribution."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from mgvbp.core import Array, as_floats, positive_integer, positive_number, require_memory, true_or_false
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.families import Family, Gaussian, resolve_family
from mgvbp.posterior import Posterior
from mgvbp.problem import Parameters
from mgvbp.sklearn.evidence import best_variance
from mgvbp.sklearn.exact import ExpectedLikelihood, fit_exact
from mgvbp.transforms import Real, Transform

EVIDENCE = "evidence"
"""The ``prior_variance`` that is chosen by the data."""


@dataclass(frozen=True)
class Scaling:
    """The map ``(x − location) / scale`` of each column, or of a vector.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([[1.0, 7.0], [3.0, 7.0]]), centre=True)
    >>> scaling.location, scaling.scale
    (array([2., 7.]), array([1., 1.]))
    >>> scaling(np.array([[5.0, 8.0]]))
    array([[3., 1.]])
    """

    location: Array
    scale: Array

    @classmethod
    def of(cls, values: Array, weights: Array | None = None, *, centre: bool) -> Self:
        """Weighted means and standard deviations over the first axis; without ``centre`` 0 and root mean squares.

        The scale of a constant column is 1.
        """
        location = np.average(values, axis=0, weights=weights) if centre else np.zeros(values.shape[1:])
        deviations = values - location
        largest = np.abs(deviations).max(axis=0)
        constant = largest <= 10.0 * np.finfo(float).eps * np.abs(values).max(axis=0)
        largest = np.where(constant, 1.0, largest)
        # relative to the largest, so that no square overflows or underflows
        scale = largest * np.sqrt(np.average((deviations / largest) ** 2, axis=0, weights=weights))
        return cls(np.asarray(location), np.where(constant, 1.0, scale))

    def __call__(self, values: Array) -> Array:
        """``values`` on the new scale."""
        return np.asarray((values - self.location) / self.scale)


class Data(NamedTuple):
    """What an estimator is fitted to: rows of the scaled design (N, k), responses (N,), positive weights (N,)."""

    design: Array
    response: Any
    weights: Array


class BayesianRegression(BaseEstimator):  # type: ignore[misc]
    """A regression whose coefficients have a Gaussian posterior.

    Inside, features are centred and scaled to unit standard deviation and a column of ones comes first.
    """

    posterior_: Posterior
    prior_variance_: float
    lower_bound_: float
    n_iter_: int

    def __init__(
        self,
        *,
        prior_variance: float | str = 6.25,
        fit_intercept: bool = True,
        family: str | Family = "full",
        tol: float = 1e-3,
        max_iter: int = 200,
    ) -> None:
        self.prior_variance = prior_variance
        self.fit_intercept = fit_intercept
        self.family = family
        self.tol = tol
        self.max_iter = max_iter

    def _checked(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Data:
        """Features, responses and weights as arrays, once the parameters are known to be sound; sets the scaling.

        Rows without weight are left out: they count as if they were not there.
        """
        true_or_false(self.fit_intercept, "fit_intercept")
        if not isinstance(self.prior_variance, str):
            positive_number(self.prior_variance, "prior_variance")
        elif self.prior_variance != EVIDENCE:
            raise InvalidTypeError(
                f"prior_variance must be a positive number or {EVIDENCE!r}; got {self.prior_variance!r}"
            )
        features, response = validate_data(self, X, y, dtype=np.float64, accept_sparse="csr", **options)
        weights = self._weights(sample_weight, response)
        some = weights > 0.0
        if not some.all():
            features, response, weights = features[some], response[some], weights[some]
        features = dense(features)
        self._scaling = Scaling.of(features, weights, centre=self.fit_intercept)
        return Data(self._design(features), response, weights)

    def _weights(self, sample_weight: Any, response: Any) -> Array:
        """One weight that is not negative for each row; 1 by default. At least one is positive."""
        n = len(response)
        if sample_weight is None:
            return np.ones(n)
        weights = as_floats(np.asarray(sample_weight), "sample_weight")
        if weights.ndim == 0:
            weights = np.full(n, float(weights))
        if weights.shape != (n,):
            raise InvalidInputError(
                f"sample_weight has shape {weights.shape}; expected ({n},), one weight for each row of X"
            )
        if weights.min() < 0.0 or not weights.any():
            raise InvalidInputError(
                f"a sample_weight must not be negative, and some must not be zero; the smallest is {weights.min():g}, "
                f"the largest {weights.max():g}"
            )
        return weights

    def _design(self, features: Array) -> Array:
        """Scaled features (N, k), after a column of ones if there is an intercept."""
        scaled = self._scaling(features)
        return np.column_stack([np.ones(len(scaled)), scaled]) if self.fit_intercept else scaled

    def _new_design(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._design(dense(validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)))

    def _columns(self) -> list[str]:
        """The names of the columns of the design."""
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return [*(["intercept"] if self.fit_intercept else []), *map(str, names)]

    def _fit_posterior(
        self,
        likelihood: ExpectedLikelihood,
        prior: Callable[[float], Gaussian],
        names: Iterable[str],
        others: Mapping[str, Transform],
    ) -> Posterior:
        """Fit under the ``prior`` of a variance; the coefficients have ``names``, and ``others`` follow them in θ."""
        parameters = named(names, others)
        options: dict[str, Any] = {
            "family": resolve_family(self.family, parameters.dim, parameters.labels),
            "tol": positive_number(self.tol, "tol"),
            "max_iter": positive_integer(self.max_iter, "max_iter"),
            "parameters": parameters,
        }
        variance, start = self.prior_variance, None
        if isinstance(variance, str):
            variance, start = best_variance(likelihood, prior, **options)
        posterior = fit_exact(likelihood, prior(float(variance)), start=start, **options)
        self.posterior_ = posterior
        self.prior_variance_ = float(variance)
        self.lower_bound_ = posterior.lower_bound
        self.n_iter_ = max(1, len(posterior.trace) - 1)  # scikit-learn wants one at least
        return posterior

    def _split(self, beta: Array) -> tuple[Array, Array]:
        """Slopes and intercept in the units of X of a β (k, ...) in those of the design."""
        scale = self._scaling.scale.reshape(-1, *[1] * (beta.ndim - 1))
        if not self.fit_intercept:
            return beta / scale, np.zeros(beta.shape[1:])
        slopes = beta[1:] / scale
        return slopes, np.asarray(beta[0] - np.tensordot(self._scaling.location, slopes, axes=1))

    def _slope_sd(self) -> Array:
        """Posterior standard deviations of the slopes in the units of X, for β at the front of θ."""
        first = int(self.fit_intercept)
        return np.asarray(self.posterior_.std[first : first + len(self._scaling.scale)] / self._scaling.scale)

    def _predictor(self, X: Any) -> tuple[Array, Array]:
        """Posterior means and variances of ``xᵀβ``, for β at the front of θ, each (M,)."""
        design = self._new_design(X)
        q = self.posterior_
        padded = np.zeros((len(design), q.dim))
        padded[:, : design.shape[1]] = design
        whitened = q.family.solve(q.factor, padded)  # xᵀΣx = ‖L⁻¹x‖²
        return np.asarray(padded @ q.mean), np.asarray(np.einsum("md,md->m", whitened, whitened))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class BayesianRegressor(RegressorMixin, BayesianRegression):  # type: ignore[misc]
    """A regression of numbers: θ is β, and what all rows share besides it, with independent normal priors."""

    coef_: Array
    coef_sd_: Array
    intercept_: float
    _others: ClassVar[Mapping[str, tuple[Transform, float, float]]] = {}
    """What follows β in θ: its constraint, and the mean and variance of its prior on the unconstrained scale."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to features X (N, n_features) and responses y (N,).

        A row with a ``sample_weight`` (N,) of 2 counts as two rows, one of 0 as none.
        """
        data = self._checked(X, y, sample_weight, y_numeric=True)
        likelihood = self._likelihood(data._replace(response=data.response.astype(np.float64)))
        columns, others = data.design.shape[1], self._others.values()

        def prior(v: float) -> Gaussian:
            means, variances = [mean for _, mean, _ in others], [variance for _, _, variance in others]
            return Gaussian(np.append(np.zeros(columns), means), np.append(np.full(columns, v), variances))

        transforms = {name: transform for name, (transform, _, _) in self._others.items()}
        posterior = self._fit_posterior(likelihood, prior, self._columns(), transforms)
        self._set_coefficients(posterior.mean[:columns])
        return self

    @abstractmethod
    def _likelihood(self, data: Data) -> ExpectedLikelihood:
        """The likelihood of the data; sets what brings predictions back to the unit of y."""

    @abstractmethod
    def _set_coefficients(self, beta: Array) -> None:
        """Coefficients in the units of X and y, from the posterior mean ``beta`` (k,) in those of the design."""


def dense(features: Any) -> Array:
    """``features`` as an array. Centred features have no zeros, so a sparse matrix is filled up if there is room."""
    if isinstance(features, np.ndarray):
        return features
    rows, columns = features.shape
    # the matrix itself, its scaled copy, and what expectations make of it
    require_memory(
        4 * rows * columns,
        f"a sparse X of {rows:,} × {columns:,}, filled up,",
        "choose fewer columns first, for instance with sklearn.feature_selection",
    )
    return np.asarray(features.toarray())


def named(coefficients: Iterable[str], others: Mapping[str, Transform]) -> Parameters:
    """Parameters with the names of the features. A name that cannot be printed, or that is taken, is changed.

    Examples
    --------
    >>> from mgvbp.transforms import Positive
    >>> named(["intercept", "age", "age", "sigma"], {"sigma": Positive()}).names
    ('intercept', 'age', 'age (2)', 'sigma (2)', 'sigma')
    """
    taken, names = set(others), []
    for name in coefficients:
        text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name) or "x"
        new, number = text, 1
        while new in taken:
            number += 1
            new = f"{text} ({number})"
        taken.add(new)
        names.append(new)
    return Parameters(dict([*((name, Real()) for name in names), *others.items()]))
