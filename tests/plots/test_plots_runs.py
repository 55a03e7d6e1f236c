"""The lower bound over a run, and the race of several: the lines hold the right numbers."""

from itertools import pairwise

import numpy as np
import pytest
from pictured import Q, labelled

import mgvbp
from common import as_posterior, trace
from mgvbp import Gaussian, fit, plots
from mgvbp.plots.bound import smoothed

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


def test_differences_that_do_not_matter_do_not_look_like_much():
    """A run that ends within 0.001 nats: the axis shows at least a tenth of a nat, and its numbers are the bounds."""
    posterior = fit(lambda theta: -0.5 * (theta**2).sum(axis=1) - 90.15, dim=2)
    ax = plots.lower_bound(posterior)
    low, high = ax.get_ylim()
    assert high - low > 0.099
    ax.figure.draw_without_rendering()
    shown = [float(label.get_text().replace("\N{MINUS SIGN}", "-")) for label in ax.get_yticklabels()]
    assert np.allclose(shown, ax.get_yticks())
