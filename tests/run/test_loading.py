"""A posterior that comes back from a file, with its model and without."""

import numpy as np
import pytest
from scipy import stats

import mgvbp
from common import installed
from mgvbp.errors import InvalidInputError
from mgvbp.transforms import Positive, Real

Y = stats.norm(1.0, 2.0).rvs(30, random_state=0)
PARAMETERS = mgvbp.Parameters(mu=Real(), sigma=Positive())
PRIOR = {"mu": stats.norm(0.0, 5.0), "sigma": stats.halfnorm(scale=5.0)}


def log_likelihood(mu, sigma):
    return stats.norm.logpdf(Y, mu[:, None], sigma[:, None]).sum(axis=1)


def saved(posterior, folder):
    posterior.save(folder / "p.npz")
    return folder / "p.npz"


def test_with_its_model_it_does_what_it_did(tmp_path):
    model = mgvbp.Model(log_likelihood, PARAMETERS)
    posterior = mgvbp.fit(model, PRIOR)
    path = saved(posterior, tmp_path)
    again = mgvbp.load(path, model, PRIOR)
    theta = posterior.sample(50, rng=0)
    expected = log_likelihood(theta[:, 0], np.exp(theta[:, 1])) + PARAMETERS.prior(**PRIOR).log_density(theta)
    assert again.to_arviz(50, 0)["sample_stats"]["lp"].values[0] == pytest.approx(expected)
    assert again.diagnose().elbo == pytest.approx(posterior.lower_bound, abs=0.1)
    assert again.mcmc(draws=50)["posterior"]["sigma"].shape == (4, 50)
    for alone in (lambda p: p.diagnose(), lambda p: p.mcmc(), lambda p: p.predict(), mgvbp.nested):
        with pytest.raises(InvalidInputError, match=r"mgvbp\.load\(path, log_likelihood, prior\)"):
            alone(mgvbp.load(path))


def test_a_model_of_another_package_has_its_names_again(tmp_path):
    sm = installed("statsmodels.api")
    model = sm.tsa.UnobservedComponents(Y, "llevel")
    posterior = mgvbp.fit(model)
    path = saved(posterior, tmp_path)
    again = mgvbp.load(path, model)
    assert again["sigma2.level"].mean == posterior["sigma2.level"].mean
    assert again.summary() == posterior.summary() != mgvbp.load(path).summary()
    assert again.forecast(1).mean == posterior.forecast(1).mean


def test_the_gradient_of_a_ready_model_comes_back(tmp_path):
    X = stats.norm.rvs(size=(80, 3), random_state=1)
    model = mgvbp.models.LogisticRegression(X, (X[:, 0] > 0.1).astype(int))
    posterior = mgvbp.fit(model, grad=model.gradient)
    again = mgvbp.load(saved(posterior, tmp_path), model)
    assert again.mcmc(draws=20).attrs["sampler"] == posterior.mcmc(draws=20).attrs["sampler"] == "NUTS"
    assert again.predict(X[:5]).mean == pytest.approx(posterior.predict(X[:5]).mean)


def test_another_model_is_refused(tmp_path):
    path = saved(mgvbp.fit(mgvbp.Model(log_likelihood, PARAMETERS), PRIOR), tmp_path)
    other = mgvbp.Model(lambda mu, tau: log_likelihood(mu, tau), mgvbp.Parameters(mu=Real(), tau=Positive()))
    with pytest.raises(InvalidInputError, match="has the parameters mu, sigma, and this model mu, tau"):
        mgvbp.load(path, other)
    with pytest.raises(InvalidInputError, match="give its log_likelihood too"):
        mgvbp.load(path, prior=PRIOR)
    with pytest.raises(InvalidInputError, match="the prior has 3 parameters"):
        mgvbp.load(path, lambda theta: -(theta**2).sum(axis=1), mgvbp.Gaussian(variance=1.0, dim=3))
