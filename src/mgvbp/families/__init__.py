"""Covariance structures (full, diagonal, block-diagonal), and the Gaussian that has one.

This package may import `core` only. Begin with `base`: a family says which entries the factor L of a precision has,
and every operation on L is a formula of the frame. `gaussian` has a mean and such a factor: it is a prior, an iterate
or a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgvbp.core.checks import one_of
from mgvbp.errors import InvalidInputError
from mgvbp.families.base import Family, require_room
from mgvbp.families.block import BlockDiagonal
from mgvbp.families.diagonal import Diagonal
from mgvbp.families.full import Full
from mgvbp.families.gaussian import LOG_2PI as LOG_2PI
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.gaussian import frozen as frozen
from mgvbp.families.low_rank import LowRank
from mgvbp.families.mixture import GaussianMixture
from mgvbp.families.sparse import SparsePrecision
from mgvbp.families.structured import Structured as Structured

__all__ = [
    "BlockDiagonal",
    "Diagonal",
    "Family",
    "Full",
    "Gaussian",
    "GaussianMixture",
    "LowRank",
    "SparsePrecision",
    "resolve_family",
]


def resolve_family(family: str | Family, dim: int, labels: Sequence[str] | None = None) -> Family:
    """Return the family that ``family`` names, for ``dim`` parameters; ``labels`` resolve blocks given by name."""
    if not isinstance(family, Family):
        name = one_of(family, ["full", "diagonal"], "family", " or a BlockDiagonal([...])")
        named = Full(dim) if name == "full" else Diagonal(dim)
        require_room(named)
        return named
    if isinstance(family, LowRank):
        return family.resolved(dim)
    if isinstance(family, BlockDiagonal | SparsePrecision) and family.names is not None:
        family = family.resolved(labels)
    if family.dim != dim:
        whole = "the blocks must hold each parameter once"
        if isinstance(family, Structured):
            whole = f"the pattern must be one of {dim} parameters"
        raise InvalidInputError(
            f"{family!r} covers {family.dim} parameters, but the problem has {dim}: {whole}"
        )
    return family
