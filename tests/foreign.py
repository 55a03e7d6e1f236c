"""Fixtures of the packages whose models are fitted, as a plugin; a test is skipped where its package is missing."""

import pytest

from common import installed


@pytest.fixture(scope="session")
def numpyro():
    installed("numpyro.infer")
    return installed("numpyro")


@pytest.fixture(scope="session")
def dist(numpyro):
    return installed("numpyro.distributions")


@pytest.fixture(scope="session")
def pm():
    pm, pytensor = installed("pymc"), installed("pytensor")
    # for PyMC's own functions: PyTensor's C compiler takes a minute for each, its Python code a second
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"):
        yield pm


@pytest.fixture(scope="session")
def torch():
    return installed("torch")
