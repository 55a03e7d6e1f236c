"""What the baselines share: the problem they are given, where they start, and a bar that shows how far they are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import Array, as_floats, positive_integer, true_or_false
from mgvbp.errors import InvalidInputError
from mgvbp.families import Gaussian
from mgvbp.problem import LogLikelihood, Prior, Problem, agreed_parameters


def target(
    log_likelihood: LogLikelihood, prior: Prior | None, dim: int | None, initial: ArrayLike | None
) -> Problem:
    """The posterior as a problem. Its dimension d is that of ``initial`` (..., d) where nothing else shows it."""
    known = isinstance(prior, Gaussian) or agreed_parameters(log_likelihood, prior) is not None
    if dim is not None:
        dim = positive_integer(dim, "dim")
    elif not known:
        if initial is None:
            raise InvalidInputError("the dimension is not known: give dim=, initial= or a Gaussian prior")
        shape = as_floats(initial, "initial").shape
        dim = shape[-1] if shape else 1
    return Problem(log_likelihood, prior, dim or 0)


def start(
    shape: tuple[int, ...],
    prior: Prior | None,
    initial: ArrayLike | None,
    spread: float,
    generator: np.random.Generator,
) -> Array:
    """Where to begin: at ``initial``, one point for all or one for each; else at draws around the prior's mean or 0."""
    if initial is None:
        centre = prior.mean if isinstance(prior, Gaussian) else 0.0
        return np.asarray(centre + spread * generator.standard_normal(shape))
    given = as_floats(initial, "initial")
    possible = dict.fromkeys((shape, shape[-1:]))
    if given.shape not in possible:
        raise InvalidInputError(
            f"initial has shape {given.shape}; expected {' or '.join(map(str, possible))}"
        )
    return np.broadcast_to(given, shape)


def counted(number: int, what: str, progress: bool) -> Iterable[int]:
    """1, ..., ``number``, with a bar on the terminal if wanted."""
    steps = range(1, number + 1)
    if not true_or_false(progress, "progress"):
        return steps
    from rich.console import Console
    from rich.progress import track

    return track(steps, what, console=Console(stderr=True))
