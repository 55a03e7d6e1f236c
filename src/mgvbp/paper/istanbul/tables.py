"""The tables istanbul_mu, _cov and _cov_2, the spread of unconverged runs, and a race of the methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mgvbp.paper.common import METHODS
from mgvbp.paper.istanbul.runs import BETAS, COORDINATES, PANELS, STRUCTURES, UNCONVERGED
from mgvbp.paper.spec import Outcome, Row, Table, Values, reference

VARIANTS = {"as printed": "MGVBP, settings as printed", "as run": "MGVBP, settings as run", "auto": "auto"}
ON_THE_WAY = "1200 iterations under this clip end on the way to the optimum, and where depends on the draws"
NOISE = "Monte Carlo error of our run and of the paper's"
NOISIER = (
    "the printed estimator's noise does not vanish at the optimum, as that of h does, which the authors ran"
)
ROUNDING = 0.000501
"""Half a unit of the paper's third decimal, and a little for our own rounding."""


def variational_rows(
    outcomes: Mapping[str, Outcome],
    label: str,
    prefix: str = "",
    part: str = "",
    variants: Sequence[str] = (),
) -> list[Row]:
    """A row for each structure and each way to fit it; ``part`` selects a row of the covariance matrix."""
    known = reference("istanbul")
    rows = []
    for structure in STRUCTURES:
        key = f"{structure} {part}".strip()
        for variant in variants or VARIANTS:
            outcome = outcomes.get(f"{structure} {variant}")
            if outcome is None or key not in known["paper"][label]:
                continue
            bound, exact = (known[who]["istanbul_perf"][structure]["LB*"] for who in ("paper", "exact"))
            unconverged = structure in UNCONVERGED and variant != "auto"
            name = f"{structure}, {VARIANTS[variant]}" + (f": {part}" if part else "")
            rows.append(
                Row(
                    name,
                    picked(outcome, prefix) | {"LB*": outcome.values["LB*"]},
                    {**known["paper"][label][key], "LB*": bound},
                    {**known["exact"][label].get(key, {}), "LB*": exact},
                    ON_THE_WAY if unconverged else NOISIER if variant == "as printed" else NOISE,
                )
            )
    return rows


def picked(outcome: Outcome, prefix: str) -> dict[str, float]:
    """The values whose names begin with ``prefix``, by the rest of their names."""
    return {k.removeprefix(prefix).strip(): v for k, v in outcome.values.items() if k.startswith(prefix)}


def baseline(
    outcomes: Mapping[str, Outcome], name: str, prefix: str = "", paper: Values | None = None
) -> list[Row]:
    """The row of ML or MCMC, if it was run."""
    return [Row(name, picked(outcomes[name], prefix), paper or {})] if name in outcomes else []


def performance_table(outcomes: Mapping[str, Outcome]) -> Table:
    """The second panel of the paper's table."""
    ml = reference("istanbul")["paper"]["istanbul_perf"]["ML"]
    rows = variational_rows(outcomes, "istanbul_perf")
    columns = {"LB*": 0.0205, "below optimum": 0.0, "log-lik": 0.023, "MSE": 0.0053, "test log-lik": 0.113}
    columns |= {"test MSE": 0.0146, "test MSE, own n": 0.0, "queries": 0.0}
    return Table(
        "istanbul_perf",
        "Istanbul: lower bound and fit",
        columns,
        [*rows, *baseline(outcomes, "ML", paper=ml), *baseline(outcomes, "MCMC")],
        bound="LB*",
        note="LB* is the largest moving average of the noisy bound; below optimum is what the same Gaussian lacks "
        "by the exact bound. MSEs are × 10⁵ over n_train − 4 = 424, also for the test rows, as the paper's numbers "
        "are; own n divides by the 108 test rows. Tolerance: rounding, 0.02 for the bound, and for the others what a "
        "mean that is 5% of the posterior's standard deviation off does to them.",
    )


def moment_table(outcomes: Mapping[str, Outcome], label: str, kind: str, columns: Sequence[str]) -> Table:
    """Means or standard deviations."""
    sd = reference("istanbul")["exact"]["istanbul_cov_2"]["full"]
    share = 0.05 / 100.0 if kind == "mean" else 0.02
    tolerance = {c: ROUNDING + (share * sd[c] if c in sd else 0.0) for c in columns}
    note = "Tolerance: rounding, and 5% of the full structure's standard deviation for a mean, 2% for itself."
    if "MCMC" in outcomes:
        found = outcomes["MCMC"].values
        note += f" MCMC: R-hat at most {found['R-hat']:.4f}, effective draws at least {found['ESS']:,.0f}."
    return Table(
        label,
        "Istanbul: posterior means" if kind == "mean" else "Istanbul: posterior standard deviations × 10²",
        tolerance,
        [*variational_rows(outcomes, label, f"{kind} "), *baseline(outcomes, "MCMC", f"{kind} ")],
        decimals=4 if kind == "mean" else 3,
        bound="LB*",
        note=note,
    )


