"""PyMC models: their density, names, axes and data, read from the model's graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError, MgvbpWarning, warn_user
from mgvbp.interop.model import ForeignModel, ForeignParameters, Observations
from mgvbp.interop.pymc.graphs import (
    Function,
    GraphDensity,
    Once,
    depends,
    frozen,
    numpy_mode,
    over_draws,
    replaced,
    without_checks,
)
from mgvbp.problem.parameters import slices_of


def from_pymc(model: Any, /) -> ForeignModel:
    """A PyMC model in the form that `mgvbp.fit` takes, without a prior: the model has its own.

    Parameters
    ----------
    model : pymc.Model
        A model whose free variables are all continuous. Its data are taken as they are now: after ``pm.set_data``,
        call `from_pymc` again to fit the new ones.

    Returns
    -------
    ForeignModel
        The log density of the unconstrained values of the free variables, in the order of the model, with its
        gradient. `ForeignParameters.constrain` also gives the model's ``pm.Deterministic`` variables. Each function
        is compiled when it is first called: the density by JAX if it is installed, else by PyTensor.
        `Posterior.to_arviz` has the groups that ``pm.sample`` would have made, with the model's dims and coords.

    Raises
    ------
    InvalidInputError
        The model has discrete free variables, minibatches, a transform without a Jacobian, or no free variable.
    MissingDependencyError
        PyMC is not installed.

    Warns
    -----
    MgvbpWarning
        The model has no observed variable and no potential, so that its posterior is its prior.

    Examples
    --------
    ::

        with pm.Model() as model:
            mu = pm.Normal("mu", 0.0, 10.0)
            sigma = pm.HalfNormal("sigma", 5.0)
            pm.Normal("y", mu, sigma, observed=y)

        posterior = mgvbp.fit(mgvbp.from_pymc(model))
        pm.sample_posterior_predictive(posterior.to_arviz(), model=model)
    """
    pymc, tensor = require("pymc", "pymc"), require("pytensor.tensor", "pymc")
    if not isinstance(model, pymc.Model):
        raise InvalidTypeError(f"model must be a pymc.Model; got {model!r}")
    variables = free_variables(model)
    values = [model.rvs_to_values[variable] for variable in variables]
    names = [variable.name for variable in variables]
    shapes, unconstrained_shapes = shapes_of(model, variables)
    slices = slices_of(unconstrained_shapes)
    theta = tensor.vector("theta", dtype="float64", shape=(max(part.stop for part in slices.values()),))
    by_slices = {
        value: theta[slices[name]].reshape(unconstrained_shapes[name])
        for name, value in zip(names, values, strict=True)
    }

    def of_theta(graphs: list[Any]) -> list[Any]:
        return replaced(frozen(graphs), by_slices)

    @Once
    def constrained() -> tuple[list[str], Function]:
        found = of_theta(model.replace_rvs_by_values([*variables, *model.deterministics]))
        named = dict(zip([*names, *(d.name for d in model.deterministics)], found, strict=True))
        # a deterministic variable that depends on data alone has no draws
        named = {name: graph for name, graph in named.items() if depends(graph, [theta])}
        return list(named), over_draws([theta], list(named.values()))

    @Once
    def unconstrained() -> Function:
        # one function for all, since the support of one variable may depend on another
        given = {variable: variable.type(name=variable.name) for variable in variables}
        graphs = replaced([forward(model, variable) for variable in variables], given)
        return over_draws(list(given.values()), frozen(graphs))

    def to_values(rows: Array) -> dict[str, Array]:
        present, function = constrained()
        return dict(zip(present, function(rows), strict=True))

    def to_theta(arrays: dict[str, Array]) -> Array:
        parts = unconstrained()(*(arrays[name] for name in names))
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    parameters = ForeignParameters(
        shapes,
        unconstrained_shapes,
        to_values,
        to_theta,
        dims={name: tuple(axes) for name, axes in model.named_vars_to_dims.items()},
        coords={name: np.array(entries) for name, entries in model.coords.items() if entries is not None},
    )
    (density,) = of_theta([without_checks(log_posterior(model))])
    return ForeignModel(GraphDensity(theta, density), parameters, observations(model, theta, of_theta))


def free_variables(model: Any) -> list[Any]:
    """The model's free variables; raise if one is discrete or there are none."""
    variables = list(model.free_RVs)
    for variable in variables:
        if not variable.dtype.startswith("float"):
            if variable.name.endswith("_unobserved"):
                raise InvalidInputError(
                    f"{variable.name.removesuffix('_unobserved')!r} is discrete and has missing values, which PyMC "
                    "takes for discrete free variables: leave out the rows where it is missing"
                )
            raise InvalidInputError(
                f"the free variable {variable.name!r} is discrete, and a Gaussian is not: sum it out of the model, "
                "as pm.Mixture does, or condition on it with pm.observe"
            )
    if not variables:
        raise InvalidInputError("the model has no free variable: nothing to approximate")
    if not model.observed_RVs and not model.potentials:
        warn_user(
            "the model has no observed variable and no potential, so that its posterior is its prior: "
            "is observed= missing?",
            MgvbpWarning,
            "no-data",
        )
    return variables


