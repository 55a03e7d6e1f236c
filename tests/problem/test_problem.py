"""A problem's way to the user's function: what is said of an error that it raises."""

import numpy as np
import pytest

from mgvbp import Gaussian, Problem


@pytest.mark.parametrize("vectorized", [True, False])
def test_advice_on_one_draw_at_a_time_is_for_functions_of_all(vectorized):
    def broken(theta):
        raise ArithmeticError("no value today")

    problem = Problem(broken, Gaussian(variance=1.0, dim=2), vectorized=vectorized)
    with pytest.raises(ArithmeticError, match="no value today") as caught:
        problem.evaluate(np.zeros((3, 2)))
    (note,) = caught.value.__notes__
    assert ("say vectorized=False" in note) == vectorized
    assert caught.value.theta.shape == ((3, 2) if vectorized else (2,))
