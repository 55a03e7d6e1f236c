"""Results as files: tidy CSV, figures, and one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgvbp.experiments.console import formatted
from mgvbp.experiments.engine import versions
from mgvbp.experiments.spec import Row, Table, finite

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
    """What the store has of its cells: settings, seeds, queries, seconds."""


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
    page = directory / "report.html"
    page.write_text(html_page(sections, command), encoding="utf-8")
    return page


@cache
def picture(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, bbox_inches="tight")
    return content.getvalue()


def write_csv(path: Path, tables: list[Table]) -> None:
    """One line a number: table, row, column, ours, paper, exact, verdict of the row."""
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


def markdown_summary(sections: list[Section], command: str) -> str:
    """How many rows of each table reproduce, and what the others are."""
    lines = [f"Made by `{command}`.", "", f"| table | {' | '.join(KINDS)} |", "|---|" + "---|" * len(KINDS)]
    apart = []
    for section in sections:
        for table in section.tables:
            verdicts = {row.name: table.verdict(row) for row in table.rows}
            kinds = [kind(verdict) for verdict in verdicts.values() if verdict]
            if kinds:
                counts = (str(kinds.count(k) or "") for k in KINDS)
                lines.append(f"| {table.title} ({table.label}) | {' | '.join(counts)} |")
            different = [f"{name}: {v}" for name, v in verdicts.items() if v and kind(v) in KINDS[1::2]]
            if different:
                apart += ["", f"**{table.title}**", "", *(f"- {line}" for line in different)]
    return "\n".join([*lines, *apart, ""])


def html_page(sections: list[Section], command: str) -> str:
    """The whole report as one page without scripts or links to elsewhere."""
    style = files("mgvbp.experiments").joinpath("report.css").read_text(encoding="utf-8")
    stack = ", ".join(f"{name} {version}" for name, version in versions().items())
    links = " · ".join(f'<a href="#{escape(s.name)}">{escape(s.title)}</a>' for s in sections)
    body = "\n".join(map(_section, sections))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mgvbp: the paper, reproduced</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<h1>Manifold Gaussian Variational Bayes on the Precision Matrix, reproduced</h1>
<p class="meta"><code>{escape(command)}</code><br>{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {escape(stack)}</p>
<p>Each row has our number, <span class="paper">the paper's below it</span> and <span class="exact">that of the exact
optimum of the lower bound</span>, where there is one. The verdict says whether the row reproduces.</p>
<nav>{links}</nav>
{_overview(sections)}
{body}
</body>
</html>
"""


def _overview(sections: list[Section]) -> str:
    """How many rows of each table reproduce."""
    lines = []
    for section in sections:
        for table in section.tables:
            kinds = [kind(table.verdict(row)) for row in table.rows if table.verdict(row)]
            if kinds:
                counts = "".join(f"<td>{kinds.count(k) or ''}</td>" for k in KINDS)
                lines.append(f"<tr><th>{escape(table.title)}</th>{counts}</tr>")
    head = "".join(f"<th>{k}</th>" for k in KINDS)
    return f'<div class="scroll"><table><tr><th>rows that</th>{head}</tr>{"".join(lines)}</table></div>'


KINDS = ("reproduce", "are better", "are exact", "differ")


def kind(verdict: str) -> str:
    """Which of `KINDS` a verdict is."""
    return {"r": KINDS[0], "b": KINDS[1], "a": KINDS[2]}.get(verdict[:1], KINDS[3])


def _section(section: Section) -> str:
    parts = [f'<section id="{escape(section.name)}"><h2>{escape(section.title)}</h2>']
    parts += [_table(table) for table in section.tables]
    for name, figure in section.figures.items():
        data = base64.b64encode(picture(figure)).decode()
        parts.append(f'<figure><img alt="{escape(name)}" src="data:image/png;base64,{data}"></figure>')
    parts.append(_settings(section.records))
    return "\n".join([*parts, "</section>"])


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "\n".join(_row(table, row) for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f"<h3>{escape(table.title)} <small>{escape(table.label)}</small></h3>"
        f'<div class="scroll"><table><tr><th></th>{head}<th class="verdict">verdict</th></tr>{rows}</table></div>{note}'
    )


def _row(table: Table, row: Row) -> str:
    cells = []
    for column in table.columns:
        lines = [
            f'<span class="{who}">{formatted(values.get(column), table.decimals)}</span>'
            for who, values in (("ours", row.ours), ("paper", row.paper), ("exact", row.exact))
            if finite(values.get(column))
        ]
        cells.append(f"<td>{'<br>'.join(lines) or '–'}</td>")
    verdict = table.verdict(row)
    mark = (
        f'<td class="verdict {kind(verdict).split()[-1]}">{escape(verdict)}</td>' if verdict else "<td></td>"
    )
    return f"<tr><th>{escape(row.name)}</th>{''.join(cells)}{mark}</tr>"


def _settings(records: list[dict[str, Any]]) -> str:
    lines = "".join(
        f"<tr><th>{escape(r['cell'])}</th><td>{r['seed']}</td><td>{r['outcome']['n_evaluations']:,}</td>"
        f"<td>{r['seconds']:.2f}</td><td class='settings'>{escape(json.dumps(r['outcome']['settings']))}</td></tr>"
        for r in records
    )
    head = "<tr><th>run</th><th>seed</th><th>queries</th><th>seconds</th><th>settings</th></tr>"
    table = f'<div class="scroll"><table>{head}{lines}</table></div>'
    return f"<details><summary>Settings, queries and times</summary>{table}</details>"
