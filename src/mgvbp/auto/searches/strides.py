"""Strides: natural-gradient steps on the same pairs of draws, where a search by surfaces is stuck.

Along a curved ridge, as under a horseshoe prior, a quadratic misses tens of nats of the density under q. A surface of a
few draws says little of where to leap there, and each leap is judged by noise. On the same pairs ±ε the bound is a
function without noise: each step of a search by pairs (`structured`, with all the pairs of parameters that the family
has) is known to rise, and the last steps show how to stretch the next one along the ridge. Strides begin narrow, at the
initial mean, and end where a step and the noise of their draws are worth less than a nat. Then surfaces go on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.searches.doubts import Doubts
from mgvbp.auto.searches.rules import refined
from mgvbp.auto.searches.structured import ByStructure
from mgvbp.auto.state import Phase, SearchState
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Outcome
from mgvbp.core.records import replace
from mgvbp.errors import DivergenceError
from mgvbp.families import Family, Full, SparsePrecision
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Prior


class Strides(Doubts):
    """Decisions about strides."""

    def __init__(
        self, family: Family, prior: Prior | None, tol: float, labels: Sequence[str] | None = None
    ) -> None:
        super().__init__(family, prior, tol, labels)
        few = self.dim <= constants.MOST_STRIDING
        # fewer parameters have surfaces of the values, which see what gradients miss beside a wall
        self.may_stride = few and Full(self.dim).num_monomials > constants.MOST_BY_BOTH
        i, j = np.nonzero(np.tril(family.mask, -1)) if few else 2 * (np.empty(0, dtype=np.intp),)
        # the prior is left out: what the strider is told are log densities that have it
        self._strider = ByStructure(SparsePrecision.from_edges(self.dim, (i, j)), None, constants.STRODE)

    def _striding(self, state: SearchState) -> SearchState:
        """Begin strides from a narrow Gaussian at the initial mean: where the search is stuck it may have collapsed."""
        first, family = state.first, self._strider.family
        precision = first.precision / constants.STRIDES_FROM**2
        q = Gaussian.from_factor(first.mean, family.factor(precision=precision), family)
        most = math.floor(constants.STRIDES_SHARE * state.room)
        strides = self._strider.start(q, (*state.key, state.iteration), most)
        return replace(state, strides=strides, leap=None, phase=Phase.STRIDE, want=2 * strides.pairs)

    def extended(self, state: SearchState, max_evaluations: int) -> SearchState:
        """Set another limit; strides that their share of the old one had ended go on."""
        strides, surface = state.strides, state.surface
        endings = (strides.ending, state.ending) if strides is not None else (None,)
        short = all(ending is not None and ending.outcome is Outcome.MAX_EVALUATIONS for ending in endings)
        if strides is not None and short and surface is not None and surface.poor:
            more = math.floor(constants.STRIDES_SHARE * (max_evaluations - state.n_evaluations))
            strides = self._strider.extended(strides, strides.n_evaluations + more)
            if strides.ending is None:
                state = replace(state, strides=strides, leap=None, phase=Phase.STRIDE, want=2 * strides.pairs)
        return super().extended(state, max_evaluations)

    def _strode(self, state: SearchState, theta: Array, values: Array, gradients: Array) -> SearchState:
        """Take the values at the draws of a stride; look at the surface where the last one has led, if it is higher."""
        assert state.strides is not None
        assert state.surface is not None
        before = state.surface
        try:
            strides, _ = self._strider.tell(state.strides, theta, values, gradients)
        except DivergenceError:  # around the initial mean the density is not finite
            return refined(state, 2.0 * before.size)
        state = replace(state, strides=strides)
        if strides.phase is not Phase.VERIFY and strides.ending is None:
            return replace(state, want=2 * strides.pairs)
        error = math.hypot(strides.lower_bound_se, before.lower_bound_se)
        if not strides.lower_bound > before.lower_bound - constants.CONFIDENCE * error:
            return refined(state, 2.0 * before.size)
        precision = self.family.factor(precision=strides.q.precision)
        # a result that was left before is lower, and a search that finds no step here must not go back to it
        state = replace(state, rival=None)
        return self._begun_anew(state, Gaussian.from_factor(strides.q.mean, precision, self.family))
