"""Models with a ready log-likelihood: regression, classification, counts, HAR, one without derivatives."""

from mgvbp.models.base import RegressionModel
from mgvbp.models.counts import NegativeBinomialRegression, PoissonRegression
from mgvbp.models.har import HAR, lagged_means
from mgvbp.models.linear import LinearRegression, StudentRegression
from mgvbp.models.logistic import LogisticRegression
from mgvbp.models.multinomial import MultinomialRegression
from mgvbp.models.reconstruction import Reconstruction

__all__ = [
    "HAR",
    "LinearRegression",
    "LogisticRegression",
    "MultinomialRegression",
    "NegativeBinomialRegression",
    "PoissonRegression",
    "Reconstruction",
    "RegressionModel",
    "StudentRegression",
    "lagged_means",
]
