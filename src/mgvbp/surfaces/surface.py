r"""A quadratic surface through weighted draws: gradients of the lower bound, and how uncertain they are.

Weighted least squares of :math:`h = f - \log q` on :math:`1, \varepsilon_i, \varepsilon_i\varepsilon_j -
\delta_{ij}` in the frame of q gives the lower bound (intercept), g (linear part) and G (minus the quadratic
part). In the frame the bound is, to second order, :math:`\tfrac12 g^\top H^{-1} g + \|G\|^2` below its maximum,
where :math:`H = I + 2G` is minus the Hessian of the surface and only the family's entries of G count.
The covariance of the coefficients (with leave-one-out residuals) says how much of this distance is noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dgemm, dsyrk, dtrsm
from scipy.linalg.lapack import dgeqrf, dposv, dpotrf

from mgvbp.core.linalg import SINGULAR, Array, symmetric_part
from mgvbp.core.records import replace
from mgvbp.estimators.regression import monomials
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces import constants
from mgvbp.surfaces.archive import View
from mgvbp.surfaces.hermite import hermite_polynomials, num_polynomials
from mgvbp.surfaces.kriging import Kriging, adapted, krige, krige_adapted, krige_followed

LWORK = 32
"""Columns that LAPACK reflects together."""
NEARLY_SINGULAR = 1e-5
"""A polynomial of higher degree is not added if the columns before leave less than this of it, relative to the longest:
what is decomposed are squares, which are known to 1e-16."""


class Model(NamedTuple):
    """How a surface models what a quadratic misses."""

    polynomials: tuple[tuple[int, int], ...] = ()
    """The degrees of the polynomials, and of each the most coordinates that one involves."""
    ratio: float = 0.0
    """The ratio λ of kriging; 0 without kriging."""
    metric: Array | None = None
    """What kriging has learnt of the directions that bend, (d, d), in units of the parameters; None if nothing."""
    asked: int = 0
    """Draws with which kriging was last tried as if nothing were known of it."""
    refused: tuple[int, float] = (0, 0.0)
    """How many of the degrees were of use when one more was not, and the effective draws then."""


QUADRATIC = Model()
"""What a quadratic misses is noise."""


@dataclass(frozen=True)
class Surface:
    """The surface at ``q``: whitened gradients, the bound, and how uncertain they are."""

    q: Gaussian
    lower_bound: float
    lower_bound_se: float
    g: Array
    G: Array
    """All of the quadratic part, (d, d), whatever the family of q."""
    num_draws: int
    size: float
    """The effective number of draws."""
    residual: float
    """Standard deviation of the leave-one-out residuals of h, in nats."""
    rest: float
    """Standard deviation of what the quadratic alone misses of h: 0 for a Gaussian target."""
    r2: float
    """Share of the variance of h that the surface predicts (leave-one-out); may be negative."""
    gap: float
    """Distance of the bound from the optimum in nats, according to the surface; noise makes it larger."""
    noise: float
    """Mean of the gap that noise alone would cause, in nats."""
    noise_sd: float
    """Standard deviation of the gap that noise alone would cause."""
    caution: float = 1.0
    """Factor on the noise for a certificate; 1 unless kriging states much less noise than least squares."""
    ridge: bool = False
    """Whether a direction outside the family's structure is so flat that its curvature is lost in the noise."""
    slopes: bool = False
    """Whether it was fitted to gradients."""
    degree: int = 2
    """Degree of the polynomial that was fitted to gradients."""
    jitter: float = 0.0
    """Standard deviation of the noise in the values, in nats."""
    floor: float = -math.inf
    """Lower values were raised to this one: good for a direction, not for a certificate."""
    model: Model = QUADRATIC
    """What it has for what a quadratic misses; of a surface of values only."""

    @property
    def cautious(self) -> Surface:
        """The surface with the noise that a certificate states: ``noise`` times ``caution``."""
        if self.caution == 1.0:
            return self
        return replace(
            self,
            lower_bound_se=math.sqrt(self.caution) * self.lower_bound_se,
            noise=self.caution * self.noise,
            noise_sd=self.caution * self.noise_sd,
            caution=1.0,
        )

    def predicted(self, eps: Array) -> Array:
        """The log density at points of the frame (n, d), according to the quadratic."""
        bent = np.einsum("ni,ni->n", eps @ self.G, eps)
        h = self.lower_bound + eps @ self.g - bent + self.G.trace()
        return np.asarray(h + self.q.log_density_in_frame(eps))

    @property
    def clipped(self) -> bool:
        """Whether low values were raised to a floor."""
        return self.floor > -math.inf

    @property
    def poor(self) -> bool:
        """Whether the surface misses much of the variance of h, or very many nats."""
        d = self.q.dim
        harmless = max(constants.POOR_RESIDUAL, math.sqrt(d), constants.JITTER * self.jitter)
        if self.residual < harmless or self.r2 > 0.9999:
            return False
        return self.r2 < constants.POOR_SHARE or self.residual > constants.POOR_NATS * (0.5 * d + 1.0)


