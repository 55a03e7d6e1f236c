"""What tries to refute a result before it is certified: repeats, tails, gradients, saddles and other modes."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.special import ndtr

import mgvbp
from common import case
from common import standard_normal as quadratic
from mgvbp import Gaussian, errors
from mgvbp.auto.trial.rivals import blanket, elsewhere, peak, wider
from mgvbp.auto.trial.sentence import tails
from mgvbp.auto.trial.trial import summoned
from mgvbp.auto.trial.witnesses import stratified, widened, witnesses
from mgvbp.families import Full
from mgvbp.surfaces import Archive
from mgvbp.surfaces.surface import fit_surface

SEEDS = range(3)


def bound(f, mean, sd):
    """The lower bound of a normal, by the trapezoid rule to ten standard deviations."""
    z = np.linspace(-10.0, 10.0, 40_001)
    values = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) * f((mean + sd * z)[:, None])
    return integrate.trapezoid(values, z) + np.log(sd) + 0.5 * np.log(2.0 * np.pi * np.e)


def best_bound(f, mean=0.0, sd=1.0):
    """The largest lower bound of a normal."""
    found = optimize.minimize(
        lambda p: -bound(f, p[0], np.exp(p[1])), [mean, np.log(sd)], method="Nelder-Mead"
    )
    return -found.fun


def fitted(f, **options):
    """A posterior, without warnings of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.MgvbpWarning)
        return mgvbp.fit(f, **options)


def refuted(f, words, **options):
    """Assert that no seed is certified, and that each says why."""
    for seed in SEEDS:
        with case(seed):
            posterior = fitted(f, rng=seed, **options)
            assert not posterior.converged
            assert words in posterior.stop_reason
            assert posterior.gap == np.inf, "nothing is known about the distance"
            (failed,) = posterior.checks
            assert not failed.passed
            assert failed.found == posterior.stop_reason


def test_a_wall_in_the_tail_is_found_and_climbed():
    """Draws of N(0, 1) hardly ever meet a wall at 3 or 4, and its best Gaussian is not N(0, 1)."""
    for height, start in ((1e4, 3.0), (1e6, 4.0)):

        def f(theta, height=height, start=start):
            return quadratic(theta) - height * np.maximum(0.0, theta[:, 0] - start) ** 2

        best, claims = best_bound(f, -0.2, 0.8), 0
        assert best - bound(f, 0.0, 1.0) > 1.0
        for seed in SEEDS:
            posterior = fitted(f, dim=1, rng=seed)
            claims += posterior.converged
            if posterior.converged:
                with case(height, seed):
                    gap = best - bound(f, posterior.mean[0], posterior.std[0])
                    assert gap <= posterior.gap + 3.0 * posterior.gap_se + 0.01
        assert claims > 0


