"""Mixtures: near the posterior, honest about how near, and usable like every posterior."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import mgvbp
from common import installed
from mgvbp.auto import Aim, Auto, MixtureSearch
from mgvbp.auto.mixtures.ascent import ascended, clustered, split
from mgvbp.auto.mixtures.distance import Expected, log_measuring, measured, measuring, weighed
from mgvbp.auto.mixtures.rounds import drawn
from mgvbp.auto.mixtures.state import MixtureState, Place, Tried
from mgvbp.core.distance import Distance
from mgvbp.errors import ConvergenceWarning, InvalidInputError, NonFiniteWarning
from mgvbp.families.mixture import GaussianMixture, from_frame, to_frame
from mgvbp.surfaces.process import usual
from mgvbp.surfaces.surrogate import fitted
from mgvbp.transforms import Positive, Real
from posteriors import TARGETS, references


def banana(theta):
    return -0.5 * theta[:, 0] ** 2 - 2.0 * (theta[:, 1] - theta[:, 0] ** 2) ** 2


EVIDENCE = np.log(np.pi)
"""Of the banana: 2π times the standard deviations 1 and ½."""


@pytest.fixture(scope="module")
def fitted_banana():
    with warnings.catch_warnings():  # with some seeds a far draw makes the distance unsure
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mgvbp.fit(banana, dim=2, family="mixture")


def true_kl(posterior, log_density, evidence, n=20_000):
    theta = posterior.sample(n, 99)
    h = log_density(theta) - posterior.log_density(theta)
    return evidence - h.mean(), h.std() / np.sqrt(n)


def test_a_banana_is_followed(fitted_banana):
    assert not fitted_banana.converged or "starts=8" in fitted_banana.stop_reason
    kl, error = true_kl(fitted_banana, banana, EVIDENCE)
    assert kl - 4.0 * error < 0.1  # the best Gaussian is 0.39 away
    assert fitted_banana.components > 1


def long_banana(theta):
    return -0.125 * theta[:, 0] ** 2 - (theta[:, 1] + theta[:, 0] ** 2 - 4.0) ** 2


@pytest.mark.parametrize(
    ("density", "evidence", "least"),
    [(banana, EVIDENCE, 7), (long_banana, np.log(2.0 * np.pi) + 0.5 * np.log(2.0), 5)],
)
def test_bananas_end_sure_of_their_distance_and_right(density, evidence, least):
    """Of the first one of 64 seeds was not sure, of the second three of 24; the distances of these 24 all held."""
    sure = right = 0
    for seed in range(8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = mgvbp.fit(density, dim=2, family="mixture", rng=seed)
        sure += posterior.converged
        right += abs(true_kl(posterior, density, evidence)[0] - posterior.kl) <= 3.0 * posterior.kl_se + 0.02
    assert sure >= least
    assert right >= 7


@pytest.mark.parametrize("name", ["garch11", "skew_normal_2", "poisson_mixture_children"])
def test_the_stated_distance_is_true(name):
    target, reference, near, stated = TARGETS[name], references()[name], 0, 0
    for seed in range(3):
        posterior = mgvbp.fit(target.log_density, dim=target.dim, family="mixture", rng=seed)
        kl, error = true_kl(posterior, target.log_density, reference.log_evidence, 5_000)
        near += kl - 3.0 * error <= 0.06
        stated += abs(posterior.kl - kl) <= 3.0 * posterior.kl_se + 0.03 + 3.0 * error
    assert near >= 2
    assert stated >= 2


def test_modes_become_components():
    two = GaussianMixture([0.7, 0.3], [[-2.0, 0.0], [3.0, 1.0]], np.stack([np.eye(2)] * 2))
    starts = [[-2.0, 0.0], [3.0, 1.0]]
    posterior = mgvbp.fit(two.log_density, dim=2, family="mixture", starts=starts)
    assert true_kl(posterior, two.log_density, 0.0)[0] < 0.05
    share = (posterior.sample(20_000, 0)[:, 0] > 0.5).mean()
    assert abs(share - 0.3) < 0.08
    assert "starts=" not in posterior.stop_reason


def test_draws_of_starts_that_ended_at_the_same_place_count():
    """One of them may have come by a mode that the others have not met."""
    q = mgvbp.Gaussian([0.0, 0.0], variance=1.0)
    here = Place(q, -1.0, np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([-1.0, -2.0]))
    other = Place(q, -1.1, np.array([[0.0, 0.0], [5.0, 5.0], [9.0, 9.0]]), np.array([-1.0, -3.0, -500.0]))
    theta, values = drawn([here], [other])
    np.testing.assert_array_equal(theta, [[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]])
    np.testing.assert_array_equal(values, [-1.0, -2.0, -3.0])


def test_modes_that_the_trial_of_the_gaussian_visits_are_kept():
    target, near = TARGETS["bimodal_2"], 0
    for seed in range(3):
        posterior = mgvbp.fit(target.log_density, dim=2, family="mixture", rng=seed)
        near += true_kl(posterior, target.log_density, 0.0, 5_000)[0] < 0.1  # one mode alone is 0.22 away
    assert near >= 2


def test_auto_keeps_a_gaussian_that_is_near_enough():
    posterior = mgvbp.fit(lambda t: -0.5 * (t**2).sum(axis=1), dim=3, family="auto")
    assert (posterior.components, posterior.mixture, posterior.converged) == (1, None, True)
    assert posterior.gap < 0.01
    assert posterior.kl <= 0.05


@pytest.mark.filterwarnings("ignore::mgvbp.errors.ConvergenceWarning")
def test_auto_takes_a_mixture_where_it_is_not():
    posterior = mgvbp.fit(banana, dim=2, family="auto", kl_tol=0.05)
    assert posterior.components > 1
    assert true_kl(posterior, banana, EVIDENCE)[0] < 0.2


@pytest.mark.filterwarnings("ignore::mgvbp.errors.ConvergenceWarning")
def test_the_number_of_gaussians_can_be_chosen():
    assert mgvbp.fit(banana, dim=2, family=mgvbp.Mixture(3)).components == 3


def grad(theta):
    x, y = theta.T
    return np.stack([-x + 8.0 * x * (y - x**2), -4.0 * (y - x**2)], axis=1)


@pytest.mark.filterwarnings("ignore::mgvbp.errors.ConvergenceWarning")
def test_with_gradients():
    """The warning is of the three Gaussians: with no more of them it may stay open what is still missing."""
    posterior = mgvbp.fit(banana, dim=2, family="mixture", grad=grad)
    assert posterior.estimator == "gradient"
    assert true_kl(posterior, banana, EVIDENCE)[0] < 0.05
    assert posterior.converged
    assert mgvbp.fit(banana, dim=2, family=mgvbp.Mixture(3), grad=grad).components == 3


# --- the same posterior as every other ----------------------------------------------------------


def test_files_pickles_and_reports_keep_the_mixture(fitted_banana, tmp_path):
    fitted_banana.save(tmp_path / "posterior.npz")
    again = mgvbp.load(tmp_path / "posterior.npz")
    copy = pickle.loads(pickle.dumps(fitted_banana))
    for other in (again, copy):
        np.testing.assert_array_equal(other.sample(50, 1), fitted_banana.sample(50, 1))
        assert (other.kl, other.kl_se, other.log_evidence) == (
            fitted_banana.kl,
            fitted_banana.kl_se,
            fitted_banana.log_evidence,
        )
    assert again.summary() == fitted_banana.summary()
    assert f"mixture of {again.components} Gaussians" in again.summary()
    assert "nats from the posterior" in again.summary()


def test_moments_and_quantiles_are_those_of_the_mixture(fitted_banana):
    theta = fitted_banana.sample(100_000, 5)
    error = 5.0 * fitted_banana.std / np.sqrt(len(theta))
    assert (np.abs(theta.mean(axis=0) - fitted_banana.mean) < error).all()
    np.testing.assert_allclose(fitted_banana.covariance, np.cov(theta.T), atol=0.05)
    below = (theta < fitted_banana.quantiles([0.2])[0]).mean(axis=0)
    np.testing.assert_allclose(below, 0.2, atol=0.01)


def test_plots_and_the_report_show_the_shape(fitted_banana, tmp_path):
    installed("matplotlib").use("Agg")
    from mgvbp import plots
    from mgvbp.report import write_report

    panels = plots.corner(fitted_banana)
    (lines,) = panels[1, 0].collections  # contours of the banana, which no ellipse could follow
    heights = np.concatenate([path.vertices for path in lines.get_paths()])
    assert heights[:, 1].max() > 3.0
    page = tmp_path / "page.html"
    write_report(fitted_banana, page)
    assert "mixture of" in page.read_text()
    assert "distance to the posterior itself" in page.read_text()


def test_diagnose_finds_a_good_mixture_good(fitted_banana):
    diagnosis = fitted_banana.diagnose(4000)
    assert diagnosis.gap is None
    assert abs(diagnosis.log_evidence - EVIDENCE) < 0.05
    assert diagnosis.family == "mixture"
    assert diagnosis.ess > 0.8 * diagnosis.num_draws


def test_a_mixture_is_the_prior_of_the_next_fit(fitted_banana):
    def likelihood(theta):
        return -0.5 * (theta[:, 0] - 1.0) ** 2

    updated = mgvbp.fit(likelihood, prior=fitted_banana, family="mixture")

    def density(theta):
        return fitted_banana.log_density(theta) + likelihood(theta)

    grid = np.stack(np.meshgrid(np.linspace(-6, 6, 301), np.linspace(-6, 16, 551)), -1).reshape(-1, 2)
    evidence = np.log(np.exp(density(grid)).sum() * (12 / 300) * (22 / 550))
    assert true_kl(updated, density, evidence)[0] < 0.15
    assert updated.mean[0] > 0.3


def test_named_parameters_have_marginals_of_the_mixture():
    def log_likelihood(s, m):
        return -10.0 * np.log(s) - 20.0 / s**2 - m**2 / s**2

    model = mgvbp.Model(log_likelihood, mgvbp.Parameters(s=Positive(), m=Real()))
    posterior = mgvbp.fit(model, family="mixture")
    s = posterior["s"]
    draws = s.sample(200_000, 0)
    assert abs(s.mean - draws.mean()) < 5.0 * draws.std() / np.sqrt(len(draws))
    np.testing.assert_allclose(s.std, draws.std(), rtol=0.03)
    np.testing.assert_allclose(s.quantile([0.1, 0.9]), np.quantile(draws, [0.1, 0.9]), rtol=0.01)
    grid = np.linspace(0.2, 15.0, 4000)
    np.testing.assert_allclose(np.trapezoid(s.density(grid), grid), 1.0, atol=1e-3)
    assert posterior.to_arviz(num_draws=50)["posterior"]["s"].shape == (1, 50)


@pytest.mark.filterwarnings("ignore::mgvbp.errors.ConvergenceWarning")
def test_a_checkpoint_continues_bit_for_bit(fitted_banana, tmp_path):
    path = tmp_path / "run.npz"
    # stop in the rounds of mixtures, and go on
    with pytest.warns(ConvergenceWarning, match="callback"):
        mgvbp.fit(
            banana,
            dim=2,
            family="mixture",
            checkpoint=path,
            every=0.0,
            callback=lambda it: it.n_evaluations > 120,
        )
    again = mgvbp.resume(path, banana)
    np.testing.assert_array_equal(again.mixture.means, fitted_banana.mixture.means)
    assert again.kl == fitted_banana.kl


def test_a_climb_is_continued_bit_for_bit(tmp_path):
    whole = mgvbp.fit(banana, dim=2, family="mixture", grad=grad)
    path = tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning, match="callback"):
        mgvbp.fit(
            banana,
            dim=2,
            family="mixture",
            grad=grad,
            checkpoint=path,
            every=0.0,
            callback=lambda it: it.n_evaluations > 2000,
        )
    again = mgvbp.resume(path, banana, grad=grad)
    np.testing.assert_array_equal(again.mixture.means, whole.mixture.means)
    assert again.kl == whole.kl


def test_where_the_density_is_zero_there_is_no_climb():
    """A gradient that ends at a wall: the rounds go on by values, and the mixture is no worse than the Gaussian."""

    def walled(theta):
        return np.where(theta[:, 0] < 2.5, banana(theta), -np.inf)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        posterior = mgvbp.fit(walled, dim=2, family="mixture", grad=grad, max_evaluations=8000)
    assert np.isfinite(posterior.mean).all()
    assert posterior.n_evaluations <= 8000


def test_few_evaluations_are_for_a_surrogate_although_there_are_gradients():
    """Seven of eight seeds end with a mixture; three of four must."""
    near = 0
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # few draws may not be sure of the distance
            posterior = mgvbp.fit(banana, dim=2, family="mixture", grad=grad, max_evaluations=900, rng=seed)
        assert posterior.n_evaluations <= 900
        near += posterior.components > 1 and true_kl(posterior, banana, EVIDENCE)[0] < 0.1
    assert near >= 3


def test_twenty_five_parameters_by_gradients():
    """A hierarchy of twenty means around μ with scale e^t: its evidence is an integral over t alone."""
    rng, groups = np.random.default_rng(3), 23
    y = 1.2 * rng.normal(size=groups)

    def centred(theta):
        mu, t, means = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        prior = -0.5 * (mu[:, 0] ** 2 + (t[:, 0] / 0.7) ** 2) - groups * t[:, 0]
        return prior - 0.5 * (((means - mu) * np.exp(-t)) ** 2 + (y - means) ** 2).sum(axis=1)

    def slope(theta):
        mu, t, means = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        apart = (means - mu) * np.exp(-2.0 * t)
        by_t = (apart * (means - mu)).sum(axis=1) - groups - t[:, 0] / 0.49
        return np.column_stack([apart.sum(axis=1) - mu[:, 0], by_t, y - means - apart])

    grid = np.linspace(-4.0, 3.0, 2001)
    total = np.exp(2.0 * grid) + 1.0  # variance of y given μ and t
    spread = np.square(y).sum() / total - (y.sum() / total) ** 2 / (1.0 + groups / total)
    log_p = -0.5 * (groups * np.log(total) + np.log1p(groups / total) + spread) - 0.5 * (grid / 0.7) ** 2
    evidence = np.log(np.trapezoid(np.exp(log_p), grid)) + 0.5 * (2 * groups + 1) * np.log(2.0 * np.pi)
    evidence -= 0.5 * groups * np.log(2.0 * np.pi)
    gaussian = mgvbp.fit(centred, dim=25, grad=slope, tol=0.05)
    posterior = mgvbp.fit(centred, dim=25, grad=slope, family="mixture")
    before, after = (true_kl(fit, centred, evidence)[0] for fit in (gaussian, posterior))
    assert after < 0.5 * before
    assert abs(after - posterior.kl) < 4.0 * posterior.kl_se + 0.03


def test_ask_and_tell_is_what_fit_does(fitted_banana):
    search = MixtureSearch(Auto(0.2).start(2), Aim())
    while not search.stop_reason:
        search.tell(banana(search.ask()))
    np.testing.assert_array_equal(search.best.q.means, fitted_banana.mixture.means)


def test_a_gaussian_with_the_higher_bound_is_the_result_and_the_sentence_is_about_it():
    search = MixtureSearch(Auto(0.2).start(2), Aim())
    while not search.stop_reason:
        search.tell(banana(search.ask()))
    assert "confirm the mixture" in search.stop_reason
    state, gaussian = search.state, search.state.starts.best
    worse = state.tried[-1].distance._replace(lower_bound=gaussian.lower_bound - 1.0)
    search.state = replace(state, tried=(*state.tried[:-1], state.tried[-1]._replace(distance=worse)))
    assert search.best.q is gaussian.q
    assert search.best.distance.kl == pytest.approx(worse.log_evidence - gaussian.lower_bound)
    assert f"confirm the Gaussian, {search.best.distance.kl:.3f} nats" in search.stop_reason
    assert "mixture" not in search.stop_reason


# --- its parts ----------------------------------------------------------------------------------


def test_frames_there_and_back():
    rng = np.random.default_rng(0)
    mixture = GaussianMixture(
        [1.0, 2.0], rng.normal(size=(2, 3)), np.tril(rng.normal(size=(2, 3, 3))) + 3 * np.eye(3)
    )
    frame = mixture.moments
    there = to_frame(frame, mixture)
    np.testing.assert_allclose(there.covariance, np.eye(3), atol=1e-10)
    back = from_frame(frame, there)
    np.testing.assert_allclose(back.factors, mixture.factors, atol=1e-10)
    np.testing.assert_allclose(back.means, mixture.means, atol=1e-10)


def normal(mean, covariance):
    return GaussianMixture([1.0], np.array([mean]), np.linalg.cholesky(np.linalg.inv(covariance))[None])


def test_an_anchor_is_several_optima_only_where_they_explain_the_values():
    """A banana has no second mode in its arm; two modes that lie apart are no wide Gaussian."""
    rng = np.random.default_rng(4)
    x1 = rng.normal(size=120)
    bent = np.column_stack([x1, x1**2 + 0.5 * rng.normal(size=120)])
    arm = GaussianMixture([0.9, 0.1], [[0.0, 0.3], [1.5, 2.3]], np.stack([2.1 * np.eye(2), 6.0 * np.eye(2)]))
    moments = normal([0.0, 1.0], np.diag([1.0, 2.25]))
    assert fitted([arm, moments], moments, bent, banana(bent), usual(2), [np.eye(2)], rng).anchor is moments
    two = GaussianMixture([0.5, 0.5], [[-4.0, 0.0], [4.0, 0.0]], np.stack([np.eye(2)] * 2))
    apart, wide = two.sample(120, rng), normal([0.0, 0.0], np.diag([17.0, 1.0]))
    assert (
        fitted([two, wide], wide, apart, two.log_density_at(apart), usual(2), [np.eye(2)], rng).anchor is two
    )


def test_a_surrogate_is_nowhere_much_higher_than_what_was_seen():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(30, 2))
    values = 3.0 * x[:, 0] - 0.5 * (x**2).sum(axis=1)  # the process goes on rising
    anchor = normal([0.0, 0.0], np.eye(2))
    surrogate = fitted([anchor], anchor, x, values, usual(2), [np.eye(2)], rng)
    assert surrogate.predict(8.0 * rng.normal(size=(500, 2))).max() <= values.max() + 1.0


def test_a_surrogate_keeps_draws_where_the_mixture_has_lost_a_tail():
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.normal(size=(300, 2)), 0.5 * rng.normal(size=(1500, 2)) + [2.0, 0.0]])
    anchor, mixture = normal([0.0, 0.0], np.eye(2)), normal([2.0, 0.0], 0.25 * np.eye(2))
    values = anchor.log_density_at(x)
    surrogate = fitted([mixture], mixture, x, values, usual(2), [np.eye(2)], rng)
    assert len(surrogate.process.points) == 1000
    assert surrogate.process.points[:, 0].min() < -2.0


def test_draws_far_along_a_tail_are_within_the_fence():
    """A parabola's arms, where the kernel's variance is large: what is known there is believed as it is."""
    rng = np.random.default_rng(7)
    x1 = rng.normal(0.5, 1.3, size=300)
    x = np.column_stack([x1, 0.7 * x1**2 + 0.4 * rng.normal(size=300)])
    values = -0.5 * ((x1 - 0.5) / 1.3) ** 2 - 0.5 * ((x[:, 1] - 0.7 * x1**2) / 0.4) ** 2
    moments = normal(x.mean(axis=0), np.cov(x.T))
    surrogate = fitted([moments], moments, x, values, np.array([-1.0, 5.0, 3.0, 4.0]), [np.eye(2)], rng)
    far = np.argsort(-np.abs(x[:, 1]))[:5]
    assert surrogate.process.variances(x[far]).min() > 1e4
    np.testing.assert_allclose(surrogate.cautious(x[far]), values[far], atol=0.1)


def test_the_gradient_of_a_surrogate_is_that_of_its_values():
    """Among the draws and where the fence stands, by central differences."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 2))
    anchor = GaussianMixture([1.0], np.zeros((1, 2)), np.eye(2)[None])
    surrogate = fitted([anchor], anchor, x, banana(x), usual(2), [np.eye(2)], rng)
    at = np.concatenate([x[:5], 6.0 * rng.normal(size=(5, 2))])
    values, gradients = surrogate.with_gradient(at)
    np.testing.assert_allclose(values, surrogate.cautious(at), rtol=1e-8)
    assert (surrogate.predict(at) - values > 0.1).any(), "some are beyond the fence"
    for axis in np.eye(2):
        step = 1e-5 * axis
        found = (surrogate.cautious(at + step) - surrogate.cautious(at - step)) / 2e-5
        np.testing.assert_allclose(gradients @ axis, found, rtol=1e-4, atol=1e-4)


