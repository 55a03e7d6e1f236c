"""What the cells run: blocks of replications of a row, and `auto` on samples of two lengths."""

from __future__ import annotations

import numpy as np

import mgvbp
from mgvbp.paper.spec import Outcome
from mgvbp.paper.starts.cases import STARTS, Case, Start, pose_garch


def replicate(seed: int, *, case: Case, start: Start, method: str, block: int, size: int) -> Outcome:
    """``size`` runs, each from a start drawn anew and with random numbers of its own.

    Runs of MGVBP that share their draws meet, wherever they began. If all rows had the same random numbers, they would
    show the same results.
    """
    posed, settings = case.pose(), case.methods[method]
    chosen = {} if settings is None else {"method": mgvbp.MGVBP(**settings), **case.options}
    curves: dict[str, list[float]] = {name: [] for name in (*case.tolerances, "at point", "queries")}
    for i in range(block * size, (block + 1) * size):
        rng = np.random.default_rng([seed, STARTS.index(start), i])
        mean = start.draw(posed.prior.dim, rng)
        q = mgvbp.fit(posed.model, posed.prior, initial_mean=mean, rng=rng, **chosen)
        measured = {"LB": q.lower_bound, "at point": posed.bound(q), "queries": float(q.n_evaluations)}
        for name, value in (measured | posed.metrics(q.mean)).items():
            curves[name].append(value)
    shown = {"method": "auto"} if settings is None else {**settings, **case.options}
    return Outcome({}, curves, {"start": start.name, **shown}, int(sum(curves["queries"])))


def fit_sample(seed: int, *, days: int) -> Outcome:
    """`auto` on the first ``days`` returns, to a thousandth of a nat."""
    posed = pose_garch(days)
    q = mgvbp.fit(posed.model, posed.prior, tol=0.001, rng=seed)
    values = {"LB": posed.bound(q), **posed.metrics(q.mean)}
    return Outcome(values, {}, {"days": days}, q.n_evaluations)
