"""Docstrings are written to be read in a terminal; here they become entries of the reference."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

STARRED = re.compile(r"(?<=[( ])\*(?=[\w.]+[,)])")  # the shape (S, *shape) is no emphasis
BARS = re.compile(r"\|(?=[^|`]+\|)")  # an absolute value is no substitution
SEVERAL = re.compile(r"(\w+(?:, \w+)+) : (.*)")  # "gap, gap_se : float": two attributes
RESULTS = re.compile(
    r"mgvbp\.(?:\w+\.)*(?:Posterior|Marginal|Trace|Diagnosis|FamilyComparison|Rung|State|PointEstimate|Chains"
    r"|AdamIteration|Prediction|NormalPrediction|NetworkLikelihood|VolatilityResult|Forecast|HARResult|HARForecast"
    r"|Comparison|Backtest|Dataset|Classification|LOB|Entry)"
)
"""Classes whose objects the library makes: how it calls them is nobody's concern."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Let `edit` see docstrings before napoleon does, `shorten` signatures, `skip` members, and `unlink` pages."""
    app.connect("autodoc-process-docstring", edit, priority=400)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-skip-member", skip)
    app.connect("doctree-read", unlink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def edit(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape, in place, what looks like markup outside of literals, and give each attribute a line of its own."""
    # napoleon takes the first line "a: b" of an attribute for its type and its text: let that line be an empty comment
    edited, section = ["..", ""] if what in ("attribute", "data", "property") else [], ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following and not following.strip("-"):
            section = line
        if section == "Attributes" and (match := SEVERAL.fullmatch(line)):
            edited += [f"{attribute} : {match[2]}" for attribute in match[1].split(", ")]
            continue
        parts = re.split(r"(``.*?``|`[^`]*`)", line)
        parts[::2] = [BARS.sub(r"\|", STARRED.sub(r"\*", part)) for part in parts[::2]]
        edited.append("".join(parts))
    lines[:] = edited


def shorten(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str] | None:
    """No signature for exceptions, nor for classes whose objects the library makes."""
    ours = what == "exception" or (what == "class" and RESULTS.fullmatch(name))
    return ("", "") if ours and signature is not None else None


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """No entries for fields of named tuples that only say their number: the class has described them."""
    return True if str(getattr(obj, "__doc__", "")).startswith("Alias for field number") else None


def unlink(app: Sphinx, doctree: nodes.document) -> None:
    """Of "array_like of shape (d,)" Sphinx would link the word to some attribute called so."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link["reftarget"] == "shape":
            link.replace_self(link.children)
