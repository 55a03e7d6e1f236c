"""Mixtures beside the best Gaussian, PyVBMC and MCMC on posteriors that are known (tests/posteriors).

Run:  python benchmarks/mixtures.py [--targets name ...] [--seeds 1] [--max-dim 15] [--family mixture] [--held-out]
          [--grad] [--out rows.jsonl] [--pyvbmc] [--mcmc]

From mean 0 and variance 1, by values alone or, with --grad (needs jax), by values and gradients. With --out every run
is a line of a file, and runs that are there already are not made again. The true KL is the reference's log evidence
minus the mean of f - log q over 50,000 fresh draws of q. Evaluations are counted where the function is called, those
behind `posterior.kl` of the mixture included; times are CPU seconds, and own time is without those inside the function.

Targets: KL <= 0.05 nats or a quarter of the Gaussian's in 80% of the runs; the stated KL within 3 standard errors +
0.02 of the true one in 95%; extra evaluations at most those of the Gaussian's fit and own time at most 5 s (medians);
never worse than the Gaussian. PyVBMC, for d <= 8, has as many evaluations and a box of two sds around the Gaussian.
MCMC: R-hat at most 1.01, and means within 3 Monte Carlo errors.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import mgvbp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from posteriors import HELD_OUT, TARGETS, Reference, references
from zoo.base import Target

FRESH = 50_000
"""Draws of q that the true KL is measured with."""
GOOD, SHARE = 0.05, 0.25
"""A KL is good enough at so many nats, or at this share of the Gaussian's."""
ERRORS, SLACK = 3.0, 0.02
"""A stated KL holds within so many standard errors and nats."""
VBMC_DIM = 8


class Counted:
    """A log density that counts its evaluations and the CPU seconds inside it."""

    def __init__(self, target: Target, gradients: bool = False) -> None:
        self.target, self.count, self.seconds = target, 0, 0.0
        self._derived = value_and_grad(target) if gradients else None
        self._last: tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None = None

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        if self._derived is not None:
            return self._both(theta)[0]
        start = time.process_time()
        values = self.target.log_density(theta)
        self.seconds += time.process_time() - start
        self.count += len(theta)
        return values

    def grad(self, theta: np.ndarray) -> np.ndarray:
        """The gradients at each row."""
        return self._both(theta)[1]

    def _both(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and gradients, which count once at the same draws."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            assert self._derived is not None
            start = time.process_time()
            self._last = theta.copy(), self._derived(theta)
            self.seconds += time.process_time() - start
            self.count += len(theta)
        return self._last[1]


class Run(NamedTuple):
    """What a method made of a target."""

    kl: float
    """The true one."""
    kl_se: float
    stated: float
    """What the posterior says; nan where it says nothing."""
    stated_se: float
    components: int
    evaluations: int
    seconds: float
    """CPU"""
    own: float
    """Without those inside the function."""
    rough: float = np.nan
    """What the draws of the fit alone say of the KL of a Gaussian."""

    @property
    def holds(self) -> bool:
        """Whether the stated KL is the true one, as far as can be told."""
        return abs(self.stated - self.kl) <= ERRORS * np.hypot(self.stated_se, self.kl_se) + SLACK


class Outcome(NamedTuple):
    """One target with one seed; a method that failed is its message."""

    gaussian: Run
    mixture: Run | str
    vbmc: Run | str | None = None


@functools.cache
def value_and_grad(target: Target) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Values (S,) and gradients (S, d) at the rows of θ, compiled for batches of 1 to 4,096 before the clock starts."""
    import jax

    from zoo.base import jax_backend

    jax.config.update("jax_enable_x64", True)
    one = jax.value_and_grad(lambda row: target.density(row[None], jax_backend())[0])
    derived, most = jax.jit(jax.vmap(one)), 4096

    def evaluated(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = []
        for i in range(0, len(theta), most):
            rows = theta[i : i + most]
            size = 1 << (len(rows) - 1).bit_length()
            found = derived(np.concatenate([rows, np.repeat(rows[:1], size - len(rows), axis=0)]))
            parts.append([np.asarray(part)[: len(rows)] for part in found])
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    for power in range(13):
        evaluated(np.zeros((1 << power, target.dim)))
    return evaluated


def true_kl(target: Target, known: Reference, theta: np.ndarray, log_q: np.ndarray) -> tuple[float, float]:
    """The log evidence minus E_q[f - log q], and its standard error, from draws (n, d) of q."""
    gains = target.log_density(theta) - log_q
    with np.errstate(invalid="ignore"):
        kl = known.log_evidence - float(gains.mean())
        se = float(np.hypot(gains.std() / np.sqrt(len(gains)), known.log_evidence_se))
    return (kl, se) if np.isfinite(kl) else (np.inf, np.inf)


def fitted(
    target: Target, known: Reference, family: str, seed: int, gradients: bool
) -> tuple[Run, Any, Counted]:
    """The run of a family of ours, with its posterior and the function that counted."""
    f = Counted(target, gradients)
    start = time.process_time()

    def spent() -> tuple[int, float, float]:
        return f.count, time.process_time() - start, f.seconds

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        posterior: Any = mgvbp.fit(
            f, dim=target.dim, family=family, rng=seed, grad=f.grad if gradients else None
        )
        at_fit = spent()
        stated = [getattr(posterior, name, None) for name in ("kl", "kl_se")]
    # a Gaussian is judged by its fit alone; a mixture is not worth much without its KL
    evaluations, seconds, inside = at_fit if family == "full" else spent()
    theta = posterior.sample(FRESH, rng=1_000_000 + seed)
    kl, se = true_kl(target, known, theta, posterior.log_density(theta))
    count = int(getattr(posterior, "components", 1))
    claim = [np.nan if value is None else float(value) for value in stated]
    rough = np.nan if posterior.rough_kl is None else posterior.rough_kl
    run = Run(kl, se, *claim, count, evaluations, seconds, seconds - inside, rough)
    return run, posterior, f


def vbmc(target: Target, known: Reference, gaussian: Any, evaluations: int, seed: int) -> Run:
    """PyVBMC with as many evaluations, in a plausible box of two sds around the Gaussian."""
    from pyvbmc import VBMC

    f = Counted(target)
    mean, width = gaussian.mean[None], 2.0 * gaussian.std[None]
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver = VBMC(
            lambda theta: float(f(np.atleast_2d(theta))[0]),
            mean,
            plausible_lower_bounds=mean - width,
            plausible_upper_bounds=mean + width,
            options={"display": "off", "max_fun_evals": evaluations},
            seed=seed,
        )
        mixture, results = solver.optimize()
        seconds = time.process_time() - start
        theta, _ = mixture.sample(FRESH)
        log_q = np.ravel(mixture.pdf(theta, log_flag=True))
    kl, se = true_kl(target, known, theta, log_q)
    stated_se = float(results["elbo_sd"])  # of its bound, which is all that it states
    return Run(kl, se, np.nan, stated_se, mixture.K, f.count, seconds, seconds - f.seconds)


def chains(known: Reference, posterior: Any, f: Counted, seed: int) -> str:
    """R-hat, the largest z-score of a mean and the evaluations of `posterior.mcmc`, as a line."""
    from arviz_stats.base import array_stats

    before, start = f.count, time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        found = posterior.mcmc(draws=1000, chains=4, rng=seed)["posterior"].to_dataset()
    seconds = time.process_time() - start
    parts = [found[name].transpose("chain", "draw", ...).values for name in found.data_vars]
    theta = np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=2)
    rhat = max(
        float(array_stats.rhat(column, chain_axis=0, draw_axis=1)) for column in np.moveaxis(theta, 2, 0)
    )
    ess = np.array(
        [array_stats.ess(column, chain_axis=0, draw_axis=1) for column in np.moveaxis(theta, 2, 0)]
    )
    error = np.hypot(theta.std(axis=(0, 1)) / np.sqrt(ess), known.mean_se)
    z = float(np.abs((theta.mean(axis=(0, 1)) - known.mean) / error).max())
    return f"mcmc: R-hat {rhat:.3f}, ess {ess.min():.0f}, z {z:.1f}, {f.count - before} evaluations, {seconds:.1f} s"


def attempt(method: Callable[..., Any], *arguments: Any) -> Any:
    """The method's result, or what it raised, in a line: the others go on."""
    try:
        return method(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:90]}"


