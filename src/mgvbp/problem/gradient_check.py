"""Whether a gradient that the user wrote is that of their function: a wrong one would be certified all the same."""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Problem

STEPS = (1e-3, 2e-3, 3e-3, 4e-3)
"""Of the differences, in standard deviations."""
AGREEMENT = 0.1
"""Relative spread of differences of one step and of several beyond which they say nothing: noise, kinks, few digits."""
WRONG = 0.25
"""Relative error of a gradient that is not one of this function."""
ROUND_OFF = 1e3
"""Units of round-off of the values below which a difference is none."""
MOST_DRAWS = 10
"""Some may be where the function is not finite."""


def check_gradient(problem: Problem, q: Gaussian, rng: np.random.Generator) -> None:
    """Compare ``problem.grad`` with central differences, along a random direction from a random draw of ``q``.

    Four evaluations if it is right. One that seems wrong is looked at from two more draws, with more steps, and is
    wrong if one of them confirms it: a single draw may lie at a kink, or its differences agree by chance. What raises
    an exception is left to the run, which knows what to do then.
    """
    assert problem.grad is not None
    seen = wrong = 0
    for _ in range(MOST_DRAWS):
        theta, u = q.sample(1, rng), rng.standard_normal(q.dim)
        direction = q.family.from_frame(q.factor, (u / np.linalg.norm(u))[None])
        try:
            gradient = problem.grad(theta.copy()) if problem.vectorized else problem.grad(theta[0].copy())
            with np.errstate(invalid="ignore"):
                told = float(np.reshape(gradient, q.dim) @ direction[0])
            found, known = slope(problem, theta, direction, STEPS if wrong else STEPS[:2])
        except Exception:
            return
        if not (math.isfinite(told) and math.isfinite(found)):
            continue
        seen += 1
        wrong += known and abs(told - found) > WRONG * abs(found)
        if wrong == 2:
            raise InvalidInputError(
                f"grad is not the gradient of log_likelihood: along a random direction it says {told:.3g}, differences "
                f"say {found:.3g}; check its sign, scale, and that the prior is not in it"
            )
        if wrong == 0 or seen == 3:
            return


def slope(problem: Problem, theta: Array, direction: Array, steps: tuple[float, ...]) -> tuple[float, bool]:
    """The slope at θ (1, d) by central differences of these steps, and whether it is good for anything."""
    ahead = np.array(steps)[:, None]
    values = problem.evaluate(theta + np.concatenate([ahead, -ahead]) * direction)
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = (values[: len(steps)] - values[len(steps) :]) / (2.0 * ahead[:, 0])
        unit = np.finfo(np.float32 if (values.astype(np.float32) == values).all() else np.float64).eps
        least = ROUND_OFF * unit * np.abs(values).max() / steps[0]
        found = float(slopes[0])
        return found, bool(np.ptp(slopes) <= AGREEMENT * abs(found)) and abs(found) > least
