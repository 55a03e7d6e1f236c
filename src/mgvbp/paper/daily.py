"""What `volatility` and `har` share: models of daily data, columns of their tables, who is near the paper, figures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.paper.common import ARRIVED, COLOURS, METHODS, ROUNDING, Array
from mgvbp.paper.seeds import NOTE, over_seeds, quantile, tolerances
from mgvbp.paper.spec import Outcome, Outcomes, Row, Table, Values, across, reference, rows_of
from mgvbp.paper.target import Path, Target
from mgvbp.plots import finished, private_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWS = 500
"""Draws from a posterior that give the spread of the columns. The standard error of this spread is then some 4% of it,
which is small beside the tolerance that it decides."""
EVERY = 10
"""A run is looked at in its first iteration and in every tenth after it: enough for a line in a figure."""
LIKELIHOODS = ("LB*", "LB at point", "log-lik", "test log-lik")
PAPER_ESS = 1000.0
"""Effective draws of the paper's MCMC. This is a guess: the paper states none for its 40,000 draws of a random walk."""
FLAT = ("LB*", "LB at point", "log-lik")
"""Columns with a maximum near the result: their spread is taken in nats, and not as a share of the posterior's."""
JUDGED = (
    f"{NOTE} Models that were run with one seed take the largest spread of those with several: in nats for LB* and "
    "log-lik, in posterior standard deviations for the rest. MCMC: rounding and three Monte Carlo errors of both "
    "chains, "
    f"where {PAPER_ESS:,.0f} effective draws are assumed for the paper's, which states none. ML: rounding."
)
SIGNIFICANT = "significant at 5%"
SIGNIFICANCE_NOTE = (
    "The paper's text says that all parameters but HAR's β₃ are significant at 5%, and not by which standard errors. "
    "These are of the Hessian of the log-likelihood; of HAR, of least squares."
)


class Daily(Target):
    """A model of daily data."""

    optimum: float
    """The largest lower bound that the family has."""
    optimiser: str
    """How `estimate` finds its point."""

    @abstractmethod
    def report(self, theta: Array) -> dict[str, Array]:
        """All columns of the tables at each of the points, (S, d) -> (S,) each."""

    @abstractmethod
    def exact_bound(self, q: mgvbp.Gaussian) -> float:
        """The lower bound at q without Monte Carlo error."""

    @abstractmethod
    def estimate(self) -> tuple[Array, int]:
        """The point (d,) of the largest likelihood, and the number of evaluations that it took."""

    def marginals(self, draws: Array) -> dict[str, list[float]]:
        """What the figures show of draws (S, d) from a posterior."""
        return {}

    def summary(self, theta: Array, draws: Array | None = None) -> dict[str, float]:
        """The columns at a point (d,); with draws (S, d) also their spread.

        The spread ``sd <column>`` is half the width of the middle 68% of the column over the draws.
        """
        values = {name: float(value[0]) for name, value in self.report(theta[None]).items()}
        if draws is not None:
            spread = {name: np.quantile(value, [0.16, 0.84]) for name, value in self.report(draws).items()}
            values |= {f"sd {name}": float(high - low) / 2.0 for name, (low, high) in spread.items()}
        return values

    def fitted(self, q: mgvbp.Posterior) -> Outcome:
        """The columns at the posterior's mean, the bound that the run reports, and the bound there without noise."""
        values = self.summary(q.mean, q.sample(DRAWS, 0))
        values |= {"LB*": q.lower_bound, "LB at point": self.exact_bound(q)}
        return Outcome(values, self.marginals(q.sample(100_000, 0)))

    def sampled(self, chains: Chains) -> Outcome:
        """The columns at the mean of the chains."""
        some = np.random.default_rng(0).integers(len(chains.flat), size=DRAWS)
        return Outcome(self.summary(chains.flat.mean(axis=0), chains.flat[some]), self.marginals(chains.flat))

    def maximum_likelihood(self) -> Outcome:
        """The columns at the estimate."""
        theta, evaluations = self.estimate()
        ratios = {f"z {name}": z for name, z in self.z_ratios(theta).items()}
        return Outcome(self.summary(theta) | ratios, {}, {"optimiser": self.optimiser}, evaluations)

    @abstractmethod
    def z_ratios(self, theta: Array) -> dict[str, float]:
        """Estimates over their standard errors, at the point of the largest likelihood."""

    def arrived(self, q: mgvbp.Gaussian) -> bool:
        """Whether the bound at ``q`` is near its optimum."""
        return bool(self.optimum - self.exact_bound(q) <= ARRIVED)

    def over_seeds(
        self, method: str, settings: dict[str, Any], seed: int, seeds: int, **options: Any
    ) -> tuple[Outcome, Path[mgvbp.Gaussian]]:
        """One of the paper's methods over seeds, and the path of the first run.

        The curves are of the first run: what `fitted` has, the smoothed bound, and the columns of the tables.
        """
        path = Path[mgvbp.Gaussian](lambda iteration: iteration.gaussian, EVERY)
        runs = [
            self.by_method(method, settings, seed + i, callback=None if i else path, **options)
            for i in range(seeds)
        ]
        fitted, smoothed = [self.fitted(q) for q in runs], runs[0].trace.smoothed
        seen = self.report(np.array([q.mean for q in path.seen]))
        seen["LB"] = smoothed[np.array(path.iterations, dtype=int) - 1]
        curves = {"iteration": path.iterations, "best": [float(np.nanargmax(smoothed) + 1)]}
        curves |= {name: values.tolist() for name, values in seen.items()}
        shown = {name: option for name, option in options.items() if name != "initial_mean"}
        record = settings | shown | {"method": method}
        values = over_seeds([each.values for each in fitted])
        return Outcome(values, fitted[0].curves | curves, record, sum(q.n_evaluations for q in runs)), path