def log_posterior(model: Any) -> Any:
    """PyMC's graph of the log density of the unconstrained values; raise if it has none that can be used."""
    try:
        terms = [*model.free_RVs, *observed_variables(model), *model.potentials]
        graph = model.logp(terms, jacobian=True)
    except NotImplementedError as error:
        raise InvalidInputError(
            f"PyMC has no log density of this model, NotImplementedError: {error}; a distribution needs a logp, and a "
            "transform backward and log_jac_det"
        ) from error
    if require("pymc", "pymc").pytensorf.rvs_in_graph([graph]):
        raise InvalidInputError(
            "the log density is random: give the model all data, not a pm.Minibatch, and a likelihood, not a "
            "pm.Simulator, which only pm.sample_smc can fit"
        )
    return graph


def shapes_of(
    model: Any, variables: list[Any]
) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """The shapes of the variables' values, and of their unconstrained values, by name."""
    graphs = [*variables, *(forward(model, variable) for variable in variables)]
    function = require("pytensor", "pymc").function(
        [],
        [graph.shape for graph in graphs],
        givens={variable: model.rvs_to_values[variable] for variable in observed_variables(model)},
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    found = [tuple(map(int, shape)) for shape in function()]
    names, number = [variable.name for variable in variables], len(variables)
    return dict(zip(names, found[:number], strict=True)), dict(zip(names, found[number:], strict=True))


def observed_variables(model: Any) -> list[Any]:
    """The observed variables, each once: ``pm.sample_posterior_predictive`` appends them to the model's list again."""
    return list(dict.fromkeys(model.observed_RVs))


def forward(model: Any, variable: Any) -> Any:
    """The graph of a variable's unconstrained value."""
    transform = model.rvs_to_transforms[variable]
    return variable if transform is None else transform.forward(variable, *variable.owner.inputs)


def observations(model: Any, theta: Any, of_theta: Any) -> Observations:
    """The model's data, as `from_pymc` finds them, and the log-likelihood of each observation."""
    observed = observed_variables(model)
    names = [variable.name for variable in observed]
    values = [model.rvs_to_values[variable] for variable in observed]

    @Once
    def function() -> Function:
        graphs = model.logp(observed, sum=False) if observed else []
        return over_draws([theta], of_theta([without_checks(graph) for graph in graphs]))

    return Observations(
        lambda rows: dict(zip(names, function()(rows), strict=True)),
        observed_data=dict(zip(names, map(known, values), strict=True)),
        constant_data={variable.name: known(variable) for variable in model.data_vars},
    )


def known(variable: Any) -> Any:
    """The present value of a variable that depends on data alone."""
    (graph,) = frozen([variable])
    return np.asarray(graph.data if hasattr(graph, "data") else graph.eval(mode=numpy_mode()))
