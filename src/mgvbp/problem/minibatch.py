"""A log-likelihood over data, a batch at a time."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.checks import as_key, positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.problem.calling import as_values

DERIVATIVES = ("value_and_grad", "value_grad_and_squares")
PROBES = 4
"""Number of rows that are used to check whether a function sums over its rows."""


class Minibatches:
    """The log-likelihood of independent observations; each iteration of a fit sees a random batch of them.

    A call returns the log-likelihood of all data, summed batch by batch. `at` returns the function of one iteration:
    the log-likelihood of its batch times N/B, which has the same mean. All draws of an iteration see the same batch.
    The order of the data is a function of the seed and the epoch, so that a run can be repeated and resumed.

    Parameters
    ----------
    log_likelihood : callable
        ``log_likelihood(theta, *batch)`` takes draws (S, d) and some rows of each array of data, and returns the
        *sum* over these rows, (S,). The first call compares its value for four random rows with the values for two
        and two of them, and refuses a function that averages or contains a prior. If the function has methods
        ``value_and_grad`` and ``value_grad_and_squares`` with the same arguments, as `mgvbp.networks.Network` and
        `mgvbp.from_jax` have, they give the derivatives.
    *data : arrays
        Arrays of the same length N, one row per observation. Lists, and series and frames of pandas, become NumPy
        arrays. Any other object with a ``shape``, such as a memory map, is used as it is; its first axis must take
        slices and sorted arrays of row numbers.
    batch_size : int, optional
        B, by default N. If it does not divide N, all batches of an epoch are a little smaller. Otherwise the last
        batch would be small, and its noise would count as much as all the others.
    rng : int or numpy.random.Generator
        Seed of the order of the data.

    Examples
    --------
    >>> import numpy as np, mgvbp
    >>> y = np.random.default_rng(0).normal(2.0, 1.0, size=1000)
    >>> def log_likelihood(theta, y):
    ...     return -0.5 * ((y - theta) ** 2).sum(axis=1)
    >>> batches = mgvbp.Minibatches(log_likelihood, y, batch_size=100)
    >>> batches.num_batches
    10
    >>> theta = np.zeros((1, 1))
    >>> epoch = [batches.at(t)(theta)[0] for t in range(1, 11)]
    >>> bool(np.isclose(np.mean(epoch), batches(theta)[0]))
    True
    """

    def __init__(
        self,
        log_likelihood: Callable[..., Any],
        *data: Any,
        batch_size: int | None = None,
        rng: int | np.random.Generator = 0,
    ) -> None:
        if not callable(log_likelihood):
            raise InvalidTypeError(
                f"log_likelihood must be a function of draws and data; got {log_likelihood!r}"
            )
        if not data:
            raise InvalidInputError("give the data after the function: Minibatches(log_likelihood, X, y)")
        arrays = tuple(as_indexed(array) for array in data)
        lengths = [array.shape[0] for array in arrays]
        if len(set(lengths)) > 1:
            raise InvalidInputError(f"the arrays of data differ in length: {', '.join(map(str, lengths))}")
        self.num_rows = positive_integer(lengths[0], "the number of rows")
        self.batch_size = self.num_rows if batch_size is None else positive_integer(batch_size, "batch_size")
        if self.batch_size > self.num_rows:
            raise InvalidInputError(f"batch_size is {batch_size}, but there are only {self.num_rows} rows")
        self.log_likelihood, self.data, self.key = log_likelihood, arrays, as_key(rng)
        self._epoch: tuple[int, NDArray[np.int64]] | None = None
        self._probes = np.random.default_rng(self.key)
        known = self.num_rows < 2 or getattr(log_likelihood, "sums_over_rows", False)
        self._unchecked = set() if known else {"__call__", *DERIVATIVES}

    @property
    def num_batches(self) -> int:
        """Iterations in an epoch."""
        return -(-self.num_rows // self.batch_size)

    def at(self, iteration: int) -> Batch:
        """The log-likelihood of iteration 1, 2, ...: that of its batch, scaled to the size of all data."""
        positive_integer(iteration, "iteration")
        if self.num_batches == 1:
            return Batch(self, self.data, 1.0)
        rows = np.sort(self._order((iteration - 1) // self.num_batches)[self._part(iteration)])
        return Batch(self, tuple(array[rows] for array in self.data), self.num_rows / len(rows))

    def share(self, iteration: int) -> float:
        """The share of all rows that the batch of an iteration has; those of an epoch add up to 1."""
        part = self._part(iteration)
        return float(part.stop - part.start) / self.num_rows

    def _part(self, iteration: int) -> slice:
        """Where the rows of an iteration are in the order of its epoch."""
        position = (iteration - 1) % self.num_batches
        return slice(*(k * self.num_rows // self.num_batches for k in (position, position + 1)))

    def __call__(self, theta: Array) -> Array:
        """The log-likelihood of all data, (S, d) -> (S,)."""
        return self._sum("__call__", theta)[0]

    def __getattr__(self, name: str) -> Any:
        """Attributes of the function itself: its derivatives, summed over all data, and its ``parameters``."""
        function = self.__dict__.get("log_likelihood")
        if name not in (*DERIVATIVES, "parameters") or not hasattr(function, name):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return partial(self._sum, name) if name in DERIVATIVES else getattr(function, name)

    def evaluate(self, name: str, theta: Array, data: tuple[Any, ...]) -> tuple[Array, ...]:
        """The results of the function's method ``name`` for some rows of data."""
        if name in self._unchecked and self._seen_to_sum(name, theta):
            self._unchecked.discard(name)  # another thread may have removed it already
        return self._parts(name, theta, data)

    def _parts(self, name: str, theta: Array, data: tuple[Any, ...]) -> tuple[Array, ...]:
        method = self.log_likelihood if name == "__call__" else getattr(self.log_likelihood, name)
        found = method(theta, *data)
        shown = "log_likelihood" if name == "__call__" else name
        arrays = (as_values(part, theta, shown) for part in (found if name in DERIVATIVES else (found,)))
        return tuple(array if array.dtype.kind == "f" else array.astype(np.float64) for array in arrays)

    def _sum(self, name: str, theta: Array) -> tuple[Array, ...]:
        starts = range(0, self.num_rows, self.batch_size)
        batches = (tuple(array[i : i + self.batch_size] for array in self.data) for i in starts)
        parts = [self.evaluate(name, theta, batch) for batch in batches]
        return tuple(np.sum(terms, axis=0) for terms in zip(*parts, strict=True))

    def _order(self, epoch: int) -> NDArray[np.int64]:
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = epoch, np.random.default_rng((*self.key, epoch)).permutation(self.num_rows)
        return self._epoch[1]

    def _seen_to_sum(self, name: str, theta: Array) -> bool:
        """Whether a test on random rows showed that the method sums over rows; raise if it showed that it does not.

        Zeros and infinities show nothing. Results of a wrong shape show nothing either: the caller refuses them.
        """
        rows = np.sort(self._probes.choice(self.num_rows, min(PROBES, self.num_rows), replace=False))
        half = len(rows) // 2
        probed = [
            self._parts(name, theta, tuple(array[some] for array in self.data))
            for some in (rows, rows[:half], rows[half:])
        ]
        seen = []
        for whole, first, second in zip(*probed, strict=True):
            if not whole.shape == first.shape == second.shape:
                return False
            with np.errstate(invalid="ignore"):
                size = np.abs(first) + np.abs(second)
                rounding = 1e-6 * (1.0 + np.max(size, where=np.isfinite(size), initial=0.0))
                off = np.abs(whole - first - second) > 1e-3 * size + rounding
            if np.any(off):
                where = np.unravel_index(np.argmax(off), off.shape)
                raise InvalidInputError(
                    f"{'log_likelihood' if name == '__call__' else name} does not sum over the rows of a batch: "
                    f"{whole[where]:.6g} for {len(rows)} rows, but {first[where]:.6g} and {second[where]:.6g} for its "
                    "halves. It must not average or scale: Minibatches does"
                )
            seen.append(np.any(np.isfinite(size) & (size > 10.0 * rounding)))
        return all(seen)


