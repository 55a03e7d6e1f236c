"""Draws of a posterior in the data format of ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core.linalg import Array

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

    from mgvbp.posterior.examined import Examined


def exported(
    posterior: Examined,
    theta: Array,
    stats: Mapping[str, Array],
    chains: int = 1,
    attributes: Mapping[str, Any] | None = None,
) -> Any:
    """Draws ``theta`` (S, d) as the installed ArviZ takes them; they are those of ``chains`` chains, end to end.

    The parameters of other packages' models may have ``dims`` and ``coords``, the names of axes and of the entries
    along them. ``stats``, (S,) each, become the group ``sample_stats``, and ``attributes`` those of the result and of
    the group ``posterior``. If the model gives the log-likelihood of each observation, (S, d) -> (S, N), by a method
    and has the observations as ``y``, they are exported too. Models of other packages have an `Observations` instead.
    """
    from arviz_base import dict_to_dataset
    from xarray import DataTree

    parameters = posterior.parameters
    coords, dims = dict(getattr(parameters, "coords", {})), dict(getattr(parameters, "dims", {}))
    likelihoods, data, names = observations(posterior._pointwise, theta)
    draws: dict[str, Mapping[str, Array]] = {
        "posterior": posterior.named(theta),
        "log_likelihood": likelihoods,
        "sample_stats": stats,
    }
    groups = {}
    for group, variables in draws.items():
        arrays = {name: by_chain(np.asarray(rows), chains) for name, rows in variables.items()}
        # the log-likelihood of an observation that is a vector is one number: it has the first axes only
        axes: dict[Any, Any] = {
            name: list(dims.get(name, ()))[: array.ndim - 2] for name, array in arrays.items()
        }
        if arrays:
            groups[group] = dict_to_dataset(arrays, coords=coords | names, dims=axes)
    for group, given in data.items():
        if given:
            groups[group] = dict_to_dataset(given, coords=coords, dims=dims, sample_dims=[])
    # the labels of θ are for this group only, since a named parameter may be called theta too
    unnamed = parameters is None and not posterior._labelled
    of_theta: dict[Any, Any] = {} if unnamed else {"theta_dim_0": list(posterior.labels)}
    group = "posterior" if parameters is None else "unconstrained_posterior"
    groups[group] = dict_to_dataset({"theta": by_chain(theta, chains)}, coords=of_theta)
    tree = DataTree.from_dict({group: without_slashes(dataset) for group, dataset in groups.items()})
    for node in (tree, tree["posterior"]):
        node.attrs.update(attributes or {})
    return for_arviz(tree)


def observations(
    pointwise: Callable[[Array], Any] | None, theta: Array
) -> tuple[dict[str, Array], dict[str, Mapping[str, Any]], dict[str, list[str]]]:
    """The log-likelihoods by observation, the data behind them by group, and the names of coefficients."""
    from mgvbp.interop import Observations
    from mgvbp.models import RegressionModel

    if isinstance(pointwise, Observations):
        data = {"observed_data": pointwise.observed_data, "constant_data": pointwise.constant_data}
        return pointwise(theta), data, {}
    if pointwise is None:
        return {}, {}, {}
    values, model = np.asarray(pointwise(theta)), getattr(pointwise, "__self__", None)
    y = np.asarray(getattr(model, "y", None))
    names = {"beta_dim_0": list(model.names)} if isinstance(model, RegressionModel) else {}
    return {"y": values}, {"observed_data": {"y": y} if y.shape == values.shape[1:] else {}}, names


def by_chain(draws: Array, chains: int) -> Array:
    """Draws (S, ...) as (chains, S / chains, ...)."""
    return draws.reshape(chains, -1, *draws.shape[1:])


def without_slashes(dataset: Dataset) -> Dataset:
    """The data with ``|`` in place of ``/`` in names, which in a tree lead to other groups."""
    names = (*dataset.variables, *dataset.dims)
    taken, renamed = {str(name) for name in names}, dict[Any, str]()
    for name in names:
        if "/" in str(name) and name not in renamed:
            new = str(name).replace("/", "|")
            while new in taken:  # there may be both a/b and a|b
                new += "|"
            taken.add(new)
            renamed[name] = new
    return dataset.rename(renamed)


def for_arviz(tree: DataTree) -> Any:
    """``tree`` as the installed ArviZ takes it: an ``InferenceData`` before version 1.0, from then on the tree itself.

    Without the package ``arviz``, which its parts ``arviz-base`` and ``arviz-stats`` do not need, it is the tree.
    """
    try:
        if int(metadata.version("arviz").partition(".")[0]) >= 1:
            return tree
        with warnings.catch_warnings(action="ignore"):  # it announces its own successor
            arviz = import_module("arviz")
    except (metadata.PackageNotFoundError, ImportError, AttributeError):  # 0.23 fails beside some matplotlibs
        return tree
    return arviz.InferenceData.from_datatree(tree)
