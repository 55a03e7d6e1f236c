"""A likelihood with kinks: a median line through data with outliers. No gradient exists, and none is needed.

A tide gauge rises by 2 mm a year, with some noise. One reading in eight of the second half is far too high: a
gate was left open. Least squares take that for a faster rise. The data are simulated, so that the truth is
known.

Run:  python examples/robust_regression.py [picture.png]
"""

import sys

import numpy as np
import scipy.stats

import mgvbp
from mgvbp.transforms import Positive, Real

rng = np.random.default_rng(3)
year = np.linspace(-20.0, 20.0, 120)
tide = 50.0 + 2.0 * year + rng.normal(0.0, 10.0, size=120)  # mm
tide[60::8] += 150.0


def log_likelihood(level, rise, scale):
    """Of a Laplace distribution around the line, (S,) each -> (S,)."""
    residuals = tide - level[:, None] - rise[:, None] * year
    return -np.abs(residuals).sum(axis=1) / scale - len(year) * np.log(2.0 * scale)


parameters = mgvbp.Parameters(level=Real(), rise=Real(), scale=Positive())
prior = parameters.prior(
    level=scipy.stats.norm(0.0, 100.0),
    rise=scipy.stats.norm(0.0, 10.0),
    scale=scipy.stats.halfnorm(scale=50.0),
)
posterior = mgvbp.fit(mgvbp.Model(log_likelihood, parameters), prior)
print(posterior.summary(), "\n")
print(posterior.diagnose(), "\n")

least_squares = np.polyfit(year, tide, 1)
rise = posterior["rise"]
print(f"rise in mm a year, least squares: {least_squares[0]:.2f}")
print(f"rise in mm a year, median line:   {rise.mean:.2f} ± {rise.std:.2f}")

if len(sys.argv) > 1:
    from matplotlib.figure import Figure

    draws = posterior.draws(2000, rng=0)
    lines = draws["level"][:, None] + draws["rise"][:, None] * year
    low, middle, high = np.quantile(lines, [0.05, 0.5, 0.95], axis=0)
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    ax = figure.subplots()
    ax.plot(year, tide, "ko", markersize=3)
    ax.plot(year, np.polyval(least_squares, year), "--", color="tab:red", label="least squares")
    ax.plot(year, middle, color="tab:blue", label="median line, 90% band")
    ax.fill_between(year, low, high, color="tab:blue", alpha=0.2)
    ax.set(xlabel="year", ylabel="tide, mm")
    ax.legend(frameon=False, loc="upper left")
    figure.savefig(sys.argv[1])
