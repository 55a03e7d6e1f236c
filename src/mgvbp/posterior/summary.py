"""A posterior in a few lines or in one: what was run, how it ended, and a table of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.linalg import Array
from mgvbp.errors import MissingDependencyError
from mgvbp.problem.parameters import Parameters, entry_labels
from mgvbp.transforms import Real

if TYPE_CHECKING:
    from pandas import DataFrame

    from mgvbp.posterior.posterior import Posterior

COLUMNS = ("mean", "sd", "2.5%", "97.5%")
"""Of the table."""

VISIBLE = 0.05
"""Nats from the posterior from which on a heading says so: less hardly shows in any marginal distribution."""

MOST_ROWS = 1000
"""Most rows of a summary; of a longer table the first and the last rows are shown."""


UNCONSTRAINED = "entries of θ, on the unconstrained scale"
"""What a table shows of a saved posterior of another package's model, whose constraints are not in the file."""


class Summary(str):
    """The text of `Posterior.summary`, which ``print`` shows; a notebook shows a table with pictures.

    Examples
    --------
    >>> import mgvbp
    >>> summary = mgvbp.fit(lambda theta: -0.5 * (theta**2).sum(axis=1), labels=["a", "b"]).summary()
    >>> summary.frame.round(2).loc["a", "sd"]
    np.float64(1.0)
    """

    _posterior: Posterior

    @classmethod
    def of(cls, posterior: Posterior) -> Summary:
        """The heading, a line about the scale of the values unless they are entries of θ, and the table."""
        scale = [UNCONSTRAINED] if posterior._labelled else []
        if not plain(posterior):
            scale = ["parameters on their constrained scale"]
        rows, half = list(table_rows(posterior).items()), MOST_ROWS // 2
        more = max(0, len(rows) - MOST_ROWS)
        if more:
            rows[half:-half] = []
        width = max(12, 2 + max(len(label) for label, _ in rows))
        table = [label.ljust(width) + "".join(f"{x:>12}" for x in digits(row)) for label, row in rows]
        if more:
            table.insert(half, f"... {more:,} more ...")
        columns = f"{'parameter':<{width}}" + "".join(f"{column:>12}" for column in COLUMNS)
        self = cls("\n".join([*heading(posterior), *scale, "", columns, *table]))
        self._posterior = posterior
        return self

    @property
    def frame(self) -> DataFrame:
        """The table as a pandas DataFrame: what `Posterior.to_frame` returns."""
        return frame(self._posterior)

    def _repr_html_(self) -> str:
        return self._posterior._repr_html_()

    def __repr__(self) -> str:
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)  # in a file it is the text


