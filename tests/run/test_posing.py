"""Priors as users bring them: distributions of scipy, functions, and dicts of them by name."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st

import mgvbp
from mgvbp.run.posing import as_prior
from mgvbp.transforms import Positive, Real

Y = np.random.default_rng(0).normal(2.0, 1.5, size=50)
GAUSSIAN = mgvbp.Gaussian(mean=1.0, variance=9.0, dim=2)


def of_theta(theta):
    return st.norm.logpdf(Y, theta[:, :1], np.exp(theta[:, 1:])).sum(axis=1)


def gradient(theta):
    z = (Y - theta[:, :1]) * np.exp(-theta[:, 1:])
    return np.stack([(z * np.exp(-theta[:, 1:])).sum(axis=1), (z**2 - 1.0).sum(axis=1)], axis=1)


def by_name(mu, sigma):
    return st.norm.logpdf(Y, mu[:, None], sigma[:, None]).sum(axis=1)


PARAMETERS = mgvbp.Parameters(mu=Real(), sigma=Positive())
MODEL = mgvbp.Model(by_name, PARAMETERS)
BY_NAME = {"mu": st.norm(0.0, 5.0), "sigma": st.halfnorm(scale=3.0)}


@pytest.mark.parametrize("grad", [None, gradient], ids=["values", "gradients"])
@pytest.mark.parametrize(
    "prior",
    [
        st.norm(1.0, 3.0),
        st.norm([1.0, 1.0], [3.0, 3.0]),
        st.multivariate_normal([1.0, 1.0], 9.0 * np.eye(2)),
        lambda theta: st.norm.logpdf(theta, 1.0, 3.0).sum(axis=1),
    ],
    ids=["norm", "norm by entry", "multivariate_normal", "function"],
)
def test_the_same_normal_prior_in_other_words(prior, grad):
    density = as_prior(prior, of_theta)
    theta = np.random.default_rng(1).normal(size=(20, 2))
    np.testing.assert_allclose(density.log_density(theta), GAUSSIAN.log_density(theta), rtol=1e-12)
    np.testing.assert_allclose(density.grad_log_density(theta), (1.0 - theta) / 9.0, rtol=1e-5, atol=1e-6)
    posterior = mgvbp.fit(of_theta, prior, dim=2, grad=grad)
    assert posterior.converged
    assert posterior.parameters is None
    # the bound of the best Gaussian, whose prior is known in closed form
    exact = mgvbp.fit(of_theta, GAUSSIAN, tol=0.001)
    error = 4.0 * np.hypot(exact.lower_bound_se, posterior.lower_bound_se)
    assert abs(posterior.lower_bound - exact.lower_bound) < 0.01 + error


def test_gradients_of_a_multivariate_prior_are_those_of_its_formula():
    prior = as_prior(st.multivariate_t([1.0, 0.0], [[2.0, 0.5], [0.5, 1.0]], df=4.0), of_theta)
    theta = np.random.default_rng(1).normal(size=(20, 2))
    away = theta - [1.0, 0.0]
    precision = np.linalg.inv([[2.0, 0.5], [0.5, 1.0]])
    expected = -6.0 * away @ precision / (4.0 + np.einsum("si,ij,sj->s", away, precision, away))[:, None]
    np.testing.assert_allclose(prior.grad_log_density(theta), expected, rtol=1e-5, atol=1e-6)


def test_distributions_by_name_are_the_prior_of_the_parameters():
    named = mgvbp.fit(MODEL, BY_NAME)
    same = mgvbp.fit(MODEL, PARAMETERS.prior(**BY_NAME))
    assert (named.mean == same.mean).all()
    assert named.labels == ("mu", "sigma")


def test_ask_and_tell_take_them_too():
    problem = mgvbp.Problem(MODEL, BY_NAME)
    theta = np.random.default_rng(1).normal(size=(5, 2))
    expected = PARAMETERS.prior(**BY_NAME).log_density(theta)
    np.testing.assert_array_equal(problem.prior.log_density(theta), expected)


def test_a_volatility_model_takes_them_too():
    returns = np.random.default_rng(0).normal(size=200)
    model = mgvbp.volatility.ARCH(1)
    by_name = {"mu": st.norm(0.0, 0.1), "omega": st.lognorm(1.0), "alpha[1]": st.uniform(0.0, 1.0)}
    named, same = (model.fit(returns, prior) for prior in (by_name, model.parameters.prior(**by_name)))
    assert (named.posterior.mean == same.posterior.mean).all()
    assert named.prior == same.prior


def test_a_distribution_goes_with_labels():
    posterior = mgvbp.fit(of_theta, st.norm(0.0, 5.0), labels=["mean", "log sd"])
    assert abs(posterior["mean"].mean - Y.mean()) < 0.1


@pytest.mark.parametrize("prior", [st.norm(0.0, 5.0), lambda theta: -(theta**2).sum(axis=1)])
def test_one_distribution_for_names_is_refused(prior):
    with pytest.raises(mgvbp.InvalidTypeError, match=r"prior=\{'mu': \.\.\., 'sigma': \.\.\.\}"):
        mgvbp.fit(MODEL, prior)


def test_a_dict_with_other_names_is_refused():
    for other in ("tau", 1):
        with pytest.raises(mgvbp.InvalidInputError, match=f"expected mu, sigma; got mu, {other}"):
            mgvbp.fit(MODEL, {"mu": st.norm(0.0, 5.0), other: st.halfnorm()})


def test_a_dimension_that_the_distribution_does_not_have():
    with pytest.raises(mgvbp.InvalidInputError, match="dimension is not known"):
        mgvbp.fit(of_theta, st.norm(0.0, 5.0))
    with pytest.raises(mgvbp.InvalidInputError, match="prior has 2 parameters, but 3"):
        mgvbp.fit(of_theta, st.multivariate_normal(np.zeros(2)), dim=3)


def test_a_fit_with_such_a_prior_is_resumed(tmp_path):
    path = tmp_path / "run.npz"
    whole = mgvbp.fit(MODEL, BY_NAME, checkpoint=path)
    assert (mgvbp.resume(path, MODEL, BY_NAME).mean == whole.mean).all()
    with pytest.raises(mgvbp.InvalidInputError, match="not the prior"):
        mgvbp.resume(path, MODEL, BY_NAME | {"mu": st.norm(0.0, 1.0)})
