"""The tables of an experiment on a terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from mgvbp.paper.spec import Table, finite


def print_tables(console: Console, tables: list[Table]) -> None:
    """Print each table. A row has our numbers, below them the paper's, and below these those of the exact optimum.

    In a file the lines are as long as the tables need: there is no screen to fit them to.
    """
    if not console.is_terminal:
        unbounded = console.options.update(max_width=1000)
        widths = [console.measure(rich_table(table), options=unbounded).maximum for table in tables]
        console.width = max([console.width, *widths])
    for table in tables:
        console.print(Group(Text(f"\n{table.title}", style="bold"), rich_table(table), verdict_lines(table)))
        if table.note:
            console.print(table.note, style="dim")


def rich_table(table: Table) -> RichTable:
    """A table with a line for us, one for the paper and one for the optimum, where these have numbers."""
    out = RichTable(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    out.add_column(table.label, no_wrap=True)
    out.add_column("")
    for column in table.columns:
        out.add_column(column, justify="right")
    for row in table.rows:
        lines = {"ours": row.ours, "paper": row.paper, "exact": row.exact}
        shown = {who: v for who, v in lines.items() if any(finite(v.get(c)) for c in table.columns)}
        for i, (who, values) in enumerate(shown.items()):
            style = {"ours": "bold", "paper": "", "exact": "cyan"}[who]
            cells = [formatted(values.get(column), table.decimals) for column in table.columns]
            out.add_row(row.name if i == 0 else "", who, *cells, style=style)
    return out


def verdict_lines(table: Table) -> Text:
    """The verdicts, each with the names of its rows."""
    rows: dict[str, list[str]] = {}
    for row in table.rows:
        if verdict := table.verdict(row):
            rows.setdefault(verdict, []).append(row.name)
    lines = []
    for verdict, names in rows.items():
        style = "green" if verdict[0] in "rba" else "yellow"
        lines.append(Text.assemble((verdict, style), " – ", ", ".join(names)))
    return Text("\n").join(lines)


def formatted(value: float | None, decimals: int) -> str:
    """A number as text: a dash if there is none, and an exponent where the decimals would show only zeros."""
    if value is None or not finite(value):
        return "–"
    if value and abs(value) < 0.5 * 10.0**-decimals:
        return f"{value:.1e}"
    return f"{value:,.{decimals}f}"