def covariance_tables(outcomes: Mapping[str, Outcome]) -> list[Table]:
    """Covariances × 10³. Each row of the upper triangle has its own table, as each pair has its own tolerance."""
    sd = reference("istanbul")["exact"]["istanbul_cov_2"]["full"]
    note = "The paper's caption says 10⁴. Tolerance: rounding, and 3% of the product of the two standard deviations."
    tables = []
    for i, part in enumerate(BETAS):
        tolerance = {c: ROUNDING + 0.03 * 0.1 * sd[part] * sd[c] for c in COORDINATES[i + 1 :]}
        rows = variational_rows(outcomes, "istanbul_cov", f"cov {part} ", part, ("as run", "auto"))
        title = f"Istanbul: covariances × 10³ with {part}"
        tables.append(Table("istanbul_cov", title, tolerance, rows, decimals=4, bound="LB*", note=note))
    return tables


def ml_table(outcomes: Mapping[str, Outcome]) -> Table:
    """All that the paper prints of maximum likelihood, one line for each parameter; the printed digits must agree."""
    paper = reference("istanbul")["paper"]
    names = {"estimate": "mean", "s.e. × 10²": "sd", **{f"× {c}": "cov" for c in BETAS[1:]}}
    rows = []
    for part in (*BETAS, "σ") if "ML" in outcomes else ():
        found = outcomes["ML"].values
        ours = {"estimate": found[f"mean {part}"]}
        ours |= {"s.e. × 10²": found[f"sd {part}"]} if part in BETAS else {}
        ours |= {f"× {c}": v for c, v in picked(outcomes["ML"], f"cov {part} ").items()}
        printed = {f"× {c}": v for c, v in paper["istanbul_cov"].get(f"ML {part}", {}).items()}
        printed["estimate"] = paper["istanbul_mu"]["ML"][part]
        printed |= {"s.e. × 10²": paper["istanbul_cov_2"]["ML"][part]} if part in BETAS else {}
        rows.append(Row(part, ours, printed))
    note = "Least squares with s² = SSE/(n − 8). × SP and so on: covariances × 10³. Tolerance: rounding."
    title = "Istanbul: maximum likelihood"
    return Table("istanbul_ml", title, dict.fromkeys(names, ROUNDING), rows, decimals=4, note=note)


def spread_tables(outcomes: Mapping[str, Outcome]) -> list[Table]:
    """Medians over runs with other draws. Each structure has a table, as the range of its runs is the tolerance."""
    known = reference("istanbul")
    tables = []
    for structure in UNCONVERGED:
        if f"spread {structure}" not in outcomes:
            continue
        ours: dict[str, float] = {}
        columns: dict[str, float] = {}
        for column, name in (("LB*", "LB*"), ("EU", "mean EU")):
            runs = np.array(outcomes[f"spread {structure}"].curves[name])
            middle = float(np.median(runs))
            ends = {f"lowest {column}": float(runs.min()), f"highest {column}": float(runs.max())}
            ours |= {column: middle, **ends}
            columns |= {column: float(np.abs(runs - middle).max()), **dict.fromkeys(ends, 0.0)}
        paper, exact = (
            {
                "LB*": known[who]["istanbul_perf"][structure]["LB*"],
                "EU": known[who]["istanbul_mu"][structure]["EU"],
            }
            for who in ("paper", "exact")
        )
        reason = "the paper's is farther out than any of ours"
        row = Row(f"{structure}, {VARIANTS['as run']}", ours, paper, exact, reason)
        note = (
            "Median and range of ten runs that differ in their draws only; tolerance: the farthest of them."
        )
        title = f"Istanbul: what chance decides in an unconverged run, {structure}"
        tables.append(Table("istanbul_spread", title, columns, [row], note=note))
    return tables


def race_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Iterations of each method until the exact bound is near its optimum."""
    names = [f"{p}: {m} {s}" for p in PANELS for s in ("full", "diagonal") for m in METHODS]
    rows = [Row(name, outcomes[name].values) for name in names if name in outcomes]
    columns = dict.fromkeys(("to 1 nat", "to 0.05 nats", "below optimum", "iterations"), 0.0)
    return Table(
        "istanbul_race",
        "Istanbul: iterations to the optimum on common draws, equal steps",
        columns,
        rows,
        note="Not in the paper, which runs MGVBP only. Start at 0, h-function, 50 Sobol draws, step 0.1, "
        "precision_scale 2; the clip is that of the gradient. A run of few iterations broke down.",
    )
