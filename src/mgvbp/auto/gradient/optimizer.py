r"""The search with gradients: climb, see the curvature, then leap, refine and verify (`search`).

1. *Ascent* (`ascent`) from the initial mean, until a step promises less than about d/4 nats.
2. *Curvature*: a few narrow draws there show the Hessian, and so Laplace's approximation (`start`).
3. *Survey* it. Where the surface misses much, the mode is no place for a Gaussian (in a funnel, or a hierarchy
   whose groups are nearly equal): *retreat* to the initial Gaussian, with standard deviations halved until its
   surface predicts what is there. Near enough any density is quadratic.
4. *Leap*, *refine* and *verify* as every `Search` does, on surfaces that gradients give (`surface`): these need
   about 1.3 draws a parameter instead of a coefficient.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp._linalg import Array
from mgvbp.auto.archive import View
from mgvbp.auto.gradient.archive import GradientArchive
from mgvbp.auto.gradient.ascent import Ascent, Point
from mgvbp.auto.gradient.start import laplace, narrow, place
from mgvbp.auto.gradient.surface import fit_gradients
from mgvbp.auto.leap import Leap
from mgvbp.auto.search import FAR_FROM_GAUSSIAN, Search
from mgvbp.auto.surface import Surface
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.gaussian import Gaussian
from mgvbp.problem import checked_derivatives, checked_values, grad_log_prior, log_prior

ABOUT_THE_MEAN = 4
"""Retreats that keep the mean; later ones go to the best draw."""
MOST_RETREATS = 16
PAIRED_ABOVE = 16
"""Dimension from which draws ±ε are made: below, polynomials of higher degree take away more noise."""


class GradientAutoOptimizer(Search):
    """An ask/tell run of `Auto` for a log-likelihood with a gradient; batches differ in size.

    The parameters are those of `Search`, but a prior must have ``grad_log_density``. A value with its gradient is
    one evaluation, of which by default there are at most 100 (d + 10).

    Examples
    --------
    >>> from mgvbp import Auto
    >>> opt, scales = GradientAutoOptimizer(Auto(), 2), np.array([1.0, 100.0])
    >>> while not opt.stop_reason:
    ...     theta = opt.ask()
    ...     info = opt.tell(-((theta - 3.0) ** 2) @ scales, -2.0 * (theta - 3.0) * scales)
    >>> opt.gaussian.mean.round(6), opt.converged
    (array([3., 3.]), True)
    """

    FASTEST_GROWTH = 1.3
    LEAST_GAIN = 0.2
    _archive: GradientArchive
    _ascent: Ascent | None = None
    _climbing = True
    _paired = False
    _scale = 1.0
    _retreats = 0

    def _sizes(self) -> tuple[int, float, int]:
        count = self.dim + 1
        return count + max(6, math.ceil(0.3 * count)), max(60.0, 4.0 * count), 100 * (self.dim + 10)

    def _empty_archive(self) -> GradientArchive:
        return GradientArchive(self.dim)

    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        q = self._source = self._proposal
        if self._climbing and (self._ascent or not self.iteration):
            return place(self._first, self._ascent.ask() if self._ascent else np.zeros(self.dim))[None]
        self._paired = self.dim > PAIRED_ABOVE and self.phase in ("refine", "verify")
        if not self._paired:
            return q.sample(count, rng)
        half = rng.standard_normal((-(-count // 2), self.dim))
        eps = np.stack([half, -half], axis=1).reshape(-1, self.dim)[:count]
        return q.mean + q.family.from_frame(q.factor, eps)

    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, ...]:
        if gradients is None:
            raise InvalidInputError("this search needs gradients: tell(values, gradients)")
        density = checked_values(values, theta, "log_likelihood") + log_prior(self.prior, theta)
        slopes = checked_derivatives(gradients, theta, "the gradient") + grad_log_prior(self.prior, theta)
        return density, slopes

    def _take(self, theta: Array, finite: NDArray[np.bool_], values: Array, gradients: Array) -> None:
        if self._climbing:
            self._ascend(theta, finite, values, gradients)
        else:
            self._archive.add_gradients(self._source, theta, values, gradients, paired=self._paired)

    def _fit(self, view: View) -> Surface | None:
        archive = self._archive
        return fit_gradients(view, archive.values, archive.gradients, archive.groups, self.method.tol)

    def _gained(self, leap: Leap, view: View, after: Surface | None) -> tuple[float, float]:
        before, overlap = self._surface, 0.0
        assert before is not None
        if self._fresh:  # both bounds from the same draws: where these overlap the errors cancel
            before = self._surface = self._fit(self._archive.view(self._q)) or before
            overlap = math.sqrt(min(1.0, leap.kl))
        if after is None:
            return -math.inf, 0.0
        se = overlap * math.hypot(before.lower_bound_se, after.lower_bound_se)
        # a bound known no better than the gain, on a surface that misses much, is a guess
        guess = after.poor and after.lower_bound_se > 0.25 * leap.gain
        return -math.inf if guess else after.lower_bound - before.lower_bound, se

    def _misleading(self, surface: Surface) -> bool:
        return surface.poor and self.phase in ("hessian", "survey")

    def _settle(self, surface: Surface | None) -> None:
        if self.phase == "hessian" and surface is not None and not surface.poor:
            self._begin_anew(laplace(surface, self._scale))
        else:
            super()._settle(surface)

    def _try(self, leap: Leap, surface: Surface) -> None:
        """Old draws are not enough to judge a new q where the target is far from Gaussian."""
        super()._try(leap, surface)
        self._fresh = surface.rest > FAR_FROM_GAUSSIAN and leap.gain > 2.0 * self.method.tol
        self._want = self.least if self._fresh else 0

    def _num_fresh(self, rest: float) -> int:
        return max(20, self.dim + 1) if rest < FAR_FROM_GAUSSIAN else max(60, 6 * (self.dim + 1))

    # --- to where a Gaussian may be ---------------------------------------------------------------

    @property
    def _away(self) -> bool:
        return self._climbing

    def _ascend(self, theta: Array, finite: NDArray[np.bool_], values: Array, gradients: Array) -> None:
        """Take the next step of the ascent, which begins at the mean or, if it must, at the best of some draws."""
        first, d = self._first, self.dim
        slopes = first.family.solve(first.factor, gradients)
        if self._ascent is not None:
            self._ascent.tell(float(values[0]), slopes[0])
        elif finite.any():
            best = int(np.argmax(np.where(finite, values, -np.inf)))
            x = first.family.to_frame(first.factor, theta[best] - first.mean)
            start = Point(x, float(values[best]), slopes[best])
            self._ascent = Ascent(start, promise=0.25 * d + 0.5, budget=5 * (d + 10))
        elif self.iteration > 1:
            raise DivergenceError(
                f"all {self.n_evaluations} draws so far have non-finite values or gradients: start where the function "
                "is finite (initial_mean, initial_variance); the draws are this exception's .theta",
                theta,
            )
        if self._ascent and self._ascent.arrived:
            self._q, self._scale = narrow(first, self._ascent)
            self._climbing, self.phase = False, "hessian"

    def _escape(self) -> None:
        """A surface here would mislead: from the initial Gaussian on, with half the standard deviations each time."""
        if self._retreats == MOST_RETREATS:
            self._stop("no region was found where a Gaussian fits")
            return
        if self._retreats == 0 and self._q is not self._first:
            q = self._first
        else:
            values = self._archive.values
            best = int(np.argmax(np.where(self._archive.view(self._q).weights > 0.0, values, -np.inf)))
            keeps = self._retreats < ABOUT_THE_MEAN or not np.isfinite(values[best])
            mean = self._q.mean if keeps else self._archive.theta[best].copy()
            q = Gaussian.from_factor(mean, 2.0 * self._q.factor, self.family)
        self._retreats += 1
        self._begin_anew(q)
