"""Gradients of priors on the constrained scale, and named models in JAX: nothing that brings a gradient loses it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import expit

import mgvbp
from mgvbp import EvaluationError, InvalidInputError, Model, Parameters
from mgvbp.problem.differences import derivatives, gradients
from mgvbp.transforms import (
    CorrelationCholesky,
    GarchRegion,
    Interval,
    LowerBound,
    Ordered,
    Positive,
    Real,
    Simplex,
    UpperBound,
)

RNG = np.random.default_rng(8)

# --- differences --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [100.0, 1.0, 1e-2, 1e-4])
def test_derivatives_of_wide_and_of_narrow_densities(width):
    """In units of 1/width; Student's t has features at its width and none further out."""
    x = 3.0 * width * RNG.standard_normal(2000)
    slopes = derivatives(st.t(4.0, scale=width).logpdf, x)
    np.testing.assert_allclose(slopes * width, -5.0 * x * width / (4.0 * width**2 + x**2), rtol=0, atol=1e-8)


def test_values_that_lose_digits():
    """log Γ(10⁴) cancels: small steps, taken for the sake of narrow neighbours, would agree by chance, off by 1e-5."""
    x = np.stack([0.1 * RNG.standard_normal(2000), 1e-3 * RNG.standard_normal(2000)])

    def function(x):
        return np.stack(
            [st.gamma(1e4, scale=1e-4).logpdf(np.exp(x[0])) + x[0], st.cauchy(scale=1e-3).logpdf(x[1])]
        )

    np.testing.assert_allclose(derivatives(function, x)[0], 1e4 * (1.0 - np.exp(x[0])), rtol=0, atol=1e-6)


def test_kinks_are_not_stepped_over():
    x = RNG.standard_normal(1000)
    np.testing.assert_allclose(derivatives(lambda x: -np.abs(x), x), -np.sign(x), rtol=1e-9)


def test_where_nothing_is_finite_there_is_no_derivative():
    found = derivatives(lambda x: np.where(x > 0.0, np.log(np.abs(x)), -np.inf), np.array([-2.0, 2.0]))
    np.testing.assert_allclose(found, [np.nan, 0.5], rtol=1e-10)


def test_gradients_in_parts_are_the_same(monkeypatch):
    R = RNG.standard_normal((6, 6))
    theta = RNG.standard_normal((11, 6))

    def coupled(theta):
        return np.cos(theta @ R).prod(axis=1)

    whole = gradients(coupled, theta)
    monkeypatch.setattr("mgvbp.problem.differences.MOST_NUMBERS", 80)  # two rows at once
    np.testing.assert_allclose(gradients(coupled, theta), whole, rtol=1e-8, atol=1e-9)
    cosines = np.cos(theta @ R)
    exact = -(cosines.prod(axis=1)[:, None] * np.tan(theta @ R)) @ R.T
    np.testing.assert_allclose(whole, exact, rtol=1e-6, atol=1e-8)
    assert gradients(coupled, theta[:0]).shape == (0, 6)


# --- priors -------------------------------------------------------------------------------------------


def random_walk(value):
    """As many terms as entries, each but the first of two entries."""
    return st.norm.logpdf(np.diff(value, axis=1, prepend=0.0), scale=0.7)


PARAMETERS = Parameters(
    beta=Real(3),
    sigma=Positive(),
    rho=Interval(-1.0, 1.0),
    low=LowerBound(2.0),
    both=Real(2),
    p=Simplex(3),
    cuts=Ordered(3),
    walk=Real(4),
)
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])
PRIOR = PARAMETERS.prior(
    beta=st.norm([0.0, 1.0, -1.0], 2.0),
    sigma=st.halfcauchy(scale=2.0),
    rho=st.uniform(-1.0, 2.0),
    low=st.expon(2.0),
    both=st.multivariate_normal([0.0, 1.0], COVARIANCE),
    p=st.dirichlet([2.0, 3.0, 4.0]),
    cuts=st.norm(0.0, 3.0),
    walk=random_walk,
)