def fit_surface(
    view: View,
    basis: Family,
    values: Array,
    tol: float,
    jitter: float = 0.0,
    *,
    polynomials: bool = True,
    near: Surface | None = None,
) -> Surface | None:
    """Fit the monomials of ``basis``; None where the draws do not determine them.

    What a quadratic misses is modelled in several ways until the gap is known to ``tol`` nats, or better than the next
    leap needs: by ``polynomials`` of higher degree, while there are enough draws, and by a smooth random function,
    unless the values have noise of standard deviation ``jitter``. The fit with the least noise is used. If ``tol`` is
    inf, all polynomials are tried, and no random function. What a surface ``near`` has learnt of the directions that
    bend is used and learnt further.
    """
    q = view.q
    given = _given(view, basis, values)
    if given is None:
        return None
    eps, h, weights, effective = given
    centre, root = float(weights @ h), np.sqrt(weights)
    response = root * (h - centre)
    Z = monomials(basis, eps)
    fitted = Regression.of(root[:, None] * Z, response)
    if fitted is None:
        return None
    known = QUADRATIC if near is None else near.model
    quadratic = fit = fitted.fit(q, basis)
    model, terms, asked, refused = QUADRATIC, QUADRATIC.polynomials, known.asked, known.refused
    for term in higher_degrees(basis, constants.ROOM * effective) if polynomials else ():
        if math.isfinite(tol) and fit.noise <= _enough(fit, constants.PRECISE * tol):
            break
        if len(terms) >= refused[0] and effective < constants.ASKED_AGAIN * refused[1]:
            break
        fitted = fitted.extended(root[:, None] * hermite_polynomials(eps, *term))
        if fitted is None:
            break
        further, terms = fitted.fit(q, basis), (*terms, term)
        if further.noise < fit.noise:
            fit, model = further, Model(terms)
    if len(terms) > len(model.polynomials):
        refused = len(model.polynomials), effective
    caution = 1.0
    worthwhile = _enough(fit, tol) < fit.noise < constants.KRIGE_NOISE
    most = min(
        constants.KRIGE_DRAWS, constants.KRIGE_PLENTY * basis.num_monomials, constants.KRIGE_SHARE * effective
    )
    again = len(h) > constants.ASKED_AGAIN * known.asked
    if worthwhile and len(h) <= most and not jitter and (again or known.ratio):
        asked = len(h) if again else known.asked
        enough = (
            len(h) > constants.ADAPT_ABOVE * basis.num_monomials
            and quadratic.variance > constants.ADAPT_REST**2
        )
        metric = known.metric if enough else None
        wanted = 0.5 * tol if enough and again else math.inf
        kriged = _kriging(q, basis, eps, Z, h - centre, weights, wanted, metric)
        if kriged is not None and kriged[0].noise < fit.noise:
            smooth, model = kriged
            caution = max(1.0, constants.BELIEF * fit.noise / max(smooth.noise, 1e-300))
            fit = smooth
    spread = float(response @ response)
    if not abs(fit.intercept) <= 3.0 * math.sqrt(spread):
        return None  # the mean of h cannot be that far from its values
    return Surface(
        q=q,
        lower_bound=centre + fit.intercept,
        lower_bound_se=fit.intercept_se,
        g=fit.g,
        G=fit.G,
        num_draws=len(h),
        size=effective,
        residual=math.sqrt(fit.variance),
        rest=math.sqrt(quadratic.variance),
        r2=1.0 - fit.variance / spread if spread > 0.0 else 1.0,
        gap=fit.gap,
        noise=fit.noise,
        noise_sd=fit.noise_sd,
        caution=caution,
        jitter=jitter,
        ridge=not q.family.mask.all() and on_a_ridge(fit.G, fit.variance, fit.noise),
        model=model._replace(asked=asked, refused=refused),
    )


