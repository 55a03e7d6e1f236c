"""PyTorch functions by autograd: ``grad="torch"``. They are skipped where PyTorch is not installed, as in CI: its
wheels take gigabytes."""

import numpy as np
import pytest
from scipy import stats

import mgvbp
from mgvbp import Gaussian, Model, Parameters
from mgvbp.errors import EvaluationError, InvalidInputError, InvalidTypeError
from mgvbp.transforms import GarchRegion, Interval, LowerBound, Ordered, Positive, Real, Simplex, UpperBound

RNG = np.random.default_rng(1)
X = RNG.normal(size=(50, 3))
Y = (RNG.random(50) < 1.0 / (1.0 + np.exp(-X @ [0.5, -1.0, 0.3]))).astype(float)
PRIOR = Gaussian(variance=5.0, dim=3)
THETA = RNG.normal(size=(7, 3))


def log_likelihood(theta):
    """Logistic regression in NumPy, (S, 3) -> (S,)."""
    return theta @ X.T @ Y - np.logaddexp(0.0, theta @ X.T).sum(axis=1)


def gradient(theta):
    return (Y - 1.0 / (1.0 + np.exp(-theta @ X.T))) @ X


@pytest.fixture
def of_one(torch):
    features, y = torch.tensor(X), torch.tensor(Y)
    return lambda theta: y @ (features @ theta) - torch.nn.functional.softplus(features @ theta).sum()


@pytest.fixture
def of_all(torch):
    features, y = torch.tensor(X), torch.tensor(Y)

    def function(theta):
        logits = theta @ features.T
        return logits @ y - torch.nn.functional.softplus(logits).sum(dim=1)

    return function


def test_values_and_gradients_in_float64(of_one, of_all):
    for adapted in (mgvbp.from_torch(of_one), mgvbp.from_torch(of_all, vectorized=True)):
        values, gradients = adapted.value_and_grad(THETA)
        assert values.dtype == gradients.dtype == np.float64
        np.testing.assert_allclose(values, log_likelihood(THETA), rtol=1e-12)
        np.testing.assert_allclose(gradients, gradient(THETA), rtol=1e-10)
        np.testing.assert_allclose(adapted(THETA), values, rtol=1e-14)


def test_fit(of_one, of_all):
    """The fit with the gradient written by hand, to the last digits that sums in another order leave."""
    expected = mgvbp.fit(log_likelihood, PRIOR, grad=gradient)
    for posterior in (
        mgvbp.fit(of_all, PRIOR, grad="torch"),
        mgvbp.fit(of_one, PRIOR, grad="torch", vectorized=False),
        mgvbp.fit(mgvbp.from_torch(of_one), PRIOR),
    ):
        assert posterior.estimator == "gradient"
        np.testing.assert_allclose(posterior.mean, expected.mean, atol=1e-4)
        np.testing.assert_allclose(posterior.covariance, expected.covariance, atol=1e-4)


def test_constraints(torch):
    """Every constraint that is written in PyTorch, against the gradients by differences of NumPy's own."""
    parameters = Parameters(
        real=Real(2),
        positive=Positive(),
        lower=LowerBound(2.0),
        upper=UpperBound(-1.0),
        inside=Interval(-1.0, 2.0),
        ordered=Ordered(3),
        simplex=Simplex(3),
    )

    def function(package):
        def total(real, positive, lower, upper, inside, ordered, simplex):
            values = (real.sum(-1), positive, lower, upper, inside, ordered[..., 1], simplex[..., 0])
            return sum((n + 1.0) * package.sin(value) for n, value in enumerate(values))

        return total

    plain = Model(function(np), parameters)
    theta = RNG.normal(size=(4, parameters.dim))
    step = 1e-6 * np.eye(parameters.dim)
    numerical = np.array([(plain(row + step) - plain(row - step)) / 2e-6 for row in theta])
    for vectorized in (False, True):
        adapted = mgvbp.from_torch(Model(function(torch), parameters), vectorized=vectorized)
        values, gradients = adapted.value_and_grad(theta)
        np.testing.assert_allclose(values, plain(theta), rtol=1e-12)
        np.testing.assert_allclose(gradients, numerical, rtol=1e-5, atol=1e-8)
    assert adapted.parameters is parameters
    with pytest.raises(InvalidInputError, match=r"not written for torch; grad='torch' knows Real, "):
        mgvbp.from_torch(Model(lambda coefficients: None, Parameters(coefficients=GarchRegion(1, 0, 1))))


def test_minibatches(torch):
    adapted = mgvbp.from_torch(lambda theta, X, y: -0.5 * ((y - X @ theta) ** 2).sum())
    y = X @ [1.0, 2.0, 3.0]
    batches = mgvbp.Minibatches(adapted, X, y, batch_size=10)
    np.testing.assert_allclose(batches(THETA), -0.5 * ((y - THETA @ X.T) ** 2).sum(axis=1), rtol=1e-10)
    _, gradients = batches.at(1).value_and_grad(THETA)
    assert gradients.shape == THETA.shape
    with pytest.raises(InvalidInputError, match="minibatches bring their own gradient"):
        mgvbp.fit(batches, PRIOR, grad="torch")


def test_functions_that_cannot_be_used(torch, of_one):
    features = torch.tensor(X, dtype=torch.float32)
    cases = [
        lambda theta: (features @ theta).sum(),  # float32 against float64
        lambda theta: float(theta[0]),
        lambda theta: theta[0] if theta[0] > 0.0 else -theta[0],
        lambda theta: 1.0,
        lambda theta: theta[5],
    ]
    for function in cases:
        with pytest.raises(EvaluationError, match=r"PyTorch cannot use the function, \w+: .*of one draw"):
            mgvbp.from_torch(function).value_and_grad(THETA)
    with pytest.raises(EvaluationError, match=r"of all draws, \(S, d\) -> \(S,\)"):
        mgvbp.from_torch(lambda theta: theta.detach()[:, 0], vectorized=True).value_and_grad(THETA)
    with pytest.raises(InvalidTypeError, match="must be a PyTorch function"):
        mgvbp.from_torch("f")
    with pytest.raises(InvalidInputError, match="grad must be one of 'jax', 'torch' or a function"):
        mgvbp.fit(of_one, PRIOR, grad="tensorflow")


def test_distributions(torch):
    """A density of torch.distributions is that of SciPy."""
    prior = torch.distributions.StudentT(torch.tensor(5.0, dtype=torch.float64))
    adapted = mgvbp.from_torch(lambda theta: prior.log_prob(theta).sum())
    np.testing.assert_allclose(adapted(THETA), stats.t(5.0).logpdf(THETA).sum(axis=1), rtol=1e-12)
