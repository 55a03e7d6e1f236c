"""The tables logistic_perf, logistic_mu, _var, _cov and _S, and a comparison of the speed of the methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from mgvbp.paper.common import ARRIVED, METHODS, ROUNDING
from mgvbp.paper.labour.runs import BETAS, ESTIMATORS, FAMILIES, PANELS, PERFORMANCE, SIZES, optimum, row_name
from mgvbp.paper.seeds import NOTE, tolerances
from mgvbp.paper.spec import Outcomes, Row, Table, across, reference, rows_of

REASONS = {
    "diagonal": "how far a run got depends on the start and the draws",
    "full": "the gradients are noisy, and tolerances leave a number in some hundreds outside",
    "MCMC": "the paper's chain has a Monte Carlo error of its own, which it does not state",
    "ML": "",
}
"""Why the rows of a family, or of a baseline, may differ."""
FEW = "with so few draws one run differs much from another"
SAME_STEPS = "here steps, start and draws are the same and the exact bound is the judge"
LEAD = "MGVB − MGVBP"
JUDGE = "exact bound"
SPREAD_NOTE = (
    f"{NOTE} Eight seeds; with the printed settings, of which there is one run, the spread is that of "
    "the authors'."
)
BOUND_NOTE = (
    "LB*: the largest moving average of the noisy bound, which leans upwards; for auto the exact bound at its "
    f"result. gap: how far the exact bound at the result is below the optimum. {SPREAD_NOTE}"
)
PERFORMANCE_NOTE = f"At the mean; precision and recall are averages over both classes. {SPREAD_NOTE}"
SIZE_NOTE = (
    "Single runs. Tolerance: as for the row MGVBP of the other tables, its spread times √(50/S). s/iter: the paper "
    "prints its column as milliseconds, but they are seconds, of MATLAB on another machine; not judged. LB start: the "
    "estimate at the first iteration, which depends on the start; not judged."
)
SPEED_NOTE = (
    "All from one start with the same draws. A dash or no row: not reached. authors and printed: equal steps; "
    "equations: MGVBP and MGVB with half of QBVI's step in the precision, as printed. The lead varies with the "
    "seed: over seeds 0 to 5 with h and full covariance from −15 to 92 (authors) and from 8 to 113 (printed), "
    "and QBVI arrives first in each."
)


def judged(rows: list[Row], family: str) -> list[Row]:
    """The rows with what says who had converged: the exact bound at our result, the optimum, and the paper's LB*."""
    printed, best = reference("labour")["paper"]["logistic_perf"], optimum(family)
    found = []
    for row in rows:
        ours = {**row.ours, JUDGE: best - (row.ours["gap"] or 0.0)}
        bounds = printed.get(row.name.partition(" β")[0], row.paper)
        paper = {**row.paper, "LB*": bounds.get("LB*")} if row.paper else row.paper
        found.append(replace(row, ours=ours, paper=paper, exact={**row.exact, "LB*": best}))
    return found


def variational_table(
    outcomes: Outcomes,
    label: str,
    title: str,
    family: str,
    columns: Sequence[str],
    prefix: str = "",
    panel: str = "authors",
    note: str = SPREAD_NOTE,
) -> Table:
    """A table with one row for each method and estimator and one for `auto`, beside the exact optimum of the family.

    It has no rows if none of the methods has run.
    """
    names = [row_name(method, estimator, family) for estimator in ESTIMATORS for method in METHODS]
    cells = {row: f"{panel} {row}" for row in names} | {row_name("auto", "", family): f"auto {family}"}
    exact = dict.fromkeys(cells, reference("labour")["exact"][label][family])
    paper, reasons = reference("labour")["paper"][label], dict.fromkeys(cells, REASONS[family])
    errors = {
        row: tolerances(spread.values, columns, prefix, of=0.0 if panel == "authors" else 1.0)
        for row in names
        if (spread := outcomes.get(f"authors {row}")) is not None
    }
    rows = judged(rows_of(outcomes, cells, paper, exact, reasons, prefix, errors), family)
    return judged_table(
        label if panel == "authors" else f"{label}_{panel}",
        f"{title}, {family} covariance",
        columns,
        rows if any(cells[name] in outcomes for name in names) else [],
        note,
    )