def follow_values(view: View, basis: Family, values: Array, like: Surface) -> Surface | None:
    """The surface of a view with the model that ``like`` has of what a quadratic misses, without its noise.

    It costs a small part of `fit_surface`. The bounds of several such surfaces, through the same draws, can be
    compared with each other. Noise and residuals are those of ``like``.
    """
    q, model = view.q, like.model
    given = _given(view, basis, values)
    if given is None:
        return None
    eps, h, weights, effective = given
    centre = float(weights @ h)
    response = h - centre
    Z = monomials(basis, eps)
    if model.ratio:
        metric = None if model.metric is None else _in_frame(q, model.metric)
        coefficients = krige_followed(eps, Z, response, weights, metric, model.ratio)
    else:
        root = np.sqrt(weights)
        X = np.column_stack([Z, *(hermite_polynomials(eps, *columns) for columns in model.polynomials)])
        X *= root[:, None]
        _, coefficients, failed = dposv(X.T @ X, X.T @ (root * response), lower=1)
        coefficients = None if failed else coefficients[: basis.num_monomials]
    if coefficients is None:
        return None
    g, G = gradients(coefficients, basis)
    if not coefficients[0] ** 2 <= 9.0 * float(weights @ np.square(response)):
        return None
    weighted = _weighed(coefficients[1:, None], G, q, basis)
    return replace(
        like,
        q=q,
        lower_bound=centre + float(coefficients[0]),
        lower_bound_se=like.lower_bound_se * math.sqrt(like.size / effective),
        g=g,
        G=G,
        num_draws=len(h),
        size=effective,
        gap=float(weighted[:, 0] @ coefficients[1:]),
    )


def _given(view: View, basis: Family, values: Array) -> tuple[Array, Array, Array, float] | None:
    """The draws whose weights count, in the frame, h, weights and effective number; None if there are too few."""
    keep = view.weights > constants.NEGLIGIBLE / max(len(values), 1)
    if np.count_nonzero(keep) <= basis.num_monomials:
        return None
    weights = view.weights[keep]
    weights = weights / weights.sum()
    return view.eps[keep], values[keep] - view.log_q[keep], weights, 1.0 / float(weights @ weights)


def _enough(fit: _Fit, tol: float) -> float:
    """The noise with which the gap is known well enough, in nats."""
    return max(0.5 * tol, fit.gap / constants.KRIGE_BELOW)


