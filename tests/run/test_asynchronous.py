"""Draws told in any order, late or never: each step has independent draws from its own q, whatever they cost."""

import heapq

import numpy as np
import pytest
from scipy import stats

from mgvbp import MGVBP, VOGN, EvaluationError, Gaussian, InvalidInputError, InvalidTypeError, Problem
from mgvbp.run.asynchronous import Asynchronous, Draw, Told, coupled

METHOD = MGVBP(step_size=0.05, decay_after=100, momentum=0.0, precision_scale=2.0)
MEAN, PRECISION = np.array([1.0, -0.5]), np.array([[2.0, 0.6], [0.6, 1.0]])
PRIOR = Gaussian(variance=100.0, dim=2)
POSTERIOR = Gaussian(
    np.linalg.solve(PRECISION + PRIOR.precision, PRECISION @ MEAN), precision=PRECISION + PRIOR.precision
)


def log_likelihood(theta):
    return -0.5 * (theta - MEAN) @ PRECISION @ (theta - MEAN)


def gradient(theta):
    return -PRECISION @ (theta - MEAN)


def start(cls=Asynchronous, method=METHOD, **options):
    options = {"estimator": "loglik", "num_draws": 10, "initial_mean": POSTERIOR.mean, "rng": 0, **options}
    return cls(method, PRIOR, initial_variance=POSTERIOR.covariance, **options)


def tell(run, *draws):
    """Tell the values of draws; returns what came of the last."""
    return [run.tell(draw.number, log_likelihood(draw.theta)) for draw in draws][-1]


def assert_normal(*samples):
    """By Kolmogorov-Smirnov at the level 0.001."""
    for sample in samples:
        assert stats.kstest(np.ravel(sample), "norm").pvalue > 0.001


# --- simulated workers --------------------------------------------------------------------------------


class FirstToReturn:
    """What not to do: a step takes the first S draws that return; the others are stale then, and dropped."""

    def __init__(self, method, target, **options):
        self._optimizer, self._rng = Told(method, target, **options), np.random.default_rng(options["rng"])
        self._theta, self._told, self._made = {}, {}, 0

    iteration = property(lambda self: self._optimizer.state.iteration)
    gaussian = property(lambda self: self._optimizer.gaussian)

    def ask(self):
        self._made += 1
        self._theta[self._made] = self.gaussian.sample(1, self._rng)[0]
        return Draw(self._made, self._theta[self._made])

    def tell(self, number, value):
        if number in self._theta:
            self._told[number] = value
        if len(self._told) == self._optimizer.num_draws:
            theta = np.array([self._theta[k] for k in self._told])
            self._optimizer.tell_about(theta, np.array(list(self._told.values())))
            self._theta, self._told = {}, {}


def simulate(run, steps=300, target=log_likelihood, workers=30):
    """Evaluate by workers on a clock of our own, which is returned; a draw takes exp(θ₀)."""
    clock, busy = 0.0, []
    while run.iteration < steps:
        while len(busy) < workers and (draw := run.ask()) is not None:
            heapq.heappush(busy, (clock + np.exp(draw.theta[0]), draw.number, draw.theta))
        clock, number, theta = heapq.heappop(busy)
        run.tell(number, target(theta))
    return clock


@pytest.fixture
def used(monkeypatch):
    """The draws of all steps, in the frame of the Gaussian that they should come from."""
    eps, tell_about = [], Told.tell_about

    def recording(self, theta, *found):
        q = self.gaussian
        eps.append(q.family.to_frame(q.factor, theta - q.mean))
        return tell_about(self, theta, *found)

    monkeypatch.setattr(Told, "tell_about", recording)
    return eps


# --- no bias ------------------------------------------------------------------------------------------


def z_scores(cls):
    """The mean of six runs beside the posterior's, in posterior and in standard errors."""
    runs = [start(cls, rng=seed) for seed in range(6)]
    for run in runs:
        simulate(run)
    errors = (np.array([run.gaussian.mean for run in runs]) - POSTERIOR.mean) / POSTERIOR.std
    return errors.mean(axis=0), errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(len(runs)))


