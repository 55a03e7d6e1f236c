"""Ask and tell: by hand as in `fit`, bit for bit, and across a pickle."""

import copy
import dataclasses
import pickle
from itertools import product

import numpy as np
import pytest

import common
from common import LogDensity, case
from mgvbp import BlockDiagonal, Gaussian, Optimizer, Problem, State, fit
from mgvbp.errors import DivergenceError, EvaluationError

PRIOR = Gaussian([0.5, 0.0, -0.5], variance=4.0)
METHODS = {cls.__name__: cls(step_size=0.05, decay_after=3) for cls in common.METHODS}
FAMILIES = {"full": "full", "diagonal": "diagonal", "block": BlockDiagonal([[0, 2], [1]])}
ESTIMATORS = ["h", "loglik", "regression"]
every_method = pytest.mark.parametrize("method", METHODS)


def log_likelihood(theta):
    x, y, z = theta.T
    return -0.5 * (x - 1.0) ** 2 - np.logaddexp(0.0, y - x) - 0.25 * z**4 - 0.3 * x * z


def start(method="MGVBP", family="full", estimator="h", target=PRIOR, **options):
    options = {"num_draws": 24, "rng": 7, **options}
    return METHODS[method].start(target, family=FAMILIES[family], estimator=estimator, **options)


def advance(optimizer, iterations):
    for _ in range(iterations):
        optimizer.tell(log_likelihood(optimizer.ask()))
    return optimizer


def arrays(state):
    """All arrays of a state; None where there is none yet."""
    return [*state.frame, *(state.control or (None, None))]


def identical(a: State, b: State) -> bool:
    pairs = zip(arrays(a), arrays(b), strict=True)
    same = all(x is y is None or np.array_equal(x, y) for x, y in pairs)
    return same and (a.iteration, a.key) == (b.iteration, b.key)


# --- the same run -------------------------------------------------------------------------------------


@every_method
def test_by_hand_is_fit(method):
    for family, estimator in product(FAMILIES, ESTIMATORS):
        with case(family, estimator):
            compare_with_fit(method, family, estimator)


def compare_with_fit(method, family, estimator):
    """Ask and tell by hand, and compare every iterate and every number told with those of a fit."""
    seen = []
    posterior = fit(
        log_likelihood,
        PRIOR,
        method=METHODS[method],
        family=FAMILIES[family],
        estimator=estimator,
        num_draws=24,
        rng=7,
        max_iterations=6,
        callback=lambda iteration: seen.append(iteration.gaussian),
    )
    optimizer, infos = start(method, family, estimator), []
    for gaussian in seen:
        assert np.array_equal(optimizer.gaussian.mean, gaussian.mean)
        assert np.array_equal(optimizer.gaussian.factor, gaussian.factor)
        infos.append(optimizer.tell(log_likelihood(optimizer.ask())))
    for name in ("lower_bound", "gap", "step_size", "dropped", "reductions"):
        assert [getattr(info, name) for info in infos] == getattr(posterior.trace, name).tolist()


def test_ask_repeats_itself_until_tell():
    optimizer = start()
    first = optimizer.ask()
    assert first.shape == (24, 3)
    assert np.array_equal(optimizer.ask(), first)
    optimizer.tell(log_likelihood(first))
    assert not np.array_equal(optimizer.ask(), first)


def test_draws_may_be_modified_by_the_caller():
    spoiler, reference = start(), start()
    for _ in range(3):
        theta = spoiler.ask()
        values = log_likelihood(theta)
        theta[:] = np.nan
        spoiler.tell(values)
        values[:] = np.nan
    assert identical(spoiler.state, advance(reference, 3).state)


def test_a_prior_that_modifies_its_argument_does_no_harm():
    class Greedy:
        def log_density(self, theta):
            values = PRIOR.log_density(theta)
            theta[:] = 0.0
            return values

    polite = LogDensity(PRIOR.log_density)
    a, b = (start(target=Problem(log_likelihood, prior, dim=3)) for prior in (Greedy(), polite))
    assert identical(advance(a, 3).state, advance(b, 3).state)


def test_tell_without_ask_means_the_pending_draws():
    values = log_likelihood(start().ask())
    blind = start()
    blind.tell(values)
    assert identical(blind.state, advance(start(), 1).state)


@pytest.mark.parametrize("estimator", ["h", "regression"])
def test_values_may_be_lists_or_integers(estimator):
    optimizer = start(estimator=estimator)
    optimizer.tell(np.round(log_likelihood(optimizer.ask())).astype(int).tolist())
    assert optimizer.state.iteration == 1


# --- pickles ------------------------------------------------------------------------------------------


@every_method
def test_a_pickled_state_goes_on_bit_for_bit(method):
    for family, estimator, between in product(FAMILIES, ESTIMATORS, [False, True]):
        with case(family, estimator, "between ask and tell" if between else "before ask"):
            go_on_from_a_pickle(method, family, estimator, between)


def go_on_from_a_pickle(method, family, estimator, between):
    """Pickle the state of a run, and compare every later state of the copy with the original."""
    optimizer = advance(start(method, family, estimator), 3)
    if between:
        asked = optimizer.ask()
    state = pickle.loads(pickle.dumps(optimizer.state))
    assert identical(state, optimizer.state)
    again = start(method, family, estimator, state=state, rng=99)
    if between:
        assert np.array_equal(again.ask(), asked)
    for _ in range(4):
        advance(optimizer, 1)
        advance(again, 1)
        assert identical(again.state, optimizer.state)
    assert all(np.isfinite(a).all() for a in arrays(again.state) if a is not None)


