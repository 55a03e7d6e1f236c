"""Shards on the workers of a Dask cluster, which may lose some of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from typing import Any

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import DivergenceError, InvalidTypeError, MgvbpWarning, warn_user
from mgvbp.problem.sharded.summing import Summing, Which, evaluate, is_delayed, is_future

ATTEMPTS = 6
"""How often an evaluation is tried if workers die during it: one that needs too much memory kills them all."""
PAUSE = 0.1
"""Seconds before the second attempt, doubled at each further one: a client hears of a death after its scheduler."""
GONE = ("cancelled", "lost")
"""States of a future whose value is nowhere."""
LIGHT = 50_000
"""Bytes of draws up to which a task carries its own copy: that is quicker than to put them where tasks find them."""


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
        computed = self._client.compute([self._sources[k] for k in delayed])
        self._shards.update(zip(delayed, computed, strict=True))
        self._shards.update(zip(others, self._scatter([self._sources[k] for k in others]), strict=True))

    def _sent_function(self) -> Any:
        return self._scatter([self.log_likelihood], broadcast=True)[0]

    def _scatter(self, things: list[Any], broadcast: bool = False) -> list[Any]:
        """Futures of things that are put on the workers. They are not hashed, which would read all data once more."""
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
                "workers-left",
            )
