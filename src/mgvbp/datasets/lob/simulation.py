"""Simulated order books in the format of FI-2010, with a signal of known strength."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mgvbp.core import Array, as_generator, positive_integer
from mgvbp.datasets.lob import market
from mgvbp.datasets.lob.books import (
    ASK,
    ASK_VOLUME,
    BID,
    BID_VOLUME,
    EVENTS_PER_ROW,
    FEATURE_NAMES,
    HORIZONS,
    LEVELS,
    LOB,
    STEPS,
    Books,
    Labels,
    horizon_column,
)
from mgvbp.errors import InvalidInputError

TICK = 0.01
"""The least step of a price, in euro."""
PRICES = (15.0, 25.0)
"""The first prices of the stocks, in euro, are spread evenly between these."""
SIZES = (700.0, 1400.0)
"""The shares at the best prices are spread between these, in equal ratios from stock to stock."""
LEAST_GAP, MEAN_GAP = 0.005, 0.01
"""The least and the mean move of the price from close to open, as shares of it: large enough for a join to be seen."""
BURN_IN = 200
"""Rows that are simulated before the first, so that this has the stationary distribution."""


def simulate_lob(
    num_windows: int = 50_000,
    *,
    stocks: int = 5,
    days: int = 8,
    horizon: int = 10,
    rng: int | np.random.Generator = 0,
) -> LOB:
    """Simulate limit-order-book data like FI-2010, whose class probabilities are known.

    Books have ten levels on each side on a grid of ticks. Order flow, seen in the volumes at the best prices
    of the last snapshots, moves the mid-price with a fixed strength; labels are made from the mid-prices that
    follow, as in FI-2010, and are about as unbalanced (0.2, 0.6, 0.2 for 10 events ahead; 0.4, 0.2, 0.4 for
    100). The module ``mgvbp.datasets.lob.market`` has the model. All days but the last are to train, the last
    one is to test; stocks follow one another, each with its days in order. Features are z-scored with the
    moments of the part to train.

    Parameters
    ----------
    num_windows : int
        Windows to train; each stock's last day has as many to test as its other days have each.
    stocks, days : int
    horizon : {10, 20, 30, 50, 100}
        Events ahead of ``y``.
    rng : int or numpy.random.Generator

    Returns
    -------
    LOB
        As `load_fi2010`, with the true ``probabilities`` and the ``bayes_accuracy`` of both parts. They are
        those given the whole past; a window determines them but for 0.2% of the variance of the signal.

    Examples
    --------
    >>> from mgvbp.datasets import simulate_lob
    >>> data = simulate_lob(2000)
    >>> data.train
    Books(2000 windows in 35 pieces, 10 events ahead)
    >>> data.train.X[:3].shape, data.train.y[:3]
    ((3, 40, 10), array([0, 1, 0]))
    >>> print(f"{data.train.bayes_accuracy:.2f}")
    0.72
    """
    rng = as_generator(rng)
    num_segments = positive_integer(stocks, "stocks") * (positive_integer(days, "days", 2) - 1)
    column = horizon_column(horizon)
    if positive_integer(num_windows, "num_windows") < num_segments:
        raise InvalidInputError(
            f"num_windows must be at least {num_segments}, one for each of {stocks} stocks on each of "
            f"{days - 1} days; got {num_windows}"
        )
    lengths = np.full((stocks, days), num_windows // num_segments)
    lengths[:, :-1].flat[: num_windows % num_segments] += 1
    train: list[Segment] = []
    test: list[Segment] = []
    for price, size, rows in zip(
        np.linspace(*PRICES, stocks), np.geomspace(*SIZES, stocks), lengths + STEPS - 1, strict=True
    ):
        *earlier, last = simulate_stock(price, size, rows, rng)
        train += earlier
        test.append(last)
    books = np.concatenate([segment.book for segment in train])
    mean, scale = books.mean(axis=0), books.std(axis=0)
    return LOB(*(_part(segments, mean, scale, column) for segments in (train, test)))


class Segment(NamedTuple):
    """A day of a stock."""

    book: Array
    """(N, 40), in euro and shares."""
    labels: Labels
    """(N, 5)."""
    probabilities: Array
    """(N, 5, 3): of the classes at each horizon."""


def simulate_stock(
    price: float, size: float, lengths: NDArray[np.int64], rng: np.random.Generator
) -> Iterator[Segment]:
    """The days of one stock, one after the other; each opens away from the last close."""
    start = round(2 * price / TICK)
    for length in lengths:
        num_rows = int(length) + market.FARTHEST
        flow = rng.standard_normal(BURN_IN + num_rows)
        imbalance = _autoregression(flow, market.FLOW_MEMORY)[BURN_IN:]
        pressure = _autoregression(flow, market.PRESSURE_MEMORY)[BURN_IN:]
        mid = start + _walk(pressure, rng)
        ahead = [events // EVENTS_PER_ROW for events in HORIZONS]
        yield Segment(
            _book(mid[:length], imbalance[:length], size, rng),
            np.stack([market.class_labels(mid[: length + k], k) for k in ahead], axis=1),
            np.stack([market.class_probabilities(pressure[:length], mid[:length], k) for k in ahead], axis=1),
        )
        gap = rng.choice([-1.0, 1.0]) * (LEAST_GAP + rng.exponential(MEAN_GAP - LEAST_GAP))
        start = round(mid[length - 1] * (1.0 + gap))


def _walk(pressure: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """From 0, in half ticks: the move to a row has the probabilities of the pressure in the row before."""
    up, _, down = market.move_probabilities(pressure[:-1]).T
    draw = rng.random(len(up))
    moves = (draw < up).astype(np.int64) - (draw > 1.0 - down)
    return np.concatenate([[0], np.cumsum(moves)])


def _book(mid: NDArray[np.int64], imbalance: Array, size: float, rng: np.random.Generator) -> Array:
    """Ten levels around a mid-price in half ticks: the spread is one tick or two, as the grid wants it."""
    book = np.empty((len(mid), len(FEATURE_NAMES)))
    for sign, price, volume in ((1, ASK, ASK_VOLUME), (-1, BID, BID_VOLUME)):
        best = (mid + sign * (2 - mid % 2)) // 2
        gaps = 1 + (_noise(len(mid), LEVELS, 0.98, rng) > 1.3)  # one level in ten is empty
        gaps[:, 0] = 0
        book[:, price] = TICK * (best[:, None] + sign * gaps.cumsum(axis=1))
        book[:, volume] = 0.4 * _noise(len(mid), LEVELS, 0.9, rng)
    # what the two sides have in common at the best prices leaves the ratio of their volumes to the imbalance
    book[:, ASK_VOLUME.start] = book[:, BID_VOLUME.start]
    depth = np.arange(LEVELS)
    shape = np.log(size) + 0.7 * (1.0 - np.exp(-depth / 2.0))
    lean = 0.5 * market.IMBALANCE * imbalance[:, None] * 0.5**depth
    book[:, ASK_VOLUME] = np.exp(shape + book[:, ASK_VOLUME] - lean)
    book[:, BID_VOLUME] = np.exp(shape + book[:, BID_VOLUME] + lean)
    for volume in (ASK_VOLUME, BID_VOLUME):
        book[:, volume] = np.maximum(book[:, volume].round(), 1.0)
    return book


def _noise(num_rows: int, num_columns: int, memory: float, rng: np.random.Generator) -> Array:
    """Independent columns of a standard normal AR(1)."""
    return _autoregression(rng.standard_normal((BURN_IN + num_rows, num_columns)), memory)[BURN_IN:]


def _autoregression(shocks: Array, memory: float) -> Array:
    """x_t = memory · x_{t−1} + √(1 − memory²) · shock_t, from 0."""
    from scipy.signal import lfilter  # slow to import

    return np.asarray(lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], shocks, axis=0))


def _part(segments: list[Segment], mean: Array, scale: Array, column: int) -> Books:
    book, labels, probabilities = (np.concatenate(pieces) for pieces in zip(*segments, strict=True))
    lengths = [len(segment.book) for segment in segments]
    return Books(
        features=((book - mean) / scale).astype(np.float32),
        labels=labels,
        joins=np.cumsum(lengths[:-1], dtype=np.intp),
        horizon=HORIZONS[column],
        truth=probabilities[:, column],
    )
