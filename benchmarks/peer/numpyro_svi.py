"""NumPyro: SVI with Adam; AutoMultivariateNormal at a constant and a falling step, smaller guides at the latter."""

from __future__ import annotations

from typing import Any

from mgvbp.core.optional import require
from peer.problems import Problem
from peer.record import Prepared
from peer.steps import stepped


def usual(problem: Problem) -> Prepared:
    """Adam(0.01), one particle, 20,000 steps."""
    return svi(problem, "AutoMultivariateNormal", 0.01, particles=1, steps=20_000)


def decay(problem: Problem) -> Prepared:
    """The step falls from 0.05 to 0.0005 over 4,000 steps of ten particles."""
    return falling(problem, "AutoMultivariateNormal")


def mean_field(problem: Problem) -> Prepared:
    """The same with a diagonal covariance."""
    return falling(problem, "AutoNormal")


def low_rank(problem: Problem) -> Prepared:
    """The same with a diagonal plus a low rank, the guide's default √d."""
    return falling(problem, "AutoLowRankMultivariateNormal")


def falling(problem: Problem, guide: str) -> Prepared:
    return svi(problem, guide, lambda step: 0.05 * 0.01 ** (step / 4000.0), particles=10, steps=4000)


def svi(problem: Problem, name: str, step_size: Any, particles: int, steps: int) -> Prepared:
    """From mean 0, with the guide's own initial scale of 0.1."""
    jnp, numpyro = require("jax.numpy", "peers"), require("numpyro", "peers")
    distributions, infer = require("numpyro.distributions", "peers"), require("numpyro.infer", "peers")
    autoguide = require("numpyro.infer.autoguide", "peers")

    def model() -> None:
        flat = distributions.ImproperUniform(distributions.constraints.real_vector, (), (problem.dim,))
        numpyro.factor("log density", problem.traced(numpyro.sample("theta", flat)))

    at_zero = infer.init_to_value(values={"theta": jnp.zeros(problem.dim)})
    guide = getattr(autoguide, name)(model, init_loc_fn=at_zero)
    inference = infer.SVI(
        model, guide, numpyro.optim.Adam(step_size), infer.Trace_ELBO(num_particles=particles)
    )
    inference.init(
        require("jax", "peers").random.key(0)
    )  # outside jit: the guide keeps what it learns of the model

    def gaussian(state: Any) -> Any:
        parameters = inference.get_params(state)
        if name == "AutoNormal":  # a site a variable; there is one
            return parameters["theta_auto_loc"], jnp.diag(parameters["theta_auto_scale"])
        posterior = guide.get_posterior(parameters)
        return posterior.mean, jnp.linalg.cholesky(posterior.covariance_matrix)

    return stepped(
        inference.init, lambda state: inference.stable_update(state)[0], gaussian, steps, particles, chunk=50
    )
