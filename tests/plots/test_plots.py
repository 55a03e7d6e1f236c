"""All pictures: on the axes that are given, with labels of any kind; what cannot be drawn is refused."""

import subprocess
import sys

import numpy as np
import pandas
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pictured import HOSTILE, THETA, Q, labelled

from common import as_posterior, case, random_covariance
from mgvbp import Gaussian, PredictiveDraws, plots
from mgvbp.errors import InvalidInputError, InvalidTypeError, UnknownNameError
from mgvbp.networks import Prediction
from mgvbp.plots.canvas import shown

# --- pictures that are drawn elsewhere ----------------------------------------------------------------


def test_reliability():
    p = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=200)
    prediction, y = Prediction(np.log(p), np.zeros(200)), np.arange(200) % 3
    given = Figure().subplots()
    assert plots.reliability(prediction, y, bins=5, ax=given) is given
    table = prediction.reliability(y, 5)
    np.testing.assert_array_equal(labelled(given, "accuracy")[1], table.accuracy[table.count > 0])
    assert isinstance(plots.reliability(prediction, y), Axes)


def test_predictive():
    draws = np.random.default_rng(0).normal(size=(400, 50))
    y = np.where(np.arange(50) < 10, 9.0, 0.0)
    given = Figure().subplots()
    prediction = PredictiveDraws(draws, index=pandas.period_range("2001-01", periods=50, freq="M"))
    assert plots.predictive(prediction, y, ax=given) is given
    assert given.get_title(loc="left") == "The 90% band holds 80% of 50 observations"
    np.testing.assert_array_equal(labelled(given, "mean")[1], draws.mean(axis=0))
    assert "400 draws" in plots.predictive(PredictiveDraws(draws, index=["a"] * 50)).get_title(loc="left")


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


# --- what is wrong ------------------------------------------------------------------------------------


BAD = [
    (lambda p: plots.marginals(Q), InvalidTypeError, "expected a posterior"),
    (lambda p: plots.marginals(p, "tau"), UnknownNameError, "called 'tau'; there are mu, sigma"),
    (lambda p: plots.marginals(p, []), InvalidInputError, "names is empty"),
    (lambda p: plots.marginals(p, 3), InvalidTypeError, "names must be names"),
    (
        lambda p: plots.marginals(p, axes=Figure().subplots(1, 2)),
        InvalidInputError,
        "axes must be 8, .*got 2",
    ),
    (lambda p: plots.marginals(p, "mu", {"b": [1.0]}), InvalidInputError, "no 'mu', only b"),
    (lambda p: plots.marginals(p, "mu", {"mu": []}), InvalidInputError, r"shape \(0,\)"),
    (lambda p: plots.marginals(p, draws=THETA[:, :3]), InvalidInputError, r"\(1000, 3\)"),
    (
        lambda p: plots.marginals(p, "beta", {"beta": np.zeros((9, 3))}),
        InvalidInputError,
        r"beta have shape \(9, 3\); expected \(N, 2\) or \(chains, n, 2\)",
    ),
    (lambda p: plots.marginals(p, draws="chain"), InvalidTypeError, "draws must be a number or"),
    (lambda p: plots.marginals(p, prior=1.0), InvalidTypeError, "prior must be a mgvbp.Gaussian"),
    (
        lambda p: plots.marginals(p, prior=Gaussian(variance=1.0, dim=2)),
        InvalidInputError,
        "has 2 dimensions",
    ),
    (
        lambda p: plots.corner(p, ["mu", "sigma"], axes=Figure().subplots(4)),
        InvalidInputError,
        r"shape \(2, 2\).*got \(4,\)",
    ),
    (
        lambda p: plots.corner(as_posterior(Gaussian(variance=1.0, dim=13))),
        InvalidInputError,
        r"13 panels are too many to read, 12 at most: .*names=\['theta\[0\]', 'theta\[1\]'\]",
    ),
    (
        lambda p: plots.corner(p, ["mu", "rho"], {"mu": [1.0, 2.0], "rho": [0.1]}),
        InvalidInputError,
        "draws has 2 values of one parameter and 1 of another|draws has 1 values",
    ),
    (lambda p: plots.lower_bound(Q), InvalidTypeError, "a posterior, or a dict"),
    (lambda p: plots.lower_bound({}), InvalidInputError, "is empty"),
    (lambda p: plots.lower_bound({"a": [p]}), InvalidTypeError, "'a' must be a posterior; got"),
    (lambda p: plots.lower_bound(p, window=0), InvalidInputError, "window must be at least 1"),
    (lambda p: plots.lower_bound(p, against="time"), InvalidInputError, "one of 'iterations'"),
    (lambda p: plots.lower_bound(p, ax=Figure()), InvalidTypeError, "ax must be matplotlib axes"),
    (lambda p: plots.convergence({}), InvalidInputError, "is empty"),
    (lambda p: plots.convergence([p]), InvalidTypeError, "or a dict of name to posterior or a list"),
    (lambda p: plots.convergence({"a": []}), InvalidInputError, "no posteriors under 'a'"),
    (lambda p: plots.convergence({"a": [Q]}), InvalidTypeError, "'a' must be a posterior"),
    (lambda p: plots.convergence(p, optimum="-1"), InvalidTypeError, "optimum must be a number"),
    (lambda p: plots.convergence(p, floor=0.0), InvalidInputError, "floor must be positive"),
    (lambda p: plots.covariance(np.eye(2)), InvalidTypeError, "expected a posterior"),
    (lambda p: plots.covariance(p, "yes"), InvalidTypeError, "True or False"),
    (lambda p: plots.reliability(p, [0]), InvalidTypeError, "class probabilities"),
    (lambda p: plots.volatility_band(p), InvalidTypeError, "fitted volatility model"),
    (lambda p: plots.predictive(p), InvalidTypeError, "a PredictiveDraws; got"),
    (lambda p: plots.predictive(PredictiveDraws(np.zeros((2, 3, 2)))), InvalidInputError, "choose one"),
    (
        lambda p: plots.predictive(PredictiveDraws(np.zeros((2, 3))), [1.0]),
        InvalidInputError,
        r"expected \(3,\)",
    ),
]


def test_bad_input(posterior):
    for call, error, message in BAD:
        with case(message), pytest.raises(error, match=message):
            call(posterior)
