"""Your own loop does the evaluating: the library hands out draws and is told their values.

Deaths by the kick of a horse in 14 corps of the Prussian army, over 20 years (von Bortkiewicz 1898). Each
corps has a rate of its own, λ = exp(θ). A pool of threads stands for your queue, your cluster, or the student
at the instrument.

Run:  python examples/ask_tell.py
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import mgvbp

deaths = np.array([16, 16, 12, 12, 8, 11, 17, 12, 7, 13, 15, 25, 24, 8])
years = 20.0


def log_density(theta):
    """Poisson log-likelihood of one draw, (14,) -> a number; all log rates are equally likely beforehand."""
    return deaths @ theta - years * np.exp(theta).sum()


run = mgvbp.Auto(tol=0.01).start(14, family="diagonal", rng=0)
with ThreadPoolExecutor(2) as pool:
    while not run.stop_reason:
        theta = run.ask()  # (S, 14): as many as this step wants
        run.tell(list(pool.map(log_density, theta)))  # in the order of the rows

print(f"{run.stop_reason}; {run.n_evaluations} evaluations")
q = run.gaussian
for corps, (mean, std) in enumerate(zip(q.mean, q.std, strict=True), start=1):
    print(f"corps {corps:2d}: log rate {mean:.4f} ± {std:.4f}")

same = mgvbp.fit(log_density, dim=14, family="diagonal", rng=0, vectorized=False)
print(f"largest difference to mgvbp.fit: {np.abs(q.mean - same.mean).max()}")
