"""Models with a ready log-likelihood: regression, classification, counts, HAR, one without derivatives.

Each is a function of θ (S, d) with names, gradients where there are some, and predictions. It may import `problem`
and what is below. Begin with `base`, which all regressions share, and `logistic`, the shortest.
"""

from mgvbp.models.base import BLOCK as BLOCK
from mgvbp.models.base import RegressionModel
from mgvbp.models.base import checked_response as checked_response
from mgvbp.models.counts import LOG_DISPERSION as LOG_DISPERSION
from mgvbp.models.counts import NegativeBinomialRegression, PoissonRegression
from mgvbp.models.har import HAR, lagged_means
from mgvbp.models.har import LAGS as LAGS
from mgvbp.models.har import NAMES as NAMES
from mgvbp.models.linear import LOG_NOISE_VARIANCE as LOG_NOISE_VARIANCE
from mgvbp.models.linear import LOG_TAIL as LOG_TAIL
from mgvbp.models.linear import LinearRegression, StudentRegression, StudentTRegression
from mgvbp.models.logistic import LogisticRegression
from mgvbp.models.multinomial import MultinomialRegression
from mgvbp.models.multinomial import contrast_precision as contrast_precision
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
    "StudentTRegression",
    "lagged_means",
]
