"""Eight volatility models on the S&P 500: the paper's tables vol_est and vol_est_EGARCH, and their figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

import mgvbp
from mgvbp import datasets
from mgvbp.paper import daily
from mgvbp.paper.common import METHODS, PRIOR_VARIANCE, Array, grid_lower_bound, printed
from mgvbp.paper.spec import Cells, Experiment, Outcome, Outcomes, Row, Table, Values, reference, rows_of
from mgvbp.paper.target import run_auto, run_mcmc, run_ml
from mgvbp.volatility import ARCH, EGARCH, FIGARCH, GARCH, GJR, Likelihood, VolatilityModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODELS: dict[str, VolatilityModel] = {
    "ARCH": ARCH(1, convention="paper"),
    "GARCH(1,0,1)": GARCH(1, 1, convention="paper"),
    "GJR(1,1,1)": GJR(1, 1, 1, convention="paper"),
    "GJR(1,1,2)": GJR(1, 1, 2, convention="paper"),
    "EGARCH(1,0,1)": EGARCH(1, 0, 1, convention="paper"),
    "EGARCH(1,1,1)": EGARCH(1, 1, 1, convention="paper"),
    "FIGARCH(0,d,1)": FIGARCH(0, 1, convention="paper"),
    "FIGARCH(1,d,1)": FIGARCH(1, 1, convention="paper"),
}
TABLES = {"vol_est": tuple(MODELS)[:4], "vol_est_EGARCH": tuple(MODELS)[4:]}
PICTURED = {
    "marginals-garch-101": "GARCH(1,0,1)",
    "marginals-gjr-111": "GJR(1,1,1)",
    "marginals-figarch-1d1": "FIGARCH(1,d,1)",
}
"""The models whose marginals have a figure, by its name."""
RUNS = {
    "MGVBP": ("MGVBP", 0.02),
    "MGVB": ("MGVB", 0.01),
    "QBVI": ("QBVI", 0.01),
    "MGVBP 0.01": ("MGVBP", 0.01),
}
"""Method and step size of each run. The authors gave MGVBP twice the step of the others; the last run has the same."""
STEPS = {"EGARCH(1,1,1) MGVB": 0.02}
"""Runs with another step: 0.02 meets the paper's numbers here, and the 0.01 of the saved settings does not."""
AS_PRINTED = "MGVBP, settings as printed"
PRINTED_ROWS = {"GARCH": "ARCH-GARCH-GJR", "EGARCH": "EGARCH", "FIGARCH": "FIGARCH"}
"""The kinds of models, and their rows in the paper's table of hyper-parameters."""
SEEDS = 5
"""Runs of each row of the models that take a second or two: our number is their mean."""
NUM_DRAWS = 150
"""Draws of an iteration."""
INITIAL_VARIANCE = 0.05
"""Variance of the first Gaussian."""
SHARED: dict[str, Any] = {
    "momentum": 0.4,
    "precision_scale": 2.0,
    "clip_gradient": 1000.0,  # clipped by its natural gradient instead, MGVB diverges on EGARCH(1,0,1)
    "window": 31,  # what the authors' code averages where the paper says 30
    "patience": 5000,
}
BUDGETS: dict[str, dict[str, Any]] = {
    "GARCH": {"max_iterations": 500, "decay_after": 1000, "clip_initial": 100.0},
    "EGARCH": {"max_iterations": 3000, "decay_after": 2500, "clip_initial": 1000.0},
    "FIGARCH": {"max_iterations": 1200, "decay_after": 2500, "clip_initial": 1000.0},
}
"""What the authors ran for each kind of model. For the first kind their text says 1,200 iterations, a clip of 1,000."""