def test_the_ascent_finds_a_gaussian_exactly():
    rng = np.random.default_rng(0)
    target = GaussianMixture([1.0], [[0.3, -0.2]], [[[1.2, 0.0], [0.4, 0.9]]])
    x = 1.5 * rng.normal(size=(150, 2))
    anchor = GaussianMixture([1.0], np.zeros((1, 2)), np.eye(2)[None])
    surrogate = fitted([anchor], anchor, x, target.log_density(x), usual(2), [np.eye(2)], rng)
    found = anchor
    for _ in range(3):
        found = ascended(found, surrogate, rng)
    np.testing.assert_allclose(found.means, target.means, atol=0.02)
    np.testing.assert_allclose(found.covariance, target.covariance, atol=0.03)


class Banana:
    """The log density of x₀ ~ N(0, 1), x₁ | x₀ ~ N(x₀² − 1, 1/4), x₂ ~ N(0, 1), normalised, in place of a surrogate."""

    def with_gradient(self, x):
        off = x[:, 1] - x[:, 0] ** 2 + 1.0
        value = -0.5 * x[:, 0] ** 2 - 2.0 * off**2 - 0.5 * x[:, 2] ** 2
        gradient = np.column_stack([-x[:, 0] + 8.0 * off * x[:, 0], -4.0 * off, -x[:, 2]])
        return value + np.log(2.0) - 1.5 * np.log(2.0 * np.pi), gradient

    def kl(self, mixture):
        x = mixture.sample(20_000, 7)
        return float((mixture.log_density_at(x) - self.with_gradient(x)[0]).mean())


