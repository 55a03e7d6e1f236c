"""Volatility models against the package arch, one thread each, in one process: seconds of the processor.

Kernels: log-likelihoods of 150 draws × 1,698 days, by our filters in one call, and by arch's compiled recursion
and its likelihood, called once a draw. Both see the same draws, and their values are compared.

Fits: the whole of ``model.fit(returns)``, which is posterior mode, posterior and maximum likelihood, on average over
five seeds of the search, against arch's maximum likelihood fit of the same model to the S&P 500 returns that arch ships
(5,030 days).

    python benchmarks/volatility.py

The returns are the paper's where MGVBP_DATA names the directory of its files, and simulated elsewhere.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from typing import Any

os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from arch import arch_model
from arch.data import sp500
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mgvbp import datasets
from mgvbp.volatility import EGARCH, FIGARCH, GARCH, GJR, VolatilityModel
from mgvbp.volatility.filters import (
    EgarchFilter,
    FigarchFilter,
    Filter,
    FilterData,
    GarchFilter,
    arch_startup,
)
from mgvbp.volatility.laws import LAWS
from timing import best_time

Array = NDArray[np.float64]
seconds = partial(best_time, clock=time.process_time)

DRAWS, DAYS, SEEDS = 150, 1698, 5
CASES: list[tuple[str, Filter, dict[str, object], list[float]]] = [
    ("GARCH(1,1)", GarchFilter(1, 0, 1), {"vol": "GARCH"}, [0.04, 0.2, 0.75]),
    ("GJR(1,1,1)", GarchFilter(1, 1, 1), {"vol": "GARCH", "o": 1}, [0.04, 0.1, 0.2, 0.75]),
    ("EGARCH(1,1,1)", EgarchFilter(1, 1, 1), {"vol": "EGARCH", "o": 1}, [0.0, 0.2, -0.15, 0.95]),
    ("FIGARCH(1,d,1)", FigarchFilter(1, 1), {"vol": "FIGARCH"}, [0.04, 0.2, 0.5, 0.4]),
]
"""Name, filter, what arch calls it, and where the draws are: within 5% of these coefficients."""

RANGES: dict[str, list[tuple[float, float]]] = {
    "normal": [],
    "t": [(4.0, 10.0)],
    "skewt": [(4.0, 10.0), (-0.3, 0.3)],
    "ged": [(1.2, 1.8)],
}
"""Where the draws of the shape parameters are."""

FITS: list[tuple[VolatilityModel, dict[str, object]]] = [
    (GARCH(1, 1), {}),
    (GARCH(1, 1, dist="t"), {"dist": "t"}),
    (GJR(1, 1, 1), {"o": 1}),
    (GJR(1, 1, 1, dist="t"), {"o": 1, "dist": "t"}),
    (GJR(1, 1, 1, dist="skewt"), {"o": 1, "dist": "skewt"}),
    (GJR(1, 1, 1, dist="ged"), {"o": 1, "dist": "ged"}),
    (EGARCH(1, 1, 1), {"vol": "EGARCH", "o": 1}),
    (FIGARCH(1, 1), {"vol": "FIGARCH"}),
    (GARCH(1, 2, dist="t"), {"q": 2, "dist": "t"}),  # β_1 and β_2 are hard to tell apart
]


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    returns = daily_returns()
    print(f"{DRAWS} draws × {len(returns):,} days")
    print(f"{'model':<16}{'mean':<10}{'errors':<8}{'ours':>11}{'arch':>11}{'arch / ours':>13}{'error':>10}")
    with threadpool_limits(1):
        for name, ours, theirs, center in CASES:
            for mean in ("Zero", "Constant"):
                for dist in LAWS:
                    kernel(name, ours, theirs, center, returns, mean, dist)
        prices = sp500.load()["Adj Close"]
        shipped = np.asarray(100.0 * prices.pct_change().dropna(), dtype=np.float64)
        print(f"\nwhole fits, {len(shipped):,} days")
        print(f"{'model':<16}{'errors':<8}{'ours':>11}{'arch':>11}{'ours / arch':>13}{'log-lik. - arch':>17}")
        for model, theirs in FITS:
            whole_fit(model, theirs, shipped)


def daily_returns() -> Array:
    """The training days of the paper's series, or a GARCH(1,1) path of as many."""
    if "MGVBP_DATA" in os.environ:
        return np.asarray(datasets.load("sp500").train["r"], dtype=np.float64)
    shocks = np.random.default_rng(0).standard_normal(DAYS)
    path, h = np.empty(DAYS), 1.0
    for t in range(DAYS):
        path[t] = np.sqrt(h) * shocks[t]
        h = 0.05 + 0.1 * path[t] ** 2 + 0.85 * h
    return path


def kernel(
    name: str, ours: Filter, theirs: dict[str, object], center: list[float], y: Array, mean: str, dist: str
) -> None:
    """Print one line: the time of all log-likelihoods."""
    rng = np.random.default_rng(1)
    coefficients = np.array(center)[:, None] * rng.uniform(0.95, 1.05, (len(center), DRAWS))
    b = rng.normal(0.0, 0.03, (0 if mean == "Zero" else 1, DRAWS))
    shape = [rng.uniform(*ends, DRAWS) for ends in RANGES[dist]]
    law = LAWS[dist](*shape)
    X = np.ones((len(y), len(b)))
    residuals = y - y.mean() if len(b) else y
    sample = FilterData(y, X, arch_startup(residuals))

    make: Any = arch_model
    model = make(y, mean=mean, dist=dist, rescale=False, p=1, q=1, **theirs)
    backcast, bounds = model.volatility.backcast(residuals), model.volatility.variance_bounds(residuals)
    variances = np.empty_like(y)
    parameters = np.vstack([b, coefficients, *shape]).T.copy()
    if "FIGARCH" in name:  # arch divides its ω by 1 − β, where the filter takes the quotient
        coefficients[0] /= 1.0 - coefficients[-1]

    def by_arch() -> Array:
        return np.array([-model._loglikelihood(row, variances, backcast, bounds) for row in parameters])

    def by_us() -> Array:
        return ours.log_likelihood(sample, b, coefficients, law)

    error = np.abs(by_us() - by_arch()).max()
    mine, other = seconds(by_us), seconds(by_arch)
    print(
        f"{name:<16}{mean.lower():<10}{dist:<8}{1e3 * mine:>9.3f}ms{1e3 * other:>9.2f}ms"
        f"{other / mine:>13.1f}{error:>10.0e}"
    )


def whole_fit(model: VolatilityModel, theirs: dict[str, object], y: Array) -> None:
    """Print one line: the time of a fit, and by how much our maximum of the likelihood is higher."""
    make: Any = arch_model
    result, fitted = model.fit(y), make(y, **theirs).fit(disp="off")
    mine = seconds(lambda: [model.fit(y, rng=seed) for seed in range(SEEDS)]) / SEEDS
    other = seconds(lambda: make(y, **theirs).fit(disp="off"))
    name = f"{type(model).__name__}({','.join(map(str, model.orders))})"
    print(
        f"{name:<16}{model.dist:<8}{1e3 * mine:>9.1f}ms{1e3 * other:>9.1f}ms{mine / other:>13.2f}"
        f"{result.ml.log_likelihood - fitted.loglikelihood:>17.0e}"
    )


if __name__ == "__main__":
    main()
