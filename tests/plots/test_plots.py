"""Pictures: the lines hold the right numbers, on the axes that are given, and what cannot be drawn is refused."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from arviz_base import from_dict
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path
from scipy import stats

import mgvbp
from mgvbp import Gaussian, Parameters, Posterior, Trace, fit, plots
from mgvbp.baselines import Chains
from mgvbp.errors import (
    InvalidInputError,
    InvalidTypeError,
    MgvbpWarning,
    MissingDependencyError,
    UnknownNameError,
)
from mgvbp.families import BlockDiagonal, Diagonal, Full
from mgvbp.networks import Prediction
from mgvbp.plots.bound import smoothed
from mgvbp.plots.canvas import shown
from mgvbp.plots.pairs import ellipse
from mgvbp.plots.panels import BINS, NUM_DRAWS, REACH
from mgvbp.plots.smooth import smooth_density
from mgvbp.transforms import CorrelationCholesky, Interval, Positive, Real, Simplex

HOSTILE = "$\\frac{$ <b>&\n" + 50 * "x"


def trace(bounds, averages=None, queries=None, phase="step"):
    n = len(bounds)
    zeros, whole = np.zeros(n), np.zeros(n, np.int64)
    return Trace(
        phase=np.full(n, phase, "U8"),
        lower_bound=np.asarray(bounds, float),
        smoothed=np.asarray(bounds if averages is None else averages, float),
        gap=zeros, noise=zeros, step_size=zeros, radius=zeros, num_draws=whole,
        n_evaluations=np.asarray(np.arange(1, n + 1) * 10 if queries is None else queries),
        dropped=whole, reductions=whole,
    )  # fmt: skip


def as_posterior(q, parameters=None, run=None, lower_bound=-1.0, method="MGVBP", labels=None):
    return Posterior(
        q.mean.copy(), q.factor.copy(), q.family, lower_bound=lower_bound, converged=True, stop_reason="done",
        trace=run or trace([-2.0, -1.0]), method=method, estimator="h", parameters=parameters, labels=labels,
    )  # fmt: skip


def random_covariance(d, seed=0):
    A = np.random.default_rng(seed).normal(size=(d, d + 3))
    return 0.1 * A @ A.T


PARAMETERS = Parameters(mu=Real(), sigma=Positive(), beta=Real(2), rho=Interval(-1.0, 1.0), w=Simplex(3))
Q = Gaussian(np.linspace(-0.5, 0.6, 7), random_covariance(7))


@pytest.fixture
def posterior():
    return as_posterior(Q, PARAMETERS)


@pytest.fixture(autouse=True)
def _close():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def labelled(ax, label):
    """The line with this label; the labels of bounds have more behind it."""
    (found,) = [line for line in ax.lines if str(line.get_label()).startswith(label)]
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def stairs(ax, label):
    (found,) = [patch for patch in ax.patches if patch.get_label() == label]
    return found.get_data().values, found.get_data().edges


# --- lower bound --------------------------------------------------------------------------------------


def noisy(theta):
    return -0.5 * (theta**2).sum(axis=1) - np.abs(theta).sum(axis=1)


@pytest.mark.parametrize(
    ("window", "iterations"), [(5, 60), (100, 60)], ids=["windows", "ended before one was full"]
)
def test_the_mark_is_at_the_iteration_whose_gaussian_was_returned(window, iterations):
    """Without a look at the rule: the callback has seen that Gaussian."""
    seen = []
    method = mgvbp.MGVBP(step_size=0.1, window=window)
    options = {"estimator": "h", "num_draws": 10, "max_iterations": iterations, "initial_variance": 0.1}
    result = fit(
        noisy,
        Gaussian(variance=5.0, dim=2),
        method=method,
        callback=lambda i: seen.append(i.gaussian),
        **options,
    )
    (t,) = [i for i, q in enumerate(seen, 1) if np.array_equal(q.mean, result.mean)]
    assert 1 < t < iterations  # or the test says little
    for against, where in (("iterations", t), ("queries", 10 * t)):
        ax = plots.lower_bound(result, against=against)
        (mark,) = [line for line in ax.lines if "t*" in str(line.get_label())]
        assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (where, result.lower_bound)
        assert f"t* = {t}" in mark.get_label()
        x, y = labelled(ax, "moving average")
        np.testing.assert_array_equal(y, result.trace.smoothed)
        assert x[-1] == iterations * (10 if against == "queries" else 1)
        low, high = ax.get_ylim()
        assert low < result.lower_bound < high
    again = smoothed(result, window)
    assert again.best == t
    assert again.bound == pytest.approx(result.lower_bound, rel=1e-12)


def test_another_window():
    values = np.random.default_rng(0).normal(size=50)
    average, best, bound = smoothed(as_posterior(Q, run=trace(values)), 7)
    full = np.convolve(values, np.full(7, 1.0 / 7.0), mode="valid")
    np.testing.assert_allclose(average[6:], full, rtol=1e-12)
    np.testing.assert_allclose(average[:6], np.cumsum(values)[:6] / np.arange(1, 7), rtol=1e-12)
    assert (best, bound) == (7 + np.argmax(full), pytest.approx(full.max()))
    ax = plots.lower_bound(as_posterior(Q, run=trace(values)), window=7)
    np.testing.assert_allclose(labelled(ax, "moving average")[1], average)


@pytest.mark.parametrize("method", ["auto", "VOGN"])
def test_the_result_of_some_methods_is_their_last_iterate(method):
    run = trace([-1.0, -1.0, -3.0, -1.0], [-1.0, -1.0, -1.0, -1.0])
    assert smoothed(as_posterior(Q, run=run, method=method)).best == 4
    assert smoothed(as_posterior(Q, run=run)).best == 1


def test_phases_of_auto_are_shaded():
    result = fit(noisy, Gaussian(variance=5.0, dim=2))
    counts = np.append(0, result.trace.n_evaluations)
    for against, edges in (("iterations", np.arange(len(counts)) + 0.5), ("queries", counts)):
        ax = plots.lower_bound(result, against=against)
        spans = [(p.get_x(), p.get_x() + p.get_width()) for p in ax.patches]
        assert (spans[0][0], spans[-1][1]) == (edges[0], edges[-1])
        assert all(a[1] == b[0] for a, b in pairwise(spans))
        phases = result.trace.phase
        assert [s[0] for s in spans[1:]] == [
            edges[i] for i in range(1, len(phases)) if phases[i] != phases[i - 1]
        ]
        words = [text.get_text() for text in ax.get_legend().get_texts()]
        assert set(phases) <= set(words)
        assert len(set(words)) == len(words)
    several = plots.lower_bound({"a": result, "b": result})
    assert not several.patches
    assert len(several.lines) == 4


def test_values_that_are_not_finite_leave_a_gap():
    bounds = [-np.inf, -np.inf, -5.0, -4.0, -3.9]
    ax = plots.lower_bound(as_posterior(Q, run=trace(bounds), lower_bound=-3.9))
    assert np.isnan(labelled(ax, "lower bound")[1][:2]).all()
    assert np.isfinite(ax.get_ylim()).all()
    nothing = plots.lower_bound(as_posterior(Q, run=trace([-np.inf, -np.inf]), lower_bound=-np.inf))
    nothing.figure.draw_without_rendering()


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
    assert (x[0], x[-1]) == pytest.approx((values.min(), values.max()))
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


THETA = Q.sample(1000, rng=1) + 0.3
VALUES = PARAMETERS.constrain(THETA)
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
    laws = {
        "w[0]": stats.beta(2.0, 7.0),
        "w[2]": stats.beta(4.0, 5.0),
        "beta[1]": stats.norm(1.0, 2.0),
    }
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


# --- convergence --------------------------------------------------------------------------------------


def test_gaps_against_queries():
    first = as_posterior(
        Q, run=trace([-11.0, -10.0, -2.0], [-11.0, -6.0, -2.0], [10, 20, 30]), lower_bound=-2.0
    )
    (ax,) = [plots.convergence({"a": first}, optimum=-1.0)]
    x, y = labelled(ax, "a")
    np.testing.assert_array_equal(x, [10, 20, 30])
    np.testing.assert_allclose(y, [10.0, 5.0, 1.0])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_ylabel() == "nats below the optimum"


def test_several_runs_are_a_median_in_a_band():
    runs = [
        as_posterior(Q, run=trace(bounds, queries=queries), lower_bound=bounds[-1])
        for bounds, queries in (
            ([-np.inf, -5.0, -1.0], [10, 20, 30]),
            ([-9.0, -3.0], [10, 25]),
            ([-8.0, -7.0, -6.0], [15, 20, 40]),
        )
    ]
    ax = plots.convergence({"b": runs}, floor=0.5)
    assert ax.get_ylabel() == "nats below the best of these runs"
    x, y = labelled(ax, "b (3 runs)")
    np.testing.assert_array_equal(x, [10, 15, 20, 25, 30, 40])
    # gaps to −1 at those: inf inf 4 4 0 0, 8 8 8 2 2 2, inf 7 6 6 6 5; where one is infinite, nothing is shown
    np.testing.assert_array_equal(y, [np.nan, np.nan, 6.0, 4.0, 2.0, 2.0])
    corners = ax.collections[0].get_paths()[0].vertices
    assert set(corners[:, 1]) == {4.0, 8.0, 2.0, 6.0, 0.5, 5.0}
    assert ax.get_ylim()[0] < 0.5


# --- pictures that are drawn elsewhere ----------------------------------------------------------------


def test_reliability():
    p = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=200)
    prediction, y = Prediction(np.log(p), np.zeros(200)), np.arange(200) % 3
    given = Figure().subplots()
    assert plots.reliability(prediction, y, bins=5, ax=given) is given
    table = prediction.reliability(y, 5)
    np.testing.assert_array_equal(labelled(given, "accuracy")[1], table.accuracy[table.count > 0])
    assert isinstance(plots.reliability(prediction, y), Axes)


def test_volatility_band():
    from mgvbp.volatility import ARCH

    model = ARCH(1, mean="zero")
    result = model.fit(model.simulate({"omega": 0.5, "alpha[1]": 0.5}, days=200, rng=0))
    given = Figure().subplots()
    assert plots.volatility_band(result, ax=given) is given
    np.testing.assert_array_equal(labelled(given, "posterior mean")[1], result.conditional_volatility)
    assert given.get_ylabel() == "volatility, unit of returns"
    assert "80% credible band" in plots.volatility_band(result, level=0.8).get_legend_handles_labels()[1]


# --- axes and state -----------------------------------------------------------------------------------


def test_axes_that_are_given_are_used(posterior):
    for draw in (plots.lower_bound, plots.covariance, plots.convergence):
        ax = Figure().subplots()
        assert draw(posterior, ax=ax) is ax
        assert ax.lines or ax.images
    axes = Figure().subplots(2, 2)
    panels = plots.marginals(posterior, ["mu", "sigma", "beta"], axes=axes)
    assert panels == list(axes.flat)
    square = Figure().subplots(3, 3)
    assert plots.corner(posterior, ["mu", "w[0]", "rho"], axes=square) is square
    alone = Figure().subplots()
    assert plots.corner(posterior, "mu", axes=alone)[0, 0] is alone


def test_pyplot_knows_new_figures_only_if_it_is_there(posterior):
    code = (
        "import sys, mgvbp\nfrom mgvbp import plots\n"
        "q = mgvbp.Gaussian(variance=1.0, dim=2)\nax = plots.covariance(q)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\nax.figure.draw_without_rendering()\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    from matplotlib import pyplot

    figure = plots.marginals(posterior)[0].figure
    assert figure.number in pyplot.get_fignums()


def test_every_picture_can_be_drawn_and_leaves_the_settings_alone(posterior):
    from matplotlib import rcParams

    before = dict(rcParams)
    for ax in (
        plots.lower_bound({"a": posterior, HOSTILE: posterior}),
        plots.marginals(posterior, ["sigma", "w[0]"], draws=THETA)[0],
        plots.corner(posterior, ["sigma", "w[0]"], draws=THETA)[0, 0],
        plots.covariance(posterior),
        plots.convergence({HOSTILE: [posterior, posterior]}),
    ):
        ax.figure.savefig("/dev/null", format="png")
    assert dict(rcParams) == before


def test_labels_may_hold_anything():
    """No formulas, no line breaks, no endless names; the file format allows them."""
    names = (HOSTILE, "\ud800", "$", "_x")
    posterior = as_posterior(Gaussian(np.zeros(4), random_covariance(4)), labels=names)
    for ax in (
        plots.marginals(posterior, prior=Gaussian(variance=1.0, dim=4))[0],
        plots.corner(posterior)[0, 0],
        plots.covariance(posterior),
    ):
        ax.figure.savefig("/dev/null", format="svg")
    assert shown("a\nb") == "a\N{REPLACEMENT CHARACTER}b"
    assert shown("x" * 28) == "x" * 28
    assert len(shown(HOSTILE)) == 28


def test_without_matplotlib(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(MissingDependencyError, match=r"matplotlib.*pip install 'mgvbp\[plots\]'"):
        plots.lower_bound(posterior)


# --- what is wrong ------------------------------------------------------------------------------------


BAD = {
    "no posterior": (lambda p: plots.marginals(Q), InvalidTypeError, "expected a posterior"),
    "no run": (lambda p: plots.lower_bound(Q), InvalidTypeError, "a posterior, or a dict"),
    "no runs": (lambda p: plots.lower_bound({}), InvalidInputError, "is empty"),
    "nothing to race": (lambda p: plots.convergence({}), InvalidInputError, "is empty"),
    "an empty list": (lambda p: plots.convergence({"a": []}), InvalidInputError, "no posteriors under 'a'"),
    "a list of others": (
        lambda p: plots.convergence({"a": [Q]}),
        InvalidTypeError,
        "'a' must be a posterior",
    ),
    "a list": (
        lambda p: plots.convergence([p]),
        InvalidTypeError,
        "or a dict of name to posterior or a list",
    ),
    "lists of one run": (
        lambda p: plots.lower_bound({"a": [p]}),
        InvalidTypeError,
        "'a' must be a posterior; got",
    ),
    "optimum": (lambda p: plots.convergence(p, optimum="-1"), InvalidTypeError, "optimum must be a number"),
    "floor": (lambda p: plots.convergence(p, floor=0.0), InvalidInputError, "floor must be positive"),
    "window": (lambda p: plots.lower_bound(p, window=0), InvalidInputError, "window must be at least 1"),
    "against": (lambda p: plots.lower_bound(p, against="time"), InvalidInputError, "one of 'iterations'"),
    "axes": (lambda p: plots.lower_bound(p, ax=Figure()), InvalidTypeError, "ax must be matplotlib axes"),
    "number of axes": (
        lambda p: plots.marginals(p, axes=Figure().subplots(1, 2)),
        InvalidInputError,
        "axes must be 8, one for each panel; got 2",
    ),
    "shape of axes": (
        lambda p: plots.corner(p, ["mu", "sigma"], axes=Figure().subplots(4)),
        InvalidInputError,
        r"shape \(2, 2\).*got \(4,\)",
    ),
    "name": (lambda p: plots.marginals(p, "tau"), UnknownNameError, "called 'tau'; there are mu, sigma"),
    "no name": (lambda p: plots.marginals(p, []), InvalidInputError, "names is empty"),
    "names": (lambda p: plots.marginals(p, 3), InvalidTypeError, "names must be names"),
    "too many": (
        lambda p: plots.corner(as_posterior(Gaussian(variance=1.0, dim=13))),
        InvalidInputError,
        r"13 panels are too many to read, 12 at most: .*names=\['theta\[0\]', 'theta\[1\]'\]",
    ),
    "draws without it": (
        lambda p: plots.marginals(p, "mu", {"b": [1.0]}),
        InvalidInputError,
        "no 'mu', only b",
    ),
    "shape of draws": (lambda p: plots.marginals(p, draws=THETA[:, :3]), InvalidInputError, r"\(1000, 3\)"),
    "shape of values": (
        lambda p: plots.marginals(p, "beta", {"beta": np.zeros((9, 3))}),
        InvalidInputError,
        r"beta have shape \(9, 3\); expected \(N, 2\) or \(chains, n, 2\)",
    ),
    "no draws": (lambda p: plots.marginals(p, "mu", {"mu": []}), InvalidInputError, r"shape \(0,\)"),
    "words": (lambda p: plots.marginals(p, draws="chain"), InvalidTypeError, "draws must be a number or"),
    "unequal draws": (
        lambda p: plots.corner(p, ["mu", "rho"], {"mu": [1.0, 2.0], "rho": [0.1]}),
        InvalidInputError,
        "draws has 2 values of one parameter and 1 of another|draws has 1 values",
    ),
    "prior": (lambda p: plots.marginals(p, prior=1.0), InvalidTypeError, "prior must be a mgvbp.Gaussian"),
    "size of the prior": (
        lambda p: plots.marginals(p, prior=Gaussian(variance=1.0, dim=2)),
        InvalidInputError,
        "the prior has 2 dimensions, the posterior 7",
    ),
    "matrix": (lambda p: plots.covariance(np.eye(2)), InvalidTypeError, "expected a posterior"),
    "correlation": (lambda p: plots.covariance(p, "yes"), InvalidTypeError, "True or False"),
    "prediction": (lambda p: plots.reliability(p, [0]), InvalidTypeError, "class probabilities"),
    "volatility": (lambda p: plots.volatility_band(p), InvalidTypeError, "fitted volatility model"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(posterior, case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call(posterior)
