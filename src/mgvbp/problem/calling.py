"""How the user's functions are called with draws, and what they may return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import EvaluationError, MgvbpError
from mgvbp.problem.blocks import called_in_blocks, is_jitted


def takes_one(function: Callable[[Array], Any], theta: Array, error: Exception) -> bool:
    """Whether a function that failed with all draws ``theta`` gives a number for one of them.

    If it gives none for one draw either, ``error`` gets a note that says what came.
    """
    one = theta[0].copy()
    try:
        value = np.asarray(function(one))
    except Exception as other:
        came = f"raised {type(other).__name__}: {other}; the draw is an array of shape {one.shape}"
    else:
        if value.ndim == 0 and value.dtype.kind in "fiu":
            return True
        came = f"returned {value.dtype} values of shape {value.shape}; expected a number"
    if not isinstance(error, MgvbpError):
        error.add_note(f"called with one draw instead, it {came}")
    return False


def called(function: Callable[[Array], Any], theta: Array, vectorized: bool = True, advice: str = "") -> Any:
    """Call the user's function with all draws, or with one after the other, which gives a list.

    An exception passes through and has the function's argument as its attribute ``theta``.
    """
    given, found = theta, []
    try:
        if vectorized:
            return called_in_blocks(function, theta) if is_jitted(function) else function(theta)
        for given in theta:
            found.append(function(given))
        return found
    except Exception as error:
        error.theta = given  # type: ignore[attr-defined]
        if not isinstance(error, MgvbpError):
            if not advice and given.ndim == 2:
                advice = "; if it takes one draw at a time, say vectorized=False"
            error.add_note(
                "raised by the function given to mgvbp; its argument is this exception's "
                f".theta {given.shape}{advice}"
            )
        raise


def checked_values(values: Any, theta: Array, name: str, vectorized: bool | None = None) -> Array:
    """``values`` as float64 (S,), or an error that says what came.

    ``vectorized`` tells whether a user's function was called with all draws; None if there was no such choice.
    """
    array = as_values(values, theta, name)
    if array.ndim > 1 and vectorized is False:
        raise EvaluationError(
            f"{name} returned shape {array.shape[1:]} for one draw; expected a number: is a sum missing?",
            theta,
        )
    if array.shape != (len(theta),):
        advice = ""
        if array.ndim > 1 and len(array) == len(theta):
            advice = ": is a sum over axis=1 missing?"
        elif vectorized and (array.size == 1 or array.shape == theta.shape[1:]):
            # a row, theta[0], was taken for a number
            advice = "; it looks written for one draw: try vectorized=False"
        raise EvaluationError(
            f"{name} returned shape {array.shape}; expected ({len(theta)},): one value per draw{advice}",
            theta,
        )
    return array.astype(np.float64, copy=False)


def as_values(values: Any, theta: Array, name: str) -> np.ndarray[Any, Any]:
    """What the user's function returned as an array of real numbers, of any shape."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise EvaluationError(f"{name} returned values of unequal shapes", theta) from None
    if array.dtype == object and array.size and all(value is None for value in array.flat):
        raise EvaluationError(f"{name} returned None; expected real numbers: is its return missing?", theta)
    if array.dtype.kind not in "fiu":
        what = f"{array.dtype} values" if array.ndim else f"a {type(values).__name__}"
        raise EvaluationError(f"{name} returned {what}; expected real numbers", theta)
    return array


def checked_derivatives(rows: Any, theta: Array, name: str) -> Array:
    """Derivatives as float64 (S, d), or an error that says what came."""
    try:
        array = np.asarray(rows)
    except ValueError:
        raise EvaluationError(
            f"{name} returned rows of unequal lengths; expected real numbers {theta.shape}", theta
        ) from None
    if array.dtype.kind not in "fiub" or array.shape != theta.shape:
        raise EvaluationError(
            f"{name} returned {array.dtype} derivatives of shape {array.shape}; expected real numbers {theta.shape}",
            theta,
        )
    return array.astype(np.float64, copy=False)
