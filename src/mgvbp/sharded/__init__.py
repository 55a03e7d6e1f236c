"""Data in shards: see `ShardedLikelihood`."""

from mgvbp.sharded.likelihood import ShardedLikelihood

__all__ = ["ShardedLikelihood"]
