"""The first Gaussians after an ascent: a narrow one, whose draws show the curvature, and Laplace's approximation."""

from __future__ import annotations

import math

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.arrival.ascent import Ascent
from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.surface import Surface

LONGEST = 2.0
"""Longest Newton step, in units of √d standard deviations of the new Gaussian."""


def place(q: Gaussian, x: Array) -> Array:
    """θ at the coordinates ``x`` (d,) or (n, d) of q's frame."""
    return q.mean + q.family.from_frame(q.factor, x)


def narrow(q: Gaussian, ascent: Ascent) -> tuple[Gaussian, float]:
    """``q`` moved to the end of the ascent and narrowed, with the factor (at most 1) on its standard deviations."""
    scale = min(1.0, constants.NARROW / math.sqrt(ascent.curvature)) if ascent.curvature > 0.0 else 1.0
    return Gaussian.from_factor(place(q, ascent.here.x), q.factor / scale, q.family), scale


def laplace(surface: Surface, scale: float) -> Gaussian:
    """The Gaussian with the surface's curvature, and the maximum of the surface as its mean.

    The surface belongs to a q that `narrow` has scaled by ``scale``. Directions that are flatter than q was before
    it was scaled, or curved the wrong way, get the variance that q had then.
    """
    q = surface.q
    curvatures, U = np.linalg.eigh(surface.G)
    curvatures = np.maximum(1.0 + 2.0 * curvatures, scale**2)
    slopes = surface.g @ U
    length = float(np.linalg.norm(slopes / np.sqrt(curvatures)))
    shorter = min(1.0, LONGEST * math.sqrt(q.dim) / max(length, 1e-300))
    precision = q.family.from_dense((U * curvatures) @ U.T)
    factor = q.family.product(q.factor, q.family.cholesky(precision))
    return Gaussian.from_factor(place(q, shorter * (U @ (slopes / curvatures))), factor, q.family)
