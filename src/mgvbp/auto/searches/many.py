r"""The search by gradients for many parameters: Newton steps on the bound, from sums over draws.

Above a hundred parameters a surface through all earlier draws costs more than the draws. Here every Gaussian has draws
of its own, in pairs, of which only sums are kept (`moments`), so that the linear algebra is a handful of d × d
factorisations and the memory a dozen d × d arrays:

1. *Ascent* and *Hessian* as in `by_gradients`: Laplace's approximation.
2. *Survey* q by 2.6 (d + 1) gradients. What the surface promises beyond its noise is the *excess*. If it is four times
   the noise, leap; if it is less, add draws until it is, or until the noise is below the tolerance.
3. Once the noise is below the tolerance, take the last step and *verify*. What fresh draws show there beyond their own
   noise is an estimate of the gap without bias. The larger of it and the noise of the last step is stated.
4. The *trial* is that of every search.

Where a surface is poor, a leap loses, or the trial has a suspect, the search begins anew in the way of `by_gradients`,
which keeps its draws.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mgvbp.auto import constants
from mgvbp.auto.arrival.laplace import laplace
from mgvbp.auto.searches.by_gradients import ByGradients, hopeless
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.steps.leap import propose
from mgvbp.auto.trial.sentence import Verdict
from mgvbp.core.linalg import Array
from mgvbp.core.records import replace
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive
from mgvbp.surfaces.moments import NOISE, Moments
from mgvbp.surfaces.surface import Surface

CLEAR = 4.0
"""A leap is taken if its excess is this many times the noise: the noise of a leap is the gap of the next surface."""
SAFE = 0.7
"""The noise is below the tolerance if it is this share of it."""
LAST_STEP = 0.5
"""Largest excess, in nats per hundred parameters, of a last step: a larger one is followed by another surface."""
GROWTH = 2.0
"""Largest factor by which the draws grow before the noise is estimated again."""
VERIFYING = 5.0
"""The standard deviation of the gap that a verification shows is at most one over this, in units of the tolerance."""
SAMPLE = 256
"""Draws of the verification that are kept for the trial."""
AT_ONCE = 1024
"""Most draws that are asked for at once: the batch, its gradients and their frame then stay within the memory of a few
d × d arrays."""


class ManyParameters(ByGradients):
    """Decisions of a search by gradients for more than a hundred parameters and a full covariance."""

    def _taken(
        self, state: SearchState, theta: Array, finite: NDArray[np.bool_], *evaluated: Array
    ) -> SearchState:
        if state.by_draws or state.phase not in (Phase.HESSIAN, Phase.SURVEY, Phase.REFINE, Phase.VERIFY):
            return super()._taken(state, theta, finite, *evaluated)
        told = self._counted(state, len(theta))
        paired = self._paired(state)
        if (paired and len(theta) % 2) or not finite.all():
            return self._fallen(told) if state.room > len(theta) else told
        moments = (state.moments or Moments.empty(state.q, paired=paired)).add(theta, *evaluated)
        if state.phase is Phase.VERIFY and len(state.archive.theta) < SAMPLE:
            some = slice(None, SAMPLE)
            archive = Archive.empty(self.dim, state.archive.noise)
            pairs = np.arange(len(theta[some])) // 2
            archive = archive.add(state.q, theta[some], *(part[some] for part in evaluated), groups=pairs)
            told = replace(told, archive=archive)
        return replace(told, moments=moments)

    def _paired(self, state: SearchState) -> bool:
        return super()._paired(state) if state.by_draws else state.phase is not Phase.HESSIAN

    def _proposal(self, state: SearchState) -> Gaussian:
        return super()._proposal(state) if state.by_draws else state.q

    def decide(self, state: SearchState) -> SearchState:
        if state.by_draws:
            return super().decide(state)
        while not (state.want or state.by_draws or state.phase is Phase.ASCENT or state.ending):
            state = self._weighed(state)
        return super().decide(state) if state.by_draws else self._limited(state)

    def _limited(self, state: SearchState) -> SearchState:
        if not state.by_draws and state.phase in (Phase.SURVEY, Phase.REFINE, Phase.VERIFY, Phase.HESSIAN):
            want = min(state.want + state.want % 2, AT_ONCE, state.room - state.room % 2)
            state = replace(state, want=max(want, min(state.want, 1)))
        return super()._limited(state)

    def _weighed(self, state: SearchState) -> SearchState:
        """Decide what the sums so far are good for."""
        count = state.moments.count if state.moments else 0
        if count < state.target_size:
            return replace(state, want=math.ceil(state.target_size) - count)
        if state.verified and state.surface is not None and state.phase is not Phase.VERIFY:
            return self._charged(state, state.surface)
        assert state.moments is not None
        surface, rival = state.moments.surface(), state.rival
        if surface is None or (surface.poor and state.phase is not Phase.HESSIAN):
            return self._fallen(state)
        if state.phase is Phase.HESSIAN:
            q = laplace(surface, state.scale)
            if rival is not None and hopeless(surface, rival):
                return self._returned(replace(state, q=q), rival)
            return self._begun_anew(state, q)
        before, state = state.surface, replace(state, surface=surface)
        if rival is not None and self._cannot_be_better(surface, surface.gap, rival.lower_bound):
            return self._returned(state, rival)
        if before is not None and before.q is not surface.q:
            lost = before.lower_bound - surface.lower_bound
            if lost > self.tol + 3.0 * math.hypot(before.lower_bound_se, surface.lower_bound_se):
                return self._fallen(state)
        return self._stepped(state, surface)

    def _stepped(self, state: SearchState, surface: Surface) -> SearchState:
        """Leap, make more draws, or verify; after a verification without surprise, go to the trial."""
        excess = max(surface.gap - surface.noise, 0.0)
        allowed = SAFE * self.tol / state.stretch
        if state.phase is Phase.VERIFY:
            shown = max(state.expected, surface.gap - surface.noise / NOISE)
            if shown * state.stretch < self.tol:
                return self._verified(replace(state, expected=shown), surface)
            state = replace(state, verified=False)
        known = surface.noise < allowed
        if not known and excess < CLEAR * surface.noise:
            size = surface.size * min(GROWTH, 1.1 * surface.noise / allowed)
            return replace(state, phase=Phase.REFINE, target_size=size)
        leap = propose(surface, state.radius, extrapolate=surface.r2 > constants.PREDICTED)
        if leap is None:
            return self._fallen(state)
        if known and leap.beta == 1.0 and excess < max(self.tol, LAST_STEP * self.dim / 100.0):
            nowhere = Archive.empty(self.dim, state.archive.noise)
            last = replace(state, expected=surface.noise, verified=True, phase=Phase.VERIFY, archive=nowhere)
            # the noise falls with the draws, and its standard deviation is to be a small share of the tolerance
            sure = VERIFYING * surface.size * surface.noise_sd / self.tol
            return replace(last, q=leap.q, moments=None, target_size=max(float(self.least), sure))
        radius = (
            constants.WIDENING * state.radius if leap.kl > constants.GOOD * state.radius else state.radius
        )
        return replace(
            state, q=leap.q, moments=None, radius=radius, phase=Phase.SURVEY, target_size=float(self.least)
        )

    def _verified(self, state: SearchState, surface: Surface) -> SearchState:
        """The surface of a result that is verified: q is its optimum, but for the gap that was shown."""
        d = self.dim
        noise = state.expected
        settled = replace(
            surface,
            g=np.zeros(d),
            G=np.zeros((d, d), order="F"),
            gap=0.0,
            noise=noise,
            noise_sd=noise * math.sqrt(2.0 / d),
        )
        return self._charged(replace(state, surface=settled, phase=Phase.REFINE), settled)

    def _sentenced(self, state: SearchState, verdict: Verdict) -> SearchState:
        if not state.by_draws and (verdict.suspects or verdict.noise):
            return self._fallen(state)
        return super()._sentenced(state, verdict)

    def _begun_anew(self, state: SearchState, q: Gaussian) -> SearchState:
        return super()._begun_anew(replace(state, moments=None), q)

    def _escaped(self, state: SearchState) -> SearchState:
        return super()._escaped(state) if state.by_draws else self._fallen(state)

    def _fallen(self, state: SearchState) -> SearchState:
        """Begin anew in the way that keeps its draws."""
        state = replace(
            state, by_draws=True, archive=Archive.empty(self.dim, state.archive.noise), trial=None
        )
        return self._begun_anew(state, state.q)
