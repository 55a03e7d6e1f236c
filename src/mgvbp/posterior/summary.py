"""A posterior in a few lines: what was run, how it ended, and a table of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.problem.parameters import indexed

if TYPE_CHECKING:
    from mgvbp.posterior.posterior import Posterior

MOST_ROWS = 1000
"""Most rows of a summary; of a longer table the first and the last rows are shown."""


def summarise(posterior: Posterior, scale: str) -> str:
    """The heading, the line ``scale`` about the scale of the values, unless it is empty, and the table."""
    rows, half = list(table_rows(posterior).items()), MOST_ROWS // 2
    more = max(0, len(rows) - MOST_ROWS)
    if more:
        rows[half:-half] = []
    width = max(12, 2 + max(len(label) for label, _ in rows))
    table = [label.ljust(width) + "".join(f"{x:>12.5g}" for x in row) for label, row in rows]
    if more:
        table.insert(half, f"... {more:,} more ...")
    columns = f"{'parameter':<{width}}{'mean':>12}{'sd':>12}{'2.5%':>12}{'97.5%':>12}"
    return "\n".join([*heading(posterior), *([scale] if scale else []), "", columns, *table])


def heading(posterior: Posterior) -> list[str]:
    """What was run and how it ended."""
    p, trace = posterior, posterior.trace
    dropped, reductions = int(trace.dropped.sum()), int(np.count_nonzero(trace.reductions))
    return [
        f"{p.method} ({p.estimator} estimator, {p.kind}), d = {p.dim}",
        f"lower bound {p.lower_bound:.4f}{_error('se', p.lower_bound_se)} "
        f"after {p.n_evaluations:,} evaluations in {len(trace):,} iterations",
        *(
            [f"expected gap to the optimum {p.gap:.4f}{_error('sd', p.gap_se)} nats"]
            if p.gap is not None and np.isfinite(p.gap)
            else []
        ),
        *_distance(posterior),
        f"{'converged' if p.converged else 'NOT converged'}: {p.stop_reason}",
        *checked(posterior),
        *([f"{dropped:,} draws with non-finite values were left out"] if dropped else []),
        *(
            [f"the step was shortened in {reductions:,} iterations to stay positive definite"]
            if reductions
            else []
        ),
    ]


def _distance(posterior: Posterior) -> list[str]:
    """How far the posterior itself is, if the fit has measured it."""
    known = posterior._distance
    if known is None or not np.isfinite(known.kl):
        return []
    return [
        f"{known.kl:.4f} (se {known.kl_se:.4f}) nats from the posterior, log evidence {known.log_evidence:.4f}"
    ]


def checked(posterior: Posterior) -> list[str]:
    """What tried to refute the certificate, in a line; a check that failed is the reason why the run ended."""
    names = ", ".join(check.name for check in posterior.checks if check.passed)
    return [f"tried to refute it: {names} (posterior.checks)"] if names else []


def table_rows(posterior: Posterior) -> dict[str, Array]:
    """Mean, standard deviation and the ends of the central 95% interval of each number shown."""
    if posterior.parameters is None:
        columns = np.stack([posterior.mean, posterior.std, *posterior.quantiles([0.025, 0.975])], axis=-1)
        return dict(zip(posterior.labels, columns, strict=True))
    rows: dict[str, Array] = {}
    for name in posterior.parameters.names:
        entry = posterior[name]
        columns = np.stack([entry.mean, entry.std, *entry.quantile([0.025, 0.975])], axis=-1)
        rows |= zip(indexed(name, entry.shape), columns.reshape(-1, 4), strict=True)
    return rows


def _error(kind: str, value: float | None) -> str:
    return "" if value is None else f" ({kind} {value:.4f})"
