"""Peak memory of one iteration beyond the state, in d×d arrays: S = 100, d = 2000, every method.

Run:  python benchmarks/memory.py [--dim 2000] [--draws 100]

Target: at most 6 for the step (no S×d² array anywhere). The iteration adds the estimate of the gradients.
NumPy reports its allocations to tracemalloc; those made inside BLAS are small buffers and do not count.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable

import numpy as np

import mgvbp
from mgvbp.estimators import Estimate
from mgvbp.methods.optimizer import Frame


def peak(function: Callable[[], object]) -> int:
    """Bytes at the worst moment of the call, beyond what there was before it."""
    tracemalloc.start()
    function()
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return top


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dim", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=100)
    arguments = parser.parse_args()
    d, S = arguments.dim, arguments.draws
    unit = 8 * d * d
    rng = np.random.default_rng(0)
    A = rng.standard_normal((d, d)) / d
    G = np.asfortranarray(A + A.T)
    L, g = np.asfortranarray(np.eye(d)), rng.standard_normal(d)
    print(f"d = {d}, S = {S}; in units of one d×d array ({unit / 2**20:.0f} MiB)")
    print(f"{'method':<10}{'step':>8}{'iteration, loglik':>20}{'iteration, h':>16}")
    for method in (mgvbp.MGVBP(), mgvbp.MGVB(), mgvbp.QBVI(), mgvbp.Geodesic()):
        frame, estimate = Frame(g, L, g, G.copy(order="F")), Estimate(g, G, 0.0)
        figures = [peak(lambda: method.step(mgvbp.Full(d), frame, estimate, 2)) / unit]  # noqa: B023
        for estimator in ("loglik", "h"):
            opt = method.start(mgvbp.Gaussian(variance=1.0, dim=d), estimator=estimator, num_draws=S)
            values = rng.standard_normal(S)
            opt.ask()
            opt.tell(values)  # the second iteration has momentum and control variates
            opt.ask()
            figures.append(peak(lambda: opt.tell(values)) / unit)  # noqa: B023
        print(f"{type(method).__name__:<10}{figures[0]:>8.1f}{figures[1]:>20.1f}{figures[2]:>16.1f}")


if __name__ == "__main__":
    main()
