"""n_jobs and timeout: the same result from other processes and threads, and a result in spite of what fails there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import zlib
from collections import Counter
from contextlib import closing, suppress

import joblib
import numpy as np
import pytest

import mgvbp
from common import FAST
from mgvbp.errors import (
    ConvergenceWarning,
    DivergenceError,
    InvalidInputError,
    InvalidTypeError,
    MgvbpWarning,
    NonFiniteWarning,
)
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Problem
from mgvbp.run.evaluation import attempts, cost, pool, workers
from mgvbp.run.evaluation.cost import Cost
from mgvbp.run.evaluation.evaluation import evaluator
from mgvbp.run.evaluation.pool import Pool

SHAPES = np.array([3.0, 8.0])
OPTIMUM = float(
    (SHAPES * (np.log(SHAPES) - 0.5 / SHAPES) - SHAPES + 0.5 * np.log(2 * np.pi * np.e / SHAPES)).sum()
)
TOLERANCE = 0.01


def log_gamma(theta):
    """The log density, up to its constant, of logarithms of gamma variables; one draw."""
    return float(SHAPES @ theta - np.exp(theta).sum())


def shortfall(q):
    """How far the exact lower bound of ``q`` is below its maximum, v = 1/a and m = log a − v/2."""
    expected = SHAPES @ q.mean - np.exp(q.mean + 0.5 * np.diag(q.covariance)).sum()
    entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * q.covariance)[1]
    return OPTIMUM - (expected + entropy)


fit = {"dim": 2, "vectorized": False, "initial_mean": [1.0, 2.0], "initial_variance": 0.3}
SHORT = {"method": FAST, "num_draws": 40, "max_iterations": 12}


@pytest.fixture
def eager(monkeypatch):
    """Ask the workers however cheap the draws are."""
    monkeypatch.setattr(cost, "WORTHWHILE", 0.0)


@pytest.fixture
def single(monkeypatch):
    """A draw a chunk: whatever it takes is longer than a chunk should."""
    monkeypatch.setattr(attempts, "CHUNK", 1e-9)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def note(path, text):
    """Append a line: whole, from any process. Return its number, which no other line has."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{text}\n".encode())
    end = os.lseek(file, 0, os.SEEK_CUR)
    os.close(file)
    return path.read_bytes()[:end].count(b"\n")


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def short(function, **options):
    """Twelve iterations of forty draws."""
    return mgvbp.fit(function, **fit | SHORT | options)


def evaluated(function, theta, n_jobs=2, timeout=None, times=1, **options):
    """The values of draws, and the failures on the way."""
    failures, problem = Failures(), Problem(function, dim=theta.shape[1], **{"vectorized": False} | options)
    with closing(Pool(problem, "values", n_jobs, timeout, failures)) as evaluate:
        for t in range(1, times + 1):
            (values,) = evaluate(t, theta)
    return values, failures


def licence(theta):
    raise OSError("no licence")


# --- who evaluates ------------------------------------------------------------------------------------


class Traced:
    """A log density that notes where it is evaluated, and where it was unpacked."""

    def __init__(self, path):
        self.path = path

    def __call__(self, theta):
        note(self.path, f"called {os.getpid()} {threading.get_ident()}")
        return log_gamma(theta)

    def __setstate__(self, state):
        self.__dict__.update(state)
        note(self.path, f"unpacked {os.getpid()}")


def test_cheap_functions_stay_in_this_process():
    """Also one whose first call takes long, as if it compiled something, and one that is held up now and then."""
    calls = []

    def log_density(theta):
        calls.append(len(theta))
        if len(calls) in (1, 5, 9):
            time.sleep(0.3)
        return np.array([log_gamma(row) for row in theta])

    alone = short(log_density, vectorized=True)
    calls.clear()
    shared = short(log_density, vectorized=True, n_jobs=2)
    np.testing.assert_array_equal(shared.mean, alone.mean)
    assert 12 * 40 - 5 < sum(calls) < 12 * 40  # a worker had the first, in a list of its own
    assert max(calls) == 40


