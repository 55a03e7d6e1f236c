r"""Elliptical slice sampling: no gradient, no step size, nothing to tune.

Where the target is a Gaussian N(0, I) times a factor :math:`e^{h}`, a point x and a draw v of the Gaussian span an
ellipse :math:`x \cos a + v \sin a`, along which the Gaussian is constant in distribution. A level below
:math:`e^{h(x)}` is drawn, and angles are tried in a bracket that shrinks towards x, until one lies above the level
(Murray, Adams and MacKay 2010).

Here the place of the Gaussian is taken by a mixture g of t distributions that resembles the target p, so that
:math:`h = \log p - \log g` is near constant and the first angle is usually taken. A t distribution is a Gaussian of
random variance (Nishihara, Murray and Adams 2014), and a mixture is a t distribution of random component. Given x these
are drawn first: component k with probability :math:`w_k t_k(x) / g(x)`, then with :math:`z = R_k^{-1}(x - m_k)` the
variance :math:`s \sim \mathrm{InvGamma}(\tfrac{\nu + d}{2}, \tfrac{\nu + \|z\|^2}{2})`. Given both, x has a density
proportional to :math:`e^{h(x)}` times a Gaussian, and makes a step along an ellipse of that Gaussian. So steps are
short where components are narrow, as in the neck of a funnel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mgvbp.sampling.points import Asking, Move, Point
from mgvbp.sampling.tmixture import DEGREES, TMixture

NARROWEST = 1e-12
"""A bracket of angles narrower than this ends at the point itself: the target is flat at the level but for rounding."""


@dataclass(frozen=True, eq=False)
class EllipticalSlice:
    """The kernel with a mixture that resembles the target."""

    mixture: TMixture

    def move(self, point: Point, rng: np.random.Generator) -> Asking[Move]:
        """Step along one ellipse."""
        g, x = self.mixture, point.position
        log_parts = g.log_parts(x[None])[0][:, 0]
        log_g = float(np.logaddexp.reduce(log_parts))
        k = int(np.searchsorted(np.cumsum(np.exp(log_parts[:-1] - log_g)), rng.random()))
        z = g.inverses[k] @ (x - g.means[k])
        variance = 0.5 * (DEGREES + float(z @ z)) / rng.gamma(0.5 * (DEGREES + len(x)))
        v = math.sqrt(variance) * rng.standard_normal(len(x))
        level = point.value - log_g - rng.exponential()
        angle = rng.uniform(0.0, 2.0 * math.pi)
        low, high, tried = angle - 2.0 * math.pi, angle, 0
        while high - low > NARROWEST:
            y = g.means[k] + g.roots[k] @ (math.cos(angle) * z + math.sin(angle) * v)
            new = yield y
            tried += 1
            if new.value - g.log_density(y) > level:
                return Move(new, 1.0 / tried)
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)
        return Move(point, 0.0)
