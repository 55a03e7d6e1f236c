"""Quadratic surfaces through evaluated draws: the gradients of the lower bound, and how uncertain they are.

It may import `estimators`, for their monomials, and what is below. Begin with `archive`, which weights old draws
for a new Gaussian, and `surface`, which fits a quadratic through them; `kriging` and `hermite` take out what a
quadratic misses. `gradient_surface` is the same from gradients. `auto` leaps on surfaces; a diagnosis uses one as
its certificate.
"""

from mgvbp.surfaces.archive import Archive, View, equal_view
from mgvbp.surfaces.gradient_surface import fit_gradients
from mgvbp.surfaces.surface import Surface, fit_surface

__all__ = ["Archive", "Surface", "View", "equal_view", "fit_gradients", "fit_surface"]
