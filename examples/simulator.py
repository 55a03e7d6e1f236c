"""A black box on two cores, with a time limit and a checkpoint: kill it, start it again, and it goes on.

Yeast grows in a test tube, for 18 hours (Carlson 1913, as given by Pearl 1927). The model steps through a
differential equation, one draw a call. It takes milliseconds, and draws that quick stay in this process; think
of yours, which takes minutes and goes to the workers.

Run:  python examples/simulator.py [yeast.npz]
"""

import sys
from pathlib import Path

import numpy as np
import scipy.stats

import mgvbp
from mgvbp.transforms import Positive

yeast = np.array([  # every hour
    9.6, 18.3, 29.0, 47.2, 71.1, 119.1, 174.6, 257.3, 350.7, 441.0,
    513.3, 559.7, 594.8, 629.4, 640.8, 651.1, 655.9, 659.6, 661.8,
])  # fmt: skip
parameters = mgvbp.Parameters(start=Positive(), rate=Positive(), capacity=Positive(), noise=Positive())
guess = {"start": 10.0, "rate": 0.5, "capacity": 500.0, "noise": 10.0}  # right up to a factor of three or so
prior = parameters.prior(**{name: scipy.stats.lognorm(1.0, scale=value) for name, value in guess.items()})


def simulate(start, rate, capacity, steps=20):
    """The amount of yeast at hours 0 to 18, by Heun's method."""
    amount, curve = start, [start]
    for _ in range(18):
        for _ in range(steps):
            now = rate * amount * (1.0 - amount / capacity)
            ahead = amount + now / steps
            amount += 0.5 * (now + rate * ahead * (1.0 - ahead / capacity)) / steps
        curve.append(amount)
    return np.array(curve)


def log_likelihood(theta):
    """Of one draw, (4,) -> a number."""
    values = {name: float(value) for name, value in parameters.constrain(theta).items()}
    noise = values.pop("noise")
    return scipy.stats.norm.logpdf(yeast, simulate(**values), noise).sum()


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    how = {"n_jobs": 2, "timeout": 10.0, "every": 0.1}  # every: seconds between two writes of the checkpoint
    if path and path.exists():
        print(f"going on with {path.name}")
        posterior = mgvbp.resume(path, log_likelihood, prior, **how)
    else:
        where = {"initial_mean": parameters.unconstrain(guess), "checkpoint": path}
        posterior = mgvbp.fit(log_likelihood, prior, vectorized=False, **where, **how)
    print(posterior.summary())
    print(f"draws that failed: {dict(posterior.failures)}")
