"""`Posterior.mcmc`: what is sampled, what ArviZ gets of it, and what is said about it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core.checks import as_key, positive_integer, require_memory
from mgvbp.core.linalg import Array
from mgvbp.core.progress import progress as progress_bar
from mgvbp.errors import ConvergenceWarning, InvalidInputError, InvalidTypeError, NonFiniteWarning, warn_user
from mgvbp.posterior.arviz import exported
from mgvbp.posterior.diagnostics.weights import Evaluate, LogDensity, Target
from mgvbp.posterior.failures import Failures
from mgvbp.problem.calling import called, checked_derivatives, checked_values
from mgvbp.sampling import Sampled, ess, largest_rhat, rhat, sample, warn_of_chains

if TYPE_CHECKING:
    from mgvbp.posterior.examined import Examined

REMEDY = "try more draws, or another parametrisation; family='mixture' finds several modes"
"""What to do about chains that disagree."""


class Function:
    """A log density that a user gave, with or without its gradient; it is evaluated in this process."""

    def __init__(self, log_density: LogDensity, grad: LogDensity | None) -> None:
        self._log_density, self._grad = log_density, grad

    @property
    def has_gradient(self) -> bool:
        """Whether there is one."""
        return self._grad is not None

    @contextmanager
    def evaluating(
        self, gradients: bool, n_jobs: int | None, timeout: float | None, failures: Failures
    ) -> Iterator[Evaluate]:
        """Yield the function; what it raises passes."""
        if n_jobs is not None or timeout is not None:
            raise InvalidInputError(
                "n_jobs= and timeout= go with the model of a fit; a function log_density= is evaluated in this process"
            )

        def at(theta: Array) -> tuple[Array, Array | None]:
            values = checked_values(called(self._log_density, theta.copy()), theta, "log_density")
            if not gradients:
                return values, None
            assert self._grad is not None
            return values, checked_derivatives(called(self._grad, theta.copy()), theta, "grad")

        yield at


def target_of(log_density: LogDensity, grad: LogDensity | None) -> Target:
    """What to sample: the density of the fit, which knows its gradient and its workers, or the user's function."""
    for name, function in (("log_density", log_density), ("grad", grad)):
        if function is not None and not callable(function):
            raise InvalidTypeError(f"{name} must be a function of an (S, d) array; got {function!r}")
    if grad is None and isinstance(log_density, Target):
        return log_density
    return Function(log_density, grad)


def mcmc(
    posterior: Examined,
    target: Target,
    *,
    draws: int,
    chains: int,
    rng: int | np.random.Generator,
    max_evaluations: int | None,
    n_jobs: int | None,
    timeout: float | None,
    progress: bool,
) -> Any:
    """Sample ``target`` by chains that start at ``posterior``; see `Posterior.mcmc`."""
    length, number = positive_integer(draws, "draws"), positive_integer(chains, "chains")
    require_memory(4 * length * number * posterior.dim, f"{length * number:,} draws", "draw fewer")
    limit = math.inf if max_evaluations is None else positive_integer(max_evaluations, "max_evaluations")
    options: dict[str, Any] = {"draws": length, "chains": number, "key": as_key(rng), "limit": limit}
    failures, gradients = Failures(), target.has_gradient
    with (
        target.evaluating(gradients, n_jobs, timeout, failures) as evaluate,
        progress_bar(progress, "mcmc", length * number, "draws, {:,} evaluations") as report,
    ):
        sampled = sample(posterior, evaluate, gradients, **options, report=report)
    attributes = described(sampled, gradients)
    warn(sampled, failures, attributes, length)
    stats = {"lp": sampled.log_density, "acceptance_rate": sampled.acceptance}
    if sampled.step_size is not None:
        stats["diverging"] = sampled.diverging
    flat = {name: column.reshape(-1) for name, column in stats.items()}
    return exported(posterior, sampled.theta.reshape(-1, posterior.dim), flat, number, attributes)


def described(sampled: Sampled, gradients: bool) -> dict[str, Any]:
    """The attributes of the result."""
    theta = sampled.theta
    attributes: dict[str, Any] = {
        "sampler": "NUTS" if gradients else "elliptical slices",
        "rhat": float(rhat(theta).max()),
        "ess_bulk": float(ess(theta).min()),
        "ess_tail": float(ess(theta, "tail").min()),
        "n_evaluations": sampled.n_evaluations,
        "thinning": sampled.thinning,
    }
    if gradients:
        attributes |= {"divergences": int(sampled.diverging.sum()), "step_size": sampled.step_size}
    return attributes


def warn(sampled: Sampled, failures: Failures, attributes: dict[str, Any], wanted: int) -> None:
    """Say what is wrong with the draws."""
    chains, length = sampled.theta.shape[:2]
    if sampled.rejected:
        warn_user(
            f"{sampled.rejected:,} of {sampled.n_evaluations:,} evaluations were not numbers and their draws were "
            "rejected: the chains stay where the function is finite"
            + (f"; of these, after two attempts each, {failures}" if failures.total else ""),
            NonFiniteWarning,
        )
    if sampled.ended:
        warn_user(
            f"{sampled.ended}: there are {length:,} of {wanted:,} draws a chain, and R-hat is {attributes['rhat']:.3f}",
            ConvergenceWarning,
            "mcmc-ended",
        )
        return
    divergences, largest = attributes.get("divergences", 0), largest_rhat(sampled.theta)
    warn_of_chains(chains * length, divergences, attributes["rhat"], REMEDY, largest)
