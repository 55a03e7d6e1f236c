"""The results on a terminal and as files: a CSV file with one number a line, figures, and one HTML page."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from mgvbp import report as page
from mgvbp.paper.engine import versions
from mgvbp.paper.spec import Row, Table, finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """One experiment's part of the report."""

    name: str
    title: str
    tables: list[Table]
    figures: Mapping[str, Figure]
    records: list[dict[str, Any]]
    """The stored records of its cells, with settings, seeds, queries and seconds."""


def write_report(directory: Path, sections: list[Section], command: str) -> Path:
    """Write ``<experiment>.csv``, ``figures/``, ``summary.md`` and ``report.html``; returns the page's path."""
    directory.mkdir(parents=True, exist_ok=True)
    for section in sections:
        write_csv(directory / f"{section.name}.csv", section.tables)
        for name, figure in section.figures.items():
            path = directory / "figures" / f"{section.name}-{name}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(picture(figure))
            figure.savefig(path.with_suffix(".svg"), bbox_inches="tight")
    (directory / "summary.md").write_text(markdown_summary(sections, command), encoding="utf-8")
    target = directory / "report.html"
    target.write_text(html_page(sections, command), encoding="utf-8")
    return target


@cache
def picture(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, bbox_inches="tight")
    return content.getvalue()


def write_csv(path: Path, tables: list[Table]) -> None:
    """Write one line for each number: table, row, column, ours, paper, exact, verdict of the row."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "row", "column", "ours", "paper", "exact", "verdict"])
        for table in tables:
            for row in table.rows:
                verdict = table.verdict(row)
                for column in table.columns:
                    numbers = [values.get(column) for values in (row.ours, row.paper, row.exact)]
                    if any(finite(number) for number in numbers):
                        writer.writerow([table.label, row.name, column, *numbers, verdict])


KINDS = ("reproduce", "are better", "are exact", "differ")
"""The four kinds of verdicts, as the end of a sentence that begins with "rows that"."""


def kind(verdict: str) -> str:
    """The one of `KINDS` that a verdict belongs to, which its first letter tells."""
    return {"r": KINDS[0], "b": KINDS[1], "a": KINDS[2]}.get(verdict[:1], KINDS[3])


def counts(sections: list[Section]) -> list[tuple[Table, list[str]]]:
    """For each table with verdicts, the number of rows of each of `KINDS`, as text; empty for none."""
    tables = [table for section in sections for table in section.tables]
    kinds = [[kind(verdict) for row in table.rows if (verdict := table.verdict(row))] for table in tables]
    return [
        (t, [str(own.count(k) or "") for k in KINDS]) for t, own in zip(tables, kinds, strict=True) if own
    ]


def markdown_summary(sections: list[Section], command: str) -> str:
    """How many rows of each table reproduce, and the verdicts of those that do not."""
    lines = [f"Made by `{command}`.", "", f"| table | {' | '.join(KINDS)} |", "|---|" + "---|" * len(KINDS)]
    apart = []
    for table, numbers in counts(sections):
        lines.append(f"| {table.title} ({table.label}) | {' | '.join(numbers)} |")
        verdicts = {row.name: table.verdict(row) for row in table.rows}
        different = [f"- {name}: {v}" for name, v in verdicts.items() if v and kind(v) in KINDS[1::2]]
        if different:
            apart += ["", f"**{table.title}**", "", *different]
    return "\n".join([*lines, *apart, ""])


def html_page(sections: list[Section], command: str) -> str:
    """The whole report as one page without scripts or links to elsewhere."""
    stack = ", ".join(f"{name} {version}" for name, version in versions().items())
    made = f"<code>{page.text(command)}</code><br>{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {page.text(stack)}"
    paper = page.text("the paper's below it", "quiet")
    exact = page.text("that of the exact optimum of the lower bound", "exact")
    legend = f"Each row has our number, {paper} and {exact}, where there is one. The verdict says if it reproduces."
    links = " · ".join(f'<a href="#{page.text(s.name)}">{page.text(s.title)}</a>' for s in sections)
    return page.html_page(
        "Manifold Gaussian Variational Bayes on the Precision Matrix, reproduced",
        [
            page.paragraph(page.Html(made), "note"),
            page.paragraph(page.Html(legend)),
            page.paragraph(page.Html(links)),
            page.table(["rows that", *KINDS], [[t.title, *numbers] for t, numbers in counts(sections)]),
            *map(_section, sections),
        ],
    )


def _section(section: Section) -> page.Html:
    pictures = [_picture(figure, name) for name, figure in section.figures.items()]
    return page.section(
        section.title, *map(_table, section.tables), *pictures, _settings(section.records), name=section.name
    )


def _picture(figure: Figure, name: str) -> page.Html:
    data = base64.b64encode(picture(figure)).decode()
    return page.Html(f'<figure><img alt="{page.text(name)}" src="data:image/png;base64,{data}"></figure>')


def _table(table: Table) -> page.Html:
    rows = [
        [row.name, *(_cell(table, row, column) for column in table.columns), _mark(table.verdict(row))]
        for row in table.rows
    ]
    heading = f"<h3>{page.text(table.title)} {page.text(table.label, 'note')}</h3>"
    note = page.paragraph(table.note, "note") if table.note else ""
    return page.Html(heading + page.table(["", *table.columns, "verdict"], rows, words=True) + note)


def _cell(table: Table, row: Row, column: str) -> page.Html:
    """Our number over the paper's and the exact one."""
    lines = [
        page.text(formatted(values.get(column), table.decimals), who)
        for who, values in (("ours", row.ours), ("quiet", row.paper), ("exact", row.exact))
        if finite(values.get(column))
    ]
    return page.Html("<br>".join(lines) or "–")


def _mark(verdict: str) -> page.Html:
    return page.text(verdict, "doubt" if kind(verdict) == "differ" else "good") if verdict else page.Html("")


def _settings(records: list[dict[str, Any]]) -> page.Html:
    rows = [
        [
            r["cell"],
            str(r["seed"]),
            f"{r['outcome']['n_evaluations']:,}",
            f"{r['seconds']:.2f}",
            json.dumps(r["outcome"]["settings"]),
        ]
        for r in records
    ]
    head = ["run", "seed", "queries", "seconds", "settings"]
    table = page.table(head, rows, words=True)
    return page.Html(f"<details><summary>Settings, queries and times</summary>{table}</details>")


# --- the terminal -------------------------------------------------------------------------------------


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