LOSSES = tuple(
    f"{part}{loss} {proxy}" for part in ("", "test ") for loss in ("MSE", "QLIKE") for proxy in ("r", "rv")
)
OFF_MAXIMUM = "the authors evaluate at a point a little off the maximum"
OTHER_OPTIMISER = "the authors print the estimates of one optimiser and evaluate those of another"
PRESAMPLE = "the authors have another value for the days before the sample here"
REASONS = {
    **{f"{model} ML": OFF_MAXIMUM for model in TABLES["vol_est"]},
    "GARCH(1,0,1) MCMC": "ψ of beta[1] has a long tail, of which the paper's chain may have seen less",
    "EGARCH(1,0,1) ML": OTHER_OPTIMISER,
    "EGARCH(1,1,1) ML": OTHER_OPTIMISER,
    **{f"FIGARCH({p},d,1) {run}": PRESAMPLE for p in (0, 1) for run in ("MCMC", "ML")},
}
PRINTED_REASON = "the paper's numbers are not of the printed settings"
SETTINGS_NOTE = (
    "MGVBP, MGVB and QBVI have the authors' actual settings, which are not those that the paper prints: MGVBP's step "
    "size is 0.02 and that of the others 0.01, but for MGVB on EGARCH(1,1,1), where 0.02 meets the paper's numbers. "
    "How the authors clip MGVB is our reading: by the gradient's norm, as for the others, since with its natural "
    "gradient clipped it diverged on EGARCH(1,0,1). LB* is the largest moving average of the noisy bound, which leans "
    "upwards; the bound at the point is the same by quadrature. Parameters and all else are at the mean of ψ. Five "
    "seeds for ARCH, GARCH and GJR, one for the others."
)
LOSSES_NOTE = (
    "The column that the data call rv holds the realised kernel, and rk the 5-minute realised volatility; "
    "the paper's numbers are of rv, and so are ours."
)
RACE_NOTE = (
    f"The bound by quadrature, every {daily.EVERY} iterations, from the same start with the same draws. The first "
    "three have the step size 0.01 and precision_scale 2: that is the fair comparison. (On EGARCH(1,1,1) MGVB has "
    "0.02, as in the paper: there it is to be compared with the last.) The last is MGVBP with the authors' 0.02, "
    "which the paper's figures show beside the second and third. A dash: not within the authors' number of iterations."
)


class Volatility(daily.Daily):
    """A model with both parts of the sample; its filter starts anew on the test days.

    ``parts`` has, by the prefix of the columns ("" for the training days, "test " for the others), the likelihood and
    the squares of what stands for the volatility.
    """

    likelihood: Likelihood
    optimiser = "BFGS"

    def __init__(
        self,
        model: VolatilityModel,
        parts: dict[str, tuple[Likelihood, dict[str, Array]]],
        optimum: float = float("nan"),
    ) -> None:
        self.model, self.parts, self.optimum = model, parts, optimum
        self.likelihood = parts[""][0]
        self.prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=model.parameters.dim)

    def report(self, psi: Array) -> dict[str, Array]:
        """All columns of the tables at points ψ, (S, d) -> (S,) each.

        MSE is the mean of ``(x − h)²`` and QLIKE that of ``x/h − log(x/h) − 1``, where h is the variance of a day and x
        is r² or rv².
        """
        found: dict[str, Array] = {}
        for prefix, (likelihood, squares) in self.parts.items():
            paths = likelihood.paths(psi)
            h = paths.variance[:-1]
            found |= paths.values if not prefix else {}
            found[f"{prefix}log-lik"] = likelihood(psi)
            for proxy, x in squares.items():
                ratio = x[:, None] / h
                found[f"{prefix}MSE {proxy}"] = np.mean((x[:, None] - h) ** 2, axis=0)
                found[f"{prefix}QLIKE {proxy}"] = np.mean(ratio - np.log(ratio) - 1.0, axis=0)
        return found

    def exact_bound(self, q: mgvbp.Gaussian) -> float:
        """The lower bound at q by a rule whose error is below 0.003 nats for these models."""
        return grid_lower_bound(self.likelihood, self.prior, q, order=7 if q.dim < 5 else 5)

    def estimate(self) -> tuple[Array, int]:
        """ψ (d,) of the largest likelihood by BFGS from the best point of a coarse grid, and the evaluations."""
        starts = self.model.starts(self.likelihood)

        def loss(psi: Array) -> float:
            return -float(self.likelihood(psi[None])[0])

        best: Array = starts[int(np.argmax(self.likelihood(starts)))]
        found = minimize(loss, best, jac="3-point", method="BFGS", options={"gtol": 1e-4})
        return np.asarray(found.x), len(starts) + int(found.nfev)

    def z_ratios(self, theta: Array) -> dict[str, float]:
        """Standard errors come from the Hessian in the model's parameters, by central differences."""
        parameters = self.model.parameters
        names, d = parameters.names, parameters.dim
        point = {name: float(x[0]) for name, x in parameters.constrain(theta[None]).items()}
        steps = np.array([1e-3 * max(abs(point[name]), 1e-2) for name in names])
        signs = [(i, j, a, b) for i in range(d) for j in range(i + 1) for a in (1, -1) for b in (1, -1)]
        moved = np.tile([point[name] for name in names], (len(signs), 1))
        for row, (i, j, a, b) in zip(moved, signs, strict=True):
            row[i] += a * steps[i]
            row[j] += b * steps[j]
        psi = parameters.unconstrain({name: moved[:, k] for k, name in enumerate(names)})
        H = np.zeros((d, d))
        for (i, j, a, b), value in zip(signs, self.likelihood(psi), strict=True):
            H[i, j] += a * b * value / (4.0 * steps[i] * steps[j])
        errors = np.sqrt(np.diag(np.linalg.inv(-(H + np.tril(H, -1).T))))
        return {name: point[name] / float(error) for name, error in zip(names, errors, strict=True)}

    def auto(self, seed: int, **options: Any) -> mgvbp.Posterior:
        """``model.fit(returns)`` without options."""
        return self.model.fit(self.likelihood.series, rng=seed, **options).posterior

    def marginals(self, draws: Array) -> dict[str, list[float]]:
        """Histograms of the marginals of draws (S, d), in ψ and in the parameters: edges and heights."""
        curves: dict[str, list[float]] = {}
        values = self.model.parameters.constrain(draws)
        for i, name in enumerate(self.model.parameters.names):
            for space, x in (("psi", draws[:, i]), ("theta", values[name])):
                ends = tuple(np.quantile(x, [0.001, 0.999]))
                heights, edges = np.histogram(x, bins=50, range=ends, density=True)
                curves |= {
                    f"{space} {name} edges": edges.tolist(),
                    f"{space} {name} heights": heights.tolist(),
                }
        return curves


