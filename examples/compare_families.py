"""What are correlations worth? The same regression with a diagonal, a block-diagonal and a full covariance.

The heat that 13 cements set free, by their four ingredients (Woods, Steinour and Starke 1932; "Hald's data").
The ingredients nearly add up to 100%, so that the data cannot tell their effects apart: a diagonal covariance
misses that. Columns are centred, so that the intercept has no correlation with them, and a block of its own
loses nothing.

Run:  python examples/compare_families.py [picture.png]
"""

import sys

import numpy as np

import mgvbp
from mgvbp.transforms import Real

ingredients = np.array(
    [
        [7, 1, 11, 11, 7, 11, 3, 1, 2, 21, 1, 11, 10],
        [26, 29, 56, 31, 52, 55, 71, 31, 54, 47, 40, 66, 68],
        [6, 15, 8, 8, 6, 9, 17, 22, 18, 4, 23, 9, 8],
        [60, 52, 20, 47, 33, 22, 6, 44, 22, 26, 34, 12, 12],
    ]
).T  # per cent of the weight
heat = np.array([78.5, 74.3, 104.3, 87.6, 95.9, 109.2, 102.7, 72.5, 93.1, 115.9, 83.8, 113.3, 109.4])
X = ingredients - ingredients.mean(axis=0)
SIGMA = 2.5  # of the noise; known, so that the posterior is Gaussian and the differences have a formula


def log_likelihood(intercept, slope):
    """(S,) and (S, 4) -> (S,)."""
    residuals = (heat - intercept[:, None] - slope @ X.T) / SIGMA
    return -0.5 * (residuals**2).sum(axis=1)


model = mgvbp.Model(log_likelihood, mgvbp.Parameters(intercept=Real(), slope=Real(4)))
prior = mgvbp.Gaussian([90.0, 0.0, 0.0, 0.0, 0.0], variance=[400.0, 4.0, 4.0, 4.0, 4.0])
comparison = mgvbp.compare_families(model, prior)
print(comparison, "\n")
for name, rung in comparison.rungs.items():
    print(f"{name}: standard deviations of the slopes {rung.posterior['slope'].std.round(3)}")

if len(sys.argv) > 1:
    mgvbp.plots.covariance(comparison["full"].posterior).figure.savefig(sys.argv[1])
