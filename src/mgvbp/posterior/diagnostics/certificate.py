r"""How far the lower bound is from the family's optimum, estimated from draws that the fit has not seen.

To second order the bound is :math:`c^\top M c` nats below its maximum, where c are the gradients of the lower bound
in the frame (see `mgvbp.surfaces.surface`). A surface through the draws gives :math:`\hat c = c + e` and the
covariance C of the error e. So :math:`\hat c^\top M \hat c - \operatorname{tr} MC` estimates the gap without bias,
with variance :math:`2\operatorname{tr}(MC)^2 + 4 c^\top M C M c` (Gaussian errors). The second term is at most
:math:`4\, c^\top M c\, \sqrt{\operatorname{tr} (MC)^2}`.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.families import Family, Full, Structured
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.weights import Evaluated
from mgvbp.surfaces.archive import Archive, equal_view
from mgvbp.surfaces.surface import fit_surface

DRAWS_PER_COEFFICIENT = 2
"""Fewest draws per coefficient of the surface: as many as `auto` needs for its own certificate."""
SECOND_ORDER = 0.5
"""The formula is of second order. Beside the exact gaps of one-sided and heavy tails it is wrong by at most this
share of the gap, or by the variance of what a quadratic misses of the target, if that is less."""
SURPRISED, SURPRISE = 2.0, 0.05
"""Factor, and nats in addition, by which a quadratic must miss more of the draws of the fit than of fresh draws to
show that the fresh ones have not met something rare."""
MOST_COEFFICIENTS = 1000
"""Coefficients beyond which least squares take longer than the draws are worth."""
MOST_DRAWS = 2000
"""Most draws that are used: they suffice for `MOST_COEFFICIENTS` coefficients, whose fit takes a second."""


Gap = tuple[float | None, float | None]
"""Nats by which the lower bound is below the family's optimum, and the standard error; None if they are not known."""
UNKNOWN: Gap = (None, None)


def certify(q: Gaussian, draws: Evaluated, archive: Archive | None) -> Gap:
    """Estimate the gap of ``q`` from its own draws; unknown where these do not determine a good surface.

    Where the draws of the fit, ``archive``, show that a quadratic misses much more than the fresh ones do, as beside a
    wall that few draws meet, all of them are used: the fresh ones alone would know nothing of it.
    """
    count = min(len(draws.theta), MOST_DRAWS)
    basis = _basis(q.family, count)
    if basis is None or isinstance(q.family, Structured) or not np.isfinite(draws.log_p).all():
        return UNKNOWN
    view = equal_view(q, draws.theta[:count])
    surface = fit_surface(view, basis, draws.log_p[:count], math.inf)
    if surface is None or surface.ridge:
        return UNKNOWN
    if archive is not None and len(archive.theta) <= MOST_DRAWS:
        known = fit_surface(archive.view(q), basis, archive.values, math.inf, archive.noise)
        if known is not None and known.rest > SURPRISED * surface.rest + SURPRISE:
            both = archive.add(q, draws.theta[:count], draws.log_p[:count])
            surface = fit_surface(both.view(q), basis, both.values, math.inf, archive.noise) or surface
            return max(surface.gap - surface.noise, 0.0), surface.noise + surface.noise_sd
    if surface.poor:
        return UNKNOWN
    gap = max(surface.gap - surface.noise, 0.0)
    # noise_sd² is 2 tr (MC)²
    bent = min(SECOND_ORDER, surface.rest**2) * gap
    variance = surface.noise_sd**2 + 2.0 * math.sqrt(2.0) * gap * surface.noise_sd + bent**2
    return gap, math.sqrt(variance)


def _basis(family: Family, count: int) -> Family | None:
    """The richest quadratic that ``count`` draws determine: a full one, else that of the family, else None."""
    most = min(count / DRAWS_PER_COEFFICIENT, MOST_COEFFICIENTS)
    return next((basis for basis in (Full(family.dim), family) if basis.num_monomials <= most), None)