def at_optimum(optimum: Values) -> Values:
    """The exact optimum as a row of a table. It has no noise, so that its bound at the point is LB*."""
    return {**optimum, "LB at point": optimum["LB*"]}


def widest(outcomes: Outcomes) -> dict[str, float]:
    """The largest tolerances of single runs.

    Those of `FLAT` are in nats, and ``share`` is that of the other columns in posterior standard deviations.
    """
    found: dict[str, float] = {}
    for values in (outcome.values for outcome in outcomes.values()):
        for name, spread in values.items():
            column = name.removeprefix("spread ")
            if column == name or column.startswith("sd ") or not values.get(f"sd {column}", column == "LB*"):
                continue
            size = 1.0 if column in FLAT else values[f"sd {column}"]
            key = column if column in FLAT else "share"
            found[key] = max(found.get(key, 0.0), quantile(values["seeds"], 1.0) * spread / size)
    return found


def errors_of(
    values: Mapping[str, float], columns: Sequence[str], single: Mapping[str, float]
) -> dict[str, float]:
    """How far our row and the paper's may be apart, by column; empty for maximum likelihood.

    ``single`` has the tolerances of rows that were run with one seed.
    """
    if values.get("seeds", 0.0) > 1.0:
        return tolerances(values, columns)
    spreads = {c: values[f"sd {c}"] for c in columns if f"sd {c}" in values}
    if "ESS" in values:
        share = 3.0 * (1.0 / values["ESS"] + 1.0 / PAPER_ESS) ** 0.5
        return {c: ROUNDING + share * sd for c, sd in spreads.items()}
    allowed = {c: ROUNDING + single["share"] * sd for c, sd in spreads.items() if "share" in single}
    return allowed | {c: ROUNDING + single[c] for c in FLAT if c in columns and c in single and spreads}


def noisy_table(
    label: str, title: str, columns: Iterable[str], rows: list[Row], outcomes: Outcomes, note: str = ""
) -> Table:
    """A table whose rows have tolerances of their own: of runs, of a chain, or of the rounding alone."""
    allowed, single = dict.fromkeys(columns, ROUNDING), widest(outcomes)
    rows = [
        replace(row, tolerances=errors_of(outcomes[row.name].values, list(allowed), single)) for row in rows
    ]
    note = f"{JUDGED} {note}"
    return Table(label, title, allowed, rows, bound="LB*", judge="LB at point", note=note)


def race_table(title: str, cells: Mapping[str, Mapping[str, str]], outcomes: Outcomes, note: str) -> Table:
    """When each method arrives; ``cells`` are by row and column."""
    columns = {column: 0.0 for own in cells.values() for column in own}
    title += f" until the bound is within {ARRIVED} nats of the exact optimum"
    rows = across(outcomes, cells, "arrival")
    return Table("iterations", title, columns, rows, decimals=0, note=note)


def chains_table(title: str, cells: Sequence[str] | Mapping[str, str], outcomes: Outcomes) -> Table:
    """The diagnostics that say how far each chain is to be trusted."""
    return Table("MCMC", title, {"R-hat": 0.0, "ESS": 0.0}, rows_of(outcomes, cells))


def significance_table(
    models: Mapping[str, str], outcomes: Outcomes, but: Mapping[str, int] | None = None
) -> Table:
    """The paper's claim that all parameters but one are significant; ``models`` has the cells of ML by row.

    ``but`` is the number of parameters that the paper says are not.
    """
    rows = []
    for model, cell in models.items():
        ratios = outcomes[cell].under("z ") if cell in outcomes else {}
        if ratios:
            ours = {SIGNIFICANT: float(sum(abs(z) > 1.96 for z in ratios.values())), **ratios}
            paper = {SIGNIFICANT: float(len(ratios) - (but or {}).get(model, 0))}
            weak = ", ".join(name for name, z in ratios.items() if abs(z) <= 1.96)
            rows.append(Row(model, ours, paper, reason=f"not significant with these standard errors: {weak}"))
    names = list(dict.fromkeys(name for row in rows for name in row.ours if name != SIGNIFICANT))
    columns = {SIGNIFICANT: 0.0, **dict.fromkeys(names, 0.0)}
    title = "Estimates over their standard errors, at the maximum of the likelihood"
    return Table("significance", title, columns, rows, decimals=2, note=SIGNIFICANCE_NOTE)


