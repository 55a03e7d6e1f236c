"""`Model`: its density without a prior, its log-likelihood of each observation for ArviZ, and what it refuses."""

import numpy as np
import pytest
from scipy import stats

from common import FAST, case, group_names
from mgvbp import Gaussian, Model, Parameters, Problem, fit, resume
from mgvbp.errors import EvaluationError, InvalidInputError, InvalidTypeError
from mgvbp.models import LinearRegression
from mgvbp.transforms import GarchRegion, Interval, Ordered, Positive, Real, Simplex

RNG = np.random.default_rng(5)
X = np.column_stack([np.ones(30), np.linspace(-1.0, 1.0, 30)])
Y = X @ [0.5, 1.0] + RNG.normal(size=30)
PARAMETERS = Parameters(beta=Real(2), sigma=Positive())
PRIOR = Gaussian(variance=5.0, dim=3)


def each(beta, sigma):
    return stats.norm.logpdf(Y, beta @ X.T, sigma[:, None])


def total(beta, sigma):
    return each(beta, sigma).sum(axis=1)


# --- without a prior ------------------------------------------------------------------------------------

GAMMA = Model(lambda v: 2.0 * np.log(v) - v, Parameters(v=Positive()))  # Gamma(3, 1)
ALPHA = np.array([2.0, 3.0, 5.0])


def test_without_a_prior_the_function_is_the_density_of_the_values():
    """E_q[v] is the mean of the target: the gradient of the bound in μ is zero, and is linear in E_q[v] for all three.

    As a density of θ, Gamma(a, 1) is exp(aθ − v), Beta(a, b) is vᵃ(1 − v)ᵇ, Dirichlet(α) is ∏ vᵢ^αᵢ.
    """
    beta = Model(lambda v: np.log(v) + 3.0 * np.log1p(-v), Parameters(v=Interval(0.0, 1.0)))
    dirichlet = Model(lambda v: np.log(v) @ (ALPHA - 1.0), Parameters(v=Simplex(3)))
    for model, mean in ((GAMMA, 3.0), (beta, 2.0 / 6.0), (dirichlet, ALPHA / ALPHA.sum())):
        for tolerance, options in ((0.02, {"tol": 1e-4}), (0.1, {"method": FAST, "num_draws": 300})):
            with case(model.parameters, options):
                np.testing.assert_allclose(fit(model, **options)["v"].mean, mean, rtol=tolerance)


def test_without_a_prior_the_gradient_has_that_of_the_log_jacobian():
    """With v = exp(θ) the optimum has E_q[v] = 3 and a variance of θ of 1/3."""
    by_hand = fit(GAMMA, grad=lambda theta: 2.0 - np.exp(theta), tol=1e-3)
    assert by_hand.estimator == "gradient"
    np.testing.assert_allclose(by_hand["v"].mean, 3.0, rtol=0.1)
    np.testing.assert_allclose(by_hand.covariance, 1.0 / 3.0, rtol=0.15)


def test_without_a_prior_in_jax():
    jnp = pytest.importorskip("jax.numpy")
    model = Model(lambda v: jnp.log(v) @ (ALPHA - 1.0), Parameters(v=Simplex(3)))
    posterior = fit(model, grad="jax", tol=1e-3)
    assert posterior.estimator == "gradient"
    np.testing.assert_allclose(posterior["v"].mean, ALPHA / ALPHA.sum(), rtol=0.1)


def test_a_flat_prior_is_the_log_jacobian():
    names = Parameters({
        "b": Real(2), "o": Ordered(2), "p": Simplex(3), "s": Positive(2), ("alpha", "beta"): GarchRegion(1, 0, 1),
    })  # fmt: skip
    theta = np.random.default_rng(0).normal(size=(5, names.dim))
    prior = Problem(Model(lambda **v: v["b"][:, 0], names)).prior
    np.testing.assert_array_equal(prior.log_density(theta), names.log_jacobian(theta))
    step = 1e-5 * np.eye(names.dim)
    for row, slopes in zip(theta, prior.grad_log_density(theta), strict=True):
        by_hand = (names.log_jacobian(row + step) - names.log_jacobian(row - step)) / 2e-5
        np.testing.assert_allclose(slopes, by_hand, atol=1e-8)
    assert Problem(Model(lambda b: b[:, 0], Parameters(b=Real(2)))).prior is None


def test_a_fit_without_a_prior_is_resumed_without_one(tmp_path):
    first = fit(GAMMA, checkpoint=tmp_path / "run.npz")
    assert resume(tmp_path / "run.npz", GAMMA).lower_bound == first.lower_bound
    elsewhere = Model(GAMMA.function, Parameters(v=Interval(0.0, 100.0)))
    with pytest.raises(InvalidInputError, match="its log density has other values"):
        resume(tmp_path / "run.npz", elsewhere)


# --- the log-likelihood of each observation -------------------------------------------------------------


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
    assert "observed_data" not in group_names(tree)


def test_without_pointwise_there_is_none():
    assert Model(total, PARAMETERS).pointwise is None
    assert "log_likelihood" not in group_names(fit(Model(total, PARAMETERS), PRIOR).to_arviz(50))


def test_a_subclass_may_have_its_own():
    class Own(Model):
        y = Y

        def pointwise(self, theta):
            return each(**self.parameters.constrain(theta))

    tree = fit(Own(total, PARAMETERS), PRIOR).to_arviz(50)
    assert {"log_likelihood", "observed_data"} <= group_names(tree)


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
