r"""The surface of very many parameters, from sums over draws that are then forgotten.

Draws from q come as pairs ±ε. Of v, the gradient of h in the frame, the odd part :math:`o = (v(ε) - v(-ε))/2` has the
regression −2Gε, and what this leaves is of the fourth degree: the cubic part of h is in the even part
:math:`e = (v(ε) + v(-ε))/2`, whose mean is g. With the sums :math:`S = \sum εε^\top` and :math:`R = \sum εv^\top`

.. math:: C = S^{-1} R, \qquad G = -\tfrac12 \operatorname{sym} C .

The true C is symmetric, so that its antisymmetric part is noise and shows how much there is in the symmetric part too.
Each draw takes a few d² operations and no memory. Draws that are not pairs are centred first, and serve for a Hessian:
they say nothing about the even part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv

from mgvbp.core.linalg import Array, symmetric_part
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.surface import Surface

NOISE = 1.25
"""Factor on the noise that the antisymmetric part shows: the symmetric part has a little more, from draws whose error
points along themselves."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over draws from ``q``, in its frame."""

    q: Gaussian
    S: Array
    """Σ εεᵀ, (d, d); only its lower triangle is filled."""
    R: Array
    """Σ εvᵀ, (d, d)."""
    eps: Array
    """Σ ε, (d,)."""
    v: Array
    """Σ v, (d,)."""
    paired: bool = True
    count: int = 0
    even: float = 0.0
    """Σ ‖e‖² over pairs."""
    squares: float = 0.0
    """Σ ‖v‖²."""
    level: float = 0.0
    """h at the first draw; it is taken from the values so that sums of squares keep their digits."""
    h: float = 0.0
    h_squares: float = 0.0
    """Sums of h − level over the draws, and of the squares of its means over pairs."""

    @classmethod
    def empty(cls, q: Gaussian, *, paired: bool = True) -> Moments:
        """No draws yet."""
        d = q.dim
        return cls(
            q, np.zeros((d, d), order="F"), np.zeros((d, d), order="F"), np.zeros(d), np.zeros(d), paired
        )

    def add(self, theta: Array, values: Array, gradients: Array) -> Moments:
        """With more draws (n, d), pairs one after the other if ``paired``, and their finite values and gradients."""
        family, factor = self.q.family, self.q.factor
        eps = family.to_frame(factor, theta - self.q.mean)
        v = family.solve(factor, gradients) + eps
        h = values - self.q.log_density_in_frame(eps)
        level = self.level if self.count else float(h[0])
        halves, means = v[:0], h - level
        if self.paired:
            halves, means = 0.5 * (v[::2] + v[1::2]), 0.5 * (h[::2] + h[1::2]) - level
        return replace(
            self,
            S=dsyrk(1.0, eps, 1.0, np.array(self.S, order="F"), trans=1, lower=1, overwrite_c=1),
            R=np.asfortranarray(self.R + eps.T @ v),
            eps=self.eps + eps.sum(axis=0),
            v=self.v + v.sum(axis=0),
            count=self.count + len(theta),
            even=self.even + float(np.vdot(halves, halves)),
            squares=self.squares + float(np.vdot(v, v)),
            level=level,
            h=self.h + float(h.sum()) - len(h) * level,
            h_squares=self.h_squares + float(means @ means),
        )

    def surface(self) -> Surface | None:
        """The surface at q; None if the draws do not determine one."""
        d, n = self.q.dim, self.count
        groups = n // 2 if self.paired else n - 1
        if groups < d + 2:
            return None
        centre, g = self.eps / n, self.v / n
        _, C, info = dposv(
            self.S - n * np.outer(centre, centre), self.R - n * np.outer(centre, g), lower=1, overwrite_a=1
        )
        if info != 0 or not np.isfinite(C).all():
            return None
        g, G = g - C.T @ centre, symmetric_part(-0.5 * C)
        H = 2.0 * G
        H.flat[:: d + 1] += 1.0
        _, solved, info = dposv(H, g, lower=1)
        gap = 0.5 * float(g @ (solved if info == 0 else g)) + float(np.vdot(G, G))
        asymmetric = 0.25 * float(np.square(C - C.T).sum())  # ‖(C − Cᵀ)/2‖²
        explained = float(np.vdot(self.R, C))
        even = max(self.even - groups * float(g @ g), 0.0) / (groups - 1) if self.paired else 0.0
        odd = (
            max(self.squares - 2.0 * self.even - explained, 0.0)
            / (2.0 if self.paired else 1.0)
            / (groups - d)
        )
        noise = NOISE * 0.25 * asymmetric + 0.5 * even / groups
        mean, blurred = self.h / n, NOISE * 0.25 * asymmetric
        variance = max(self.h_squares / groups - mean * mean, 0.0)
        explained = 2.0 * max(float(np.vdot(G, G)) - blurred, 0.0)
        spread = 0.0
        if explained > 0.5 * variance:  # the quadratic is a control variate, unless it is mostly noise
            # S has the lower triangle only: off the diagonal each entry counts twice
            spread = (
                2.0 * np.vdot(np.tril(self.S, -1), G) + self.S.diagonal() @ G.diagonal()
            ) / n - G.trace()
            variance = max(variance - explained, 0.0) + 2.0 * blurred
        missed = (even + odd) / 3.0
        return Surface(
            q=self.q,
            lower_bound=self.level + mean + float(spread),
            lower_bound_se=math.sqrt((variance + 1e-12) / groups),
            g=g,
            G=G,
            num_draws=n,
            size=float(n),
            residual=math.sqrt(missed),
            rest=math.sqrt(missed),
            r2=1.0 - (even + odd) / max(self.squares / n, 1e-300),
            gap=gap,
            noise=noise,
            noise_sd=noise * math.sqrt(2.0 / d),
            slopes=True,
        )
