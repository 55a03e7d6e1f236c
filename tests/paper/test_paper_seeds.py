"""Means over seeds, their spread, and tolerances for one more run."""

import math

import numpy as np
import pytest

from mgvbp.paper.common import ROUNDING
from mgvbp.paper.seeds import LEVEL, over_seeds, quantile, tolerances


def test_means_and_spread():
    found = over_seeds([{"x": 1.0}, {"x": 2.0}, {"x": 6.0}])
    assert found == {"x": 3.0, "seeds": 3.0, "spread x": pytest.approx(math.sqrt(7.0))}
    assert over_seeds([{"x": 1.0}]) == {"x": 1.0, "seeds": 1.0}
    assert tolerances(over_seeds([{"x": 1.0}]), ["x"]) == {}


def test_a_tolerance_takes_in_as_many_runs_as_it_says():
    """One more run of eight that are normal: 99.73% are within; at 40,000 trials the standard error is 0.026%."""
    runs = np.random.default_rng(0).standard_normal((40_000, 9))
    ours, theirs = runs[:, :8], runs[:, 8]
    away = np.abs(theirs - ours.mean(axis=1)) / ours.std(axis=1, ddof=1)
    assert abs(np.mean(away <= quantile(8.0)) - LEVEL) < 4 * 0.00026
    two = np.abs(theirs - ours[:, 0]) / np.random.default_rng(1).standard_normal((40_000, 8)).std(
        axis=1, ddof=1
    )
    assert abs(np.mean(two <= quantile(8.0, of=1.0)) - LEVEL) < 4 * 0.00026


def test_tolerances_by_prefix_and_factor():
    values = {"spread mean a": 0.1, "seeds": 5.0}
    found = tolerances(values, ["a", "b"], "mean ", factor=2.0)
    assert found == {"a": pytest.approx(ROUNDING + 0.2 * quantile(5.0))}
