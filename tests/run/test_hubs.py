"""Marginals of hubs: models whose marginals are known by linear algebra and quadrature."""

import numpy as np
import pytest
from scipy.special import logsumexp

import mgvbp
from mgvbp import InvalidInputError, InvalidTypeError, SparsePrecision
from mgvbp.interop import ForeignParameters
from mgvbp.run.hubs import named
from mgvbp.transforms import Positive, Real


class Level:
    """A random walk that is observed with noise: T states, then the logs of the scales of noise and steps."""

    def __init__(self, T, seed):
        rng = np.random.default_rng(seed)
        self.T = T
        self.y = np.cumsum(0.3 * rng.standard_normal(T)) + 0.6 * rng.standard_normal(T)

    def value_and_grad(self, theta):
        x, s = theta[:, :-2], theta[:, -2:]
        left, steps = self.y - x, np.diff(x, prepend=0.0)
        squares = np.stack([np.square(left).sum(axis=1), np.square(steps).sum(axis=1)], axis=1)
        scales = np.exp(-2.0 * s)
        value = -(0.5 * scales * squares + self.T * s + 0.5 * (s + 1.0) ** 2).sum(axis=1)
        slopes = scales[:, 1:] * steps
        by_x = scales[:, :1] * left - slopes + np.append(slopes[:, 1:], np.zeros((len(s), 1)), axis=1)
        return value, np.hstack([by_x, scales * squares - self.T - (s + 1.0)])

    def __call__(self, theta):
        return self.value_and_grad(theta)[0]

    def given(self, s):
        """Mean and covariance of the states given both scales, and the log density of these."""
        D = np.eye(self.T) - np.eye(self.T, k=-1)
        scales = np.exp(-2.0 * np.asarray(s))
        P = scales[0] * np.eye(self.T) + scales[1] * D.T @ D
        mean = np.linalg.solve(P, scales[0] * self.y)
        value = self(np.append(mean, s)[None])[0] + 0.5 * self.T * np.log(2.0 * np.pi)
        return mean, np.linalg.inv(P), value - 0.5 * np.linalg.slogdet(P)[1]


