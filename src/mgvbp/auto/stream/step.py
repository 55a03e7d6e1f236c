r"""One natural-gradient step of a Gaussian on a batch.

.. math::
    m &\leftarrow 0.9\, m + 0.1\, \nabla_\mu, \\
    P^+ &= L\, (I + A + \tfrac12 A^2)\, L^\top, \qquad A = \rho\, (2 G), \\
    \mu^+ &= \mu + \beta\, (P^+)^{-1} m ,

with the reparametrised gradients :math:`\nabla_\mu = L g` and G of `mgvbp.estimators.gradient`. The middle line is
MGVBP's retraction. In the diagonal family it is the update of IVON (Shen et al. 2024), whose
:math:`\tfrac12 A^2` keeps the variances positive. The mean and the precision have steps of their own: ρ is limited by
the noise of the curvature, and β by the correlations that the family leaves out, which make too long a step diverge.
"""

from __future__ import annotations

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, NotPositiveDefiniteError
from mgvbp.estimators import Estimate
from mgvbp.families import Diagonal, Family
from mgvbp.families.gaussian import Gaussian, frozen
from mgvbp.methods import MGVBP

MOMENTUM = 0.9
"""Weight of past gradients: as in ADAM."""
LARGEST = 0.5
"""Largest relative change of the precision in a step."""
RETRACTION = MGVBP()


def stepped(
    q: Gaussian, momentum: Array | None, estimate: Estimate, step: float, rate: float
) -> tuple[Gaussian, Array]:
    """The Gaussian after a step, and its momentum (d,); with ``step`` 0 the mean stays where it is.

    Raises
    ------
    DivergenceError
        The Gaussian is no longer finite.
    """
    family, L = q.family, q.factor
    gradient = family.times(L, estimate.g)
    m = gradient if momentum is None else MOMENTUM * momentum + (1.0 - MOMENTUM) * gradient
    try:
        K = RETRACTION.scaling(family, _bounded(family, rate * 2.0 * estimate.G), 1.0)
    except NotPositiveDefiniteError:
        raise DivergenceError("the precision is no longer finite") from None
    L = family.product(L, K)
    mean = q.mean + step * family.from_frame(L, family.solve(L, m))
    if not (np.isfinite(mean).all() and np.isfinite(L).all()):
        raise DivergenceError("the mean or the precision is no longer finite")
    return Gaussian.from_factor(frozen(mean), frozen(L), family), frozen(m)


def _bounded(family: Family, A: Array) -> Array:
    """``A`` with no eigenvalue beyond `LARGEST`: parameter by parameter if they are independent, else as a whole."""
    if isinstance(family, Diagonal):
        return np.clip(A, -LARGEST, LARGEST)
    return A * min(1.0, LARGEST / max(float(np.linalg.norm(A)), LARGEST))
