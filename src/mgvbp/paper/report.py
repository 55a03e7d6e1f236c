"""The results as files: a CSV file with one number a line, figures, and one HTML page that needs nothing else."""

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

from mgvbp import report as page
from mgvbp.paper.console import formatted
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
