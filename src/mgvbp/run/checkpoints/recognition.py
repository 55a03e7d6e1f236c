"""Is this the model of the checkpoint? It is asked again for the values of two draws that the file has."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError

Function = Callable[[Array], tuple[Array, ...]]
"""Draws (S, d) to what `Problem.evaluate_at` returns for them."""
DOUBLE, SINGLE = 1e-6, 1e-3
"""Relative tolerances. Another platform changes the last digits of a double; numbers of single precision have seven
digits, and their sums depend on how many draws are evaluated at once."""
ROUNDING = 1e-9
"""Error of the difference of two doubles in units of the larger one, which leaves room for sums of many terms."""


def recognise(theta: Array, before: tuple[Array, ...], evaluate: Function, path: str | PathLike[str]) -> None:
    """Raise if the model no longer has the values ``before``, which were finite, at the draws ``theta``."""
    try:
        again = evaluate(theta.copy())  # which the model may change
    except Exception as error:
        raise InvalidInputError(
            f"the model could not be evaluated at the first draws of {path}, of dimension {theta.shape[1]}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if otherwise := difference(before, again):
        raise InvalidInputError(
            f"{path} is the checkpoint of another model: {otherwise}; if the log-likelihood is a "
            "random one, resume(..., check=False)"
        )


def difference(before: tuple[Array, ...], again: tuple[Array, ...]) -> str:
    """What differs at one or two draws, in words; empty if nothing does.

    The difference of two values is compared too: a large constant, which hides a small change of the data in the
    values, is not in it.
    """
    for name, old, new in zip(("values", "gradients", "squares"), before, again, strict=False):
        with np.errstate(over="ignore"):
            single = np.array_equal(old.astype(np.float32), old, equal_nan=True)
        rtol, scale = (SINGLE if single else DOUBLE), np.abs(old[np.isfinite(old)]).max(initial=0.0)
        if name != "values":
            if not np.allclose(new, old, rtol, rtol * scale + 1e-9, equal_nan=True):
                return f"a draw has other {name}"
            continue
        same = np.isclose(new, old, rtol, 1e-9)
        if not same.all():
            row = int(np.argmin(same))
            return f"a draw had the log-likelihood {old[row]:.10g}, and has {new[row]:.10g} now"
        apart, now = old[-1] - old[0], new[-1] - new[0]
        if abs(now - apart) > rtol * abs(apart) + (SINGLE if single else ROUNDING) * scale + 1e-9:
            return f"the log-likelihoods of two draws were {apart:.10g} apart, and are {now:.10g} now"
    return ""