def test_halves_have_the_moments_of_the_whole_and_lie_where_it_bends():
    rng = np.random.default_rng(0)
    whole = GaussianMixture([1.0], [[0.2, -0.1, 0.3]], np.diag([1.0, 0.8, 1.3])[None])
    halves = split(whole, Banana(), 2, rng)
    np.testing.assert_allclose(halves.moments.mean, whole.moments.mean, atol=1e-12)
    np.testing.assert_allclose(halves.moments.covariance, whole.moments.covariance, atol=1e-12)
    apart = halves.means[0] - halves.means[1]
    assert abs(apart[0]) > abs(apart[1])  # mostly along x₀, with which the mean of x₁ bends,
    assert abs(apart[2]) < 1e-6  # and not along x₂, which is apart


def test_splitting_never_ends_below_the_whole():
    rng, banana = np.random.default_rng(0), Banana()
    mixture = GaussianMixture([1.0], np.zeros((1, 3)), np.eye(3)[None])
    for _ in range(3):
        mixture = ascended(mixture, banana, rng)
    distances = [banana.kl(mixture)]
    for most in (2, 3, 6):
        mixture = ascended(split(mixture, banana, most, rng), banana, rng)
        assert mixture.components == most
        distances.append(banana.kl(mixture))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.1 * distances[0]


