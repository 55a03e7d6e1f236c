r"""The search with gradients: climb, see the curvature, leap on quadratic surfaces, refine until certain.

1. *Ascent* (`ascent`) from the initial mean, until a step promises less than about d/4 nats.
2. *Curvature*: a few narrow draws there show the Hessian, and so Laplace's approximation (`start`).
3. *Survey* it. Where the surface misses much, the mode is no place for a Gaussian (in a funnel, or a hierarchy
   whose groups are nearly equal): *retreat* to the initial Gaussian, with standard deviations halved until its
   surface predicts what is there. Near enough any density is quadratic.
4. *Leap*, *refine* and *verify* as `AutoOptimizer` does, on surfaces that gradients give (`surface`): these need
   about 1.3 draws a parameter instead of a coefficient.

The certificate is that of `AutoOptimizer`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp._linalg import Array
from mgvbp.auto.archive import View
from mgvbp.auto.gradient.archive import GradientArchive
from mgvbp.auto.gradient.ascent import Ascent, Point
from mgvbp.auto.gradient.start import laplace, narrow, place
from mgvbp.auto.gradient.surface import fit_gradients
from mgvbp.auto.leap import Leap, propose
from mgvbp.auto.surface import Surface
from mgvbp.checks import as_key, positive_integer
from mgvbp.errors import DivergenceError
from mgvbp.families import Family, resolve_family
from mgvbp.gaussian import Gaussian
from mgvbp.optimizer import STREAM, Info, initial_frame
from mgvbp.problem import (
    Problem,
    checked_derivatives,
    checked_values,
    grad_log_prior,
    log_prior,
    prior_and_dim,
)

if TYPE_CHECKING:
    from mgvbp.auto.method import Auto

MOST_FILLS = 6
"""Attempts to reach an effective sample size before going on with what there is."""
MOST_DECISIONS = 50
"""Decisions on the same draws before more are asked for."""
ABOUT_THE_MEAN = 4
"""Retreats that keep the mean; later ones go to the best draw."""
MOST_RETREATS = 16
FASTEST_GROWTH = 1.3
"""Most by which the effective sample size grows before the noise is looked at again."""
FAR_FROM_GAUSSIAN = 0.5
"""Nats that a quadratic misses (standard deviation) from which old draws are not enough to judge a new q."""
PAIRED_ABOVE = 16
"""Dimension from which draws ±ε are made: below, polynomials of higher degree take away more noise."""


class GradientAutoOptimizer:
    """An ask/tell run of `Auto` for a log-likelihood with a gradient; batches differ in size.

    Parameters
    ----------
    method : Auto
    target : int, Gaussian or Problem
        As for `Optimizer`; a prior must be Gaussian.
    family : {"full", "diagonal"} or BlockDiagonal
    initial_mean, initial_variance : as for `Optimizer`
    max_evaluations : int, optional
        Never exceeded; a value with its gradient is one evaluation. By default 100 (d + 10).
    rng : int or numpy.random.Generator

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

    def __init__(
        self,
        method: Auto,
        target: int | Gaussian | Problem,
        *,
        family: str | Family = "full",
        initial_mean: ArrayLike | None = None,
        initial_variance: ArrayLike | None = None,
        max_evaluations: int | None = None,
        rng: int | np.random.Generator | tuple[int, ...] = 0,
    ) -> None:
        self.method = method
        self.prior, self.dim = prior_and_dim(target)
        self.family = resolve_family(family, self.dim, getattr(target, "labels", None))
        d = self.dim
        self.least = d + 1 + max(6, math.ceil(0.3 * (d + 1)))
        self._enough = max(60.0, 4.0 * (d + 1))  # fewer draws do not show the tails that a certificate needs
        if max_evaluations is None:
            max_evaluations = 100 * (d + 10)
        self.max_evaluations = positive_integer(max_evaluations, "max_evaluations", least=2)
        mean, factor, *_ = initial_frame(self.family, self.prior, initial_mean, initial_variance)
        self._q = self._first = Gaussian.from_factor(mean, factor, self.family)
        self.key = rng if isinstance(rng, tuple) else as_key(rng)
        self._archive = GradientArchive(d)
        self._ascent: Ascent | None = None
        self._scale = 1.0
        self._surface: Surface | None = None
        self._leap: Leap | None = None
        self._radius = self._first_radius = 0.5 * d + 1.0
        self._failures = self._retreats = self._fills = 0
        self._target_size = float(self.least)
        self._fresh = self._verified = False
        self._asked: Array | None = None
        self.iteration = self.n_evaluations = 0
        self.phase = "ascent"
        self.converged, self.stop_reason = False, ""
        self._want = self.least

    # --- what a caller sees -----------------------------------------------------------------------

    @property
    def gaussian(self) -> Gaussian:
        """The best approximation so far."""
        return self._q

    @property
    def lower_bound(self) -> float:
        """Its lower bound, as the surface has it."""
        return self._surface.lower_bound if self._surface else -math.inf

    @property
    def lower_bound_se(self) -> float:
        """The standard error of that."""
        return self._surface.lower_bound_se if self._surface else math.inf

    @property
    def gap(self) -> float:
        """Expected distance of its lower bound from the family's optimum, in nats."""
        if self._surface is None:
            return math.inf
        return self._surface.noise if self.converged else max(self._surface.gap, self._surface.noise)

    @property
    def gap_se(self) -> float:
        """Standard deviation of that."""
        return self._surface.noise_sd if self._surface else math.inf

    def ask(self) -> Array:
        """The draws to evaluate, (n, d); the same ones until `tell`."""
        if self._asked is None:
            if self.phase != "ascent" or (self.iteration and not self._ascent):
                self._asked = self._draw(min(self._want, self.max_evaluations - self.n_evaluations))
            else:
                x = self._ascent.ask() if self._ascent else np.zeros(self.dim)
                self._asked = place(self._first, x)[None]
        return self._asked.copy()

    def _draw(self, count: int) -> Array:
        rng = np.random.default_rng((*self.key, self.iteration, STREAM))
        q = self._source = self._wider(self._q) if self.phase == "verify" else self._centre
        self._paired = self.dim > PAIRED_ABOVE and self.phase in ("refine", "verify")
        if not self._paired:
            return q.sample(count, rng)
        half = rng.standard_normal((-(-count // 2), self.dim))
        eps = np.stack([half, -half], axis=1).reshape(-1, self.dim)[:count]
        return q.mean + q.family.from_frame(q.factor, eps)

    def tell(self, values: ArrayLike, gradients: ArrayLike) -> Info:
        """Take values (n,) and gradients (n, d) of the draws last asked for; decide what to draw next, or stop."""
        theta = self._asked if self._asked is not None else self.ask()
        density, slopes = self._evaluated(values, gradients, theta)
        finite = np.isfinite(density) & np.isfinite(slopes).all(axis=1)
        self._asked = None
        self.iteration += 1
        self.n_evaluations += len(theta)
        phase = self.phase
        with np.errstate(over="ignore", invalid="ignore"):
            if phase == "ascent":
                self._ascend(theta, density, slopes, finite)
            else:
                self._archive.add_gradients(self._source, theta, density, slopes, paired=self._paired)
                self._decide()
        return Info(
            lower_bound=self.lower_bound,
            gap=self.gap,
            step_size=self._leap.beta if self._leap else 0.0,
            dropped=len(theta) - int(np.count_nonzero(finite)),
            reductions=0,
            noise=self.gap_se,
            radius=self._radius,
            num_draws=len(theta),
            phase=phase,
        )

    def _evaluated(self, values: ArrayLike, gradients: ArrayLike, theta: Array) -> tuple[Array, Array]:
        """Log density (n,) and its gradient (n, d): those told, and those of the prior."""
        with np.errstate(over="ignore", invalid="ignore"):
            density = checked_values(values, theta, "log_likelihood") + log_prior(self.prior, theta)
            slopes = checked_derivatives(gradients, theta, "the gradient") + grad_log_prior(self.prior, theta)
        return density, slopes

    def resume(self, max_evaluations: int) -> None:
        """Go on with another limit, if it was the limit that stopped the run."""
        exhausted = self.stop_reason and self.n_evaluations >= self.max_evaluations
        self.max_evaluations = max_evaluations
        if exhausted and max_evaluations > self.n_evaluations:
            self.stop_reason = ""
            if self.phase != "ascent":
                self._decide()

    # --- to where a Gaussian may be ---------------------------------------------------------------

    def _ascend(self, theta: Array, values: Array, gradients: Array, finite: NDArray[np.bool_]) -> None:
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
            self.phase = "hessian"
            self._decide()
        else:
            self._limit()

    def _retreat(self) -> None:
        """A surface here would mislead: from the initial Gaussian on, with half the standard deviations each time."""
        if self._retreats == MOST_RETREATS:
            self._stop("no region was found where a Gaussian fits")
            return
        if self._retreats == 0 and self._q is not self._first:
            self._q = self._first
        else:
            values = self._archive.values
            best = int(np.argmax(np.where(self._archive.view(self._q).weights > 0.0, values, -np.inf)))
            keeps = self._retreats < ABOUT_THE_MEAN or not np.isfinite(values[best])
            mean = self._q.mean if keeps else self._archive.theta[best].copy()
            self._q = Gaussian.from_factor(mean, 2.0 * self._q.factor, self.family)
        self._retreats += 1
        self._surface, self._leap = None, None
        self._radius, self._failures, self._fills = self._first_radius, 0, 0
        self._survey()

    # --- how it decides ---------------------------------------------------------------------------

    @property
    def _centre(self) -> Gaussian:
        return self._leap.q if self._leap else self._q

    def _decide(self) -> None:
        """Go on until draws are needed, or nothing is left to do."""
        self._want = decisions = 0
        while not (self._want or self.stop_reason):
            decisions += 1
            view = self._archive.view(self._centre)
            missing = self._target_size - view.size
            if decisions > MOST_DECISIONS:
                self._want = self.least
            elif missing > 0.0 and self._fills < MOST_FILLS:
                self._want, self._fills, self._fresh = (
                    max(4, math.ceil(1.05 * missing)),
                    self._fills + 1,
                    True,
                )
            else:
                self._fills = 0
                self._judge(view) if self._leap else self._settle(self._fit(view))
        if self._want:
            self._limit()

    def _limit(self) -> None:
        """Stop if there are no evaluations left."""
        room = self.max_evaluations - self.n_evaluations
        if room <= 0:
            self._want, self._leap = 0, None
            self._stop(f"reached max_evaluations = {self.max_evaluations}")
        elif self._want > room:
            self._verified = False

    def _fit(self, view: View) -> Surface | None:
        archive = self._archive
        return fit_gradients(view, archive.values, archive.gradients, archive.groups, self.method.tol)

    def _judge(self, view: View) -> None:
        """Keep the leap that led to this view, or go back."""
        leap, before = self._leap, self._surface
        assert leap is not None
        assert before is not None
        self._leap = None
        after = self._fit(view)
        if self._fresh:  # both bounds from the same draws: where these overlap the errors cancel
            before = self._surface = self._fit(self._archive.view(self._q)) or before
        overlap = math.sqrt(min(1.0, leap.kl)) if self._fresh else 0.0
        se = overlap * math.hypot(before.lower_bound_se, after.lower_bound_se) if after else 0.0
        # a bound known no better than the gain, on a surface that misses much, is a guess
        lost = after is None or (_poor(after) and after.lower_bound_se > 0.25 * leap.gain)
        gain = after.lower_bound - before.lower_bound if after else -math.inf
        if after and not lost and gain > 0.1 * leap.gain - min(2.0 * se, 0.3 * leap.gain):
            if gain > 0.5 * leap.gain and leap.kl > 0.5 * self._radius:
                self._radius *= 3.0
            self._failures = 0
            self._q = leap.q
            self._settle(after)
            return
        self._failures += 1
        self._radius = 0.25 * leap.kl
        if self._failures > 4 and _poor(before):
            self._retreat()
        elif self._radius < 1e-4 or leap.gain < 2.0 * se:
            self._refine(max(self.least, 1.5 * before.size))
        elif self._fresh:
            self._survey()
        else:
            self._settle(before)

    def _settle(self, surface: Surface | None) -> None:
        """At q, with its surface: stop, refine, leap or retreat."""
        phase, self._surface = self.phase, surface
        if surface is None or (phase in ("hessian", "survey") and _poor(surface)):
            self._retreat()
            return
        if phase == "hessian":
            self._q = laplace(surface, self._scale)
            self._survey()
            return
        certain = self._failures == 0 and (surface.r2 > 0.99 or surface.residual < 0.3)
        leap = propose(surface, self._radius, extrapolate=certain)
        if leap is None:
            self._retreat()
        elif surface.gap < surface.noise + 2.0 * surface.noise_sd or leap.gain < 0.2 * self.method.tol:
            self._conclude(surface, leap)
        elif bool((leap.q.std > 1e9 * self._first.std).any()):
            self._stop("the density seems improper: a direction has no scale; give it a (stronger) prior")
        else:
            self._leap, self.phase, self._verified = leap, "leap", False
            self._target_size = max(self.least, 0.5 * min(self._target_size, surface.size))
            self._fresh = surface.rest > FAR_FROM_GAUSSIAN and leap.gain > 2.0 * self.method.tol
            self._want = self.least if self._fresh else 0

    def _conclude(self, surface: Surface, leap: Leap) -> None:
        """The gradient is inside its noise: finish, or make the draws that are missing for a certificate."""
        tol, fresh = self.method.tol, self._num_fresh(surface.rest)
        uncertain = math.inf if surface.ridge else surface.noise + 0.5 * surface.noise_sd
        after = uncertain * surface.size / (surface.size + fresh)  # what is expected to be left of it then
        if uncertain < tol and self._verified:
            self._finish(surface, leap)
        elif after < tol and surface.size + fresh < self._enough:
            self._refine(self._enough - fresh)
        elif after < tol and not self._verified:
            self._q, self.phase, self._verified, self._want = leap.q, "verify", True, fresh
        else:
            growth = min(FASTEST_GROWTH, max(1.1, 1.05 * uncertain / tol))
            self._refine(max(self.least, surface.size) * growth)

    def _survey(self) -> None:
        self.phase, self._target_size = "survey", float(self.least)

    def _refine(self, size: float) -> None:
        self.phase, self._target_size = "refine", size
        self._radius = max(self._radius, 0.1)

    def _num_fresh(self, rest: float) -> int:
        """Draws to verify with: the further the target is from Gaussian, the more there may be to see."""
        return max(20, self.dim + 1) if rest < FAR_FROM_GAUSSIAN else max(60, 6 * (self.dim + 1))

    def _wider(self, q: Gaussian) -> Gaussian:
        """``q`` with larger standard deviations: its draws show the tails, and have their weights."""
        return Gaussian.from_factor(q.mean, q.factor / (1.0 + 1.0 / math.sqrt(self.dim)), q.family)

    def _finish(self, surface: Surface, leap: Leap) -> None:
        """Take the last, small leap and certify: the surface is as uncertain there as here."""
        self._q = leap.q
        self._surface = replace(surface, q=leap.q, lower_bound=surface.lower_bound + leap.gain)
        self.converged = True
        self._stop(f"the lower bound is within {self.method.tol:g} nats of its maximum")

    def _stop(self, reason: str) -> None:
        self.stop_reason = reason


def _poor(surface: Surface) -> bool:
    """Whether the surface misses much of what there is, or very many nats."""
    d = surface.q.dim
    if surface.residual < max(3.0, math.sqrt(d)) or surface.r2 > 0.9999:
        return False
    return surface.r2 < 0.8 or surface.residual > 50.0 * (0.5 * d + 1.0)
