"""The data sets of the paper's experiments and simulated ones of the same shapes.

It may import `core` and pandas, never a model. Begin with `catalogue`, which knows where each data set comes from;
`lob` reads and simulates limit order books.

>>> from mgvbp import datasets
>>> data = datasets.load("synthetic-har")
>>> data
Dataset('synthetic-har': 1680 rows to train, 421 to test; target 't', features 'y', 'w', 'm')
>>> X, y = data.train[data.features], data.train[data.target]
>>> X.shape, y.shape
((1680, 3), (1680,))
"""

from mgvbp.datasets.catalogue import CATALOGUE, Entry, fetch, find, load, where
from mgvbp.datasets.files import cache_directory
from mgvbp.datasets.lob import LOB, find_joins, load_fi2010, simulate_lob
from mgvbp.datasets.paper import Classification, Dataset, labour

__all__ = [
    "CATALOGUE",
    "LOB",
    "Classification",
    "Dataset",
    "Entry",
    "cache_directory",
    "fetch",
    "find",
    "find_joins",
    "labour",
    "load",
    "load_fi2010",
    "simulate_lob",
    "where",
]
