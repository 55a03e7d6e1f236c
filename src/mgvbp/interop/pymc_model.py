"""PyMC models: PyMC's graph of the log density, vectorised over draws and compiled by PyTensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.interop.model import ForeignModel, ForeignParameters
from mgvbp.problem.parameters import slices_of

Function = Callable[..., list[Array]]


def from_pymc(model: Any, /) -> ForeignModel:
    """A PyMC model in the form that `mgvbp.fit` takes, without a prior: the model has its own.

    Parameters
    ----------
    model : pymc.Model
        A model whose free variables are all continuous.

    Returns
    -------
    ForeignModel
        The log density of the unconstrained values of the free variables, in the order of the model.
        `ForeignParameters.constrain` also gives the model's ``pm.Deterministic`` variables. Each function is compiled
        when it is first called, and uses the data that ``pm.set_data`` sets later.

    Raises
    ------
    InvalidInputError
        The model has discrete free variables, minibatches, or no free variable.
    MissingDependencyError
        PyMC is not installed.

    Examples
    --------
    ::

        with pm.Model() as model:
            mu = pm.Normal("mu", 0.0, 10.0)
            sigma = pm.HalfNormal("sigma", 5.0)
            pm.Normal("y", mu, sigma, observed=y)

        posterior = mgvbp.fit(mgvbp.from_pymc(model))
    """
    pymc = require("pymc", "pymc")
    if not isinstance(model, pymc.Model):
        raise InvalidTypeError(f"model must be a pymc.Model; got {model!r}")
    variables = free_variables(model)
    log_posterior = without_checks(model.logp(jacobian=True))
    if pymc.pytensorf.rvs_in_graph([log_posterior]):
        raise InvalidInputError("the log density is random: give the model all data, not a pm.Minibatch")
    values = [model.rvs_to_values[variable] for variable in variables]
    names = [variable.name for variable in variables]
    sizes = model.eval_rv_shapes()
    shapes = {name: tuple(map(int, sizes[name])) for name in names}
    unconstrained_shapes = {
        name: tuple(map(int, sizes[value.name])) for name, value in zip(names, values, strict=True)
    }
    slices = slices_of(unconstrained_shapes)

    def split(theta: Array) -> list[Array]:
        return [theta[:, slices[name]].reshape(-1, *shape) for name, shape in unconstrained_shapes.items()]

    @cache
    def density() -> Function:
        return over_draws(values, [log_posterior])

    @cache
    def constrained() -> tuple[list[str], Function]:
        graphs = model.replace_rvs_by_values([*variables, *model.deterministics])
        named = dict(zip([*names, *(d.name for d in model.deterministics)], graphs, strict=True))
        # a deterministic variable that depends on data alone has no draws
        named = {name: graph for name, graph in named.items() if depends(graph, values)}
        return list(named), over_draws(values, list(named.values()))

    @cache
    def unconstrained() -> Function:
        transforms = [(variable, model.rvs_to_transforms[variable]) for variable in variables]
        return over_draws(
            variables, [v if t is None else t.forward(v, *v.owner.inputs) for v, t in transforms]
        )

    def log_density(theta: Array) -> Array:
        return np.asarray(density()(*split(theta))[0], np.float64)

    def to_values(theta: Array) -> dict[str, Array]:
        present, function = constrained()
        return dict(zip(present, function(*split(theta)), strict=True))

    def to_theta(arrays: dict[str, Array]) -> Array:
        parts = unconstrained()(*(arrays[name] for name in names))
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    return ForeignModel(log_density, ForeignParameters(shapes, unconstrained_shapes, to_values, to_theta))


def free_variables(model: Any) -> list[Any]:
    """The model's free variables; raise if one is discrete or there are none."""
    variables = list(model.free_RVs)
    for variable in variables:
        if not variable.dtype.startswith("float"):
            raise InvalidInputError(
                f"the free variable {variable.name!r} is discrete, and a Gaussian is not: sum it out of the model, "
                "as pm.Mixture does, or condition on it with pm.observe"
            )
    if not variables:
        raise InvalidInputError("the model has no free variable: nothing to approximate")
    return variables


def without_checks(graph: Any) -> Any:
    """The graph of a log density that is −inf where PyMC's checks of parameters would raise.

    PyMC's samplers do the same. It has to be done in the graph of a single draw: in a graph of many draws a check is
    made of all draws together, and one bad draw would spoil the others.
    """
    rewriting = require("pytensor.graph.rewriting.utils", "pymc")
    return rewriting.rewrite_graph(graph, include=("canonicalize", "local_check_parameter_to_ninf_switch"))


def over_draws(inputs: list[Any], outputs: list[Any]) -> Function:
    """A compiled function whose ``inputs`` and ``outputs`` have a leading axis for the draws."""
    replace, compiler = require("pytensor.graph.replace", "pymc"), require("pytensor", "pymc")
    rows = [given.type.clone(shape=(None, *given.type.shape))() for given in inputs]
    graphs = replace.vectorize_graph(outputs, dict(zip(inputs, rows, strict=True)))
    # not every output needs every input; draws are float64, even if PyTensor is set to float32
    compiled = compiler.function(rows, graphs, on_unused_input="ignore", allow_input_downcast=True)
    return cast(Function, compiled)


def depends(graph: Any, inputs: list[Any]) -> bool:
    """Whether any of ``inputs`` is in the ``graph``."""
    ancestors = require("pytensor.graph.traversal", "pymc").ancestors
    return not set(inputs).isdisjoint(ancestors([graph]))
