"""The trial of a result: what is asked, and what follows from the verdict (`trial` has the evidence).

A result is certified if nothing speaks against it. Witnesses, noise, heavy tails and other modes send the search on.
What cannot be settled ends it, with the reason.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from mgvbp.auto import constants
from mgvbp.auto.arrival.evolution import project
from mgvbp.auto.searches.rules import Rules, in_time, refined
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.steps.leap import Leap, propose
from mgvbp.auto.steps.polish import higher
from mgvbp.auto.trial.company import Company
from mgvbp.auto.trial.hearings import adjourned
from mgvbp.auto.trial.rivals import blanket, elsewhere, wider
from mgvbp.auto.trial.sentence import Verdict, same_values, tails
from mgvbp.auto.trial.trial import Trial, repetition, summoned
from mgvbp.auto.trial.witnesses import widened, witnesses
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import PROPRIETY, Check, Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive
from mgvbp.surfaces.surface import Surface


class Court(Rules):
    """Rules with a trial before every certificate."""

    @abstractmethod
    def _visited(self, state: SearchState, point: Array) -> SearchState:
        """Begin anew near a point (d,) that may belong to another mode."""

    def ask(self, state: SearchState) -> Array:
        if state.company is not None:
            return state.company.points[: state.room]
        if state.trial is not None and state.phase is Phase.TRIAL:
            return state.trial.points(state.archive)
        if state.trial is not None and state.phase is Phase.WITNESS:
            rng, directions = self._generator(state), state.trial.directions
            called = [witnesses(state.q, directions[along], count, rng) for along, count in state.suspects]
            return np.concatenate(called)[: state.room]
        return super().ask(state)

    def _concluded(self, state: SearchState, surface: Surface, leap: Leap) -> SearchState:
        """Return to an earlier result as soon as this one cannot be better."""
        rival = state.rival
        if rival is not None and (
            near(state.q, rival.q) or self._cannot_be_better(surface, state.gap, rival.lower_bound)
        ):
            return self._returned(state, rival)
        return super()._concluded(state, surface, leap)

    def _cannot_be_better(self, surface: Surface, gap: float, rival: float) -> bool:
        """Whether the bound is far below that of a rival; few draws may misjudge it by a nat and more."""
        few = surface.size < self.enough
        doubt = constants.FEW_DOUBT + 0.5 * self.dim if few else constants.CONFIDENCE * surface.lower_bound_se
        return surface.lower_bound + constants.BETTER * (gap + self.tol) + doubt < rival

    def _settled(self, state: SearchState, surface: Surface | None) -> SearchState:
        """Remember how high the bound is elsewhere, and look again where fresh draws were a surprise."""
        if state.rival is not None and surface is not None and not surface.clipped:
            # by values q was chosen for its bound on these draws, whose error is then that of a plain mean
            chosen = 0.0 if self.needs_gradients else surface.rest / math.sqrt(surface.size)
            sure = surface.lower_bound - constants.CONFIDENCE * math.hypot(surface.lower_bound_se, chosen)
            if surface.size > self.enough and surface.gap < constants.BELIEVED:
                state = replace(state, record=max(state.record, sure))
        if surface is not None and state.steep is not None and surface.rest > constants.FAR_FROM_GAUSSIAN:
            state = replace(state, steep=_steepest(state.archive, surface))
        if surface is not None and _surprising(state, surface):
            steep, first = _steepest(state.archive, surface), state.surprises == 0
            state = replace(
                wary(state), surface=surface, verified=False, steep=steep, surprises=state.surprises + 1
            )
            if first and not (state.deterministic or state.archive.noise):
                return self._asked(state, repetition(state.archive, state.q))
        return super()._settled(state, surface)

    def _charged(self, state: SearchState, surface: Surface) -> SearchState:
        """Try to refute the result: summon what is needed for that, or use the trial of a Gaussian nearby."""
        trial = state.trial
        if trial is not None and near(state.q, trial.q):
            return self._sentenced(state, tails(trial, state.archive, surface, self.tol))
        if state.charges == constants.MOST_TRIALS:
            return refuted(state, "tails", Outcome.UNSETTLED, where="the parameters")
        if surface.rest > self.many * constants.FAR_FROM_GAUSSIAN:
            looks = self._look(state.archive, surface), self._glance(state.archive, surface)
            along = _missed_along(state.archive, surface)[: constants.HALVED]
            better = higher(surface, *looks, self.tol, self._generator(state), _best(state), along)
            if better is not None:
                return refined(replace(state, q=better.q, surface=better, verified=False), better.size)
        again, axes = not state.deterministic, self._axes(state)
        trial = summoned(state.archive, state.q, axes, self._generator(state), repeat=again)
        return self._asked(replace(state, charges=state.charges + 1), trial)

    def _axes(self, state: SearchState) -> NDArray[np.intp]:
        """The parameters whose tails are looked at."""
        return np.arange(self.dim)

    def _asked(self, state: SearchState, trial: Trial) -> SearchState:
        """Evaluate the points of a trial next."""
        return replace(state, trial=trial, phase=Phase.TRIAL, want=len(trial.points(state.archive)))

    def _heard(
        self, state: SearchState, trial: Trial, evaluated: Array, gradients: Array | None = None
    ) -> SearchState:
        """Take the log densities, and gradients if there are any, at the points of a trial."""
        surface = state.surface
        assert surface is not None
        slopes = None if gradients is None else gradients[2 * len(trial.rows) :]
        verdict, asked = same_values(trial, evaluated, state.archive), trial.points(state.archive)
        trial = trial.told(evaluated)
        if not any(verdict) and not len(trial.steps):
            return refined(replace(state, trial=None, want=0), surface.size)
        if verdict.noise and not state.random:
            company = Company(asked, evaluated)
            noisy = self._sentenced(replace(state, trial=trial, want=0), verdict)
            return replace(noisy, company=company, want=len(evaluated))
        if not any(verdict):
            if (again := adjourned(trial, surface, slopes)) is not None:
                return self._asked(state, again)
            verdict = tails(trial, state.archive, surface, self.tol)
        return self._sentenced(replace(state, trial=trial, want=0), verdict)

    def _accompanied(self, state: SearchState, company: Company, values: Array) -> SearchState:
        """Take the values of draws that were evaluated together again: go on with noise, or end the search."""
        if len(values) < len(company.points):  # there were no evaluations left for all of them
            return replace(state, company=None)
        nats = company.change(values)
        if company.changed and nats:
            return refuted(state, "the same values again", Outcome.INCONSISTENT, nats=nats)
        if company.changed or nats:
            return replace(state, company=None, random=True)
        company = company._replace(changed=True)
        return replace(state, company=company, want=len(company.points))

    def _sentenced(self, state: SearchState, verdict: Verdict) -> SearchState:
        """Certify, call witnesses, go on with noise, or end because the result cannot stand."""
        surface = state.surface
        assert surface is not None
        if verdict.inconsistent:
            return refuted(state, "the same values again", Outcome.INCONSISTENT, nats=verdict.inconsistent)
        if verdict.outside is not None:
            axis, value = verdict.outside
            where = f" (where {self._name(axis)} is {value:.3g}, for one)" if axis >= 0 else ""
            share = _share_outside(state.archive, state.q)
            return refuted(state, "tails", Outcome.OUTSIDE, share=share, where=where)
        if verdict.improper is not None:
            return refuted(state, PROPRIETY, Outcome.FLAT, where=self._direction(state, verdict.improper))
        if verdict.noise:
            archive = replace(state.archive, noise=verdict.noise)
            state = replace(state, archive=archive, trial=None, chords=None, verified=False)
            return refined(state, surface.size)
        if verdict.suspects:
            if state.charges == constants.MOST_TRIALS:
                return refuted(
                    state, "tails", Outcome.UNSETTLED, where=self._direction(state, verdict.suspects[0][0])
                )
            return replace(
                state,
                phase=Phase.WITNESS,
                suspects=verdict.suspects,
                want=sum(count for _, count in verdict.suspects),
                charges=state.charges + 1,
            )
        stretch = 1.0 + constants.HEAVY_STRETCH / max(3, self.dim)
        if verdict.heavy and state.least_stretch < stretch:
            return refined(wary(state, stretch), max(constants.HEAVY_DRAWS, surface.size))
        if state.rival is not None and state.rival.lower_bound + self.tol > surface.lower_bound:
            return self._returned(state, state.rival)
        assert state.trial is not None
        if state.visits < self.most_visits:
            point = elsewhere(state.trial, state.archive, surface, state.seen)
            if point is not None:
                return self._visited(leaving(state), point)
        if not state.wide:
            others = [other for other in state.seen if not near(state.q, other)]
            some = others if len(others) > 1 else [other for other in others if _beside(state.q, other)]
            wide = wider(state.trial, surface) or (blanket([state.q, *some]) if some else None)
            if wide is not None:
                there = self._begun_anew(replace(leaving(state), wide=True), project(wide, self.family))
                return replace(there, want=2 * self.least)
        higher_by = state.record - surface.lower_bound - constants.CONFIDENCE * surface.lower_bound_se
        if higher_by > constants.SURPASSING * self.tol:
            return refuted(state, "a higher mode", Outcome.SURPASSED, nats=higher_by)
        leap = propose(surface, state.radius, extrapolate=False)
        if leap is None:
            return self._escaped(state)
        return self._certified(replace(state, checks=self._checks(state, surface)), surface, leap)

    def _returned(self, state: SearchState, rival: SearchState) -> SearchState:
        """Go back to an earlier result, since the other mode has nothing better."""
        assert rival.surface is not None
        known = replace(state, seen=(*state.seen, state.q))
        return refined(in_time(rival, known), rival.surface.size)

    def _checks(self, state: SearchState, surface: Surface) -> tuple[Check, ...]:
        """What tried to refute a result that stands."""
        trial, archive = state.trial, state.archive
        assert trial is not None
        repeated = "a draw had the same value again"
        if archive.noise:
            repeated = (
                f"the values have noise, of about {archive.noise:.2g} nats, which the gap takes into account"
            )
        elif state.deterministic:
            repeated = "not tried: noise=0 was given"
        moved = "not tried: the posterior is nearly Gaussian"
        if surface.rest > self.many * constants.FAR_FROM_GAUSSIAN:
            moved = "from Gaussians nearby the lower bound leads back to this one, or to none better"
        distances = np.abs(trial.steps)
        probes = f"{len(distances)} points {distances.min():g} to {distances.max():g} standard deviations out"
        return (
            Check("the same values again", passed=True, found=repeated),
            Check(
                "tails", passed=True, found=f"{probes} hold no surprise, or draws have shown what is there"
            ),
            Check("a better Gaussian nearby", passed=True, found=moved),
        )

    def _direction(self, state: SearchState, along: int) -> str:
        """What a sentence calls a direction of the trial."""
        assert state.trial is not None
        axes = state.trial.axes
        return self._name(axes[along]) if along < len(axes) else "a combination of parameters"

    def _name(self, axis: int) -> str:
        """What a sentence calls a parameter."""
        return f"theta[{axis}]" if self._labels is None else self._labels[axis]

    def _testified(self, state: SearchState, theta: Array, *evaluated: Array) -> SearchState:
        """Take the log densities (and gradients) at the points of a trial, or at witnesses."""
        if state.trial is not None and state.phase is Phase.TRIAL:
            return self._heard(self._counted(state, len(theta)), state.trial, *evaluated)
        return self._witnessed(state, theta, *evaluated)

    def _witnessed(self, state: SearchState, theta: Array, *evaluated: Array) -> SearchState:
        """The state with witnesses: each direction has its own Gaussian."""
        assert state.trial is not None
        archive, start = state.archive, 0
        for along, count in state.suspects:
            rows, start = slice(start, start + count), start + count
            if len(theta[rows]):
                source = widened(state.q, state.trial.directions[along])
                archive = archive.add(source, theta[rows], *(part[rows] for part in evaluated))
        size, worst = archive.view(state.q).size, state.trial.directions[state.suspects[0][0]]
        steep = state.trial.q.family.from_frame(state.trial.q.factor, worst)
        told = replace(self._counted(wary(state), len(theta)), archive=archive, suspects=(), steep=steep)
        return refined(told, size)


def wary(state: SearchState, stretch: float = constants.RARE_STRETCH) -> SearchState:
    """The state with a gap that is stretched at least so much."""
    least = max(stretch, state.least_stretch)
    return replace(state, least_stretch=least, stretch=max(least, state.stretch))


def leaving(state: SearchState) -> SearchState:
    """The state that goes to look at another mode, and remembers the result that it leaves."""
    seen = (*state.seen, state.q)
    return replace(state, rival=state, visits=state.visits + 1, trial=None, seen=seen)


def _surprising(state: SearchState, surface: Surface) -> bool:
    """Whether the draws of a verification show that a quadratic misses much more than was thought."""
    most = constants.SURPRISED * state.expected + constants.SURPRISE
    verified = state.phase is Phase.VERIFY and state.surprises < constants.MOST_SURPRISES
    return verified and surface.rest > most


def _steepest(archive: Archive, surface: Surface) -> Array:
    """One standard deviation in the direction (d,) in which draws lie that the surface misses."""
    q = surface.q
    return q.family.from_frame(q.factor, _missed_along(archive, surface)[0])


def _missed_along(archive: Archive, surface: Surface) -> Array:
    """Directions of the frame (d, d) in which draws lie that the surface misses, the foremost first.

    They are the principal directions of the draws, weighted by their weights and by what the surface misses: beside a
    wall, the first is that across it.
    """
    view = archive.view(surface.q)
    missed = np.where(view.weights > 0.0, archive.values - surface.predicted(view.eps), 0.0)
    shares = view.weights * np.abs(missed)
    shares /= max(float(shares.max()), 1e-300)
    return np.asarray(np.linalg.eigh((shares[:, None] * view.eps).T @ view.eps)[1].T[::-1])


def _best(state: SearchState) -> Array:
    """The highest draw, (d,)."""
    return np.asarray(state.archive.theta[int(np.argmax(state.archive.values))])


def refuted(state: SearchState, name: str, outcome: Outcome, **measured: object) -> SearchState:
    """End the search because a check has failed."""
    ending = Ending.of(outcome, **measured)
    return replace(state, ending=ending, checks=(Check(name, passed=False, found=ending.sentence),))


def near(q: Gaussian, other: Gaussian) -> bool:
    """Whether two Gaussians are so near that a trial of one counts for the other."""
    shift = np.abs(q.mean - other.mean) / other.std
    return bool(max(shift.max(), np.abs(np.log(q.std / other.std)).max()) < constants.MOVED)


def _beside(q: Gaussian, other: Gaussian) -> bool:
    """Whether one Gaussian over both may be better than either: there is no deep valley between them."""
    return bool(np.linalg.norm(q.family.to_frame(q.factor, other.mean - q.mean)) < constants.COVERED)


def _share_outside(archive: Archive, q: Gaussian) -> str:
    """The share of q's mass where the density is zero, in words."""
    log_weights = q.log_density_at(archive.theta) - archive.log_mixture
    weights = np.exp(log_weights - log_weights.max())
    share = float(weights[archive.values == -np.inf].sum() / weights.sum())
    return f"about {share:.0%}" if share > 0.005 else "a little"