def test_mass_where_the_density_is_zero_is_no_result():
    def half(theta):
        return np.where(theta[:, 0] < 0.0, -np.inf, quadratic(theta))

    refuted(half, "where the log density is not finite", dim=1)
    posterior = fitted(half, dim=1)
    assert posterior.lower_bound == -np.inf
    assert "theta[0]" in posterior.stop_reason
    stated = float(re.match(r"about (\d+)% of the Gaussian's mass", posterior.stop_reason)[1])
    assert stated == pytest.approx(100.0 * ndtr(-posterior.mean[0] / posterior.std[0]), abs=10.0)
    refuted(
        lambda t: np.where(t[:, 0] < -3.0, -np.inf, quadratic(t)),
        "where the log density is not finite",
        dim=2,
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # nan says the same as −inf
        refuted(lambda t: np.log(t[:, 0]) * 0.0 + quadratic(t), "where the log density is not finite", dim=1)
    with pytest.warns(errors.ConvergenceWarning, match=r"Positive\(\)"):
        mgvbp.fit(lambda t: np.where(t[:, 0] < -3.0, -np.inf, quadratic(t)), dim=1)


def test_a_boundary_is_called_by_the_name_of_the_parameter():
    model = mgvbp.Model(
        lambda scale: np.where(scale < 0.0, -np.inf, -0.5 * scale**2),
        mgvbp.Parameters(scale=mgvbp.transforms.Real()),
    )
    assert "scale" in fitted(model).stop_reason


def test_densities_with_a_floor_are_improper():
    for floor in (-10.0, -30.0):
        refuted(lambda t, floor=floor: np.maximum(quadratic(t), floor), "improper", dim=1)


def test_heavy_tails_are_proper():
    """Cauchy's logarithm falls by 2 log 3 where an improper one falls by log 3."""
    posterior = fitted(lambda t: -np.log1p(t[:, 0] ** 2), dim=1)
    assert posterior.converged
    assert (
        best_bound(lambda t: -np.log1p(t[:, 0] ** 2))
        - bound(lambda t: -np.log1p(t[:, 0] ** 2), posterior.mean[0], posterior.std[0])
        < 0.02
    )


@pytest.mark.parametrize(
    "change",
    [lambda v: v - 0.8 * v.mean(), lambda v: v - v.max(), lambda v: v - v.min(), lambda v: v - v[:1]],
    ids=["mean", "max", "min", "first"],
)
def test_values_that_depend_on_other_rows_are_refuted(change):
    def f(theta):
        return change(quadratic(theta))

    refuted(f, "in the company of other draws", dim=2)
    family = mgvbp.SparsePrecision.banded(3, 1)
    posterior = fitted(f, dim=3, grad=lambda t: -t, family=family)
    assert not posterior.converged
    assert "in the company of other draws" in posterior.stop_reason


@pytest.mark.parametrize(
    "change",
    [
        lambda v: 0.5 * (v + np.roll(v, 1)),
        lambda v: (v + np.roll(v, 1) + np.roll(v, 2)) / 3.0,
        lambda v: 0.7 * v + 0.3 * np.cumsum(v) / np.arange(1, len(v) + 1),
        lambda v: v[::-1],
    ],
    ids=["two", "three", "running", "reversed"],
)
@pytest.mark.parametrize("dim", [1, 3])
def test_values_that_depend_on_their_neighbours_are_not_taken_for_noise(change, dim):
    refuted(lambda theta: change(quadratic(theta - 1.0)), "in the company of other draws", dim=dim)


def test_noise_that_goes_with_the_row_is_noise():
    """A generator that begins anew at every call gives a row the same noise again, whatever the other rows are."""

    def seeded(theta):
        return quadratic(theta) + np.random.default_rng(5).standard_normal(len(theta))

    for seed in SEEDS:
        with case(seed):
            posterior = fitted(seeded, dim=2, rng=seed)
            assert "company" not in posterior.stop_reason
            assert "noise" in posterior.checks[0].found


def test_wrong_gradients_are_refuted():
    wrong = (lambda t: -1.24 * t, lambda t: -t * [1.0, 1.0, 3.0, 1.0, 1.0], lambda t: -0.85 * t)
    for k, grad in enumerate(wrong):
        for seed in SEEDS:
            with case(k, seed):
                try:
                    posterior = fitted(quadratic, dim=5, grad=grad, rng=seed)
                except errors.InvalidInputError:
                    continue  # seen before the run
                assert not posterior.converged
                assert "values and gradients contradict each other" in posterior.stop_reason


def test_right_gradients_are_not_refuted():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 2, 60)
    model = mgvbp.models.LogisticRegression(X, y)
    for seed in range(5):
        posterior = mgvbp.fit(model, prior=Gaussian(variance=5.0, dim=4), rng=seed)
        assert posterior.converged
        assert all(check.passed for check in posterior.checks)


def no_false_claim(f, best, least_claims=1, **options):
    """Assert that no seed claims wrongly, for a function of one parameter, and that some claim."""
    claims = 0
    for seed in SEEDS:
        with case(seed):
            posterior = fitted(f, dim=1, rng=seed, **options)
            claims += posterior.converged
            if posterior.converged:
                gap = best - bound(f, posterior.mean[0], posterior.std[0])
                assert gap <= posterior.gap + 3.0 * posterior.gap_se + 0.05
    assert claims >= least_claims


def slope(f):
    """The gradient of a function of one parameter, by differences."""
    return lambda t: ((f(t + 1e-5) - f(t - 1e-5)) / 2e-5)[:, None]


