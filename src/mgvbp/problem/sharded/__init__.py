"""Data in shards: see `ShardedLikelihood`."""

from mgvbp.problem.sharded.likelihood import ShardedLikelihood

__all__ = ["ShardedLikelihood"]
