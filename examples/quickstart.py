"""A likelihood of your own, from the function to a picture: seals on a cold morning.

In 7 of 23 launches of the space shuttle before January 1986 an O-ring was damaged. The next launch was at
31 °F. Temperatures and damage are those of Dalal, Fowlkes and Hoadley (1989), table 1.

Run:  python examples/quickstart.py [picture.png]
"""

import sys

import numpy as np

import mgvbp

temperature = np.array(  # °F
    [66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58]
)
damaged = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1])
x = (temperature - 70.0) / 10.0


def log_likelihood(theta):
    """Of a logistic regression, (S, 2) -> (S,): one value for each of S draws."""
    logits = theta[:, :1] + theta[:, 1:] * x
    return (damaged * logits - np.logaddexp(0.0, logits)).sum(axis=1)


posterior = mgvbp.fit(log_likelihood, prior=mgvbp.Gaussian(variance=4.0, dim=2))
print(posterior.summary(), "\n")
print(posterior.diagnose(), "\n")

draws = posterior.resample(4000, rng=0)  # corrected by importance weights
logits = draws[:, 0] + draws[:, 1] * (31.0 - 70.0) / 10.0
low, median, high = np.quantile(1.0 / (1.0 + np.exp(-logits)), [0.05, 0.5, 0.95])
print(f"probability of damage at 31 °F: {median:.3f} (90% interval {low:.3f} to {high:.3f})")

if len(sys.argv) > 1:
    panels = mgvbp.plots.marginals(posterior)
    panels[0].figure.savefig(sys.argv[1])
