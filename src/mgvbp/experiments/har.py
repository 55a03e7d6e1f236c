"""Realised volatility: the paper's tables regression and vol_est_FIGARCH_HAR, and the figure of their dynamics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

import mgvbp
from mgvbp import datasets
from mgvbp.experiments import mcmc, volatility
from mgvbp.experiments.common import ARRIVED, METHODS, PRIOR_VARIANCE, Array, linear_lower_bound, quietly
from mgvbp.experiments.spec import Cell, Experiment, Outcome, Row, Table, reference
from mgvbp.experiments.volatility import Path, noisy_table, summary
from mgvbp.models import HAR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_DRAWS = 50
INITIAL_VARIANCE = 0.01
SHRINKAGE = 0.95
"""The authors start at this share of the maximum likelihood estimate."""
SETTINGS: dict[str, Any] = {
    "momentum": 0.4,
    "clip_natural_gradient": 50_000.0,
    "clip_initial": 1000.0,
    "decay_after": 600,
    "max_iterations": 800,
    "window": 31,
    "patience": 300,
}
"""What the authors ran; the text says 150 draws, 1,000 iterations, decay after 750."""
OWN: dict[str, dict[str, float]] = {
    "MGVBP": {"step_size": 0.002, "precision_scale": 2.0},
    "MGVB": {"step_size": 0.001, "precision_scale": 1.0},
    "QBVI": {"step_size": 0.001, "precision_scale": 2.0},
}
"""What the authors gave each method: one has twice the step, one half the natural gradient."""
FAIR: dict[str, Any] = {
    "step_size": 0.002,
    "precision_scale": 2.0,
    "decay_after": None,
    "patience": 20_000,
    "clip_natural_gradient": None,  # it is another quantity for MGVB, which diverges under it at this step
    "clip_gradient": 50_000.0,
}
"""The same for all, for as long as it takes to arrive."""
REPLICATIONS = 7
"""Further seeds, for the spread of a row over seeds: these runs end before their end depends on the optimum alone."""
FAIR_BUDGET = 10_000
VARIANTS = {"": ("loglik", "full"), " h": ("h", "full"), " diagonal": ("loglik", "diagonal")}
"""Estimator and family, by the end of a row's name."""
GARCH_ROWS = ("GARCH(1,0,1)", "GJR(1,1,1)")


@dataclass(frozen=True, eq=False)
class Target:
    """The regression on the training days, and the days to test it on."""

    model: HAR
    test: HAR

    @property
    def prior(self) -> mgvbp.Gaussian:
        """N(0, 5 I) on (β, log σ)."""
        return mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=5)

    def report(self, theta: Array) -> dict[str, Array]:
        """All that the tables say of points θ, (S, 5) -> (S,) each; QLIKE is that of volatilities, times 100."""
        found = {f"beta[{i}]": theta[:, i] for i in range(4)} | {"sigma": np.exp(theta[:, 4])}
        for prefix, part in (("", self.model), ("test ", self.test)):
            fitted = theta[:, :4] @ part.X.T
            # a line far off may predict a volatility below zero, of which there is no logarithm
            ratio = part.y / np.where(fitted > 0.0, fitted, np.nan)
            found[f"{prefix}log-lik"] = part(theta)
            found[f"{prefix}MSE rv"] = ((part.y - fitted) ** 2).sum(axis=1) / (len(part.y) - 4)
            found[f"{prefix}QLIKE rv"] = 100.0 * np.mean(ratio - np.log(ratio) - 1.0, axis=1)
        return found

    def maximum_likelihood(self) -> Array:
        """(β, log σ) by least squares, σ² = SSE / (n − 4)."""
        X, y = self.model.X, self.model.y
        beta = np.linalg.lstsq(X, y)[0]
        return np.append(beta, 0.5 * np.log(np.sum((y - X @ beta) ** 2) / (len(y) - 4)))

    def exact_bound(self, q: mgvbp.Gaussian) -> float:
        """The lower bound at q in closed form."""
        return linear_lower_bound(self.model, self.prior, q)


@cache
def target() -> Target:
    """The paper's sample."""
    data = datasets.load("har")

    def model(frame: Any) -> HAR:
        return HAR.from_columns(*(frame[column].to_numpy() for column in (data.target, *data.features)))

    return Target(model(data.train), model(data.test))


# --- cells --------------------------------------------------------------------------------------------


def run_ml(seed: int) -> Outcome:
    """Least squares."""
    at = target()
    return Outcome(summary(at.report, at.maximum_likelihood()), settings={"optimiser": "least squares"})


def fit_named(
    at: Target, method: str, variant: str, seed: int, settings: dict[str, Any], callback: Any
) -> Any:
    """A run from the authors' start."""
    estimator, family = VARIANTS[variant]
    with quietly():
        return mgvbp.fit(
            at.model,
            at.prior,
            method=METHODS[method](**settings),
            family=family,
            estimator=estimator,
            draws="sobol",
            num_draws=NUM_DRAWS,
            initial_mean=SHRINKAGE * at.maximum_likelihood(),
            initial_variance=INITIAL_VARIANCE,
            rng=seed,
            callback=callback,
        )


