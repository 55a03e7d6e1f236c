"""`Model`: its log-likelihood of each observation, as ArviZ gets it, and what it refuses."""

import numpy as np
import pytest
from scipy import stats

from mgvbp import Gaussian, Model, Parameters, fit
from mgvbp.errors import EvaluationError, InvalidInputError, InvalidTypeError
from mgvbp.models import LinearRegression
from mgvbp.transforms import Positive, Real

RNG = np.random.default_rng(5)
X = np.column_stack([np.ones(30), np.linspace(-1.0, 1.0, 30)])
Y = X @ [0.5, 1.0] + RNG.normal(size=30)
PARAMETERS = Parameters(beta=Real(2), sigma=Positive())
PRIOR = Gaussian(variance=5.0, dim=3)


def each(beta, sigma):
    return stats.norm.logpdf(Y, beta @ X.T, sigma[:, None])


def total(beta, sigma):
    return each(beta, sigma).sum(axis=1)


def test_arviz_has_the_log_likelihood_of_each_observation_and_the_data():
    """The numbers are those of the ready model, which is parametrised alike."""
    tree = fit(Model(total, PARAMETERS, pointwise=each, y=list(Y)), PRIOR).to_arviz(50, rng=1)
    theta = tree["unconstrained_posterior"]["theta"].to_numpy()[0]
    expected = LinearRegression(X, Y).pointwise(theta)
    np.testing.assert_allclose(tree["log_likelihood"]["y"].to_numpy()[0], expected, rtol=1e-10)
    np.testing.assert_array_equal(tree["observed_data"]["y"].to_numpy(), Y)


def test_without_the_data_there_is_no_group_of_them():
    tree = fit(Model(total, PARAMETERS, pointwise=each), PRIOR).to_arviz(50)
    assert tree["log_likelihood"]["y"].shape == (1, 50, 30)
    assert "observed_data" not in tree.children


def test_without_pointwise_there_is_none():
    assert Model(total, PARAMETERS).pointwise is None
    assert "log_likelihood" not in fit(Model(total, PARAMETERS), PRIOR).to_arviz(50).children


def test_a_subclass_may_have_its_own():
    class Own(Model):
        y = Y

        def pointwise(self, theta):
            return each(**self.parameters.constrain(theta))

    tree = fit(Own(total, PARAMETERS), PRIOR).to_arviz(50)
    assert {"log_likelihood", "observed_data"} <= set(tree.children)


def test_models_are_equal_if_their_functions_are():
    assert Model(total, PARAMETERS) == Model(total, PARAMETERS)
    assert hash(Model(total, PARAMETERS)) == hash(Model(total, PARAMETERS))
    assert Model(total, PARAMETERS, pointwise=each, y=Y) == Model(total, PARAMETERS, pointwise=each, y=Y)
    assert Model(total, PARAMETERS, pointwise=each) != Model(total, PARAMETERS)


@pytest.mark.parametrize(
    ("function", "shape"),
    [(total, r"\(4,\)"), (lambda beta, sigma: each(beta, sigma).T, r"\(30, 4\)"),
     (lambda beta, sigma: each(beta, sigma)[:, 1:], r"\(4, 29\)")],
    ids=["sums", "transposed", "one missing"],
)  # fmt: skip
def test_a_wrong_shape_is_refused(function, shape):
    model = Model(total, PARAMETERS, pointwise=function, y=Y)
    with pytest.raises(EvaluationError, match=rf"pointwise returned shape {shape}; expected \(4, 30\)"):
        model.pointwise(np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"pointwise": Y}, InvalidTypeError, "pointwise must be a function of the parameters"),
        (
            {"pointwise": lambda theta: theta},
            InvalidInputError,
            "pointwise cannot be called .*beta, sigma;",
        ),
        ({"y": Y}, InvalidInputError, "y goes with pointwise"),
    ],
    ids=["no function", "other names", "data alone"],
)
def test_what_does_not_fit_together(arguments, error, message):
    with pytest.raises(error, match=message):
        Model(total, PARAMETERS, **arguments)
