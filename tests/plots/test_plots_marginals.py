"""Marginal densities: exact where there is a formula, from draws elsewhere, with draws and the prior beside them."""

import numpy as np
import pytest
from arviz_base import from_dict
from pictured import PARAMETERS, THETA, VALUES, labelled, stairs
from scipy import stats

from common import as_posterior, random_covariance
from mgvbp import Gaussian, Parameters, plots
from mgvbp.baselines import Chains
from mgvbp.errors import MgvbpWarning
from mgvbp.families import GaussianMixture
from mgvbp.plots.panels import BINS, NUM_DRAWS, REACH, smooth_density
from mgvbp.transforms import CorrelationCholesky, Positive, Real, Simplex

# --- marginals ----------------------------------------------------------------------------------------


def test_densities_integrate_to_one_and_are_those_of_the_marginals(posterior):
    for ax in plots.marginals(posterior, ["mu", "sigma", "rho"]):
        x, y = labelled(ax, "posterior")
        assert np.trapezoid(y, x) == pytest.approx(1.0 - 2.0 * stats.norm.sf(REACH), abs=2e-4)
        np.testing.assert_allclose(y, posterior[ax.get_title(loc="left")].density(x), rtol=1e-10)


def test_an_entry_of_a_vector_has_its_own_density():
    q = Gaussian([0.3, -0.2], random_covariance(2))
    panels = plots.marginals(as_posterior(q, Parameters(s=Positive(2))))
    for i, ax in enumerate(panels):
        x, y = labelled(ax, "posterior")
        np.testing.assert_allclose(y, stats.lognorm.pdf(x, q.std[i], scale=np.exp(q.mean[i])), rtol=1e-10)
    for i, ax in enumerate(plots.marginals(as_posterior(q))):
        assert ax.get_title(loc="left") == f"theta[{i}]"
        x, y = labelled(ax, "posterior")
        np.testing.assert_allclose(y, stats.norm.pdf(x, q.mean[i], q.std[i]), rtol=1e-10)


def test_a_density_with_two_modes_is_low_between_them():
    mixture = GaussianMixture([0.7, 0.3], [[-6.0], [6.0]], np.ones((2, 1, 1)))
    two = as_posterior(mixture.moments, parameters=Parameters(mu=Real()))
    two.mixture = mixture
    x, y = labelled(plots.marginals(two)[0], "posterior")
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=2e-3)
    assert y[np.abs(x) < 2.0].max() < 1e-3
    assert (np.abs(x) < 2.0).sum() > 20


def logit_normal(x, mean, sd):
    """The density of the first of two probabilities whose log-ratio is √2 times a normal number: `Simplex(2)`."""
    law = stats.norm(np.sqrt(2.0) * mean, np.sqrt(2.0) * sd)
    return law.pdf(np.log(x / (1.0 - x))) / (x * (1.0 - x))


@pytest.mark.parametrize("sd", [0.3, 0.7])
def test_without_a_formula_densities_come_from_draws(sd):
    """Five standard errors of such an estimate are 8% of the maximum or less."""
    posterior = as_posterior(Gaussian([0.3], [sd**2]), Parameters(w=Simplex(2)))
    first, second = plots.marginals(posterior)
    x, y = labelled(first, "posterior")
    exact = logit_normal(x, 0.3, sd)
    np.testing.assert_allclose(y, exact, atol=0.08 * exact.max())
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.02)  # 0.002 of it lies beyond
    assert all(len(ax.collections) == 1 for ax in (first, second))  # filled, as those with a formula are


@pytest.mark.parametrize(
    "law", [stats.uniform(), stats.beta(2.0, 1.0), stats.norm()], ids=["1", "2x", "normal"]
)
def test_a_density_neither_falls_off_nor_piles_up_where_the_range_ends(law):
    """An end has a quarter of the draws of a point inside, so that five standard errors are 0.15 of the maximum."""
    values = law.rvs(NUM_DRAWS, random_state=1)
    x, y = smooth_density(values, -9.0, 9.0)
    np.testing.assert_allclose(y, law.pdf(x), atol=0.15 * law.pdf(x).max())
    assert (x[0], x[-1]) == pytest.approx((values.min(), values.max()), abs=0.01)
    low, high = law.ppf([0.3, 0.4])
    part, heights = smooth_density(values, low, high)  # a window has the density of all
    assert (part[0], part[-1]) == pytest.approx((low, high))
    np.testing.assert_allclose(heights, law.pdf(part), atol=0.08 * law.pdf(x).max())
    assert not smooth_density(values, 20.0, 21.0)[1].any()


def test_a_number_that_does_not_vary_can_be_drawn():
    parameters = Parameters(L=CorrelationCholesky(2))
    corner, *_ = plots.marginals(as_posterior(Gaussian([0.3], [1.0]), parameters))
    x, y = labelled(corner, "posterior")
    assert np.isfinite(y).all()
    assert x[np.argmax(y)] == pytest.approx(1.0, abs=0.01)


def test_a_long_tail_does_not_flatten_the_rest():
    (ax,) = plots.marginals(as_posterior(Gaussian([0.0], [4.0]), Parameters(s=Positive())))
    x, y = labelled(ax, "posterior")
    assert x.max() > 500.0
    assert ax.get_xlim()[1] < 50.0
    assert y[x > ax.get_xlim()[1]].max() < 0.005 * y.max()