def test_clusters_have_the_moments_of_their_draws():
    rng = np.random.default_rng(0)
    two = GaussianMixture([0.5, 0.5], [[-4.0], [4.0]], np.ones((2, 1, 1)))
    found = clustered(two.sample(4000, rng), 2, rng)
    np.testing.assert_allclose(np.sort(found.means[:, 0]), [-4.0, 4.0], atol=0.1)
    np.testing.assert_allclose(found.weights, 0.5, atol=0.05)


def test_clusters_of_few_different_draws_are_no_more_than_these():
    points = np.array([[0.0, 1.0], [2.0, -1.0], [5.0, 3.0]])
    found = clustered(np.repeat(points, 50, axis=0), 8, np.random.default_rng(0))
    assert found.components == 3
    np.testing.assert_allclose(found.mean, points.mean(axis=0), atol=1e-6)


def test_the_distance_corrects_a_surrogate_that_is_off_by_a_constant():
    told = 0.1 * np.random.default_rng(0).normal(size=40)
    known = Expected(
        -1.0, 0.0, log_mass=-0.9, mass_error=0.0, log_weights=told - 1.0, log_shares=0.0 * told, own=40
    )
    shifted = measured(known, told + 2.0)  # the truth is three nats higher everywhere
    np.testing.assert_allclose(shifted.lower_bound, 2.0)
    assert shifted.misfit < 1e-12
    assert abs(shifted.kl - measured(known, told - 1.0).kl) < 0.1


