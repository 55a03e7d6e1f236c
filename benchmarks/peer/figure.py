"""The gap against evaluations, a panel a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from peer.table import CHAINS, NEAR, OURS, Record, optima

FLOOR = 1e-3
"""Gaps below are drawn here: the measure is no finer."""
COLUMNS = 4
COLOURS = (*(f"C{i}" for i in range(10)), "black", "gold", "navy", "salmon")
"""One for each peer that is drawn."""


def draw(records: list[Record], path: Path, caption: str) -> None:
    """Every seed is a line; a run with one look is a dot."""
    from matplotlib.figure import Figure

    best = optima(records)
    targets = list(best)
    peers = [name for name in dict.fromkeys(r["peer"] for r in records if "runs" in r) if name not in CHAINS]
    rows = -(-len(targets) // COLUMNS)
    figure = Figure(figsize=(3.4 * COLUMNS, 2.6 * rows + 1.0), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, COLUMNS, sharey=True)).ravel()
    for axis, target in zip(axes, targets, strict=False):
        here = [r for r in records if r["target"] == target and "runs" in r and r["peer"] in peers]
        for record in here:
            lines(axis, record, best[target], COLOURS[peers.index(record["peer"])])
        axis.axhline(NEAR, color="0.6", linestyle=":", linewidth=1)
        axis.set(xscale="log", yscale="log", ylim=(0.7 * FLOOR, 1e4))
        axis.set_title(
            f"{target} (d = {next(r['dim'] for r in records if r['target'] == target)})", fontsize=10
        )
    for axis in axes[len(targets) :]:
        axis.set_axis_off()
    for colour, peer in zip(COLOURS, peers, strict=False):
        axes[0].plot([], [], color=colour, linewidth=2, label=peer)
    figure.legend(loc="outside upper center", ncols=4, fontsize=9)
    figure.supxlabel(f"evaluations of the log density or its gradient\n{caption}", fontsize=9)
    figure.supylabel("nats below the exact optimum", fontsize=10)
    figure.savefig(path, dpi=110)


def lines(axis: Any, record: Record, optimum: float, colour: str) -> None:
    """The runs of a peer."""
    width = 2.0 if record["peer"] in OURS else 1.0
    for run in record["runs"]:
        queries = [at["values"] + at["gradients"] for at in run["path"]]
        gaps = np.maximum([optimum - at["bound"] for at in run["path"]], FLOOR)
        gaps = np.where(np.isfinite(gaps), gaps, np.nan)
        axis.plot(queries, gaps, color=colour, linewidth=width, alpha=0.8, zorder=2 + width)
        axis.plot(queries[-1:], gaps[-1:], "o", color=colour, markersize=4, zorder=2 + width)
