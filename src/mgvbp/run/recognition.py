"""Is this the model of the checkpoint? It is asked again for the values of two draws that the file has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from os import PathLike

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError

Function = Callable[[Array], tuple[Array, ...]]
"""Draws (S, d) to what `Problem.evaluate_at` returns for them."""


def recognise(theta: Array, before: tuple[Array, ...], evaluate: Function, path: str | PathLike[str]) -> None:
    """Raise if the model no longer has the values ``before``, which were finite, at the draws ``theta``."""
    again = _at_the_second_attempt(evaluate, theta, path)
    if len(again) != len(before):
        raise InvalidInputError(
            f"{path} is the checkpoint of a model with {len(before) - 1} derivatives; this one has "
            f"{len(again) - 1}"
        )
    if otherwise := difference(before, again):
        raise InvalidInputError(
            f"{path} is the checkpoint of another model: {otherwise}; if the log-likelihood is a "
            "random one, resume(..., check=False)"
        )


def _at_the_second_attempt(evaluate: Function, theta: Array, path: str | PathLike[str]) -> tuple[Array, ...]:
    """What the model has at these draws; it may fail once, as a service does that has just been started."""
    with suppress(Exception):
        found = evaluate(theta.copy())  # which the model may change
        if np.isfinite(found[0]).all():
            return found
    try:
        return evaluate(theta.copy())
    except Exception as error:
        raise InvalidInputError(
            f"the model could not be evaluated at the first draws of {path}, of dimension {theta.shape[1]}: "
            f"{type(error).__name__}: {error}"
        ) from error


def difference(before: tuple[Array, ...], again: tuple[Array, ...]) -> str:
    """What differs at one or two draws, in words; empty if nothing does.

    The difference of two values is compared too: a large constant, which hides a small change of the data in the
    values, is not in it.
    """
    values, new = before[0], again[0]
    rtol, noise = _tolerances(values)
    same = np.isclose(new, values, rtol, 1e-9)
    if not same.all():
        row = int(np.argmin(same))
        return f"a draw had the log-likelihood {values[row]:.10g}, and has {new[row]:.10g} now"
    apart, now = values[-1] - values[0], new[-1] - new[0]
    if abs(now - apart) > rtol * abs(apart) + noise * np.abs(values).max() + 1e-9:
        return f"the log-likelihoods of two draws were {apart:.10g} apart, and are {now:.10g} now"
    for name, old, found in zip(("gradients", "squares"), before[1:], again[1:], strict=False):
        rtol, _ = _tolerances(old)
        scale = np.abs(old[np.isfinite(old)]).max(initial=0.0)
        if not np.allclose(found, old, rtol, rtol * scale + 1e-9, equal_nan=True):
            return f"a draw has other {name}"
    return ""


def _tolerances(array: Array) -> tuple[float, float]:
    """The relative tolerance of numbers, and that of the difference of two of them in units of the larger one.

    Another platform changes the last digits of a double: 1e-6 leaves room for sums of many terms, and half or twice of
    that would do as well. Numbers of single precision have seven digits, and their sums depend on how many draws are
    evaluated at once, so that only three are compared.
    """
    with np.errstate(over="ignore"):
        single = np.array_equal(array.astype(np.float32), array, equal_nan=True)
    return (1e-3, 1e-3) if single else (1e-6, 1e-9)
