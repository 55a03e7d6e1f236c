"""`compare_families`: what correlations are worth, from a diagonal covariance through blocks to a full one."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgvbp.core.checks import as_key
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.families import BlockDiagonal, Family
from mgvbp.posterior.diagnostics import Diagnosis
from mgvbp.posterior.posterior import Posterior
from mgvbp.problem.problem import LogLikelihood, NamedParameters, agreed_parameters
from mgvbp.run.fitting import fit
from mgvbp.run.posing import PriorLike


@dataclass(frozen=True)
class Rung:
    """One family's fit, its diagnosis on fresh draws, and how many nats its bound is below the best one."""

    posterior: Posterior
    diagnosis: Diagnosis
    seconds: float
    """Duration of the fit, without the diagnosis."""
    difference: float
    difference_se: float
    """Standard error of ``difference``. All families use the same draws in their frames, so noise partly cancels."""


@dataclass(frozen=True)
class FamilyComparison:
    """What `compare_families` returns; ``print`` shows a table.

    Attributes
    ----------
    rungs : dict of str to Rung
        The fits by the names of their families, in the order given.
    """

    rungs: dict[str, Rung]

    def __getitem__(self, name: str) -> Rung:
        return self.rungs[name]

    @property
    def best(self) -> Posterior:
        """The posterior with the largest lower bound on fresh draws."""
        return min(self.rungs.values(), key=lambda rung: rung.difference).posterior

    def __str__(self) -> str:
        width = 2 + max(len("family"), *map(len, self.rungs))
        lines = [
            f"{'family':<{width}}{'lower bound':>14}{'se':>9}{'below best':>12}{'se':>9}{'k-hat':>8}"
            f"{'evaluations':>13}{'seconds':>9}"
        ]
        for name, rung in self.rungs.items():
            found = rung.diagnosis
            lines.append(
                f"{name:<{width}}{found.elbo:>14.4f}{found.elbo_se:>9.4f}{rung.difference:>12.4f}"
                f"{rung.difference_se:>9.4f}{found.khat:>8.2f}{rung.posterior.n_evaluations:>13,}"
                f"{rung.seconds:>9.2f}{'' if rung.posterior.converged else '  NOT converged'}"
            )
        return "\n".join(lines)


def compare_families(
    log_likelihood: LogLikelihood,
    prior: PriorLike | None = None,
    *,
    families: Sequence[str | Family] | Mapping[str, str | Family] | None = None,
    fresh_draws: int = 1000,
    rng: int | np.random.Generator = 0,
    **options: Any,
) -> FamilyComparison:
    """Fit the same posterior with several covariance structures and compare their lower bounds.

    Parameters
    ----------
    log_likelihood, prior
        As for `mgvbp.fit`.
    families : sequence of families, or mapping of names to them, optional
        By default ``"diagonal"``, one block for each named parameter (``"block"``, if this differs from the two
        others) and ``"full"``.
    fresh_draws : int
        How many evaluations the diagnosis of each fit takes; the fits are compared draw by draw.
    rng : int or numpy.random.Generator
        All fits use the same random numbers.
    **options
        Options of `mgvbp.fit`.

    Examples
    --------
    Intercept and slope of a line are strongly correlated if its x are far from zero:

    >>> import mgvbp
    >>> x = np.array([10.0, 11.0, 12.0, 13.0])
    >>> y = np.array([0.1, 1.2, 1.9, 3.2])
    >>> def log_likelihood(theta):
    ...     return -0.5 * ((y - theta[:, :1] - theta[:, 1:] * x) ** 2).sum(axis=1)
    >>> comparison = mgvbp.compare_families(log_likelihood, mgvbp.Gaussian(variance=25.0, dim=2))
    >>> comparison.best.family.name, round(comparison["diagonal"].difference, 1)
    ('full', 2.0)
    """
    if "family" in options:
        raise InvalidInputError("give families= instead of family=: all that are to be compared")
    chosen = _chosen(families, agreed_parameters(log_likelihood, prior))
    key = as_key(rng)
    fits: dict[str, tuple[Posterior, Diagnosis, float]] = {}
    for name, family in chosen.items():
        start = time.perf_counter()
        posterior = fit(log_likelihood, prior, family=family, rng=np.random.default_rng(key), **options)
        seconds = time.perf_counter() - start
        fits[name] = posterior, posterior.diagnose(fresh_draws, rng=np.random.default_rng(key)), seconds
    best = max((diagnosis for _, diagnosis, _ in fits.values()), key=lambda diagnosis: diagnosis.elbo)
    rungs = {name: Rung(*found, *_difference(best, found[1])) for name, found in fits.items()}
    return FamilyComparison(rungs)


def _chosen(
    families: Sequence[str | Family] | Mapping[str, str | Family] | None, parameters: NamedParameters | None
) -> dict[str, str | Family]:
    """The families by name."""
    if families is None:
        blocks = None if parameters is None else _by_name(parameters)
        families = ["diagonal", "full"] if blocks is None else ["diagonal", blocks, "full"]
    if isinstance(families, Mapping):
        chosen = dict(families)
    elif isinstance(families, str | Family) or not isinstance(families, Sequence):
        raise InvalidTypeError(f"families must be a list of families, or a dict of them; got {families!r}")
    else:
        chosen = {getattr(family, "name", str(family)): family for family in families}
    if not chosen or len(chosen) < len(families):
        raise InvalidInputError(
            f"families must have different names, at least one: give a dict of names and families; got {families!r}"
        )
    return chosen


def _by_name(parameters: NamedParameters) -> BlockDiagonal | None:
    """A block for each parameter; None if all are scalars, or there is only one."""
    blocks = BlockDiagonal([[name] for name in parameters.names]).resolved(parameters.labels)
    return blocks if 1 < len(blocks.blocks) < blocks.dim else None


def _difference(best: Diagnosis, other: Diagnosis) -> tuple[float, float]:
    """Nats by which the bound of ``other`` is lower than the best, and the standard error, from paired draws."""
    if best.outside or other.outside:
        return (0.0 if other is best else best.elbo - other.elbo), math.inf
    paired = best.log_weights - other.log_weights
    return float(paired.mean()), float(paired.std(ddof=1) / math.sqrt(len(paired)))
