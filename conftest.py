"""One BLAS thread for the tests, whose matrices are small; who runs which; an option that moves the library's seeds."""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads its BLAS; pytest-xdist has the cores
# without bytecode each process that tests start would compile the package again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import hypothesis
import numpy as np
import pytest

pytest_plugins = ["foreign"]  # tests/foreign.py: fixtures of packages whose models are fitted


hypothesis.settings.register_profile("tests", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("tests")


def pytest_addoption(parser):
    parser.addoption(
        "--seed-shift",
        type=int,
        default=0,
        help="fits, diagnoses and samples of this process draw other numbers for the same seeds: a test that fails "
        "then was lucky, unless it compares with another process or with a seed of its own",
    )


STATES = {}
"""By module, the state of its generator ``RNG`` once it was imported."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Begin each test with the same numbers, whichever tests of its module this process has run before."""
    generator = getattr(getattr(item, "module", None), "RNG", None)
    if generator is not None:
        state = STATES.setdefault(item.module.__name__, generator.bit_generator.state)
        generator.bit_generator.state = state


def pytest_configure(config):
    if config.pluginmanager.hasplugin("cacheprovider"):  # JAX compiles what it has not compiled before
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("jax")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    # with -n each worker begins with one half of the tests, so that what the tests of a file share is made once
    if config.getoption("dist", "no") == "load":
        config.option.dist = "worksteal"
    shift = config.getoption("--seed-shift")
    if not shift:
        return
    original = np.random.default_rng

    def default_rng(seed=None):
        frame = sys._getframe(1)
        caller, doctest = frame.f_globals["__name__"], frame.f_code.co_filename.startswith("<doctest")
        data = caller.startswith(("mgvbp.datasets", "mgvbp.paper"))
        if caller.startswith("mgvbp.") and not (data or doctest) and isinstance(seed, (int, tuple, list)):
            return original([*np.atleast_1d(seed).tolist(), shift])
        return original(seed)

    np.random.default_rng = default_rng