def test_no_bias_where_the_cost_depends_on_theta():
    """Within 4 standard errors; those who take what returns first are more than a posterior deviation off."""
    error, z = z_scores(Asynchronous)
    assert np.abs(z).max() < 4.0
    assert np.abs(error).max() < 0.15
    error, z = z_scores(FirstToReturn)
    assert np.abs(z).max() > 6.0
    assert np.abs(error).max() > 1.0


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_each_step_has_independent_draws_from_its_own_gaussian(used, ahead):
    """Standard normal in its frame, while q runs after a moving target."""
    lively = MGVBP(step_size=0.3, decay_after=None, momentum=0.0)
    run = Asynchronous(lively, 2, ahead=ahead, estimator="regression", num_draws=15, rng=1)
    simulate(run, target=lambda theta: -0.5 * ((theta - 3.0 * np.sin(run.iteration / 5.0)) ** 2).sum())
    eps = np.array(used)
    assert run.discarded > 0.1 * eps[..., 0].size or ahead == 0
    assert_normal(eps[..., 0], eps[..., 1], eps.sum(axis=2) / np.sqrt(2.0), eps.mean(axis=1) * np.sqrt(15.0))
    # in every place of a batch: replacements that go to its end would show there (|z| of 40 and more)
    assert np.abs(eps.mean(axis=0) * np.sqrt(len(eps))).max() < 4.5


def test_the_first_to_return_are_not_draws_from_it(used):
    simulate(start(FirstToReturn))
    assert stats.kstest(np.array(used)[..., 0].ravel(), "norm").pvalue < 1e-20


GAUSSIANS = [
    (Gaussian([0.0, 0.0], 1.0), Gaussian([1.0, 0.0], 1.0)),
    (Gaussian([0.0, 0.0], 1.0), Gaussian([0.2, -0.1], [[0.5, 0.2], [0.2, 1.5]])),
    (Gaussian([0.0, 0.0], 1.0), Gaussian([0.0, 0.0], 1.0)),
]


def test_the_coupling_gives_draws_from_the_new_gaussian():
    for old, new in GAUSSIANS:
        before = old.sample(20_000, 5)
        theta, kept = coupled(before, old, new, np.random.default_rng(6))
        x, y = new.family.to_frame(new.factor, theta - new.mean).T
        assert_normal(x, y, (x + y) / np.sqrt(2.0), (x - y) / np.sqrt(2.0))
        np.testing.assert_array_equal(theta[kept], before[kept])


def test_the_coupling_keeps_as_many_as_possible():
    """All but TV(q, q') = 2Φ(½) − 1 at a distance of one standard deviation; 4 standard errors."""
    old, new = GAUSSIANS[0]
    _, kept = coupled(old.sample(20_000, 5), old, new, np.random.default_rng(6))
    share = 2.0 * stats.norm.cdf(0.5) - 1.0
    assert abs((~kept).mean() - share) < 4.0 * np.sqrt(share * (1.0 - share) / 20_000)


# --- no waiting ---------------------------------------------------------------------------------------


def test_workers_wait_less_the_further_ahead_they_are():
    """On the simulated clock, ten workers; of the draws at most one in twenty is discarded."""
    runs = {ahead: start(ahead=ahead) for ahead in (0, 1, 3)}
    clocks = {ahead: simulate(run, workers=10) for ahead, run in runs.items()}
    assert clocks[1] < 0.8 * clocks[0]
    assert clocks[3] < 0.8 * clocks[1]
    assert 0 == runs[0].discarded < runs[1].discarded < runs[3].discarded < 0.05 * 300 * 10


def test_a_step_waits_for_its_slowest_draw_and_nobody_else_does():
    run = start(num_draws=4, ahead=1)
    slow, *others = [run.ask() for _ in range(8)]
    assert run.ask() is None  # two steps are out
    assert tell(run, *others) == []
    assert run.iteration == 0
    infos = tell(run, slow)
    # the second follows at once unless one of its draws was exchanged
    assert len(infos) == run.iteration == 2 - (run.discarded > 0)


def test_the_order_of_telling_makes_no_difference():
    def told(order):
        run = start(num_draws=6, ahead=0)
        draws = [run.ask() for _ in range(6)]
        tell(run, *(draws[k] for k in order))
        return run.gaussian

    first, second = told(range(6)), told([3, 5, 0, 1, 4, 2])
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.factor, second.factor)


def test_a_step_is_the_optimizer_s():
    run, optimizer = start(num_draws=6, ahead=0), start(Told, num_draws=6)
    draws = [run.ask() for _ in range(6)]
    infos = tell(run, *draws)
    theta = np.array([draw.theta for draw in draws])
    assert infos == [optimizer.tell_about(theta, np.array([log_likelihood(row) for row in theta]))]
    np.testing.assert_array_equal(run.gaussian.factor, optimizer.gaussian.factor)


# --- late and never -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[2, 0, 1, 3, 4, 5], [0, 1, 3, 4, 5, 2]], ids=["first", "last"])
def test_draws_that_are_given_up_are_left_out_and_counted(order):
    run = start(num_draws=6, ahead=0)
    draws = [run.ask() for _ in range(6)]
    for k in order:
        infos = run.give_up(draws[k].number) if k == 2 else tell(run, draws[k])
    (info,) = infos
    assert (run.given_up, info.dropped, run.iteration) == (1, 1, 1)
    reference = start(Told, num_draws=6)
    values = [np.nan if k == 2 else log_likelihood(draw.theta) for k, draw in enumerate(draws)]
    reference.tell_about(np.array([draw.theta for draw in draws]), np.array(values))
    np.testing.assert_array_equal(run.gaussian.mean, reference.gaussian.mean)


