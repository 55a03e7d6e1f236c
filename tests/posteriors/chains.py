"""Hamiltonian Monte Carlo on JAX: many chains at once, in a frame that all of them adapt together.

All chains share the random length of a trajectory, so that one gradient of the whole batch is all that is compiled:
for these small posteriors compiling NUTS took ten times as long as running it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zoo.base import Target, jax_backend

CHAINS = 64
ROUND = 50
"""Steps of every chain between two looks at all of them."""
ACCEPTANCE = 0.85
LONGEST = 4.5
"""A trajectory's length is uniform up to this, in units of the frame, where half a period of a Gaussian is π."""
STEPS = 64
"""Leapfrog steps of a trajectory at most."""
DIVERGENT = 1000.0
"""A trajectory that loses this many nats of energy is counted as divergent."""


class Frame(NamedTuple):
    """``θ = centre + factor z``: the chains move in z."""

    centre: np.ndarray
    factor: np.ndarray


class Draws(NamedTuple):
    """Draws (C, n, d) of C chains, their log densities (C, n), and how many steps diverged."""

    theta: np.ndarray
    values: np.ndarray
    divergent: int


class Machine(NamedTuple):
    """A target compiled."""

    values: Callable[[np.ndarray], np.ndarray]
    """(S, d) -> (S,)"""
    walk: Callable[..., tuple[Any, ...]]
    """``walk(key, θ (C, d), centre, factor, step size) -> draws, values, acceptances, divergences``"""


