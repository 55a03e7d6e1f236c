"""The same draws together again, then in other company."""

import math

import numpy as np

from mgvbp.auto.trial.company import Company

theta, values = np.arange(10.0).reshape(5, 2), np.arange(5.0)


def test_the_same_points_come_again_and_then_every_second_is_another():
    company = Company(theta, values)
    np.testing.assert_array_equal(company.points, theta)
    others = company._replace(changed=True).points
    assert len(others) == 4, "an even number: in reverse no place that is kept comes to be one that is kept"
    np.testing.assert_array_equal(others, theta[[0, 0, 2, 0]])


def test_what_counts_as_a_change():
    company = Company(theta, values)
    assert company.change(values + 0.001) == 0.0
    assert company.change(np.array([0.0, 1.5, 2.0, 1.0, 4.0])) == 2.0
    changed = company._replace(changed=True)
    assert changed.change(np.array([0.0, 9.0, 2.0, 9.0])) == 0.0
    assert changed.change(np.array([0.0, 9.0, 5.0, 9.0])) == 3.0
    lost = np.where(values == 2.0, -np.inf, values)
    assert Company(theta, lost).change(lost) == 0.0
    assert company.change(lost) == math.inf
