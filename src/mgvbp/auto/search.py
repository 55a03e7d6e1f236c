r"""What both searches share: leap on quadratic surfaces, refine until certain, verify, certify.

*Leap* to the best point of the surface within a trust radius (KL divergence in nats), and look at the surface
there. A leap that gains at least a tenth of what was promised is kept; the radius grows when leaps succeed
and shrinks when they fail. *Refine* once the gradient is inside its noise: more draws, until the noise itself is
below the tolerance. *Verify* with some fresh draws at the end, which no decision has depended on.

Certificate: to second order the bound of a nearly Gaussian target is :math:`\tfrac12\|g\|^2 + \|G\|^2` nats below
its maximum. At the end the gradient of the surface is zero and what is left is its error, whose covariance the
regression gives: ``gap`` is the mean of that expression over the error, ``gap_se`` its standard deviation. Far from
Gaussian the optimum of the draws at hand is looked for (`polish`), and both are stretched by how much more than
promised that gains.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.auto.archive import Archive, View
from mgvbp.auto.leap import Leap, propose
from mgvbp.auto.polish import polish
from mgvbp.auto.surface import Surface
from mgvbp.checks import as_key, positive_integer
from mgvbp.families import Family, resolve_family
from mgvbp.gaussian import Gaussian
from mgvbp.optimizer import STREAM, Info, initial_frame
from mgvbp.problem import Problem, prior_and_dim

if TYPE_CHECKING:
    from mgvbp.auto.method import Auto

MOST_FILLS = 6
"""Attempts to reach an effective sample size before going on with what there is."""
MOST_DECISIONS = 50
"""Decisions on the same draws before more are asked for."""
FAR_FROM_GAUSSIAN = 0.5
"""Nats that a quadratic misses (standard deviation) from which more draws are made before something is believed."""
STILL_SEEN = 0.8
"""Share of the effective draws that must be left after polishing for the verification to count there too."""
WIDEST = 1e9
"""Times its initial one beyond which a standard deviation is taken for infinite."""


class Search(ABC):
    """An ask/tell run of `Auto`; batches differ in size.

    Parameters
    ----------
    method : Auto
    target : int, Gaussian or Problem
        As for `Optimizer`.
    family : {"full", "diagonal"} or BlockDiagonal
    initial_mean, initial_variance : as for `Optimizer`
    max_evaluations : int, optional
        Never exceeded.
    rng : int or numpy.random.Generator
    """

    FASTEST_GROWTH: ClassVar[float]
    """Most by which the effective sample size grows before the noise is looked at again."""
    LEAST_GAIN: ClassVar[float]
    """Gain, in units of the tolerance, below which a leap is not worth its draws."""

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
        self.least, self._enough, most = self._sizes()
        self.max_evaluations = positive_integer(
            most if max_evaluations is None else max_evaluations, "max_evaluations", least=2
        )
        mean, factor, *_ = initial_frame(self.family, self.prior, initial_mean, initial_variance)
        self._q = self._first = Gaussian.from_factor(mean, factor, self.family)
        self.key = rng if isinstance(rng, tuple) else as_key(rng)
        self._archive = self._empty_archive()
        self._surface: Surface | None = None
        self._leap: Leap | None = None
        self._radius = self._first_radius = 0.5 * self.dim + 1.0
        self._failures = self._fills = 0
        self._target_size = float(self.least)
        self._fresh = self._verified = False
        self._stretch = 1.0
        self._asked: Array | None = None
        self.iteration = self.n_evaluations = 0
        self.phase = "ascent" if self._away else "survey"
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
        noise = self._surface.cautious.noise
        return self._stretch * (noise if self.converged else max(self._surface.gap, noise))

    @property
    def gap_se(self) -> float:
        """Standard deviation of that."""
        return self._stretch * self._surface.cautious.noise_sd if self._surface else math.inf

    def ask(self) -> Array:
        """The draws to evaluate, (n, d); the same ones until `tell`."""
        if self._asked is None:
            rng = np.random.default_rng((*self.key, self.iteration, STREAM))
            room = self.max_evaluations - self.n_evaluations
            self._asked = self._draw(min(self._want, room), rng)[:room]
        return self._asked.copy()

    def tell(self, values: ArrayLike, gradients: ArrayLike | None = None) -> Info:
        """Take the values (n,) of the draws last asked for; decide what to draw next, or stop.

        A search with gradients is also told those, (n, d).
        """
        theta = self._asked if self._asked is not None else self.ask()
        phase = self.phase
        with np.errstate(over="ignore", invalid="ignore"):
            evaluated = self._evaluated(theta, values, gradients)
            finite = np.isfinite(np.column_stack(evaluated)).all(axis=1)
            self._asked = None
            self.iteration += 1
            self.n_evaluations += len(theta)
            self._take(theta, finite, *evaluated)
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

    def resume(self, max_evaluations: int) -> None:
        """Go on with another limit, if it was the limit that stopped the run."""
        exhausted = self.stop_reason and self.n_evaluations >= self.max_evaluations
        self.max_evaluations = max_evaluations
        if exhausted and max_evaluations > self.n_evaluations:
            self.stop_reason = ""
            self._decide()

    # --- what differs -----------------------------------------------------------------------------

    @abstractmethod
    def _sizes(self) -> tuple[int, float, int]:
        """Draws for a surface, effective draws for a certificate, and the default of ``max_evaluations``."""

    @abstractmethod
    def _empty_archive(self) -> Archive: ...

    @abstractmethod
    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        """The draws to evaluate next, at most about ``count``; sets ``_source``, where they are from."""

    @abstractmethod
    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, ...]:
        """The log density (n,) from what was told, and its gradient (n, d) if that is used."""

    @property
    @abstractmethod
    def _take(self) -> Callable[..., None]:
        """Takes draws, which of them are finite and all of `_evaluated`, and stores or acts on them."""

    @property
    @abstractmethod
    def _away(self) -> bool:
        """Whether the search is not on surfaces now, but on its way to where there may be one."""

    @abstractmethod
    def _fit(self, view: View) -> Surface | None:
        """The surface through the draws of a view."""

    @abstractmethod
    def _gained(self, leap: Leap, view: View, after: Surface | None) -> tuple[float, float]:
        """The gain of the lower bound by a leap, −inf if that is a guess, and its standard error."""

    @abstractmethod
    def _misleading(self, surface: Surface) -> bool:
        """Whether to look for another region, in view of this surface."""

    @abstractmethod
    def _escape(self) -> None:
        """Look for another region."""

    @abstractmethod
    def _num_fresh(self, rest: float) -> int:
        """Draws to verify with: the further the target is from Gaussian, the more there may be to see."""

    # --- how it decides ---------------------------------------------------------------------------

    @property
    def _centre(self) -> Gaussian:
        """The Gaussian that is looked at."""
        return self._leap.q if self._leap else self._q

    @property
    def _proposal(self) -> Gaussian:
        """What is drawn from: to verify, wider draws, which show the tails and have their weights."""
        if self.phase != "verify":
            return self._centre
        wider = self._q.factor / (1.0 + 1.0 / math.sqrt(self.dim))
        return Gaussian.from_factor(self._q.mean, wider, self.family)

    def _decide(self) -> None:
        """Go on until draws are needed, or nothing is left to do."""
        decisions = 0
        if not self._away:
            self._want = 0
        while not (self._want or self._away or self.stop_reason):
            decisions += 1
            view = self._archive.view(self._centre)
            missing = self._target_size - view.size
            if decisions > MOST_DECISIONS:
                self._want = self.least
            elif missing > 0.0 and self._fills < MOST_FILLS:
                self._want, self._fresh = max(4, math.ceil(1.05 * missing)), True
                self._fills += 1
            else:
                self._fills = 0
                self._judge(view) if self._leap else self._settle(self._fit(view))
        if not self.stop_reason:
            self._limit()

    def _limit(self) -> None:
        """Stop if there are no evaluations left."""
        room = self.max_evaluations - self.n_evaluations
        if room <= 0:
            self._want, self._leap = 0, None
            self._stop(f"reached max_evaluations = {self.max_evaluations}")
        elif self._want > room:
            self._verified = False

    def _judge(self, view: View) -> None:
        """Keep the leap that led to this view, or go back."""
        leap, after = self._leap, self._fit(view)
        assert leap is not None
        self._leap = None
        gain, se = self._gained(leap, view, after)
        if after and gain > 0.1 * leap.gain - min(2.0 * se, 0.3 * leap.gain):
            if gain > 0.5 * leap.gain and leap.kl > 0.5 * self._radius:
                self._radius *= 3.0
            self._failures = 0
            self._q = leap.q
            self._settle(after)
            return
        before = self._surface
        assert before is not None
        self._failures += 1
        self._radius = 0.25 * leap.kl
        if self._failures > 4 and before.poor:
            self._escape()
        elif self._radius < 1e-4 or leap.gain < 2.0 * se:
            self._refine(max(self.least, 1.5 * before.size))
        elif self._fresh:
            self._survey()
        else:
            self._settle(before)

    def _settle(self, surface: Surface | None) -> None:
        """At q, with its surface: stop, refine, leap or look elsewhere."""
        self._surface = surface
        if surface is None or self._misleading(surface):
            self._escape()
            return
        certain = self._failures == 0 and (surface.r2 > 0.99 or surface.residual < 0.3)
        leap = propose(surface, self._radius, extrapolate=certain)
        if leap is None:
            self._escape()
        elif (
            surface.gap < surface.noise + 2.0 * surface.noise_sd
            or leap.gain < self.LEAST_GAIN * self.method.tol
        ):
            self._conclude(surface, leap)
        elif (leap.q.std > WIDEST * self._first.std).any():
            self._stop("the density seems improper: a direction has no scale; give it a (stronger) prior")
        else:
            self._try(leap, surface)

    def _try(self, leap: Leap, surface: Surface) -> None:
        """Look at the surface where the leap leads."""
        self._leap, self.phase, self._fresh, self._verified = leap, "leap", False, False
        self._target_size = max(self.least, 0.5 * min(self._target_size, surface.size))

    def _conclude(self, surface: Surface, leap: Leap) -> None:
        """The gradient is inside its noise: finish, or make the draws that are missing for a certificate."""
        surface = self._surface = surface.cautious
        tol, fresh = self.method.tol, self._num_fresh(surface.rest)
        left = surface.size / (surface.size + fresh)  # of the noise, after so many more draws
        unknown = surface.ridge or surface.clipped
        if surface.rest < FAR_FROM_GAUSSIAN:
            self._stretch = 1.0
        elif surface.noise * left < tol and not unknown:
            surface, leap = self._polish(surface, leap)
        uncertain = math.inf if unknown else self._stretch * (surface.noise + 0.5 * surface.noise_sd)
        after = uncertain * left
        if uncertain < tol and self._verified:
            self._finish(surface, leap)
        elif after < tol and surface.size + fresh < self._enough:
            self._refine(self._enough - fresh)
        elif after < tol and not self._verified:
            self._q, self.phase, self._verified, self._want = leap.q, "verify", True, fresh
        else:
            growth = min(self.FASTEST_GROWTH, max(1.1, 1.05 * uncertain / tol))
            self._refine(max(self.least, surface.size) * growth)

    def _polish(self, surface: Surface, leap: Leap) -> tuple[Surface, Leap]:
        """Follow the surfaces of these draws to their own optimum, where the target is far from Gaussian.

        For a Gaussian target all that there is to gain is what a leap promises. What is really gained, relative to
        that or to the noise, is how much more than on the surface the errors of the gradient matter.
        """
        least = self.LEAST_GAIN * self.method.tol
        best = polish(surface, lambda q: self._fit(self._archive.view(q)), least).cautious
        last = propose(best, self._radius, extrapolate=False)
        if last is None:
            return surface, leap
        gained = best.lower_bound - surface.lower_bound
        self._stretch = max(1.0, gained / max(surface.gap, surface.noise))
        self._verified = self._verified and best.size > STILL_SEEN * surface.size
        self._q, self._surface = best.q, best
        return best, last

    def _survey(self) -> None:
        self.phase, self._target_size = "survey", float(self.least)

    def _refine(self, size: float) -> None:
        self.phase, self._target_size = "refine", size
        self._radius = max(self._radius, 0.1)

    def _begin_anew(self, q: Gaussian) -> None:
        """Survey ``q``; nothing is known of the bound there."""
        self._q, self._surface, self._leap = q, None, None
        self._radius, self._failures, self._fills = self._first_radius, 0, 0
        self._survey()

    def _finish(self, surface: Surface, leap: Leap) -> None:
        """Take the last, small leap and certify: the surface is as uncertain there as here.

        Where there is no noise, what that leap gains shows what is left.
        """
        self._q = leap.q
        self._surface = replace(
            surface,
            q=leap.q,
            lower_bound=surface.lower_bound + leap.gain,
            noise=max(surface.noise, min(leap.gain, self.LEAST_GAIN * self.method.tol)),
        )
        self.converged = True
        self._stop(f"the lower bound is within {self.method.tol:g} nats of its maximum")

    def _stop(self, reason: str) -> None:
        self.stop_reason = reason
