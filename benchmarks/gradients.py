"""`auto` with gradients on the zoo of targets (tests/zoo) beside SAA-Q, and on logistic regressions up to d = 1,000.

Run:  python benchmarks/gradients.py [--seeds 3] [--family full] [--max-dim 100] [--rival] [names ...]   # needs jax
      python benchmarks/gradients.py --logistic 50 100 200 500 1000
      python benchmarks/gradients.py --horseshoe 20 32 [--seeds 3]
      python benchmarks/gradients.py --strangers [--seeds 3]

All start at mean 0 and variance 1. A value with its gradient at one θ is one gradient. Times are CPU seconds of one
thread, after compilation. The true gap is the stored optimum (tests/zoo/reference.json, made by an independent method)
minus the bound of the result on a large Sobol sample; that of a logistic regression comes from quadrature. A claim is
false if the run says that it has converged and the true gap is above 0.05. Targets: gap <= 0.05 in at least 99% of the
runs with d <= 100, no false claim, a median of at most 8 (d + 10) gradients. Targets tagged multimodal are shown
and, but for those tagged hard, not counted. `--rival` also runs SAA-Q (peer/saa.py): four L-BFGS starts, Laplace,
then L-BFGS on the bound over at least 128 fixed points. `--horseshoe` takes numbers of effects; it and `--strangers`
(peer/strangers.py) compare bounds with those of SAA-Q: the optimum is not known.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from threadpoolctl import threadpool_limits

from mgvbp import Auto, Gaussian
from mgvbp.estimators.draws import sobol
from mgvbp.interop.functions.compiled import Compiled
from mgvbp.problem.blocks import SIZES
from peer import saa
from peer.strangers import STRANGERS

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from zoo import TARGETS  # noqa: E402
from zoo.base import jax_backend  # noqa: E402
from zoo.bound import lower_bound  # noqa: E402

Function = Callable[[np.ndarray], Any]
NEAR = 0.05
"""Nats within which a result counts as found."""


class Row(NamedTuple):
    """One run."""

    gap: float
    gradients: int
    seconds: float
    stated: float = math.nan
    stated_se: float = math.nan
    converged: bool = False

    @property
    def covered(self) -> bool:
        """Whether the certificate holds."""
        return self.gap <= self.stated + 3.0 * self.stated_se + 0.01

    @property
    def false(self) -> bool:
        """Whether the run claims a result that it does not have."""
        return self.converged and self.gap > NEAR


def value_and_grad(target: Any) -> Function:
    """Values (S,) and gradients (S, d) at the rows of θ, compiled for all sizes of batches."""
    import jax

    function = Compiled(jax.value_and_grad(lambda row: target.density(row[None], jax_backend())[0]))
    for size in (1, *SIZES):
        function(np.zeros((size, target.dim)))
    return function


def search(function: Function, dim: int, family: str, seed: int) -> tuple[Any, float]:
    """A finished search, and its CPU seconds."""
    start = time.process_time()
    optimizer = Auto().start(dim, family=family, gradients=True, rng=seed)
    while not optimizer.stop_reason:
        optimizer.tell(*function(optimizer.ask()))
    return optimizer, time.process_time() - start


def ours(target: Any, function: Function, family: str, optimum: float, seed: int) -> Row:
    """Our result on a target."""
    found, seconds = search(function, target.dim, family, seed)
    bound, _ = lower_bound(target, found.gaussian, num=2**13, seeds=range(2))
    return Row(optimum - bound, found.n_evaluations, seconds, found.gap, found.gap_se, found.converged)


def theirs(target: Any, function: Function, optimum: float, seed: int) -> Row:
    """The result of SAA-Q; a gap of infinity if it is no Gaussian."""
    start = time.process_time()
    found = saa.fit(function, target.dim, seed)
    seconds = time.process_time() - start
    covariance = found.scale @ found.scale.T
    if not np.isfinite(covariance).all() or np.linalg.eigvalsh(covariance)[0] <= 0.0:
        return Row(math.inf, found.gradients, seconds)
    bound, _ = lower_bound(target, Gaussian(found.mean, variance=covariance), num=2**13, seeds=range(2))
    return Row(optimum - bound, found.gradients, seconds)


def zoo(arguments: argparse.Namespace) -> None:
    """The table of the zoo."""
    reference = json.loads((TESTS / "zoo" / "reference.json").read_text())
    names = arguments.names or [
        name
        for name in TARGETS
        if arguments.family in reference.get(name, {}) and TARGETS[name].dim <= arguments.max_dim
    ]
    rival = f"{'SAA-Q gap':>12}{'gradients':>11}{'CPU s':>8}" if arguments.rival else ""
    print(
        f"{'target':<28}{'d':>4}{'median gap':>12}{'worst':>10}{'stated':>9}{'gradients':>11}{'/8(d+10)':>10}"
        f"{'CPU s':>8}{'claimed':>9}{rival}"
    )
    counted: list[tuple[int, Row]] = []
    rivals: list[Row] = []
    for name in names:
        target, entry = TARGETS[name], reference[name]
        optimum, function = entry[arguments.family]["lower_bound"], value_and_grad(target)
        rows = [ours(target, function, arguments.family, optimum, seed) for seed in range(arguments.seeds)]
        allowed, counts = 8 * (target.dim + 10), "hard" in entry["tags"] or "multimodal" not in entry["tags"]
        line = (
            f"{name:<28}{target.dim:>4}{np.median([r.gap for r in rows]):>12.4f}{max(r.gap for r in rows):>10.4f}"
            f"{np.median([r.stated for r in rows]):>9.4f}{np.median([r.gradients for r in rows]):>11.0f}"
            f"{np.median([r.gradients for r in rows]) / allowed:>10.2f}{np.median([r.seconds for r in rows]):>8.2f}"
            f"{sum(r.converged for r in rows):>6}/{len(rows)}"
        )
        if arguments.rival:
            others = [theirs(target, function, optimum, seed) for seed in range(arguments.seeds)]
            line += f"{np.median([r.gap for r in others]):>12.4f}{np.median([r.gradients for r in others]):>11.0f}"
            line += f"{np.median([r.seconds for r in others]):>8.2f}"
            rivals += others if counts else []
        counted += [(allowed, row) for row in rows if counts]
        print(line, flush=True)
    runs = [row for _, row in counted]
    claims = [row for row in runs if row.converged]
    ratio = np.median([row.gradients / allowed for allowed, row in counted])
    print(f"{len(runs)} runs counted; gap <= {NEAR}: {np.mean([row.gap <= NEAR for row in runs]):.1%} (99%)")
    if rivals:
        print(f"of SAA-Q: {np.mean([row.gap <= NEAR for row in rivals]):.1%}")
        faster = np.mean([a.seconds <= b.seconds for a, b in zip(runs, rivals, strict=True) if b.gap <= NEAR])
        print(f"where it succeeds we take no more CPU time in {faster:.1%}")
    print(f"median of gradients / (8 (d+10)): {ratio:.2f} (1)")
    print(f"claimed: {len(claims) / len(runs):.1%}; falsely: {sum(row.false for row in runs)} (0)")
    print(f"certificate holds in {np.mean([row.covered for row in claims]):.1%} of the runs that claim it")


def logistic_regression(dim: int) -> tuple[np.ndarray, np.ndarray, Function]:
    """Five observations a parameter, coefficients N(0, 1), predictors of standard deviation 2/√d."""
    rng = np.random.default_rng(dim)
    X = 2.0 / math.sqrt(dim) * rng.standard_normal((5 * dim, dim))
    y = (rng.random(5 * dim) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(dim)))) * 1.0

    def function(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        eta = theta @ X.T
        values = (y * eta - np.logaddexp(0.0, eta)).sum(axis=1) - 0.5 * np.square(theta).sum(axis=1)
        return values, (y - 1.0 / (1.0 + np.exp(-eta))) @ X - theta

    return X, y, function


def exact_gap(X: np.ndarray, y: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """Nats below the optimum, by quadrature over each linear predictor and Newton steps on the exact bound."""
    nodes, weights = hermegauss(30)
    weights = weights / weights.sum()

    def moments(m: np.ndarray, C: np.ndarray) -> np.ndarray:
        return X @ m + np.sqrt(np.einsum("nd,nd->n", X @ C, X)) * nodes[:, None]

    def bound(m: np.ndarray, C: np.ndarray) -> float:
        fit = y @ (X @ m) - float((weights @ np.logaddexp(0.0, moments(m, C))).sum())
        return fit - 0.5 * float(m @ m + C.trace()) + 0.5 * float(np.linalg.slogdet(C)[1])

    m, C = mean, covariance
    for _ in range(8):
        p = 1.0 / (1.0 + np.exp(-moments(m, C)))
        C = np.linalg.inv((X.T * (weights @ (p * (1.0 - p)))) @ X + np.eye(len(m)))
        m = m + C @ ((y - weights @ p) @ X - m)
    return bound(m, C) - bound(mean, covariance)


def logistic(dims: list[int]) -> None:
    """The table of logistic regressions; the exponent is that of the CPU time between the first and the last."""
    print(f"{'d':>6}{'gap':>9}{'stated':>9}{'claimed':>9}{'gradients':>11}{'CPU s':>8}{'peak MB':>9}")
    times = []
    for dim in dims:
        X, y, function = logistic_regression(dim)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        found, seconds = search(function, dim, "full", 0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0 - before
        gap = exact_gap(X, y, found.gaussian.mean, found.gaussian.covariance)
        times.append(seconds)
        print(
            f"{dim:>6}{gap:>9.4f}{found.gap:>9.4f}{found.converged!s:>9}{found.n_evaluations:>11}{seconds:>8.2f}"
            f"{peak:>9.0f}",
            flush=True,
        )
    if len(dims) > 1:
        exponent = math.log(times[-1] / times[0]) / math.log(dims[-1] / dims[0])
        print(f"CPU time grows like d to the power {exponent:.1f}")


def horseshoe_regression(effects: int) -> Any:
    """The log density, for JAX, of a regression with three real effects and many others under a horseshoe prior.

    It takes z, log λ, log τ and log σ, (2 effects + 2,): the effects are z λ τ, with half-Cauchy scales λ and τ.
    """
    import jax.numpy as jnp

    rng = np.random.default_rng(7)
    X = rng.standard_normal((20 + 2 * effects, effects))
    y = X[:, :3] @ [1.5, -1.0, 0.8] + 0.7 * rng.standard_normal(len(X))
    widths = np.append(np.zeros(effects), np.log(0.3))

    def density(theta: Any) -> Any:
        z, logs, log_sd = theta[:effects], theta[effects:-1], theta[-1]
        scaled = (y - X @ (z * jnp.exp(logs[:-1] + logs[-1]))) * jnp.exp(-log_sd)
        above = logs - widths
        scales = (above + math.log(2.0 / math.pi) - jnp.logaddexp(0.0, 2.0 * above)).sum()
        return scales - 0.5 * (z @ z + log_sd**2 + scaled @ scaled) - len(y) * log_sd

    return density


def compared(densities: dict[str, tuple[int, Callable[[Any], Any]]], seeds: int) -> None:
    """The table of densities whose optimum is not known: bounds on a large Sobol sample."""
    jax_backend()
    import jax

    print(
        f"{'':<20}{'d':>4}{'seed':>6}{'bound':>10}{'stated':>9}{'claimed':>9}{'gradients':>11}{'CPU s':>8}",
        end="",
    )
    print(f"{'SAA-Q bound':>13}{'gradients':>11}{'CPU s':>8}")
    for name, (dim, density) in densities.items():
        function, many = Compiled(jax.value_and_grad(density)), jax.jit(jax.vmap(density))
        for size in (1, *SIZES):
            function(np.zeros((size, dim)))
        half = sobol(np.random.default_rng(0), 2**13, dim)

        def bound(q: Any, many: Any = many, half: np.ndarray = half) -> float:
            theta = q.mean + q.family.from_frame(q.factor, half)
            return float((np.asarray(many(theta)) - q.log_density_at(theta)).mean())

        for seed in range(seeds):
            found, seconds = search(function, dim, "full", seed)
            start = time.process_time()
            rival = saa.fit(function, dim, seed)
            rival_seconds = time.process_time() - start
            theirs = Gaussian(rival.mean, variance=rival.scale @ rival.scale.T)
            print(
                f"{name:<20}{dim:>4}{seed:>6}{bound(found.gaussian):>10.2f}{found.gap:>9.4f}"
                f"{found.converged!s:>9}{found.n_evaluations:>11}{seconds:>8.2f}{bound(theirs):>13.2f}"
                f"{rival.gradients:>11}{rival_seconds:>8.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--family", default="full", choices=["full", "diagonal"])
    parser.add_argument("--max-dim", type=int, default=100)
    parser.add_argument("--rival", action="store_true")
    parser.add_argument("--logistic", type=int, nargs="+", metavar="D")
    parser.add_argument("--horseshoe", type=int, nargs="+", metavar="EFFECTS")
    parser.add_argument("--strangers", action="store_true")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        if arguments.logistic:
            logistic(arguments.logistic)
        elif arguments.horseshoe:
            effects = {f"horseshoe {n}": (2 * n + 2, horseshoe_regression(n)) for n in arguments.horseshoe}
            compared(effects, arguments.seeds)
        elif arguments.strangers:
            jax_backend()
            compared({name: make() for name, make in STRANGERS.items()}, arguments.seeds)
        else:
            zoo(arguments)


if __name__ == "__main__":
    main()
