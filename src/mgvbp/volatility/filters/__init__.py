"""Conditional variances and log-likelihoods of the ARCH family, for many draws of the parameters at once."""

from mgvbp.volatility.filters.base import Filter
from mgvbp.volatility.filters.data import FilterData
from mgvbp.volatility.filters.egarch import EgarchFilter
from mgvbp.volatility.filters.figarch import FigarchFilter
from mgvbp.volatility.filters.garch import GarchFilter
from mgvbp.volatility.filters.startup import StartUp, arch_startup, paper_startup

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