def test_what_comes_late_or_twice_does_nothing():
    run = start(num_draws=3, ahead=0)
    draws = [run.ask() for _ in range(3)]
    tell(run, draws[0])
    assert run.tell(draws[0].number, 1e6) == []
    run.give_up(draws[1].number)
    assert run.tell(draws[1].number, 1e6) == run.give_up(draws[1].number) == []
    tell(run, draws[2])
    state = run.state
    assert [run.tell(draw.number, 1e6) for draw in draws] == [[], [], []]
    assert run.state is state
    assert run.given_up == 1


def test_every_draw_is_used_discarded_or_on_its_way():
    run, on_the_way, handed_out = start(num_draws=5, ahead=2, method=MGVBP(step_size=0.3)), [], 0
    rng = np.random.default_rng(2)
    while run.iteration < 40:
        while len(on_the_way) < 7 and (draw := run.ask()) is not None:
            on_the_way.append(draw)
            handed_out += 1
        tell(run, on_the_way.pop(rng.integers(len(on_the_way))))
    used = 5 * run.iteration
    assert run.discarded > 20
    assert used + run.discarded <= handed_out <= used + run.discarded + 2 * 5


# --- derivatives, state, errors -----------------------------------------------------------------------


def test_gradients():
    run = start(
        estimator="gradient", num_draws=4, method=MGVBP(step_size=0.5, momentum=0.0, precision_scale=2.0)
    )
    while run.iteration < 60:
        draws = [draw for _ in range(8) if (draw := run.ask()) is not None]
        for draw in reversed(draws):
            run.tell(draw.number, log_likelihood(draw.theta), gradient(draw.theta))
    np.testing.assert_allclose(run.gaussian.mean, POSTERIOR.mean, atol=1e-6)
    np.testing.assert_allclose(run.gaussian.precision, POSTERIOR.precision, atol=1e-6)


def test_squares_and_a_problem():
    class Model:
        def value_grad_and_squares(self, theta): ...

        def value_and_grad(self, theta): ...

        def __call__(self, theta): ...

    run = Asynchronous(VOGN(), Problem(Model(), PRIOR), family="diagonal", num_draws=3, rng=0)
    for _ in range(3):
        draw = run.ask()
        infos = run.tell(
            draw.number, log_likelihood(draw.theta), gradient(draw.theta), gradient(draw.theta) ** 2
        )
    assert len(infos) == 1


def test_another_run_goes_on_from_a_state():
    run = start()
    simulate(run, steps=5)
    again = start(state=run.state)
    assert again.iteration == run.iteration >= 5
    np.testing.assert_array_equal(again.gaussian.factor, run.gaussian.factor)
    assert not np.array_equal(start(state=run.state).ask().theta, start().ask().theta)
    simulate(again, steps=10)
    assert again.iteration >= 10


def test_draws_may_be_modified_by_the_caller():
    run, reference = start(num_draws=3), start(num_draws=3)
    for _ in range(6):
        draw, same = run.ask(), reference.ask()
        tell(run, draw)
        draw.theta[:] = np.nan
        tell(reference, same)
    np.testing.assert_array_equal(run.gaussian.mean, reference.gaussian.mean)


def test_bad_numbers():
    run = start()
    run.ask()
    for number in (-1, 1, 10**9):
        with pytest.raises(InvalidInputError, match="draw"):
            run.tell(number, 0.0)
    for number in ("a", None, 0.5):
        with pytest.raises(InvalidTypeError, match="the number of a draw"):
            run.tell(number, 0.0)


def test_bad_values():
    """The draw stays open."""
    run, steep = start(num_draws=2, ahead=0), start(estimator="gradient")
    draw, other = run.ask(), steep.ask()
    for value in (None, "a", [1.0, 2.0], 1j):
        with pytest.raises(EvaluationError):
            run.tell(draw.number, value)
    for slope in (None, [1.0], [[1.0, 2.0]], "a"):
        with pytest.raises(EvaluationError, match="grad returned"):
            steep.tell(other.number, 0.0, slope)
    assert len(tell(run, draw, run.ask())) == 1


def test_bad_input():
    for name, value, error, message in [
        ("draws", "sobol", InvalidInputError, "leave draws= out"),
        ("ahead", -1, InvalidInputError, "ahead must be at least 0"),
        ("ahead", 1.5, InvalidTypeError, "ahead"),
        ("method", "adam", InvalidInputError, "method must be one of"),
    ]:
        with pytest.raises(error, match=message):
            start(**{name: value})
