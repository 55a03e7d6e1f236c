"""The runs that a picture compares: one posterior, or several by name."""

from __future__ import annotations

from collections.abc import Mapping

from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.posterior.posterior import Posterior


def by_name(posteriors: object, several: bool) -> dict[str, list[Posterior]]:
    """The runs under each name: one, or a list if ``several`` are allowed. A single posterior has the name ""."""
    if isinstance(posteriors, Posterior):
        return {"": [posteriors]}
    what = "posterior or a list of posteriors" if several else "posterior"
    if not isinstance(posteriors, Mapping):
        raise InvalidTypeError(f"expected a posterior, or a dict of name to {what}; got {posteriors!r}")
    if not posteriors:
        raise InvalidInputError("the dict of posteriors is empty")
    found = {}
    for name, given in posteriors.items():
        runs = list(given) if several and isinstance(given, list | tuple) else [given]
        if not runs:
            raise InvalidInputError(f"there are no posteriors under {name!r}")
        if not all(isinstance(run, Posterior) for run in runs):
            raise InvalidTypeError(f"{name!r} must be a {what}; got {given!r}")
        found[str(name)] = runs
    return found
