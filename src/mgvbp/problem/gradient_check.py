"""Check that the user's gradient is that of their function, since `auto` would certify a wrong result otherwise."""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Problem

STEPS = (1e-3, 2e-3, 3e-3, 4e-3)
"""Steps of the differences, in standard deviations of q."""
AGREEMENT = 0.1
"""Slopes from different steps with a larger relative spread show nothing: there is noise, a kink, or few digits."""
WRONG = 0.25
"""Relative error beyond which a gradient seems wrong."""
ROUND_OFF = 1e3
"""A difference of values that is below this many units of round-off shows nothing."""
MOST_DRAWS = 10
"""Most draws that are tried, since the function may not be finite at some of them."""


def check_gradient(problem: Problem, q: Gaussian, rng: np.random.Generator) -> None:
    """Compare ``problem.grad`` with central differences, along a random direction from a random draw of ``q``.

    A gradient that is right takes four evaluations. One that seems wrong is checked at up to two more draws, with
    more steps, and is refused if one of them confirms the error: a single draw may lie at a kink, or its differences
    may agree by chance. If the function raises an exception the check ends, since the run handles exceptions.
    """
    assert problem.grad is not None
    seen = wrong = 0
    for _ in range(MOST_DRAWS):
        theta, u = q.sample(1, rng), rng.standard_normal(q.dim)
        direction = q.family.from_frame(q.factor, (u / np.linalg.norm(u))[None])
        try:
            found, known = slope(problem, theta, direction, STEPS if wrong else STEPS[:2])
            one_by_one = problem.one_by_one("gradients")  # which the first values have shown
            gradient = problem.grad(theta[0].copy() if one_by_one else theta.copy())
            with np.errstate(invalid="ignore"):
                told = float(np.reshape(gradient, q.dim) @ direction[0])
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
    """The slope at θ (1, d) by central differences of these steps, and whether it is reliable."""
    ahead = np.array(steps)[:, None]
    values = problem.evaluate(theta + np.concatenate([ahead, -ahead]) * direction)
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = (values[: len(steps)] - values[len(steps) :]) / (2.0 * ahead[:, 0])
        unit = np.finfo(np.float32 if (values.astype(np.float32) == values).all() else np.float64).eps
        least = ROUND_OFF * unit * np.abs(values).max() / steps[0]
        found = float(slopes[0])
        return found, bool(np.ptp(slopes) <= AGREEMENT * abs(found)) and abs(found) > least
