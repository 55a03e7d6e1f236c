"""Stan programs, by a stand-in with BridgeStan's methods; the names are in Stan's order, columns first."""

import numpy as np
import pytest
from scipy import stats

import mgvbp
from common import group_names, installed
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.interop.stan_model import arrays_of

RNG = np.random.default_rng(6)
X = RNG.normal(size=(40, 2))
Y = X @ [1.0, -0.5] + 0.8 * RNG.normal(size=40)


def log_normal(x, mean=0.0, sd=1.0):
    """The log density; SciPy's takes a tenth of a millisecond."""
    return -0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)


class StanRNG:
    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)


class Program:
    """parameters { vector[2] beta; real<lower=0> sigma; matrix[2, 3] z; }, with a transformed parameter and y_rep.

    beta ~ normal(0, 2), sigma ~ exponential(1), z ~ normal(0, 1), y ~ normal(X * beta, sigma); it rejects sigma > 50.
    """

    entries = tuple((i, j) for j in (1, 2, 3) for i in (1, 2))

    def param_unc_num(self):
        return 9

    def param_unc_names(self):
        return ["beta.1", "beta.2", "sigma", *(f"z.{i}.{j}" for i, j in self.entries)]

    def param_names(self, *, include_tp=False, include_gq=False):
        names = Program.param_unc_names(self)  # of this program they are the same
        names += ["variance"] * include_tp
        return names + [f"{name}.{n}" for name in ("y_rep", "log_lik") for n in range(1, 41)] * include_gq

    def param_constrain(self, theta, *, include_tp=False, include_gq=False, out=None, rng=None):
        values = np.array(theta, np.float64)
        assert values.shape == (9,)
        assert theta.flags["C_CONTIGUOUS"]
        values[2] = np.exp(values[2])
        parts = [values]
        if include_tp:
            parts.append([values[2] ** 2])
        if include_gq:
            assert rng is not None
            mean = X @ values[:2]
            parts += [rng.generator.normal(mean, values[2]), log_normal(Y, mean, values[2])]
        return np.concatenate(parts)

    def param_unconstrain(self, values, *, out=None):
        if values[2] <= 0.0:
            raise RuntimeError("param_unconstrain() failed with exception: sigma is not positive")
        return np.concatenate([values[:2], [np.log(values[2])], values[3:]])

    def new_rng(self, seed):
        return StanRNG(seed)

    def log_density(self, theta, *, propto=True, jacobian=True):
        assert not propto
        return self.log_density_gradient(theta, propto=propto, jacobian=jacobian)[0]

    def log_density_gradient(self, theta, *, propto=True, jacobian=True, out=None):
        beta, log_sigma, z = theta[:2], theta[2], theta[3:]
        sigma = np.exp(log_sigma)
        if sigma > 50.0:
            raise RuntimeError("log_density_gradient() failed with exception: rejected")
        residuals = Y - X @ beta
        value = log_normal(beta, 0.0, 2.0).sum() - sigma + log_sigma + log_normal(z).sum()
        value += log_normal(residuals, 0.0, sigma).sum()
        squares = residuals @ residuals / sigma**2
        return value, np.concatenate(
            [-beta / 4.0 + X.T @ residuals / sigma**2, [1.0 - sigma + squares - 40.0], -z]
        )


@pytest.fixture(scope="module")
def adapted():
    return mgvbp.from_stan(Program())


@pytest.fixture(scope="module")
def posterior(adapted):
    return mgvbp.fit(adapted)


def test_scalars_become_arrays(adapted):
    parameters = adapted.parameters
    assert parameters.shapes == {"beta": (2,), "sigma": (), "z": (2, 3)}
    assert parameters.labels == ("beta[0]", "beta[1]", "sigma", *(f"z[{n}]" for n in range(6)))
    theta = RNG.normal(size=(4, 9))
    values = parameters.constrain(theta)
    np.testing.assert_array_equal(values["z"], theta[:, 3:].reshape(4, 3, 2).swapaxes(1, 2))
    np.testing.assert_allclose(values["variance"], np.exp(2.0 * theta[:, 2]))
    assert values["y_rep"].shape == (4, 40)
    assert "log_lik" not in values
    np.testing.assert_allclose(parameters.unconstrain(values), theta)
    with pytest.raises(InvalidInputError, match=r"outside the support.*sigma is not positive"):
        parameters.unconstrain(values | {"sigma": -values["sigma"]})