def run_named(seed: int, method: str, variant: str, replications: int) -> Outcome:
    """One of the paper's methods with the authors' settings, and its spread over seeds."""
    at, path = target(), Path()
    settings = {**SETTINGS, **OWN[method]}
    posterior = fit_named(at, method, variant, seed, settings, path)
    seeds = range(seed + 1, seed + 1 + replications)
    runs = [posterior, *(fit_named(at, method, variant, other, settings, None) for other in seeds)]
    columns = at.report(np.array([run.mean for run in runs]))
    columns["LB*"] = np.array([run.lower_bound for run in runs])
    spread = {f"seeds {name}": float(values.std(ddof=1)) for name, values in columns.items()}
    return Outcome(
        described(at, posterior) | spread,
        path.curves(posterior.trace, at.report),
        {
            **settings,
            "method": method,
            "num_draws": NUM_DRAWS,
            "draws": "sobol",
            "variant": VARIANTS[variant],
        },
        sum(run.n_evaluations for run in runs),
    )


def run_fair(seed: int, method: str, variant: str, budget: int) -> Outcome:
    """The same step and scale for every method, until it arrives."""
    at = target()
    settings = {**SETTINGS, **FAIR, "max_iterations": budget}
    optimum = reference("har")["exact"][VARIANTS[variant][1]]["LB*"]
    values: dict[str, float] = {}

    def arrived(seen: Any) -> bool:
        if seen.iteration % volatility.EVERY == 1 and "arrival" not in values:
            gap = optimum - at.exact_bound(seen.gaussian)
            if gap <= ARRIVED:
                values["arrival"] = float(seen.iteration)
        return "arrival" in values

    posterior = fit_named(at, method, variant, seed, settings, arrived)
    settings |= {"method": method, "num_draws": NUM_DRAWS, "draws": "sobol", "variant": VARIANTS[variant]}
    return Outcome(values, settings=settings, n_evaluations=posterior.n_evaluations)


def run_auto(seed: int, variant: str) -> Outcome:
    """``mgvbp.fit`` as it is."""
    at = target()
    posterior = mgvbp.fit(at.model, at.prior, family=VARIANTS[variant][1], rng=seed)
    settings = {"method": "auto", "family": VARIANTS[variant][1]}
    return Outcome(described(at, posterior), settings=settings, n_evaluations=posterior.n_evaluations)


def run_mcmc(seed: int, steps: int) -> Outcome:
    """An ensemble, started at draws from the approximation by ``auto``."""
    at = target()
    prior = at.prior
    around = mgvbp.fit(at.model, prior, rng=seed)
    chains = mcmc.sample(lambda theta: at.model(theta) + prior.log_density(theta), around, seed, steps=steps)
    draws = chains.flat[np.random.default_rng(seed).integers(len(chains.flat), size=volatility.DRAWS)]
    values = summary(at.report, chains.flat.mean(axis=0), draws)
    values |= chains.diagnostics
    settings = {"sampler": "emcee", "walkers": chains.draws.shape[0], "steps": steps}
    return Outcome(values, settings=settings, n_evaluations=chains.draws.shape[0] * (steps + 1))


def described(at: Target, posterior: mgvbp.Posterior) -> dict[str, float]:
    """The columns at the posterior's mean, its own bound, and the bound there without noise."""
    values = summary(at.report, posterior.mean, posterior.sample(volatility.DRAWS, 0))
    return values | {"LB*": posterior.lower_bound, "LB at point": at.exact_bound(posterior)}


# --- tables -------------------------------------------------------------------------------------------

PARAMETERS = ("beta[0]", "beta[1]", "beta[2]", "beta[3]", "sigma")
LOSSES = ("MSE rv", "QLIKE rv", "test MSE rv", "test QLIKE rv")
COLUMNS = (*PARAMETERS, *volatility.LIKELIHOODS, *LOSSES)
UNFINISHED = (
    "both stop short of the optimum, at points further apart than seeds explain; we have not found why"
)
COPIED = "the paper prints the losses of ARCH in this row"
NOTE = (
    "The methods have the authors' actual settings: 50 draws, 800 iterations, a step size of 0.002 for MGVBP and of "
    "0.001 for the others, half the natural gradient of the covariance for MGVB. The budget is too small: compare "
    "auto, which arrives. QLIKE is of volatilities, times 100."
    " These methods may differ from the paper by 3√2 standard deviations over 8 seeds (3 in a quick run), measured "
    "for each row, instead of a share of the posterior's."
)