def test_the_gradient_of_a_prior_is_that_of_the_density_written_in_jax():
    jax = pytest.importorskip("jax")
    jnp, stats = jax.numpy, jax.scipy.stats
    ours = np.log(Simplex(3).constrain(np.eye(2)))
    basis = (ours - ours.mean(axis=1, keepdims=True)).T

    def log_density(theta):
        beta, log_sigma, x, y = theta[:3], theta[3], theta[4], theta[5]
        both, z, c, walk = theta[6:8], theta[8:10], theta[10:13], theta[13:]
        log_p = jax.nn.log_softmax(basis @ z)
        cuts = jnp.cumsum(jnp.concatenate([c[:1], jnp.exp(c[1:])]))
        return (
            stats.norm.logpdf(beta, jnp.array([0.0, 1.0, -1.0]), 2.0).sum()
            + stats.cauchy.logpdf(jnp.exp(log_sigma), 0.0, 2.0)
            + log_sigma
            + jax.nn.log_sigmoid(x)
            + jax.nn.log_sigmoid(-x)
            - jnp.exp(y)
            + y
            + stats.multivariate_normal.logpdf(both, jnp.array([0.0, 1.0]), jnp.array(COVARIANCE))
            + jnp.array([2.0, 3.0, 4.0]) @ log_p  # one less in the density, one more in the Jacobian
            + stats.norm.logpdf(cuts, 0.0, 3.0).sum()
            + c[1:].sum()
            + stats.norm.logpdf(jnp.diff(walk, prepend=0.0), 0.0, 0.7).sum()
        )

    theta = 1.5 * RNG.standard_normal((200, PARAMETERS.dim))
    with jax.enable_x64(True):
        exact = np.asarray(jax.jit(jax.vmap(jax.grad(log_density)))(theta))
    found = PRIOR.grad_log_density(theta)
    np.testing.assert_allclose(found, exact, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(PRIOR.grad_log_density(theta[:1]), found[:1], rtol=1e-7, atol=1e-8)
    assert PRIOR.grad_log_density(theta[:0]).shape == (0, PARAMETERS.dim)


def test_names_that_share_a_constraint():
    parameters = Parameters({"omega": Positive(), ("a", "b"): GarchRegion(1, 0, 1)})
    prior = parameters.prior(omega=st.gamma(2.0), a=st.uniform(), b=st.beta(3.0, 1.0))
    theta = RNG.standard_normal((20, 3))
    np.testing.assert_allclose(
        prior.grad_log_density(theta), gradients(prior.log_density, theta), rtol=1e-7, atol=1e-8
    )


def test_hundreds_of_entries_cost_what_a_few_do():
    """Entries that have nothing to do with each other are moved together: some evaluations, whatever d is."""
    points = []

    class Counting(type(st.norm())):
        def logpdf(self, x):
            points.append(np.shape(x))
            return super().logpdf(x)

    Counting.__module__ = "scipy.stats.counting"
    prior = Parameters(beta=Real(300)).prior(beta=Counting(st.norm))
    theta = RNG.standard_normal((10, 300))
    np.testing.assert_allclose(prior.grad_log_density(theta), -theta, atol=1e-9)
    assert set(points) == {(10, 300)}
    assert len(points) <= 20


# --- fits ---------------------------------------------------------------------------------------------

FAILURES = st.weibull_min(1.7, scale=2.5).rvs(60, random_state=1)
TIMES, SEEN = np.minimum(FAILURES, 3.0), FAILURES < 3.0
WEIBULL = Parameters(shape=Positive(), scale=Positive())
WEIBULL_PRIOR = WEIBULL.prior(shape=st.gamma(2.0), scale=st.halfcauchy(scale=5.0))


def weibull(xp):
    """The log-likelihood of failures, and of those still running at time 3."""

    def log_likelihood(shape, scale):
        log_hazard_sum = shape[..., None] * (xp.log(TIMES) - xp.log(scale)[..., None])
        seen = xp.log(shape)[..., None] + log_hazard_sum - xp.log(TIMES)
        return (SEEN * seen - xp.exp(log_hazard_sum)).sum(axis=-1)

    return log_likelihood


def assert_same(posterior, other):
    """Each within 0.01 nats of the same optimum: 0.14 of a standard deviation in a mean, or 10% of a deviation.

    Two of them may be on opposite sides. The lower bounds are estimates, with the errors that are stated.
    """
    assert posterior.converged
    assert other.converged
    error = np.hypot(posterior.lower_bound_se, other.lower_bound_se)
    assert abs(posterior.lower_bound - other.lower_bound) < 0.02 + 4.0 * error
    assert np.abs((posterior.mean - other.mean) / other.std).max() < 0.28
    np.testing.assert_allclose(posterior.std, other.std, rtol=0.22)


def test_a_weibull_model_by_values_and_by_gradients():
    jnp = pytest.importorskip("jax.numpy")
    by_values = mgvbp.fit(Model(weibull(np), WEIBULL), WEIBULL_PRIOR)
    model = Model(weibull(jnp), WEIBULL)

    def of_theta(theta):
        return weibull(jnp)(*jnp.exp(theta))

    fits = [
        mgvbp.fit(model, WEIBULL_PRIOR, grad="jax"),
        mgvbp.fit(model, WEIBULL_PRIOR, grad="jax", vectorized=False),
        mgvbp.fit(mgvbp.from_jax(model), WEIBULL_PRIOR),
        mgvbp.fit(mgvbp.from_jax(of_theta), WEIBULL_PRIOR),
    ]
    assert by_values.estimator == "regression"
    for posterior in fits:
        assert posterior.estimator == "gradient"
        assert_same(posterior, by_values)
        np.testing.assert_allclose(posterior.mean, fits[0].mean, rtol=1e-6)
        assert posterior.parameters == WEIBULL
    assert mgvbp.fit(model, mgvbp.Gaussian(variance=5.0, dim=2), grad="jax").parameters == WEIBULL


def test_named_methods_take_the_gradient_of_a_constrained_prior():
    jnp = pytest.importorskip("jax.numpy")
    near = {"initial_mean": [0.3, 0.8], "initial_variance": 0.01}
    model = Model(weibull(jnp), WEIBULL)
    posterior = mgvbp.fit(model, WEIBULL_PRIOR, grad="jax", method="mgvbp", max_iterations=3, **near)
    assert posterior.estimator == "gradient"


def test_forty_parameters_with_a_constrained_scale():
    """A logistic regression whose coefficients are τz: the prior by differences, and by hand within the function."""
    d = 40
    X = RNG.standard_normal((300, d - 1))
    y = (RNG.random(300) < expit(0.5 * X @ RNG.standard_normal(d - 1))).astype(float)
    parameters = Parameters(z=Real(d - 1), tau=Positive())
    prior = parameters.prior(z=st.norm(), tau=st.halfnorm(scale=1.5))

    def log_likelihood(theta):
        eta = np.exp(theta[:, -1:]) * theta[:, :-1] @ X.T
        return (y * eta - np.logaddexp(0.0, eta)).sum(axis=1)

    def gradient(theta):
        z, tau = theta[:, :-1], np.exp(theta[:, -1:])
        slopes = (y - expit(tau * z @ X.T)) @ X
        return np.concatenate([tau * slopes, (tau * z * slopes).sum(axis=1, keepdims=True)], axis=1)

    def joint(theta):
        z, log_tau = theta[:, :-1], theta[:, -1]
        priors = st.norm.logpdf(z).sum(axis=1) + st.halfnorm.logpdf(np.exp(log_tau), scale=1.5) + log_tau
        return log_likelihood(theta) + priors

    def joint_gradient(theta):
        of_tau = 1.0 - np.exp(2.0 * theta[:, -1:]) / 1.5**2
        return gradient(theta) + np.concatenate([-theta[:, :-1], of_tau], axis=1)

    apart = mgvbp.fit(log_likelihood, prior, grad=gradient)
    together = mgvbp.fit(joint, dim=d, grad=joint_gradient)
    assert (apart.estimator, apart.converged) == ("gradient", True)
    assert apart.n_evaluations < 9000  # six seeds took 2,763 to 5,271; the limit is 30,000
    assert_same(apart, together)


# --- transforms in JAX --------------------------------------------------------------------------------

TRACED = Parameters(
    a=Real(2, 2),
    b=Positive(2),
    c=LowerBound(-1.0),
    d=UpperBound(3.0),
    e=Interval(-2.0, 5.0, 3),
    f=Ordered(4),
    g=Simplex(4),
)


def test_values_and_gradients_through_every_constraint_that_jax_knows():
    jnp = pytest.importorskip("jax.numpy")

    def function(**values):
        weights = (np.sin(np.arange(1.0, 1.0 + v[0].size)).reshape(v[0].shape) for v in values.values())
        parts = [
            (w * v**2).reshape(len(v), -1).sum(axis=1) for w, v in zip(weights, values.values(), strict=True)
        ]
        return sum(parts)

    model = Model(function, TRACED)
    traced = mgvbp.from_jax(Model(lambda **v: jnp.asarray(function(**v)), TRACED), vectorized=True)
    theta = 2.0 * RNG.standard_normal((20, TRACED.dim))
    values, slopes = traced.value_and_grad(theta)
    np.testing.assert_allclose(values, model(theta), rtol=1e-12)
    np.testing.assert_allclose(slopes, gradients(model, theta), rtol=1e-7, atol=1e-6)


class Doubled(Positive):
    """Another map than its parent's."""

    def _forward(self, x):
        return 2.0 * np.exp(x)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            Parameters(L=CorrelationCholesky(3)),
            r"L has the constraint CorrelationCholesky\(3\).*from_numpyro",
        ),
        (Parameters(s=Doubled()), r"s has the constraint Doubled\(\)"),
        (Parameters({("a", "b"): GarchRegion(1, 0, 1)}), "a, b share a constraint.*mgvbp.from_jax"),
    ],
)
def test_constraints_that_jax_does_not_know(parameters, message):
    pytest.importorskip("jax")
    with pytest.raises(InvalidInputError, match=message):
        mgvbp.fit(
            Model(lambda **values: 0.0, parameters),
            mgvbp.Gaussian(variance=1.0, dim=parameters.dim),
            grad="jax",
        )


def test_a_model_of_numpy_is_told_so():
    pytest.importorskip("jax")
    with pytest.raises(EvaluationError, match=r"write it with jax\.numpy"):
        mgvbp.fit(Model(weibull(np), WEIBULL), WEIBULL_PRIOR, grad="jax")
