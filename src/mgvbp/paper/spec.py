"""What an experiment of the paper is: cells to run, and how their outcomes fill tables and figures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Mapping[str, float | None]
Picture: TypeAlias = "Figure | None"
"""A figure; None if its cells have not run."""
CONVERGED = 0.02
"""Nats from the exact optimum within which a lower bound counts as at it: twice the default tolerance of `auto`."""


@dataclass(frozen=True)
class Outcome:
    """What one run gave, in a form that JSON can hold."""

    values: dict[str, float]
    """The numbers for the tables, by column."""
    curves: dict[str, list[float]] = field(default_factory=dict)
    """What the figures draw: traces, grids, draws."""
    settings: dict[str, Any] = field(default_factory=dict)
    """All that the run depended on except the seed."""
    n_evaluations: int = 0

    def under(self, prefix: str) -> dict[str, float]:
        """The values whose names begin with ``prefix``, by the rest of their names."""
        return {name.removeprefix(prefix): x for name, x in self.values.items() if name.startswith(prefix)}


Outcomes = Mapping[str, Outcome]
"""Outcomes by the names of their cells. A cell is a run that is finished and stored by itself."""
Cells = dict[str, Callable[[int], Outcome]]
"""What to run, by name. A cell takes the seed; it is a function of a module, or a `functools.partial` of one, so that
other processes can call it."""


@dataclass(frozen=True)
class Row:
    """A row of a table: our numbers, the paper's and those of the exact optimum, each by column."""

    name: str
    ours: Values
    paper: Values = field(default_factory=dict)
    exact: Values = field(default_factory=dict)
    reason: str = ""
    """Why our numbers may differ from the paper's, or why we have none; it is shown if so."""
    tolerances: Mapping[str, float] = field(default_factory=dict)
    """By column, tolerances of this row, which come before those of the table."""


REPRODUCES, BETTER, EXACT, UNCONVERGED, DIFFERS, IMPOSSIBLE = STATES = (
    "reproduces", "better", "at the exact optimum", "both unconverged", "differs", "not reproducible",
)  # fmt: skip
"""What a verdict begins with.

Reproduces: every number is within its tolerance. Better: our run is at the optimum of the lower bound, and the paper's
was not. At the exact optimum: the same of a row that the paper has not. Both unconverged: neither run is at the
optimum, so that their numbers estimate nothing, whether they agree or not. Differs: some numbers are apart. Not
reproducible: the paper has numbers that nobody can make again."""


