"""The numbers that a posterior is made of, one by one, on the scale of their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError, UnknownNameError
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.marginal import Marginal, marginal
from mgvbp.posterior.posterior import Posterior
from mgvbp.problem.parameters import Parameters, indexed
from mgvbp.transforms import Elementwise, Real

UNNAMED = "theta"
"""What `Posterior.draws` calls θ where the parameters have no names."""


class Entry(NamedTuple):
    """One number: an entry of a parameter's value, or of θ where the parameters have no names.

    Attributes
    ----------
    label : str
        The name, with the index where there is one.
    name, shape, position :
        The parameter, the shape of its value, and the number's place among those of the value in C order.
    column : int or None
        The number of the single entry of θ that decides it; None if it depends on several.
    transform : Elementwise or None
        The increasing function that maps this entry to it.
    """

    label: str
    name: str
    shape: tuple[int, ...]
    position: int
    column: int | None = None
    transform: Elementwise | None = None

    def of(self, draws: Mapping[str, Array]) -> Array:
        """The draws (N,) of this number, out of those of all parameters, each (N, *shape)."""
        values = draws[self.name]
        return values.reshape(len(values), -1)[:, self.position]

    def law(self, q: Gaussian) -> Marginal | None:
        """The distribution of this number if θ ~ ``q``, with exact density and quantiles; None without a formula."""
        if self.column is None or self.transform is None:
            return None
        own = slice(self.column, self.column + 1)
        return marginal(
            Gaussian(q.mean[own], variance=q.std[own] ** 2), Parameters({"value": self.transform}), "value"
        )


def chosen(posterior: Posterior, names: str | Iterable[str] | None, most: int) -> list[Entry]:
    """The entries of the parameters, or those with the labels, in ``names``; by default all. ``most`` are allowed."""
    if not isinstance(posterior, Posterior):
        raise InvalidTypeError(f"expected a posterior, as mgvbp.fit returns it; got {posterior!r}")
    by_name = _entries(posterior)
    if names is None:
        own = by_name if posterior.parameters is None else posterior.parameters.names
        found = [entry for name in own for entry in by_name[name]]
    else:
        found = _with_names(by_name, [names] if isinstance(names, str) else names)
    if len(found) > most:
        raise InvalidInputError(
            f"{len(found):,} panels are too many to read, {most} at most: choose with names=, such as "
            f"names={[entry.label for entry in found[:2]]!r}"
        )
    return found


def _entries(posterior: Posterior) -> dict[str, list[Entry]]:
    parameters = posterior.parameters
    if parameters is None:
        shape = (posterior.dim,)
        every = [Entry(label, UNNAMED, shape, i, i, Real()) for i, label in enumerate(posterior.labels)]
        return {UNNAMED: every} if UNNAMED not in posterior.labels else {e.label: [e] for e in every}
    shapes = {name: np.shape(v)[1:] for name, v in parameters.constrain(posterior.mean[None]).items()}
    known = parameters.transforms if isinstance(parameters, Parameters) else {}
    slices = parameters.slices if isinstance(parameters, Parameters) else {}
    by_name = {}
    for name, shape in shapes.items():
        transform = known.get(name)
        single = transform.single if isinstance(transform, Elementwise) else None
        by_name[name] = [
            Entry(label, name, shape, i, slices[name].start + i if single else None, single)
            for i, label in enumerate(indexed(name, shape))
        ]
    return by_name


def _with_names(by_name: Mapping[str, list[Entry]], names: Iterable[str]) -> list[Entry]:
    by_label = {entry.label: [entry] for entries in by_name.values() for entry in entries}
    if not isinstance(names, Iterable):
        raise InvalidTypeError(f"names must be names of parameters, or labels of entries; got {names!r}")
    found: list[Entry] = []
    for name in names:
        entries = (by_name.get(name) or by_label.get(name)) if isinstance(name, str) else None
        if entries is None:
            known = [*by_name, *(label for label in by_label if label not in by_name)]
            more = ", ..." if len(known) > 20 else ""
            raise UnknownNameError(
                f"no parameter is called {name!r}; there are {', '.join(known[:20])}{more}"
            )
        found += entries
    if not found:
        raise InvalidInputError("names is empty; leave it out to see all")
    return found
