"""The Labour data as plain arrays, ready for a logistic regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mgvbp.core import Array
from mgvbp.datasets.paper import read_labour

if TYPE_CHECKING:
    import pandas as pd


class Classification(NamedTuple):
    """A two-class data set with the paper's split; the first column of X is the intercept."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    names: tuple[str, ...]


def labour() -> Classification:
    """Married women's labour-force participation (Mroz 1987), as the paper uses it.

    The arrays of ``load("labour")``: an intercept and seven covariates, 564 rows to train and 189 to test.
    """
    data = read_labour()

    def arrays(part: pd.DataFrame) -> tuple[Array, Array]:
        X = np.column_stack([np.ones(len(part)), part[data.features].to_numpy()])
        return np.ascontiguousarray(X), part[data.target].to_numpy()  # a frame's blocks lie by columns

    return Classification(*arrays(data.train), *arrays(data.test), ("intercept", *data.features))
