"""Constraints as a model's own ``transform_params`` has them, with their log-Jacobian, made one-to-one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.linalg import Array
from mgvbp.interop.estimated import RegionParameters, quietly

STEP = 1e-20
"""Imaginary step of the derivatives: there is no difference that could lose digits."""
PROBES = (0.37, 1.9)
"""Points at which the map of each entry is looked at, as multiples of 1; any two numbers tell x from x²."""
CHOLESKY = "sqrt.var."
"""What statsmodels calls the diagonal of a Cholesky factor, whose sign the likelihood does not know."""


def transformed_parameters(
    model: Any, estimate: Array, smallest: float
) -> tuple[RegionParameters, list[str], list[str]]:
    """The parameters of a model with ``transform_params``, and the names of variances and of bounded parameters.

    statsmodels maps u to the parameters. Its entries are left alone (θ = u), but for variances ``σ² = u²``, where
    two u give the same: there ``θ = log σ²``, as for the diagonals of Cholesky factors ``θ = log u``.

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

    def untransformed(theta: Array) -> Array:
        """What statsmodels calls unconstrained."""
        with np.errstate(over="ignore"):
            return np.where(square, np.exp(0.5 * theta), np.where(diagonal, np.exp(theta), theta))

    def to_values(theta: Array) -> dict[str, Array]:
        rows = np.array([_apply(model, u) for u in untransformed(theta)]).reshape(theta.shape)
        return dict(zip(names, rows.T, strict=True))

    def to_theta(values: dict[str, Array]) -> Array:
        rows = np.stack([values[name] for name in names], axis=1)
        u = quietly(lambda: np.array([model.untransform_params(row) for row in rows]))
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = np.where(square, 2.0 * np.log(np.abs(u)), np.where(diagonal, np.log(u), u))
        return np.asarray(theta)

    def jacobian(theta: Array) -> Array:
        # the derivative of exp(θ) is itself; entries left alone add nothing; of the rest, the determinant
        result = theta[:, square | diagonal].sum(axis=1)
        if len(coupled):
            result = result + [_log_determinant(model, u, coupled) for u in untransformed(theta)]
        return np.asarray(result)

    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
    parameters = RegionParameters(shapes, shapes, to_values, to_theta, jacobian=jacobian)
    # the stationary coefficients of several series have no bounds
    bounded = [names[j] for j in coupled] if np.ndim(model.endog) == 1 or model.endog.shape[1] == 1 else []
    return parameters, [names[j] for j in np.flatnonzero(square)], bounded


def _apply(model: Any, u: Any) -> Any:
    return quietly(lambda: np.asarray(model.transform_params(u)))


def _log_determinant(model: Any, u: Array, coupled: NDArray[np.intp]) -> float:
    """``log |det|`` of the derivatives of the ``coupled`` parameters in their own entries of u (k,).

    The other parameters do not depend on these entries, so that this is their part of the whole determinant.
    """
    columns = []
    for j in coupled:
        moved = u.astype(np.complex128)
        moved[j] += STEP * 1j
        columns.append(_apply(model, moved).imag[coupled] / STEP)
    value = np.linalg.slogdet(np.stack(columns, axis=1))[1]
    return float(value) if np.isfinite(value) else -np.inf


def _with_positive_diagonal(model: Any, estimate: Array, diagonal: NDArray[np.bool_]) -> Array:
    """The estimate with the columns of Cholesky factors turned so that their diagonal is positive, if that is the same.

    The entries of a column are named after the variable of its diagonal, ``sqrt.cov.a.b`` after ``sqrt.var.a``.
    """
    names, turned = list(model.param_names), estimate.copy()
    for i in np.flatnonzero(diagonal & (estimate < 0.0)):
        variable = names[i].removeprefix(CHOLESKY)
        turned[[j == i or name.startswith(f"sqrt.cov.{variable}.") for j, name in enumerate(names)]] *= -1.0
    return turned