def test_a_start_that_fails_is_left_for_other_draws():
    """With gradients the first draw is the initial mean: if it fails, the search begins at the best of some others."""

    def log_density(theta):
        if not theta.any():
            raise OSError("not at the origin")
        return -0.5 * float(np.square(theta - 1.0).sum())

    with pytest.warns(NonFiniteWarning, match="1 raised an exception"):
        posterior = mgvbp.fit(
            log_density, dim=2, vectorized=False, grad=lambda theta: 1.0 - theta, timeout=60.0
        )
    assert posterior.converged
    assert posterior.failures == {"raised": 1}


def test_many_draws_at_once_may_cost_no_more_than_one():
    """A millisecond a call, whatever it is given: one draw alone would look as if a hundred took 0.1 s."""
    sizes = []

    def log_density(theta):
        sizes.append(len(theta))
        time.sleep(1e-3)
        return np.array([log_gamma(row) for row in theta])

    with joblib.parallel_config(backend="threading"):
        evaluated(log_density, np.zeros((100, 2)), times=3, vectorized=True)
    assert (sum(sizes), sizes[-2:]) == (300, [100, 100])


def test_processes_have_the_model_once_and_give_the_same_values(log, eager):
    """This process evaluates nothing, not even the first draws, which may kill it."""
    alone, shared = short(log_gamma), short(Traced(log), n_jobs=2)
    np.testing.assert_array_equal(shared.mean, alone.mean)
    np.testing.assert_array_equal(shared.covariance, alone.covariance)
    np.testing.assert_array_equal(shared.trace.lower_bound, alone.trace.lower_bound)
    assert shared.failures == {}
    unpacked = [line.split()[1] for line in lines(log) if line.startswith("unpacked")]
    assert len(set(unpacked)) == len(unpacked) <= 2
    assert {line.split()[1] for line in lines(log) if line.startswith("called")} == set(unpacked)
    assert str(os.getpid()) not in unpacked


def test_a_worker_without_the_model_is_sent_it(log, eager, single):
    """One that a cluster adds during a run, or that another fit has given its own model."""

    def forgetful(theta):
        note(log, os.getpid())
        workers.RECEIVED.clear()
        return log_gamma(theta)

    shared = short(forgetful, n_jobs=2)
    np.testing.assert_array_equal(shared.mean, short(log_gamma).mean)
    assert shared.failures == {}
    assert str(os.getpid()) not in lines(log)


def test_the_next_fit_has_the_processes_of_the_last(tmp_path, eager):
    pids = []
    for number in range(2):
        short(Traced(tmp_path / str(number)), n_jobs=2, max_iterations=2)
        pids.append({line.split()[1] for line in lines(tmp_path / str(number))})
    assert pids[0] == pids[1]


def test_threads_share_the_model(log, eager):
    lock = threading.Lock()  # which no process could be sent
    traced = Traced(log)

    def log_density(theta):
        with lock:
            return traced(theta)

    with joblib.parallel_config(backend="threading", n_jobs=2):
        shared = short(log_density)
    np.testing.assert_array_equal(shared.mean, short(log_gamma).mean)
    assert len({line.split()[2] for line in lines(log)}) > 1
    assert {line.split()[1] for line in lines(log)} == {str(os.getpid())}


def test_a_model_that_cannot_be_sent_stays_here(eager):
    """Also what fails in it: nothing is lost but the other processes."""
    lock, raised = threading.Lock(), []

    def log_density(theta):
        if len(raised) < 2:
            raised.append(theta)
            licence(theta)
        return log_gamma(theta) if lock else 0.0

    with pytest.warns(MgvbpWarning, match=r"in this process: .*cannot be sent .*lock.*'threading'") as caught:
        posterior = short(log_density, n_jobs=2)
    assert len(caught) == 1
    assert len(raised) == 2
    np.testing.assert_array_equal(posterior.mean, short(log_gamma).mean)