HEADER = (
    f"{'target':<27}{'d':>3} {'seed':>4} | {'Gaussian KL':>11}{'evals':>7}{'s':>6} | {'KL':>8}{'se':>7}{'stated':>8}"
    f"{'se':>7}{'K':>4}{'evals':>7}{'s':>7}{'own s':>7}"
)


def line(run: Run) -> str:
    return (
        f"{run.kl:>8.3f}{run.kl_se:>7.3f}{run.stated:>8.3f}{run.stated_se:>7.3f}{run.components:>4}"
        f"{run.evaluations:>7}{run.seconds:>7.2f}{run.own:>7.2f}"
    )


def judged(target: Target, known: Reference, seed: int, options: argparse.Namespace) -> Outcome:
    """Run everything that was asked for, and print it."""
    gaussian, posterior, f = fitted(target, known, "full", seed, options.grad)
    print(
        f"{target.name:<27}{target.dim:>3} {seed:>4} | {gaussian.kl:>11.3f}{gaussian.evaluations:>7}"
        f"{gaussian.seconds:>6.2f} |",
        end=" ",
        flush=True,
    )
    found = attempt(fitted, target, known, options.family, seed, options.grad)
    mixture: Run | str = found if isinstance(found, str) else found[0]
    print(mixture if isinstance(mixture, str) else line(mixture), flush=True)
    best, counter = (posterior, f) if isinstance(found, str) else found[1:]
    peer = None
    if options.pyvbmc and target.dim <= VBMC_DIM:
        budget = gaussian.evaluations if isinstance(mixture, str) else mixture.evaluations
        peer = attempt(vbmc, target, known, posterior, budget, seed)
        print(f"{'PyVBMC':>62} | {peer if isinstance(peer, str) else line(peer)}", flush=True)
    if options.mcmc:
        print(f"{'':>62} | {attempt(chains, known, best, counter, seed)}", flush=True)
    return Outcome(gaussian, mixture, peer)


