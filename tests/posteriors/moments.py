"""Means, sds and quantiles of draws, weighted or not, with errors from chains or batches that are independent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .reference import QUANTILES


class Moments(NamedTuple):
    """Of each coordinate, with standard errors: (d,), quantiles (3, d)."""

    mean: np.ndarray
    sd: np.ndarray
    quantiles: np.ndarray
    mean_se: np.ndarray
    sd_se: np.ndarray
    quantiles_se: np.ndarray


def statistics(theta: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Mean, sd and quantiles of (n, d)."""
    if weights is None:
        return theta.mean(axis=0), theta.std(axis=0), np.quantile(theta, QUANTILES, axis=0)
    share = weights / weights.sum()
    mean = share @ theta
    return mean, np.sqrt(share @ (theta - mean) ** 2), weighted_quantiles(theta, weights)


def moments(batches: np.ndarray, weights: np.ndarray | None = None) -> Moments:
    """Of draws (B, n, d) with weights (B, n): B chains or batches that are independent of each other."""
    dim = batches.shape[2]
    whole = statistics(batches.reshape(-1, dim), None if weights is None else weights.ravel())
    each = [statistics(part, None if weights is None else weights[i]) for i, part in enumerate(batches)]
    errors = [np.std(column, axis=0, ddof=1) / np.sqrt(len(batches)) for column in zip(*each, strict=True)]
    return Moments(*whole, *errors)


def weighted_quantiles(theta: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(3, d) of the points (n, d) with weights (n,)."""
    found = np.empty((len(QUANTILES), theta.shape[1]))
    for i, column in enumerate(theta.T):
        # points of a grid share their coordinates, up to rounding: one step of the distribution each
        unit = 1e-9 * (column.max() - column.min())
        places, which = np.unique(np.round((column - column[0]) / unit), return_inverse=True)
        mass = np.bincount(which, weights)
        share = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
        found[:, i] = column[0] + unit * np.interp(QUANTILES, share, places)
    return found


def split_rhat(theta: np.ndarray) -> float:
    """The largest over the coordinates of draws (C, n, d)."""
    half = theta.shape[1] // 2
    halves = np.concatenate([theta[:, :half], theta[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return float(np.sqrt((half - 1) / half + between / within).max())
