"""A quadratic surface through the values and gradients of weighted draws, and how uncertain it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces import constants
from mgvbp.surfaces.archive import View, twins
from mgvbp.surfaces.gradient_regression import Draws, GradientFit, Slopes, linear, linear_followed
from mgvbp.surfaces.potential import degrees, potential, potential_followed
from mgvbp.surfaces.surface import Surface, on_a_ridge


def fit_gradients(
    view: View, values: Array, gradients: Array, groups: NDArray[np.intp], tol: float
) -> Surface | None:
    """The surface of a view of draws with ``values`` (N,), ``gradients`` (N, d) and ``groups`` (N,).

    A linear regression of the gradients is always made. If its noise keeps the gap from being known to ``tol`` nats,
    polynomials of higher degree are fitted as well. The fit with the least noise is used. The result is None where
    the draws do not determine a surface.
    """
    q = view.q
    given = _given(view, values, gradients, groups)
    if given is None:
        return None
    draws, h, effective = given
    weights = draws.weights
    first = linear(draws, q.family)
    if first is None:
        return None
    fit = plain = _Fit(q, first, draws, 2)
    if plain.noise > max(0.3 * tol, plain.gap / constants.KRIGE_BELOW):
        for degree in degrees(draws):
            estimate = potential(draws, q.family, degree)
            if estimate is not None:
                fit = min(fit, _Fit(q, estimate, draws, degree), key=lambda candidate: candidate.noise)
    fit.state_at_least(constants.GRADIENT_BELIEF * plain.noise)
    bound, bound_se, sd = _bound(fit.estimate, draws, h)
    if not abs(bound - float(weights @ h)) <= 3.0 * sd:
        return None  # the mean of h cannot be that far from its values
    spread = float(weights @ np.square(draws.v).sum(axis=1))
    return Surface(
        q=q,
        lower_bound=bound,
        lower_bound_se=bound_se,
        g=fit.estimate.g,
        G=fit.estimate.G,
        num_draws=len(h),
        size=effective,
        residual=math.sqrt(fit.variance / 3.0),
        rest=math.sqrt(plain.variance / 3.0),
        r2=1.0 - fit.variance / spread if spread > 0.0 else 1.0,
        gap=fit.gap,
        noise=fit.noise,
        noise_sd=fit.noise_sd,
        slopes=True,
        degree=fit.degree,
        ridge=not q.family.mask.all() and on_a_ridge(fit.estimate.G, fit.variance, fit.noise),
    )


def follow_gradients(view: View, values: Array, gradients: Array, like: Surface) -> Surface | None:
    """The surface of a view by the polynomial of the degree that ``like`` has, without its noise.

    It costs a small part of `fit_gradients`. The bounds of several such surfaces, through the same draws, can be
    compared with each other. Noise, residuals and errors are those of ``like``.
    """
    weighted, q = _weighted(view, values), view.q
    if weighted is None:
        return None
    keep, eps, h, weights, effective = weighted
    draws = Slopes(q, eps, weights, gradients[keep])
    found = linear_followed(draws) if like.degree == 2 else potential_followed(draws, like.degree)
    if found is None or not np.isfinite(found.g).all():
        return None
    g, G = found.g, found.G
    mean = float(weights @ h)
    if not found.mean**2 <= 9.0 * float(weights @ np.square(h - mean)):
        return None
    gap = 0.5 * float(g @ _solved(G, g[:, None])[:, 0]) + float(np.square(G[q.family.mask]).sum())
    return replace(
        like, q=q, lower_bound=mean - found.mean, g=g, G=G, num_draws=len(h), size=effective, gap=gap
    )


def _given(
    view: View, values: Array, gradients: Array, groups: NDArray[np.intp]
) -> tuple[Draws, Array, float] | None:
    """What a regression is given, h at its draws, and their effective number; None if there are too few."""
    weighted, q = _weighted(view, values), view.q
    if weighted is None:
        return None
    keep, eps, h, weights, effective = weighted
    v = q.family.solve(q.factor, gradients[keep]) + eps
    if not np.isfinite(v).all():
        return None
    known = groups[keep]
    return Draws(eps, v, weights, _kept(twins(groups), keep), _batches(known)), h, effective


def _weighted(view: View, values: Array) -> tuple[NDArray[np.intp], Array, Array, Array, float] | None:
    """The draws whose weights count, in the frame, with h, weights and effective number; None if there are too few."""
    keep, d = np.flatnonzero(view.weights > constants.NEGLIGIBLE / max(len(values), 1)), view.q.dim
    if len(keep) < d + 2:
        return None
    weights = view.weights[keep]
    weights = weights / weights.sum()
    effective = 1.0 / float(weights @ weights)
    if effective < d + 1.5:
        return None
    return keep, view.eps[keep], values[keep] - view.log_q[keep], weights, effective


def _solved(G: Array, right: Array) -> Array:
    """``(I + 2G)⁻¹`` times ``right``, (d, k); ``right`` itself where the matrix is not positive definite."""
    H = 2.0 * G
    H.flat[:: len(G) + 1] += 1.0
    _, solved, info = dposv(H, right, lower=1)
    return np.asarray(solved if info == 0 else right)


def _kept(mirrors: NDArray[np.intp], keep: NDArray[np.intp]) -> NDArray[np.intp]:
    """The indices of mirror images among the draws that are kept; a draw whose image is not kept is its own."""
    places = np.full(len(mirrors), -1)
    places[keep] = np.arange(len(keep))
    kept = places[mirrors[keep]]
    return np.asarray(np.where(kept < 0, np.arange(len(keep)), kept))


def _batches(groups: NDArray[np.intp]) -> tuple[slice, ...]:
    """The rows of each group that is more than a pair."""
    starts = np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))
    ends = np.append(starts[1:], len(groups))
    return tuple(slice(a, b) for a, b in zip(starts, ends, strict=True) if b - a > 2)


def _rows(batches: tuple[slice, ...]) -> NDArray[np.intp]:
    """The draws in some batches."""
    return np.concatenate([np.arange(rows.start, rows.stop) for rows in batches])


def _bound(estimate: GradientFit, draws: Draws, h: Array) -> tuple[float, float, float]:
    r"""The mean of h under q, its standard error, and the standard deviation of h.

    What the regression predicts of h has mean 0: it is a control variate. Of few draws it predicts too much, because
    it was fitted to them. So the error comes from differences between h and what the other draws predict, where a pair
    ±ε counts as one draw. The mean of what a draw contributes to its own prediction is a bias, and added to the error.
    """
    weights = draws.weights
    centre = float(weights @ h)
    sd = math.sqrt(float(weights @ np.square(h - centre)))
    bound = centre - float(weights @ estimate.predicted)
    errors = weights * (h - bound - estimate.predicted + estimate.own)
    paired = draws.twins != np.arange(len(draws.twins))
    squares = float(errors @ errors) + float(errors[paired] @ errors[draws.twins[paired]])
    bias = float(weights @ estimate.own)
    return bound, math.sqrt(max(squares, 0.0) + bias * bias), sd


class _Fit:
    """An estimate with its gap, and how much of the gap is noise."""

    def __init__(self, q: Gaussian, estimate: GradientFit, draws: Draws, degree: int) -> None:
        self.estimate, self.degree = estimate, degree
        self.variance = float(draws.weights @ np.square(estimate.residuals).sum(axis=1))
        g, G = estimate.g, estimate.G
        solved = _solved(G, np.column_stack([g, estimate.errors.T]))
        self.gap = 0.5 * float(g @ solved[:, 0]) + float(np.square(G[q.family.mask]).sum())
        # ½ δᵀH⁻¹δ' + ⟨δG, δG'⟩ for two draws, which contribute δ, δG and δ', δG' to the errors; a pair is one draw
        errors, solved = estimate.errors, solved[:, 1:]
        firsts = np.flatnonzero(draws.twins >= np.arange(len(errors)))
        seconds = draws.twins[firsts]

        def inner(one: NDArray[np.intp], two: NDArray[np.intp]) -> Array:
            by_mean = np.einsum("nd,dn->n", errors[one], solved[:, two])
            return np.asarray(0.5 * by_mean + estimate.bends.inner(one, two))

        paired = seconds != firsts
        squares = inner(firsts, firsts)
        squares[paired] += inner(seconds[paired], seconds[paired])
        squares[paired] += 2.0 * inner(firsts[paired], seconds[paired])
        self.noise = float(squares.sum())
        self.noise_sd = math.sqrt(2.0 * (float(squares @ squares) + self._crossed(draws, solved)))
        if len(draws.batches) >= constants.FEWEST_BATCHES:
            kept = self._kept(draws, solved, float(squares[np.isin(firsts, _rows(draws.batches))].sum()))
            self.noise *= kept
            self.noise_sd *= kept

    def _kept(self, draws: Draws, solved: Array, by_pairs: float) -> float:
        """The share of the noise that is left if batches have the noise that their sums show, and not that of pairs.

        What a batch contributes is compared with all draws, itself among them, so that its square is too small by its
        share of the weights. The sum of the squares is known with an error, one standard deviation of which is added.
        """
        batches = draws.batches
        sums = np.array([self.estimate.errors[rows].sum(axis=0) for rows in batches])
        ahead = np.array([solved[:, rows].sum(axis=1) for rows in batches])
        bends = np.square(self.estimate.bends.summed(batches)).sum(axis=1)
        shares = np.array([draws.weights[rows].sum() for rows in batches])
        shown = float(((0.5 * np.einsum("kd,kd->k", sums, ahead) + bends) / (1.0 - shares)).sum())
        shown *= 1.0 + self.noise_sd / max(self.noise, 1e-300) / math.sqrt(len(batches))
        least = constants.GRADIENT_BELIEF * by_pairs
        return 1.0 - max(by_pairs - max(shown, least), 0.0) / max(self.noise, 1e-300)

    def _crossed(self, draws: Draws, solved: Array) -> float:
        """The sum of the squared inner products between different draws, by `constants.MOST_CROSSED` of them."""
        errors, twins = self.estimate.errors, draws.twins
        firsts = np.flatnonzero(twins >= np.arange(len(twins)))
        some = firsts[:: -(-len(firsts) // constants.MOST_CROSSED)]
        if len(some) < 2:
            return 0.0
        rows = np.unique(np.concatenate([some, twins[some]]))
        gram = 0.5 * (errors[rows] @ solved[:, rows]) + self.estimate.bends.gram(rows)
        starts = np.searchsorted(rows, some)
        if len(some) < len(rows):
            for _ in range(2):  # sums of rows are much faster than sums of columns
                gram = np.ascontiguousarray(np.add.reduceat(gram, starts, axis=0).T)
        total = float(np.vdot(gram, gram)) - float(np.square(gram.diagonal()).sum())
        return max(total, 0.0) * len(firsts) * (len(firsts) - 1.0) / (len(some) * (len(some) - 1.0))

    def state_at_least(self, noise: float) -> None:
        """Scale the errors up, if need be, so that the noise is at least ``noise``."""
        factor = max(1.0, noise / max(self.noise, 1e-300))
        self.noise *= factor
        self.noise_sd *= factor