class Regression(NamedTuple):
    """Weighted least squares, to which further columns can be added; X = QR are all columns so far."""

    Q: Array
    """(N, columns)."""
    rows: Array
    """The first p rows of R⁻¹, those of the coefficients of the basis."""
    coefficients: Array
    """Of the basis, (p,)."""
    influence: Array
    """Of each response on each of them, (N, p)."""
    left: Array
    """What the columns leave of the response, (N,)."""
    leverage: Array
    """(N,)."""

    @classmethod
    def of(cls, X: Array, response: Array) -> Regression | None:
        """Begin with the columns of the basis (N, p); None if they are linearly dependent."""
        Q, R = orthogonal(X)
        pivots = np.abs(R.diagonal())
        if not pivots.min() > SINGULAR * pivots.max():
            return None
        rows = dtrsm(1.0, R, np.eye(len(R), order="F"), overwrite_b=1)
        return cls._added(Q, rows, response)

    def extended(self, columns: Array) -> Regression | None:
        """With further columns (N, m); None if they are nearly dependent on each other or on those before."""
        shares = self.Q.T @ columns
        rest = dgemm(-1.0, self.Q, shares, beta=1.0, c=columns)
        gram = dsyrk(1.0, rest, trans=1)
        longest = math.sqrt((np.einsum("pm,pm->m", shares, shares) + gram.diagonal()).max())
        R, failed = dpotrf(gram, lower=0)
        if failed or not R.diagonal().min() > NEARLY_SINGULAR * longest:
            return None
        rows = -dtrsm(1.0, R, self.rows @ shares, side=1)  # [R₁ S; 0 R₂]⁻¹ has −R₁⁻¹ S R₂⁻¹ above R₂⁻¹
        new = self._added(dtrsm(1.0, R, rest, side=1, overwrite_b=1), rows, self.left)
        return Regression(
            np.concatenate([self.Q, new.Q], axis=1),
            np.concatenate([self.rows, rows], axis=1),
            self.coefficients + new.coefficients,
            self.influence + new.influence,
            new.left,
            self.leverage + new.leverage,
        )

    @classmethod
    def _added(cls, Q: Array, rows: Array, left: Array) -> Regression:
        """What orthogonal columns Q add, to which ``left`` of the response is left."""
        rotated = left @ Q
        leverage = np.einsum("np,np->n", Q, Q)
        return cls(Q, rows, rows @ rotated, Q @ rows.T, left - Q @ rotated, leverage)

    def fit(self, q: Gaussian, basis: Family) -> _Fit:
        """The coefficients of the basis."""
        # leave-one-out residuals, times √w
        residuals = self.left / np.maximum(1.0 - self.leverage, constants.EVEN_LEVERAGE)
        errors = self.influence * residuals[:, None]  # what each draw adds to the coefficients
        return _Fit(q, basis, self.coefficients, errors.T @ errors, float(residuals @ residuals))


def _kriging(
    q: Gaussian,
    basis: Family,
    eps: Array,
    Z: Array,
    response: Array,
    weights: Array,
    wanted: float,
    known: Array | None,
) -> tuple[_Fit, Model] | None:
    """The fit by kriging; if its noise is more than ``wanted``, that with a metric adapted to what bends.

    A metric that is ``known``, in units of the parameters, is used as it is, and adapted for the next surface.
    """

    def summary(kriging: Kriging) -> tuple[_Fit, Model]:
        errors = constants.CAUTION * kriging.influence * kriging.residuals
        variance = float(weights @ np.square(kriging.residuals))
        fit = _Fit(q, basis, kriging.coefficients, errors @ errors.T, variance)
        metric = kriging.metric
        if known is not None and metric is not None:
            metric = adapted(metric, eps, kriging.dual)
        return fit, Model((), kriging.ratio, None if metric is None else _from_frame(q, metric))

    kriging = krige(eps, Z, response, weights, None if known is None else _in_frame(q, known))
    if kriging is None:
        return None
    fitted = summary(kriging)
    if known is not None or fitted[0].noise <= wanted:
        return fitted
    better = krige_adapted(eps, Z, response, weights, kriging)
    return fitted if better is kriging else summary(better)


def _in_frame(q: Gaussian, metric: Array) -> Array:
    """A metric in the frame of q."""
    solve, L = q.family.solve, q.factor
    return np.asarray(solve(L, solve(L, metric).T))


