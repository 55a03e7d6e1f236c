"""The results on a terminal and as files: a CSV file with one number a line, figures, and one HTML page."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from mgvbp import report as page
from mgvbp.paper.captions import CAPTIONS, Caption
from mgvbp.paper.engine import versions
from mgvbp.paper.spec import BETTER, EXACT, REPRODUCES, STATES, Row, Table, finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PARTS = "parts"
"""The folder with a part of the page for each experiment: the page shows all that are there."""


@dataclass(frozen=True)
class Section:
    """One experiment's part of the report."""

    name: str
    title: str
    tables: list[Table]
    figures: Mapping[str, Figure]
    records: list[dict[str, Any]]
    """The stored records of its finished cells, with settings, seeds, queries and seconds."""
    cells: int
    """How many cells it has, finished or not."""


def write_report(directory: Path, section: Section, command: str, order: Iterable[str]) -> Path:
    """Write ``<experiment>.csv``, ``figures/`` and its part of ``summary.md`` and ``report.html``.

    The page and the summary show the parts of all experiments that the directory has, in their ``order``. Returns the
    page's path.
    """
    parts = directory / PARTS
    parts.mkdir(parents=True, exist_ok=True)
    (directory / "figures").mkdir(exist_ok=True)
    write_csv(directory / f"{section.name}.csv", section.tables)
    pictures = {f"{section.name}-{name}": picture(figure) for name, figure in section.figures.items()}
    for name, png in pictures.items():
        (directory / "figures" / f"{name}.png").write_bytes(png)
    part = {
        "title": section.title,
        "command": command,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "seconds": sum(record["seconds"] for record in section.records),
        "runs": f"{len(section.records)} of {section.cells}",
        "queries": sum(record["outcome"]["n_evaluations"] for record in section.records),
        "counts": counts(section.tables),
        "apart": apart(section.tables),
        "html": _section(section, pictures),
    }
    (parts / f"{section.name}.json").write_text(json.dumps(part), encoding="utf-8")
    stored = {name: path for name in order if (path := parts / f"{name}.json").exists()}
    others = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in stored.items()}
    found = {name: other for name, other in others.items() if other.keys() == part.keys()}  # of this version
    (directory / "summary.md").write_text(markdown_summary(found), encoding="utf-8")
    target = directory / "report.html"
    target.write_text(html_page(found), encoding="utf-8")
    return target