def compiled(target: Target) -> Machine:
    """The log density of many points, and one round of the chains."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    xp = jax_backend()

    @jax.jit
    def values(theta: Any) -> Any:
        return target.density(theta, xp)

    def in_chunks(theta: np.ndarray) -> np.ndarray:
        size = 4096
        padded = np.concatenate([theta, np.repeat(theta[-1:], -len(theta) % size, axis=0)])
        parts = [np.asarray(values(part)) for part in padded.reshape(-1, size, theta.shape[1])]
        found = np.concatenate(parts)[: len(theta)]
        return np.where(np.isnan(found), -np.inf, found)

    def log_density(theta: Any) -> Any:
        found = target.density(theta, xp)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    def summed(theta: Any) -> Any:
        found = log_density(theta)
        return found.sum(), found

    @jax.jit
    def walk(key: Any, theta: Any, centre: Any, factor: Any, step_size: Any) -> Any:
        def with_gradient(z: Any) -> Any:
            gradient, found = jax.grad(summed, has_aux=True)(centre + z @ factor.T)
            return found, gradient @ factor

        def transition(state: Any, key: Any) -> Any:
            z, value, gradient = state
            for_momentum, for_length, for_size, for_choice = jax.random.split(key, 4)
            momentum = jax.random.normal(for_momentum, z.shape)
            size = step_size * jax.random.uniform(for_size, minval=0.8, maxval=1.2)
            length = jax.random.uniform(for_length, minval=0.0, maxval=LONGEST)

            def leapfrog(_: Any, moving: Any) -> Any:
                z, momentum, _, gradient = moving
                momentum = momentum + 0.5 * size * gradient
                z = z + size * momentum
                value, gradient = with_gradient(z)
                return z, momentum + 0.5 * size * gradient, value, gradient

            start = (z, momentum, value, gradient)
            steps = jnp.minimum(jnp.ceil(length / size), STEPS).astype(int)
            end = jax.lax.fori_loop(0, steps, leapfrog, start)
            gain = (end[2] - 0.5 * (end[1] ** 2).sum(-1)) - (value - 0.5 * (momentum**2).sum(-1))
            gain = jnp.where(jnp.isnan(gain), -jnp.inf, gain)
            accepted = jnp.log(jax.random.uniform(for_choice, gain.shape)) < gain
            z, gradient = (
                jnp.where(accepted[:, None], new, old) for new, old in ((end[0], z), (end[3], gradient))
            )
            value = jnp.where(accepted, end[2], value)
            return (z, value, gradient), (z, value, jnp.minimum(jnp.exp(gain), 1.0), gain < -DIVERGENT)

        z = jax.scipy.linalg.solve_triangular(factor, (theta - centre).T, lower=True).T
        keys = jax.random.split(key, ROUND)
        _, (z, found, accepted, divergent) = jax.lax.scan(transition, (z, *with_gradient(z)), keys)
        return centre + z @ factor.T, found, accepted.mean(), divergent.sum()

    return Machine(in_chunks, walk)


def frame_of(theta: np.ndarray) -> Frame:
    """The mean and the factor of the covariance of draws (n, d), with a ridge against round-off."""
    sd = theta.std(axis=0) + 1e-300
    correlation = np.atleast_2d(np.corrcoef(theta.T))
    ridge = 1e-8
    factor = np.linalg.cholesky((1.0 - ridge) * correlation + ridge * np.eye(len(sd)))
    return Frame(theta.mean(axis=0), sd[:, None] * factor)


SOUGHT, KEPT = 4096, 400
"""Draws of a Gaussian on the way to the posterior, and how many of them the tempered weights leave effective."""


def approached(values: Callable[[np.ndarray], np.ndarray], frame: Frame, rng: np.random.Generator) -> Frame:
    """The frame of a Gaussian near the posterior, by importance sampling with tempered weights from ``frame`` on."""
    for _ in range(40):
        z = 1.2 * rng.standard_normal((SOUGHT, len(frame.centre)))
        theta = frame.centre + z @ frame.factor.T
        log_weights = values(theta) + 0.5 * (z**2).sum(axis=1) / 1.2**2
        log_weights -= log_weights.max()
        power = 1.0
        while effective(power * log_weights) < KEPT:
            power *= 0.8
        weights = np.exp(power * log_weights)
        frame = frame_of(theta[rng.choice(SOUGHT, SOUGHT, p=weights / weights.sum())])
        if power == 1.0:
            break
    return frame


def effective(log_weights: np.ndarray) -> float:
    weights = np.exp(log_weights)
    return float(weights.sum() ** 2 / (weights**2).sum())


class Walker:
    """Chains with a frame and a step size; ``round`` moves them on."""

    def __init__(self, machine: Machine, start: np.ndarray, frame: Frame, seed: int) -> None:
        self.machine, self.theta, self.frame = machine, start, frame
        self.step_size, self.seed = 0.3, seed

    def round(self) -> tuple[np.ndarray, np.ndarray, float, int]:
        """Draws (C, ROUND, d), log densities (C, ROUND), mean acceptance and divergences."""
        import jax

        self.seed += 1
        found = self.machine.walk(jax.random.PRNGKey(self.seed), self.theta, *self.frame, self.step_size)
        theta, values, accepted, divergent = (np.asarray(part) for part in found)
        self.theta = theta[-1]
        return theta.swapaxes(0, 1), values.T, float(accepted), int(divergent)

    def adapt(self, rounds: int) -> None:
        """Warm up: after each round a new frame and step size from all chains together."""
        for _ in range(rounds):
            theta, values, accepted, _ = self.round()
            self.step_size = float(np.clip(self.step_size * np.exp(2.0 * (accepted - ACCEPTANCE)), 1e-4, 1.2))
            self.theta = revived(self.theta, values[:, -1])
            self.frame = frame_of(theta[:, ROUND // 2 :].reshape(-1, theta.shape[2]))

    def draws(self, fewest: int, most: int, seconds: float) -> Draws:
        """Of at least ``fewest`` rounds, and of up to ``most`` while they take less CPU time than ``seconds``."""
        parts, start = [], time.process_time()
        while len(parts) < fewest or (len(parts) < most and time.process_time() - start < seconds):
            parts.append(self.round())
        return Draws(
            np.concatenate([part[0] for part in parts], axis=1),
            np.concatenate([part[1] for part in parts], axis=1),
            sum(part[3] for part in parts),
        )


LOST = 20.0
"""During warm-up a chain this many nats below the median one moves to the place of a random other."""


def revived(theta: np.ndarray, values: np.ndarray) -> np.ndarray:
    lost = ~(values > np.median(values) - LOST - theta.shape[1])
    if not lost.any() or lost.all():
        return theta
    moved = theta.copy()
    moved[lost] = theta[~lost][np.arange(lost.sum()) % (~lost).sum()]
    return moved