def on_a_grid(log_density, centre, width, n=33):
    """The points of a square grid, their probabilities, and the log of the integral."""
    axes = [c + w * np.linspace(-1.0, 1.0, n) for c, w in zip(centre, width, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.array([log_density(point) for point in points])
    total = logsumexp(values)
    return points, np.exp(values - total), total + sum(np.log(axis[1] - axis[0]) for axis in axes)


@pytest.fixture(scope="module", params=[0, 1])
def level(request):
    model = Level(60, request.param)
    posterior = mgvbp.fit(model, dim=62, family=SparsePrecision.arrow(62, 2, order=1), rng=request.param)
    return model, posterior, mgvbp.nested(posterior, rng=request.param)


def test_where_the_rest_is_gaussian_all_moments_are_those_of_quadrature(level):
    model, posterior, whole = level
    points, weights, evidence = on_a_grid(lambda s: model.given(s)[2], [-0.6, -1.2], [0.9, 1.9])
    exact = [model.given(s) for s in points]
    mean = weights @ points
    sd = np.sqrt(weights @ (points - mean) ** 2)
    np.testing.assert_allclose(whole.mean[-2:], mean, atol=0.1 * sd.min())
    np.testing.assert_allclose(whole.std[-2:], sd, rtol=0.08)
    assert posterior.std[-1] < 0.6 * sd[-1]  # what the best Gaussian says
    means = np.array([found[0] for found in exact])
    centre = weights @ means
    within = weights @ np.array([found[1].diagonal() for found in exact])
    spread = np.sqrt(within + weights @ (means - centre) ** 2)
    np.testing.assert_allclose(whole.std[:-2], spread, rtol=0.05)
    assert (np.abs(whole.mean[:-2] - centre) < 0.1 * spread).all()
    # the bound of q(h) q(x | h) lacks the distance of q(h) alone
    assert -0.2 < whole.hubs.lower_bound - evidence < 0.05
    assert whole.hubs.lower_bound > posterior.lower_bound + 0.3


def test_density_and_draws_are_those_of_both_parts(level):
    model, _, whole = level
    theta = whole.sample(40, 3)
    rest = []
    for row in theta:
        mean, covariance, _ = model.given(row[-2:])
        left = row[:-2] - mean
        log_det = np.linalg.slogdet(2.0 * np.pi * covariance)[1]
        rest.append(-0.5 * (left @ np.linalg.solve(covariance, left) + log_det))
    expected = whole.hubs.log_density(theta[:, -2:]) + rest
    np.testing.assert_allclose(whole.log_density(theta), expected, atol=0.1)
    squares = [
        (row[:-2] - model.given(row[-2:])[0]) ** 2 / model.given(row[-2:])[1].diagonal() for row in theta
    ]
    assert abs(np.mean(squares) - 1.0) < 5.0 * np.sqrt(2.0 / (40 * 60 / 10))  # about ten states tell the same
    np.testing.assert_array_equal(theta[:, -2:], whole.hubs.sample(40, 3))


def test_a_hierarchy_of_counts_has_the_marginal_of_its_scale():
    rng, groups = np.random.default_rng(2), 60
    y = rng.poisson(np.exp(1.0 + 0.4 * rng.standard_normal(groups)))

    class Counts:
        def value_and_grad(self, theta):
            b, m, s = theta[:, :-2], theta[:, -2:-1], theta[:, -1:]
            z = (b - m) * np.exp(-s)
            value = (y * b - np.exp(b) - 0.5 * z**2 - s).sum(axis=1) - (0.5 * m**2 + 0.5 * (s + 1.0) ** 2)[
                :, 0
            ]
            by_b = y - np.exp(b) - z * np.exp(-s)
            by_m = (z * np.exp(-s)).sum(axis=1, keepdims=True) - m
            by_s = (z**2 - 1.0).sum(axis=1, keepdims=True) - (s + 1.0)
            return value, np.hstack([by_b, by_m, by_s])

        def __call__(self, theta):
            return self.value_and_grad(theta)[0]

    nodes, node_weights = np.polynomial.hermite_e.hermegauss(40)

    def exact(h):
        b = h[0] + np.exp(h[1]) * nodes[:, None]
        logs = y * b - np.exp(b) + np.log(node_weights / node_weights.sum())[:, None]
        return logsumexp(logs, axis=0).sum() - 0.5 * h[0] ** 2 - 0.5 * (h[1] + 1.0) ** 2

    points, weights, _ = on_a_grid(exact, [1.0, -1.2], [0.6, 2.0], 61)
    mean = weights @ points
    sd = np.sqrt(weights @ (points - mean) ** 2)
    posterior = mgvbp.fit(Counts(), dim=groups + 2, family=SparsePrecision.arrow(groups + 2, 2))
    whole = mgvbp.nested(posterior)
    assert (np.abs(whole.mean[-2:] - mean) < 0.15 * sd).all()
    np.testing.assert_allclose(whole.std[-2:], sd, rtol=0.1)
    assert posterior.std[-1] < 0.7 * sd[-1]


def test_hubs_have_their_names_and_constraints():
    pytest.importorskip("jax")
    import jax.numpy as jnp

    x = np.random.default_rng(1).standard_normal((40, 3)) + 0.5 * np.random.default_rng(2).standard_normal(
        (40, 1)
    )

    def log_posterior(effect, scale):
        prior = -0.5 * ((effect / scale) ** 2).sum() - 41.0 * jnp.log(scale)
        prior -= 0.5 * jnp.log(scale) ** 2  # a log-normal density of the scale
        return -0.5 * ((x - effect[:, None]) ** 2).sum() + prior

    parameters = mgvbp.Parameters(effect=Real(40), scale=Positive())
    model = mgvbp.from_jax(mgvbp.Model(log_posterior, parameters))
    posterior = mgvbp.fit(model, family=SparsePrecision.local("effect"))
    whole = mgvbp.nested(posterior, ["scale"])
    variances = np.exp(2.0 * np.linspace(-4.0, 1.5, 2001))
    s = 0.5 * np.log(variances)  # effects are integrated out: the mean of a group has variance scale² + 1/3
    logs = -0.5 * (x.mean(axis=1) ** 2 / (variances + 1 / 3)[:, None]).sum(axis=1) - 20.0 * np.log(
        variances + 1 / 3
    )
    logs -= 0.5 * s**2
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ np.exp(s)
    assert abs(whole.hubs["scale"].mean - mean) < 0.1 * np.sqrt(weights @ (np.exp(s) - mean) ** 2)
    assert repr(whole) == "Nested(hubs=scale; dim=41)"
    parts = mgvbp.nested(posterior, ["effect[0]", "scale"])
    assert parts.hubs.labels == ("effect[0]", "scale")


class Positives(Level):
    """The same model as another package would give it: under the scales' own names and constraint."""

    parameters = ForeignParameters(
        shapes={"x": (8,), "noise": (), "step": ()},
        unconstrained_shapes={"x": (8,), "noise": (), "step": ()},
        to_values=lambda theta: {
            "x": theta[:, :8],
            "noise": np.exp(theta[:, 8]),
            "step": theta[:, 8] + np.exp(theta[:, 9]),
            "ratio": np.exp(theta[:, 9] - theta[:, 8]),
        },
        to_theta=lambda values: np.column_stack(
            [values["x"], np.log(values["noise"]), np.log(values["step"] - np.log(values["noise"]))]
        ),
    )


def test_hubs_of_another_packages_model_are_under_its_constraints():
    model = Positives(8, 0)
    posterior = mgvbp.fit(model, family=SparsePrecision.arrow(10, 2, order=1))
    both, step = mgvbp.nested(posterior), mgvbp.nested(posterior, ["step"])
    assert both.hubs.parameters.names == ("noise", "step")
    theta = both.hubs.sample(1000, 0)
    found = both.hubs.named(theta)
    assert set(found) == {"noise", "step"}, "what is derived from all parameters is not known"
    np.testing.assert_allclose(found["step"], theta[:, 0] + np.exp(theta[:, 1]))
    np.testing.assert_allclose(both.hubs.parameters.unconstrain(found), theta)
    # a constraint that needs the others takes their means
    theta = step.hubs.sample(10, 0)
    np.testing.assert_allclose(step.hubs.named(theta)["step"], posterior.mean[8] + np.exp(theta[:, 0]))
    np.testing.assert_allclose(step.hubs.parameters.unconstrain(step.hubs.named(theta)), theta)
    assert mgvbp.nested(posterior, [0, 9]).hubs.labels == ("theta[0]", "theta[9]"), (
        "x[0] is not a whole parameter"
    )


def test_parts_of_a_constrained_parameter_are_entries_of_theta():
    model = Level(8, 0)
    model.parameters = mgvbp.Parameters(x=Real(8), scale=Positive(2))
    posterior = mgvbp.fit(model, family=SparsePrecision.arrow(10, 2, order=1))
    assert named(posterior, np.array([8, 9])) == mgvbp.Parameters(scale=Positive(2))
    part = named(posterior, np.array([7, 9]))
    assert part.labels == ("x[7]", "theta[9]"), "it is the logarithm of scale[1]"
    assert (part.constrain([[2.0, -3.0]])["theta[9]"] == -3.0).all()


def test_it_says_what_it_cannot_do(tmp_path):
    model = Level(8, 0)
    sparse = mgvbp.fit(model, dim=10, family=SparsePrecision.arrow(10, 2, order=1))
    full = mgvbp.fit(model, dim=10)
    with pytest.raises(InvalidInputError, match="got the full family"):
        mgvbp.nested(full)
    with pytest.raises(InvalidInputError, match="labels, such as 'theta\\[9\\]', or of indices below 10"):
        mgvbp.nested(sparse, ["sigma"])
    for bad in ("theta[9]", 9, [[9]], [10]):
        with pytest.raises(InvalidInputError, match="hubs must be a list"):
            mgvbp.nested(sparse, bad)
    with pytest.raises(InvalidTypeError, match=r"posterior must be what mgvbp.fit returns"):
        mgvbp.nested(model)
    with pytest.raises(InvalidInputError, match="1 to 6 hubs, and not all parameters; got 7"):
        mgvbp.nested(sparse, list(range(7)))
    chain = mgvbp.fit(
        lambda x: -np.square(x).sum(axis=1),
        dim=9,
        grad=lambda x: -2.0 * x,
        family=SparsePrecision.banded(9, 1),
    )
    with pytest.raises(InvalidInputError, match="choose them, as in hubs="):
        mgvbp.nested(chain)
    sparse.save(tmp_path / "fit")
    with pytest.raises(InvalidInputError, match=r"does not know its model: mgvbp\.load"):
        mgvbp.nested(mgvbp.load(tmp_path / "fit"))
