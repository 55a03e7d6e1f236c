"""A log-likelihood over data in shards, which may lie on the workers of a Dask cluster.

Draws travel to the data: each shard evaluates all draws of an iteration, and what comes back is one sum a draw (and
one gradient, where there are some). The sums are added in the order of the shards, whatever the order in which they
arrive, so that a cluster gives the same digits as one process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.problem.minibatch import Minibatches
from mgvbp.problem.sharded.cluster import OnWorkers
from mgvbp.problem.sharded.summing import InProcess, Summing


class ShardedLikelihood(Minibatches):
    """The log-likelihood of independent observations that lie in several places: `Minibatches` of shards.

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
        self._shards: Summing = (
            InProcess(log_likelihood, listed) if client is None else OnWorkers(log_likelihood, listed, client)
        )
        super().__init__(self._shards, np.arange(self.num_shards), batch_size=size, rng=rng)

    @property
    def workers_lost(self) -> int:
        """Workers that left the cluster so far."""
        return self._shards.workers_lost

    def _sum(self, name: str, theta: Array) -> tuple[Array, ...]:
        """The sums over all shards, which are evaluated at once."""
        return self._shards.total(name, theta, self.data[0])


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
