"""Conditional variances and log-likelihoods of the ARCH family, for many draws of the parameters at once."""

from mgvbp.volatility.filters.base import MOST_LAGS as MOST_LAGS
from mgvbp.volatility.filters.base import Filter
from mgvbp.volatility.filters.data import MEAN_ABSOLUTE as MEAN_ABSOLUTE
from mgvbp.volatility.filters.data import FilterData, StartUp, arch_startup, paper_startup
from mgvbp.volatility.filters.egarch import EgarchFilter
from mgvbp.volatility.filters.figarch import FigarchFilter
from mgvbp.volatility.filters.figarch import figarch_coefficients as figarch_coefficients
from mgvbp.volatility.filters.garch import GarchFilter

__all__ = [
    "EgarchFilter",
    "FigarchFilter",
    "Filter",
    "FilterData",
    "GarchFilter",
    "StartUp",
    "arch_startup",
    "paper_startup",
]
