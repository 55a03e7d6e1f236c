"""A numba function as the log-likelihood: an ARCH(1) recursion, in loops over draws and days.

Run:  pip install numba mgvbp && python examples/numba_function.py
"""

import numba
import numpy as np

import mgvbp

rng = np.random.default_rng(0)
returns = rng.standard_normal(1000)
for t in range(1, 1000):
    returns[t] *= np.sqrt(0.5 + 0.4 * returns[t - 1] ** 2)


@numba.njit
def log_likelihood(theta):
    """Of all draws, (S, 2) -> (S,); θ = (log ω, log α)."""
    values = np.zeros(len(theta))
    for s in range(len(theta)):
        omega, alpha = np.exp(theta[s])
        for t in range(1, len(returns)):
            variance = omega + alpha * returns[t - 1] ** 2
            values[s] -= 0.5 * (np.log(2 * np.pi * variance) + returns[t] ** 2 / variance)
    return values


posterior = mgvbp.fit(log_likelihood, mgvbp.Gaussian(variance=1.0, dim=2))
print(posterior.summary())
