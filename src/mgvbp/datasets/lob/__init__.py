"""Limit-order-book data: FI-2010 from its text files, and simulated books in the same format.

>>> from mgvbp.datasets import simulate_lob
>>> data = simulate_lob(1000, horizon=100)
>>> data.test
Books(140 windows in 5 pieces, 100 events ahead)
>>> data.test.X
Windows(140, 40, 10)
"""

from mgvbp.datasets.lob.books import LOB, Books, Windows
from mgvbp.datasets.lob.fi2010 import find_joins, load_fi2010
from mgvbp.datasets.lob.simulation import simulate_lob

__all__ = ["LOB", "Books", "Windows", "find_joins", "load_fi2010", "simulate_lob"]
