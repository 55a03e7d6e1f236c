"""Covariance structures: full, diagonal and block-diagonal."""

from __future__ import annotations

from mgvbp.errors import InvalidInputError
from mgvbp.families.base import Family
from mgvbp.families.block import BlockDiagonal
from mgvbp.families.diagonal import Diagonal
from mgvbp.families.full import Full

__all__ = ["BlockDiagonal", "Diagonal", "Family", "Full", "resolve_family"]


def resolve_family(family: str | Family, dim: int) -> Family:
    """Return the family that ``family`` names, for ``dim`` parameters."""
    if family == "full":
        return Full(dim)
    if family == "diagonal":
        return Diagonal(dim)
    if not isinstance(family, Family):
        raise InvalidInputError(
            f"family must be 'full', 'diagonal' or a BlockDiagonal([...]); got {family!r}"
        )
    if family.dim != dim:
        raise InvalidInputError(
            f"{family!r} covers {family.dim} parameters, but the problem has {dim}: "
            "the blocks must hold each parameter once"
        )
    return family
