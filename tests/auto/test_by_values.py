"""The search by values: what it learns from its first draws."""

import numpy as np
import pytest

from mgvbp import Auto


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_the_noise_is_the_spread_of_the_first_draw_evaluated_three_times(noise):
    search = Auto().start(2)
    theta = search.ask()
    assert (theta[[-2, -1]] == theta[0]).all()
    values = -0.5 * np.square(theta).sum(axis=1)
    values[[-2, -1]] += [noise, -noise]
    search.tell(values)
    assert search.state.active.archive.noise == pytest.approx(noise)
    assert len(search.state.active.archive.values) == len(theta) - 2
