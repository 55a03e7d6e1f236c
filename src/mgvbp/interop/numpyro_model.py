"""NumPyro models: their sites and plates are read from a trace, their density and constraints are NumPyro's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError, MgvbpWarning, warn_user
from mgvbp.interop.functions.compiled import Compiled
from mgvbp.interop.functions.jax_function import JaxLikelihood
from mgvbp.interop.model import ForeignModel, ForeignParameters, Observations
from mgvbp.problem.parameters import slices_of


def from_numpyro(model: Callable[..., Any], /, *args: Any, **kwargs: Any) -> ForeignModel:
    """A NumPyro model in the form that `mgvbp.fit` takes, without a prior: the model has its own.

    Parameters
    ----------
    model : callable
        A function with NumPyro's primitives, whose latent sites are all continuous.
    *args, **kwargs
        The arguments of the model: the data. They become constants of the compiled functions. Prefer them to
        global variables, of which JAX may have cached a float32 version for another function.

    Returns
    -------
    ForeignModel
        The log density of the unconstrained values of the latent sites, in the order of the model. It computes in
        float64, whatever JAX's global switch says, and leaves the switch alone. `ForeignParameters.constrain`
        also gives the model's ``numpyro.deterministic`` sites. In `Posterior.to_arviz` the axes of plates have their
        names, and the observed sites are the groups ``observed_data`` and ``log_likelihood``.

    Raises
    ------
    InvalidInputError
        The model has discrete latent sites, subsampled plates, ``numpyro.param`` sites, or no latent site.
    MissingDependencyError
        NumPyro is not installed.

    Warns
    -----
    MgvbpWarning
        The model has no observed site and no factor, so that its posterior is its prior.

    Examples
    --------
    ::

        def model(y):
            mu = numpyro.sample("mu", dist.Normal(0.0, 10.0))
            sigma = numpyro.sample("sigma", dist.HalfNormal(5.0))
            numpyro.sample("y", dist.Normal(mu, sigma), obs=y)


        posterior = mgvbp.fit(mgvbp.from_numpyro(model, y))
        predictions = numpyro.infer.Predictive(model, posterior.draws(1000))(key, None)
    """
    handlers, infer = require("numpyro.handlers", "numpyro"), require("numpyro.infer", "numpyro")
    bijection = require("numpyro.distributions", "numpyro").biject_to
    jax = require("jax", "numpyro")
    if not callable(model):
        raise InvalidTypeError(f"model must be a function with NumPyro's primitives; got {model!r}")

    # JAX caches its version of a NumPy array by identity, and a cached 32-bit version would make it fail: make copies
    args, kwargs = jax.tree.map(
        lambda data: data.copy() if isinstance(data, np.ndarray) else data, (args, kwargs)
    )

    def trace(**substitution: Any) -> dict[str, Any]:
        fixed = handlers.substitute(handlers.seed(model, 0), **substitution)
        return dict(handlers.trace(fixed).get_trace(*args, **kwargs))

    def unconstrained(values: dict[str, Any]) -> dict[str, Any]:
        # the model is traced at the values, since the support of one site may depend on the value of another
        sites = trace(data=values)
        return {name: bijection(sites[name]["fn"].support).inv(values[name]) for name in values}

    names: list[str] = []
    axes: dict[str, tuple[str, ...]] = {}
    observed: list[str] = []

    def layout() -> list[tuple[Any, Any]]:
        # NumPyro's own initial values exist for improper priors too
        sites = trace(substitute_fn=infer.init_to_uniform)
        names.extend(latent(sites))
        axes.update(named_axes(sites))
        observed.extend(data_sites(sites))
        first = {name: sites[name]["value"] for name in names}
        return list(zip(first.values(), unconstrained(first).values(), strict=True))

    with jax.enable_x64(True):
        # only shapes are needed: abstract values save the seconds that JAX takes to run a model step by step
        try:
            found = jax.eval_shape(layout)
        except jax.errors.TracerArrayConversionError as error:
            raise InvalidInputError(
                "the model makes a NumPy array of a value that JAX traces, or takes the rows of one by it, as of a "
                "subsampled plate: give it jax.numpy arrays, and all data at once"
            ) from error
    layouts = dict(zip(names, found, strict=True))
    shapes = {name: tuple(value.shape) for name, (value, _) in layouts.items()}
    unconstrained_shapes = {name: tuple(theta.shape) for name, (_, theta) in layouts.items()}
    slices = slices_of(unconstrained_shapes)

    def split(theta: Any) -> dict[str, Any]:
        return {name: theta[slices[name]].reshape(shape) for name, shape in unconstrained_shapes.items()}

    def log_density(theta: Any) -> Any:
        return -infer.util.potential_energy(model, args, kwargs, split(theta))

    def to_values(theta: Any) -> Any:
        return infer.util.constrain_fn(model, args, kwargs, split(theta), return_deterministic=True)

    def to_theta(values: dict[str, Any]) -> Any:
        parts = unconstrained(values)
        return jax.numpy.concatenate([parts[name].reshape(-1) for name in names])

    def by_observation(theta: Any) -> Any:
        sites = trace(data=infer.util.constrain_fn(model, args, kwargs, split(theta)))
        return {name: sites[name]["fn"].log_prob(sites[name]["value"]) for name in observed}

    def data() -> dict[str, Any]:
        sites = trace(substitute_fn=infer.init_to_uniform)
        return {name: sites[name]["value"] for name in observed}

    with jax.enable_x64(True):
        values = jax.jit(data)() if observed else {}
    for name, value in values.items():
        if np.isnan(np.asarray(value, np.float64)).any():
            warn_user(
                f"the data of {name!r} have missing values, for which the density is nan unless numpyro.handlers.mask "
                "leaves them out: leave out the rows where it is missing",
                MgvbpWarning,
                "missing-data",
            )
    parameters = ForeignParameters(
        shapes, unconstrained_shapes, Compiled(to_values), Compiled(to_theta), dims=axes
    )
    likelihoods: Callable[..., Any] = Compiled(by_observation) if observed else lambda theta: {}
    observations = Observations(likelihoods, {name: np.asarray(value) for name, value in values.items()})
    return ForeignModel(JaxLikelihood(log_density), parameters, observations)


def latent(sites: dict[str, Any]) -> list[str]:
    """The names of the latent sites, in the order of the model; raise if some site has no density that we can use."""
    names = []
    for name, site in sites.items():
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise InvalidInputError(
                f"the plate {name!r} takes {site['args'][1]} of {site['args'][0]} at random, so that the density "
                "would be random: leave subsample_size out"
            )
        if site["type"] == "param":
            raise InvalidInputError(
                f"{name!r} is a numpyro.param, which has no prior: give it one with numpyro.sample, or fix it with "
                "numpyro.handlers.substitute"
            )
        if site["type"] != "sample" or site["is_observed"]:
            continue
        if site["fn"].support.is_discrete:
            raise InvalidInputError(
                f"the latent site {name!r} is discrete, and a Gaussian is not: give its data if it is observed, sum it "
                "out of the model, as dist.MixtureSameFamily does, or condition on it with numpyro.handlers.condition"
            )
        names.append(name)
    if not names:
        raise InvalidInputError("the model has no latent site: nothing to approximate")
    if not any(site["type"] == "sample" and site["is_observed"] for site in sites.values()):
        warn_user(
            "the model has no observed site and no factor, so that its posterior is its prior: are data missing from "
            "the arguments?",
            MgvbpWarning,
            "no-data",
        )
    return names


def data_sites(sites: dict[str, Any]) -> list[str]:
    """The names of the observed sites; factors, whose distribution is a ``Unit``, have no data."""
    unit = require("numpyro.distributions", "numpyro").Unit
    return [
        name
        for name, site in sites.items()
        if site["type"] == "sample" and site["is_observed"] and not isinstance(site["fn"], unit)
    ]


def named_axes(sites: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """What the axes of each site's value are called: a plate's name, or that of the site with the axis' number."""
    found = {}
    for name, site in sites.items():
        if site["type"] not in ("sample", "deterministic"):
            continue
        shape = np.shape(site["value"])
        # plates count their axes from the end of those that are not within one event
        batch = len(site["fn"].batch_shape) if site["type"] == "sample" else len(shape)
        axes = [f"{name}_dim_{number}" for number in range(len(shape))]
        for plate in site["cond_indep_stack"]:
            axis = batch + plate.dim
            if 0 <= axis < len(shape) and shape[axis] == plate.size:
                axes[axis] = plate.name
        found[name] = tuple(axes)
    return found
