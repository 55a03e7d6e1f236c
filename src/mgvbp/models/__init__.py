"""Models with a ready log-likelihood: regression, classification, counts, HAR, one without derivatives.

Each is a function of θ (S, d) with names, gradients where there are some, and predictions. It may import `problem`
and what is below. Begin with `base`, which all regressions share, and `logistic`, the shortest.
"""

from mgvbp.models.base import BLOCK as BLOCK
from mgvbp.models.base import RegressionModel
from mgvbp.models.base import checked_response as checked_response
from mgvbp.models.counts import NegativeBinomialRegression, PoissonRegression
from mgvbp.models.har import HAR, lagged_means
from mgvbp.models.har import LAGS as LAGS
from mgvbp.models.har import NAMES as NAMES
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