def judged_table(label: str, title: str, columns: Iterable[str], rows: list[Row], note: str) -> Table:
    """A table whose rows went through `judged`."""
    return Table(label, title, dict.fromkeys(columns, ROUNDING), rows, bound="LB*", judge=JUDGE, note=note)


def tables(outcomes: Outcomes) -> Iterator[Table]:
    """All tables; those with MCMC and maximum likelihood are left out of a quick run, which has neither."""
    table = partial(variational_table, outcomes, "logistic_perf")
    titles = {"authors": "the authors' settings", "printed": "the printed settings"}
    for (panel, title), family in product(titles.items(), FAMILIES):
        yield table(f"Lower bound, {title}", family, ("LB*", "gap"), panel=panel, note=BOUND_NOTE)
    yield from speed_tables(outcomes)
    if "MCMC" in outcomes and "ML" in outcomes:
        full, diagonal = (table("Performance", f, PERFORMANCE, note=PERFORMANCE_NOTE) for f in FAMILIES)
        yield replace(full, rows=full.rows + rows_of(outcomes, ["MCMC", "ML"]))
        yield diagonal
        yield from moment_tables(outcomes)
        yield from covariance_tables(outcomes)
    yield from size_tables(outcomes)


def moment_tables(outcomes: Outcomes) -> Iterator[Table]:
    """Tables logistic_mu and logistic_var, in parts: each family, MCMC and ML have tolerances of their own."""
    chains = outcomes["MCMC"].values
    note = (
        f"R-hat {chains['R-hat']:.3f} or less, effective sample size {chains['ESS']:,.0f} or more. Tolerance: rounding "
        "and three Monte Carlo errors of our chain."
    )
    errors = {
        "mu": {b: chains[f"mcse {b}"] for b in BETAS},
        "var": {b: chains[f"var {b}"] * (2.0 / chains["ESS"]) ** 0.5 for b in BETAS},  # of a normal sample
    }
    for quantity, prefix, title in (("mu", "mean ", "Means"), ("var", "var ", "Variances × 100")):
        label = f"logistic_{quantity}"
        for family in FAMILIES:
            yield variational_table(outcomes, label, title, family, BETAS, prefix)
        paper = reference("labour")["paper"][label]
        of_chains = {b: 3.0 * errors[quantity][b] + ROUNDING for b in BETAS}
        for name, columns, said in (
            ("MCMC", of_chains, note),
            ("ML", dict.fromkeys(BETAS, ROUNDING), "Tolerance: rounding."),
        ):
            rows = rows_of(outcomes, [name], paper, reasons=REASONS, prefix=prefix)
            yield Table(label, f"{title}, {name}", columns, rows, note=said)


def covariance_tables(outcomes: Outcomes) -> Iterator[Table]:
    """Table logistic_cov in three parts: the lower triangles of the methods, of MCMC and of ML."""
    columns, chains = BETAS[:-1], outcomes["MCMC"]
    printed, exact = (reference("labour")[who]["logistic_cov"] for who in ("paper", "exact"))

    def of_chains(b: str) -> dict[str, float]:
        var, ess = chains.under("var "), chains.values["ESS"]
        own = chains.under(f"cov {b} ").items()
        return {a: ROUNDING + 3.0 * ((var[a] * var[b] + x**2) / ess) ** 0.5 for a, x in own}

    variational = {"MGVBP": "authors MGVBP", "MGVB": "authors MGVB", "auto": "auto full"}
    ess = f"{chains.values['ESS']:,.0f}"
    said = f"Tolerance: rounding and three Monte Carlo errors of a covariance of {ess} normal draws."
    for group, note in (
        (variational, SPREAD_NOTE),
        ({"MCMC": "MCMC"}, said),
        ({"ML": "ML"}, "Tolerance: rounding."),
    ):
        rows = []
        for (name, cell), b in product(group.items(), BETAS[1:]):
            if cell not in outcomes:
                continue
            row, prefix, reason = f"{name} {b}", f"cov {b} ", REASONS.get(name, REASONS["full"])
            allowed = of_chains(b) if name == "MCMC" else tolerances(outcomes[cell].values, columns, prefix)
            optima = {row: exact[b]} if group is variational else {}
            rows += rows_of(outcomes, {row: cell}, printed, optima, {row: reason}, prefix, {row: allowed})
        title = f"Covariances × 100 below the diagonal, {', '.join(group)}"
        rows = judged(rows, "full") if group is variational else rows
        yield judged_table("logistic_cov", title, columns, rows, note)


