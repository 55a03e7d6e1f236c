r"""The search: leap on quadratic surfaces, evolve where they are not to be trusted, refine until certain.

1. *Survey.* Draw from the current q until its effective sample size is about 1.3 per coefficient, counting
   all earlier draws by their importance weights, and fit a quadratic surface.
2. *Leap* to the best point of the surface within a trust radius (KL divergence in nats), and survey there.
   A leap that gains at least a tenth of what the surface promised is kept; the radius grows when leaps succeed
   and shrinks when they fail. A surface that predicts nearly everything (leave-one-out) is followed further.
3. *Evolve*: where the first surface predicts little, rank-based evolution finds a region where one does.
4. *Refine*: once the gradient is inside its noise, more draws, until the noise itself is below the tolerance.
5. *Verify*: some fresh draws at the end, which no decision has depended on.

Certificate: to second order the bound is :math:`\tfrac12\|g\|^2 + \|G\|^2` nats below its maximum. At the end
the gradient of the surface is zero and what is left is its error, whose covariance the regression gives:
``gap`` is the mean of that expression over the error, ``gap_se`` its standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.auto.archive import Archive, View, equal_view
from mgvbp.auto.evolution import Evolution, moments, project
from mgvbp.auto.leap import Leap, propose
from mgvbp.auto.surface import Surface, fit_surface
from mgvbp.checks import as_key, positive_integer
from mgvbp.errors import DivergenceError
from mgvbp.families import Family, Full, resolve_family
from mgvbp.gaussian import Gaussian
from mgvbp.optimizer import STREAM, Info, initial_frame
from mgvbp.problem import Problem, checked_values, log_prior, prior_and_dim

if TYPE_CHECKING:
    from mgvbp.auto.method import Auto

DRAWS_PER_COEFFICIENT = 1.3
MOST_FILLS = 6
"""Attempts to reach an effective sample size before going on with what there is."""
MOST_DECISIONS = 50
"""Decisions on the same draws before more are asked for."""
FULL_LIMIT = 900
"""Coefficients of the full quadratic (d = 40) up to which it is fitted whatever the family."""
MOST_EVOLUTIONS = 3
MOST_BLURRED = 3
"""Refinements of a clipped surface before evolution takes over."""
FLOOR = 10.0
"""Values more than this times d/2 + 1 nats below the best are raised to that where a surface predicts little."""
FASTEST_GROWTH = 1.2
"""Most by which the effective sample size grows before the noise is looked at again."""
FAR_FROM_GAUSSIAN = 0.5
"""Nats that a quadratic misses (standard deviation) from which more fresh draws are made before the end."""


class AutoOptimizer:
    """An ask/tell run of `Auto`; batches differ in size.

    Parameters
    ----------
    method : Auto
    target : int, Gaussian or Problem
        As for `Optimizer`.
    family : {"full", "diagonal"} or BlockDiagonal
    initial_mean, initial_variance : as for `Optimizer`
    max_evaluations : int, optional
        Never exceeded; by default 100 per coefficient, and 3000.
    rng : int or numpy.random.Generator
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
        full = Full(self.dim)
        self._basis = full if full.num_monomials <= FULL_LIMIT else self.family
        count = self._basis.num_monomials
        self.least = count + max(6, math.ceil((DRAWS_PER_COEFFICIENT - 1.0) * count))
        self._enough = max(30.0, 2.0 * count)  # fewer draws do not show the tails that a certificate needs
        if max_evaluations is None:
            max_evaluations = 100 * count + 3000
        self.max_evaluations = positive_integer(max_evaluations, "max_evaluations", least=2)
        mean, factor, *_ = initial_frame(self.family, self.prior, initial_mean, initial_variance)
        self._q = Gaussian.from_factor(mean, factor, self.family)
        self._first = self._q
        self.key = rng if isinstance(rng, tuple) else as_key(rng)
        self._archive = Archive(self.dim)
        self._surface: Surface | None = None
        self._leap: Leap | None = None
        self._evolution: Evolution | None = None
        self._evolutions = 0
        self._radius = self._first_radius = 0.5 * self.dim + 1.0
        self._failures = 0
        self._target_size = float(self.least)
        self._fills = self._blurred = 0
        self._fresh = self._verified = False
        self._asked: Array | None = None
        self.iteration = self.n_evaluations = 0
        self.phase = "survey"
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
            rng = np.random.default_rng((*self.key, self.iteration, STREAM))
            if self._evolution:
                self._source = self._evolution.gaussian
                self._asked = self._evolution.ask(rng)
            else:
                self._source = self._wider(self._q) if self.phase == "verify" else self._centre
                self._asked = self._source.sample(self._want, rng)
            room = self.max_evaluations - self.n_evaluations
            if len(self._asked) > room:
                self._asked, self._verified = self._asked[:room], False
        return self._asked.copy()

    def tell(self, values: ArrayLike) -> Info:
        """Take the values of the draws last asked for; decide what to draw next, or stop."""
        theta = self._asked if self._asked is not None else self.ask()
        log_likelihood = checked_values(values, theta, "log_likelihood")
        with np.errstate(invalid="ignore"):
            density = log_likelihood + log_prior(self.prior, theta)
        if not self._evolution:
            self._archive.add(self._source, theta, density)
        self._asked = None
        self.iteration += 1
        self.n_evaluations += len(theta)
        dropped = len(theta) - int(np.count_nonzero(np.isfinite(density)))
        if not np.isfinite(self._archive.values.max()) and not np.isfinite(density).any():
            raise DivergenceError(
                f"all {self.n_evaluations} draws so far have non-finite values (nan or inf): start where the "
                "function is finite (initial_mean, initial_variance); the draws are this exception's .theta",
                theta,
            )
        phase = self.phase
        with np.errstate(over="ignore", invalid="ignore"):
            if self._evolution:
                self._evolve(density)
            self._decide()
        return Info(
            lower_bound=self.lower_bound,
            gap=self.gap,
            step_size=self._leap.beta if self._leap else 0.0,
            dropped=dropped,
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

    # --- how it decides ---------------------------------------------------------------------------

    @property
    def _centre(self) -> Gaussian:
        return self._leap.q if self._leap else self._q

    def _decide(self) -> None:
        """Go on until draws are needed, or nothing is left to do."""
        self._want = decisions = 0
        while not (self._want or self._evolution or self.stop_reason):
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
        if (self._want or self._evolution) and self.n_evaluations >= self.max_evaluations:
            self._want, self._leap, self._evolution = 0, None, None
            self._stop(f"reached max_evaluations = {self.max_evaluations}")

    def _fit(self, view: View, *, clipped: bool = False) -> Surface | None:
        """The surface of a view; where it predicts little, or if asked, of values clipped from below.

        A few values far below the others are all that least squares would see; raised to a floor they still
        say which way is down.
        """
        values, tol = self._archive.values, self.method.tol
        surface = None if clipped else fit_surface(view, self._basis, values, tol)
        if surface is not None and not self._poor(surface):
            return surface
        floor = values.max() - FLOOR * (0.5 * self.dim + 1.0)
        raised = np.where(values > -np.inf, np.maximum(values, floor), -np.inf)
        alternative = fit_surface(view, self._basis, raised, tol)
        if alternative is None:
            return surface
        # where all is raised to the floor the surface is flat, which must not pass for a wide posterior
        eigenvalues, U = np.linalg.eigh(alternative.G)
        contracting = (U * np.maximum(eigenvalues, 0.0)) @ U.T
        return replace(alternative, clipped=True, G=contracting)

    def _judge(self, view: View) -> None:
        """Keep the leap that led to this view, or go back."""
        leap, before = self._leap, self._surface
        assert leap is not None
        assert before is not None
        self._leap = None
        surface = after = self._fit(view)
        if surface and before.clipped and not surface.clipped:
            after = self._fit(view, clipped=True)
        # without fresh draws both bounds come from the same draws, and their errors cancel
        se = math.hypot(before.lower_bound_se, after.lower_bound_se) if after and self._fresh else 0.0
        gain = after.lower_bound - before.lower_bound if after else -math.inf
        if surface and gain > 0.1 * leap.gain - min(2.0 * se, 0.3 * leap.gain):
            if gain > 0.5 * leap.gain and leap.kl > 0.5 * self._radius:
                self._radius *= 3.0
            self._failures = 0
            self._q = leap.q
            self._settle(surface)
            return
        self._failures += 1
        self._radius = 0.25 * leap.kl
        if self._failures > 4 and self._poor(before):
            self._begin_evolution()
        elif self._radius < 1e-4 or leap.gain < 2.0 * se:
            self._refine(max(self.least, 1.5 * before.size))
        elif self._fresh:
            self._survey()
        else:
            self._settle(before)

    def _settle(self, surface: Surface | None) -> None:
        """At q, with its surface: stop, refine, leap or evolve."""
        self._surface = surface
        if surface is None or (self.phase == "survey" and self._evolutions == 0 and surface.clipped):
            self._begin_evolution()
            return
        certain = self._failures == 0 and (surface.r2 > 0.99 or surface.residual < 0.3)
        leap = propose(surface, self._radius, extrapolate=certain)
        if leap is None:
            self._begin_evolution()
            return
        if surface.gap < surface.noise + 2.0 * surface.noise_sd or leap.gain < 0.05 * self.method.tol:
            self._conclude(surface, leap)
            return
        if self._improper(leap.q):
            self._stop("the density seems improper: a direction has no scale; give it a (stronger) prior")
            return
        self._leap, self.phase, self._fresh, self._verified = leap, "leap", False, False
        self._target_size = max(self.least, 0.5 * min(self._target_size, surface.size))

    def _conclude(self, surface: Surface, leap: Leap) -> None:
        """The gradient is inside its noise: finish, or make the draws that are missing for a certificate."""
        tol, fresh = self.method.tol, self._num_fresh(surface.rest)
        uncertain = math.inf if surface.ridge else surface.noise + 0.5 * surface.noise_sd
        after = uncertain * surface.size / (surface.size + fresh)  # what is expected to be left of it then
        if uncertain < tol and self._verified and not surface.clipped:
            self._finish(surface, leap)
        elif surface.clipped and self._blurred == MOST_BLURRED and self._evolutions < MOST_EVOLUTIONS:
            self._begin_evolution()
        elif after < tol and surface.size + fresh < self._enough:
            self._refine(self._enough - fresh)
        elif after < tol and not self._verified and not surface.clipped:
            self._verify(leap, fresh)
        else:
            self._blurred = self._blurred + 1 if surface.clipped else 0
            growth = min(FASTEST_GROWTH, max(1.1, 1.05 * uncertain / tol))
            self._refine(max(self.least, surface.size) * growth)

    def _survey(self) -> None:
        self.phase, self._target_size = "survey", float(self.least)

    def _refine(self, size: float) -> None:
        self.phase, self._target_size = "refine", size
        self._radius = max(self._radius, 0.1)

    def _num_fresh(self, rest: float) -> int:
        """Draws to verify with: the further the target is from Gaussian, the more there may be to see."""
        count = self._basis.num_monomials
        return max(20, count // 3 if rest < FAR_FROM_GAUSSIAN else 2 * count)

    def _verify(self, leap: Leap, fresh: int) -> None:
        """Before the end: fresh draws about the final q, which no decision has depended on yet."""
        self._q, self.phase, self._verified, self._want = leap.q, "verify", True, fresh

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

    def _poor(self, surface: Surface) -> bool:
        """Whether the surface misses much of what there is, or very many nats."""
        if surface.residual < max(3.0, math.sqrt(self.dim)) or surface.r2 > 0.9999:
            return False
        return surface.r2 < 0.8 or surface.residual > 50.0 * (0.5 * self.dim + 1.0)

    def _improper(self, q: Gaussian) -> bool:
        return bool((q.std > 1e9 * self._first.std).any())

    # --- evolution --------------------------------------------------------------------------------

    def _begin_evolution(self) -> None:
        if self._evolutions == MOST_EVOLUTIONS:
            self._stop("no region was found where a Gaussian fits")
            return
        best = int(np.argmax(self._archive.values))
        found = np.isfinite(self._archive.values[best])
        self._evolution = Evolution(self._q, self._archive.theta[best] if found else self._q.mean)
        self._evolutions += 1
        self.phase, self._surface, self._leap, self._blurred = "evolve", None, None, 0

    def _evolve(self, values: Array) -> None:
        evolution = self._evolution
        assert evolution is not None
        complete = len(values) == evolution.size
        if complete:
            evolution.tell(np.where(np.isfinite(values), values, -np.inf))
        exhausted = not complete or self.n_evaluations >= self.max_evaluations
        if exhausted or evolution.arrived:
            q = project(evolution.gaussian, self.family)
        elif (predictable := self._predictable(evolution)) is not None:
            q = predictable
        else:
            return
        self._evolution, self._q, self._archive = None, q, Archive(self.dim)
        for generation in evolution.last(2 * self.least):
            self._archive.add(*generation)
        self._radius, self._failures, self._fills = self._first_radius, 0, 0
        self._survey()

    def _predictable(self, evolution: Evolution) -> Gaussian | None:
        """The Gaussian with the moments of the last generations, if a surface there predicts their values."""
        recent = evolution.last(self.least)
        if sum(len(generation.values) for generation in recent) < self.least:
            return None
        theta = np.concatenate([generation.theta for generation in recent])
        values = np.concatenate([generation.values for generation in recent])
        if not np.isfinite(values).all():
            return None
        q = moments(theta, self.family)
        surface = fit_surface(equal_view(q, theta), self._basis, values, math.inf)
        return q if surface is not None and not self._poor(surface) else None