@dataclass(frozen=True)
class Table:
    """A table of the paper, or one of ours beside it."""

    label: str
    title: str
    columns: Mapping[str, float]
    """How far our number may be from the paper's and still count as reproduced: rounding and Monte Carlo error."""
    rows: list[Row]
    decimals: int = 3
    bound: str = ""
    """The column of the lower bound, if there is one. Its exact optimum tells which runs had converged."""
    judge: str = ""
    """The column with our bound at the result without noise, if ``bound`` is noisy."""
    note: str = ""

    def allowed(self, row: Row, column: str) -> float:
        """The tolerance of a number."""
        return row.tolerances.get(column, self.columns[column])

    def tolerance(self, column: str) -> tuple[float, float]:
        """The least and the largest tolerance of the numbers in a column; nan where nothing is judged."""
        judged = [row for row in self.rows if finite(row.ours.get(column)) and finite(row.paper.get(column))]
        found = [x for row in judged if finite(x := self.allowed(row, column))]
        return (min(found), max(found)) if found else (math.nan, math.nan)

    def verdict(self, row: Row) -> str:
        """One of `STATES`, with what differs and why; empty without anything to compare."""
        ours, paper = (
            {c: x for c in self.columns if (x := of.get(c)) is not None} for of in (row.ours, row.paper)
        )
        if paper and not ours:
            return f"{IMPOSSIBLE}: {row.reason}" if row.reason else ""
        optimum, reached = row.exact.get(self.bound), row.ours.get(self.judge or self.bound)
        printed = row.paper.get(self.bound)
        converged = optimum is not None and reached is not None and abs(optimum - reached) <= CONVERGED
        both = [c for c in ours if c in paper and self.allowed(row, c) < math.inf]
        if not both:
            return EXACT if converged else ""
        apart = [c for c in both if not abs(ours[c] - paper[c]) <= self.allowed(row, c)]
        where = ", ".join(apart) if len(apart) < len(both) else "all columns"
        why = f": {row.reason}" if row.reason and apart else ""
        early = optimum is not None and printed is not None and optimum - printed > CONVERGED
        if early and converged:
            return f"{BETTER}: the paper's run had not converged"
        if early and reached is not None:
            return f"{UNCONVERGED} ({f'apart in {where}' if apart else 'and alike'}){why}"
        return f"{DIFFERS} ({where}){why}" if apart else REPRODUCES

    def verdicts(self) -> dict[str, list[str]]:
        """The names of the rows that have each verdict."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            if verdict := self.verdict(row):
                found.setdefault(verdict, []).append(row.name)
        return found


def rows_of(
    outcomes: Outcomes,
    cells: Sequence[str] | Mapping[str, str],
    paper: Mapping[str, Values] = MappingProxyType({}),
    exact: Mapping[str, Values] = MappingProxyType({}),
    reasons: Mapping[str, str] = MappingProxyType({}),
    prefix: str = "",
    tolerances: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> list[Row]:
    """A row for each cell that has run.

    ``cells`` are those of the rows by name, or a list if cells and rows have the same names. ``paper``, ``exact``,
    ``reasons`` and ``tolerances`` are by row. A value whose name begins with ``prefix`` is in the row without it too.
    """
    named = cells if isinstance(cells, Mapping) else {cell: cell for cell in cells}
    return [
        Row(
            row,
            outcomes[cell].values | outcomes[cell].under(prefix),
            paper.get(row, {}),
            exact.get(row, {}),
            reasons.get(row, ""),
            tolerances.get(row, {}),
        )
        for row, cell in named.items()
        if cell in outcomes
    ]


def across(outcomes: Outcomes, cells: Mapping[str, Mapping[str, str]], value: str) -> list[Row]:
    """Rows that show one value of several cells; ``cells`` are by row and column. Rows without a cell are left out."""
    rows = [
        Row(row, {c: outcomes[cell].values.get(value) for c, cell in own.items() if cell in outcomes})
        for row, own in cells.items()
    ]
    return [row for row in rows if row.ours]


@dataclass(frozen=True)
class Experiment:
    """A part of the paper: what is run, and what is shown of it."""

    name: str
    cells: Callable[[bool], Cells]
    """Takes whether the run is to be quick, and returns the cells to run: all, or a small part of them."""
    make_tables: Callable[[Outcomes], Iterable[Table]]
    """Takes the outcomes of the cells that have run; rows of other cells are missing from its tables."""
    make_figures: Callable[[Outcomes], Mapping[str, Picture]] = lambda outcomes: {}
    """Takes the same, and returns figures by name."""
    data: tuple[str, ...] = ()
    """The data sets it needs, by their names in `mgvbp.datasets`."""

    def tables(self, outcomes: Outcomes) -> list[Table]:
        """The tables that have rows."""
        return [table for table in self.make_tables(outcomes) if table.rows]

    def figures(self, outcomes: Outcomes) -> dict[str, Figure]:
        """The figures by name."""
        return {name: figure for name, figure in self.make_figures(outcomes).items() if figure is not None}


@cache
def reference(name: str) -> dict[str, Any]:
    """The paper's numbers and the exact optima of an experiment, from its file in ``reference/``."""
    text = files("mgvbp.paper").joinpath("reference", f"{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def finite(value: float | None) -> bool:
    """Whether there is a finite number to show."""
    return value is not None and math.isfinite(value)