def test_a_draw_without_density_is_infinitely_far():
    known = Expected(-1.0, 0.0, -0.9, 0.0, np.full(5, -1.0), np.zeros(5), own=5)
    assert measured(known, np.array([-1.0, -1.0, -np.inf, -1.0, -1.0])).kl == np.inf


def test_candidates_further_out_see_tails_that_draws_do_not():
    """From N(0, 1) to a t with three degrees of freedom, whose KL is an integral."""
    one = GaussianMixture([1.0], np.zeros((1, 1)), np.ones((1, 1, 1)))
    grid = np.linspace(-30.0, 30.0, 60_001)
    q, t3 = scipy.stats.norm.logpdf(grid), scipy.stats.t(3).logpdf(grid)
    exact = np.trapezoid(np.exp(q) * (q - t3), grid)
    for seed in range(3):
        x = measuring(one, 4000, np.random.default_rng(seed))
        found = weighed(one, x, scipy.stats.t(3).logpdf(x[:, 0]) + 5.0)
        assert abs(found.kl - exact) < 4.0 * found.kl_se
        assert abs(found.log_evidence - 5.0) < 4.0 * found.log_evidence_se
        assert found.kl_se < 0.1
        told = np.zeros(4000)  # of a surrogate that is N(0, 1) itself
        shares = scipy.stats.norm.logpdf(x[:, 0]) - log_measuring(one, x, scipy.stats.norm.logpdf(x[:, 0]))
        known = Expected(0.0, 0.0, 0.0, 0.0, told, shares, own=2000)
        found = measured(known, (scipy.stats.t(3).logpdf(x) - scipy.stats.norm.logpdf(x))[:, 0])
        assert abs(found.kl - exact) < 4.0 * found.kl_se
        assert abs(found.log_evidence) < 4.0 * found.log_evidence_se
    assert weighed(one, x, np.full(4000, -np.inf)).kl == np.inf


