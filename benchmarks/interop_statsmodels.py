"""Seconds from a model of statsmodels or arch to its posterior, beside those of its own maximum likelihood.

    python benchmarks/interop_statsmodels.py            # all rows
    python benchmarks/interop_statsmodels.py nile logit # some of them

CPU seconds of this process; the models are estimated once before, so that no import is timed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import arch
import arch.data.sp500
import numpy as np
import statsmodels.api as sm

import mgvbp


def nile() -> Any:
    return sm.tsa.UnobservedComponents(np.asarray(sm.datasets.nile.load_pandas().data["volume"]), "lltrend")


def co2() -> Any:
    series = sm.datasets.co2.load_pandas().data["co2"].resample("MS").mean().ffill()
    return sm.tsa.SARIMAX(series, order=(1, 1, 1), seasonal_order=(0, 1, 1, 12))


def switching() -> Any:
    gdp = sm.datasets.macrodata.load_pandas().data["realgdp"]
    growth = 100.0 * np.diff(np.log(gdp))
    return sm.tsa.MarkovRegression(growth, k_regimes=2, switching_variance=True)


def logit() -> Any:
    data = sm.datasets.spector.load_pandas()
    return sm.Logit(data.endog, sm.add_constant(data.exog))


def visits() -> Any:
    data = sm.datasets.randhie.load_pandas()
    return sm.NegativeBinomial(data.endog, sm.add_constant(data.exog))


def longley() -> Any:
    data = sm.datasets.longley.load_pandas()
    return sm.OLS(data.endog, sm.add_constant(data.exog))


def sp500() -> Any:
    returns = 100.0 * arch.data.sp500.load()["Adj Close"].pct_change().dropna()
    return arch.arch_model(returns, vol="EGARCH", o=1, dist="skewt")


ROWS: dict[str, Callable[[], Any]] = {
    row.__name__: row for row in (nile, co2, switching, logit, visits, longley, sp500)
}


def estimated(model: Any) -> None:
    """Maximum likelihood with standard errors, as the package does it by default."""
    if isinstance(model, arch.univariate.base.ARCHModel):
        model.fit(disp="off")
    else:
        model.fit(**({} if isinstance(model, sm.OLS) else {"disp": 0}))


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def main(names: list[str]) -> None:
    print(f"{'model':<12}{'d':>3}{'ML':>8}{'posterior':>11}{'forecast':>10}{'evaluations':>13}  converged")
    for name in names or list(ROWS):
        build = ROWS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimated(build())
            ml, _ = seconds(lambda: estimated(build()))  # noqa: B023
            make = mgvbp.from_arch if name == "sp500" else mgvbp.from_statsmodels
            ours, posterior = seconds(lambda: mgvbp.fit(make(build())))  # noqa: B023
            ahead = float("nan")
            if name in ("nile", "co2", "sp500"):
                ahead, _ = seconds(lambda: posterior.forecast(24))  # noqa: B023
        print(
            f"{name:<12}{posterior.dim:>3}{ml:>8.2f}{ours:>11.2f}{ahead:>10.2f}{posterior.n_evaluations:>13,}"
            f"  {posterior.converged}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