def test_names():
    places = arrays_of(["a", "b.1", "c.1.1", "c.2.1", "z.real", "z.imag", "t:1.1", "t:1.2", "u.1:1.2"])
    assert {name: where.shape for name, where in places.items()} == {
        "a": (),
        "b": (1,),
        "c": (2, 1),
        "z.real": (),
        "z.imag": (),
        "t:1": (2,),
        "u.1:1.2": (),
    }
    assert places["t:1"].tolist() == [6, 7]


def test_it_is_fitted_by_gradients(posterior):
    """The regression behind it, of which the scale's posterior is near a Gaussian; z is independent of the rest."""
    assert posterior.estimator == "gradient"
    assert posterior.converged
    np.testing.assert_allclose(posterior.mean[3:], 0.0, atol=0.05)
    np.testing.assert_allclose(posterior.std[3:], 1.0, atol=0.05)
    sigma = posterior["sigma"].mean
    precision = np.eye(2) / 4.0 + X.T @ X / sigma**2
    np.testing.assert_allclose(
        posterior["beta"].mean, np.linalg.solve(precision, X.T @ Y / sigma**2), atol=0.03
    )


def test_arviz_gets_the_pointwise_likelihood(posterior):
    data = posterior.to_arviz(50, rng=1)
    assert group_names(data) == {"posterior", "sample_stats", "log_likelihood", "unconstrained_posterior"}
    draws = data["posterior"]
    expected = stats.norm.logpdf(Y, draws["beta"].to_numpy() @ X.T, draws["sigma"].to_numpy()[..., None])
    np.testing.assert_allclose(data["log_likelihood"]["log_lik"], expected)
    assert draws["z"].shape == (1, 50, 2, 3)
    assert set(draws.data_vars) == {"beta", "sigma", "z", "variance", "y_rep"}


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_loo(posterior):
    elpd = installed("arviz_stats").loo(posterior.to_arviz(500)).elpd
    assert elpd == pytest.approx(
        stats.norm.logpdf(Y, X @ posterior["beta"].mean, posterior["sigma"].mean).sum(), abs=6
    )


def test_what_the_program_rejects(adapted):
    theta = np.zeros((3, 9))
    theta[1, 2] = 10.0
    values, gradients = adapted.value_and_grad(theta)
    np.testing.assert_array_equal(np.isfinite(values), [True, False, True])
    np.testing.assert_array_equal(np.isfinite(gradients).all(axis=1), [True, False, True])
    np.testing.assert_array_equal(adapted(theta), values)
    np.testing.assert_array_equal(adapted(theta[[1, 1]]), -np.inf)
    unused = mgvbp.from_stan(Program())
    np.testing.assert_array_equal(unused(theta[1:2]), -np.inf)  # other draws may have a density
    with pytest.raises(RuntimeError, match="rejected"):
        unused(theta[[1, 1]])


def test_a_program_that_rejects_the_initial_mean():
    """As Stan's own predator and prey do, whose rates and populations are all 1 there."""

    class Shy(Program):
        def log_density_gradient(self, theta_unc, **options):
            if not np.any(theta_unc):
                raise RuntimeError("log_density_gradient() failed with exception: Location parameter is nan")
            return super().log_density_gradient(theta_unc, **options)

    assert mgvbp.fit(mgvbp.from_stan(Shy())).converged


def test_other_objects():
    with pytest.raises(InvalidTypeError, match=r"bridgestan\.StanModel.*str has no log_density, "):
        mgvbp.from_stan("model.stan")

    class Empty(Program):
        def param_names(self, **options):
            return []

    with pytest.raises(InvalidInputError, match="no parameters"):
        mgvbp.from_stan(Empty())

    class Other(Program):
        def param_unc_names(self):
            return ["a", "b"]

    with pytest.raises(InvalidInputError, match="are not those of the parameters"):
        mgvbp.from_stan(Other())