@pytest.mark.parametrize(("centre", "width", "depth"), [(3.2, 0.1, 2000.0), (-2.6, 0.06, 500.0)])
def test_a_trench_that_fixed_probes_step_over_is_met(centre, width, depth):
    """It takes more than half a nat from the bound of N(0, 1), and draws of N(0, 1) hardly ever fall into it."""

    def f(theta):
        return quadratic(theta) - depth * np.exp(-0.5 * ((theta[:, 0] - centre) / width) ** 2)

    best = max(best_bound(f, -np.sign(centre) * 0.2, 0.7), best_bound(f))
    assert best - bound(f, 0.0, 1.0) > 0.05
    no_false_claim(f, best)
    no_false_claim(f, best, least_claims=0, grad=slope(f))


def test_a_jump_that_gradients_do_not_show_is_seen_by_the_values():
    def f(theta):
        return quadratic(theta) - 100.0 * (theta[:, 0] > 2.5)

    no_false_claim(f, best_bound(f, -0.3, 0.7), least_claims=0, grad=lambda t: -t)


def test_a_narrow_peak_inside_of_the_result_is_found():
    """Ripples of three nats: the highest of them alone is better than a Gaussian over all, by 0.42 nats."""

    def f(theta):
        return quadratic(theta) + 3.0 * np.cos(8.0 * theta[:, 0])

    best = best_bound(f, 0.0, 0.08)
    assert best - bound(f, 0.0, 1.0) > 0.4
    no_false_claim(f, best)


def test_a_much_wider_gaussian_is_found():
    """A narrow normal on top of one that is thirty times as wide and has most of the mass."""

    def f(theta):
        x = theta[:, 0]
        return np.logaddexp(np.log(0.3) - 0.5 * x**2, np.log(0.7 / 30.0) - 0.5 * (x / 30.0) ** 2)

    best = best_bound(f, 0.0, 25.0)
    assert best - best_bound(f) > 0.5
    no_false_claim(f, best)
    no_false_claim(f, best, least_claims=0, grad=slope(f))


def test_with_gradients_a_mode_inside_of_the_result_is_followed():
    """Two wells: a Gaussian over both is a stationary point of the bound, and each of them is better."""

    def f(theta):
        x, y = theta.T
        return -3.0 * (0.25 * x**2 - 1.0) ** 2 - 0.5 * y**2

    def grad(theta):
        x, y = theta.T
        return np.stack([-3.0 * x * (0.25 * x**2 - 1.0), -y], axis=1)

    for seed in SEEDS:
        with case(seed):
            posterior = fitted(f, dim=2, grad=grad, rng=seed)
            if posterior.converged:
                assert abs(posterior.mean[0]) > 1.0


def test_a_saddle_of_the_bound_is_left():
    """Two long normals at right angles: a round Gaussian is stationary, and 0.53 nats below each of them."""

    def parts(t):
        return -0.5 * t**2 @ [1.0, 100.0], -0.5 * t**2 @ [100.0, 1.0]

    def f(t):
        return np.logaddexp(*parts(t))

    def grad(t):
        a, b = parts(t)
        share = np.exp(a - np.logaddexp(a, b))[:, None]
        return -share * t * [1.0, 100.0] - (1.0 - share) * t * [100.0, 1.0]

    for seed in SEEDS:
        posterior = fitted(f, dim=2, grad=grad, rng=seed)
        if posterior.converged:
            assert posterior.std.max() > 3.0 * posterior.std.min(), "it lies along one of the two"


def test_a_result_is_left_for_a_higher_mode():
    """From the lesser of two modes, six standard deviations away from the other."""

    def f(t):
        return np.logaddexp(np.log(0.2) - 0.5 * t[:, 0] ** 2, np.log(0.8) - 0.5 * (t[:, 0] - 6.0) ** 2)

    for seed in SEEDS:
        with case(seed):
            posterior = fitted(f, dim=1, initial_mean=[0.0], initial_variance=0.25, rng=seed)
            assert posterior.mean[0] == pytest.approx(6.0, abs=0.3)


