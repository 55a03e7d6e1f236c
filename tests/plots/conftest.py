"""A posterior to draw, and an end to the figures of pyplot after each test."""

import sys

import pytest
from pictured import PARAMETERS, Q

from common import as_posterior


@pytest.fixture
def posterior():
    return as_posterior(Q, PARAMETERS)


@pytest.fixture(autouse=True)
def _close():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
