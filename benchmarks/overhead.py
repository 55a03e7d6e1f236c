"""Time of `fit` over the time of the bare log-likelihood calls it made: Labour data, d = 8, S = 75.

Run:  python benchmarks/overhead.py [--threads 1]

The likelihood is the plain SciPy expression that a user would write, not the faster one of `mgvbp.models`.
Target: at most 2 for the score estimators with plain draws. The draws are recorded in one fit; the bare calls
then evaluate them again, in the same process and with the same threads. The last row is `auto`, whose own decisions
take most of the time: its calls are few.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mgvbp
from mgvbp.datasets import labour
from mgvbp.paper.labour import INITIAL_VARIANCE, NUM_DRAWS, PRIOR_VARIANCE, SETTINGS
from timing import LogLikelihood, best_time, plain_logistic

ITERATIONS = 200


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    data = labour()
    model = plain_logistic(data.X_train, data.y_train)
    prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(data.names))
    method = mgvbp.MGVBP(**{**SETTINGS, "max_iterations": ITERATIONS})
    print(f"Labour, d = 8, S = {NUM_DRAWS}, {ITERATIONS} iterations; BLAS threads: {arguments.threads}")
    print(f"{'estimator':<12}{'family':<10}{'draws':<12}{'fit':>10}{'bare calls':>12}{'ratio':>8}")
    rows = [("loglik", "mc"), ("h", "mc"), ("regression", "mc"), ("h", "antithetic"), ("h", "sobol")]
    with threadpool_limits(arguments.threads):
        for (estimator, draws), family in product(rows, ("full", "diagonal")):
            options: dict[str, Any] = {
                "method": method,
                "family": family,
                "estimator": estimator,
                "draws": draws,
                "num_draws": NUM_DRAWS + (draws == "antithetic"),
                "initial_variance": INITIAL_VARIANCE,
            }
            whole, bare = times(model, prior, options)
            print(
                f"{estimator:<12}{family:<10}{draws:<12}"
                f"{1e3 * whole:>8.1f}ms{1e3 * bare:>10.1f}ms{whole / bare:>8.2f}"
            )
        whole, bare = times(model, prior, {})
        print(f"{'auto':<34}{1e3 * whole:>8.1f}ms{1e3 * bare:>10.1f}ms{whole / bare:>8.2f}")


def times(model: LogLikelihood, prior: mgvbp.Gaussian, options: dict[str, Any]) -> tuple[float, float]:
    """Seconds of the processor of a fit, and of the log-likelihood calls that it makes."""
    seen: list[np.ndarray] = []

    def recorded(theta: np.ndarray) -> np.ndarray:
        seen.append(theta)
        return model(theta)

    mgvbp.fit(recorded, prior, **options)
    whole = best_time(lambda: mgvbp.fit(model, prior, **options), clock=time.process_time)
    return whole, best_time(lambda: [model(theta) for theta in seen], clock=time.process_time)


if __name__ == "__main__":
    main()
