"""Simulated data sets: the columns, rows and split of the paper's, without a file and with a known truth.

Each is a function of nothing: its seed is fixed, so that everyone has the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mgvbp.core import Array, require
from mgvbp.datasets.paper import FEATURES, Dataset, first_rows

if TYPE_CHECKING:
    import pandas as pd


def simulate() -> Dataset:
    """Linear regression y = 1 + 0.5 x1 − x2 + 2 x3 + 0.7 e, small enough to fit at once."""
    rng = np.random.default_rng(2022)
    truth = {"intercept": 1.0, "x1": 0.5, "x2": -1.0, "x3": 2.0, "sigma": 0.7}
    X = rng.standard_normal((250, 3))
    y = _linear(X, truth) + truth["sigma"] * rng.standard_normal(250)
    frame = _frame([*FEATURES["synthetic"], "y"], [*X.T, y])
    about = "A simulated linear regression with three standard normal covariates."
    return first_rows("synthetic", frame, "y", about, truth)


def simulate_labour() -> Dataset:
    """Logistic regression on counts, standard normals and a dummy."""
    rng = np.random.default_rng(2022)
    coefficients = [0.7, -1.5, -0.1, -0.6, 0.5, -0.6, 0.6, 0.05]
    truth = dict(zip(["intercept", *FEATURES["labour"]], coefficients, strict=True))
    n = 753
    X = np.column_stack(
        [rng.poisson(0.24, n), rng.poisson(1.35, n), rng.standard_normal((n, 4)), rng.random(n) < 0.64]
    )
    y = np.where(rng.logistic(size=n) < _linear(X, truth), 1.0, 0.0)
    frame = _frame([*FEATURES["labour"], "inlf"], [*X.T, y])
    about = "A simulated logistic regression with the columns and the numbers of rows of 'labour'."
    return first_rows("synthetic-labour", frame, "inlf", about, truth)


def simulate_sp500() -> Dataset:
    """Returns of a Gaussian GARCH(1,1), h_t = ω + α r²_{t−1} + β h_{t−1}, with two noisy measures of √h."""
    rng = np.random.default_rng(2022)
    truth = {"omega": 0.05, "alpha": 0.2, "beta": 0.75}
    n = 2123
    h, r = np.empty(n), np.empty(n)
    z = rng.standard_normal(n)
    variance = truth["omega"] / (1.0 - truth["alpha"] - truth["beta"])  # the stationary one
    for t in range(n):
        h[t] = variance
        r[t] = np.sqrt(variance) * z[t]
        variance = truth["omega"] + truth["alpha"] * r[t] ** 2 + truth["beta"] * variance
    # a measure of h from 50 and one from 80 intraday returns: h χ²/k
    rv, rk = (np.sqrt(h * rng.chisquare(k, n) / k) for k in (50, 80))
    frame = _frame(["r", "rv", "rk"], [r, rv, rk], first_day="2014-01-03")
    about = "Simulated returns of a Gaussian GARCH(1,1) with the columns and the split of 'sp500'."
    return first_rows("synthetic-sp500", frame, "r", about, truth)


def simulate_har() -> Dataset:
    """A heterogeneous autoregression (Corsi 2009) of a volatility on its past day, week and month."""
    rng = np.random.default_rng(2022)
    truth = {"intercept": 1.5, "y": 0.4, "w": 0.35, "m": 0.15, "sigma": 2.0}
    n, month = 2101, 22
    t = np.full(month + n, truth["intercept"] / (1.0 - truth["y"] - truth["w"] - truth["m"]))
    X = np.empty((n, 3))
    for i, shock in enumerate(truth["sigma"] * rng.standard_normal(n)):
        past = t[i : i + month]
        X[i] = past[-1], past[-5:].mean(), past.mean()
        t[month + i] = _linear(X[i], truth) + shock
    frame = _frame(["t", *FEATURES["har"]], [t[month:], *X.T], first_day="2014-02-05")
    about = "A simulated heterogeneous autoregression with the columns and the split of 'har'."
    return first_rows("synthetic-har", frame, "t", about, truth)


def simulate_istanbul() -> Dataset:
    """Linear regression of one index on seven that share a world factor."""
    rng = np.random.default_rng(2022)
    coefficients = [0.001, 0.1, 0.2, -0.3, -0.2, -0.1, 0.9, 0.9, 0.014]
    truth = dict(zip(["intercept", *FEATURES["istanbul"], "sigma"], coefficients, strict=True))
    n = 536
    X = 0.01 * (rng.standard_normal((n, 1)) + rng.standard_normal((n, 7)))
    y = _linear(X, truth) + truth["sigma"] * rng.standard_normal(n)
    lira = y + 0.005 * rng.standard_normal(n)
    frame = _frame(["ISE", *FEATURES["istanbul"], "ISE_TL"], [y, *X.T, lira], first_day="2009-01-05")
    about = "A simulated linear regression with the columns and the split of 'istanbul'."
    return first_rows("synthetic-istanbul", frame, "ISE", about, truth)


def _linear(X: Array, truth: dict[str, float]) -> Array:
    """The linear predictor, with the intercept first in ``truth`` and sigma, if any, last."""
    coefficients = np.array([value for name, value in truth.items() if name != "sigma"])
    return np.asarray(coefficients[0] + X @ coefficients[1:])


def _frame(names: list[str], columns: list[Array], first_day: str | None = None) -> pd.DataFrame:
    pandas = require("pandas", "experiments")
    index = first_day and pandas.bdate_range(first_day, periods=len(columns[0]), name="date")
    frame: pd.DataFrame = pandas.DataFrame(np.column_stack(columns), index, names)
    return frame
