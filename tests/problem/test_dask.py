"""A real Dask cluster of two worker processes: the same digits, data that stay where they are, workers that die."""

import os
import pickle
import signal
import time
import warnings
from contextlib import suppress
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy.special import expit

import mgvbp
from common import FAST
from mgvbp import (
    ConvergenceWarning,
    DivergenceError,
    EvaluationError,
    Gaussian,
    InvalidInputError,
    InvalidTypeError,
)
from mgvbp.errors import MgvbpWarning
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Problem
from mgvbp.problem.sharded import ShardedLikelihood
from mgvbp.run.evaluation.evaluation import evaluator

distributed = pytest.importorskip("distributed", reason="needs mgvbp[dask]")
dask = pytest.importorskip("dask")

RNG = np.random.default_rng(8)
X = RNG.normal(size=(1003, 3))
Y = (RNG.random(1003) < 1.0 / (1.0 + np.exp(-X @ [1.0, -0.5, 0.3]))).astype(float)
DATA = np.column_stack([X, Y])
SHARDS = np.array_split(DATA, 8)
PRIOR = Gaussian(variance=4.0, dim=3)
THETA = RNG.normal(size=(5, 3))


class Logistic:
    """Logistic regression on rows (x, y)."""

    def __call__(self, theta, rows):
        eta = theta @ rows[:, :3].T
        return (rows[:, 3] * eta - np.logaddexp(0.0, eta)).sum(axis=1)

    def value_and_grad(self, theta, rows):
        p = expit(theta @ rows[:, :3].T)
        return self(theta, rows), (rows[:, 3] - p) @ rows[:, :3]


def logistic(theta, rows):
    return Logistic()(theta, rows)


@pytest.fixture(scope="module")
def cluster():
    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.deploy.lost-worker-timeout": "10 minutes",  # else a slow machine is taken for a dead one
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client(cluster):
    cluster.wait_for_workers(2, timeout=60)
    return cluster


def kill_a_worker(client):
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)


