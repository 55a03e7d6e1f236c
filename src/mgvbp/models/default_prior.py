r"""The prior of a regression that is given none: vague on the scale of its data, whatever units these have.

Let :math:`γ = Tβ` be the coefficients of columns that are centred and scaled to standard deviation 1, with the
intercept at the means of the columns. Each has the prior :math:`N(0, 6.25)`, a standard deviation of 2.5, so that
:math:`β` has the precision :math:`T^\top T / 6.25`. The estimators of `mgvbp.sklearn` have the same prior.
"""

from __future__ import annotations

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian

VARIANCE = 6.25
"""Of each standardised coefficient. For a logistic or a log link: one standard deviation of a column is not expected to
change odds or means by more than a factor of 150. For linear regression, where y is scaled too, it is vague: a column
that explains y alone has the coefficient 1."""
CONSTANT = 10.0 * float(np.finfo(float).eps)
"""A column whose deviations from its mean are a smaller share of its largest value is constant."""


def standardisation(X: Array) -> tuple[Array, int | None]:
    """The matrix T (k, k), and which column is the intercept: the first that is constant but not 0, or None.

    Without an intercept nothing is centred, and scales are root mean squares.

    Examples
    --------
    >>> T, intercept = standardisation(np.array([[1.0, 4.0], [1.0, 8.0]]))
    >>> T, intercept
    (array([[1., 6.],
           [0., 2.]]), 0)
    """
    largest = np.abs(X).max(axis=0)
    unit = X / np.where(largest > 0.0, largest, 1.0)  # no square overflows or underflows
    constant = np.ptp(unit, axis=0) <= CONSTANT
    known = np.flatnonzero(constant & (largest > 0.0))
    intercept = int(known[0]) if len(known) else None
    location = np.where(constant, 0.0, unit.mean(axis=0)) if intercept is not None else np.zeros(X.shape[1])
    scale = largest * np.sqrt(np.mean((unit - location) ** 2, axis=0))
    T = np.diag(np.where(scale > 0.0, scale, 1.0))
    if intercept is not None:
        T[intercept] = largest * location
        T[intercept, intercept] = X[0, intercept]
    return T, intercept


def standardised_prior(
    X: Array, *, location: float = 0.0, scale: float = 1.0, others: tuple[tuple[float, float], ...] = ()
) -> Gaussian:
    """The prior ``Tβ ~ N(location e_0, scale² 6.25)``, e_0 being the intercept, and of ``others`` that follow β in θ.

    ``location`` and ``scale`` are those of the response, on the scale of the linear predictor. Each of the ``others``
    is a mean and a variance.
    """
    T, intercept = standardisation(X)
    mean, k = np.zeros(len(T) + len(others)), len(T)
    if intercept is not None:
        mean[intercept] = location / T[intercept, intercept]
    precision = np.zeros((len(mean), len(mean)))
    precision[:k, :k] = T.T @ T / (VARIANCE * scale**2)
    for i, (centre, variance) in enumerate(others, start=k):
        mean[i], precision[i, i] = centre, 1.0 / variance
    return Gaussian(mean, precision=precision)


def moments(y: Array, intercept: bool) -> tuple[float, float]:
    """Mean and standard deviation of the response, or 0 and its root mean square; the scale of a constant is 1."""
    location = float(y.mean()) if intercept else 0.0
    scale = float(np.sqrt(np.mean((y - location) ** 2)))
    return location, scale if scale > CONSTANT * abs(location) else 1.0
