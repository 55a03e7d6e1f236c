"""Few evaluations: how near the best Gaussian `auto` is by values after 10, 20 and 50 (d + 2) of them, beside PyVBMC.

Run:  python benchmarks/thrift.py [--seeds 2] [--pyvbmc] [--box] [names ...]     # pip install -e '.[peers]' for PyVBMC

Targets of tests/zoo with 2 <= d <= 10, from mean 0 and variance 1. The gap is the stored optimum (tests/zoo/
reference.json) minus the bound of the result on a Sobol sample, in nats. `auto` is fitted anew with each limit
(max_evaluations). PyVBMC runs once with the largest limit; what it had after fewer evaluations is taken from its
history, and its mixture is judged as the Gaussian with its moments. Its plausible box is one standard deviation of the
start or, with --box, two standard deviations of the answer about it. Seconds are of the processor, for the largest
limit. Wanted: nearer than PyVBMC after 50 (d + 2) on three quarters of the targets and after 20 (d + 2) on half, in a
hundredth of its time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import mgvbp

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from zoo import TARGETS  # noqa: E402
from zoo.base import Target  # noqa: E402
from zoo.bound import lower_bound  # noqa: E402

LIMITS = (10, 20, 50)
"""Evaluations, in units of d + 2."""
LOWEST = -1e8
"""Lower values are raised to this one for PyVBMC, which refuses −inf and nan."""
NAMES = [
    "banana_2",
    "skew_normal_2",
    "local_level_inflation",
    "garch11",
    "gp_hyperparameters",
    "michaelis_menten",
    "logistic_growth",
    "sir_epidemic",
    "arma11",
    "dose_response",
    "student_t_5",
    "garch11_t_nyse",
    "logistic_cancer",
    "linear_wage",
    "probit_mroz",
    "weibull_recidivism",
    "logistic_labour",
    "lotka_volterra",
    "eight_schools_noncentred",
]


def ours(target: Target, seed: int) -> tuple[list[mgvbp.Gaussian], float]:
    """The results of `auto`, one a limit, and the seconds of the last."""
    results, seconds = [], 0.0
    for limit in LIMITS:
        start = time.process_time()
        fitted = mgvbp.fit(
            target.log_density, dim=target.dim, rng=seed, max_evaluations=limit * (target.dim + 2)
        )
        seconds = time.process_time() - start
        results.append(mgvbp.Gaussian(fitted.mean, fitted.covariance))
    return results, seconds


def pyvbmc(target: Target, seed: int, *, box: bool) -> tuple[list[mgvbp.Gaussian], float]:
    """The moments of PyVBMC's mixtures, one a limit, and its seconds; the moments of the start before it has any."""
    from pyvbmc import VBMC

    np.random.seed(seed)  # noqa: NPY002  (PyVBMC draws from NumPy's global generator)
    d = target.dim
    centre, half = np.zeros((1, d)), np.ones((1, d))
    if box:
        answer = mgvbp.fit(target.log_density, dim=d, rng=seed)
        centre, half = answer.mean[None], 2.0 * answer.std[None]
    start = time.process_time()
    solver = VBMC(
        lambda theta: float(np.fmax(target.log_density(np.atleast_2d(theta))[0], LOWEST)),
        centre,
        plausible_lower_bounds=centre - half,
        plausible_upper_bounds=centre + half,
        options={"display": "off", "max_fun_evals": LIMITS[-1] * (d + 2)},
    )
    last, _ = solver.optimize()
    seconds = time.process_time() - start
    history = list(zip(solver.iteration_history["func_count"], solver.iteration_history["vp"], strict=True))
    results = []
    for limit in LIMITS:
        reached = [mixture for count, mixture in history if count <= limit * (d + 2)]
        mixture = last if limit == LIMITS[-1] else reached[-1] if reached else None
        if mixture is None:
            results.append(mgvbp.Gaussian(variance=1.0, dim=d))
            continue
        mean, covariance = mixture.moments(cov_flag=True)
        results.append(mgvbp.Gaussian(np.ravel(mean), np.atleast_2d(covariance)))
    return results, seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--pyvbmc", action="store_true")
    parser.add_argument("--box", action="store_true")
    options = parser.parse_args()
    reference = json.loads((TESTS / "zoo" / "reference.json").read_text())
    columns = "".join(f"{f'{limit} (d + 2)':>14}" for limit in LIMITS)
    print(f"{'target':<26}{'d':>3}  {'by':<8}{columns}{'seconds':>9}")
    gaps: dict[str, list[list[float]]] = {"auto": [], "PyVBMC": []}
    times: dict[str, list[float]] = {"auto": [], "PyVBMC": []}
    for name in options.names:
        target, optimum = TARGETS[name], reference[name]["full"]["lower_bound"]
        for by in gaps if options.pyvbmc else ["auto"]:
            runs = []
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for seed in range(options.seeds):
                    found, seconds = (
                        ours(target, seed) if by == "auto" else pyvbmc(target, seed, box=options.box)
                    )
                    times[by].append(seconds)
                    runs.append(
                        [optimum - lower_bound(target, q, num=2**11, seeds=range(1))[0] for q in found]
                    )
            gaps[by] += runs
            shown = "".join(f"{gap:>14.3f}" for gap in np.median(runs, axis=0))
            took = np.median(times[by][-options.seeds :])
            print(f"{name:<26}{target.dim:>3}  {by:<8}{shown}{took:>9.2f}", flush=True)
    for by, rows in gaps.items():
        if rows:
            table = np.array(rows)
            near = ", ".join(f"{share:.0%}" for share in (table <= 0.05).mean(axis=0))
            medians = ", ".join(f"{gap:.3f}" for gap in np.median(table, axis=0))
            print(
                f"{by}: median gaps {medians}; within 0.05 nats {near}; median seconds {np.median(times[by]):.2f}"
            )
    if options.pyvbmc:
        nearer = (np.array(gaps["auto"]) < np.array(gaps["PyVBMC"])).mean(axis=0)
        print(
            "auto is nearer in "
            + ", ".join(f"{share:.0%}" for share in nearer)
            + " (20: half, 50: three quarters)"
        )


if __name__ == "__main__":
    main()