def test_a_part_of_ours_that_cannot_be_sent_says_why_itself(eager):
    class Client:
        def __getstate__(self):
            raise InvalidTypeError("leave n_jobs= out")

    client = Client()
    with pytest.raises(InvalidTypeError, match=r"^leave n_jobs= out\n"):
        short(lambda theta: log_gamma(theta) if client else 0.0, n_jobs=2)


class Quadratic:
    """All that an estimator can ask for, of vectors."""

    def __call__(self, theta):
        return -0.5 * (theta**2).sum(axis=1)

    def value_and_grad(self, theta):
        return self(theta), -theta

    def value_grad_and_squares(self, theta):
        return self(theta), -theta, 3.0 * theta**2


@pytest.mark.parametrize("needs", ["values", "gradients", "squares"])
def test_chunks_are_put_together(needs, eager, single):
    problem = Problem(Quadratic(), dim=3)
    with joblib.parallel_config(backend="threading"):
        for rows in (1, 2, 5, 33):
            theta = np.random.default_rng(0).standard_normal((rows, 3))
            with evaluator(problem, needs, 3, None, Failures()) as evaluate:
                for found in (evaluate(1, theta), evaluate(1, theta)):
                    for a, b in zip(found, problem.evaluate_at(1, theta, needs), strict=True):
                        np.testing.assert_array_equal(a, b)


def test_workers_that_cannot_be_started(eager, single):
    class Stubborn:
        def __call__(self, theta):
            return log_gamma(theta)

        def __setstate__(self, state):
            raise MemoryError("the data do not fit")

        def __getstate__(self):
            return {"data": 1}

    with pytest.raises(DivergenceError, match=r"could not be started: MemoryError: the data do not fit"):
        short(Stubborn(), n_jobs=2)


def known(seconds):
    """What is known after an iteration of a hundred draws that took so many seconds each."""
    found = Cost()
    found.learn(100 * seconds, 100)
    return found


def test_chunks_take_as_long_as_they_should():
    rows = np.arange(100)
    for seconds, chunks in ((1e-3, 4), (5e-3, 10), (2e-2, 40), (1.0, 100)):
        found = known(seconds).chunks(rows, 4)
        assert len(found) == chunks
        np.testing.assert_array_equal(np.concatenate(found), rows)


def test_an_iteration_that_was_held_up_is_forgotten():
    costs = Cost()
    for seconds in (1e-6, 1e-6, 1.0, 1e-6, 1.0):
        costs.learn(100 * seconds, 100)
        assert costs.of(100) == pytest.approx(1e-4)
    costs.learn(100.0, 100)
    assert costs.of(100) == pytest.approx(100.0)


def test_a_draw_alone_has_the_time_it_was_given():
    assert [known(1.0).limit(draws, 3.0) for draws in (1, 2, 100)] == [3.0, 6.0, 300.0]
    assert known(1e-3).limit(1, 3.0) == 3.0
    assert known(1e-3).limit(100, 3.0) == pytest.approx(4.0)
    assert known(1.0).limit(100, None) is None


# --- arguments ----------------------------------------------------------------------------------------


def test_bad_arguments():
    for name, value, error in [
        *(("n_jobs", value, InvalidTypeError) for value in (1.5, "all", True)),
        *(("timeout", value, InvalidInputError) for value in (0.0, -1.0, float("nan"))),
        ("n_jobs", 0, InvalidInputError),
        ("timeout", "1s", InvalidTypeError),
    ]:
        with pytest.raises(error, match=name):
            mgvbp.fit(log_gamma, **fit, **{name: value})


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_timeout_too_long_to_wait_for_is_none(n_jobs, eager):
    with joblib.parallel_config(backend="threading"):
        posterior = short(log_gamma, timeout=1e300, n_jobs=n_jobs)
    assert posterior.failures == {}
    np.testing.assert_array_equal(posterior.mean, short(log_gamma).mean)


def test_without_workers_an_exception_passes_through():
    for options in ({}, {"n_jobs": 1}):
        with pytest.raises(OSError, match="no licence"):
            mgvbp.fit(licence, **fit, **options)


# --- faults -------------------------------------------------------------------------------------------


