"""Table tabl in its two halves, the bounds after equal numbers of passes with what these cost, and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from mgvbp.paper.lob.problem import START_PASSES
from mgvbp.paper.lob.runs import METHODS, TRUTH
from mgvbp.paper.spec import Outcomes, Picture, Row, Table, reference, rows_of
from mgvbp.plots import finished, private_figure

PRINTED = {
    "MGVBP gradient": "MGVBP",
    "QBVI gradient diag": "QBVI diag",
    "QBVI diag, same steps": "QBVI diag",
    "VOGN diag": "VOGN diag",
    "MGVBP h": "MGVBP",
    "QBVI h diag": "QBVI diag",
    "MCMC": "MCMC",
    "ADAM": "ADAM",
}
"""The row of the paper's table that each of ours stands beside."""
LEADER = "MGVBP gradient"
CONVERGED = 1.01
"""The largest R-hat of chains that count as converged (Vehtari et al. 2021)."""
TOLERANCE = 0.02
"""Tolerance of measures on FI-2010: by so much the optima differ that a run may end at."""
COLUMNS = {
    "train": {"LB*": 1000.0} | {f"train {m}": TOLERANCE for m in ("acc", "prec", "rec", "f1")},
    "test": {f"test {m}": TOLERANCE for m in ("acc", "prec", "rec", "f1", "lpd", "ECE")},
}
"""The columns of each half, with two measures that the paper has not; the bound may differ by about a hundredth."""
MEASURED = (
    "Measures are of class probabilities averaged over draws; prec, rec and f1 are macro averages over the three "
    "classes. lpd: mean log predictive density of the true class, in nats; ECE: expected calibration error, ten bins."
)
PASSES_NOTE = (
    f"behind: nats below {LEADER}. A pass is one evaluation of all windows by one draw, whether or not with "
    "the gradient, or with those of each window, which VOGN needs; s/pass shows what that costs. Iterations differ "
    "in draws and in the size of their batches. The bounds are on the same standardised draws."
)
REASON = (
    "the paper does not say which fold, horizon and normalisation it used, its counts of windows do not add up, and "
    "there are several optima"
)

NOT_FREE = "the data may not be passed on; --data DIR runs on their files"
STYLES = {
    "MGVBP gradient": ("C0", "-"),
    "QBVI gradient diag": ("C2", "-"),
    "QBVI diag, same steps": ("C2", "--"),
    "VOGN diag": ("C3", "-"),
    "MGVBP h": ("C0", ":"),
    "QBVI h diag": ("C2", ":"),
    "MCMC": ("0.4", "--"),
    "ADAM": ("C1", "-"),
}
PANELS = {"acc": "accuracy", "prec": "precision", "rec": "recall", "f1": "macro F1", "lpd": "log density"}
"""The measures of the figure, and how it calls them."""
LEAST = 10.0
"""Nats. A smaller distance to the best bound is drawn as this one: the best has distance 0, which has no logarithm."""


def tables(outcomes: Outcomes, real: bool) -> Iterator[Table]:
    """The paper's table. On the paper's data its numbers stand beside ours; on others below them, without a verdict."""
    for part, columns in COLUMNS.items() if outcomes else ():
        paper = reference("tabl")["paper"]["tabl"].items()
        printed = {name: {c: x for c, x in row.items() if c in columns} for name, row in paper}
        beside = {name: printed[row] for name, row in PRINTED.items()} if real else {}
        rows = rows_of(outcomes, (*PRINTED, TRUTH), beside, reasons=dict.fromkeys(beside, REASON))
        rows = [replace(r, name=f"{r.name}, not converged") if unsettled(r.ours) else r for r in rows]
        if not real:
            rows += [
                Row(f"FI-2010: {name}", {}, numbers, reason=NOT_FREE)
                for name, numbers in printed.items()
                if numbers
            ]
        title = f"TABL on limit-order books, {part} windows ({'FI-2010' if real else 'simulated'})"
        text = note(outcomes, real) if part == "train" else MEASURED
        yield Table("tabl", title, columns, rows, bound="LB*", note=text)
    yield passes_table(outcomes)
    yield values_table(outcomes)


def unsettled(values: Mapping[str, float | None]) -> bool:
    """Whether these are the values of chains that have not converged."""
    largest = values.get("R-hat")
    return largest is not None and not largest <= CONVERGED


def note(outcomes: Outcomes, real: bool) -> str:
    """What a reader must know of the numbers."""
    text = (
        "FI-2010, fold 7 (days 1 to 7 to train, day 8 to test), 10 events ahead, z-scored, without auctions. The "
        "paper's test set is about three days: days 8 to 10, which the files scale fold by fold and cannot be joined. "
        if real
        else "Simulated data: the paper's numbers, which are of FI-2010, are not comparable and get no verdict "
        "(--data DIR runs on FI-2010). "
    )
    text += (
        f"All start after {START_PASSES} passes of ADAM in minibatches. Rows with gradient and VOGN use gradients, "
        "rows with h function values alone, as the paper does, with its settings. LB* is of the result, on fresh draws "
        "and all windows. "
    )
    if (mcmc := outcomes.get("MCMC")) is not None:
        v = mcmc.values
        text += (
            f"MCMC (NUTS) is of a random {v['windows']:,.0f} windows only, as its time grows with their number. "
            f"{v['chains']:.0f} chains, {v['kept']:,.0f} draws, R-hat up to {v['R-hat']:.2f}, effective draws from "
            f"{v['ESS']:.0f} up, {v['divergences']:.0f} divergent"
            f"{': not converged, no reference' if unsettled(v) else ''}."
        )
    return text.strip()