FORMS = {
    "theta": THETA,
    "chains of theta": THETA.reshape(4, 250, 7),
    "Chains": Chains(THETA.reshape(4, 250, 7)),
    "dict": VALUES,
    "dict of chains": {name: v.reshape(4, 250, *v.shape[1:]) for name, v in VALUES.items()},
    "dict of lists": {name: v.tolist() for name, v in VALUES.items()},
    "dict by label": {"sigma": VALUES["sigma"], "w[2]": VALUES["w"][:, 2], "beta[1]": VALUES["beta"][:, 1]},
    "DataTree": from_dict({"posterior": {n: v.reshape(4, 250, *v.shape[1:]) for n, v in VALUES.items()}}),
}


@pytest.mark.parametrize("form", [*FORMS, "Dataset"])
def test_draws_of_every_form_are_drawn(posterior, form):
    draws = FORMS["DataTree"]["posterior"].to_dataset() if form == "Dataset" else FORMS[form]
    panels = plots.marginals(posterior, ["sigma", "w[2]", "beta[1]"], draws=draws)
    for ax, values in zip(panels, (VALUES["sigma"], VALUES["w"][:, 2], VALUES["beta"][:, 1]), strict=True):
        heights, edges = stairs(ax, "draws")
        assert len(heights) == BINS
        np.testing.assert_allclose(heights, np.histogram(values, edges)[0] / (1000 * np.diff(edges)))
        low, high = np.quantile(values, [0.005, 0.995])
        assert edges[0] <= low < high <= edges[-1]
    assert [text.get_text() for text in panels[0].get_legend().get_texts()] == ["draws", "posterior"]


def test_priors():
    q, prior = Gaussian([0.1, 0.2, -0.1], random_covariance(3)), Gaussian([1.0, 0.0, 0.5], [4.0, 9.0, 1.0])
    parameters = Parameters(b=Real(2), s=Positive())
    posterior = as_posterior(q, parameters)
    *_, panel = plots.marginals(posterior, prior=prior)
    x, y = labelled(panel, "prior")
    np.testing.assert_allclose(y[x > 0], stats.lognorm.pdf(x[x > 0], 1.0, scale=np.exp(0.5)))
    constrained = parameters.prior(b=stats.norm([0.0, 1.0], [2.0, 3.0]), s=stats.expon(scale=2.0))
    _, second, panel = plots.marginals(posterior, prior=constrained)
    x, y = labelled(second, "prior")
    np.testing.assert_allclose(y, stats.norm.pdf(x, 1.0, 3.0))
    x, y = labelled(panel, "prior")
    np.testing.assert_allclose(y, stats.expon.pdf(x, scale=2.0))


def independent(**others):
    """A prior on the constrained scale, where `others` say nothing else."""
    return PARAMETERS.prior(
        **{
            "mu": stats.norm(),
            "sigma": stats.expon(),
            "beta": stats.multivariate_normal([0.0, 1.0], [[1.0, 0.5], [0.5, 4.0]]),
            "rho": stats.uniform(-1.0, 2.0),
            "w": stats.dirichlet([2.0, 3.0, 4.0]),
        }
        | others
    )


def test_priors_without_a_formula_come_from_draws(posterior):
    """Entries of a Dirichlet vector have Beta distributions, those of a normal one are normal."""
    laws = {"w[0]": stats.beta(2.0, 7.0), "w[2]": stats.beta(4.0, 5.0), "beta[1]": stats.norm(1.0, 2.0)}
    for ax, law in zip(plots.marginals(posterior, laws, prior=independent()), laws.values(), strict=True):
        x, y = labelled(ax, "prior")
        np.testing.assert_allclose(y, law.pdf(x), atol=0.08 * law.pdf(x).max())
        low, high = ax.get_xlim()
        assert low <= x[0] < x[-1] <= high


def test_a_gaussian_prior_of_a_simplex():
    posterior = as_posterior(Gaussian([0.3], [0.2]), Parameters(w=Simplex(2)))
    ax, _ = plots.marginals(posterior, prior=Gaussian([-0.2], [0.5]))
    x, y = labelled(ax, "prior")
    exact = logit_normal(x, -0.2, np.sqrt(0.5))
    np.testing.assert_allclose(y, exact, atol=0.08 * exact.max())
    assert "prior" in [text.get_text() for text in ax.get_legend().get_texts()]


UNKNOWN = {
    "a function": {"w": lambda w: np.zeros(len(w))},
    "of each entry under one constraint": {"w": stats.beta(2.0, 2.0)},
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_prior_that_cannot_be_drawn_is_left_out(posterior, case):
    with pytest.warns(MgvbpWarning, match="prior of w is left out .*scipy.stats.dirichlet") as caught:
        panels = plots.marginals(posterior, ["w", "mu", "rho"], prior=independent(**UNKNOWN[case]))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    drawn = [[line.get_label() for line in ax.lines] for ax in panels]
    assert drawn == 3 * [["posterior"]] + 2 * [["posterior", "prior"]]
    # the legend is where all there is can be seen
    assert [ax.get_legend() is not None for ax in panels] == [False, False, False, True, False]
