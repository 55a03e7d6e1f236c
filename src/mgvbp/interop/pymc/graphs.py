"""PyMC's graphs as functions of draws: by JAX if it is there, with gradients, else by PyTensor's own NumPy code."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.interop.functions.jax_function import JaxLikelihood

Function = Callable[..., list[Array]]


@contextmanager
def quietly() -> Iterator[None]:
    """Rewrites of PyTensor that fail leave the graph as it is, and are not shown as errors with their tracebacks.

    One does where a slice of θ ends beyond 127 (PyTensor 2.38 counts in eight bits), as in random walks of 200 days.
    """
    logger = logging.getLogger("pytensor.graph.rewriting.basic")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


class Once:
    """A function that is called once, as its result is kept. A pickle leaves the result out: it is compiled code."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __reduce__(self) -> tuple[Any, ...]:
        return Once, (self._make,)

    @cached_property
    def _made(self) -> Any:
        return self._make()

    def __call__(self) -> Any:
        """The thing itself."""
        return self._made


class GraphDensity:
    """The log density of PyMC as a function of draws, (S, d) -> (S,), with its gradient; compiled on first use.

    JAX compiles it in seconds, where PyTensor's C or numba code takes a minute, and is asked first. What PyTensor
    cannot translate to JAX, or everything if JAX is not installed, is computed by PyTensor with NumPy, which needs no
    compiler: all draws are computed together, so that the Python code between the arrays hardly counts.

    Parameters
    ----------
    theta, graph : pytensor variables
        The unconstrained numbers of one draw, (d,), and the log density, a scalar.
    """

    def __init__(self, theta: Any, graph: Any) -> None:
        self._theta, self._graph = theta, graph

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphDensity, (self._theta, self._graph)

    @cached_property
    def backend(self) -> str:
        """What computes the density: "jax" or "pytensor"."""
        return "pytensor" if self._jax is None else "jax"

    @cached_property
    def _jax(self) -> JaxLikelihood | None:
        return in_jax(self._theta, self._graph)

    @property
    def traced(self) -> Callable[..., Any] | None:
        """The log density of one draw, (d,) -> scalar, for JAX; None if PyTensor computes it."""
        return None if self._jax is None else self._jax.traced

    @cached_property
    def _values(self) -> Callable[[Array], Array]:
        if self._jax is not None:
            return self._jax
        function = over_draws([self._theta], [self._graph])
        return lambda theta: np.asarray(function(theta)[0], np.float64)

    @cached_property
    def _value_and_grad(self) -> Callable[[Array], tuple[Array, Array]] | None:
        if self._jax is not None:
            return self._jax.value_and_grad
        function = with_gradient(self._theta, self._graph)
        if function is None:
            return None
        return lambda theta: cast(tuple[Array, Array], tuple(function(theta)))

    @property
    def value_and_grad(self) -> Callable[[Array], tuple[Array, Array]]:
        """Values (S,) and gradients (S, d) at the rows of θ; the attribute is missing if a part has no gradient."""
        if self._value_and_grad is None:
            raise AttributeError("value_and_grad: a part of the model has no gradient")
        return self._value_and_grad

    def __call__(self, theta: Array) -> Array:
        """The log density at each row of θ, (S, d) -> (S,)."""
        return self._values(theta)


def in_jax(theta: Any, graph: Any) -> JaxLikelihood | None:
    """The scalar ``graph`` of ``theta`` (d,) in JAX; None if JAX is not installed or lacks one of its operations."""
    if find_spec("jax") is None:
        return None
    jax = require("jax", "pymc")
    switch = jax.config.jax_enable_x64
    dispatch = require("pytensor.link.jax.dispatch", "pymc")
    # PyTensor has turned it on for the whole process, if this was its first import
    jax.config.update("jax_enable_x64", switch)
    modes, graphs = require("pytensor.compile.mode", "pymc"), require("pytensor.graph.fg", "pymc")
    try:
        # assertions that JAX leaves out are announced; those of PyMC have become −inf already
        with jax.enable_x64(True), warnings.catch_warnings(action="ignore"), quietly():
            whole = graphs.FunctionGraph([theta], [in_float64(graph)], clone=True)
            modes.JAX.optimizer.rewrite(whole)
            translated = dispatch.jax_funcify(whole)
            density = JaxLikelihood(lambda row: translated(row)[0])
            row = jax.ShapeDtypeStruct(theta.type.shape, np.float64)
            traced = jax.make_jaxpr(jax.value_and_grad(density.traced))(row)
    except (
        Exception
    ):  # of many kinds, as operations have translations of their own; PyTensor computes the same
        return None
    return None if "f32[" in str(traced) else density  # single precision has noise that a fit can see


