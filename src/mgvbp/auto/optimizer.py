r"""The search by values alone: survey, leap, refine and verify (`search`); evolve where surfaces mislead.

1. *Survey.* Draw from the current q until its effective sample size is about 1.3 per coefficient, counting
   all earlier draws by their importance weights, and fit a quadratic surface.
2. *Evolve*: where the first surface predicts little, rank-based evolution finds a region where one does.
3. *Leap*, *refine* and *verify* as every `Search` does. A surface that predicts nearly everything
   (leave-one-out) is followed further than the trust radius.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp._linalg import Array
from mgvbp.auto.archive import Archive, View, equal_view
from mgvbp.auto.evolution import Evolution, moments, project
from mgvbp.auto.leap import Leap
from mgvbp.auto.search import FAR_FROM_GAUSSIAN, Search
from mgvbp.auto.surface import Surface, fit_surface
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.families import Full
from mgvbp.gaussian import Gaussian
from mgvbp.problem import checked_values, log_prior

DRAWS_PER_COEFFICIENT = 1.3
FULL_LIMIT = 900
"""Coefficients of the full quadratic (d = 40) up to which it is fitted whatever the family."""
MOST_EVOLUTIONS = 3
MOST_BLURRED = 1
"""Refinements of a clipped surface before evolution takes over."""
FLOOR = 10.0
"""Values more than this times d/2 + 1 nats below the best are raised to that where a surface predicts little."""


class AutoOptimizer(Search):
    """An ask/tell run of `Auto` by values alone; by default at most 100 draws per coefficient, and 3000.

    The parameters are those of `Search`.
    """

    FASTEST_GROWTH = 1.2
    LEAST_GAIN = 0.05
    _evolution: Evolution | None = None
    _evolutions = _blurred = 0

    def _sizes(self) -> tuple[int, float, int]:
        full = Full(self.dim)
        self._basis = full if full.num_monomials <= FULL_LIMIT else self.family
        count = self._basis.num_monomials
        least = count + max(6, math.ceil((DRAWS_PER_COEFFICIENT - 1.0) * count))
        return least, max(30.0, 2.0 * count), 100 * count + 3000

    def _empty_archive(self) -> Archive:
        return Archive(self.dim)

    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        if self._evolution:
            self._source = self._evolution.gaussian
            return self._evolution.ask(rng)
        self._source = self._proposal
        return self._source.sample(count, rng)

    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, ...]:
        if gradients is not None:
            raise InvalidInputError(
                "this search takes values alone: begin it with a Problem that has a gradient"
            )
        return (checked_values(values, theta, "log_likelihood") + log_prior(self.prior, theta),)

    def _take(self, theta: Array, finite: NDArray[np.bool_], values: Array) -> None:
        if not self._evolution:
            self._archive.add(self._source, theta, values)
        if not np.isfinite(self._archive.values.max(initial=-np.inf)) and not finite.any():
            raise DivergenceError(
                f"all {self.n_evaluations} draws so far have non-finite values (nan or inf): start where the "
                "function is finite (initial_mean, initial_variance); the draws are this exception's .theta",
                theta,
            )
        if self._evolution:
            self._evolve(self._evolution, values)

    def _fit(self, view: View, *, clipped: bool = False) -> Surface | None:
        """The surface of a view; where it predicts little, or if asked, of values clipped from below.

        A few values far below the others are all that least squares would see; raised to a floor they still
        say which way is down.
        """
        values, tol = self._archive.values, self.method.tol
        surface = None if clipped else fit_surface(view, self._basis, values, tol)
        if surface is not None and not surface.poor:
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

    def _gained(self, leap: Leap, view: View, after: Surface | None) -> tuple[float, float]:
        before = self._surface
        assert before is not None
        if after and before.clipped and not after.clipped:
            after = self._fit(view, clipped=True)
        if after is None:
            return -math.inf, 0.0
        # without fresh draws both bounds come from the same draws, and their errors cancel
        se = math.hypot(before.lower_bound_se, after.lower_bound_se) if self._fresh else 0.0
        return after.lower_bound - before.lower_bound, se

    def _misleading(self, surface: Surface) -> bool:
        return surface.clipped and self.phase == "survey" and self._evolutions == 0

    def _conclude(self, surface: Surface, leap: Leap) -> None:
        if surface.clipped and self._blurred == MOST_BLURRED and self._evolutions < MOST_EVOLUTIONS:
            self._escape()
            return
        self._blurred = self._blurred + 1 if surface.clipped else 0
        super()._conclude(surface, leap)

    def _num_fresh(self, rest: float) -> int:
        count = self._basis.num_monomials
        return max(20, count // 3 if rest < FAR_FROM_GAUSSIAN else count)

    # --- evolution --------------------------------------------------------------------------------

    @property
    def _away(self) -> bool:
        return self._evolution is not None

    def _escape(self) -> None:
        """Begin to evolve."""
        if self._evolutions == MOST_EVOLUTIONS:
            self._stop("no region was found where a Gaussian fits")
            return
        best = int(np.argmax(self._archive.values))
        found = np.isfinite(self._archive.values[best])
        self._evolution = Evolution(self._q, self._archive.theta[best] if found else self._q.mean)
        self._evolutions += 1
        self.phase, self._surface, self._leap, self._blurred = "evolve", None, None, 0

    def _evolve(self, evolution: Evolution, values: Array) -> None:
        """Take the values of a generation; survey where it ends, if it does."""
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
        self._evolution, self._archive = None, self._empty_archive()
        for generation in evolution.last(2 * self.least):
            self._archive.add(*generation)
        self._begin_anew(q)

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
        return q if surface is not None and not surface.poor else None
