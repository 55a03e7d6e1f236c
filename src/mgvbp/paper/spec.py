"""What an experiment of the paper is: cells to run, and how their outcomes fill tables and figures."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Mapping[str, float | None]
CONVERGED = 0.02
"""Nats from the exact optimum within which a lower bound counts as at it: twice the default tolerance of `auto`."""


@dataclass(frozen=True)
class Outcome:
    """What one run gave, in a form that JSON can hold.

    Attributes
    ----------
    values : dict of str to float
        The numbers for the tables, by column.
    curves : dict of str to list of float
        What the figures draw: traces, grids, draws.
    settings : dict
        All that the run depended on except the seed.
    n_evaluations : int
        The number of log-likelihood evaluations.
    """

    values: dict[str, float]
    curves: dict[str, list[float]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    n_evaluations: int = 0


@dataclass(frozen=True)
class Cell:
    """One run, which is finished and stored by itself.

    Attributes
    ----------
    name : str
        Unique within the experiment.
    run : callable
        Takes the seed and returns an `Outcome`. It is a function of a module, or a `functools.partial` of one, so
        that other processes can call it.
    """

    name: str
    run: Callable[[int], Outcome]


@dataclass(frozen=True)
class Row:
    """A row of a table: our numbers, the paper's and those of the exact optimum, each by column.

    Attributes
    ----------
    reason : str
        Why our numbers may differ from the paper's; it is shown if they do.
    """

    name: str
    ours: Values
    paper: Values = field(default_factory=dict)
    exact: Values = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Attributes
    ----------
    label : str
        Its label in the paper, or a name of ours if the paper has no such table.
    columns : dict of str to float
        The tolerance of each column: how far our number may be from the paper's and still count as reproduced. It
        covers the rounding and the Monte Carlo error of both.
    bound : str
        The column of the lower bound, if there is one. Where numbers differ it tells which run was better.
    """

    label: str
    title: str
    columns: Mapping[str, float]
    rows: list[Row]
    decimals: int = 3
    bound: str = ""
    note: str = ""

    def verdict(self, row: Row) -> str:
        """Whether a row reproduces the paper; if not, where it differs and why. Empty without anything to compare."""
        compared = {c: (row.ours.get(c), row.paper.get(c)) for c in self.columns}
        pairs = {c: (a, b) for c, (a, b) in compared.items() if a is not None and b is not None}
        apart = [c for c, (a, b) in pairs.items() if not abs(a - b) <= self.columns[c]]
        optimum, reached = row.exact.get(self.bound), row.ours.get(self.bound)
        converged = optimum is not None and reached is not None and abs(optimum - reached) <= CONVERGED
        if not pairs:
            return "at the exact optimum" if converged else ""
        if not apart:
            return "reproduces"
        printed = row.paper.get(self.bound)
        if converged and printed is not None and optimum is not None and optimum - printed > CONVERGED:
            return "better than the paper: it had not converged"
        columns = ", ".join(apart) if len(apart) < len(pairs) else "all columns"
        return f"differs ({columns})" + (f": {row.reason}" if row.reason else "")


class Experiment(ABC):
    """A part of the paper: what is run, and what is shown of it.

    Attributes
    ----------
    name, title : str
    data : tuple of str
        The data sets it needs, by their names in `mgvbp.datasets`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    data: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def cells(self, quick: bool) -> list[Cell]:
        """The cells to run; if ``quick``, a small part of them."""

    @abstractmethod
    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        """The tables, from outcomes by the names of their cells; rows whose cells have not run are left out."""

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        """The figures by name, from the same outcomes."""
        return {}


@cache
def reference(name: str) -> dict[str, Any]:
    """The paper's numbers and the exact optima of an experiment, from its file in ``reference/``."""
    text = files("mgvbp.paper").joinpath("reference", f"{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def finite(value: float | None) -> bool:
    """Whether there is a finite number to show."""
    return value is not None and math.isfinite(value)
