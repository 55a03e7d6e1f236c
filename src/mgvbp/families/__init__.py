"""Covariance structures: full, diagonal and block-diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from mgvbp.checks import one_of
from mgvbp.errors import InvalidInputError
from mgvbp.families.base import Family
from mgvbp.families.block import BlockDiagonal
from mgvbp.families.diagonal import Diagonal
from mgvbp.families.full import Full

__all__ = ["BlockDiagonal", "Diagonal", "Family", "Full", "resolve_family"]


def resolve_family(family: str | Family, dim: int, labels: Sequence[str] | None = None) -> Family:
    """Return the family that ``family`` names, for ``dim`` parameters with these labels, if any."""
    if not isinstance(family, Family):
        name = one_of(family, ["full", "diagonal"], "family", " or a BlockDiagonal([...])")
        return Full(dim) if name == "full" else Diagonal(dim)
    if isinstance(family, BlockDiagonal) and family.names is not None:
        family = family.resolved(labels)
    if family.dim != dim:
        raise InvalidInputError(
            f"{family!r} covers {family.dim} parameters, but the problem has {dim}: "
            "the blocks must hold each parameter once"
        )
    return family
