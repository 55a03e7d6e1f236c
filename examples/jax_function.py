"""A JAX function as the log-likelihood: Poisson regression, compiled and mapped over the draws.

Run:  pip install jax mgvbp && python examples/jax_function.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import mgvbp

jax.config.update("jax_enable_x64", True)  # in float32 the values carry noise that a fit can see

rng = np.random.default_rng(0)
X = jnp.asarray(np.column_stack([np.ones(300), rng.normal(size=(300, 2))]))
y = jnp.asarray(rng.poisson(np.exp(X @ np.array([0.5, 0.8, -0.4]))))


def log_likelihood(beta):
    """Of one draw, (3,) -> a number."""
    return jax.scipy.stats.poisson.logpmf(y, jnp.exp(X @ beta)).sum()


posterior = mgvbp.fit(jax.jit(jax.vmap(log_likelihood)), mgvbp.Gaussian(variance=5.0, dim=3))
print(posterior.summary())
