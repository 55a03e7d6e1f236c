"""Posteriors and their diagnoses in a notebook: a heading and a table with small pictures, all in one text.

Lines and texts have the colour of the page's text, so that they can be read on light and on dark pages alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from mgvbp.core.linalg import Array
from mgvbp.posterior.summary import UNCONSTRAINED, digits, heading, table_quantiles, table_rows

if TYPE_CHECKING:
    from mgvbp.posterior.diagnostics.diagnosis import Diagnosis
    from mgvbp.posterior.posterior import Posterior

MOST_ROWS = 40
"""Rows of a table in a notebook; if there are more, the first and the last ones are shown."""
MOST_PICTURES = 500
"""Marginals are drawn up to this dimension. Beyond it, the quantiles that they need take longer than a page may."""
LEVELS = ndtr(np.linspace(-3.0, 3.0, 49))
"""The densities are drawn from the quantiles at these levels: those of a normal would be equidistant."""
WIDTH, HEIGHT = 140, 22
"""Of a picture, in pixels."""
NARROWEST = 0.04
"""Marginals of one parameter share an axis, unless one of them would take less than this share of it."""
GOOD, BAD = "#2a9d5c", "#d9722b"
"""Colours of "converged" and "NOT converged", of "trust" and other verdicts: neither dark nor light, so that both can
be read on any page."""


def posterior_html(posterior: Posterior) -> str:
    """The heading of `Posterior.summary`, and its table with pictures."""
    first, *lines = map(escape, [*heading(posterior), *([UNCONSTRAINED] if posterior._labelled else [])])
    colour, begin = (GOOD, "converged:") if posterior.converged else (BAD, "NOT converged:")
    badge = f'<b style="color:{colour}">{begin}</b>'
    lines = [badge + line.removeprefix(begin) if line.startswith(begin) else line for line in lines]
    return _page(f"<b>{first}</b>", lines, table_html(posterior))


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """The verdict and the advice, what the draws say of the whole, and how each parameter may be off."""
    d, verdicts = diagnosis, diagnosis.verdicts
    badge = f'<b style="color:{GOOD if d.verdict == "trust" else BAD}">{d.verdict.upper()}.</b>'
    advice = " ".join(map(escape, [d.advice, *d._modes]))
    rows = []
    for i in d._worst(MOST_ROWS):
        numbers = (d.mean_shift_se[i], d.sd_ratio[i], d.sd_ratio_se[i])
        texts = [f"{d.mean_shift[i]:+.3f}", *(f"{number:.3f}" for number in numbers)]
        rows.append(_line([escape(d.labels[i]), *texts, escape(verdicts[i])], "td"))
    if more := len(d.labels) - len(rows):
        rows.append(_line([f"… {more:,} more, less far off", *[""] * 5], "td"))
    head = _line(["parameter", "mean shift/sd", "se", "sd ratio", "se", "verdict"], "th")
    return _page(f"{badge} {advice}", map(escape, d._facts), _table(head, rows))


def table_html(posterior: Posterior) -> str:
    """Means, standard deviations, central 95% intervals and densities."""
    rows = list(table_rows(posterior).items())
    pictures = list(drawn(posterior, [label for label, _ in rows]))
    lines = [
        _line([escape(label), *digits(row), picture], "td")
        for (label, row), picture in zip(rows, pictures, strict=True)
    ]
    if len(lines) > MOST_ROWS:
        half, more = MOST_ROWS // 2, len(lines) - MOST_ROWS
        lines[half:-half] = [_line([f"… {more:,} more: to_frame() has all", *[""] * 5], "td")]
    head = _line(["parameter", "mean", "sd", "2.5%", "97.5%", "density" if any(pictures) else ""], "th")
    return _table(head, lines)


def _page(first: str, lines: Iterable[str], table: str) -> str:
    return (
        '<div class="mgvbp" style="line-height:1.4">'
        f"<div>{first}</div><div>{'<br>'.join(lines)}</div>{table}</div>"
    )


def _table(head: str, lines: Sequence[str]) -> str:
    return (
        '<table style="border-collapse:collapse;margin-top:.5em;color:inherit;font-size:inherit">'
        f"<thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _line(cells: Sequence[str], tag: str) -> str:
    """A row of a table: the first and the last cell begin at the left, numbers end at the right."""
    sides = ["left", *["right"] * (len(cells) - 2), "left"]
    parts = (
        f'<{tag} style="text-align:{side};padding:1px 10px;white-space:nowrap">{cell}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(parts)}</tr>"


def drawn(posterior: Posterior, labels: Sequence[str]) -> Iterator[str]:
    """A picture of each number's density; empty texts if there are too many or a quantile is not finite.

    The entries of one parameter share an axis, so that they can be compared, if each can then still be seen.
    """
    if posterior.dim > MOST_PICTURES:
        yield from [""] * len(labels)
        return
    with np.errstate(over="ignore", invalid="ignore"):
        nodes = table_quantiles(posterior, LEVELS)  # (J, numbers)
    for _, group in groupby(enumerate(labels), key=lambda item: item[1].partition("[")[0]):
        columns = nodes[:, [i for i, _ in group]]
        low, high = columns.min(), columns.max()
        shared = bool(np.ptp(columns, axis=0).min() >= NARROWEST * (high - low))
        for column in columns.T:
            yield svg(column, low if shared else column[0], high if shared else column[-1])


def svg(nodes: Array, low: float, high: float) -> str:
    """The density with these quantiles at `LEVELS` between ``low`` and ``high``; a line stands at 0 if it is there."""
    if not (np.isfinite(nodes).all() and np.isfinite([low, high]).all() and (np.diff(nodes) > 0.0).all()):
        return ""
    widths = np.diff(nodes)
    middles, density = 0.5 * (nodes[1:] + nodes[:-1]), np.diff(LEVELS) / widths
    x = (WIDTH - 2) * (np.concatenate([nodes[:1], middles, nodes[-1:]]) - low) / (high - low) + 1
    y = (HEIGHT - 1) - (HEIGHT - 3) * np.concatenate([[0.0], density / density.max(), [0.0]])
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    zero = (WIDTH - 2) * (0.0 - low) / (high - low) + 1 if low <= 0.0 <= high else None
    mark = "" if zero is None else f'<path d="M{zero:.1f} 0V{HEIGHT}" opacity=".45" stroke-dasharray="2 2"/>'
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="density" '
        'style="display:block" stroke="currentColor" fill="none">'
        f'<polygon points="{points}" fill="currentColor" fill-opacity=".25"/>{mark}</svg>'
    )
