"""Kriging by all pairs of draws and by the largest terms of its kernel: time, error, and the error that is stated.

Run:  OPENBLAS_NUM_THREADS=1 python benchmarks/surfaces.py [--draws 1000 3000] [names ...]   # needs jax

For targets of the zoo, draws from the best Gaussian. The error is what the noise of the coefficients of a surface costs
in nats: against the regression on 2¹⁷ Sobol points, and as the surface states it. CPU seconds of one surface, that with
the metric adapted to what bends.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import jax
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

import mgvbp
from mgvbp.core.linalg import Array
from mgvbp.errors import MgvbpWarning
from mgvbp.estimators.regression import monomials
from mgvbp.families import Full
from mgvbp.surfaces import constants
from mgvbp.surfaces.kriging import Kriging, krige, krige_adapted

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from zoo import TARGETS  # noqa: E402
from zoo.base import Target, jax_backend  # noqa: E402

NAMES = (
    "eight_schools_centred",
    "eight_schools_noncentred",
    "lynx_hare",
    "hmm_three_states",
    "logistic_groups_noncentred",
)


def best_gaussian(target: Target) -> mgvbp.Posterior:
    """The best Gaussian, by gradients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MgvbpWarning)
        return mgvbp.fit(lambda theta: target.density(theta, jax_backend()), dim=target.dim, grad="jax")


def rest(target: Target, q: mgvbp.Posterior, eps: Array) -> Array:
    """What the log density has beyond that of a standard normal distribution, at points of the frame of ``q``."""
    theta = q.mean + eps @ np.linalg.cholesky(q.covariance).T
    return target.log_density(theta) + 0.5 * np.square(eps).sum(axis=1)


def exact(target: Target, q: mgvbp.Posterior) -> Array:
    """The coefficients of the surface, from very many points."""
    points = ndtri(qmc.Sobol(target.dim, seed=1).random(2**16))
    eps = np.concatenate([points, -points])
    h = rest(target, q, eps)
    finite = np.isfinite(h)
    return np.asarray(np.linalg.lstsq(monomials(Full(target.dim), eps[finite]), h[finite])[0])


def cost(squares: Array, dim: int) -> float:
    """Nats that squared errors of the coefficients cost, to second order."""
    i, j = Full(dim).pairs
    return float(0.5 * squares[1 : 1 + dim].sum() + np.where(i == j, 1.0, 0.5) @ squares[1 + dim :])


def fitted(eps: Array, h: Array, dense: bool) -> tuple[Kriging, float]:
    """The adapted fit, and the CPU seconds that it took."""
    constants.DENSE_DRAWS = len(h) if dense else 0
    Z, weights = monomials(Full(eps.shape[1]), eps), np.full(len(h), 1.0 / len(h))
    before = time.process_time()
    plain = krige(eps, Z, h, weights)
    assert plain is not None
    best = krige_adapted(eps, Z, h, weights, plain)
    return best, time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--draws", type=int, nargs="+", default=[1000, 3000])
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{'target':28} {'d':>3} {'draws':>6} {'kriging':>9} {'seconds':>8} {'error':>9} {'stated':>9}")
    rng = np.random.default_rng(0)
    for name in args.names:
        target = TARGETS[name]
        q = best_gaussian(target)
        truth = exact(target, q)
        for draws in args.draws:
            eps = rng.standard_normal((draws, target.dim))
            h = rest(target, q, eps)
            for dense in (True, False):
                fit, seconds = fitted(eps, h, dense)
                errors = constants.CAUTION * fit.influence * fit.residuals
                row = (
                    cost(np.square(fit.coefficients - truth), target.dim),
                    cost(np.square(errors).sum(axis=1), target.dim),
                )
                kind = "all pairs" if dense else "terms"
                print(
                    f"{name:28} {target.dim:3} {draws:6} {kind:>9} {seconds:8.2f} {row[0]:9.5f} {row[1]:9.5f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