class Har(Experiment):
    """The regression table, and HAR in all variants."""

    name = "har"
    title = "Realised volatility: the regression table and HAR"
    data = ("sp500", "har")

    def cells(self, quick: bool) -> list[Cell]:
        variants = [""] if quick else list(VARIANTS)
        replications = 2 if quick else REPLICATIONS
        named = [
            Cell(
                f"{method}{variant}",
                partial(run_named, method=method, variant=variant, replications=replications),
            )
            for variant in variants
            for method in METHODS
        ]
        fair = [
            Cell(
                f"{method}{variant} fair",
                partial(run_fair, method=method, variant=variant, budget=FAIR_BUDGET),
            )
            for variant in variants
            if variant != " h" and not quick
            for method in METHODS
        ]
        auto = [Cell(f"auto{v}", partial(run_auto, variant=v)) for v in variants if v != " h"]
        baselines = [Cell("MCMC", partial(run_mcmc, steps=500 if quick else 5000)), Cell("ML", run_ml)]
        garch = [] if quick else [cell for model in GARCH_ROWS for cell in volatility.cells_of(model)]
        return [*named, *fair, *auto, *baselines, *garch]

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        paper = reference("har")["paper"]
        garch = [
            row
            for model in GARCH_ROWS
            for row in volatility.rows_of(model, outcomes, paper["regression"], GARCH_REASONS)
        ]
        names = dict.fromkeys(name for m in GARCH_ROWS for name in volatility.MODELS[m].parameters.names)
        columns = (*names, "LB*", "log-lik", *LOSSES)
        upper = noisy_table(
            "regression",
            "Regression task: GARCH(1,1) and GJR(1,1)",
            columns,
            garch,
            outcomes,
            volatility.LOSSES_NOTE,
        )
        printed = {
            row.removeprefix("HAR "): v for row, v in paper["regression"].items() if row.startswith("HAR")
        }
        short = [c for c in COLUMNS if c not in ("sigma", "LB at point", "test log-lik")]
        lower = noisy_table(
            "regression",
            "Regression task: HAR",
            short,
            rows_of(outcomes, printed, [*printed, "auto", "auto diagonal"]),
            outcomes,
            NOTE,
        )
        every = paper["vol_est_FIGARCH_HAR"]
        whole = noisy_table(
            "vol_est_FIGARCH_HAR",
            "HAR: estimators and families",
            COLUMNS,
            rows_of(outcomes, every, [*every, "auto", "auto diagonal"]),
            outcomes,
            NOTE,
        )
        return [table for table in (upper, lower, whole, race(outcomes), diagnostics(outcomes)) if table.rows]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        runs = {method: outcomes[method].curves for method in METHODS if method in outcomes}
        runs |= {
            f"{m} diagonal": outcomes[f"{m} diagonal"].curves for m in METHODS if f"{m} diagonal" in outcomes
        }
        models = [model for model in GARCH_ROWS if f"{model} MGVBP" in outcomes]
        if not runs:
            return {}
        figure, axes = volatility.new_figure(1 + len(models), 1 + len(volatility.PANELS))
        labels = {run: run for run in runs}
        volatility.draw_dynamics(axes[0], "HAR", runs, labels, reference("har")["exact"]["full"]["LB*"])
        axes[0][1].legend(*axes[0][0].get_legend_handles_labels(), fontsize=7)  # where the panel is empty
        for model, line in zip(models, axes[1:], strict=True):
            volatility.dynamics_of(line, model, outcomes)
        return {"dynamics": figure}


GARCH_REASONS = volatility.REASONS | {f"{GARCH_ROWS[0]} {run}": COPIED for run in (*METHODS, "MCMC", "ML")}


def rows_of(outcomes: Mapping[str, Outcome], paper: Mapping[str, Any], names: list[str]) -> list[Row]:
    """Rows in the paper's order; exact is the optimum of the bound in the row's family."""
    exact = reference("har")["exact"]
    rows = []
    for name in names:
        if name not in outcomes:
            continue
        optimum = {} if name in ("MCMC", "ML") else exact["diagonal" if "diagonal" in name else "full"]
        shown = {**optimum, "LB at point": optimum["LB*"]} if optimum else {}
        rows.append(
            Row(name, outcomes[name].values, paper.get(name, {}), shown, UNFINISHED if optimum else "")
        )
    return rows


def race(outcomes: Mapping[str, Outcome]) -> Table:
    """When each method arrives if all have the same settings."""
    rows = []
    for variant in ("", " diagonal"):
        names = {method: f"{method}{variant} fair" for method in METHODS}
        arrivals = {m: outcomes[name].values.get("arrival") for m, name in names.items() if name in outcomes}
        if arrivals:
            rows.append(Row(VARIANTS[variant][1], arrivals))
    return Table(
        "iterations",
        f"HAR: iterations until the bound is within {ARRIVED} nats of the exact optimum",
        dict.fromkeys(METHODS, 0.0),
        rows,
        decimals=0,
        note=(
            "All methods with the step size 0.002, precision_scale 2, no decay, the same start and the same draws; "
            f"a dash: not within {FAIR_BUDGET:,} iterations. The authors' runs end after 800."
        ),
    )


def diagnostics(outcomes: Mapping[str, Outcome]) -> Table:
    """How far the MCMC is to be trusted."""
    rows = [Row("HAR MCMC", outcomes["MCMC"].values)] if "MCMC" in outcomes else []
    return Table("MCMC", "HAR: MCMC diagnostics", {"R-hat": 0.0, "ESS": 0.0}, rows)


EXPERIMENT = Har()