def passes_table(outcomes: Outcomes) -> Table:
    """Lower bounds after the same number of passes over the data, and the seconds of an iteration and of a pass."""
    best = outcomes[LEADER].values["LB*"] if LEADER in outcomes else None
    rows = []
    for row in rows_of(outcomes, METHODS):
        values = outcomes[row.name].values
        behind = {} if best is None else {"behind": best - values["LB*"]}
        rows.append(Row(row.name, {**values, **behind, "s/pass": per_pass(values)}))
    columns = dict.fromkeys(("LB*", "s.e.", "behind", "passes", "s/iter", "s/pass"), 0.0)
    title = "TABL: lower bounds after equal numbers of passes over the data"
    return Table("tabl_passes", title, columns, rows, decimals=2, note=PASSES_NOTE)


def values_table(outcomes: Outcomes) -> Table:
    """The paper's way and number of iterations, on fewer windows."""
    names = [name for name in outcomes if name.endswith("iterations")]
    columns = dict.fromkeys(("LB*", "s.e.", "iterations", *COLUMNS["train"], *COLUMNS["test"]), 0.0)
    note = f"Function values alone, the paper's settings and iterations; simulated windows. {MEASURED}"
    title = "TABL: by function values with the paper's iterations, on fewer windows"
    return Table("tabl_values", title, columns, rows_of(outcomes, names), note=note)


def per_pass(values: Mapping[str, float]) -> float:
    """The seconds of a pass."""
    return values["s/iter"] * values["iterations"] / values["passes"]


def figures(outcomes: Outcomes) -> dict[str, Picture]:
    """The bound and the measures over the passes, and the reliability of the probabilities."""
    return {"learning": learning_figure(outcomes), "reliability": reliability_figure(outcomes)}


def learning_figure(outcomes: Outcomes) -> Picture:
    """Figure tabl: the lower bound and the measures, of training and test windows, against passes over the data.

    Circles are the results. With function values alone the result is the iterate with the best smoothed bound, which
    may not be the last one.
    """
    runs = {name: outcomes[name] for name in METHODS if name in outcomes}
    if not runs:
        return None
    best = max(max(run.values["LB*"], *run.curves["bound"]) for run in runs.values())
    figure = private_figure(15, 6.4)
    axes = figure.subplots(2, 1 + len(PANELS))
    bound, names = axes[0, 0], axes[1, 0]
    titles = {f"{part} {m}": f"{part} {title}" for part in ("train", "test") for m, title in PANELS.items()}
    for name, run in runs.items():
        colour, dashes = STYLES[name]
        style = {"color": colour, "ls": dashes, "marker": ".", "ms": 4, "lw": 1.3}
        result = {"color": colour, "marker": "o", "ms": 6, "mfc": "none"}
        passes, end = run.curves["passes"], run.values["passes"]
        bound.plot(passes, np.maximum(best - np.array(run.curves["bound"]), LEAST), label=name, **style)
        bound.plot(end, max(best - run.values["LB*"], LEAST), **result)
        for axis, column in zip(axes[:, 1:].flat, titles, strict=True):
            axis.plot(passes, run.curves[column], **style)
            axis.plot(end, run.values[column], **result)
    bound.set_yscale("log")
    start = max(best - run.curves["bound"][0] for run in runs.values())
    bound.set_ylim(0.5 * LEAST, max(30.0 * start, 10.0))  # a run that diverges leaves the picture
    finished(bound, f"nats below the best bound, {best:,.0f}".replace("-", "−"))
    names.legend(*bound.get_legend_handles_labels(), loc="center", frameon=False)
    names.set_axis_off()
    for axis, (column, title) in zip(axes[:, 1:].flat, titles.items(), strict=True):
        finished(axis, title)
        high = max(max(run.curves[column]) for run in runs.values())
        usual = float(np.median([run.values[column] for run in runs.values()]))
        margin = max(high - usual, 0.005)
        axis.set_ylim(usual - 2.0 * margin, high + 0.3 * margin)  # a run that fails may leave the picture
    for axis in (bound, *axes[:, 1:].flat):
        axis.set_xscale("symlog", linthresh=10)
        axis.set(xlim=(-0.5, None), xlabel="passes over the data")
    return figure


def reliability_figure(outcomes: Outcomes) -> Picture:
    """How often the likeliest class was the true one, against its probability, on the test windows."""
    runs = {name: outcomes[name] for name in STYLES if name in outcomes}
    if not runs:
        return None
    figure = private_figure(10, 4.4)
    line, bars = figure.subplots(1, 2)
    for name, run in runs.items():
        colour, dashes = STYLES[name]
        label = f"{name} ({run.values['test ECE']:.3f})"
        confidence, accuracy = (np.array(run.curves[c]) for c in ("confidence", "accuracy"))
        line.plot(confidence, accuracy, dashes, color=colour, marker="o", ms=3, lw=1.2, label=label)
        bars.plot(confidence, run.curves["share"], dashes, color=colour, marker="o", ms=3, lw=1.2)
    line.plot([1 / 3, 1.0], [1 / 3, 1.0], color="0.7", lw=0.8)
    line.set(xlabel="probability of the likeliest class", ylabel="how often it was the true one")
    bars.set(xlabel="probability of the likeliest class", ylabel="share of the test windows")
    finished(line, "Reliability, and the expected calibration error", frameon=False)
    finished(bars, "Confidence")
    return figure
