"""Time of one MGVBP step: in the frame, by the paper's formulas (inv, sqrtm), and of one dgemm.

Run:  python benchmarks/step.py [--threads 1] [--dims 8 50 100 234 500 1000]

Both take the same gradients and return the next mean, precision and transported momentum (momentum 0.4).
Targets: at least 10 times faster than the formulas at d >= 100, never slower at d = 8, at most 8 dgemm at d = 1000.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.linalg import inv
from scipy.linalg import sqrtm
from scipy.linalg.blas import dgemm
from threadpoolctl import threadpool_limits

from mgvbp import MGVBP, Full
from mgvbp.estimators import Estimate
from mgvbp.methods.optimizer import Frame
from timing import best_time

BETA, OMEGA = 0.01, 0.4


def cases(
    d: int, rng: np.random.Generator
) -> tuple[Callable[[], object], Callable[[], object], Callable[[], object]]:
    """Our step, the formulas' step and a matrix product, ready to be timed, at the same random state."""
    Q = rng.standard_normal((d, 2 * d))
    P = Q @ Q.T / d
    L = np.asfortranarray(np.linalg.cholesky(P))

    def symmetric() -> np.ndarray:
        A = rng.standard_normal((d, d)) / np.sqrt(d)
        return np.asfortranarray(A + A.T)

    mu, g, m_mu, G, M = (
        rng.standard_normal(d),
        rng.standard_normal(d),
        rng.standard_normal(d),
        symmetric(),
        symmetric(),
    )
    family, method = Full(d), MGVBP(step_size=BETA, momentum=OMEGA, precision_scale=1.0)
    frame, estimate = Frame(mu, L, m_mu, M), Estimate(g, G, 0.0)

    grad_mu, n_P, m_P = L @ g, L @ G @ L.T, L @ M @ L.T

    def formulas() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        S = inv(P)  # once, where the paper's listing needs it three times
        m_new = OMEGA * m_mu + (1 - OMEGA) * S @ grad_mu
        m = OMEGA * m_P + (1 - OMEGA) * n_P
        xi = BETA * m
        P_new = P + xi + xi @ S @ xi / 2  # eq:retr
        E = sqrtm(P_new @ S).real  # eq:transport
        return mu + BETA * m_new, (P_new + P_new.T) / 2, E @ m @ E.T

    def ours() -> Frame:
        return method.step(family, frame, estimate, 2).frame

    frame_new, (mu_new, P_new, m_new) = ours(), formulas()
    L_new, M_new = frame_new.factor, frame_new.factor_momentum
    assert M_new is not None
    np.testing.assert_allclose(frame_new.mean, mu_new, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(L_new @ L_new.T, P_new, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(L_new @ M_new @ L_new.T, m_new, rtol=1e-6, atol=1e-7)
    return ours, formulas, lambda: dgemm(1.0, L, G)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dims", type=int, nargs="+", default=[8, 50, 100, 234, 500, 1000])
    arguments = parser.parse_args()
    print(f"BLAS threads: {arguments.threads}; best of several, in one process")
    print(f"{'d':>6}{'ours':>12}{'formulas':>12}{'speed-up':>10}{'dgemm':>12}{'ours/dgemm':>12}")
    with threadpool_limits(arguments.threads):
        for d in arguments.dims:
            ours, formulas, product = (best_time(f) for f in cases(d, np.random.default_rng(0)))
            print(
                f"{d:>6}{1e3 * ours:>10.3f}ms{1e3 * formulas:>10.3f}ms{formulas / ours:>10.1f}"
                f"{1e3 * product:>10.3f}ms{ours / product:>12.2f}"
            )


if __name__ == "__main__":
    main()
