"""Tables whose rows have errors of their own: of one run, of a chain, or of the rounding alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mgvbp.paper.spec import Outcome, Row, Table

ROUNDING = 0.000501
"""Half a unit of the paper's third decimal, and a little for our own rounding."""
METHOD_ERROR = 0.13
"""Posterior standard deviations by which two runs of a method may differ: 3√2 times 0.03. The spread of 0.03 is the
largest of any column over five seeds (MGVBP and MGVB on GARCH and the two GJR models)."""
FLAT_ERROR = 0.025
"""Nats by which two runs may differ in LB* and log-lik. A posterior's mean is close to their top, where the slope is
nil, so that the spread over draws would allow too much."""
PAPER_ESS = 1000.0
"""Effective draws of the paper's MCMC. This is a guess: the paper states none for its 40,000 draws of a random walk."""
JUDGED = (
    f"A row reproduces if all its numbers are within rounding and {METHOD_ERROR} posterior standard deviations of the "
    f"paper's (LB* and log-lik: {FLAT_ERROR}); MCMC within rounding and 3 Monte Carlo errors of both chains, where "
    f"{PAPER_ESS:,.0f} effective draws are assumed for the paper's, which states none; ML within rounding."
)


@dataclass(frozen=True)
class NoisyTable(Table):
    """A table whose rows have errors of their own.

    Attributes
    ----------
    errors : dict of str to dict of str to float
        By row and column, how far our number may be from the paper's. Where a row has none, ``columns`` says it.
    """

    errors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def verdict(self, row: Row) -> str:
        """The verdict of a plain table that has the errors of this row."""
        return Table.verdict(replace(self, columns={**self.columns, **self.errors.get(row.name, {})}), row)


def errors_of(values: Mapping[str, float], columns: Sequence[str]) -> dict[str, float]:
    """How far our row and the paper's may be apart.

    Each column has the rounding, and 3 standard errors of the difference: those of both chains where the row has an
    effective sample size, those measured over seeds where it has them, and `METHOD_ERROR` otherwise.
    """
    ess = values.get("ESS")
    share = METHOD_ERROR if ess is None else 3.0 * (1.0 / ess + 1.0 / PAPER_ESS) ** 0.5
    allowed = {c: ROUNDING + share * values[f"sd {c}"] for c in columns if f"sd {c}" in values}
    if ess is None and allowed:
        allowed |= {c: FLAT_ERROR for c in ("LB*", "log-lik") if c in columns}
    seeds = {c: values[f"seeds {c}"] for c in columns if f"seeds {c}" in values}
    return allowed | {c: ROUNDING + 3.0 * 2.0**0.5 * spread for c, spread in seeds.items()}


def noisy_table(
    label: str,
    title: str,
    columns: Iterable[str],
    rows: list[Row],
    outcomes: Mapping[str, Outcome],
    note: str = "",
) -> NoisyTable:
    """A table of those rows that have an outcome; a row has the name of its cell."""
    names = list(columns)
    shown = [row for row in rows if row.name in outcomes]
    return NoisyTable(
        label,
        title,
        dict.fromkeys(names, ROUNDING),
        shown,
        bound="LB*" if "LB*" in names else "",
        note=f"{JUDGED} {note}",
        errors={row.name: errors_of(outcomes[row.name].values, names) for row in shown},
    )
