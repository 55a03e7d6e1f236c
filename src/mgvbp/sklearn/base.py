"""What the estimators share: their parameters, scaled features, and the linear predictor's distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from mgvbp.core import Array, positive_integer, positive_number, true_or_false
from mgvbp.families import Family, Gaussian, resolve_family
from mgvbp.posterior import Posterior
from mgvbp.sklearn.exact import ExpectedLikelihood, fit_exact


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
    def of(cls, values: Array, *, centre: bool) -> Self:
        """Means and standard deviations over the first axis; without ``centre`` 0 and root mean squares.

        The scale of a constant column is 1.
        """
        location = values.mean(axis=0) if centre else np.zeros(values.shape[1:])
        deviations = values - location
        largest = np.abs(deviations).max(axis=0)
        constant = largest <= 10.0 * np.finfo(float).eps * np.abs(values).max(axis=0)
        largest = np.where(constant, 1.0, largest)
        # relative to the largest, so that no square overflows or underflows
        scale = largest * np.sqrt(np.mean((deviations / largest) ** 2, axis=0))
        return cls(np.asarray(location), np.where(constant, 1.0, scale))

    def __call__(self, values: Array) -> Array:
        """``values`` on the new scale."""
        return np.asarray((values - self.location) / self.scale)


class BayesianRegression(BaseEstimator):  # type: ignore[misc]
    """A regression whose coefficients have a Gaussian posterior.

    Inside, features are centred and scaled to unit standard deviation and a column of ones comes first.
    """

    def __init__(
        self,
        *,
        prior_variance: float = 6.25,
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

    def _checked(self, X: Any, y: Any, **options: Any) -> tuple[Array, Any]:
        """Features and responses as arrays, and the parameters looked at; sets the scaling of the features."""
        true_or_false(self.fit_intercept, "fit_intercept")
        positive_number(self.prior_variance, "prior_variance")
        features, response = validate_data(self, X, y, dtype=np.float64, **options)
        self._scaling = Scaling.of(features, centre=self.fit_intercept)
        return self._design(features), response

    def _design(self, features: Array) -> Array:
        """Scaled features (N, k), after a column of ones if there is an intercept."""
        scaled = self._scaling(features)
        return np.column_stack([np.ones(len(scaled)), scaled]) if self.fit_intercept else scaled

    def _new_design(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._design(validate_data(self, X, dtype=np.float64, reset=False))

    def _fit_posterior(self, likelihood: ExpectedLikelihood, prior: Gaussian) -> Posterior:
        parameters = likelihood.model.parameters
        posterior = fit_exact(
            likelihood,
            prior,
            family=resolve_family(self.family, parameters.dim, parameters.labels),
            tol=positive_number(self.tol, "tol"),
            max_iter=positive_integer(self.max_iter, "max_iter"),
        )
        self.posterior_ = posterior
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

    def _predictor(self, X: Any) -> tuple[Array, Array]:
        """Posterior means and variances of ``xᵀβ``, for β at the front of θ, each (M,)."""
        design = self._new_design(X)
        q = self.posterior_
        padded = np.zeros((len(design), q.dim))
        padded[:, : design.shape[1]] = design
        whitened = q.family.solve(q.factor, padded)  # xᵀΣx = ‖L⁻¹x‖²
        return np.asarray(padded @ q.mean), np.asarray(np.einsum("md,md->m", whitened, whitened))
