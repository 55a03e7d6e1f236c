"""Seconds from a model object of another package to its posterior, beside that package's own way, cold and warm.

Run:  pip install -e '.[numpyro,pymc]' && python benchmarks/interop.py [--only pymc]

Cold is the first run in a new process, with all that has to be compiled for the model; PyTensor's cache of C code is
then empty. Warm is the second run in that process, from the model object on again. Packages are imported before.
Seconds are those of the clock and, in brackets, of the processor, the C compiler's included. The last columns compare
the means with those of the package's own way, in its standard deviations, and the standard deviations; a posterior that
is not Gaussian shows here, and so does the error of a few thousand draws.

To add a row, write a function that returns the two ways to fit one model, and list it in `CASES`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import mgvbp

Draws = dict[str, np.ndarray]
NUM_DRAWS = 4000


class Way(NamedTuple):
    """A way to a posterior: ``run`` is timed, ``draws`` takes its result."""

    name: str
    run: Callable[[], Any]
    draws: Callable[[Any], Draws]


def ours(adapt: Callable[[], Any]) -> Way:
    """`mgvbp.fit` of what ``adapt`` makes of the model."""
    return Way("mgvbp", lambda: mgvbp.fit(adapt()), lambda posterior: posterior.draws(NUM_DRAWS, rng=0))


# --- PyMC ---------------------------------------------------------------------------------------------------


def with_pymc(model: Any) -> tuple[Way, Way]:
    pm = import_module("pymc")

    def nuts() -> Any:
        return pm.sample(
            model=model,
            chains=4,
            cores=1,
            random_seed=0,
            progressbar=False,
            compute_convergence_checks=False,
        )

    def draws(data: Any) -> Draws:
        arrays = {str(name): rows.to_numpy() for name, rows in data["posterior"].items()}
        return {name: rows.reshape(-1, *rows.shape[2:]) for name, rows in arrays.items()}

    return ours(lambda: mgvbp.from_pymc(model)), Way("pm.sample", nuts, draws)


def pymc_poisson() -> tuple[Way, Way]:
    pm = import_module("pymc")
    group, x, y = poisson_data()
    with pm.Model() as model:
        mu, tau, slope = pm.Normal("mu", 0.0, 2.0), pm.HalfNormal("tau", 1.0), pm.Normal("slope", 0.0, 1.0)
        alpha = pm.Normal("alpha", mu, tau, shape=12)
        pm.Poisson("y", pm.math.exp(alpha[group] + slope * x), observed=y)
    return with_pymc(model)


def pymc_schools() -> tuple[Way, Way]:
    pm = import_module("pymc")
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
        z = pm.Normal("z", 0.0, 1.0, shape=8)
        pm.Normal("y", mu + tau * z, ERRORS, observed=EFFECTS)
    return with_pymc(model)


def pymc_centred() -> tuple[Way, Way]:
    pm = import_module("pymc")
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
        effects = pm.Normal("effects", mu, tau, shape=8)
        pm.Normal("y", effects, ERRORS, observed=EFFECTS)
    return with_pymc(model)


def pymc_volatility() -> tuple[Way, Way]:
    pm = import_module("pymc")
    with pm.Model() as model:
        step, nu = pm.Exponential("step", 10.0), pm.Exponential("nu", 0.1)
        days = pm.GaussianRandomWalk("volatility", sigma=step, shape=200, init_dist=pm.Normal.dist(0.0, 1.0))
        pm.StudentT("r", nu=nu, mu=0.0, lam=pm.math.exp(-2.0 * days), observed=volatility_data())
    return with_pymc(model)


# --- NumPyro ------------------------------------------------------------------------------------------------


def with_numpyro(model: Callable[..., Any], *data: Any) -> tuple[Way, Way]:
    jax, infer = import_module("jax"), import_module("numpyro.infer")

    def nuts() -> Any:
        mcmc = infer.MCMC(
            infer.NUTS(model),
            num_warmup=1000,
            num_samples=1000,
            num_chains=4,
            chain_method="sequential",
            progress_bar=False,
        )
        mcmc.run(jax.random.PRNGKey(0), *data)
        return mcmc

    def draws(mcmc: Any) -> Draws:
        return {name: np.asarray(rows, np.float64) for name, rows in mcmc.get_samples().items()}

    return ours(lambda: mgvbp.from_numpyro(model, *data)), Way("NUTS", nuts, draws)


def numpyro_poisson() -> tuple[Way, Way]:
    numpyro, dist = import_module("numpyro"), import_module("numpyro.distributions")

    def model(group: Any, x: Any, y: Any) -> None:
        mu, tau = numpyro.sample("mu", dist.Normal(0.0, 2.0)), numpyro.sample("tau", dist.HalfNormal(1.0))
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
        with numpyro.plate("groups", 12):
            alpha = numpyro.sample("alpha", dist.Normal(mu, tau))
        with numpyro.plate("rows", len(x)):
            numpyro.sample("y", dist.Poisson(import_module("jax").numpy.exp(alpha[group] + slope * x)), obs=y)

    return with_numpyro(model, *poisson_data())


def numpyro_schools() -> tuple[Way, Way]:
    numpyro, dist = import_module("numpyro"), import_module("numpyro.distributions")

    def model(errors: Any, y: Any) -> None:
        mu, tau = numpyro.sample("mu", dist.Normal(0.0, 5.0)), numpyro.sample("tau", dist.HalfCauchy(5.0))
        with numpyro.plate("schools", 8):
            z = numpyro.sample("z", dist.Normal(0.0, 1.0))
            numpyro.sample("y", dist.Normal(mu + tau * z, errors), obs=y)

    return with_numpyro(model, ERRORS, EFFECTS)


def numpyro_centred() -> tuple[Way, Way]:
    numpyro, dist = import_module("numpyro"), import_module("numpyro.distributions")

    def model(errors: Any, y: Any) -> None:
        mu, tau = numpyro.sample("mu", dist.Normal(0.0, 5.0)), numpyro.sample("tau", dist.HalfCauchy(5.0))
        with numpyro.plate("schools", 8):
            effects = numpyro.sample("effects", dist.Normal(mu, tau))
            numpyro.sample("y", dist.Normal(effects, errors), obs=y)

    return with_numpyro(model, ERRORS, EFFECTS)


# --- the models' data ---------------------------------------------------------------------------------------

ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])


def poisson_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twelve groups of twenty counts: the group of each, its covariate and the count."""
    rng = np.random.default_rng(1)
    group, x = np.repeat(np.arange(12), 20), rng.normal(size=240)
    rates = np.exp((1.0 + 0.5 * rng.normal(size=12))[group] + 0.3 * x)
    return group, x, rng.poisson(rates)


