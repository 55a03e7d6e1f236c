"""Bayesian volatility models of the ARCH family: fit, forecast, risk, comparison, backtests.

It sees of other packages what these show at their top. Begin with `family`, the models by name, and `result`, what
a fit returns; `filters` has the compiled recursions for the conditional variance, whose draws lie in SIMD lanes.
"""

from mgvbp.volatility.backtest import Backtest, backtest
from mgvbp.volatility.comparison import Comparison, compare
from mgvbp.volatility.family import ARCH, EGARCH, FIGARCH, GARCH, GJR
from mgvbp.volatility.forecast import Forecast
from mgvbp.volatility.forecast import checked_horizon as checked_horizon  # for the command
from mgvbp.volatility.har import HAR, HARForecast, HARResult
from mgvbp.volatility.likelihood import Likelihood
from mgvbp.volatility.model import VolatilityModel
from mgvbp.volatility.reading import default_returns, read_returns
from mgvbp.volatility.report import risk_table, write_report
from mgvbp.volatility.result import VolatilityResult
from mgvbp.volatility.scores import christoffersen, kupiec, mse, qlike

__all__ = [
    "ARCH",
    "EGARCH",
    "FIGARCH",
    "GARCH",
    "GJR",
    "HAR",
    "Backtest",
    "Comparison",
    "Forecast",
    "HARForecast",
    "HARResult",
    "Likelihood",
    "VolatilityModel",
    "VolatilityResult",
    "backtest",
    "christoffersen",
    "compare",
    "default_returns",
    "kupiec",
    "mse",
    "qlike",
    "read_returns",
    "risk_table",
    "write_report",
]
