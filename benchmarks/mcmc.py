"""`posterior.mcmc` on targets that are not Gaussian: exactness, R-hat, and evaluations an effective draw.

Run:  python benchmarks/mcmc.py [--seeds 2] [--draws 1000] [names ...]

Three samplers a target: ours from values alone (elliptical slices), ours with gradients (NUTS), both after a fit, and
plain NUTS with its own warm-up of 500 draws a chain (`mgvbp.baselines.nuts`, which is BlackJAX's). An effective draw is
one of the smallest bulk effective size over the entries of θ; evaluations include warm-up, and those of the fit are
shown beside. The last columns compare with the truth, of 200,000 exact draws or of a grid: the largest error of a mean,
in Monte Carlo standard errors of the chains, and the range of the ratios of standard deviations.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import mgvbp

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from zoo import TARGETS  # noqa: E402
from zoo.base import jax_backend  # noqa: E402
from zoo.targets_hierarchical import SCHOOLS_EFFECT, SCHOOLS_SE  # noqa: E402

EXACT = 200_000
"""Draws of the truth."""


class Truth(NamedTuple):
    """Means and standard deviations, (d,) each."""

    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def of(cls, draws: np.ndarray, weights: np.ndarray | None = None) -> Truth:
        """Of draws (n, d), or of the points of a grid."""
        mean = np.average(draws, axis=0, weights=weights)
        return cls(mean, np.sqrt(np.average((draws - mean) ** 2, axis=0, weights=weights)))


# --- exact draws ----------------------------------------------------------------------------------------


def banana_2(rng: np.random.Generator) -> Truth:
    x = 2.0 * rng.standard_normal(EXACT)
    return Truth.of(np.column_stack([x, 0.15 * (x**2 - 4.0) + rng.standard_normal(EXACT)]))


def funnel_3(rng: np.random.Generator) -> Truth:
    v = 1.5 * rng.standard_normal(EXACT)
    return Truth.of(np.column_stack([v, np.exp(0.5 * v)[:, None] * rng.standard_normal((EXACT, 2))]))


def student_t_5(rng: np.random.Generator) -> Truth:
    normal = rng.standard_normal((EXACT, 5)) @ np.linalg.cholesky(0.4 * np.eye(5) + 0.6).T
    return Truth.of(1.0 + normal / np.sqrt(rng.chisquare(5.0, size=(EXACT, 1)) / 5.0))


def log_gamma_5(rng: np.random.Generator) -> Truth:
    x = np.log(rng.gamma(np.array([0.3, 0.7, 1.5, 4.0, 10.0]), size=(EXACT, 5)))
    return Truth.of(x @ np.linalg.inv(np.eye(5) + 0.4 * np.eye(5, k=1)))


def eight_schools_centred(rng: np.random.Generator) -> Truth:
    """Draw log τ from its marginal density on a grid, then μ and the effects, which are Gaussian given τ."""
    log_tau = np.linspace(-9.0, 5.0, 8001)
    tau = np.exp(log_tau)[:, None]
    variance = SCHOOLS_SE**2 + tau**2
    precision = 0.01 + (1.0 / variance).sum(axis=1)
    centre = (SCHOOLS_EFFECT / variance).sum(axis=1) / precision
    square = (SCHOOLS_EFFECT**2 / variance).sum(axis=1) - centre**2 * precision
    log_p = log_tau - 0.5 * (tau[:, 0] / 10.0) ** 2
    log_p -= 0.5 * (np.log(variance).sum(axis=1) + np.log(precision) + square)
    p = np.exp(log_p - log_p.max())
    at = rng.choice(len(log_tau), p=p / p.sum(), size=EXACT)
    mu = centre[at] + rng.standard_normal(EXACT) / np.sqrt(precision[at])
    within = 1.0 / tau[at] ** 2 + 1.0 / SCHOOLS_SE**2
    effects = (mu[:, None] / tau[at] ** 2 + SCHOOLS_EFFECT / SCHOOLS_SE**2) / within
    effects += rng.standard_normal((EXACT, 8)) / np.sqrt(within)
    return Truth.of(np.column_stack([mu, log_tau[at], effects]))


def garch11(rng: np.random.Generator) -> Truth:
    """A grid, which is fine beside the posterior's widths."""
    axes = np.linspace(-5.0, 1.0, 61), np.linspace(-3.5, 7.0, 71), np.linspace(-4.0, 4.0, 71)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    log_p = np.concatenate([TARGETS["garch11"].log_density(part) for part in np.array_split(grid, 60)])
    return Truth.of(grid, np.exp(log_p - log_p.max()))


TRUTHS: dict[str, Callable[[np.random.Generator], Truth]] = {
    function.__name__: function
    for function in (banana_2, funnel_3, student_t_5, eight_schools_centred, garch11, log_gamma_5)
}


# --- samplers -------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """What a run of a sampler took and gave."""

    fit: int
    evaluations: int
    draws: np.ndarray
    """(chains, n, d)"""
    divergences: int
    thinning: int
    seconds: float


def ours(function: Any, dim: int, draws: int, seed: int) -> Row:
    posterior = mgvbp.fit(function, dim=dim, rng=seed)
    start = time.process_time()
    tree = posterior.mcmc(draws, rng=seed)
    seconds, found = time.process_time() - start, tree.attrs
    theta = tree["posterior"]["theta"].to_numpy()
    divergences, thinning = found.get("divergences", 0), found["thinning"]
    return Row(posterior.n_evaluations, found["n_evaluations"], theta, divergences, thinning, seconds)


def plain(function: Any, dim: int, draws: int, seed: int) -> Row:
    start = time.process_time()
    chains = mgvbp.baselines.nuts(function, dim=dim, num_draws=draws, rng=seed)
    return Row(0, chains.n_gradients, chains.draws, chains.divergences, 1, time.process_time() - start)


def line(row: Row, truth: Truth) -> str:
    chains = mgvbp.baselines.Chains(row.draws)
    error = (np.abs(chains.mean - truth.mean) / np.hypot(chains.mcse, truth.std / np.sqrt(EXACT))).max()
    ratio = chains.std / truth.std
    return (
        f"{row.fit:7,} {row.evaluations:9,} {row.evaluations / chains.ess.min():9.1f} {chains.ess.min():7.0f} "
        f"{chains.rhat.max():7.4f} {row.thinning:5} {row.divergences:5} {row.seconds:6.1f} {error:6.2f} "
        f"{ratio.min():6.2f}-{ratio.max():.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(TRUTHS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--draws", type=int, default=1000)
    args = parser.parse_args()
    print(
        f"{'target':22} {'sampler':12} {'fit':>7} {'evals':>9} {'per draw':>9} {'ESS':>7} {'R-hat':>7} {'thin':>5} "
        f"{'div.':>5} {'CPU s':>6} {'error':>6} {'sd ratio':>11}"
    )
    for name in args.names:
        target, truth = TARGETS[name], TRUTHS[name](np.random.default_rng(0))

        def density(theta: Any, target: Any = target) -> Any:
            return target.density(theta[None], jax_backend())[0]

        differentiable = mgvbp.from_jax(density)
        samplers = {
            "ours, values": (ours, target.log_density),
            "ours, NUTS": (ours, differentiable),
            "plain NUTS": (plain, differentiable),
        }
        for seed in range(args.seeds):
            for label, (sampler, function) in samplers.items():
                with threadpool_limits(1), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row = sampler(function, target.dim, args.draws, seed)
                print(f"{name:22} {label:12} {line(row, truth)}", flush=True)


if __name__ == "__main__":
    main()
