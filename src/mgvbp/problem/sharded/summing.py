"""Sums over shards, of values and of derivatives; shards that are evaluated in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.problem.calling import checked_derivatives, checked_values
from mgvbp.problem.minibatch import DERIVATIVES

Which = NDArray[np.int64]


def evaluate(
    number: int, shard: Any, log_likelihood: Callable[..., Any], name: str, theta: Array
) -> tuple[Array, ...]:
    """What the method ``name`` of the function gives for a shard; checked here, where the data are.

    A function that forgets to sum would else send its rows home.
    """
    method = log_likelihood if name == "__call__" else getattr(log_likelihood, name)
    found = method(theta, shard)
    values, *derivatives = found if name in DERIVATIVES else (found,)
    label = f"{name} of shard {number}" if name in DERIVATIVES else f"log_likelihood of shard {number}"
    return checked_values(values, theta, label), *(checked_derivatives(d, theta, label) for d in derivatives)


class Summing(ABC):
    """The sum over some shards, of values or of derivatives too: a function as `Minibatches` takes it."""

    sums_over_rows = True
    workers_lost = 0

    def __init__(self, log_likelihood: Callable[[Array, Any], Any]) -> None:
        self.log_likelihood: Any = log_likelihood

    def __call__(self, theta: Array, which: Which) -> Array:
        """The sum of the log-likelihoods of the shards with these numbers, (S,)."""
        return self.total("__call__", theta, which)[0]

    def __getattr__(self, name: str) -> Any:
        """The derivatives that the function has, and its ``parameters``."""
        if name not in (*DERIVATIVES, "parameters") or not hasattr(self.log_likelihood, name):
            raise AttributeError(f"the log-likelihood of a shard has no {name!r}")
        return partial(self.total, name) if name in DERIVATIVES else getattr(self.log_likelihood, name)

    def total(self, name: str, theta: Array, which: Which) -> tuple[Array, ...]:
        """The sums over the shards with these numbers of what the method ``name`` of the function gives."""
        if theta.ndim != 2:
            raise InvalidInputError("a ShardedLikelihood takes all draws at once: leave vectorized=True")
        first, *others = self.terms(name, theta, which)
        totals = tuple(part.copy() for part in first)
        for other in others:
            for total, part in zip(totals, other, strict=True):
                total += part
        return totals

    @abstractmethod
    def terms(self, name: str, theta: Array, which: Which) -> Iterable[tuple[Array, ...]]:
        """What the shards give, from the first to the last."""


class InProcess(Summing):
    """Shards that are evaluated here, one after the other."""

    def __init__(self, log_likelihood: Callable[[Array, Any], Any], shards: list[Any]) -> None:
        super().__init__(log_likelihood)
        if any(is_delayed(shard) or is_future(shard) for shard in shards):
            raise InvalidInputError("these shards are Dask's: give client=")
        self._shards = shards

    def terms(self, name: str, theta: Array, which: Which) -> Iterable[tuple[Array, ...]]:
        """What the shards give."""
        return (evaluate(k, self._shards[k], self.log_likelihood, name, theta) for k in which)


def is_delayed(shard: Any) -> bool:
    """Whether a shard is something that Dask still has to compute."""
    return hasattr(shard, "__dask_graph__")


def is_future(shard: Any) -> bool:
    """Whether a shard is on a cluster already. A delayed object has every attribute."""
    return not is_delayed(shard) and hasattr(shard, "key") and hasattr(shard, "add_done_callback")