def as_indexed(array: Any) -> Any:
    """``array`` as an object that is indexed by row numbers; objects of pandas would be indexed by labels."""
    if isinstance(array, (list, tuple)) or hasattr(array, "iloc"):
        try:
            array = np.asarray(array)
        except ValueError:
            raise InvalidTypeError("data must be arrays; got a list of rows of unequal lengths") from None
    if not getattr(array, "shape", ()):
        raise InvalidTypeError(
            f"data must be arrays, with a shape (N, ...), or lists; got {reprlib.repr(array)}"
        )
    return array


@dataclass(frozen=True, eq=False)
class Batch:
    """The log-likelihood of a batch of data, multiplied by ``scale``."""

    owner: Minibatches
    data: tuple[Any, ...]
    scale: float

    def __call__(self, theta: Array) -> Array:
        """The scaled log-likelihood, (S, d) -> (S,)."""
        return self._scaled("__call__", theta)[0]

    def value_and_grad(self, theta: Array) -> tuple[Array, ...]:
        """The scaled log-likelihood (S,) and its gradients (S, d)."""
        return self._scaled("value_and_grad", theta)

    def value_grad_and_squares(self, theta: Array) -> tuple[Array, ...]:
        """The same as `value_and_grad`, and the scaled sum over the rows of their squared gradients, (S, d)."""
        return self._scaled("value_grad_and_squares", theta)

    def _scaled(self, name: str, theta: Array) -> tuple[Array, ...]:
        return tuple(self.scale * part for part in self.owner.evaluate(name, theta, self.data))