def picture(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    return content.getvalue()


def write_csv(path: Path, tables: list[Table]) -> None:
    """Write one line for each number: table, its title, row, column, ours, paper, exact, tolerance, verdict."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "title", "row", "column", "ours", "paper", "exact", "tolerance", "verdict"])
        for table in tables:
            for row in table.rows:
                verdict = table.verdict(row)
                for column in table.columns:
                    numbers = [values.get(column) for values in (row.ours, row.paper, row.exact)]
                    if any(finite(number) for number in numbers):
                        allowed = table.allowed(row, column) if finite(numbers[1]) else ""
                        writer.writerow(
                            [table.label, table.title, row.name, column, *numbers, allowed, verdict]
                        )


HEADS = ("reproduce", "better", "exact", "both unconverged", "differ", "not reproducible")
"""How the columns are called that count `STATES`."""


def state(verdict: str) -> str:
    """The one of `STATES` that a verdict begins with."""
    return next(state for state in STATES if verdict.startswith(state))


def counts(tables: list[Table]) -> list[tuple[str, str, list[int]]]:
    """Title, label and the number of rows in each of `STATES`, for each table with verdicts."""
    found = []
    for table in tables:
        if verdicts := table.verdicts():
            states = [state(verdict) for verdict, rows in verdicts.items() for _ in rows]
            found.append((table.title, table.label, [states.count(s) for s in STATES]))
    return found


def apart(tables: list[Table]) -> list[tuple[str, dict[str, list[str]]]]:
    """By the titles of tables, the verdicts other than "reproduces" and "exact", each with its rows."""
    agree = (REPRODUCES, EXACT)
    every = [
        (t.title, {v: names for v, names in t.verdicts().items() if state(v) not in agree}) for t in tables
    ]
    return [(title, verdicts) for title, verdicts in every if verdicts]


def sums(*parts: Mapping[str, Any]) -> list[int]:
    """The number of rows in each of `STATES` over all tables of these parts."""
    numbers = [numbers for part in parts for *_, numbers in part["counts"]]
    return [sum(column) for column in zip([0] * len(STATES), *numbers, strict=True)]


def duration(seconds: float) -> str:
    """Seconds as text."""
    return f"{seconds / 60.0:,.1f} min" if seconds >= 60.0 else f"{seconds:.0f} s"


def made(parts: Mapping[str, Mapping[str, Any]], mark: str = "") -> str:
    """Sentences that say which commands made which parts and when; ``mark`` stands on both sides of a command."""
    by: dict[str, list[str]] = {}
    for name, part in parts.items():
        by.setdefault(part["command"], []).append(name)
    sentences = []
    for command, names in by.items():
        of = f" ({', '.join(names)})" if len(by) > 1 else ""
        sentences.append(f"Made by {mark}{command}{mark}{of}, {max(parts[name]['made'] for name in names)}.")
    return " ".join([*sentences, "Times are of the processor."])


def markdown_summary(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """What each part took, how many rows of each table have which verdict, and the verdicts of those that differ."""

    def line(*cells: str) -> str:
        return f"| {' | '.join(cells)} |"

    every = list(parts.values())
    seconds, queries = (sum(part[what] for part in every) for what in ("seconds", "queries"))
    lines = [made(parts, "`"), "", line("experiment", "cells", "time", "queries"), "|---" * 4 + "|"]
    lines += [line(p["title"], p["runs"], duration(p["seconds"]), f"{p['queries']:,}") for p in every]
    lines += [f"| all | | {duration(seconds)} | {queries:,} |", ""]
    lines += [line("table", *HEADS), "|---" * (1 + len(HEADS)) + "|"]
    for part in every:
        for title, label, numbers in part["counts"]:
            lines.append(line(f"{title} ({label})", *(str(n or "") for n in numbers)))
    lines.append(line("**all**", *(f"**{n}**" if n else "" for n in sums(*every))))
    for part in every:
        for title, verdicts in part["apart"]:
            lines += ["", f"**{title}**", ""]
            lines += [f"- {'; '.join(names)}: {verdict}" for verdict, names in verdicts.items()]
    return "\n".join([*lines, ""])


def html_page(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole report as one page without scripts or links to elsewhere."""
    stack = ", ".join(f"{name} {version}" for name, version in versions().items())
    paper = page.text("the paper's below it", "quiet")
    exact = page.text("that of the exact optimum of the lower bound", "exact")
    legend = (
        f"Each cell has our number, {paper} and {exact}, where there is one; ± below a column's name is the tolerance, "
        "from the least to the largest of its rows. The verdict stands below the name of a row."
    )
    rows = [
        [
            _link(name, part["title"]),
            *_counted(sums(part)),
            part["runs"],
            duration(part["seconds"]),
            f"{part['queries']:,}",
        ]
        for name, part in parts.items()
    ]
    return page.html_page(
        "Manifold Gaussian Variational Bayes on the Precision Matrix, reproduced",
        [
            page.paragraph(stack, "note"),
            page.paragraph(page.Html(legend)),
            page.table(["", *HEADS, "cells", "time", "queries"], rows, wide=True),
            page.paragraph(made(parts), "note"),
            *(page.Html(part["html"]) for part in parts.values()),
        ],
    )


def _link(anchor: str, words: str) -> page.Html:
    return page.Html(f'<a href="#{page.text(anchor)}">{page.text(words)}</a>')


def _counted(numbers: Iterable[int]) -> list[page.Html]:
    """Numbers of rows by state, in the colours of their verdicts; empty for none."""
    return [
        page.text(str(n), _colour(s)) if n else page.Html("") for s, n in zip(STATES, numbers, strict=True)
    ]


def _colour(state: str) -> str:
    return "good" if state in (REPRODUCES, BETTER, EXACT) else "doubt"


def _anchor(section: Section, number: int) -> str:
    return f"{section.name}-table-{number}"


def _section(section: Section, pictures: Mapping[str, bytes]) -> page.Html:
    anchors = {table.title: _anchor(section, i) for i, table in enumerate(section.tables)}
    rows = [
        [_link(anchors[title], title), *_counted(numbers)] for title, _, numbers in counts(section.tables)
    ]
    return page.section(
        section.title,
        page.table(["rows that", *HEADS], rows, wide=True) if rows else page.Html(""),
        *(_table(table, anchors[table.title]) for table in section.tables),
        *(_picture(section, name, png) for name, png in pictures.items()),
        _settings(section.records),
        name=section.name,
    )


def _picture(section: Section, name: str, png: bytes) -> page.Html:
    """A figure with its caption, which links to the tables with its numbers."""
    caption = CAPTIONS.get(name, Caption("", name))
    links = [
        _link(_anchor(section, i), table.title)
        for i, table in enumerate(section.tables)
        if table.label in caption.tables
    ]
    words = page.text(caption.label, "label") + " " if caption.label else ""
    words += page.text(caption.text) + (f" Numbers: {'; '.join(links)}." if links else "")
    data = base64.b64encode(png).decode()
    return page.Html(
        f'<figure id="{page.text(name)}"><img alt="{page.text(caption.text)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{words}</figcaption></figure>"
    )


def _table(table: Table, anchor: str) -> page.Html:
    head = [page.Html(page.text(c) + _tolerance(table, c)) for c in table.columns]
    rows = [
        [_name(row.name, table.verdict(row)), *(_cell(table, row, column) for column in table.columns)]
        for row in table.rows
    ]
    heading = f'<h3 id="{anchor}">{page.text(table.title)} {page.text(table.label, "label")}</h3>'
    note = page.paragraph(table.note, "note") if table.note else ""
    return page.Html(heading + page.table(["", *head], rows, wide=True) + note)


def _tolerance(table: Table, column: str) -> str:
    """The tolerance of a column as a line below its name."""
    least, most = table.tolerance(column)
    if not finite(least):
        return ""
    if f"{least:.2g}" == f"{most:.2g}":
        return f"<br>{page.text(f'±{least:.2g}', 'note')}"
    return f"<br>{page.text(f'±{least:.2g}–', 'note')}<wbr>{page.text(f'{most:.2g}', 'note')}"


def _name(name: str, verdict: str) -> page.Html:
    mark = f"<br>{page.text(verdict, _colour(state(verdict)) + ' verdict')}" if verdict else ""
    return page.Html(page.text(name) + mark)


def _cell(table: Table, row: Row, column: str) -> page.Html:
    """Our number over the paper's and the exact one."""
    lines = [
        page.text(formatted(values.get(column), table.decimals), who)
        for who, values in (("ours", row.ours), ("quiet", row.paper), ("exact", row.exact))
        if finite(values.get(column))
    ]
    return page.Html("<br>".join(lines) or "–")


def _settings(records: list[dict[str, Any]]) -> page.Html:
    rows = [
        [
            r["cell"],
            str(r["seed"]),
            f"{r['outcome']['n_evaluations']:,}",
            f"{r['seconds']:.2f}",
            json.dumps(r["outcome"]["settings"], ensure_ascii=False),
        ]
        for r in records
    ]
    table = page.table(["run", "seed", "queries", "seconds", "settings"], rows, words=True, wide=True)
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
    styles = {"good": "green", "doubt": "yellow"}
    return Text("\n").join(
        Text.assemble((verdict, styles[_colour(state(verdict))]), " – ", ", ".join(names))
        for verdict, names in table.verdicts().items()
    )


def formatted(value: float | None, decimals: int) -> str:
    """A number as text: a dash if there is none, and an exponent where the decimals would show only zeros."""
    if value is None or not finite(value):
        return "–"
    if value and abs(value) < 0.5 * 10.0**-decimals:
        return f"{value:.1e}"
    return f"{value:,.{decimals}f}"
