"""What limit-order-book data are when loaded: windows of the book and the class that follows each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from mgvbp.core import Array
from mgvbp.datasets.lob.layout import CLASS_NAMES, FEATURE_NAMES, Features, Indices, Labels, horizon_column
from mgvbp.datasets.lob.windows import Windows


@dataclass(frozen=True, eq=False, repr=False)
class Books:
    """One part of the data: snapshots of order books and what the mid-price did after each.

    Attributes
    ----------
    features : ndarray of shape (N, 40), float32
        A snapshot a row, normalised; the columns are ``feature_names``.
    labels : ndarray of shape (N, 5), int8
        The class at each of the five horizons.
    joins : ndarray of int
        Rows at which another stock or day begins.
    horizon : int
        Events ahead of ``y``.
    truth : ndarray of shape (N, 3) or None
        The probabilities that the classes were drawn with; None for real data.
    X : Windows
        The last ten snapshots, as an array of shape (n, 40, 10) that is cut out when indexed.
    y : ndarray of shape (n,), int
        The class after each window: 0, 1, 2 are the ``class_names`` up, stationary, down.
    """

    features: Features
    labels: Labels
    joins: Indices
    horizon: int
    truth: Array | None = None

    class_names: ClassVar[tuple[str, ...]] = CLASS_NAMES
    feature_names: ClassVar[tuple[str, ...]] = FEATURE_NAMES

    @cached_property
    def X(self) -> Windows:
        return Windows(self.features, self.joins)

    @cached_property
    def y(self) -> Indices:
        y: Indices = self.labels[self.X.ends, horizon_column(self.horizon)].astype("intp")
        return y

    @property
    def probabilities(self) -> Array | None:
        """The ``truth`` of each window, (n, 3)."""
        return None if self.truth is None else self.truth[self.X.ends]

    @property
    def bayes_accuracy(self) -> float | None:
        """The expected share of classes that the best possible rule gets right; None for real data."""
        return None if self.probabilities is None else float(self.probabilities.max(axis=1).mean())

    def __repr__(self) -> str:
        return f"Books({len(self.X)} windows in {len(self.joins) + 1} pieces, {self.horizon} events ahead)"


@dataclass(frozen=True, eq=False)
class LOB:
    """Limit-order-book data to train and to test with; both parts are `Books`."""

    train: Books
    test: Books