def size_tables(outcomes: Outcomes) -> Iterator[Table]:
    """Table logistic_S, in two parts as in the paper."""
    spread = outcomes.get("authors MGVBP")
    if spread is None:
        return
    printed, exact = reference("labour")["paper"]["logistic_S"], reference("labour")["exact"]

    def rows(columns: Sequence[str], optimum: str, reason: str = "", prefix: str = "") -> list[Row]:
        factors = {f"S = {S}": (PANELS["authors"].num_draws / S) ** 0.5 for S in SIZES}
        errors = {name: tolerances(spread.values, columns, prefix, f, of=1.0) for name, f in factors.items()}
        optima, reasons = dict.fromkeys(printed, exact[optimum]["full"]), dict.fromkeys(printed, reason)
        return judged(rows_of(outcomes, list(printed), printed, optima, reasons, prefix, errors), "full")

    means = judged_table(
        "logistic_S",
        "MGVBP with S draws: means",
        BETAS,
        rows(BETAS, "logistic_mu", prefix="mean "),
        SIZE_NOTE,
    )
    yield replace(means, columns={"s/iter": float("inf"), "LB start": float("inf"), **means.columns})
    names = ("LB*", "gap", *PERFORMANCE)
    title = "MGVBP with S draws: performance"
    yield judged_table("logistic_S", title, names, rows(names, "logistic_perf", FEW), SIZE_NOTE)


def speed_tables(outcomes: Outcomes) -> Iterator[Table]:
    """The paper's claim that MGVBP is faster: iterations to the optimum, and how far from it the runs end."""
    printed = reference("labour")["paper"]["labour_speed"]
    race = {
        f"{panel} {estimator} {family}": {m: f"{panel} {row_name(m, estimator, family)}" for m in METHODS}
        for panel, estimator, family in product(PANELS, ESTIMATORS, FAMILIES)
    }
    arrivals = []
    for row in across(outcomes, race, "arrived"):
        late, early = row.ours.get("MGVB"), row.ours.get("MGVBP")
        lead = None if late is None or early is None else late - early
        arrivals.append(Row(row.name, {**row.ours, LEAD: lead}, printed.get(row.name, {}), reason=SAME_STEPS))
    note = SPEED_NOTE
    if "auto full" in outcomes:
        note += f" auto takes {outcomes['auto full'].n_evaluations:,} log-likelihood queries in all"
        if "authors MGVBP" in outcomes:
            note += f", MGVBP with the authors' settings {outcomes['authors MGVBP'].n_evaluations:,}"
        note += "."
    title = f"Iterations until within {ARRIVED:g} nats of the family's exact optimum"
    columns = {**dict.fromkeys(METHODS, 0.0), LEAD: 50.0}
    yield Table("labour_speed", title, columns, arrivals, decimals=0, note=note)
    title = "Nats below the exact optimum at the end"
    ends = across(outcomes, race, "gap")
    yield Table("labour_gap", title, dict.fromkeys(METHODS, 0.0), ends, decimals=4)
