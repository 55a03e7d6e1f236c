"""Quadratic surfaces through evaluated draws: the gradients of the lower bound, and how uncertain they are.

This package may import `estimators`, for their monomials, and lower layers. Begin with `archive`, which weights old
draws for a new Gaussian, and `surface`, which fits a quadratic through them; `kriging` and `hermite` model what a
quadratic misses. `gradient_surface` fits a surface to gradients. `surrogate` is a log density through draws that need
not be near a quadratic: mixtures climb it, and a diagnosis measures by it. `auto` leaps on surfaces; a diagnosis takes
its certificate from one.
"""

from mgvbp.surfaces.archive import Archive, View, equal_view
from mgvbp.surfaces.gradient_surface import fit_gradients
from mgvbp.surfaces.surface import Surface, fit_surface

__all__ = ["Archive", "Surface", "View", "equal_view", "fit_gradients", "fit_surface"]
