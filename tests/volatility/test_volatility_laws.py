"""The laws of the errors against the distributions of `arch` and integrals; fits with them against `arch`'s."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from mgvbp.errors import InvalidInputError
from mgvbp.volatility import GARCH, GJR, compare
from mgvbp.volatility.laws import GED, LAWS, Normal, SkewT, StudentT
from mgvbp.volatility.risk import mixture_quantile, mixture_tail_mean

SHAPES = {
    "normal": [()],
    "t": [(2.1,), (8.0,), (300.0,)],
    "skewt": [(2.3, -0.6), (8.0, 0.3), (250.0, -0.05), (5.0, 0.0)],
    "ged": [(1.05,), (1.5,), (2.0,), (9.0,)],
}
CASES = [(dist, shape) for dist, shapes in SHAPES.items() for shape in shapes]


def law_of(dist, shape):
    return LAWS[dist](*map(np.float64, shape))


def theirs(dist):
    univariate = pytest.importorskip("arch.univariate")
    kinds = {"normal": "Normal", "t": "StudentsT", "skewt": "SkewStudent", "ged": "GeneralizedError"}
    return getattr(univariate, kinds[dist])()


@pytest.mark.parametrize(("dist", "shape"), CASES)
def test_laws_are_those_of_arch(dist, shape):
    law, other = law_of(dist, shape), theirs(dist)
    z, p = np.linspace(-7.0, 7.0, 29), np.array([1e-6, 0.01, 0.2, 0.5, 0.7, 0.99])
    density = other.loglikelihood(np.array(shape), z, np.ones_like(z), individual=True)
    np.testing.assert_allclose(law.log_density(z), density, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(law.cdf(z), other.cdf(z, np.array(shape)), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(law.quantile(p), other.ppf(p, np.array(shape)), rtol=1e-9, atol=1e-12)
    below = [other.partial_moment(1, x, np.array(shape)) for x in z]
    np.testing.assert_allclose(law.partial_mean(z), below, rtol=1e-7, atol=1e-12)
    assert set(law.transforms) == set(other.parameter_names())
    bounds = [tuple(map(float, transform.bounds)) for transform in law.transforms.values()]
    assert bounds == [tuple(map(float, ends)) for ends in other.bounds(z)]


@pytest.mark.parametrize(("dist", "shape"), CASES)
def test_mean_0_variance_1_and_samples_of_it(dist, shape):
    """Kolmogorov–Smirnov at level 1e-4; second moments by integrals, where the tail lets `quad` find them."""
    law = law_of(dist, shape)
    moments = [
        quad(lambda z, k=k: z**k * np.exp(law.log_density(z)), -np.inf, np.inf, limit=400)[0]
        for k in range(3)
    ]
    heavy = bool(shape) and shape[0] < 2.5 and dist != "ged"
    np.testing.assert_allclose(moments, [1.0, 0.0, 1.0], atol=0.05 if heavy else 1e-7)
    draws = law.sample((4000, 1), np.random.default_rng(5))
    assert kstest(draws[:, 0], law.cdf).pvalue > 1e-4
    z = np.linspace(-3.0, 3.0, 7)
    flipped = law.mirrored(np.array(True))
    np.testing.assert_allclose(flipped.log_density(z), law.log_density(-z), rtol=1e-12)


@pytest.mark.parametrize(
    "law",
    [SkewT(np.array([4.0, 9.0]), np.array([-0.4, 0.2])), GED(np.array([1.2, 1.9]))],
    ids=["skewt", "ged"],
)
def test_mixtures_of_skewed_and_of_exponential_tails(law):
    mu, sigma = np.array([-0.3, 0.4]), np.array([0.5, 2.0])
    for p in (1e-5, 0.05, 0.6, 0.99):
        q = float(mixture_quantile(p, mu, sigma, law))
        assert law.cdf((q - mu) / sigma).mean() == pytest.approx(p, rel=1e-9)

        def f(x):
            return x * np.mean(np.exp(law.log_density((x - mu) / sigma)) / sigma)

        mean = quad(f, -60.0, q, points=[x for x in (-5.0, -1.0, 0.0) if x < q], limit=300)[0]
        mean += quad(f, -np.inf, -60.0)[0]
        assert mixture_tail_mean(p, mu, sigma, law) == pytest.approx(mean / p, rel=1e-5)


def test_special_cases():
    """λ = 0 is Student's t, the GED of power 2 is normal."""
    z = np.linspace(-4.0, 4.0, 9)
    five = np.float64(5.0)
    np.testing.assert_allclose(SkewT(five, np.float64(0.0)).log_density(z), StudentT(five).log_density(z))
    np.testing.assert_allclose(GED(np.float64(2.0)).log_density(z), Normal().log_density(z), rtol=1e-13)


