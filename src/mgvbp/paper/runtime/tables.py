"""The tables runtime and runtime_npar, in seconds and as ratios of methods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mgvbp.paper.runtime.growth import measured
from mgvbp.paper.runtime.timing import METHODS
from mgvbp.paper.spec import Outcome, Row, Table, reference

FRAME = "our steps work in the frame of the Cholesky factor, so that their costs need not differ as the paper's do"


def ratio(curves: Mapping[str, list[float]], method: str, base: str = "MGVBP") -> float:
    """The ratio of two methods within a round, as its median over the rounds."""
    return float(np.median(np.divide(curves[method], curves[base])))


def uncertainty(curves: Mapping[str, list[float]], method: str, base: str = "MGVBP") -> float:
    """Half the width of a 95% interval of `ratio`.

    For normal numbers the standard error of a median is 1.2533 σ/√n, and σ is the distance of the quartiles over 1.349.
    The quartiles do not move with a few bad rounds.
    """
    low, high = np.percentile(np.divide(curves[method], curves[base]), [25, 75])
    return float(1.96 * 1.2533 * (high - low) / 1.349 / np.sqrt(len(curves[base])))


def problems_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Seconds per 1,000 iterations, and the ratios, which alone are compared."""
    columns = {f"{name} {what}": np.inf for name in METHODS for what in ("mean", "median", "sd")}
    columns |= {"MGVB/MGVBP": 0.1, "± MGVB": np.inf, "QBVI/MGVBP": 0.1, "± QBVI": np.inf}
    rows = []
    for name, printed in reference("runtime")["paper"]["runtime"].items():
        if name not in outcomes:
            continue
        curves = outcomes[name].curves
        ours: dict[str, float] = {}
        for method, times in curves.items():
            thousand = 1000.0 * np.array(times)
            ours |= {f"{method} mean": float(thousand.mean()), f"{method} median": float(np.median(thousand))}
            ours[f"{method} sd"] = float(thousand.std(ddof=1))
        paper = dict(printed)
        for method in ("MGVB", "QBVI"):
            ours[f"{method}/MGVBP"] = ratio(curves, method)
            paper[f"{method}/MGVBP"] = printed[f"{method} median"] / printed["MGVBP median"]
        rows.append(
            Row(name, ours, paper, reason="the likelihood takes less of our time, so that the steps show")
        )
    note = (
        "Seconds per 1,000 iterations with 75 draws. Verdicts are on the ratios, within 0.1: the paper's times are of "
        "MATLAB on another machine. Its authors' saved times say that in the logistic columns the two estimators are "
        "exchanged, and under loglik full and diagonal too; a ratio within a column is the same under either name."
    )
    return Table("runtime", "Running times by method", columns, rows, note=note)


def sizes_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Seconds per 100 iterations by the number of variational parameters."""
    printed = reference("runtime")["paper"]["runtime_npar"]
    rows = []
    for size, curves in measured(outcomes).items():
        ours = {name: 100.0 * float(np.median(times)) for name, times in curves.items()}
        ours["difference"] = 100.0 * (1.0 - ratio(curves, "MGVBP", "MGVB"))
        ours["± points"] = 100.0 * uncertainty(curves, "MGVBP", "MGVB")
        ours["QBVI/MGVBP"] = ratio(curves, "QBVI")
        paper = printed.get(str(size), {})
        rows.append(Row(f"{size + size**2:,} (k = {size})", ours, paper, reason=FRAME))
    columns = {"MGVB": np.inf, "MGVBP": np.inf, "QBVI": np.inf, "difference": 5.0}
    columns |= {"± points": np.inf, "QBVI/MGVBP": np.inf}
    note = (
        "Seconds per 100 iterations with 100 draws of a linear regression, which is what the authors' script measured "
        "(the paper says per iteration). The difference is that of MGVBP from MGVB, in per cent of MGVB; verdicts are "
        "on it, within 5 points."
    )
    return Table(
        "runtime_npar", "Running times by number of variational parameters", columns, rows, 4, note=note
    )