def good(kl: float, gaussian: float) -> bool:
    return kl <= max(GOOD, SHARE * gaussian)


def worse(run: Run, gaussian: Run) -> bool:
    """Beyond what the errors of both explain."""
    return run.kl > gaussian.kl + ERRORS * np.hypot(run.kl_se, gaussian.kl_se)


def share(flags: Iterable[bool]) -> str:
    values = list(flags)
    return f"{np.mean(values):.1%} of {len(values)}" if values else "none"


def summary(outcomes: list[Outcome]) -> str:
    """The five figures of issue 22, and PyVBMC's."""
    pairs = [(o.gaussian, o.mixture) for o in outcomes if isinstance(o.mixture, Run)]
    lines = [f"{len(outcomes)} runs, of which {len(outcomes) - len(pairs)} failed"]
    if pairs:
        reached = [
            (o.gaussian.kl > GOOD, isinstance(o.mixture, Run) and good(o.mixture.kl, o.gaussian.kl))
            for o in outcomes
        ]  # a failure is not good
        rough = [g.rough / g.kl for g, _ in pairs if g.kl > GOOD and np.isfinite(g.rough)]
        extra = np.median([(m.evaluations - g.evaluations) / g.evaluations for g, m in pairs])
        lines += [
            f"KL <= {GOOD} or a quarter of the Gaussian's: {share(ok for _, ok in reached)} runs (80%); "
            f"where the Gaussian's is above {GOOD}: {share(ok for far, ok in reached if far)}",
            f"stated KL within {ERRORS:g} se + {SLACK}: {share(m.holds for _, m in pairs)} (95%)",
            f"the Gaussian's own: {share(g.holds for g, _ in pairs if np.isfinite(g.stated))}",
            f"rough_kl / KL of Gaussians above {GOOD}: quartiles "
            + ", ".join(f"{ratio:.2f}" for ratio in np.quantile(rough or [np.nan], [0.25, 0.5, 0.75])),
            f"extra evaluations / the Gaussian's: median {extra:.2f} (1)",
            f"own time: median {np.median([m.own for _, m in pairs]):.2f} s (5)",
            f"worse than the Gaussian: {sum(worse(m, g) for g, m in pairs)} (0)",
            f"median KL: {np.median([g.kl for g, _ in pairs]):.3f} -> {np.median([m.kl for _, m in pairs]):.3f}",
        ]
    peers = [(o.gaussian, o.mixture, o.vbmc) for o in outcomes if isinstance(o.vbmc, Run)]
    if peers:
        ours = [m.kl for _, m, _ in peers if isinstance(m, Run)]
        lines += [
            f"PyVBMC on {len(peers)} runs: good in {share(good(v.kl, g.kl) for g, _, v in peers)}, median KL "
            f"{np.median([v.kl for *_, v in peers]):.3f}"
            + (f" (ours {np.median(ours):.3f})" if ours else "")
            + ", "
            f"median own time {np.median([v.own for *_, v in peers]):.1f} s, worse than the Gaussian in "
            f"{sum(worse(v, g) for g, _, v in peers)}"
        ]
    return "\n".join(lines)


def read(path: Path) -> dict[tuple[str, int, str, bool], Outcome]:
    """The runs in a file, by target, seed, family and whether there were gradients."""
    found = {}
    for text in path.read_text().splitlines():
        *key, gaussian, mixture, peer = json.loads(text)
        runs = [Run(*run) if isinstance(run, list) else run for run in (gaussian, mixture, peer)]
        found[tuple(key)] = Outcome(*runs)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", nargs="*", metavar="name")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--max-dim", type=int, default=15)
    parser.add_argument("--family", default="mixture", choices=["mixture", "auto"])
    parser.add_argument("--held-out", action="store_true", help="the set on which nothing may be tuned")
    parser.add_argument("--grad", action="store_true", help="with gradients, by jax")
    parser.add_argument("--out", type=Path, help="a file to which runs are added, one a line")
    parser.add_argument("--pyvbmc", action="store_true")
    parser.add_argument("--mcmc", action="store_true")
    options = parser.parse_args()
    every, known = HELD_OUT if options.held_out else TARGETS, references()
    names = options.targets or [n for n in every if every[n].dim <= options.max_dim and n in known]
    kept = {} if options.out is None or not options.out.exists() else read(options.out)
    print(HEADER)
    outcomes = []
    with threadpool_limits(1):
        for name, seed in [(name, seed) for name in names for seed in range(options.seeds)]:
            key = (name, seed, options.family, options.grad)
            if key not in kept:
                kept[key] = judged(every[name], known[name], seed, options)
                if options.out is not None:
                    with options.out.open("a") as file:
                        file.write(json.dumps([*key, *kept[key]]) + "\n")
            outcomes.append(kept[key])
    print(summary(outcomes))


if __name__ == "__main__":
    main()
