"""BLAS threads: one for the algebra of a search, and as many as before for everything else."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import mgvbp
from mgvbp.auto.searches.rules import Rules
from mgvbp.core.threads import one_thread


def threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two():
    """OpenBLAS takes more threads than there are cores, if it is told to."""
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("this BLAS cannot have two threads")
        yield


@pytest.mark.parametrize("family", ["full", "mixture"])
def test_the_function_keeps_its_threads(two, monkeypatch, family):
    during, decide = [], Rules.decide

    def noted(self, state):
        during.append(threads())
        return decide(self, state)

    def log_density(theta):
        assert threads() == {2}
        return -0.5 * np.square(theta).sum(axis=1)

    monkeypatch.setattr(Rules, "decide", noted)
    mgvbp.fit(log_density, dim=2, family=family)
    assert len(during) > 1
    assert during.count({1}) == len(during)
    assert threads() == {2}


def test_fits_that_overlap_leave_the_threads_as_they_were(two):
    """One begins, another begins, the first ends, the other ends: as two threads of Python may."""
    first, second = one_thread(2), one_thread(3)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads() == {1}
    second.__exit__(None, None, None)
    assert threads() == {2}