# --- the same digits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"method": FAST, "estimator": "gradient"}, {"method": FAST, "estimator": "h", "num_draws": 50}],
    ids=["auto", "gradient", "h"],
)
def test_eight_shards_are_one_machine_in_every_lower_bound(client, options):
    model = Logistic()

    class Whole:
        def __call__(self, theta):
            return model(theta, DATA)

        def value_and_grad(self, theta):
            return model.value_and_grad(theta, DATA)

    options = {"max_iterations": 25, "initial_variance": 0.05, "rng": 5, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = mgvbp.fit(Whole(), PRIOR, **options)
        many = mgvbp.fit(ShardedLikelihood(model, SHARDS, client), PRIOR, **options)
    assert len(one.trace) == len(many.trace) > 3
    np.testing.assert_allclose(many.trace.lower_bound, one.trace.lower_bound, rtol=0, atol=1e-10)
    np.testing.assert_allclose(many.mean, one.mean, rtol=0, atol=1e-10)


def test_timing_makes_no_difference_to_the_last_digit(client):
    def slow(theta, rows):
        time.sleep(0.05 * RNG.random())
        return logistic(theta, rows)

    model = ShardedLikelihood(slow, SHARDS, client)
    expected = ShardedLikelihood(logistic, SHARDS)(THETA)
    for _ in range(3):
        np.testing.assert_array_equal(model(THETA), expected)


def test_some_shards_at_a_time(client):
    many, one = (ShardedLikelihood(Logistic(), SHARDS, c, batch_shards=3, rng=2) for c in (client, None))
    for t in (1, 2, 7):
        np.testing.assert_array_equal(many.at(t)(THETA), one.at(t)(THETA))
        np.testing.assert_array_equal(many.at(t).value_and_grad(THETA)[1], one.at(t).value_and_grad(THETA)[1])


def test_many_parameters(client):
    """Draws above 100 kB, which take another way."""
    theta = RNG.normal(size=(10, 3000))

    def squares(theta, shard):
        return -(theta**2).sum(axis=1) * len(shard)

    expected = ShardedLikelihood(squares, SHARDS)(theta)
    np.testing.assert_array_equal(ShardedLikelihood(squares, SHARDS, client)(theta), expected)


# --- shards of Dask -----------------------------------------------------------------------------------


def kinds(client):
    array = pytest.importorskip("dask.array").from_array(DATA, chunks=(126, 4))
    return {
        "array": array,
        "delayed": [dask.delayed(np.copy)(shard) for shard in SHARDS],
        # keys of their own: those of the same data would be shared with futures that another test has just released
        "futures": client.scatter(SHARDS, hash=False),
        "mixed": [SHARDS[0], dask.delayed(SHARDS[1]), *client.scatter(SHARDS[2:], hash=False)],
    }


@pytest.mark.parametrize("kind", ["array", "delayed", "futures", "mixed"])
def test_kinds_of_shards(client, kind):
    model = ShardedLikelihood(Logistic(), kinds(client)[kind], client)
    assert model.num_shards == 8
    np.testing.assert_allclose(model(THETA), logistic(THETA, DATA), rtol=1e-12)


def test_columns_in_several_blocks_are_refused(client):
    array = pytest.importorskip("dask.array").from_array(DATA, chunks=(126, 2))
    with pytest.raises(InvalidInputError, match="rechunk"):
        ShardedLikelihood(Logistic(), array, client)


def test_shards_of_dask_need_a_client(client):
    for kind in kinds(client).values():
        with pytest.raises(InvalidInputError, match="give client="):
            ShardedLikelihood(Logistic(), kind)


def rebuilt(log, rows):
    """A shard that travels says where it arrives."""
    with Path(log).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return Rows(log, rows)


class Rows:
    def __init__(self, log, rows):
        self.log, self.rows = log, rows

    def __reduce__(self):
        return rebuilt, (self.log, self.rows)


def test_data_never_come_here(client, tmp_path):
    log = str(tmp_path / "log")
    shards = [dask.delayed(Rows)(log, shard) for shard in SHARDS]

    class Model(Logistic):
        def __call__(self, theta, shard):
            return super().__call__(theta, getattr(shard, "rows", shard))

    model = ShardedLikelihood(Model(), shards, client)
    posterior = mgvbp.fit(model, PRIOR, method=FAST, estimator="regression", max_iterations=5)
    assert np.isfinite(posterior.mean).all()

    def arrived_here():
        return Path(log).exists() and str(os.getpid()) in Path(log).read_text().split()

    assert not arrived_here()
    client.compute(shards[0]).result()  # had one come, it would have been seen
    assert arrived_here()


def test_a_function_that_forgets_to_sum_sends_no_rows(client):
    with pytest.raises(EvaluationError, match=r"shard \d returned shape \(5, 12\d\)") as caught:
        ShardedLikelihood(lambda theta, rows: theta @ rows[:, :3].T, SHARDS, client)(THETA)
    np.testing.assert_array_equal(caught.value.theta, THETA)


def test_an_exception_of_the_function_comes_home(client):
    def broken(theta, rows):
        raise ZeroDivisionError("oh")

    with pytest.raises(ZeroDivisionError, match="oh"):
        mgvbp.fit(ShardedLikelihood(broken, SHARDS, client), PRIOR)


def test_a_client_does_not_go_to_other_processes(client):
    with pytest.raises(InvalidTypeError, match="leave n_jobs="):
        pickle.dumps(ShardedLikelihood(logistic, SHARDS, client))


# --- workers that die ---------------------------------------------------------------------------------


def test_a_worker_killed_half_way(client):
    options = {
        "method": mgvbp.MGVBP(step_size=0.01, window=5),
        "estimator": "regression",
        "max_iterations": 10,
    }
    undisturbed = mgvbp.fit(ShardedLikelihood(logistic, SHARDS), PRIOR, **options)

    def half_way(iteration):
        if iteration.iteration == 5:
            kill_a_worker(client)

    model = ShardedLikelihood(logistic, SHARDS, client)
    with pytest.warns(MgvbpWarning, match="1 of 2 workers left the cluster"):
        posterior = mgvbp.fit(model, PRIOR, **options, callback=half_way)
    assert model.workers_lost == 1
    assert posterior.failures == {"workers_lost": 1}
    assert posterior.stop_reason == undisturbed.stop_reason
    np.testing.assert_array_equal(posterior.trace.lower_bound, undisturbed.trace.lower_bound)


@pytest.mark.parametrize("kind", ["ours", "delayed"])
def test_a_worker_that_dies_at_work(client, kind, tmp_path):
    marker = tmp_path / "dead"

    def deadly(theta, rows):
        with suppress(FileExistsError):
            marker.touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
        return logistic(theta, rows)

    model = ShardedLikelihood(deadly, SHARDS if kind == "ours" else kinds(client)[kind], client)
    with pytest.warns(MgvbpWarning, match="workers left the cluster"):
        found = model(THETA)
    assert model.workers_lost == 1
    np.testing.assert_array_equal(found, ShardedLikelihood(logistic, SHARDS)(THETA))


def test_shards_that_are_lost_for_good_end_the_run_with_what_it_has(client):
    model = ShardedLikelihood(logistic, client.scatter(SHARDS, hash=False), client)
    with (
        pytest.warns(MgvbpWarning, match="left the cluster"),
        pytest.warns(ConvergenceWarning, match="broke down"),
    ):
        posterior = mgvbp.fit(
            model,
            PRIOR,
            method=FAST,
            estimator="regression",
            callback=lambda iteration: iteration.iteration == 3 and kill_a_worker(client),
        )
    assert "were on a worker that is gone" in posterior.stop_reason
    assert len(posterior.trace) == 3
    assert not posterior.converged


def test_a_shard_that_kills_every_worker(client, monkeypatch):
    monkeypatch.setattr("mgvbp.problem.sharded.cluster.ATTEMPTS", 2)

    def deadly(theta, rows):
        os.kill(os.getpid(), signal.SIGKILL)

    with (
        pytest.warns(MgvbpWarning, match="left the cluster"),
        pytest.raises(DivergenceError, match="smaller shards"),
    ):
        ShardedLikelihood(deadly, kinds(client)["delayed"][:1], client)(THETA)


# --- draws through joblib -----------------------------------------------------------------------------


@pytest.mark.parametrize("killed", [False, True], ids=["undisturbed", "a worker killed half-way"])
def test_draws_through_joblib(client, tmp_path, killed):
    home = os.getpid()

    def slow(theta):
        time.sleep(0.01 * len(theta))
        if os.getpid() != home:
            (tmp_path / str(os.getpid())).touch()
            with suppress(FileNotFoundError):
                (tmp_path / "order").unlink()  # by whoever comes first
                os.kill(os.getpid(), signal.SIGKILL)
        return logistic(theta, DATA)

    def half_way(iteration):
        if killed and iteration.iteration == 2:
            (tmp_path / "order").touch()

    options = {"method": FAST, "estimator": "regression", "max_iterations": 4, "initial_variance": 0.05}
    here = mgvbp.fit(slow, PRIOR, **options)
    with joblib.parallel_config(backend="dask"):
        there = mgvbp.fit(slow, PRIOR, **options, n_jobs=2, callback=half_way)
    np.testing.assert_allclose(there.trace.lower_bound, here.trace.lower_bound, rtol=0, atol=1e-10)
    assert there.failures == ({"workers_lost": 1} if killed else {})
    workers = {str(pid) for pid in client.run(os.getpid).values()}
    assert workers & {path.name for path in tmp_path.iterdir()}


def test_a_draw_that_hangs(client, tmp_path):
    """Dask evaluates in threads, where no alarm rings; the draw is given up twice and all others are there."""
    home = os.getpid()

    def log_density(theta):
        time.sleep(0.01)
        if os.getpid() != home and theta[0] > 1.8:
            (tmp_path / f"{theta[0]!r} {time.monotonic()!r}").touch()
            time.sleep(3600.0)
        return -0.5 * float(theta @ theta)

    options = {"vectorized": False, "dim": 3, "method": FAST, "num_draws": 60, "max_iterations": 2}
    with joblib.parallel_config(backend="dask"), pytest.warns(mgvbp.NonFiniteWarning, match="timed out"):
        posterior = mgvbp.fit(log_density, **options, n_jobs=2, timeout=0.5)
    hung = {path.name.split()[0] for path in tmp_path.iterdir()}
    assert 1 <= len(hung) <= 6
    assert posterior.failures == {"timed_out": len(hung)}
    assert posterior.trace.dropped.sum() == len(hung)
    assert len(posterior.trace) == 2
    assert len(client.ncores()) == 2


def test_a_draw_that_hangs_while_it_computes(client, tmp_path):
    """It is given up like one that waits, and what it leaves behind does not stop the next draws."""
    home = os.getpid()

    def log_density(theta):
        time.sleep(0.01)
        if os.getpid() != home and theta[0] > 1.8:
            (tmp_path / f"{theta[0]!r}").touch()
            while (tmp_path / "hang").exists():
                pass
        return -0.5 * float(theta @ theta)

    (tmp_path / "hang").touch()
    options = {"vectorized": False, "dim": 3, "method": FAST, "num_draws": 60, "max_iterations": 1}
    try:
        with joblib.parallel_config(backend="dask"), pytest.warns(mgvbp.NonFiniteWarning, match="timed out"):
            posterior = mgvbp.fit(log_density, **options, n_jobs=2, timeout=2.0)
    finally:
        (tmp_path / "hang").unlink()
    hung = list(tmp_path.iterdir())
    assert hung
    assert posterior.failures == {"timed_out": len(hung)}


def test_a_draw_that_kills_its_worker(client, tmp_path):
    """It has no value, without a timeout too; the others have theirs, and this process survives."""
    theta = np.column_stack([np.arange(8.0), np.ones(8)])

    def deadly(row):
        time.sleep(0.06)
        if row[0] == 5.0:
            (tmp_path / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return row[0]

    failures = Failures()
    problem = Problem(deadly, dim=2, vectorized=False)
    with joblib.parallel_config(backend="dask"), evaluator(problem, "values", 2, None, failures) as evaluate:
        (values,) = evaluate(1, theta)
    lost = np.isnan(values)
    np.testing.assert_array_equal(values[~lost], theta[~lost, 0])
    assert lost[5]
    # Dask gives up a draw that has waited on two workers which died, whichever draw killed them
    assert failures.total == failures.lost == lost.sum() <= 2
    # one that Dask has replaced before anybody looks is not missed
    assert 1 <= failures.workers_lost <= len(list(tmp_path.iterdir()))