SKEWED = GJR(1, 1, 1, dist="skewt")
TRUTH = {
    "mu": 0.05, "omega": 0.1, "alpha[1]": 0.04, "gamma[1]": 0.12, "beta[1]": 0.8, "eta": 6.0, "lambda": -0.25
}  # fmt: skip


@pytest.mark.parametrize("dist", ["skewt", "ged"])
def test_fits_agree_with_maximum_likelihood_of_arch(dist):
    """5,000 days: the posterior means within 0.25 standard errors of arch's estimates, the sds within 15%.

    The density of the GED has a kink where z = 0, so that differences of different steps differ for its mean.
    """
    arch = pytest.importorskip("arch")
    shape = {"skewt": {"eta": 6.0, "lambda": -0.25}, "ged": {"nu": 1.3}}[dist]
    model = GARCH(1, 1, dist=dist)
    values = {"mu": 0.05, "omega": 0.1, "alpha[1]": 0.1, "beta[1]": 0.8, **shape}
    returns = model.simulate(values, 5000, rng=1)
    result = model.fit(returns)
    ml = arch.arch_model(returns, dist=dist, rescale=False).fit(disp="off", cov_type="classic", tol=1e-10)
    assert result.ml.log_likelihood == pytest.approx(ml.loglikelihood, abs=2e-3)
    assert list(result.ml.params) == list(ml.params.index)
    for name in ml.params.index:
        entry = result.posterior[name]
        assert abs(entry.mean - ml.params[name]) < 0.25 * ml.std_err[name], name
        assert entry.std == pytest.approx(ml.std_err[name], rel=0.15), name
        assert result.ml.std_errors[name] == pytest.approx(
            ml.std_err[name], rel=0.02 if dist == "skewt" else 0.15
        ), name


def test_everything_after_a_fit_knows_the_skewness():
    """Risk, forecasts, updates, comparison and the plot of residuals."""
    returns = SKEWED.simulate(TRUTH, 1500, rng=3)
    result = SKEWED.fit(returns)
    assert float(result.posterior["lambda"].quantile([0.975])[0]) < 0.0
    simulated = result.forecast(1, draws=200_000)
    assert simulated.var(0.05) == pytest.approx(result.var(0.05), rel=0.02)
    assert simulated.expected_shortfall(0.05) == pytest.approx(result.expected_shortfall(0.05), rel=0.03)
    again = result.update(SKEWED.simulate(TRUTH, 100, rng=4))
    assert again.posterior["eta"].std < 1.3 * result.posterior["eta"].std
    table = compare(returns, [GARCH(1, 1), GARCH(1, 1, dist="skewt"), GARCH(1, 1, dist="ged")], holdout=100)
    assert next(iter(table.rows)) == "GARCH(1,1)-skewt"
    figure = result.plot()
    assert any("skew-t" in ax.get_xlabel() for ax in figure.axes)


def test_an_unknown_law_is_refused():
    with pytest.raises(InvalidInputError, match="dist must be"):
        GARCH(1, 1, dist="skewstudent")
