"""What is oblique to all axes, what returns far out, walls: the trial finds the direction, and the search uses it."""

from dataclasses import replace

import numpy as np
import pytest
from test_trial import SEEDS, best_bound, fitted, no_false_claim, quadratic, refuted, slope, surface_and_trial

from common import case
from mgvbp import Auto, Gaussian
from mgvbp.auto import constants
from mgvbp.auto.searches.court import _steepest
from mgvbp.auto.trial.hearings import adjourned, bearing
from mgvbp.auto.trial.rivals import wider
from mgvbp.auto.trial.trial import summoned
from mgvbp.families import Full
from mgvbp.surfaces import Archive
from mgvbp.surfaces.surface import fit_surface


def unit(dim, seed=0):
    """A direction that is far from all axes and diagonals."""
    u = np.random.default_rng(seed).uniform(0.3, 1.0, dim) * np.where(np.arange(dim) % 3, 1.0, -1.0)
    return u / np.linalg.norm(u)


def along(u, f):
    """A function of one direction ``u``, and a standard normal across it, with the gradient by differences."""

    def density(theta):
        t = theta @ u
        return f(t) - 0.5 * (np.square(theta).sum(axis=1) - t**2)

    def gradient(theta):
        t = theta @ u
        slopes = (f(t + 1e-5) - f(t - 1e-5)) / 2e-5
        return slopes[:, None] * u - (theta - t[:, None] * u)

    return density, gradient


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_a_floor_oblique_to_all_axes_is_improper(dim):
    f, grad = along(unit(dim), lambda t: np.maximum(-0.5 * t**2, -6.0))
    refuted(f, "improper", dim=dim)
    refuted(f, "improper", dim=dim, grad=grad)


@pytest.mark.parametrize("height", [3.0, 10.0])
def test_a_density_that_repeats_itself_is_improper(height):
    refuted(lambda theta: height * np.cos(theta[:, 0]), "improper", dim=1)
    f, _ = along(unit(2), lambda t: height * np.cos(t))
    refuted(f, "improper", dim=2)


def test_another_mode_far_out_is_no_improper_density():
    """Seven times as wide, 33 standard deviations away; by two probes alone the density does not fall."""

    def f(theta):
        narrow = np.log(0.55 / 0.15) - 0.5 * ((theta[:, 0] - 5.0) / 0.15) ** 2
        return np.logaddexp(narrow, np.log(0.45) - 0.5 * theta[:, 0] ** 2)

    for seed in SEEDS:
        with case(seed):
            assert "improper" not in fitted(f, dim=1, rng=seed).stop_reason


@pytest.mark.parametrize("gradients", [False, True])
def test_the_direction_of_a_wall_is_found(gradients):
    """Five standard deviations out no axis reaches the wall; its gradient sixteen out is across it."""
    u, q = unit(6), Gaussian(np.zeros(6), variance=np.eye(6))
    f, grad = along(u, lambda t: -0.5 * t**2 - 1e4 * np.maximum(0.0, t - 3.4) ** 2)
    rng = np.random.default_rng(1)
    archive = Archive.empty(6).add(q, theta := q.sample(80, rng), quadratic(theta))
    surface = fit_surface(archive.view(q), Full(6), archive.values, np.inf)
    trial = summoned(archive, q, np.arange(6), rng, repeat=False)
    hearings = 0
    while trial is not None:
        points = trial.points(archive)
        told = trial.told(f(points))
        trial = adjourned(told, surface, grad(points) if gradients else None)
        hearings += 1
    assert told.found == 1
    assert abs(told.directions[-1] @ u) > 0.999
    assert hearings == (2 if gradients else 3)
    assert bearing(np.zeros(6)) is None


def test_a_gaussian_target_costs_no_further_hearing():
    q = Gaussian(np.zeros(4), variance=np.eye(4))
    rng = np.random.default_rng(2)
    archive = Archive.empty(4).add(q, theta := q.sample(60, rng), quadratic(theta))
    surface = fit_surface(archive.view(q), Full(4), archive.values, np.inf)
    trial = summoned(archive, q, np.arange(4), rng, repeat=True)
    assert adjourned(trial.told(quadratic(trial.points(archive))), surface) is None


def test_a_wider_gaussian_is_compared_with_what_q_loses_itself():
    """On a plateau c nats down the rule promises ½ + log t − c/3 with t = 5.5/√3, that is 1.655 − c/3 nats."""
    q = Gaussian(np.zeros(1), variance=np.eye(1))
    _, surface, trial = surface_and_trial(quadratic, q)
    for depth, promising in ((4.2, True), (4.5, False)):
        values = np.where(np.abs(trial.steps) == 5.5, -depth, -1e6)
        found = wider(replace(trial, values=values), surface)
        assert (found is not None) == promising
        assert promising == (0.5 + np.log(5.5 / np.sqrt(3.0)) - depth / 3.0 > constants.WIDER_GAIN)


def test_draws_that_the_surface_misses_show_the_direction_across_a_wall():
    u, q = unit(5), Gaussian(np.zeros(5), variance=np.eye(5))
    f, _ = along(u, lambda t: -0.5 * t**2 - 100.0 * np.maximum(0.0, t - 1.5) ** 2)
    theta = q.sample(400, np.random.default_rng(3))
    archive = Archive.empty(5).add(q, theta, f(theta))
    smooth = Archive.empty(5).add(q, theta, quadratic(theta))
    surface = fit_surface(smooth.view(q), Full(5), smooth.values, np.inf)
    assert abs(_steepest(archive, surface) @ u) > 0.95


def test_by_gradients_a_wall_is_certified():
    """A leap that clearly loses once led to more and more draws, and to the limit."""

    def f(theta):
        return quadratic(theta) - 1e4 * np.maximum(0.0, theta[:, 0] - 3.0) ** 2

    no_false_claim(f, best_bound(f, -0.1, 0.8), least_claims=2, grad=slope(f))


def test_without_a_certificate_the_gap_counts_what_was_not_looked_for():
    """Half the variance of what a quadratic misses is about the divergence from the posterior; a fifth is added."""
    search = Auto().start(2, max_evaluations=60)
    while search.ending is None:
        search.tell(-np.abs(search.ask()).sum(axis=1))
    state = search.best
    assert not search.converged
    assert state.gap == pytest.approx(replace(state, ending=None).gap + 0.1 * state.surface.rest**2)


def test_a_diagnosis_agrees_with_the_certificate_beside_a_wall():
    """Fresh draws hardly meet the wall: by themselves they would promise 0.05 nats, with an error of zero."""

    def f(theta):
        return quadratic(theta) - 1e4 * np.maximum(0.0, theta[:, 0] - 3.0) ** 2

    for seed in SEEDS:
        posterior = fitted(f, dim=1, rng=seed)
        if posterior.converged:
            diagnosis = posterior.diagnose(1000, rng=seed)
            error = np.hypot(diagnosis.gap_se, posterior.gap_se)
            with case(seed):
                assert abs(diagnosis.gap - posterior.gap) < 3.0 * error + 0.01
