"""What an adversary is: pieces in coordinates of their own, and what is done to them before a fit sees them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zoo.bound import LOG_2PI
from zoo.targets_shapes import rotation

from .pieces import Best, Piece, best, lower_factor

if TYPE_CHECKING:
    from mgvbp import Gaussian

Function = Callable[[np.ndarray], np.ndarray]
PATH = Path(__file__).with_name("reference.json")


@functools.cache
def references() -> dict[str, dict]:
    """The stored optima, by name."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


@dataclass(frozen=True, eq=False)
class Target:
    """The log density ``sum of pieces(x)`` with ``x = (θ - shift) mix``.

    A Gaussian's lower bound needs its marginals in the coordinates of each piece only, and the best Gaussian is the
    product of those of the pieces: the expectation depends on the marginals, and independence has the largest entropy.

    Parameters
    ----------
    name, kind : str
    pieces : tuple of Piece
    mix : ndarray of shape (d, d)
        Diagonal if the family is.
    shift : ndarray of shape (d,)
    family : {"full", "diagonal"}
    gradients : bool
        Whether it is also fitted with its gradient.
    proper : bool
        Whether a best Gaussian exists: not if every Gaussian has mass where the density is zero, nor if the bound grows
        without limit. Any claim is false then.
    unreachable : bool
        What decides lies further than five standard deviations from all that the search sees, or is too small to be
        met by chance; false claims are counted apart.
    corrupt : callable, optional
        ``corrupt(function, rng)``: the function that the fit sees in place of the exact one.
    wrong : callable, optional
        ``wrong(target, theta, gradients)``: the gradients that the fit sees. Then it is fitted by gradients only.
    initial_mean, initial_variance : optional
        As for `mgvbp.fit`.
    """

    name: str
    kind: str
    pieces: tuple[Piece, ...]
    mix: np.ndarray
    shift: np.ndarray
    family: str = "full"
    gradients: bool = False
    proper: bool = True
    unreachable: bool = False
    corrupt: Callable[[Function, np.random.Generator], Function] | None = None
    wrong: Callable[[Target, np.ndarray, np.ndarray], np.ndarray] | None = None
    initial_mean: object = None
    initial_variance: object = None

    @property
    def dim(self) -> int:
        return len(self.shift)

    @property
    def modes(self) -> tuple[str, ...]:
        """How it is fitted: by values, by gradients, or both."""
        return ("gradients",) if self.wrong else ("values", "gradients")[: 1 + self.gradients]

    @functools.cached_property
    def blocks(self) -> list[tuple[Piece, slice]]:
        """The pieces with their coordinates."""
        ends = np.cumsum([piece.dim for piece in self.pieces])
        return [(piece, slice(end - piece.dim, end)) for piece, end in zip(self.pieces, ends, strict=True)]

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """The exact log density at the rows of θ (S, d)."""
        x = (np.asarray(theta, dtype=np.float64) - self.shift) @ self.mix
        return np.sum([piece(x[:, block]) for piece, block in self.blocks], axis=0)

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """The exact gradients, (S, d), or the wrong ones."""
        x = (np.asarray(theta, dtype=np.float64) - self.shift) @ self.mix
        with np.errstate(invalid="ignore"):
            parts = [piece.gradient(x[:, block]) for piece, block in self.blocks]
            exact = np.concatenate(parts, axis=1) @ self.mix.T
        return self.wrong(self, theta, exact) if self.wrong else exact

    def function(self, seed: int) -> Function:
        """What the fit sees."""
        rng = np.random.default_rng((seed, 99))
        return self.corrupt(self.log_density, rng) if self.corrupt else self.log_density

    def lower_bound(self, q: Gaussian) -> float:
        """The exact lower bound of a Gaussian."""
        mean = (q.mean - self.shift) @ self.mix
        factor = q.family.from_frame(q.factor, np.eye(self.dim)) @ self.mix
        entropy = 0.5 * self.dim * (1.0 + LOG_2PI) - float(np.log(q.family.diagonal(q.factor)).sum())
        return entropy + sum(
            piece.expectation(mean[block], lower_factor(factor[:, block])) for piece, block in self.blocks
        )

    def find_best(self) -> Best:
        """The best Gaussian, computed."""
        found = [best_of(piece, self.family == "diagonal") for piece in self.pieces]
        inverse = np.linalg.inv(self.mix)
        scale = np.zeros((self.dim, self.dim))
        for (_, block), (_, _, part) in zip(self.blocks, found, strict=True):
            scale[block, block] = part
        root = inverse.T @ scale
        return Best(
            sum(part.bound for part in found) - float(np.linalg.slogdet(self.mix)[1]),
            np.concatenate([part.mean for part in found]) @ inverse + self.shift,
            lower_factor(root.T),
        )

    @property
    def best(self) -> float:
        """The best lower bound, as stored; infinite where none exists."""
        return float(references()[self.name]["bound"]) if self.proper else np.inf


best_of = functools.cache(best)

TARGETS: dict[str, Target] = {}


def add(
    kind: str, name: str, *parts: Piece | Callable[[np.ndarray], np.ndarray], mix=None, shift=0.0, **options
):
    """Register a target.

    Parts that are plain functions are pieces in one dimension; ``mix`` is a matrix, the scales of the coordinates, or
    the seed of a rotation.
    """
    pieces = tuple(part if isinstance(part, Piece) else Piece(part) for part in parts)
    dim = sum(piece.dim for piece in pieces)
    if mix is None or isinstance(mix, int):
        mix = np.eye(dim) if mix is None else rotation(dim, mix)
    matrix = np.diag(mix) if np.ndim(mix) == 1 else np.asarray(mix)
    centre = np.broadcast_to(np.asarray(shift, float), dim)
    assert name not in TARGETS, name
    if "initial_mean" in options:
        options["initial_mean"] = np.broadcast_to(np.asarray(options["initial_mean"], float), dim)
    TARGETS[name] = Target(name, kind, pieces, matrix, centre, **options)
