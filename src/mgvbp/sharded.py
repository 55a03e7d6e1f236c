"""A log-likelihood over data in shards, which may lie on the workers of a Dask cluster.

Draws travel to the data: each shard evaluates all draws of an iteration, and what comes back is one sum a draw (and
one gradient, where there are some). The sums are added in the order of the shards, whatever the order in which they
arrive, so that a cluster gives the same digits as one process.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array
from mgvbp.checks import positive_integer
from mgvbp.errors import DivergenceError, InvalidInputError, InvalidTypeError, MgvbpWarning, warn_user
from mgvbp.minibatch import DERIVATIVES, Batch, Minibatches
from mgvbp.optional import require
from mgvbp.problem import checked_derivatives, checked_values

Which = NDArray[np.int64]

ATTEMPTS = 6
"""How often an evaluation is tried that workers died under: one that needs too much memory kills them all."""
GONE = ("cancelled", "lost")
"""States of a future whose value is nowhere."""
LIGHT = 50_000
"""Bytes of draws up to which a task carries its own copy: that is quicker than to put them where tasks find them."""
PAUSE = 0.1
"""Seconds until the second of them, doubled with each: a client hears of a death a little after its scheduler."""


class ShardedLikelihood:
    """The log-likelihood of independent observations that lie in several places.

    Parameters
    ----------
    log_likelihood : callable
        ``log_likelihood(theta, shard)`` with draws (S, d) -> (S,): the *sum* over the rows of the shard, neither scaled
        nor with a prior in it, which would count once a shard. Methods ``value_and_grad(theta, shard)`` -> (S,),
        (S, d) and ``value_grad_and_squares`` bring derivatives.
    shards : list, or Dask collection
        A list of K of anything that the function understands (arrays, tuples of arrays, paths that it opens), of Dask
        futures or delayed objects; or a Dask array, bag or frame, whose partitions are the shards.
    client : distributed.Client, optional
        Where to evaluate; without one, in this process. Shards of a list are sent to the workers once; those of Dask
        stay where they are, or are computed there and kept.
    batch_shards : int, optional
        With fewer than K, each iteration sees so many shards, in the order of a shuffle per epoch, and their sum times
        K / ``batch_shards``. That is unbiased however the rows are spread, and the less noisy the more equal the shards
        are in size and kind: shuffle the rows before they are split.
    rng : int or numpy.random.Generator
        Seed of the shuffle.

    Attributes
    ----------
    num_shards : int
    workers_lost : int
        Workers that left the cluster so far. Each time there is a warning, what they had is sent or computed again, and
        the result is the same as if nothing had happened.

    Raises
    ------
    DivergenceError
        At a call, if a shard is lost for good: the user's own scattered future on a worker that died, or a shard whose
        evaluation takes every worker with it. `mgvbp.fit` then returns what it has so far.

    Examples
    --------
    >>> import numpy as np, mgvbp
    >>> y = np.random.default_rng(0).normal(2.0, 1.0, size=1000)
    >>> def log_likelihood(theta, y):
    ...     return -0.5 * ((y - theta) ** 2).sum(axis=1)
    >>> sharded = mgvbp.ShardedLikelihood(log_likelihood, np.array_split(y, 8))
    >>> mgvbp.fit(sharded, mgvbp.Gaussian(variance=10.0, dim=1)).mean.round(4)
    array([1.9518])

    With ``client=distributed.Client(...)`` the same, on its workers.
    """

    def __init__(
        self,
        log_likelihood: Callable[[Array, Any], Any],
        shards: Any,
        client: Any = None,
        batch_shards: int | None = None,
        rng: int | np.random.Generator = 0,
    ) -> None:
        if not callable(log_likelihood):
            raise InvalidTypeError(
                f"log_likelihood must be a function of draws and a shard; got {log_likelihood!r}"
            )
        listed = as_list(shards)
        self.num_shards = len(listed)
        size = self.num_shards if batch_shards is None else positive_integer(batch_shards, "batch_shards")
        if size > self.num_shards:
            raise InvalidInputError(f"batch_shards is {size}, but there are only {self.num_shards} shards")
        self._everything = np.arange(self.num_shards)
        self._sum: Summing = (
            InProcess(log_likelihood, listed) if client is None else OnWorkers(log_likelihood, listed, client)
        )
        self._batches = Minibatches(self._sum, self._everything, batch_size=size, rng=rng)

    @property
    def num_batches(self) -> int:
        """Iterations in an epoch."""
        return self._batches.num_batches

    @property
    def workers_lost(self) -> int:
        """Workers that left the cluster so far."""
        return self._sum.workers_lost

    def at(self, iteration: int) -> Batch:
        """The log-likelihood of iteration 1, 2, ...: that of some shards, as if of all."""
        return self._batches.at(iteration)

    def __call__(self, theta: Array) -> Array:
        """The log-likelihood of all data, (S, d) -> (S,)."""
        return self._sum(theta, self._everything)

    def __getattr__(self, name: str) -> Any:
        """What the function brings along: derivatives, of all data, and the names of the parameters."""
        if name not in (*DERIVATIVES, "parameters"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        if name == "parameters":
            return self._sum.log_likelihood.parameters
        return partial(getattr(self._sum, name), which=self._everything)


def as_list(shards: Any) -> list[Any]:
    """The shards one by one; partitions of a Dask collection as delayed objects."""
    if hasattr(shards, "to_delayed"):
        if any(count > 1 for count in getattr(shards, "numblocks", ())[1:]):
            raise InvalidInputError(
                f"the Dask array has {shards.numblocks} blocks: a shard needs whole rows, as after .rechunk({{1: -1}})"
            )
        return list(np.ravel(shards.to_delayed()))
    if not isinstance(shards, list | tuple):
        raise InvalidTypeError(
            "shards must be a list, or a Dask collection with partitions; "
            f"got {type(shards).__name__}: numpy.array_split(X, 8) makes eight shards of an array"
        )
    positive_integer(len(shards), "the number of shards")
    return list(shards)


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
        return self._total("__call__", theta, which)[0]

    def __getattr__(self, name: str) -> Any:
        """The derivatives that the function has."""
        if name not in DERIVATIVES or not hasattr(self.log_likelihood, name):
            raise AttributeError(f"the log-likelihood of a shard has no {name!r}")
        return partial(self._total, name)

    def _total(self, name: str, theta: Array, which: Which) -> tuple[Array, ...]:
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


class OnWorkers(Summing):
    """Shards that are evaluated where they lie, by the workers of a Dask cluster."""

    def __init__(self, log_likelihood: Callable[[Array, Any], Any], shards: list[Any], client: Any) -> None:
        super().__init__(log_likelihood)
        distributed = require("distributed", "dask")
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise InvalidTypeError(
                f"client must be a distributed.Client, not an asynchronous one; got {client!r}"
            )
        self._client = client
        self._sources = {k: shard for k, shard in enumerate(shards) if not is_future(shard)}
        self._shards = {k: shard for k, shard in enumerate(shards) if is_future(shard)}
        self._send(list(self._sources))
        self._function = self._sent_function()
        self._workers = set(client.nthreads())

    def __getstate__(self) -> None:
        raise InvalidTypeError(
            "a ShardedLikelihood with a client cannot leave this process, and need not: its workers share the work "
            "already; leave n_jobs= and joblib.parallel_config out"
        )

    def terms(self, name: str, theta: Array, which: Which) -> Iterable[tuple[Array, ...]]:
        """What the shards give; again, should the workers be lost that had them."""
        for attempt in range(ATTEMPTS):
            try:
                self._restore(theta)
                found = self._evaluate(name, theta, which)
            except CancelledError:  # a worker had data that nobody else has
                self._watch()
                time.sleep(PAUSE * 2**attempt)
            except require("distributed", "dask").KilledWorker:  # Dask has tried several workers
                self._watch()
                break
            else:
                self._watch()
                return found
        raise DivergenceError(
            "the workers that evaluate a shard die, one after the other: it may need more memory than they have; "
            "make smaller shards, or evaluate fewer draws at once (num_draws=)",
            theta,
        )

    def _evaluate(self, name: str, theta: Array, which: Which) -> list[tuple[Array, ...]]:
        numbers = [int(k) for k in which]
        shards = [self._shards[k] for k in numbers]
        # many draws travel once and not with each task
        draws = theta if theta.nbytes <= LIGHT else self._scatter([theta])[0]
        common = {"log_likelihood": self._function, "name": name, "theta": draws}
        return list(self._client.gather(self._client.map(evaluate, numbers, shards, **common, pure=False)))

    def _restore(self, theta: Array) -> None:
        """Send again what was on workers that are gone and is nowhere else."""
        lost = [k for k, shard in self._shards.items() if shard.status in GONE]
        if orphans := [k for k in lost if k not in self._sources]:
            raise DivergenceError(
                f"shards {orphans} were on a worker that is gone, and are nowhere else: give the data themselves, "
                "paths or delayed objects in place of scattered futures, or scatter them with broadcast=True",
                theta,
            )
        self._send(lost)
        if self._function.status in GONE:
            self._function = self._sent_function()

    def _send(self, numbers: list[int]) -> None:
        """Put shards on the workers; delayed objects are computed there."""
        delayed = [k for k in numbers if is_delayed(self._sources[k])]
        others = [k for k in numbers if k not in delayed]
        self._shards.update(
            zip(delayed, self._client.compute([self._sources[k] for k in delayed]), strict=True)
        )
        self._shards.update(zip(others, self._scatter([self._sources[k] for k in others]), strict=True))

    def _sent_function(self) -> Any:
        return self._scatter([self.log_likelihood], broadcast=True)[0]

    def _scatter(self, things: list[Any], broadcast: bool = False) -> list[Any]:
        """Futures of things of ours; without their hashes, which would take another look at all data."""
        if not things:
            return []
        try:
            return list(self._client.scatter(things, broadcast=broadcast, hash=False))
        except TimeoutError as error:
            raise DivergenceError(f"the cluster has no workers: {error}") from error

    def _watch(self) -> None:
        """Notice workers that are gone."""
        before, self._workers = self._workers, set(self._client.nthreads())
        if gone := len(before - self._workers):
            self.workers_lost += gone
            warn_user(
                f"{gone} of {len(before)} workers left the cluster; what they had is sent or computed again, and the "
                "run goes on",
                MgvbpWarning,
            )


def is_delayed(shard: Any) -> bool:
    """Whether a shard is something that Dask still has to compute."""
    return hasattr(shard, "__dask_graph__")


def is_future(shard: Any) -> bool:
    """Whether a shard is on a cluster already. A delayed object has every attribute."""
    return not is_delayed(shard) and hasattr(shard, "key") and hasattr(shard, "add_done_callback")
