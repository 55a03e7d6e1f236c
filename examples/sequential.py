"""A posterior is the next prior: a sensor is calibrated day by day, without a second look at the days before.

Each day brings 20 readings y = offset + gain · x + noise, with a known standard deviation of 0.5. After five
days the posterior is the one that all readings at once would give: here exactly, since this posterior is
Gaussian.

Run:  python examples/sequential.py
"""

import tempfile
from pathlib import Path

import numpy as np

import mgvbp

rng = np.random.default_rng(7)
x = rng.uniform(-2.0, 2.0, size=(5, 20))  # days, readings
y = 0.3 + 1.1 * x + 0.5 * rng.standard_normal(x.shape)


def readings(x, y):
    """The log-likelihood of some readings, (S, 2) -> (S,)."""

    def log_likelihood(theta):
        return -0.5 * ((y - theta[:, :1] - theta[:, 1:] * x) ** 2).sum(axis=1) / 0.5**2

    return log_likelihood


prior = mgvbp.Gaussian(variance=4.0, dim=2)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "sensor.npz")
    for day in range(5):
        known = mgvbp.load(path) if path.exists() else prior  # what the days before have taught
        posterior = mgvbp.fit(readings(x[day], y[day]), prior=known)
        posterior.save(path)
        (offset, gain), (d_offset, d_gain) = posterior.mean, posterior.std
        print(f"day {day + 1}: offset {offset:.4f} ± {d_offset:.4f}, gain {gain:.4f} ± {d_gain:.4f}")

whole = mgvbp.fit(readings(x.ravel(), y.ravel()), prior)
print(
    f"at once: offset {whole.mean[0]:.4f} ± {whole.std[0]:.4f}, gain {whole.mean[1]:.4f} ± {whole.std[1]:.4f}"
)
