"""Draws from elsewhere, most often from MCMC, in all the forms in which they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.plots.entries import Entry
from mgvbp.posterior.posterior import Posterior

Draws = Mapping[str, ArrayLike] | ArrayLike | Any
"""One of: a dict of values by name, each (N, *shape) or (chains, n, *shape); an array of θ, (N, d) or (chains, n, d);
an object with such an array as ``draws``, as `mgvbp.baselines.Chains`; a DataTree or InferenceData of ArviZ with a
group ``posterior``, or that group alone."""


def columns(draws: Draws, posterior: Posterior, entries: list[Entry]) -> list[Array]:
    """The draws (N,) of each entry."""
    if isinstance(chains := getattr(draws, "draws", None), np.ndarray):
        draws = chains
    elif hasattr(draws, "posterior"):
        draws = draws.posterior
    if hasattr(draws, "data_vars"):
        draws = {str(name): variable.values for name, variable in draws.data_vars.items()}
    if isinstance(draws, Mapping):
        return [_column(draws, entry) for entry in entries]
    theta = _flat(as_floats(draws, "draws"), (posterior.dim,), "draws")
    values = posterior.named(theta)
    return [entry.of(values) for entry in entries]


def _column(draws: Mapping[str, ArrayLike], entry: Entry) -> Array:
    if entry.name in draws:
        values = _flat(as_floats(draws[entry.name], f"draws[{entry.name!r}]"), entry.shape, entry.name)
        return entry.of({entry.name: values})
    if entry.label in draws:
        return _flat(as_floats(draws[entry.label], f"draws[{entry.label!r}]"), (), entry.label)
    raise InvalidInputError(
        f"draws has no {entry.name!r}, only {', '.join(map(str, draws)) or 'nothing'}: choose with names="
    )


def _flat(values: Array, shape: tuple[int, ...], name: str) -> Array:
    """Draws (N, *shape), of one chain or of several."""
    extra = values.ndim - len(shape)
    if extra not in (1, 2) or values.shape[extra:] != shape or values.size == 0:
        own = "".join(f", {n}" for n in shape)
        raise InvalidInputError(
            f"the draws of {name} have shape {values.shape}; expected (N{own}) or (chains, n{own})"
        )
    return np.reshape(values, (-1, *shape))