# --- what cannot be had -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"family": "full", "kl_tol": 0.1}, "kl_tol= goes with"),
        ({"family": "mixture", "method": "mgvbp"}, "go with method='auto'"),
        ({"family": "mixture", "dim": 60}, "at most 40 parameters"),
        ({"family": "mixture", "kl_tol": -1.0}, "kl_tol must be"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(InvalidInputError, match=words):
        mgvbp.fit(banana, **{"dim": 2, **options})


def test_no_components():
    with pytest.raises(InvalidInputError, match="components"):
        mgvbp.Mixture(0)


def test_noise_ends_with_the_gaussian():
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="noisy"):
        posterior = mgvbp.fit(
            lambda t: -0.5 * (t**2).sum(axis=1) + 0.3 * rng.normal(size=len(t)), dim=2, family="mixture"
        )
    assert posterior.mixture is None
    assert not posterior.converged


def test_auto_does_not_take_noise_for_a_shape():
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning):
        posterior = mgvbp.fit(
            lambda t: -0.5 * (t**2).sum(axis=1) + 1.5 * rng.normal(size=len(t)),
            dim=2,
            family="auto",
            noise=1.5,
            max_evaluations=400,
        )
    assert posterior.mixture is None


@pytest.mark.parametrize("limit", [4, 60])
def test_too_few_evaluations_end_with_the_gaussian(limit):
    with pytest.warns(ConvergenceWarning, match="max_evaluations"):
        posterior = mgvbp.fit(banana, dim=2, family="mixture", max_evaluations=limit)
    assert posterior.n_evaluations <= limit


