"""What every data set is when loaded: two frames, and which columns are for what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mgvbp.core import require

if TYPE_CHECKING:
    import pandas as pd


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
