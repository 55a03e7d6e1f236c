"""Copies of records are those of `dataclasses.replace`."""

import dataclasses

import numpy as np
import pytest

from mgvbp.auto.state import Phase, SearchState
from mgvbp.core.records import replace
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive

Q = Gaussian(variance=1.0, dim=2)
STATE = SearchState((1,), Q, Q, Archive.empty(2), Phase.SURVEY, 1.0, 8.0, 8, 100)


def test_a_copy_has_the_changes_and_the_rest():
    copy = replace(STATE, want=3, steep=np.ones(2))
    expected = dataclasses.replace(STATE, want=3, steep=copy.steep)
    assert type(copy) is SearchState
    assert vars(copy) == vars(expected)
    assert STATE.want == 8
    with pytest.raises(dataclasses.FrozenInstanceError):
        copy.want = 4


def test_a_field_that_does_not_exist():
    with pytest.raises(TypeError, match="SearchState has no wanted"):
        replace(STATE, wanted=3)
