r"""A quadratic surface through weighted draws: gradients of the lower bound, and how uncertain they are.

Weighted least squares of :math:`h = f - \log q` on :math:`1, \varepsilon_i, \varepsilon_i\varepsilon_j -
\delta_{ij}` in the frame of q gives the lower bound (intercept), g (linear part) and G (minus the quadratic
part). In the frame the bound is, to second order, :math:`\tfrac12 g^\top H^{-1} g + \|G\|^2` below its maximum,
where :math:`H = I + 2G` is minus the Hessian of the surface and only the family's entries of G count.
The covariance of the coefficients (with leave-one-out residuals) says how much of that is noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm

from mgvbp._linalg import Array, cholesky
from mgvbp.auto.hermite import hermite_polynomials, num_polynomials
from mgvbp.auto.kriging import krige
from mgvbp.errors import NotPositiveDefiniteError
from mgvbp.estimators.regression import monomials
from mgvbp.families import Family
from mgvbp.gaussian import Gaussian

ROOM = 0.65
"""Columns per effective draw up to which polynomials of higher degree are fitted alongside."""
MOST_COLUMNS = 1000
HIGHEST_DEGREE = 6
SMOOTH_BELOW = 20.0
"""Gap, in units of the noise, above which the next leap does not need kriging."""
SMOOTH_DRAWS = 2500
"""Draws above which it takes too long."""
SMOOTH_SHARE = 3.0
"""Draws per effective draw above which too many lie where q does not go: they would shape the function there."""
SMOOTH_CAUTION = 1.5
"""Factor on the errors that kriging states: its draws are not independent of what they predict."""
SMOOTH_BELIEF = 0.4
"""Share of the noise of least squares below which kriging is not believed: rough functions mislead it."""
ROUND_OFF = 1e-12
"""Variance of residuals, in squared nats, of a target that is quadratic."""
SINGULAR = 1e-9
NEGLIGIBLE = 1e-9
"""Draws with a smaller share of the weight, relative to an equal share, are left out."""


@dataclass(frozen=True)
class Surface:
    """The surface at ``q``: whitened gradients, the bound, and what is uncertain about them."""

    q: Gaussian
    lower_bound: float
    lower_bound_se: float
    g: Array
    G: Array
    """All of the quadratic part, (d, d), whatever the family of q."""
    size: float
    """Effective number of draws."""
    residual: float
    """Standard deviation of the leave-one-out residuals of h, in nats."""
    rest: float
    """Standard deviation of what the quadratic alone misses of h: 0 for a Gaussian target."""
    r2: float
    """Share of the variance of h that the surface predicts (leave-one-out); may be negative."""
    gap: float
    """Nats to the optimum as the surface has it, noise included."""
    noise: float
    """How much of the gap noise alone would make, on average ..."""
    noise_sd: float
    """... and its standard deviation."""
    ridge: bool = False
    """Whether a direction outside the family's structure is so flat that its curvature is lost in the noise."""
    clipped: bool = False
    """Whether low values were raised to a floor: good for a direction, not for a certificate."""


def fit_surface(
    q: Gaussian, basis: Family, theta: Array, values: Array, weights: Array, tol: float
) -> Surface | None:
    """Fit the monomials of ``basis``; None where the draws do not determine them.

    What a quadratic misses is taken out in several ways, of which the one with the least noise is used: by
    polynomials of higher degree, where there are draws enough, and as a smooth random function, where the
    noise is what keeps the gap from being known to ``tol`` nats.
    """
    keep = weights > NEGLIGIBLE / max(len(weights), 1)
    theta, values, weights = theta[keep], values[keep], weights[keep] / weights[keep].sum()
    if len(theta) <= basis.num_monomials:
        return None
    eps = q.family.to_frame(q.factor, theta - q.mean)
    h = values - q.log_density_in_frame(eps)
    effective = 1.0 / float(weights @ weights)
    centre, root = float(weights @ h), np.sqrt(weights)
    sizes, Z = regressors(basis, eps, ROOM * effective)
    Q, R = np.linalg.qr(root[:, None] * Z)
    pivots = np.abs(R.diagonal())
    sizes = [size for size in sizes if pivots[:size].min() > SINGULAR * pivots[:size].max()]
    response = root * (h - centre)
    fits = [_least_squares(q, basis, Q[:, :size], R[:size, :size], response) for size in sizes]
    if not fits:
        return None
    fit = min(fits, key=lambda candidate: candidate.noise)
    worthwhile = fit.noise > max(0.5 * tol, fit.gap / SMOOTH_BELOW)
    if worthwhile and len(h) <= min(SMOOTH_DRAWS, SMOOTH_SHARE * effective):
        smooth = _kriging(q, basis, eps, Z[:, : basis.num_monomials], h - centre, weights)
        if smooth is not None and smooth.noise < fit.noise:
            smooth.state_at_least(SMOOTH_BELIEF * fit.noise)
            fit = smooth
    spread = float(response @ response)
    if not abs(fit.coefficients[0]) <= 3.0 * math.sqrt(spread):
        return None  # the mean of h cannot be that far from its values
    return Surface(
        q=q,
        lower_bound=centre + float(fit.coefficients[0]),
        lower_bound_se=fit.intercept_se,
        g=fit.g,
        G=fit.G,
        size=effective,
        residual=math.sqrt(fit.variance),
        rest=math.sqrt(fits[0].variance),
        r2=1.0 - fit.variance / spread if spread > 0.0 else 1.0,
        gap=fit.gap,
        noise=fit.noise,
        noise_sd=fit.noise_sd,
        ridge=not q.family.mask.all() and fit.on_a_ridge,
    )