# --- figures ------------------------------------------------------------------------------------------

SHADES = COLOURS | {"auto": "C3", "MCMC": "0.75"}
STYLES = {"MGVBP 0.01": "--", **{f"{method} diagonal": ":" for method in METHODS}}
WIDTHS = {"MGVB": 3.6, "QBVI": 2.2}
"""At equal steps the lines lie on each other, so each is thinner than the one below it."""
PANELS = ("MSE rv", "test MSE rv", "QLIKE rv", "test QLIKE rv")
SHOWN = ("MGVBP", "MGVB", "QBVI", "MGVBP 0.01")
"""The runs of a volatility model that are drawn."""


def label(run: str, outcome: Outcome) -> str:
    """The method of a run, and its step."""
    step = outcome.settings.get("step_size")
    return f"{run.split()[0]}, step {step:g}" if step else run


def dynamics(outcomes: Outcomes, models: Iterable[str], har: Sequence[str] = ()) -> Figure | None:
    """Lower bound, MSE and QLIKE over the iterations: a row for the runs of HAR, if any, and one for each model."""
    shown = [model for model in models if f"{model} MGVBP" in outcomes]
    if not shown and not har:
        return None
    rows = len(shown) + bool(har)
    figure = private_figure(13.0, 2.4 * rows + 0.4)
    axes = list(figure.subplots(rows, 1 + len(PANELS), squeeze=False))
    if har:
        line = axes.pop(0)
        runs = {run: (outcomes[run], run) for run in har}
        draw_row(line, "HAR", runs, reference("har")["exact"]["full"]["LB*"])
        line[1].legend(*line[0].get_legend_handles_labels(), fontsize=7)  # this panel has room for it
    for model, line in zip(shown, axes, strict=True):
        found = {run: outcomes[f"{model} {run}"] for run in SHOWN if f"{model} {run}" in outcomes}
        runs = {run: (outcome, label(run, outcome)) for run, outcome in found.items()}
        draw_row(line, model, runs, reference("volatility")["exact"][model]["LB*"])
        line[0].legend(fontsize=7, loc="lower right")
    return figure


def draw_row(
    line: Sequence[Axes], name: str, runs: Mapping[str, tuple[Outcome, str]], optimum: float
) -> None:
    """Draw one row: the bound with its optimum, and the two losses on the training and the test days.

    ``runs`` has outcomes and labels. Vertical lines are at t*, the iteration of a result.
    """
    columns = {"LB": f"{name}: lower bound", **{column: column for column in PANELS}}
    for panel, (column, title) in zip(line, columns.items(), strict=True):
        for run, (outcome, words) in runs.items():
            curves, width = outcome.curves, WIDTHS.get(run, 1.2)
            style: dict[str, Any] = {"color": COLOURS[run.split()[0]], "linestyle": STYLES.get(run, "-")}
            order = 3.0 - width / 10.0
            panel.plot(
                curves["iteration"], curves[column], label=words, linewidth=width, zorder=order, **style
            )
            panel.axvline(curves["best"][0], linewidth=0.7, **style)
        if column == "LB":
            panel.axhline(optimum, color="k", linestyle=":", linewidth=1.0, label="exact optimum")
            panel.set_ylim(optimum - 6.0, optimum + 0.5)
        panel.set_xlabel("iteration")
        finished(panel, title)


def marginals(outcomes: Outcomes, model: str, names: Iterable[str]) -> Figure | None:
    """Marginal densities of ψ (top) and of the parameters (bottom), by MCMC (grey) and the methods."""
    runs = {run: outcomes[f"{model} {run}"].curves for run in SHADES if f"{model} {run}" in outcomes}
    if "MCMC" not in runs:
        return None
    names = list(names)
    figure = private_figure(13.0, 5.2)
    axes = figure.subplots(2, len(names), squeeze=False)
    for space, line in zip(("psi", "theta"), axes, strict=True):
        for name, panel in zip(names, line, strict=True):
            for run, curves in runs.items():
                edges, heights = curves[f"{space} {name} edges"], curves[f"{space} {name} heights"]
                if run == "MCMC":
                    panel.stairs(heights, edges, fill=True, color=SHADES[run], label=run, zorder=0)
                else:
                    centres = (np.array(edges[1:]) + np.array(edges[:-1])) / 2.0
                    panel.plot(centres, heights, color=SHADES[run], linewidth=1.1, label=run)
            panel.set_yticks([])
            finished(panel, f"ψ of {name}" if space == "psi" else name)
    axes[0][0].legend(fontsize=8)
    figure.suptitle(f"{model}: marginals of ψ (top) and of the parameters (bottom)", fontsize=10)
    return figure
