"""From what a user gives to a `Problem`: functions, models of other packages, posteriors that are priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from inspect import Parameter, isfunction, signature
from typing import Any, cast

from mgvbp.core.checks import one_of
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidTypeError
from mgvbp.problem.parameters import real
from mgvbp.problem.priors import Distribution
from mgvbp.problem.problem import LogLikelihood, Prior, Problem, as_density

PriorLike = Prior | Distribution | Callable[[Array], Any] | Mapping[str, Any]
"""What `fit` takes for a prior: a density of θ, by an object, a distribution or a function; distributions by name."""


def as_function(given: Any) -> Any:
    """The function itself, or what the model of another package becomes; other objects pass, to be refused later.

    A function that θ cannot be given to may be a NumPyro model that has its data already.
    """
    if callable(given) and _takes_theta(given):
        return given
    from mgvbp.interop import adapted

    model = adapted(given)
    if callable(given) and model is given:
        raise InvalidTypeError("log_likelihood must be a function of an (S, d) array; this one takes nothing")
    return model


def _takes_theta(function: Callable[..., Any]) -> bool:
    if not (isfunction(function) or isinstance(function, partial)):  # of objects `signature` may not tell
        return True
    kinds = {parameter.kind for parameter in signature(function).parameters.values()}
    return bool(
        kinds & {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL}
    )


def as_prior(given: Any, log_likelihood: object) -> Prior | None:
    """The prior of a fit; of a posterior that is a mixture, this mixture with the names of the parameters."""
    mixture = getattr(given, "mixture", None)
    if mixture is not None:
        named = copy(mixture)
        named.parameters = getattr(given, "parameters", None)
        return cast(Prior, named)
    return as_density(given, log_likelihood)


def own_gradient(log_likelihood: object) -> Callable[[Array], Any] | None:
    """The method ``gradient`` that a model may bring, as the regressions of `mgvbp.models` do."""
    gradient = getattr(log_likelihood, "gradient", None)
    return gradient if callable(gradient) else None


def posed(
    log_likelihood: LogLikelihood,
    prior: Prior | None,
    dim: int,
    vectorized: bool | None,
    grad: Callable[[Array], Any] | str | None,
    labels: Sequence[str] | None = None,
) -> Problem:
    """The problem of `fit`; functions of JAX and PyTorch (``grad="jax"``, ``"torch"``) take all draws at once."""
    if isinstance(grad, str):
        from mgvbp.interop import from_jax, from_torch

        package = one_of(grad, ["jax", "torch"], "grad", " or a function")
        adapt: Callable[..., LogLikelihood] = from_jax if package == "jax" else from_torch
        log_likelihood, grad = adapt(log_likelihood, vectorized=vectorized), None
    if getattr(log_likelihood, "vectorized", False) is True:
        vectorized = True
    return Problem(log_likelihood, prior, dim, vectorized, grad, None if labels is None else real(labels))