def test_noise_is_found_averaged_over_and_part_of_the_gap():
    """The best Gaussian of N(0, I) with noise in its values is N(0, I)."""
    for sd, seeds in ((1.0, 8), (5.0, 4)):
        short = 0
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            posterior = fitted(
                lambda t, sd=sd, rng=rng: quadratic(t) + sd * rng.standard_normal(len(t)), dim=2, rng=seed
            )
            q = posterior.covariance
            gap = 0.5 * (np.trace(q) + posterior.mean @ posterior.mean - 2.0 - np.linalg.slogdet(q)[1])
            assert gap < 0.3, "noise of five nats once led ten nats away"
            short += gap > posterior.gap + 3.0 * posterior.gap_se + 0.01
        assert short <= 1


def test_noise_can_be_given():
    rng = np.random.default_rng(0)
    posterior = fitted(lambda t: quadratic(t) + rng.standard_normal(len(t)), dim=1, noise=1.0)
    assert any("noise" in check.found for check in posterior.checks)
    quiet = mgvbp.fit(quadratic, dim=1, noise=0.0)
    assert any("noise=0" in check.found for check in quiet.checks)
    assert quiet.n_evaluations < mgvbp.fit(quadratic, dim=1).n_evaluations
    for bad in (-1.0, np.nan, "much"):
        with pytest.raises(errors.MgvbpError, match="noise"):
            mgvbp.fit(quadratic, dim=1, noise=bad)
    with pytest.raises(errors.InvalidInputError, match="noise= goes with"):
        mgvbp.fit(quadratic, dim=1, method="mgvbp", noise=1.0)


def test_functions_may_fail_at_the_probes():
    """A function that raises, or warns, far out loses no result: the draws of the search do not go there."""

    def f(theta):
        if (np.abs(theta[:, 0]) > 8.0).any():
            raise ArithmeticError("too far")
        if (np.abs(theta[:, 1]) > 8.0).any():
            warnings.warn("noticed", UserWarning, stacklevel=2)
        return quadratic(theta)

    posterior = mgvbp.fit(f, dim=2)
    assert posterior.converged
    assert posterior.trace.dropped.sum() == 0


def test_checks_are_told_kept_and_saved(tmp_path):
    posterior = mgvbp.fit(quadratic, dim=2)
    assert all(check.passed for check in posterior.checks)
    assert "tried to refute it: the same values again, tails" in posterior.summary()
    posterior.save(tmp_path / "posterior.npz")
    assert mgvbp.load(tmp_path / "posterior.npz").checks == posterior.checks
    assert mgvbp.fit(quadratic, dim=2, method="mgvbp", max_iterations=3).checks == ()


def test_witnesses_come_from_the_wider_gaussian():
    """Their second moments, weighted for the wider Gaussian, are its own."""
    rng = np.random.default_rng(1)
    q = Gaussian(mean=[1.0, -2.0], variance=[[2.0, 0.9], [0.9, 1.0]])
    u = np.array([0.6, -0.8])
    wide = widened(q, u)
    draws = witnesses(q, u, 40_000, rng)
    np.testing.assert_allclose(np.cov(draws.T), wide.covariance, rtol=0.05, atol=0.05)
    along = Full(2).from_frame(q.factor, u)
    assert along @ wide.precision @ along == pytest.approx(1.0 / 9.0)
    across = Full(2).from_frame(q.factor, np.array([0.8, 0.6]))
    assert across @ wide.precision @ across == pytest.approx(1.0)


def surface_and_trial(f, q, count=60):
    """The surface of a function of one parameter at q, and the trial of q with its values."""
    rng = np.random.default_rng(5)
    archive = Archive.empty(1).add(q, theta := q.sample(count, rng), f(theta))
    surface = fit_surface(archive.view(q), Full(1), archive.values, np.inf)
    trial = summoned(archive, q, np.arange(1), rng, repeat=True)
    return archive, surface, trial.told(f(trial.points(archive)))


def test_draws_without_a_value_are_asked_again_where_they_are_near():
    """The nearest first, far from the origin too; one that is far out in the tail is let be."""
    q = Gaussian(np.array([10.0, -10.0]), 4.0 * np.eye(2))
    theta = q.mean + np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 1.0], [40.0, 0.0], [1.0, 1.0]])
    archive = Archive.empty(2).add(q, theta, np.array([np.nan, np.nan, -1.0, np.nan, -2.0]))
    trial = summoned(archive, q, np.arange(2), np.random.default_rng(0), repeat=False)
    np.testing.assert_array_equal(trial.rows, [1, 0])


