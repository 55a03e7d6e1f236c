"""Draws of a posterior in the data format of ArviZ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core.linalg import Array

if TYPE_CHECKING:
    from xarray import DataTree


def data_tree(
    theta: Array,
    *,
    values: Mapping[str, Array] | None,
    labels: Sequence[str] | None,
    stats: Mapping[str, Array],
    pointwise: Callable[[Array], Array] | None,
    chains: int = 1,
) -> DataTree:
    """An ArviZ DataTree of draws ``theta`` (S, d), which are those of ``chains`` chains, one after the other.

    Parameters
    ----------
    values : mapping of str to ndarray of shape (S, *shape), or None
        The named parameters on their constrained scale; None if they have no names.
    labels : sequence of str, or None
        What each entry of θ stands for, if that is known.
    stats : mapping of str to ndarray of shape (S,)
        For the group ``sample_stats``.
    pointwise : callable, or None
        (S, d) -> (S, N), the log-likelihood of each observation. If it is a method of a model that has the
        observations as ``y``, they are exported too.
    """
    from arviz_base import from_dict

    from mgvbp.models import RegressionModel

    groups: dict[str, Mapping[str, Any]] = {"posterior": values or {"theta": theta}, "sample_stats": stats}
    if values is not None:
        groups["unconstrained_posterior"] = {"theta": theta}
    if pointwise is not None:
        groups["log_likelihood"] = {"y": pointwise(theta)}
    arrays = {
        group: {name: by_chain(np.asarray(draws), chains) for name, draws in variables.items()}
        for group, variables in groups.items()
    }
    model = getattr(pointwise, "__self__", None)
    y = np.asarray(getattr(model, "y", None))
    if pointwise is not None and y.shape == groups["log_likelihood"]["y"].shape[1:]:
        arrays["observed_data"] = {"y": y}
    coords = {"beta_dim_0": list(model.names)} if isinstance(model, RegressionModel) else None
    tree = from_dict(arrays, coords=coords)
    if labels is not None:
        # these labels are for this group only, since a named parameter may be called theta too
        node = tree["posterior" if values is None else "unconstrained_posterior"]
        node.dataset = node.to_dataset().assign_coords(theta_dim_0=list(labels))
    return tree


def by_chain(draws: Array, chains: int) -> Array:
    """Draws (S, ...) as (chains, S / chains, ...)."""
    return draws.reshape(chains, -1, *draws.shape[1:])
