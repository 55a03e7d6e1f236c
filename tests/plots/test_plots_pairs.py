"""Pairs of parameters and the heat map: regions have their probability, and cells their numbers."""

import numpy as np
import pytest
from matplotlib.path import Path
from pictured import PARAMETERS, VALUES, Q, labelled, stairs
from scipy import stats

from common import as_posterior, random_covariance
from mgvbp import Gaussian, plots
from mgvbp.errors import InvalidInputError
from mgvbp.families import BlockDiagonal, Diagonal, Full, GaussianMixture
from mgvbp.plots.pairs import ellipse

# --- pairs --------------------------------------------------------------------------------------------


def share_inside(x, y, points):
    return Path(np.column_stack([np.ravel(x), np.ravel(y)])).contains_points(points).mean()


@pytest.mark.parametrize("pair", [("mu", "sigma"), ("sigma", "rho"), ("beta[0]", "beta[1]"), ("rho", "mu")])
def test_regions_have_their_probability(posterior, pair):
    """Shares of 20,000 draws, at a level of 10⁻⁴; a polygon of 200 corners misses 10⁻³ of an ellipse at most."""
    n = 20_000
    draws = posterior.draws(n, rng=3)
    columns = {**draws, "beta[0]": draws["beta"][:, 0], "beta[1]": draws["beta"][:, 1]}
    ax = plots.corner(posterior, pair)[1, 0]
    points = np.column_stack([columns[pair[0]], columns[pair[1]]])
    for p in (0.5, 0.95):
        share = share_inside(*labelled(ax, f"{p:.0%}"), points)
        assert abs(share - p) < 3.9 * np.sqrt(p * (1.0 - p) / n) + 1e-3


def test_contours_have_their_probability(posterior):
    """Those of a smoothed histogram: to two hundredths, on draws that made it not."""
    ax = plots.corner(posterior, ["w[0]", "w[1]", "sigma"])[1, 0]
    points = posterior.draws(20_000, rng=5)["w"][:, :2]
    (contours,) = ax.collections
    inner, outer = sorted(path.contains_points(points).mean() for path in reversed(contours.get_paths()))
    assert inner == pytest.approx(0.5, abs=0.02)
    assert outer == pytest.approx(0.95, abs=0.02)


def test_regions_of_a_mixture_have_their_probability_and_follow_its_shape():
    """Of two modes, on draws that did not make the regions; shares and heights have errors of 0.0035 each."""
    factors = np.stack([np.linalg.cholesky(np.linalg.inv(random_covariance(7, seed=s))) for s in (1, 2)])
    mixture = GaussianMixture([0.7, 0.3], [np.full(7, -4.0), np.full(7, 4.0)], factors)
    two = as_posterior(mixture.moments, parameters=PARAMETERS)
    two.mixture = mixture
    ax = plots.corner(two, ["mu", "sigma"])[1, 0]
    draws = two.draws(20_000, rng=7)
    points = np.column_stack([draws["mu"], draws["sigma"]])
    (contours,) = ax.collections
    shares = [path.contains_points(points).mean() for path in contours.get_paths()]
    assert shares == pytest.approx([0.95, 0.5], abs=0.02)
    assert not any(
        path.contains_point([0.0, 1.0]) for path in contours.get_paths()
    )  # half-way between the modes


def test_the_ellipse_is_the_one_of_the_covariance():
    mean, covariance = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    path = ellipse(mean, covariance, 0.95)
    distance = np.einsum("ni,ij,nj->n", path - mean, np.linalg.inv(covariance), path - mean)
    np.testing.assert_allclose(distance, stats.chi2.ppf(0.95, 2))


def test_dots_are_the_draws(posterior):
    axes = plots.corner(posterior, ["mu", "sigma"], draws=VALUES)
    (dots,) = [line for line in axes[1, 0].lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(dots.get_xdata(), VALUES["mu"])
    np.testing.assert_array_equal(dots.get_ydata(), VALUES["sigma"])
    assert stairs(axes[1, 1], "draws")[0].sum() > 0.0
    assert axes[1, 0].get_xlim() == axes[0, 0].get_xlim()
    assert axes[1, 0].get_ylim() == axes[1, 1].get_xlim()
    assert not axes[0, 1].axison
    many = plots.corner(posterior, ["mu", "sigma"], draws={n: np.tile(VALUES[n], 5) for n in ("mu", "sigma")})
    (dots,) = [line for line in many[1, 0].lines if line.get_marker() == "o"]
    assert len(dots.get_xdata()) == 1500


@pytest.mark.parametrize("family", [Full(4), Diagonal(4), BlockDiagonal([[0, 2], [1, 3]])])
def test_the_covariance_of_a_pair(family):
    q = Gaussian.from_factor(np.zeros(4), family.factor(precision=random_covariance(4)), family)
    np.testing.assert_allclose(q.covariance_of([2, 0]), q.covariance[np.ix_([2, 0], [2, 0])], rtol=1e-10)


def test_of_very_many_parameters_some_can_be_seen():
    """No matrix of all of them is made: it would have 29 GB."""
    large = as_posterior(Gaussian(0.0, variance=np.linspace(1.0, 2.0, 60_000)))
    axes = plots.corner(large, ["theta[3]", "theta[59999]"])
    x, y = labelled(axes[1, 0], "95%")
    radius = np.sqrt(stats.chi2.ppf(0.95, 2))
    assert np.ptp(x) == pytest.approx(2.0 * radius * large.std[3], rel=1e-3)
    assert np.ptp(y) == pytest.approx(2.0 * radius * np.sqrt(2.0), rel=1e-3)


# --- covariance ---------------------------------------------------------------------------------------


def test_heat_map(posterior):
    covariance, sd = Q.covariance, Q.std
    for correlation, expected in ((True, covariance / np.outer(sd, sd)), (False, covariance)):
        ax = plots.covariance(posterior, correlation)
        image = ax.images[0]
        np.testing.assert_allclose(image.get_array(), expected, rtol=1e-12)
        limit = 1.0 if correlation else np.abs(covariance).max()
        np.testing.assert_allclose(image.get_clim(), (-limit, limit))
        for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
            assert [label.get_text() for label in labels] == list(PARAMETERS.labels)
        numbers = [float(text.get_text().replace("\N{MINUS SIGN}", "-")) for text in ax.texts]
        np.testing.assert_allclose(numbers, expected.ravel(), atol=0.0051 if correlation else 0.0, rtol=0.051)


def test_heat_maps_of_many_parameters_have_room():
    for d, names, numbers in ((12, 12, 144), (13, 13, 0), (40, 40, 0), (41, 0, 0), (234, 0, 0)):
        ax = plots.covariance(Gaussian(np.zeros(d), random_covariance(d)))
        assert sum(label.get_text().startswith("theta") for label in ax.get_yticklabels()) == names
        assert len(ax.texts) == numbers
    with pytest.raises(InvalidInputError, match="2,001 rows is too large"):
        plots.covariance(Gaussian(variance=1.0, dim=2001))