def _from_frame(q: Gaussian, metric: Array) -> Array:
    """A metric in units of the parameters."""
    times, L = q.family.times, q.factor
    return np.asarray(times(L, times(L, metric).T))


class _Fit:
    """Coefficients (p,), their covariance (p, p) and the variance of the residuals."""

    def __init__(
        self, q: Gaussian, basis: Family, coefficients: Array, covariance: Array, variance: float
    ) -> None:
        self.variance = variance
        self.intercept, self.intercept_se = float(coefficients[0]), math.sqrt(covariance[0, 0])
        self.g, self.G = gradients(coefficients, basis)
        product = _weighed(
            np.column_stack([coefficients[1:], covariance[1:, 1:]]), self.G, q, basis
        )  # M [c C]
        self.gap = float(product[:, 0] @ coefficients[1:])
        self.noise = float(product[:, 1:].trace())
        self.noise_sd = math.sqrt(max(2.0 * float(np.vdot(product[:, 1:], product[:, 1:].T)), 0.0))


def gradients(coefficients: Array, basis: Family) -> tuple[Array, Array]:
    """The vector g and the matrix G of the coefficients (p,)."""
    d, (i, j) = basis.dim, basis.pairs
    quadratic = np.zeros((d, d), order="F")
    quadratic[i, j] = -coefficients[1 + d :]
    return coefficients[1 : 1 + d], symmetric_part(quadratic)


def _weighed(columns: Array, G: Array, q: Gaussian, basis: Family) -> Array:
    """The product M ``columns`` (p − 1, k), where the gap of coefficients c, without the intercept, is cᵀMc.

    M is ½H⁻¹ for the linear part. For the family's entries of G it is 1 on the diagonal and ½ off the diagonal, where
    the coefficient is 2 G_ij and ‖G‖² counts G_ij twice.
    """
    d, (i, j) = q.dim, basis.pairs
    H = 2.0 * G
    H.flat[:: d + 1] += 1.0
    _, solved, info = dposv(H, columns[:d], lower=1)
    quadratic = columns[d:] * (np.where(i == j, 1.0, 0.5) * q.family.mask[i, j])[:, None]
    return np.concatenate([0.5 * (solved if info == 0 else columns[:d]), quadratic])


def on_a_ridge(G: Array, variance: float, noise: float) -> bool:
    """Whether ``H⁻¹ = (I + 2G)⁻¹``, which the gap of a structured family needs, may be far off.

    It may be if the smallest eigenvalue of H is below its error, 2 √noise. ``variance`` is the variance of the
    residuals: a surface without residuals is not in doubt.
    """
    smallest = float(np.linalg.eigvalsh(G)[0])
    return variance > constants.ROUND_OFF and 1.0 + 2.0 * smallest < 2.0 * math.sqrt(noise)


def orthogonal(A: Array) -> tuple[Array, Array]:
    """``Q`` and ``R`` (on and above its diagonal) with ``A = Q R``: R by reflections, then Q = A R⁻¹."""
    R = dgeqrf(A, lwork=LWORK * A.shape[1])[0][: A.shape[1]]
    return dtrsm(1.0, R, A, side=1), R


def higher_degrees(basis: Family, room: float) -> Iterator[tuple[int, int]]:
    """The degrees of Hermite polynomials, from 3 on, while there is room for their columns.

    With each comes the most coordinates that a polynomial involves.
    """
    columns = basis.num_monomials
    for degree in range(3, constants.HIGHEST_DEGREE + 1):
        allowed = min(room, constants.MOST_CUBIC if degree == 3 else constants.MOST_COLUMNS)
        most = 3 if columns + num_polynomials(basis.dim, degree, 3) <= allowed else 2
        columns += num_polynomials(basis.dim, degree, most)
        if columns > allowed:
            break
        yield degree, most