def test_probes_are_spread_over_distances_and_sides():
    q = Gaussian(np.zeros(3), variance=np.eye(3))
    archive = Archive.empty(3).add(q, theta := q.sample(30, 1), quadratic(theta))
    trial = summoned(archive, q, np.arange(3), np.random.default_rng(2), repeat=False)
    distances = np.linalg.norm(trial.probes, axis=1)
    np.testing.assert_allclose(distances, np.abs(trial.steps))
    scattered = distances[trial.near & (np.abs(trial.steps) != 5.5)] - np.sqrt(2.0)
    assert len(scattered) == 10
    assert ((scattered > 2.0) & (scattered < 5.0)).all()
    assert np.diff(np.sort(scattered)).max() < 0.9, "no part of the interval is left out"


def test_a_probe_is_judged_by_what_it_would_cost():
    """A step of two nats matters at 2.2 standard deviations, and does not at 4.8."""
    q = Gaussian(np.zeros(1), variance=np.eye(1))
    for edge, suspected in ((2.2, True), (4.8, False)):
        for height in (2.0, 0.0):
            _, _, plain = surface_and_trial(quadratic, q)

            def f(t, edge=edge, height=height):
                return quadratic(t) - height * (np.abs(t[:, 0]) > edge)

            archive, surface, _ = surface_and_trial(quadratic, q)
            trial = plain.told(f(plain.points(archive))) if np.isnan(plain.values).any() else plain
            known = np.where(trial.near, f(trial.probes), trial.values)
            verdict = tails(replace(trial, values=known), archive, surface, 0.01)
            assert bool(verdict.suspects) == (suspected and height > 0.0)


def test_what_is_far_higher_or_wider_than_q_explains():
    q = Gaussian(np.zeros(1), variance=np.eye(1))
    archive, surface, trial = surface_and_trial(quadratic, q)
    assert wider(trial, surface) is None
    assert elsewhere(trial, archive, surface, ()) is None
    np.testing.assert_allclose(peak(q, np.array([0.0, 2.0]), surface.lower_bound), [0.0, 2.0], atol=1e-9)

    def plateau(t):
        return np.maximum(quadratic(t), -2.0 - 1e-3 * t[:, 0] ** 2)

    _, _, flat = surface_and_trial(plateau, q)
    wide = wider(flat, surface)
    assert wide.std[0] > 5.0
    assert wide.mean[0] == q.mean[0]


def test_a_point_that_is_too_high_for_what_draws_show_is_on_the_slope_of_a_mode():
    archive, surface, trial = surface_and_trial(quadratic, Gaussian(np.zeros(1), variance=np.eye(1)))
    k = int(np.flatnonzero(trial.steps == 5.5)[0])

    def raised(by, rest=0.0, noise=0.0):
        known = replace(trial, values=trial.values + by * (np.arange(len(trial.values)) == k))
        return elsewhere(known, replace(archive, noise=noise), replace(surface, rest=rest), ())

    np.testing.assert_array_equal(raised(3.0), trial.probes[k])
    assert raised(0.5) is None
    assert raised(3.0, rest=0.1) is None, "a tenth of a nat at draws is ten nats so far out"
    assert raised(3.0, noise=1.0) is None


def test_a_blanket_has_the_moments_of_the_modes():
    modes = [Gaussian([x, 0.0], variance=[[1.0, 0.2], [0.2, 0.5]]) for x in (-3.0, 0.0, 3.0)]
    over = blanket(modes)
    np.testing.assert_allclose(over.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(over.covariance, [[7.0, 0.2], [0.2, 0.5]], rtol=1e-9)


def test_stratified_draws_leave_out_no_part_of_a_line():
    draws = stratified(50, 3, np.random.default_rng(3))
    strata = np.sort(np.floor(50.0 * ndtr(draws)), axis=0)
    np.testing.assert_array_equal(strata, np.tile(np.arange(50.0)[:, None], (1, 3)))