def frame(posterior: Posterior) -> DataFrame:
    """The table as a pandas DataFrame, one row for each number."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise MissingDependencyError("a DataFrame needs the package pandas: pip install pandas") from None
    rows = table_rows(posterior)
    before = "theta of " if posterior._labelled else ""
    index = pandas.Index([before + label for label in rows], name="parameter")
    return pandas.DataFrame(np.stack(list(rows.values())), index=index, columns=list(COLUMNS))


def one_line(posterior: Posterior) -> str:
    """The method, the dimension, how the run ended, and what is known of the result."""
    p = posterior
    parts = [
        p.method,
        p.kind,
        f"d = {p.dim}",
        "converged" if p.converged else "NOT converged",
        *([f"gap {_short(p.gap)} nats"] if p.gap is not None and np.isfinite(p.gap) else []),
        f"lower bound {p.lower_bound:.4f}",
    ]
    return f"{type(p).__name__}({', '.join(parts)})"


def heading(posterior: Posterior) -> list[str]:
    """What was run and how it ended."""
    p, known = posterior, posterior._distance
    lines = [
        f"{p.method} ({p.estimator} estimator, {p.kind}), d = {p.dim}",
        f"lower bound {p.lower_bound:.4f}{_error('se', p.lower_bound_se)} "
        f"after {p.n_evaluations:,} evaluations in {len(p.trace):,} iterations",
    ]
    if p.gap is not None and np.isfinite(p.gap):
        lines.append(f"expected gap to the optimum {p.gap:.4f}{_error('sd', p.gap_se)} nats")
    if known is not None and np.isfinite(known.kl):
        distance = f"{known.kl:.4f} (se {known.kl_se:.4f}) nats from the posterior"
        lines.append(f"{distance}, log evidence {known.log_evidence:.4f}")
    elif p.rough_kl is not None and p.rough_kl >= VISIBLE:
        nats = f"{p.rough_kl:.1g}" if p.rough_kl < 1.0 else f"{p.rough_kl:,.0f}"
        lines.append(f"about {nats} nats from the posterior itself (posterior.diagnose() says what to do)")
    lines.append(f"{'converged' if p.converged else 'NOT converged'}: {p.stop_reason}")
    # a check that failed is the reason why the run ended
    if names := ", ".join(check.name for check in p.checks if check.passed):
        lines.append(f"tried to refute it: {names} (posterior.checks)")
    if dropped := int(p.trace.dropped.sum()):
        lines.append(f"{dropped:,} draws with non-finite values were left out")
    if reductions := int(np.count_nonzero(p.trace.reductions)):
        lines.append(f"the step was shortened in {reductions:,} iterations to stay positive definite")
    return lines


def digits(row: Array) -> list[str]:
    """The numbers of a row of the table as texts, with the decimals that show three digits of its standard deviation.

    The first four numbers are mean, standard deviation and interval; others may follow, and may be nan. Beyond seven
    decimals, or seven digits before the point, they have five digits and, where needed, an exponent.

    Examples
    --------
    >>> digits(np.array([1.23456, 0.0512, 1.1342, 1.3349]))
    ['1.2346', '0.0512', '1.1342', '1.3349']
    >>> digits(np.array([51234.5, 812.6, 49641.8, 52827.2]))
    ['51234', '813', '49642', '52827']
    """
    decimals = 2 - np.floor(np.log10(row[1])) if row[1] > 0.0 and np.isfinite(row[:4]).all() else np.inf
    if decimals > 7 or np.nanmax(np.abs(row)) >= 1e7:
        return [f"{x:.5g}" for x in row]
    return [f"{x:z.{max(0, int(decimals))}f}" for x in row]


def table_rows(posterior: Posterior) -> dict[str, Array]:
    """Mean, standard deviation and the ends of the central 95% interval of each number shown."""
    levels = [0.025, 0.975]
    if plain(posterior):
        columns = np.stack([posterior.mean, posterior.std, *posterior.quantiles(levels)], axis=-1)
        return dict(zip(posterior.labels, columns, strict=True))
    assert posterior.parameters is not None
    rows: dict[str, Array] = {}
    for name in posterior.parameters.names:
        entry = posterior[name]
        columns = np.stack([entry.mean, entry.std, *entry.quantile(levels)], axis=-1)
        labels = entry_labels(posterior.parameters, name, entry.shape)
        rows |= zip(labels, columns.reshape(-1, 4), strict=True)
    return rows


def table_quantiles(posterior: Posterior, levels: ArrayLike) -> Array:
    """Quantiles of each number of `table_rows`, (len(levels), numbers)."""
    p = np.asarray(levels)
    if plain(posterior):
        return posterior.quantiles(p.tolist())
    assert posterior.parameters is not None
    names: Sequence[str] = posterior.parameters.names
    return np.concatenate([np.reshape(posterior[name].quantile(p), (len(p), -1)) for name in names], axis=1)


def plain(posterior: Posterior) -> bool:
    """Whether the numbers shown are the entries of θ: there are no names, or names without constraints."""
    parameters = posterior.parameters
    if not isinstance(parameters, Parameters):
        return parameters is None
    return not parameters.shared and all(isinstance(t, Real) for t in parameters.transforms.values())


def _short(nats: float) -> str:
    """Two digits; what is below a millionth is round-off."""
    return f"{nats:.2g}" if nats >= 1e-6 else "0"


def _error(kind: str, value: float | None) -> str:
    return "" if value is None else f" ({kind} {value:.4f})"
