"""What a search by gradients doubts before it is tried: slow directions, jumps in the values, wrong gradients.

Along slow directions (`slow`) the bound bends less than its surface says, so that the noise costs more. Jumps do not
show in gradients, but on chords between draws (`chords`). A wrong gradient implies another quadratic than that of the
values.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.searches.elsewhere import Elsewhere
from mgvbp.auto.searches.rules import refined
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.steps.slow import hidden
from mgvbp.auto.trial.chords import Chords, contradiction
from mgvbp.auto.trial.trial import repetition
from mgvbp.core.outcome import Check
from mgvbp.core.records import replace
from mgvbp.families import Diagonal, Family, Full
from mgvbp.surfaces.gradient_regression import quadratic
from mgvbp.surfaces.surface import Surface, fit_surface


class Doubts(Elsewhere):
    """Decisions about what values and gradients say of each other."""

    def _slowed(self, state: SearchState, surface: Surface) -> SearchState:
        """Look along slow directions: make more draws where the bound still rises, or state what they hide."""
        archive, q = state.archive, surface.q
        fresh = archive.latest(self._num_fresh(surface.rest))
        count = int(np.clip(surface.size / (2 * (self.dim + 1)), 2, constants.MOST_SHARES))
        share = archive.shares(count)
        weights = np.bincount(share, archive.view(q).weights)
        parts = [archive.some(np.flatnonzero(share == k)) for k in range(count)]
        shares = [
            (self._look(part, surface), float(weight)) for part, weight in zip(parts, weights, strict=True)
        ]
        looks = self._look(archive, surface), shares, self._look(fresh, surface)
        size = fresh.view(q).size
        noise, shown, needed = hidden(q, *looks, (surface.size, size), self.tol)
        if needed > size:
            more = math.ceil(constants.MORE_FRESH * needed)
            return replace(refined(state, surface.size), want=more)
        stretch = max(state.stretch, 1.0 + (noise + shown) / max(surface.noise, constants.ROUND_OFF))
        uncertain = stretch * surface.noise
        if uncertain > self.tol:  # by how much it stretches then, other fresh draws will say
            growth = min(constants.MORE, max(1.1, 1.05 * uncertain / self.tol))
            return refined(replace(state, verified=False), growth * surface.size)
        return refined(replace(state, stretch=stretch, cleared=len(archive.values)), surface.size)

    def _compared(self, state: SearchState, surface: Surface) -> SearchState:
        """Look for jumps in the values, which gradients do not show; if there are any, let the values judge.

        Values can judge with so many draws that `_fit` takes their surface. If it does not, nothing can.
        """
        if state.chords is None:
            return self._halved(state, self._chords(state, surface))
        refused, count = contradiction(state.chords), Full(self.dim).num_monomials
        assert refused is not None
        if not (state.deterministic or state.surprises):  # it may be noise
            again = repetition(state.archive, state.q)
            return self._asked(replace(state, chords=None, surprises=1), again)
        settled = count > constants.MOST_BY_BOTH or surface.size > constants.CERTIFYING * count
        if settled or not state.chords.jump:
            found = Check("gradients", passed=False, found=refused.sentence)
            return replace(state, ending=refused, checks=(found,))
        return refined(replace(state, verified=False), 1.01 * constants.CERTIFYING * count)

    def _chords(self, state: SearchState, surface: Surface) -> Chords:
        """Chords between draws that matter to q."""
        archive, weights = state.archive, state.archive.view(surface.q).weights
        rows = weights > constants.MATTERING / max(int(np.count_nonzero(weights)), 1)
        given = archive.theta[rows], archive.values[rows], archive.gradients[rows]
        return Chords.among(*given, self.tol, self._generator(state), archive.noise)

    def _halved(self, state: SearchState, chords: Chords) -> SearchState:
        """Go on with what is left of the chords; once they have ended, so does the comparison."""
        assert state.surface is not None
        if not chords.ended:
            return replace(state, chords=chords, phase=Phase.CHORD, want=len(chords.t))
        return refined(replace(state, chords=chords, want=0), state.surface.size)

    def _contradicted(self, state: SearchState, surface: Surface) -> int | None:
        """The parameter in which the values contradict the gradients most; None if they agree.

        The quadratic that the gradients imply is taken from the values. What is left must have no quadratic part, but
        for the noise of both.
        """
        view, archive = state.archive.view(surface.q), state.archive
        left = archive.values - quadratic(view.eps, surface.g, surface.G)
        basis: Family = Full(self.dim)
        work = len(left) * basis.num_monomials**2
        if constants.CERTIFYING * basis.num_monomials > view.size or work > constants.MOST_COMPARED:
            basis = Diagonal(self.dim)
        allowed = self.tol + constants.CONTRADICTION * surface.noise
        rest = fit_surface(view, basis, left, math.inf, polynomials=False)
        if rest is None or rest.gap < allowed:
            return None
        rest = fit_surface(view, basis, left, math.inf)  # polynomials take away noise, and most of the time
        if rest is None or rest.gap < allowed + constants.CONTRADICTION * rest.noise:
            return None
        return int(np.argmax(0.5 * np.square(rest.g) + np.square(rest.G).sum(axis=1)))