@pytest.mark.parametrize("draws", ["mc", "antithetic", "sobol"])
def test_every_kind_of_draws_goes_on(draws):
    optimizer = advance(start(draws=draws, num_draws=16), 2)
    again = start(draws=draws, num_draws=16, state=pickle.loads(pickle.dumps(optimizer.state)))
    assert identical(advance(again, 2).state, advance(optimizer, 2).state)


def test_a_generator_is_not_needed_to_go_on():
    optimizer = advance(start(rng=np.random.default_rng(1)), 2)
    again = start(state=pickle.loads(pickle.dumps(optimizer.state)))
    assert np.array_equal(optimizer.ask(), again.ask())


# --- states -------------------------------------------------------------------------------------------


def test_fields_of_a_state_cannot_be_assigned():
    state = start().state
    for field in dataclasses.fields(State):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(state, field.name, None)
    for name in state.frame._fields:
        with pytest.raises(AttributeError):
            setattr(state.frame, name, None)


@pytest.mark.parametrize("family", FAMILIES)
def test_arrays_of_the_initial_state_cannot_be_written(family):
    mean, variance = np.zeros(3), np.ones(3)
    state = start(family=family, initial_mean=mean, initial_variance=variance).state
    assert not state.frame.mean.flags.writeable
    assert not state.frame.factor.flags.writeable
    mean[:], variance[:] = 9.0, 9.0  # the caller's arrays are still theirs, and copies
    assert np.array_equal(state.frame.mean, np.zeros(3))
    assert np.array_equal(start(family=family).family.variances(state.frame.factor), np.ones(3))


@every_method
def test_a_kept_state_does_not_change_later(method):
    for family, estimator in product(FAMILIES, ESTIMATORS):
        optimizer = start(method, family, estimator)
        for iteration in (0, 2, 4):
            kept = optimizer.state
            before = copy.deepcopy(kept)
            advance(optimizer, 2)
            assert identical(kept, before), f"{family}, {estimator}, state of iteration {iteration}"


# --- targets ------------------------------------------------------------------------------------------


@every_method
def test_a_problem_is_started_as_its_prior(method):
    problem = Problem(log_likelihood, PRIOR)
    for family, estimator in product(FAMILIES, ESTIMATORS):
        a = advance(start(method, family, estimator, target=problem), 3)
        b = advance(start(method, family, estimator, target=PRIOR), 3)
        assert identical(a.state, b.state), f"{family}, {estimator}"


@pytest.mark.parametrize("estimator", ["h", "regression"])
def test_an_int_is_the_whole_log_density(estimator):
    """The same draws, and values that differ by the prior only in where it is added."""
    whole = start(estimator=estimator, target=3, initial_mean=PRIOR.mean)
    parts = start(estimator=estimator, target=PRIOR)
    for _ in range(3):
        theta = whole.ask()
        whole.tell(log_likelihood(theta) + PRIOR.log_density(theta))
        advance(parts, 1)
    np.testing.assert_allclose(whole.gaussian.mean, parts.gaussian.mean, rtol=1e-9)
    np.testing.assert_allclose(whole.gaussian.precision, parts.gaussian.precision, rtol=1e-9, atol=1e-12)


def test_where_a_run_starts():
    assert np.array_equal(start(target=3).gaussian.mean, np.zeros(3))
    assert np.array_equal(start(target=PRIOR).gaussian.mean, PRIOR.mean)
    given = start(initial_mean=[1, 2, 3], initial_variance=[1.0, 4.0, 9.0]).gaussian
    assert np.array_equal(given.mean, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(given.std, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(start(target=PRIOR).gaussian.covariance, np.eye(3))


def test_a_posterior_is_a_target():
    posterior = fit(log_likelihood, PRIOR, max_iterations=30)
    optimizer = METHODS["MGVBP"].start(posterior)
    assert isinstance(optimizer, Optimizer)
    assert np.array_equal(optimizer.gaussian.mean, posterior.mean)


# --- mistakes -----------------------------------------------------------------------------------------

WRONG = {
    "column": lambda values: values[:, None],
    "short": lambda values: values[1:],
    "scalar": lambda values: 0.0,
    "complex": lambda values: values + 0j,
    "text": lambda values: ["a"] * len(values),
}


def test_a_wrong_tell_can_be_repeated_right():
    for mistake, change in WRONG.items():
        with case(mistake):
            optimizer = advance(start(), 2)
            state, theta = optimizer.state, optimizer.ask()
            with pytest.raises(EvaluationError) as caught:
                optimizer.tell(change(log_likelihood(theta)))
            assert np.array_equal(caught.value.theta, theta)
            assert optimizer.state is state
            assert np.array_equal(optimizer.ask(), theta)
            assert identical(advance(optimizer, 1).state, advance(start(), 3).state)


def test_a_tell_of_nothing_but_nan_can_be_repeated_right():
    optimizer = advance(start(), 2)
    with pytest.raises(DivergenceError, match="24 of 24"):
        optimizer.tell(np.full(24, np.nan))
    assert identical(advance(optimizer, 1).state, advance(start(), 3).state)


def test_bad_values_are_counted():
    optimizer = start()
    values = log_likelihood(optimizer.ask())
    values[[3, 5]] = np.nan, -np.inf
    assert optimizer.tell(values).dropped == 2
    values = log_likelihood(optimizer.ask())
    values[0] = np.inf
    assert optimizer.tell(values).dropped == 1