@cache
def target(name: str, seed: int = 0) -> Volatility:
    """A model of `MODELS` with the paper's sample."""
    model, data = MODELS[name], datasets.load("sp500")
    parts = {}
    for prefix, frame in (("", data.train), ("test ", data.test)):
        squares = {proxy: frame[proxy].to_numpy() ** 2 for proxy in ("r", "rv")}
        parts[prefix] = model.likelihood(frame["r"].to_numpy()), squares
    return Volatility(model, parts, reference("volatility")["exact"][name]["LB*"])


def kind_of(model: str) -> str:
    """The kind of a model, a key of `BUDGETS`."""
    return "GARCH" if model.startswith(("ARCH", "GARCH", "GJR")) else model.partition("(")[0]


def run_named(model: str, run: str, seed: int, max_iterations: int | None = None, seeds: int = 1) -> Outcome:
    """One of the paper's methods, from the maximum of the likelihood; with the authors' settings or the printed."""
    at, kind = target(model), kind_of(model)
    options: dict[str, Any] = {
        "estimator": "h", "draws": "sobol", "num_draws": NUM_DRAWS, "initial_variance": INITIAL_VARIANCE,
    }  # fmt: skip
    if run == AS_PRINTED:
        method, settings = "MGVBP", printed(PRINTED_ROWS[kind], precision_scale=2.0)
        options["draws"] = "mc"
    else:
        method, step_size = RUNS[run]
        step_size = STEPS.get(f"{model} {run}", step_size)
        settings = {**SHARED, **BUDGETS[kind], "step_size": step_size}
    if max_iterations is not None:
        settings["max_iterations"] = max_iterations
    start = at.estimate()[0]
    outcome, path = at.over_seeds(method, settings, seed, seeds, initial_mean=start, **options)
    return replace(outcome, values=outcome.values | path.arrival(at.arrived))


