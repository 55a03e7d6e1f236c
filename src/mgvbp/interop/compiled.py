"""A JAX function of one draw, compiled for any number of draws, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import EvaluationError, MgvbpError

SIZES = (1024, 256, 64, 16)
"""Draws in a block. JAX compiles once for each size it meets, and batches change theirs at every iteration."""


def compiled(function: Callable[..., Any]) -> Compiled:
    """``function``, of one draw, as a function of any number of them."""
    require("jax", "jax")
    return Compiled(function)


class Compiled:
    """A function mapped over the leading axis of its first argument: NumPy arrays, or a dict of them, in and out.

    Further arguments, data, are the same for all rows. They are no constants of what is compiled: other data need no
    compilation, but for another number of them.

    The draws are taken in blocks of the `SIZES`, the last one filled up with zeros whose values are cut off: at most
    five compilations whatever comes, 15 evaluations wasted, and the memory of 1,024 draws.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._mapped: dict[Any, Callable[..., Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:  # what is traced stays here
        return Compiled, (self._function,)

    def __call__(self, rows: Any, *data: Any) -> Any:
        """What the function gives for each row."""
        jax = require("jax", "jax")
        leaves, arrays, parts = jax.tree.leaves(rows), [np.asarray(array) for array in data], []
        key = *(array.shape[1:] for array in leaves), *((array.shape, array.dtype) for array in arrays)
        number = len(leaves[0])
        # the switch for 64 bits holds within this block alone, and is part of the key of JAX's cache
        with jax.enable_x64(True):
            if key not in self._mapped:
                row = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape[1:], float), rows)
                function = detached(self._function, row, *arrays)
                self._mapped[key] = jax.jit(jax.vmap(function, in_axes=(0, *(None for _ in arrays))))
            for start, size in blocks(number):
                block = jax.tree.map(lambda array, s=start, n=size: filled(array[s : s + n], n), rows)
                values = self._mapped[key](block, *arrays)
                parts.append(jax.tree.map(lambda out, n=number - start: np.asarray(out)[:n], values))
        return jax.tree.map(lambda *outputs: np.concatenate(outputs), *parts)


def detached(function: Callable[..., Any], *like: Any) -> Callable[..., Any]:
    """``function`` as JAX traces it for such arguments, with copies of the arrays that it closes over.

    JAX remembers what it made of a NumPy array by the array's identity, for as long as anything traced holds it: after
    ours in 64 bits the user's own functions of 32 would fail.
    """
    jax, core = require("jax", "jax"), require("jax.extend.core", "jax")
    # of a function made here, with which JAX forgets the trace
    traced, shapes = trace(lambda *arguments: function(*arguments), *like)
    copies = [np.array(c) if isinstance(c, np.ndarray) else c for c in traced.consts]
    flat = core.jaxpr_as_fun(core.ClosedJaxpr(traced.jaxpr, copies))
    structure = jax.tree.structure(shapes)
    return lambda *arguments: jax.tree.unflatten(structure, flat(*jax.tree.leaves(arguments)))


def trace(function: Callable[..., Any], *like: Any) -> tuple[Any, Any]:
    """JAX's trace of a function and the shapes of what it returns; where there is none, what to do."""
    jax = require("jax", "jax")
    try:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*like)
        if any(halved(constant) for constant in constants(traced)):
            # what JAX remembers of these arrays may be from a use in 32 bits: rounded data, or a failure later on
            del traced
            jax.clear_caches()
            traced, shapes = jax.make_jaxpr(function, return_shape=True)(*like)
    except MgvbpError:
        raise
    except (IndexError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise EvaluationError(
            f"JAX cannot use the function, {type(error).__name__}: {reason}; {advice(error)}"
        ) from error
    return traced, shapes


def constants(closed: Any) -> Iterator[Any]:
    """The arrays that a traced function, and those within it, have from elsewhere than their arguments."""
    jax = require("jax", "jax")
    yield from closed.consts
    for equation in closed.eqns:
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda part: hasattr(part, "consts")):
            if hasattr(inner, "consts"):
                yield from constants(inner)


def halved(constant: Any) -> bool:
    """Whether it is a NumPy array that may have had 64 bits; JAX's own have what their owner gave them."""
    return isinstance(constant, np.ndarray) and constant.dtype in (np.float32, np.int32, np.uint32)


def advice(error: Exception) -> str:
    """What to do about an error that JAX words for itself."""
    jax = require("jax", "jax")
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "write it with jax.numpy in place of numpy, or do without from_jax and grad='jax'"
    if isinstance(error, jax.errors.ConcretizationTypeError | jax.errors.NonConcreteBooleanIndexError):
        return "in place of Python's if, float() and masks use jax.numpy.where or jax.lax.cond"
    return (
        "expected one of a draw, (d,) -> real scalar, or with vectorized=True, the default of fit(grad='jax'), of all "
        "draws, (S, d) -> (S,)"
    )


def blocks(number: int) -> Iterator[tuple[int, int]]:
    """Starts and sizes of blocks that cover ``number`` rows, largest first; one for no row, to show the shapes."""
    start = 0
    if number == 1:  # steps along a line come one by one
        yield 0, 1
        return
    for size in SIZES:
        while number - start >= size:
            yield start, size
            start += size
    if start < number or number == 0:
        yield start, SIZES[-1]


def filled(block: Array, size: int) -> Array:
    """``block`` with rows of zeros behind it, ``size`` rows in all."""
    return np.concatenate([block, np.zeros((size - len(block), *block.shape[1:]))])
