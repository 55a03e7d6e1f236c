"""A neural network that knows where it is in doubt: two classes on a chessboard of four fields.

The truth is known here: p(class 1 | x) = 1 / (1 + exp(−3 x₁ x₂)). All 42 weights get a Gaussian with all
correlations.

Run:  pip install 'mgvbp[jax]' && python examples/network.py
"""

import sys

import numpy as np

import mgvbp
from mgvbp import baselines, networks


def chessboard(n, rng):
    """Points, the probability of class 1 there, and classes drawn with it."""
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    p = 1.0 / (1.0 + np.exp(-3.0 * X[:, 0] * X[:, 1]))
    return X, p, (rng.random(n) < p).astype(int)


X, _, y = chessboard(400, np.random.default_rng(1))
X_new, p_new, y_new = chessboard(1000, np.random.default_rng(2))

try:
    network = networks.dense([2, 8, 2])
    data = network.on(X, y)
except mgvbp.MissingDependencyError as error:
    sys.exit(str(error))

prior = mgvbp.Gaussian(variance=4.0, dim=network.dim)
start = baselines.adam(data, prior, max_iterations=200)  # at zero all hidden units would be alike
method = mgvbp.MGVBP(step_size=0.1, decay_after=50, precision_scale=2.0, max_iterations=100)
posterior = mgvbp.fit(
    data, prior, method=method, num_draws=20, initial_mean=start.theta, initial_variance=0.01
)

prediction = network.predict(posterior, X_new)
scores = prediction.score(y_new)
p = prediction.probabilities[:, 1]
best = np.log(np.where(y_new == 1, p_new, 1.0 - p_new)).mean()
print(network)
print(f"accuracy {scores.accuracy:.3f}, with the true probabilities {((p_new > 0.5) == y_new).mean():.3f}")
print(f"log score {scores.log_predictive_density:.3f}, with the true probabilities {best:.3f}")
print(f"probabilities are off by {np.abs(p - p_new).mean():.3f} on average")