def cells_of(model: str, steps: int = 5000) -> Cells:
    """All runs of a model; MCMC has ``steps``."""
    at = partial(target, model)
    seeds = SEEDS if kind_of(model) == "GARCH" else 1
    return {
        **{f"{model} {run}": partial(run_named, model, run, seeds=seeds) for run in METHODS},
        f"{model} MGVBP 0.01": partial(run_named, model, "MGVBP 0.01"),
        f"{model} {AS_PRINTED}": partial(run_named, model, AS_PRINTED),
        f"{model} auto": partial(run_auto, at),
        f"{model} MCMC": partial(run_mcmc, at, steps=steps, walkers=64),
        f"{model} ML": partial(run_ml, at),
    }


def cells(quick: bool) -> Cells:
    """All eight models; quick: GARCH(1,0,1) alone, with a short chain."""
    if quick:
        return cells_of("GARCH(1,0,1)", steps=500)
    return {name: run for model in MODELS for name, run in cells_of(model).items()}


def model_rows(
    models: Iterable[str],
    outcomes: Outcomes,
    paper: Mapping[str, Values],
    reasons: Mapping[str, str],
    runs: Sequence[str] = (*METHODS, "auto", "MCMC", "ML"),
) -> list[Row]:
    """The rows of models and runs in the paper's order, beside the exact optimum of the bound."""
    names = {f"{model} {run}": (model, run) for model in models for run in runs}
    known = reference("volatility")["exact"]
    exact = {
        name: daily.at_optimum(known[model])
        for name, (model, run) in names.items()
        if run not in ("MCMC", "ML")
    }
    return rows_of(outcomes, list(names), paper, exact, reasons)


def parameters_of(models: Iterable[str]) -> list[str]:
    """The parameters that any of the models has."""
    return list(dict.fromkeys(name for model in models for name in MODELS[model].parameters.names))


def tables(outcomes: Outcomes) -> Iterator[Table]:
    """Tables vol_est and vol_est_EGARCH, each in two parts, when each method arrives, and the chains."""
    for label, models in TABLES.items():
        rows = model_rows(models, outcomes, reference("volatility")["paper"][label], REASONS)
        title = f"{models[0].partition('(')[0]} to {models[-1]}"
        columns = (*parameters_of(models), *daily.LIKELIHOODS)
        yield daily.noisy_table(
            label, f"{title}: parameters and likelihoods", columns, rows, outcomes, SETTINGS_NOTE
        )
        yield daily.noisy_table(label, f"{title}: losses", LOSSES, rows, outcomes, LOSSES_NOTE)
        yield printed_table(label, models, outcomes)
    runs = ("MGVBP 0.01", "MGVB", "QBVI", "MGVBP")
    race = {model: {run: f"{model} {run}" for run in runs} for model in MODELS}
    yield daily.race_table("Iterations", race, outcomes, RACE_NOTE)
    yield daily.significance_table({model: f"{model} ML" for model in MODELS}, outcomes)
    title = "MCMC diagnostics: the largest R-hat and the least effective sample size of a model's ψ"
    yield daily.chains_table(title, [f"{model} MCMC" for model in MODELS], outcomes)


def printed_table(label: str, models: Iterable[str], outcomes: Outcomes) -> Table:
    """MGVBP with the settings that the paper prints, which are not those of its numbers."""
    known = reference("volatility")["paper"][label]
    paper = {f"{model} {AS_PRINTED}": known[f"{model} MGVBP"] for model in models}
    rows = model_rows(models, outcomes, paper, dict.fromkeys(paper, PRINTED_REASON), [AS_PRINTED])
    columns = (*parameters_of(models), *daily.LIKELIHOODS)
    title = f"{next(iter(models)).partition('(')[0]}: MGVBP with the settings as printed"
    return daily.noisy_table(f"{label}_printed", title, columns, rows, outcomes, "Plain draws; one seed.")


def figures(outcomes: Outcomes) -> dict[str, Figure | None]:
    """The dynamics of all models, and the marginals of some."""
    densities = {n: daily.marginals(outcomes, m, MODELS[m].parameters.names) for n, m in PICTURED.items()}
    return {"dynamics": daily.dynamics(outcomes, MODELS), **densities}


EXPERIMENT = Experiment("volatility", cells, tables, figures, data=("sp500",))
