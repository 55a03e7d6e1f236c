"""Scouts: modes that no draw of the best Gaussian can show become components, and one mode costs little."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp

import mgvbp
from mgvbp.auto.mixtures.scouts import Scouts, exchanged
from mgvbp.errors import ConvergenceWarning
from posteriors import TARGETS


class Modes:
    """A normalised mixture of normals with independent coordinates."""

    def __init__(self, weights, means, sds):
        self.weights, self.means, self.sds = np.array(weights), np.array(means, float), np.array(sds, float)
        self.dim = self.means.shape[1]

    def _terms(self, theta):
        z = (theta[:, None] - self.means) / self.sds
        constants = np.log(self.weights) - np.log(self.sds).sum(axis=1) - 0.5 * self.dim * np.log(2.0 * np.pi)
        return constants - 0.5 * np.square(z).sum(axis=2), -z / self.sds

    def __call__(self, theta):
        return logsumexp(self._terms(theta)[0], axis=1)

    def gradient(self, theta):
        terms, slopes = self._terms(theta)
        shares = np.exp(terms - logsumexp(terms, axis=1, keepdims=True))
        return (shares[:, :, None] * slopes).sum(axis=1)

    def kl(self, posterior):
        theta = posterior.sample(10_000, 1)
        return (posterior.log_density(theta) - self(theta)).mean()


TWO = Modes([0.7, 0.3], [[0.0] * 5, [0.0, 4.5, 0.0, 0.0, 2.0]], [[0.8] * 5, [0.6, 0.8, 0.7, 0.9, 0.6]])
THREE = Modes(
    [0.5, 0.3, 0.2],
    [[0.5] * 4, [-4.0, 0.0, 1.0, 0.0], [1.0, 1.0, 5.0, -2.0]],
    [[0.7, 0.9, 0.8, 1.0], [0.8] * 4, [0.6, 0.9, 0.7, 0.8]],
)


@pytest.mark.parametrize(("target", "by"), [(TWO, "values"), (THREE, "gradients")], ids=["two", "three"])
def test_modes_that_no_draw_can_show_are_found(target, by):
    """Without scouts most seeds end at one mode and state a distance of 0."""
    grad = target.gradient if by == "gradients" else None
    fits = [mgvbp.fit(target, dim=target.dim, grad=grad, family="mixture", rng=seed) for seed in range(3)]
    near = [target.kl(fit) < 0.05 for fit in fits]
    assert sum(near) >= 2
    assert all(fit.components >= len(target.weights) for fit, good in zip(fits, near, strict=True) if good)


def test_one_call_finds_them_too():
    fit = mgvbp.fit(TWO, dim=5, family="auto", rng=1)
    assert TWO.kl(fit) < 0.05
    assert fit.log_evidence == pytest.approx(0.0, abs=0.1)


def scouted(log_density, q, level, seed=0):
    """The scouts once they are back, how many evaluations they took, and whether they found anything."""
    rng = np.random.default_rng(seed)
    first = mgvbp.Gaussian(np.zeros(q.dim), variance=1.0)
    scouts = Scouts.start(q, ((q, level),), first, rng, gradients=False)
    count = 0
    while len(scouts.pending):
        count += len(scouts.pending)
        scouts = scouts.tell(log_density(scouts.theta))
    return scouts, count


def test_a_gaussian_is_left_after_the_scattered_points():
    q = mgvbp.Gaussian(np.ones(3), variance=0.5)
    scouts, count = scouted(lambda theta: 2.0 + q.log_density(theta), q, 2.0)
    assert scouts.found is None
    assert count == 8 * (3 + 2)


def test_tails_of_one_mode_are_no_other_mode():
    """Student's t and a skewed density have excess everywhere, and no valley."""
    q = mgvbp.Gaussian(np.zeros(2), variance=1.0)
    heavy, skewed = (
        lambda theta: -2.0 * np.log1p(np.square(theta).sum(axis=1) / 3.0),
        lambda theta: (theta - np.exp(theta)).sum(axis=1),
    )
    for density in (heavy, skewed):
        for seed in range(5):
            assert scouted(density, q, 0.0, seed)[0].found is None


def test_it_is_known_where_another_mode_is():
    q = mgvbp.Gaussian(THREE.means[0], variance=np.square(THREE.sds[0]))
    found = [scouted(THREE, q, np.log(0.5), seed)[0].found for seed in range(5)]
    distances = [np.linalg.norm((f.mean - THREE.means[1:]) / THREE.sds[1:], axis=1).min() for f in found if f]
    assert len(distances) >= 4
    assert np.median(distances) < 1.5


def test_where_the_function_fails_is_no_place():
    """Scattered points may all fail: nothing is found, and nothing breaks."""
    q = mgvbp.Gaussian(np.zeros(2), variance=1.0)
    scouts, count = scouted(lambda theta: np.full(len(theta), -np.inf), q, 0.0)
    assert scouts.found is None
    assert count == 8 * (2 + 2)


