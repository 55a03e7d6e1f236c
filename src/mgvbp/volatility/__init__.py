"""Bayesian volatility models of the ARCH family: fit, forecast, risk, comparison."""

from mgvbp.volatility.family import ARCH, EGARCH, FIGARCH, GARCH, GJR
from mgvbp.volatility.forecast import Forecast
from mgvbp.volatility.likelihood import Likelihood
from mgvbp.volatility.model import VolatilityModel
from mgvbp.volatility.result import VolatilityResult

__all__ = [
    "ARCH",
    "EGARCH",
    "FIGARCH",
    "GARCH",
    "GJR",
    "Forecast",
    "Likelihood",
    "VolatilityModel",
    "VolatilityResult",
]
