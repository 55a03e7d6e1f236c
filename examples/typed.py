"""A project with strict types: `mypy --strict` knows what every call returns.

Run:  python examples/typed.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import mgvbp
from mgvbp.transforms import Positive, Real

Array = NDArray[np.float64]


class Readings:
    """Readings of a sensor, some of which went wrong: errors with Student's t."""

    def __init__(self, y: Array) -> None:
        self.y = y

    def log_likelihood(self, level: Array, scale: Array) -> Array:
        """Of draws (S,), (S,) at once, without constants."""
        z = (self.y - level[:, None]) / scale[:, None]
        return np.asarray(-2.5 * np.log1p(z**2 / 4.0).sum(axis=1) - len(self.y) * np.log(scale))


def posterior(readings: Readings) -> mgvbp.Posterior:
    """The level and the scale, given the readings."""
    parameters = mgvbp.Parameters(level=Real(), scale=Positive())
    model = mgvbp.Model(readings.log_likelihood, parameters)
    return mgvbp.fit(model, mgvbp.Gaussian(variance=4.0, dim=2), tol=0.01)


def main() -> None:
    """Fit, and use what has come of it."""
    readings = Readings(1.0 + 0.2 * np.random.default_rng(0).standard_t(4.0, size=40))
    result = posterior(readings)
    diagnosis: mgvbp.Diagnosis = result.diagnose()
    draws: Array = result.draws(1000)["level"]
    gap: float | None = result.gap
    low, high = np.quantile(draws, [0.025, 0.975])
    print(f"level {float(result['level'].mean):.2f}, 95% between {low:.2f} and {high:.2f}")
    print(
        f"{diagnosis.verdict}; the bound is within {gap:.3f} nats" if gap is not None else diagnosis.verdict
    )


if __name__ == "__main__":
    main()