@pytest.mark.parametrize("limit", [180, 300, 420])
def test_the_limit_holds_wherever_it_ends_the_search(limit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [mgvbp.fit(TWO, dim=5, family="mixture", max_evaluations=limit, rng=s) for s in range(2)]
    assert max(fit.n_evaluations for fit in fits) <= limit


def test_functions_that_fail_far_out_are_no_matter():
    """Neither where scouts look nor where a search begins that they have led to."""

    def failing(theta):
        if np.abs(theta).max() > 9.0:
            raise ValueError("far out")
        return -0.5 * np.square(theta).sum(axis=1)

    fit = mgvbp.fit(failing, dim=2, family="auto", rng=0)  # a warning would be an error
    assert fit.converged
    assert fit.trace.dropped.sum() == 0

    def cut(theta):
        if theta[:, 1].max() > 5.5:
            raise ValueError("beyond the second mode")
        return TWO(theta)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.errors.MgvbpWarning)
        assert mgvbp.fit(cut, dim=5, family="mixture", rng=0).components >= 1


def test_what_is_known_is_not_looked_for():
    both = [
        (mgvbp.Gaussian(m, variance=np.square(s)), np.log(w))
        for w, m, s in zip(TWO.weights, TWO.means, TWO.sds, strict=True)
    ]
    first = mgvbp.Gaussian(np.zeros(5), variance=1.0)
    scouts = Scouts.start(both[0][0], tuple(both), first, np.random.default_rng(0), gradients=False)
    assert len(scouts.tell(TWO(scouts.theta)).pending) == 0


@pytest.mark.filterwarnings("ignore::mgvbp.errors.ConvergenceWarning")
def test_one_gaussian_needs_no_scouts(monkeypatch):
    monkeypatch.setattr(Scouts, "start", lambda *given, **named: pytest.fail("scouts were sent"))
    assert mgvbp.fit(TWO, dim=5, family=mgvbp.Mixture(components=1), rng=0).components == 1


def test_a_mixture_ends_with_its_own_sentence():
    fit = mgvbp.fit(TWO, dim=5, family="auto", rng=0)
    assert fit.components > 1
    assert "mixture" in fit.stop_reason


@pytest.mark.filterwarnings("ignore::mgvbp.errors.ConvergenceWarning")  # some distances are not sure
def test_heavy_tails_do_not_hide_another_mode():
    """Concentrations of a drug in blood: absorption and elimination may change places, across a valley of 20 nats.

    The masses of the two are those of Laplace's approximation, 5 to 1. Far out, where nothing is, the density exceeds
    what the best Gaussian explains by thousands of nats.
    """
    t = np.linspace(0.5, 12.0, 14)

    def curve(absorption, elimination, volume):
        difference = absorption - elimination
        decays = np.exp(-elimination * t) - np.exp(-absorption * t)
        return 100.0 * absorption / (volume * difference) * decays

    y = np.log(curve(1.2, 0.25, 10.0)) + 0.15 * np.random.default_rng(0).standard_normal(14)

    def log_density(theta):
        a, e, v, s = (np.exp(theta[:, [i]] + shift) for i, shift in enumerate([0.0, -1.0, 2.0, -1.0]))
        residuals = (y - np.log(np.abs(curve(a, e, v)) + 1e-12)) / s
        return -0.5 * (residuals**2).sum(axis=1) - 14.0 * theta[:, 3] - 0.5 * (theta**2).sum(axis=1)

    def slopes(theta):
        steps = 1e-5 * np.eye(4)
        sides = [log_density(theta + step) - log_density(theta - step) for step in steps]
        return np.stack(sides, axis=1) / 2e-5

    shares = []
    for seed in range(3):
        q = mgvbp.fit(log_density, dim=4, grad=slopes, family="auto", rng=seed)
        theta = q.sample(4000, 1)
        shares.append((theta[:, 0] < theta[:, 1] - 1.0).mean())  # absorption is the slower one
    assert np.median(shares) > 0.05, shares


def test_entries_are_exchanged():
    np.testing.assert_array_equal(exchanged(np.array([1.0, 2.0, 3.0])), [[2, 1, 3], [3, 2, 1], [1, 3, 2]])


@pytest.mark.filterwarnings("ignore::mgvbp.errors.ConvergenceWarning")
def test_labels_that_can_be_exchanged_make_two_modes():
    """Two regression lines whose slopes lie 15 standard deviations apart: either may come first, with probability ½."""
    target = TARGETS["switching_regressions"]
    for seed in range(3):
        draws = mgvbp.fit(target.log_density, dim=5, family="mixture", rng=seed).sample(4000, rng=1)
        assert 0.3 < np.mean(draws[:, 0] > draws[:, 1]) < 0.7