def volatility_data() -> np.ndarray:
    """Returns of 200 days, whose log variance is an autoregression."""
    rng = np.random.default_rng(3)
    log_variance = np.zeros(200)
    for day in range(1, 200):
        log_variance[day] = -0.5 + 0.95 * (log_variance[day - 1] + 0.5) + 0.25 * rng.normal()
    return np.exp(log_variance / 2.0) * rng.normal(size=200)


CASES: dict[str, Callable[[], tuple[Way, Way]]] = {
    "pymc: hierarchical Poisson, d = 15": pymc_poisson,
    "pymc: eight schools, d = 10": pymc_schools,
    "pymc: eight schools, centred": pymc_centred,
    "pymc: stochastic volatility, d = 202": pymc_volatility,
    "numpyro: hierarchical Poisson, d = 15": numpyro_poisson,
    "numpyro: eight schools, d = 10": numpyro_schools,
    "numpyro: eight schools, centred": numpyro_centred,
}
"""What a row is called, and the function that makes it; the name begins with the package."""


# --- the table ----------------------------------------------------------------------------------------------


def timed(case: str, number: int) -> dict[str, Any]:
    """Cold and warm seconds of one way to one model, in this process, with the moments of its draws."""
    way = CASES[case]()[number]
    seconds = []
    for _ in range(2):
        begun, used = time.perf_counter(), processor_seconds()
        result = way.run()
        seconds.append([time.perf_counter() - begun, processor_seconds() - used])
    draws = way.draws(result)
    moments = {
        name: [rows.mean(axis=0).ravel().tolist(), rows.std(axis=0).ravel().tolist()]
        for name, rows in draws.items()
    }
    return {"way": way.name, "seconds": seconds, "moments": moments}


def processor_seconds() -> float:
    """What this process and those that it has started have used so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def in_a_new_process(case: str, number: int) -> dict[str, Any]:
    """`timed` in a new process whose PyTensor finds no compiled code of earlier runs."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ",".join(filter(None, [os.environ.get("PYTENSOR_FLAGS"), f"base_compiledir={folder}"]))
        run = subprocess.run(
            [sys.executable, __file__, "--case", case, "--way", str(number)],
            env=os.environ | {"PYTENSOR_FLAGS": flags},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def row(case: str) -> str:
    mine, own = in_a_new_process(case, 0), in_a_new_process(case, 1)
    shared = [name for name in own["moments"] if name in mine["moments"]]
    means, stds = (
        [np.concatenate([way["moments"][name][moment] for name in shared]) for way in (mine, own)]
        for moment in (0, 1)
    )
    times = "".join(
        f"{f'{clock:.1f} ({cpu:.1f})':>16}" for way in (mine, own) for clock, cpu in way["seconds"]
    )
    off, ratio = np.abs((means[0] - means[1]) / stds[1]).max(), stds[0] / stds[1]
    return f"{case:<40}{times}   {own['way']:<12}{off:>6.2f}   {ratio.min():.2f} to {ratio.max():.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--way", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case is not None:
        with warnings.catch_warnings(action="ignore"):
            print(json.dumps(timed(arguments.case, arguments.way)))
        return
    print(f"{'':<40}{'mgvbp, s':>32}{'own way, s':>32}")
    columns = "".join(f"{what:>16}" for what in ("cold", "warm", "cold", "warm"))
    print(f"{'model':<40}{columns}   {'own way':<12}{'means':>6}   sds")
    for case in CASES:
        if arguments.only in case:
            print(row(case), flush=True)


if __name__ == "__main__":
    main()
