"""scikit-learn estimators whose predictions average over the posterior (``pip install 'mgvbp[sklearn]'``).

It sees of other packages what these show at their top. Begin with `linear`, where the posterior is known in closed
form, and `base`, what all estimators share. `classifier` averages predictions by quadrature (`integrals`), `student`
and `negative_binomial` have parameters that all rows share (`shared`), and `evidence` chooses the prior's variance.
"""

from importlib.util import find_spec

from mgvbp.errors import MissingDependencyError

if find_spec("sklearn") is None:  # the package of that name, not this one
    raise MissingDependencyError("mgvbp.sklearn needs the package scikit-learn: pip install 'mgvbp[sklearn]'")

from mgvbp.sklearn.classifier import BayesianLogisticRegression
from mgvbp.sklearn.linear import BayesianLinearRegression
from mgvbp.sklearn.negative_binomial import BayesianNegativeBinomialRegressor
from mgvbp.sklearn.poisson import BayesianPoissonRegressor
from mgvbp.sklearn.student import BayesianStudentTRegression

__all__ = [
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "BayesianNegativeBinomialRegressor",
    "BayesianPoissonRegressor",
    "BayesianStudentTRegression",
]