def _least_squares(q: Gaussian, basis: Family, Q: Array, R: Array, response: Array) -> _Fit:
    """By the QR decomposition of weighted regressors, of which the basis comes first."""
    rotated = Q.T @ response
    leverage = np.einsum("np,np->n", Q, Q)
    residuals = (response - Q @ rotated) / np.maximum(1.0 - leverage, 0.05)  # leave-one-out, times √w
    rows = solve_lower(R.T, np.eye(len(R), basis.num_monomials)).T  # the basis's rows of R⁻¹
    return _Fit(q, basis, rows @ rotated, rows @ (Q * residuals[:, None]).T, residuals)


def _kriging(
    q: Gaussian, basis: Family, eps: Array, Z: Array, response: Array, weights: Array
) -> _Fit | None:
    kriging = krige(eps, Z, response, weights)
    if kriging is None:
        return None
    errors = SMOOTH_CAUTION * kriging.influence * kriging.residuals
    return _Fit(q, basis, kriging.coefficients, errors, np.sqrt(weights) * kriging.residuals)


class _Fit:
    """Coefficients (p,), the error that each draw contributes to them, (p, N), and √w times the residuals."""

    def __init__(
        self, q: Gaussian, basis: Family, coefficients: Array, errors: Array, residuals: Array
    ) -> None:
        d, (i, j) = q.dim, basis.pairs
        self.coefficients = coefficients
        self.variance = float(residuals @ residuals)
        self.intercept_se = float(np.linalg.norm(errors[0]))
        self.g, quadratic = self.coefficients[1 : 1 + d], np.zeros((d, d))
        quadratic[i, j] = -self.coefficients[1 + d :]
        self.G = 0.5 * (quadratic + quadratic.T)
        # in units in which the gap is the squared length: H^(-1/2) g / √2 and the family's entries of G
        mine = q.family.mask[i, j]
        # off the diagonal a coefficient is 2 G_ij, met twice
        scale = np.where(i == j, 1.0, math.sqrt(0.5))[mine]
        try:
            root_H = cholesky(np.eye(d) + 2.0 * self.G)
        except NotPositiveDefiniteError:
            root_H = np.eye(d)

        def in_nats(x: Array) -> Array:
            linear = math.sqrt(0.5) * solve_lower(root_H, x[1 : 1 + d])
            return np.concatenate([linear, scale[:, None] * x[1 + d :][mine]])

        nats = in_nats(errors)
        covariance = nats @ nats.T
        self.gap = float(np.sum(np.square(in_nats(self.coefficients[:, None]))))
        self.noise = float(np.trace(covariance))
        self.noise_sd = math.sqrt(2.0 * float(np.sum(np.square(covariance))))

    @property
    def on_a_ridge(self) -> bool:
        """Whether ``H⁻¹``, which the gap of a structured family needs, may be far off: H errs by 2 √noise."""
        smallest = float(np.linalg.eigvalsh(self.G)[0])
        return self.variance > ROUND_OFF and 1.0 + 2.0 * smallest < 2.0 * math.sqrt(self.noise)

    def state_at_least(self, noise: float) -> None:
        """State larger errors, if need be, so that the noise is ``noise``."""
        factor = max(1.0, noise / max(self.noise, 1e-300))
        self.noise *= factor
        self.noise_sd *= factor
        self.intercept_se *= math.sqrt(factor)


def regressors(basis: Family, eps: Array, room: float) -> tuple[list[int], Array]:
    """The monomials of ``basis`` and Hermite polynomials of higher degree; how many columns up to each degree."""
    Z = monomials(basis, eps)
    blocks, sizes = [Z], [Z.shape[1]]
    room = min(room, MOST_COLUMNS)
    for degree in range(3, HIGHEST_DEGREE + 1):
        most = 3 if sizes[-1] + num_polynomials(basis.dim, degree, 3) <= room else 2
        if sizes[-1] + num_polynomials(basis.dim, degree, most) > room:
            break
        blocks.append(hermite_polynomials(eps, degree, most))
        sizes.append(sizes[-1] + blocks[-1].shape[1])
    return sizes, np.concatenate(blocks, axis=1) if len(blocks) > 1 else Z


def solve_lower(L: Array, B: Array) -> Array:
    """``L⁻¹ B`` for a lower triangle L and a matrix B."""
    return dtrsm(1.0, L, B, lower=1)