FATES = {"nan": range(5), "raised": range(5, 7), "timed_out": range(7, 8)}
"""Of a hundred draws."""


class Faulty:
    """A log density that for 5% of all draws is NaN, for 2% raises and for 1% hangs: for the same ones always."""

    def __init__(self, path, seed, hang=60.0):
        self.path, self.seed, self.hang = path, seed, hang

    def __call__(self, theta):
        draw = zlib.crc32(theta.tobytes(), self.seed)
        fate = next((fate for fate, range_ in FATES.items() if draw % 100 in range_), "fine")
        note(self.path, f"{theta.tobytes().hex()} {fate} {os.getpid()}")
        if fate == "raised":
            raise ValueError("no value here")
        if fate == "timed_out":
            time.sleep(self.hang)
        return np.nan if fate == "nan" else log_gamma(theta)

    @property
    def counts(self):
        """How many different draws there were of each kind, by its own notes."""
        return Counter(fate for _, fate in {tuple(line.split()[:2]) for line in lines(self.path)})


def faulty_fit(function, **options):
    """Fit, and compare all that is reported about failures with what happened."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = mgvbp.fit(function, **fit, **options)
    counts = function.counts
    fine = counts.pop("fine")
    assert posterior.trace.n_evaluations[-1] >= fine + counts.total(), "some draws are evaluated again"
    tried = int(posterior.trace.num_draws[posterior.trace.phase == "trial"].sum())
    dropped = int(posterior.trace.dropped.sum())
    late = posterior.trace.dropped[posterior.trace.n_evaluations > posterior.n_evaluations // 2].any()
    assert counts.total() - tried <= dropped <= counts.total() + tried
    # one draw in forty without a value lies where it looks like the edge of a region
    refused = [ConvergenceWarning] * ("not finite" in posterior.stop_reason)
    warned = dropped > 0 and (bool(posterior.failures) or (late and not refused))
    assert [warning.category for warning in caught] == refused + [NonFiniteWarning] * warned
    nans = counts.pop("nan", 0)
    assert set(posterior.failures) == set(counts)
    words = {"raised": "raised an exception", "timed_out": "timed out"}
    for reason, count in posterior.failures.items():
        assert counts[reason] <= count <= counts[reason] + tried
        assert not warned or f"{count} {words[reason]}" in str(caught[-1].message)
    return posterior, Counter(counts) + Counter(nan=nans)


def test_fits_with_faults(log):
    total, right = Counter(), 0
    for seed in range(8):
        function = Faulty(log.with_name(f"log{seed}"), seed)
        posterior, counts = faulty_fit(function, timeout=0.2, rng=seed)
        right += posterior.converged
        assert shortfall(posterior) < TOLERANCE
        total += counts
    assert right >= 6  # of 8, of which 1 in 40 is refused
    assert min(total["nan"], total["raised"], total["timed_out"]) >= 3


def test_faults_in_processes(log, eager):
    """Until some draws have hung, which are one in a hundred."""
    total = Counter()
    for seed in range(30):
        path = log.with_name(f"log{seed}")
        posterior, counts = faulty_fit(Faulty(path, seed), timeout=0.5, rng=seed, n_jobs=2)
        assert shortfall(posterior) < TOLERANCE
        assert str(os.getpid()) not in {line.split()[2] for line in lines(path)}
        total += counts
        if total["timed_out"] > 1:
            break
    assert min(total["nan"], total["raised"], total["timed_out"]) > 0


def test_faults_in_threads(log, eager):
    """Threads cannot be stopped: one that hangs is left behind. One draw in a hundred hangs."""
    for seed in range(30):
        function = Faulty(log.with_name(f"log{seed}"), seed, hang=5.0)
        with joblib.parallel_config(backend="threading", n_jobs=2), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = mgvbp.fit(function, **fit, timeout=1.0, rng=seed)
        counts = function.counts
        assert posterior.failures == {name: counts[name] for name in ("raised", "timed_out") if counts[name]}
        assert shortfall(posterior) < TOLERANCE
        if counts["timed_out"]:
            return
    pytest.fail("none of the fits met a draw that hangs")


class Fatal:
    """A log density at whose 60th evaluation its process is killed, once."""

    def __init__(self, path):
        self.path = path

    def __call__(self, theta):
        if note(self.path, f"{os.getpid()}") == 60:
            os.kill(os.getpid(), signal.SIGKILL)
        return log_gamma(theta)


def test_a_worker_killed_half_way(log, eager):
    posterior = short(Fatal(log), n_jobs=2)
    assert posterior.failures == {"workers_lost": 1}
    assert posterior.trace.dropped.sum() == 0
    np.testing.assert_array_equal(posterior.mean, short(log_gamma).mean)
    assert len(set(lines(log))) == 3


def test_draws_that_all_fail_at_the_start_say_why():
    """With ten or more it is enough that more than half fail."""
    for num_draws, options in ((40, {}), (9, {}), (2, {}), (None, {"method": "auto"})):
        with pytest.raises(DivergenceError, match=r"draws failed twice: OSError: no licence") as caught:
            short(licence, **{"timeout": 5.0, "num_draws": num_draws} | options)
        assert num_draws is None or caught.value.theta.shape == (num_draws, 2)


def test_a_few_draws_may_all_fail_later():
    """With fewer than ten draws that is not too many for the pool: each has a value that is not finite."""
    calls = []

    def log_density(theta):
        calls.append(1)
        return log_gamma(theta) if len(calls) <= 9 else licence(theta)

    values, failures = evaluated(log_density, np.zeros((9, 2)), n_jobs=1, timeout=5.0, times=2)
    np.testing.assert_array_equal(values, np.full(9, np.nan))
    assert failures.counts == {"raised": 9}


def test_too_many_failures_later(tmp_path):
    """Those of the iteration that is then repeated count once."""
    broken, path = [], tmp_path / "run.npz"

    def log_density(theta):
        return licence(theta) if broken else log_gamma(theta)

    def after(iteration):
        broken.extend([1] * (iteration.iteration == 5))

    with pytest.warns(ConvergenceWarning, match="of 40 draws failed twice"):
        posterior = short(log_density, timeout=5.0, checkpoint=path, callback=after)
    assert posterior.stop_reason.startswith("broke down: 21 of 40 draws failed twice: OSError")
    assert len(posterior.trace) == 5
    assert posterior.failures == {}  # of the iterations that there are
    broken.clear()
    posterior = mgvbp.resume(path, log_density, timeout=5.0)
    assert (len(posterior.trace), posterior.failures, posterior.trace.dropped.sum()) == (12, {}, 0)


def test_the_draws_left_of_an_iteration_may_all_fail(tmp_path, single):
    """A run that was broken off among the second attempts has only failing draws left of that iteration."""

    def partial(theta):
        if theta[0] > 1.4:
            raise ArithmeticError("no value here")
        return log_gamma(theta)

    options = {"timeout": 5.0, "method": FAST, "num_draws": 60, "max_iterations": 2}
    with pytest.warns(NonFiniteWarning):
        first = mgvbp.fit(partial, **fit | options | {"max_iterations": 1})
    with pytest.warns(NonFiniteWarning):
        whole = mgvbp.fit(partial, **fit | options)
    assert first.failures["raised"] >= pool.LEAST_DRAWS
    attempts = []

    def broken_off(theta):
        attempts.append(theta[0] > 1.4)
        if sum(attempts) > first.failures["raised"]:
            raise KeyboardInterrupt
        return partial(theta)

    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        mgvbp.fit(broken_off, **fit | options, checkpoint=path, every=0.0)
    with pytest.warns(NonFiniteWarning):
        posterior = mgvbp.resume(path, partial, timeout=5.0)
    assert posterior.failures == whole.failures
    np.testing.assert_array_equal(posterior.mean, whole.mean)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_function_that_ends_its_process_fails(n_jobs, eager):
    def exiting(theta):
        if theta[0] > 1.9:
            sys.exit("the licence server is gone")
        return log_gamma(theta)

    with pytest.warns(NonFiniteWarning, match="SystemExit: the licence server is gone"):
        posterior = short(exiting, timeout=60.0, n_jobs=n_jobs)
    assert posterior.failures == {"raised": posterior.trace.dropped.sum()}
    assert len(posterior.trace) == 12


def test_whatever_is_raised_in_a_worker_is_a_failure(eager, single):
    for kind in (KeyboardInterrupt, GeneratorExit, BaseException):
        for timeout in (None, 60.0):

            def log_density(theta, kind=kind):
                if theta[0] > 1.9:
                    raise kind("odd")
                return log_gamma(theta)

            with joblib.parallel_config(backend="threading"), pytest.warns(NonFiniteWarning, match="odd"):
                posterior = short(log_density, n_jobs=2, timeout=timeout, max_iterations=4)
            assert posterior.failures == {"raised": posterior.trace.dropped.sum()}


def test_an_interrupt_here_is_the_users():
    def log_density(theta):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mgvbp.fit(log_density, **fit, timeout=5.0)


def test_a_wrong_shape_is_named():
    with pytest.raises(DivergenceError, match=r"EvaluationError: log_likelihood returned shape \(1, 1\)"):
        mgvbp.fit(lambda theta: theta[:, :1], dim=2, timeout=5.0)


def test_a_draw_that_hangs_holds_up_few_others():
    """Draws of 10 ms in slices of about 50 ms: what is done twice is a slice, not all draws."""
    calls = Counter()

    def log_density(theta):
        calls[theta.tobytes()] += 1
        time.sleep(60.0 if theta[0] == 150.0 else 0.01)
        return 1.0

    theta = np.column_stack([np.arange(200.0), np.ones(200)])
    values, failures = evaluated(log_density, theta, n_jobs=1, timeout=0.3)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(values)), [150])
    assert failures.counts == {"timed_out": 1}
    assert calls[theta[150].tobytes()] == 2
    assert len(calls) == 200
    assert calls.total() <= 230


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_values_are_kept_as_they_come(timeout, single):
    """Also those that are evaluated here within a timeout."""
    calls, heard = [], []

    def keep(rows, arrays):
        heard.append((len(calls), rows.tolist(), arrays[0].tolist()))

    def log_density(theta):
        calls.append(theta)
        return log_gamma(theta)

    theta = np.random.default_rng(1).standard_normal((9, 2))
    problem = Problem(log_density, dim=2, vectorized=False)
    with evaluator(problem, "values", 1, timeout, Failures()) as evaluate:
        evaluate(1, theta, keep)
    assert heard == [(k + 1, [k], [log_gamma(theta[k])]) for k in range(9)]


def test_rows_of_a_vector_function_stay_together():
    sizes = []

    def log_density(theta):
        sizes.append(len(theta))
        time.sleep(0.06)
        return theta[:, 0]

    evaluated(log_density, np.zeros((50, 2)), n_jobs=1, timeout=60.0, times=2, vectorized=True)
    assert sizes[-1] == 50


# --- who is to blame ----------------------------------------------------------------------------------

THETA = np.column_stack([np.arange(12.0), np.ones(12)])


def deadly(log, *rows):
    """A function that aborts the process at some rows of `THETA`, but not the one of the tests."""
    home = os.getpid()

    def log_density(theta):
        assert os.getpid() != home, "this would have been the end"
        if theta[0] in rows:
            note(log, "killed")
            os.abort()
        return theta[0]

    return log_density


def without(*rows):
    """The values of `THETA` if these rows have none."""
    return np.where(np.isin(THETA[:, 0], rows), np.nan, THETA[:, 0])


def test_only_draws_that_kill_their_worker_are_lost(log, eager, single):
    """The very first one too. Each kills two workers, and no more, so that a run with many of them comes to its end."""
    values, failures = evaluated(deadly(log, 0.0, 5.0), THETA)
    np.testing.assert_array_equal(values, without(0.0, 5.0))
    assert failures.counts == {"lost": 2, "workers_lost": 4}
    assert len(lines(log)) == 4


def test_after_a_death_nothing_is_evaluated_here(log):
    """However cheap the draws are; this process would be next."""
    values, _ = evaluated(deadly(log, 1.0), THETA)
    np.testing.assert_array_equal(values, without(1.0))


def test_too_many_deaths_end_the_run(log, eager, single, monkeypatch):
    monkeypatch.setattr(pool, "MOST_LOST", 1)
    with pytest.raises(DivergenceError, match="2 draws have killed two workers each"):
        evaluated(deadly(log, 3.0, 5.0), THETA)


def test_a_draw_that_hangs_in_a_library_is_given_up(eager, single, monkeypatch):
    """Where no signal is heard the worker is ended after some slack."""
    monkeypatch.setattr(workers, "SLACK", 1.0)

    def hanging(theta):
        if theta[0] == 5.0:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            time.sleep(600.0)
        return theta[0]

    values, failures = evaluated(hanging, THETA, timeout=1.0)
    np.testing.assert_array_equal(values, without(5.0))
    assert failures.counts == {"timed_out": 1, "workers_lost": 2}


# --- interrupts ---------------------------------------------------------------------------------------


def test_an_interrupt_ends_the_fit_with_what_it_has():
    calls = []

    def log_density(theta):
        calls.append(1)
        if len(calls) == 130:
            raise KeyboardInterrupt
        return log_gamma(theta)

    posterior = mgvbp.fit(log_density, **fit | SHORT, timeout=5.0)
    assert (posterior.stop_reason, len(posterior.trace)) == ("interrupted", 3)


INTERRUPTED = """
import os, signal, sys, time, warnings

signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it is ignored
import mgvbp

def log_density(theta):
    time.sleep(0.02)
    return -0.5 * float(theta @ theta)

def callback(iteration):
    print(iteration.iteration, flush=True)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    options = {"dim": 2, "vectorized": False, "num_draws": 20, "n_jobs": 2}
    posterior = mgvbp.fit(log_density, method=mgvbp.MGVBP(step_size=0.1), callback=callback, **options)
    print(posterior.stop_reason, len(posterior.trace), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups")
def test_control_c_reaches_all_workers_and_leaves_none(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED, encoding="utf-8")
    child = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stdout.readline() == "1\n"
        assert child.stdout.readline() == "2\n"
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        assert out.split("\n")[-2].startswith("interrupted ")
        for _ in range(600):
            try:
                os.killpg(child.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("processes are left")
    finally:
        with suppress(ProcessLookupError):  # workers that are left would keep the pipes open
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate(timeout=60)


def test_a_timeout_that_cannot_be_kept_is_named():
    caught = []

    def fitting():
        with pytest.warns(MgvbpWarning, match="only the main thread") as found:
            mgvbp.fit(log_gamma, **fit | SHORT, timeout=5.0)
        caught.extend(found)

    thread = threading.Thread(target=fitting)
    thread.start()
    thread.join(60.0)
    assert len(caught) == 1


def test_joblib_is_not_asked_without_a_word():
    code = "import sys, mgvbp; mgvbp.fit(lambda t: -t[:, 0] ** 2, dim=1, timeout=5.0); print('joblib' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout == "False\n"


# --- Ray ----------------------------------------------------------------------------------------------


def test_draws_through_ray(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="needs ray: pip install ray")
    from ray.util.joblib import register_ray

    def slow(theta):  # within the test, as Ray's workers do not find its module
        time.sleep(0.02)
        (tmp_path / str(os.getpid())).touch()
        return -0.5 * float(theta @ theta)

    options = fit | SHORT | {"max_iterations": 3}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        register_ray()
        with joblib.parallel_config(backend="ray"):
            posterior = mgvbp.fit(slow, **options, n_jobs=2)
    finally:
        ray.shutdown()
    assert len({path.name for path in tmp_path.iterdir()} - {str(os.getpid())}) == 2
    assert posterior.failures == {}
    np.testing.assert_array_equal(posterior.mean, mgvbp.fit(slow, **options).mean)
