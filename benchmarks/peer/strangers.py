"""Hierarchies and latent series with 54 to 67 parameters on which searches by gradients took long: `gradients.py`.

Each function returns the number of parameters and the log density of one θ, for JAX. Scales are logarithms with
half-normal priors; additive constants are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Stranger = tuple[int, Callable[[Any], Any]]


def half_normal(log_sd: Any, width: float) -> Any:
    """The log density of the logarithm of a half-normal scale."""
    import jax.numpy as jnp

    return log_sd - 0.5 * jnp.exp(2.0 * log_sd) / width**2


def item_response() -> Stranger:
    """Two-parameter logistic: 40 persons answer 12 items; abilities, log discriminations and difficulties."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(1)
    persons, items = 40, 12
    ability, discrimination = rng.normal(size=persons), np.exp(0.4 * rng.normal(size=items))
    difficulty = 0.5 + rng.normal(size=items)
    eta = discrimination * (ability[:, None] - difficulty)
    sign = np.where(rng.random(eta.shape) < 1.0 / (1.0 + np.exp(-eta)), 1.0, -1.0)

    def density(theta: Any) -> Any:
        ability, slopes, difficulty = jnp.split(theta[:-3], [persons, persons + items])
        mean, log_slopes, log_difficulty = theta[-3:]
        eta = jnp.exp(slopes) * (ability[:, None] - difficulty)
        prior = -0.5 * (ability @ ability + mean**2 / 4.0)
        prior -= 0.5 * jnp.sum((slopes * jnp.exp(-log_slopes)) ** 2) + items * log_slopes
        prior -= 0.5 * jnp.sum(((difficulty - mean) * jnp.exp(-log_difficulty)) ** 2) + items * log_difficulty
        prior += half_normal(log_slopes, 1.0) + half_normal(log_difficulty, 2.0)
        return prior + jax.nn.log_sigmoid(sign * eta).sum()

    return persons + 2 * items + 3, density


def varying_slopes() -> Stranger:
    """Correlated intercepts and slopes of 30 counties, centred, with a predictor of the intercepts."""
    import jax.numpy as jnp

    rng = np.random.default_rng(3)
    counties = 30
    county = np.repeat(np.arange(counties), rng.integers(2, 12, counties))
    x, u = (rng.random(len(county)) < 0.3) * 1.0, rng.normal(size=counties)
    intercepts = 1.4 + 0.6 * u + 0.3 * rng.normal(size=counties)
    slopes = -0.7 + 0.3 * rng.normal(size=counties)
    y = intercepts[county] + slopes[county] * x + 0.75 * rng.normal(size=len(county))

    def density(theta: Any) -> Any:
        a, b = theta[:counties], theta[counties : 2 * counties]
        mean_a, mean_b, effect, log_a, log_b, correlation, log_sd = theta[2 * counties :]
        rho = jnp.tanh(correlation)
        one = (a - mean_a - effect * u) * jnp.exp(-log_a)
        two = (b - mean_b) * jnp.exp(-log_b)
        log_root = 0.5 * jnp.log1p(-(rho**2))
        prior = -0.5 * jnp.sum(one**2 + (two - rho * one) ** 2 * jnp.exp(-2.0 * log_root))
        prior -= counties * (log_a + log_b + log_root) + 0.02 * (mean_a**2 + mean_b**2 + effect**2)
        prior += half_normal(log_a, 1.0) + half_normal(log_b, 1.0) + half_normal(log_sd, 2.0) + 2.0 * log_root
        left = (y - a[county] - b[county] * x) * jnp.exp(-log_sd)
        return prior - 0.5 * left @ left - len(y) * log_sd

    return 2 * counties + 7, density


def autoregression() -> Stranger:
    """Fifty counts whose log rates are an AR(2) process, by its partial correlations."""
    import jax.numpy as jnp

    rng = np.random.default_rng(6)
    n = 50
    latent = np.zeros(n)
    for t in range(2, n):
        latent[t] = 1.2 * latent[t - 1] - 0.5 * latent[t - 2] + 0.4 * rng.normal()
    y = rng.poisson(np.exp(0.8 + latent))

    def density(theta: Any) -> Any:
        x, mean, log_sd = theta[:n], theta[n], theta[n + 3]
        first, second = jnp.tanh(theta[n + 1 : n + 3])
        shocks = (x[2:] - first * (1.0 - second) * x[1:-1] - second * x[:-2]) * jnp.exp(-log_sd)
        prior = -0.5 * (shocks @ shocks + x[:2] @ x[:2]) - (n - 2) * log_sd
        prior -= 0.5 * (mean**2 / 4.0 + theta[n + 1 : n + 3] @ theta[n + 1 : n + 3])
        return prior + half_normal(log_sd, 1.0) + jnp.sum(y * (mean + x) - jnp.exp(mean + x))

    return n + 4, density


def mixed_logit() -> Stranger:
    """Twenty-five persons choose six times among three, by tastes of their own for two attributes."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(8)
    persons, attributes = 25, 2
    X = rng.normal(size=(persons, 6, 3, attributes))
    tastes = [1.0, -0.5] + np.array([0.8, 0.5]) * rng.normal(size=(persons, attributes))
    choice = (np.einsum("pojk,pk->poj", X, tastes) + rng.gumbel(size=X.shape[:3])).argmax(axis=-1)

    def density(theta: Any) -> Any:
        z = theta[: persons * attributes].reshape(persons, attributes)
        mean, log_sd = jnp.split(theta[persons * attributes :], 2)
        utility = jnp.einsum("pojk,pk->poj", X, mean + jnp.exp(log_sd) * z)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(utility), choice[..., None], -1)
        return chosen.sum() - 0.5 * (jnp.sum(z**2) + mean @ mean / 9.0) + half_normal(log_sd, 1.5).sum()

    return persons * attributes + 2 * attributes, density


STRANGERS: dict[str, Callable[[], Stranger]] = {
    "item_response": item_response,
    "varying_slopes_67": varying_slopes,
    "autoregression": autoregression,
    "mixed_logit": mixed_logit,
}