def test_auto_is_the_gaussian_where_there_are_many_parameters():
    posterior = mgvbp.fit(lambda t: -0.5 * (t**2).sum(axis=1), dim=101, family="auto", grad=lambda t: -t)
    assert posterior.mixture is None
    assert posterior.converged


def test_an_infinite_distance_is_not_confirmed():
    def holes(theta):
        return np.where(np.floor(40.0 * theta[:, 0]) % 20 == 0, np.nan, banana(theta))

    with pytest.warns((ConvergenceWarning, NonFiniteWarning)):
        posterior = mgvbp.fit(holes, dim=2, family="mixture", max_evaluations=500)
    assert not (posterior.converged and posterior.lower_bound == -np.inf)
    assert posterior.mixture is None or np.isfinite(posterior.lower_bound)


def test_a_number_of_gaussians_other_than_that_of_the_modes():
    two = GaussianMixture([0.7, 0.3], [[-2.0, 0.0], [3.0, 1.0]], np.stack([np.eye(2)] * 2))
    starts = [[-2.0, 0.0], [3.0, 1.0]]
    assert mgvbp.fit(two.log_density, dim=2, family=mgvbp.Mixture(4), starts=starts).components == 4


def test_a_mixture_with_mass_where_the_density_is_zero_is_not_the_best():
    one = GaussianMixture([1.0], np.zeros((1, 1)), np.ones((1, 1, 1)))
    good = Tried(one, Distance(0.01, 0.01, -1.0, 0.01, -0.99, 0.01))
    bad = Tried(one, Distance(np.inf, np.inf, -np.inf, np.inf, np.nan, np.inf, np.inf))
    assert MixtureState((0,), None, 100, tried=(good, bad)).best.distance.lower_bound == -1.0


def test_heavy_tails_on_both_sides_get_more_than_one_gaussian():
    """A symmetric density does not bend to either side: splits do not help, clusters do."""

    def log_density(theta):
        tail = scipy.stats.t(2).logpdf(theta[:, 0])
        return tail - 0.5 * (theta[:, 1:] ** 2).sum(axis=1) - np.log(2.0 * np.pi)

    posterior = mgvbp.fit(log_density, dim=3, family="mixture")
    assert posterior.components > 1
