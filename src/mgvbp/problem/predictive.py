"""What a posterior predicts: draws of new observations, with their means, intervals and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats, one_of, probabilities
from mgvbp.core.linalg import Array
from mgvbp.core.optional import require


@dataclass(frozen=True, eq=False)
class PredictiveDraws:
    """New observations, one set for each draw of the parameters; what `Posterior.predict` returns.

    Parameters
    ----------
    draws : ndarray of shape (S, n) or (S, n, m)
        Observations at n places, or of m series at each: doubt about the parameters and noise together.
    means : ndarray of the same shape, optional
        The expectation of each observation given the parameters of its draw: doubt about the parameters alone.
    index : sequence of length n, optional
        What each place is called: dates of a forecast, rows of a frame.
    names : sequence of str
        The m series, or the classes of an observation.

    Examples
    --------
    >>> normal = np.random.default_rng(0).normal(size=(4000, 2))
    >>> prediction = PredictiveDraws(draws=3.0 + normal, means=np.full((4000, 2), 3.0), index=["a", "b"])
    >>> prediction.mean, prediction.std.round(1)
    (array([3., 3.]), array([1., 1.]))
    >>> prediction.interval(0.95).round()
    array([[1., 1.],
           [5., 5.]])
    """

    draws: Array
    means: Array | None = None
    index: Sequence[Any] | None = None
    names: Sequence[str] = ()

    @property
    def mean(self) -> Array:
        """The expected observation at each place, (n,) or (n, m)."""
        return np.asarray((self.draws if self.means is None else self.means).mean(axis=0))

    @property
    def std(self) -> Array:
        """The standard deviation of a new observation, (n,) or (n, m)."""
        return np.asarray(self.draws.std(axis=0))

    def quantile(self, p: ArrayLike, of: str = "draws") -> Array:
        """Quantiles at levels ``p`` of the observations or, ``of="means"``, of their expectations; (*p.shape, n)."""
        known = {"draws": self.draws} | ({} if self.means is None else {"means": self.means})
        return np.asarray(np.quantile(known[one_of(of, known, "of")], probabilities(p, "p"), axis=0))

    def interval(self, prob: float = 0.95, of: str = "draws") -> Array:
        """The central interval with this probability at each place, (2, n): lower and upper ends; see `quantile`."""
        tail = 0.5 * (1.0 - float(as_floats(prob, "prob")))
        return self.quantile([tail, 1.0 - tail], of)

    @property
    def frame(self) -> Any:
        """A pandas frame with one row a place: ``mean``, ``sd``, ``2.5%`` and ``97.5%`` of each series."""
        pandas = require("pandas", "volatility")
        low, high = self.interval()
        columns = {"mean": self.mean, "sd": self.std, "2.5%": low, "97.5%": high}
        index = pandas.RangeIndex(self.draws.shape[1]) if self.index is None else pandas.Index(self.index)
        if self.draws.ndim == 2:
            return pandas.DataFrame(columns, index=index)
        names = self.names or [str(j) for j in range(self.draws.shape[2])]
        by_name = {(name, key): array[:, j] for j, name in enumerate(names) for key, array in columns.items()}
        return pandas.DataFrame(by_name, index=index)

    def __repr__(self) -> str:
        of = f" of {', '.join(self.names)}" if self.names else ""
        return f"PredictiveDraws({len(self.draws):,} draws at {self.draws.shape[1]:,} places{of})"


def one_of_classes(shares: Array, rng: np.random.Generator) -> Array:
    """A class of each draw and place, as 1 among zeros; (S, n, K) -> (S, n, K)."""
    ends = shares.cumsum(axis=2)
    chosen = (rng.random((*ends.shape[:2], 1)) > ends).sum(axis=2)
    classes = ends.shape[2]
    return np.asarray(np.eye(classes)[np.minimum(chosen, classes - 1)])
