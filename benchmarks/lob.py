"""TABL on 50,000 simulated order-book windows, d = 234: what an iteration costs, and bounds after equal passes.

Run:  python benchmarks/lob.py [--windows 50000] [--passes 4000] [--repeats 10]

Targets: with 20 draws and full covariance an iteration takes at most 1.5 times the bare evaluation of its draws
(function values for the estimator h, values and gradients for the estimator gradient); less than 4 GB in all; and
after equal numbers of passes over the data MGVBP has a larger lower bound than diagonal QBVI and VOGN. A pass is
one evaluation of all windows by one draw. Evaluations and whole iterations, which make their draws, are timed in
turns, each by its best; the plain pass is one jitted JAX function of all draws and windows. ``--passes 0`` leaves the
bounds out.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

import mgvbp
from mgvbp.paper.lob import (
    FULL,
    INITIAL_VARIANCE,
    PAPER,
    Lob,
    Plan,
    problem,
    run_method,
    settings,
)
from mgvbp.paper.lob.results import per_pass

DRAWS = 20
CASES: dict[str, tuple[mgvbp.MGVBP | mgvbp.QBVI, str, str, str]] = {
    "MGVBP h": (mgvbp.MGVBP(**PAPER), "full", "h", "__call__"),
    "QBVI h diag": (mgvbp.QBVI(**PAPER), "diagonal", "h", "__call__"),
    "MGVBP gradient": (mgvbp.MGVBP(step_size=1e-4), "full", "gradient", "value_and_grad"),
    "VOGN diag": (mgvbp.VOGN(), "diagonal", "fisher", "value_grad_and_squares"),
}
"""Method, family, estimator, and what it evaluates; the steps are small enough for some iterations without an end."""
RACE = ("MGVBP gradient", "QBVI gradient diag", "QBVI diag, same steps", "VOGN diag")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--windows", type=int, default=FULL.windows)
    parser.add_argument("--passes", type=int, default=FULL.passes)
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    plan = replace(FULL, windows=arguments.windows, passes=arguments.passes)
    lob = problem(plan, 0)
    print(f"{arguments.windows:,} windows × 40 × 10, d = {lob.network.dim}, {DRAWS} draws")
    plain = plain_pass(lob, arguments.repeats)
    print(f"plain JAX forward pass of the draws: {plain:.3f} s")
    print(f"\n{'':<24}{'evaluation':>12}{'iteration':>12}{'ratio':>8}{'to plain':>10}")
    for name in CASES:
        bare, whole = iteration_times(lob, name, arguments.repeats)
        ratios = f"{whole / bare:>8.3f}{whole / plain:>10.3f}"
        print(f"{name:<24}{bare:>10.3f} s{whole:>10.3f} s{ratios}", flush=True)
    print(f"\npeak memory {peak_memory():.2f} GB")
    if arguments.passes:
        race(plan)
        print(f"\npeak memory {peak_memory():.2f} GB")


def plain_pass(lob: Lob, repeats: int) -> float:
    """Seconds of the log-likelihood of all windows at all draws in a single function, compiled before."""
    theta = lob.start + 0.1 * np.random.default_rng(0).standard_normal((DRAWS, lob.network.dim))
    with jax.enable_x64(True):
        function = jax.jit(jax.vmap(lob.all_windows.traced))
        np.asarray(function(theta))
        return min(clocked(lambda: np.asarray(function(theta))) for _ in range(repeats))


def iteration_times(lob: Lob, name: str, repeats: int) -> tuple[float, float]:
    """Best seconds of the bare evaluation of an iteration's draws, and of the whole iteration."""
    method, family, estimator, what = CASES[name]
    evaluate = lob.all_windows if what == "__call__" else getattr(lob.all_windows, what)
    start = {"initial_mean": lob.start, "initial_variance": INITIAL_VARIANCE}
    opt = method.start(lob.prior, family=family, estimator=estimator, num_draws=DRAWS, **start)

    def iteration() -> None:
        found = evaluate(opt.ask())
        opt.tell(*found) if isinstance(found, tuple) else opt.tell(found)

    iteration()  # compiles
    theta = opt.ask()
    iteration()  # uses these draws up: the next iteration makes its own
    pairs = [(clocked(lambda: evaluate(theta)), clocked(iteration)) for _ in range(repeats)]
    bare, whole = (min(times) for times in zip(*pairs, strict=True))
    return bare, whole


def race(plan: Plan) -> None:
    """Print the lower bound of each method after the same number of passes."""
    print(f"\nafter {plan.passes:,} passes and the common start of 30")
    print(
        f"{'':<24}{'lower bound':>13}{'(s.e.)':>8}{'test acc':>10}{'test lpd':>10}{'iterations':>12}{'s/pass':>8}"
    )
    for name in RACE:
        v = run_method(name, plan, 0).values
        bound = f"{v['LB*']:>13,.1f}{v['s.e.']:>8.1f}{v['test acc']:>10.4f}{v['test lpd']:>10.4f}"
        print(
            f"{name:<24}{bound}{v['iterations']:>12,.0f}{per_pass(v):>8.3f}  S = {settings(plan)[name].num_draws}",
            flush=True,
        )


def clocked(function: Callable[[], object]) -> float:
    """Seconds of a call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def peak_memory() -> float:
    """Gigabytes that the process had at its worst moment."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


if __name__ == "__main__":
    main()
