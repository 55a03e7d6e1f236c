"""Table tabl in its two halves, and the bounds after equal numbers of passes with what these cost."""

from __future__ import annotations

from collections.abc import Mapping

from mgvbp.paper.lob.problem import START_PASSES
from mgvbp.paper.lob.runs import METHODS
from mgvbp.paper.spec import Outcome, Row, Table, reference

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
TRUTH = "true probabilities"
LEADER = "MGVBP gradient"
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
REASON = (
    "the paper does not say which fold, horizon and normalisation it used, its counts of windows do not add up, and "
    "there are several optima"
)


def results_tables(outcomes: Mapping[str, Outcome], real: bool) -> list[Table]:
    """The paper's table. On the paper's data its numbers stand beside ours; on others below them, without a verdict."""
    paper = reference("tabl")["paper"]["tabl"]
    names = [name for name in (*PRINTED, TRUTH) if name in outcomes]
    tables = []
    for part, columns in COLUMNS.items():
        printed = {name: {c: x for c, x in row.items() if c in columns} for name, row in paper.items()}
        if real:
            rows = [Row(n, outcomes[n].values, printed[PRINTED[n]], reason=REASON) for n in names]
        else:
            rows = [Row(n, outcomes[n].values) for n in names]
            rows += [Row(f"FI-2010: {n}", {}, numbers) for n, numbers in printed.items() if numbers]
        title = f"TABL on limit-order books, {part} windows ({'FI-2010' if real else 'simulated'})"
        text = note(outcomes, real) if part == "train" else MEASURED
        tables.append(Table("tabl", title, columns, rows, bound="LB*", note=text))
    return tables


def note(outcomes: Mapping[str, Outcome], real: bool) -> str:
    """What a reader must know of the numbers."""
    text = (
        "FI-2010, fold 7 (days 1 to 7 to train, day 8 to test), 10 events ahead, z-scored, without auctions. "
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
            f"{': not converged, no reference' if not v['R-hat'] <= 1.01 else ''}."
        )
    return text.strip()


def passes_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Lower bounds after the same number of passes over the data, and the seconds of an iteration and of a pass."""
    best = outcomes[LEADER].values["LB*"] if LEADER in outcomes else None
    rows = []
    for name in METHODS:
        if (outcome := outcomes.get(name)) is not None:
            values = outcome.values
            behind = {} if best is None else {"behind": best - values["LB*"]}
            rows.append(Row(name, {**values, **behind, "s/pass": per_pass(values)}))
    columns = ("LB*", "s.e.", "behind", "passes", "s/iter", "s/pass")
    return Table(
        "tabl_passes",
        "TABL: lower bounds after equal numbers of passes over the data",
        dict.fromkeys(columns, 0.0),
        rows,
        decimals=2,
        note=f"behind: nats below {LEADER}. A pass is one evaluation of all windows by one draw, whether or not with "
        "the gradient, or with those of each window, which VOGN needs; s/pass shows what that costs. Iterations differ "
        "in draws and in the size of their batches. The bounds are on the same standardised draws.",
    )


def per_pass(values: Mapping[str, float]) -> float:
    """The seconds of a pass."""
    return values["s/iter"] * values["iterations"] / values["passes"]
