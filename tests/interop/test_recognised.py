"""Models of other packages, given to `fit` as they are."""

from functools import partial

import numpy as np
import pytest

import mgvbp
from common import installed
from mgvbp.errors import InvalidInputError, InvalidTypeError


def test_a_model_and_its_results_are_what_their_function_makes_of_them():
    sm = installed("statsmodels.api")
    data = sm.datasets.spector.load_pandas()
    model = sm.Logit(data.endog, sm.add_constant(data.exog))
    expected = mgvbp.fit(mgvbp.from_statsmodels(model))
    for given in (model, model.fit(disp=0)):
        posterior = mgvbp.fit(given)
        assert posterior.parameters.names == ("const", "GPA", "TUCE", "PSI")
        np.testing.assert_allclose(posterior.mean, expected.mean, atol=0.05)


def test_a_model_of_arch():
    arch = installed("arch")
    returns = np.random.default_rng(0).standard_t(6, 400)
    posterior = mgvbp.fit(arch.arch_model(returns, vol="ARCH", p=1, rescale=False))
    assert posterior.parameters.names == ("mu", "omega", "alpha[1]")
    assert posterior.forecast(3).mean.shape == (3,)


def test_a_model_of_pymc_brings_its_prior(pm):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", mu, 1.0, observed=[0.5, 1.5])
    posterior = mgvbp.fit(model)
    assert posterior.mean[0] == pytest.approx(2.0 / 3.0, abs=1e-4)
    with pytest.raises(InvalidInputError, match="prior"):
        mgvbp.fit(model, mgvbp.Gaussian(variance=1.0, dim=1))


def test_a_numpyro_model_that_has_its_data():
    numpyro, dist = installed("numpyro"), installed("numpyro.distributions")
    y = np.array([0.5, 1.5])

    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)

    for given in (lambda: model(y), partial(model, y), partial(model, y=y)):
        posterior = mgvbp.fit(given)
        assert posterior.parameters.names == ("mu",)
        assert posterior.mean[0] == pytest.approx(2.0 / 3.0, abs=1e-4)
    with pytest.raises(InvalidInputError, match=r"mgvbp\.from_numpyro\(model, \*data\)"):
        mgvbp.fit(model)


def test_what_no_function_takes_is_refused():
    sm = installed("statsmodels.api")
    with pytest.raises(InvalidInputError, match="QuantReg has no likelihood"):
        mgvbp.fit(sm.QuantReg([1.0, 2.0, 4.0], [[1.0], [1.0], [1.0]]))
    with pytest.raises(InvalidTypeError, match=r"must be a function of an \(S, d\) array"):
        mgvbp.fit("y ~ x")
