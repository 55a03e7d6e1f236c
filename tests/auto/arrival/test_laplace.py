"""Laplace's approximation from the curvature that the draws of a narrow Gaussian show."""

import math

import numpy as np
import pytest

from mgvbp import Full, Gaussian
from mgvbp.auto.arrival.laplace import laplace
from mgvbp.surfaces.archive import equal_view
from mgvbp.surfaces.surface import fit_surface


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.1])
def test_flat_directions_have_the_variance_from_before(scale):
    """Of −2(x − 0.1)² the variance is ¼ and the mode 0.1; of a saddle's other axis both are what they were."""
    q = Gaussian(variance=scale**2, dim=2)  # N(0, I), narrowed
    theta = q.sample(40, rng=1)
    values = -2.0 * (theta[:, 0] - 0.1) ** 2 + 0.1 * theta[:, 1] ** 2
    surface = fit_surface(equal_view(q, theta), Full(2), values, math.inf)
    found = laplace(surface, scale)
    np.testing.assert_allclose(found.covariance, np.diag([0.25, 1.0]), atol=1e-9)
    np.testing.assert_allclose(found.mean, [0.1, 0.0], atol=1e-9)