def in_float64(graph: Any) -> Any:
    """The graph with constants of 64 bits in place of those that PyMC made of Python's numbers in 32.

    PyTensor's translation to JAX makes zeros of no definite type, which then become those of the constants.
    """
    tensor, traversal = require("pytensor.tensor", "pymc"), require("pytensor.graph.traversal", "pymc")
    kind = require("pytensor.tensor.variable", "pymc").TensorConstant
    short = [
        c
        for c in traversal.graph_inputs([graph])
        if isinstance(c, kind) and c.dtype in ("float16", "float32")
    ]
    return replaced([graph], {c: tensor.constant(c.data, dtype="float64") for c in short})[0]


def numpy_mode() -> Any:
    """PyTensor's mode in which NumPy computes: nothing is compiled, nor fused to what would need a compiler.

    The last rewrite that it leaves out fails for determinants of many matrices at once (PyTensor 2.38).
    """
    mode = require("pytensor.compile.mode", "pymc").Mode(linker="py", optimizer="fast_run")
    return mode.excluding("fusion", "inplace", "slogdet_specialization")


def over_draws(inputs: Sequence[Any], outputs: Sequence[Any]) -> Function:
    """A function whose ``inputs`` and ``outputs`` have a leading axis for the draws, computed by NumPy."""
    rows, graphs = vectorized(inputs, outputs)
    function = compiled(rows, graphs)
    constant = [not depends(graph, inputs) for graph in outputs]

    def evaluate(*arrays: Array) -> list[Array]:
        found = function(*arrays)
        return [
            np.broadcast_to(value, (len(arrays[0]), *np.shape(value))) if fixed else value
            for value, fixed in zip(found, constant, strict=True)
        ]

    return evaluate


def with_gradient(theta: Any, graph: Any) -> Function | None:
    """Values (S,) and gradients (S, d) of the scalar ``graph`` of ``theta`` (d,); None if a part has no gradient."""
    gradient = require("pytensor.gradient", "pymc")
    rows, (values,) = vectorized([theta], [graph])
    try:
        # a row's value depends on that row alone, so that the gradient of the sum has the rows' gradients
        return compiled(rows, [values, gradient.grad(values.sum(), rows[0])])
    except (NotImplementedError, AttributeError, TypeError):  # what operations without a gradient raise
        return None


def vectorized(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """``inputs`` and ``outputs`` with a leading axis for the draws."""
    replace = require("pytensor.graph.replace", "pymc")
    rows = [given.type.clone(shape=(None, *given.type.shape))() for given in inputs]
    return rows, replace.vectorize_graph(list(outputs), dict(zip(inputs, rows, strict=True)))


def compiled(inputs: Sequence[Any], outputs: Sequence[Any]) -> Function:
    """PyTensor's function; not every output needs every input, and draws are float64 whatever PyTensor is set to."""
    with quietly():
        function = require("pytensor", "pymc").function(
            inputs, outputs, mode=numpy_mode(), on_unused_input="ignore", allow_input_downcast=True
        )
    return cast(Function, function)


def frozen(graphs: Sequence[Any]) -> list[Any]:
    """The graphs with the present values of ``pm.Data``, and of the lengths of axes, as constants."""
    tensor, traversal = require("pytensor.tensor", "pymc"), require("pytensor.graph.traversal", "pymc")
    shared = require("pytensor.compile.sharedvalue", "pymc").SharedVariable
    kind = require("pytensor.tensor.type", "pymc").TensorType
    found = [v for v in traversal.graph_inputs(graphs) if isinstance(v, shared) and isinstance(v.type, kind)]
    return replaced(graphs, {v: tensor.constant(v.get_value(), dtype=v.dtype) for v in found})


def replaced(graphs: Sequence[Any], replacements: dict[Any, Any]) -> list[Any]:
    """The graphs with other variables in place of some; shapes that are now known are used."""
    clone = require("pytensor.graph.replace", "pymc").clone_replace
    return list(clone(list(graphs), replacements, rebuild_strict=False))


def without_checks(graph: Any) -> Any:
    """The graph of a log density that is −inf where PyMC's checks of parameters would raise.

    PyMC's samplers do the same. It has to be done in the graph of a single draw: in a graph of many draws a check is
    made of all draws together, and one bad draw would spoil the others.
    """
    rewriting = require("pytensor.graph.rewriting.utils", "pymc")
    include = ("canonicalize", "local_check_parameter_to_ninf_switch")
    with quietly():
        return rewriting.rewrite_graph(graph, include=include)


def depends(graph: Any, inputs: Sequence[Any]) -> bool:
    """Whether any of ``inputs`` is in the ``graph``."""
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    return not set(inputs).isdisjoint(ancestors([graph]))
