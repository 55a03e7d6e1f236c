"""Constraints as a model's own ``transform_params`` has them, with their log-Jacobian, made one-to-one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.linalg import Array
from mgvbp.interop.estimated import RegionParameters, quietly

IMAGINARY = 1e-20
"""Imaginary step of derivatives: there is no difference that could lose digits."""
STEP = 1e-5
"""Step of central differences, relative to the entry if it is above 1: the errors of rounding and of the third order
are both about 1e-10."""
PROBES = (0.37, 1.9)
"""Points at which the map of each entry is looked at, as multiples of 1; any two numbers tell x from x²."""
FAR = 30.0
"""Where the slope of an entry's map tells a polynomial from an exponential: 4e-5 of u/√(1 + u²), 1e-13 of a logistic
function."""
LEAST_SLOPE = 1e-8
"""A slope at `FAR` above this is that of a polynomial."""
CHOLESKY = "sqrt.var."
"""What statsmodels calls the diagonal of a Cholesky factor, whose sign the likelihood does not know."""


def transformed_parameters(
    model: Any, estimate: Array, smallest: float
) -> tuple[RegionParameters, list[str], list[str]]:
    """The parameters of a model with ``transform_params``, and the names of variances and of bounded parameters.

    statsmodels maps u to the parameters. Its entries are left alone (θ = u), but for two kinds. Of variances
    ``σ² = u²`` two u give the same: there ``θ = log σ²``, as for the diagonals of Cholesky factors ``θ = log u``.
    Partial autocorrelations are ``r = u/√(1 + u²)``, up to their signs, so that a posterior that reaches a unit root
    has a tail of order |u|⁻³, without a variance: there ``u = sinh θ`` and ``r = tanh θ``, Fisher's scale, with
    exponential tails.

    Parameters
    ----------
    model : statsmodels' model
    estimate : ndarray of shape (k,)
        A point inside of the constraints. It is changed in place: variances are raised to ``smallest`` and diagonals
        made positive.
    smallest : float
        A variance that is next to nothing.
    """
    names = tuple(map(str, model.param_names))
    images = np.array([_apply(model, np.full(len(names), probe)) for probe in PROBES])
    probes = np.array(PROBES)[:, None]
    square = np.isclose(images, probes**2).all(axis=0)
    identity = np.isclose(images, probes).all(axis=0)
    diagonal = identity & np.array([name.startswith(CHOLESKY) for name in names])
    coupled = np.flatnonzero(~square & ~identity)
    estimate[square] = np.maximum(estimate[square], smallest)
    if diagonal.any():
        estimate[:] = _with_positive_diagonal(model, estimate, diagonal)

    derivative = _derivatives(model, np.asarray(model.untransform_params(estimate)), coupled)
    slow = np.zeros(len(names), dtype=bool)
    for j in coupled:
        far = np.where(np.arange(len(names)) == j, FAR, PROBES[0])
        slow[j] = np.abs(derivative(model, far, int(j))).max() > LEAST_SLOPE

    def untransformed(theta: Array) -> Array:
        """What statsmodels calls unconstrained."""
        with np.errstate(over="ignore"):
            cases = [np.exp(0.5 * theta), np.exp(theta), np.sinh(theta)]
            return np.select([square, diagonal, slow], cases, theta)

    def to_values(theta: Array) -> dict[str, Array]:
        rows = np.array([_apply(model, u) for u in untransformed(theta)]).reshape(theta.shape)
        return dict(zip(names, rows.T, strict=True))

    def to_theta(values: dict[str, Array]) -> Array:
        rows = np.stack([values[name] for name in names], axis=1)
        u = quietly(lambda: np.array([model.untransform_params(row) for row in rows]))
        with np.errstate(divide="ignore", invalid="ignore"):
            cases = [2.0 * np.log(np.abs(u)), np.log(u), np.arcsinh(u)]
            return np.select([square, diagonal, slow], cases, u)

    def jacobian(theta: Array) -> Array:
        # of exp(θ) the derivative is itself, of sinh(θ) it is cosh(θ); entries left alone add nothing; of the rest,
        # the determinant
        size = np.abs(theta[:, slow])
        log_cosh = size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)
        result = theta[:, square | diagonal].sum(axis=1) + log_cosh.sum(axis=1)
        if len(coupled):
            for row, u in enumerate(untransformed(theta)):
                # these entries move the coupled parameters alone, so that this is their part of the determinant
                slopes = np.stack([derivative(model, u, int(j))[coupled] for j in coupled], axis=1)
                value = np.linalg.slogdet(slopes)[1]
                result[row] += value if np.isfinite(value) else -np.inf  # far out the map has collapsed
        return np.asarray(result)

    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
    parameters = RegionParameters(shapes, shapes, to_values, to_theta, jacobian=jacobian)
    # the stationary coefficients of several series have no bounds
    bounded = [names[j] for j in coupled] if np.ndim(model.endog) == 1 or model.endog.shape[1] == 1 else []
    return parameters, [names[j] for j in np.flatnonzero(square)], bounded


def _apply(model: Any, u: Any) -> Any:
    return quietly(lambda: np.asarray(model.transform_params(u)))


def _analytic(model: Any, u: Array, j: int) -> Array:
    """The derivatives (k,) of the parameters in entry j of u, by an imaginary step."""
    moved = u.astype(np.complex128)
    moved[j] += IMAGINARY * 1j
    return np.asarray(_apply(model, moved).imag / IMAGINARY)


def _central(model: Any, u: Array, j: int) -> Array:
    """The derivatives (k,) of the parameters in entry j of u, by differences."""
    step = np.zeros(len(u))
    step[j] = STEP * max(1.0, abs(u[j]))
    return np.asarray((_apply(model, u + step) - _apply(model, u - step)) / (2.0 * step[j]))


def _derivatives(model: Any, u: Array, coupled: NDArray[np.intp]) -> Callable[[Any, Array, int], Array]:
    """The way to differentiate the map: by an imaginary step, if it agrees with differences at u.

    It does not where the map conjugates, as the Cholesky factors of several series do.
    """
    for j in coupled:
        try:
            exact = _analytic(model, u, j)
        except (TypeError, ValueError):
            return _central
        if not np.allclose(exact, _central(model, u, j), rtol=1e-4, atol=1e-7):
            return _central
    return _analytic


def _with_positive_diagonal(model: Any, estimate: Array, diagonal: NDArray[np.bool_]) -> Array:
    """The estimate with the columns of Cholesky factors turned so that their diagonal is positive, if that is the same.

    The entries of a column are named after the variable of its diagonal, ``sqrt.cov.a.b`` after ``sqrt.var.a``.
    """
    names, turned = list(model.param_names), estimate.copy()
    for i in np.flatnonzero(diagonal & (estimate < 0.0)):
        variable = names[i].removeprefix(CHOLESKY)
        turned[[j == i or name.startswith(f"sqrt.cov.{variable}.") for j, name in enumerate(names)]] *= -1.0
    return turned
