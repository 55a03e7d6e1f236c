"""A JAX function of one draw, compiled for any number of draws, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import EvaluationError, MgvbpError
from mgvbp.problem.blocks import blocks


class Compiled:
    """A function mapped over the leading axis of its first argument: NumPy arrays, or a dict of them, in and out.

    Further arguments are data, the same for all rows. They are not constants of the compiled function: other data
    need a compilation only if their shapes or types differ.

    The draws are evaluated in blocks of few sizes (`problem.blocks`). The last block is filled up with zeros, whose
    values are cut off. So there are at most five compilations, at most 15 wasted evaluations, and the memory is that of
    1,024 draws.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        require("jax", "jax")
        self._function = function
        self._mapped: dict[Any, Callable[..., Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:  # a pickle leaves out the compiled functions
        return Compiled, (self._function,)

    def __call__(self, rows: Any, *data: Any) -> Any:
        """The results of the function for each row."""
        jax = require("jax", "jax")
        leaves, arrays, parts = jax.tree.leaves(rows), [np.asarray(array) for array in data], []
        key = *(array.shape[1:] for array in leaves), *((array.shape, array.dtype) for array in arrays)
        number = len(leaves[0])
        # the switch for 64 bits is local to this block, and JAX's cache distinguishes its values
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

    JAX caches its version of a NumPy array by the array's identity, as long as a traced function holds the array.
    Without copies, our 64-bit version would make the user's own 32-bit functions fail.
    """
    jax, core = require("jax", "jax"), require("jax.extend.core", "jax")
    # a new lambda is traced, so that JAX forgets the trace when the lambda is deleted
    traced, shapes = trace(lambda *arguments: function(*arguments), *like)
    copies = [np.array(c) if isinstance(c, np.ndarray) else c for c in traced.consts]
    flat = core.jaxpr_as_fun(core.ClosedJaxpr(traced.jaxpr, copies))
    structure = jax.tree.structure(shapes)
    return lambda *arguments: jax.tree.unflatten(structure, flat(*jax.tree.leaves(arguments)))


def trace(function: Callable[..., Any], *like: Any) -> tuple[Any, Any]:
    """JAX's trace of a function and the shapes of its results; if it cannot be traced, the error says what to do."""
    jax = require("jax", "jax")
    try:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*like)
        if any(halved(constant) for constant in constants(traced)):
            # JAX may have cached these arrays in 32 bits: the data would be rounded, or a later call would fail
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
    """The arrays that a traced function, and the functions within it, close over."""
    jax = require("jax", "jax")
    yield from closed.consts
    for equation in closed.eqns:
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda part: hasattr(part, "consts")):
            if hasattr(inner, "consts"):
                yield from constants(inner)


def halved(constant: Any) -> bool:
    """Whether this is a NumPy array of 32 bits that may have had 64; JAX arrays keep the type they were given."""
    return isinstance(constant, np.ndarray) and constant.dtype in (np.float32, np.int32, np.uint32)


def advice(error: Exception) -> str:
    """What to do about an error of JAX."""
    jax = require("jax", "jax")
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "write it with jax.numpy in place of numpy, or do without from_jax and grad='jax'"
    if isinstance(error, jax.errors.ConcretizationTypeError | jax.errors.NonConcreteBooleanIndexError):
        return "in place of Python's if, float() and masks use jax.numpy.where or jax.lax.cond"
    return (
        "expected one of a draw, (d,) -> real scalar, or of all draws, (S, d) -> (S,); vectorized=True or False says "
        "which"
    )


def filled(block: Array, size: int) -> Array:
    """``block``, followed by rows of zeros, with ``size`` rows in all."""
    return np.concatenate([block, np.zeros((size - len(block), *block.shape[1:]))])
