"""Checkpoints: a run that is killed, however often, ends as if it had not been; and files that are refused."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import shutil
import stat
import sys
import time
import tracemalloc
import warnings
import zlib
from ast import literal_eval
from dataclasses import dataclass, fields
from functools import cache

import joblib
import numpy as np
import pytest

import mgvbp
from common import FAST
from mgvbp import (
    MGVBP,
    QBVI,
    VOGN,
    Auto,
    BlockDiagonal,
    CheckpointWarning,
    ConvergenceWarning,
    FileFormatError,
    Gaussian,
    InvalidInputError,
    InvalidTypeError,
    Minibatches,
    NonFiniteWarning,
    storage,
)
from mgvbp.checkpoint import Recorder
from mgvbp.encoding import PLAIN, decoded, encoded
from mgvbp.estimators import Score
from mgvbp.record import read_checkpoint
from mgvbp.trace import TRACE_DTYPES

D = 3
CENTRE = np.array([1.0, -0.5, 0.3])
_rng = np.random.default_rng(8)
X = _rng.standard_normal((60, D))
Y = X @ CENTRE + _rng.standard_normal(60)


class Density:
    """A log density that is no quadratic, with its gradient; ``pause`` seconds a draw."""

    def __init__(self, pause=0.0):
        self.pause = pause

    def __call__(self, theta):
        time.sleep(self.pause * len(theta))
        deviation = theta - CENTRE
        return -(np.cosh(deviation) + 0.2 * deviation**2).sum(axis=1)


def one_by_one(function):
    """The same as a function of one draw."""
    return lambda theta: function(theta[None])[0]


class WithGradient(Density):
    def value_and_grad(self, theta):
        deviation = theta - CENTRE
        return self(theta), -(np.sinh(deviation) + 0.4 * deviation)


class Failing(Density):
    """Raises for every fiftieth draw, and is NaN for another."""

    def __call__(self, theta):
        fate = [zlib.crc32(row.tobytes()) % 50 for row in theta]
        if 0 in fate:
            raise ValueError("no value here")
        return np.where(np.array(fate) == 1, np.nan, super().__call__(theta))


@dataclass
class Linear:
    pause: float

    def __call__(self, theta, X, y):
        time.sleep(self.pause)
        return -0.5 * ((y - theta @ X.T) ** 2).sum(axis=1)


STEPS = MGVBP(step_size=0.1, momentum=0.4, max_iterations=60, window=5)


def kinds(pause):
    """The fits of the crash test: arguments of `fit`, with a log-likelihood that takes its time."""
    prior = Gaussian(variance=2.0, dim=D)
    batches = Minibatches(Linear(20 * pause), X, Y, batch_size=20)
    return {
        "auto": {
            "log_likelihood": one_by_one(Density(5 * pause)),
            "dim": D,
            "vectorized": False,
            "starts": 3,
        },
        "auto with a gradient": {"log_likelihood": WithGradient(4 * pause), "prior": prior},
        "named": {
            "log_likelihood": Density(pause),
            "prior": prior,
            "method": STEPS,
            "num_draws": 20,
            "estimator": "h",
        },
        "minibatches": {
            "log_likelihood": batches,
            "prior": prior,
            "method": STEPS,
            "num_draws": 30,
            "rng": 5,
        },
        "failures": {
            "log_likelihood": Failing(pause),
            "dim": D,
            "method": STEPS,
            "num_draws": 20,
            "timeout": 60.0,
        },
    }


def same(a, b):
    """Whether two posteriors are the same to the last bit."""
    arrays = [(getattr(a.trace, name), getattr(b.trace, name)) for name in TRACE_DTYPES]
    arrays += [(a.mean, b.mean), (a.factor, b.factor)]
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in arrays) and all(
        getattr(a, name) == getattr(b, name)
        for name in (
            "lower_bound",
            "lower_bound_se",
            "converged",
            "stop_reason",
            "method",
            "failures",
            "gap",
            "gap_se",
        )
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


# --- killed at any moment -----------------------------------------------------------------------------


def live(kind, path, result, started):
    """One life of a run: begins or goes on, and tells when it comes to the first evaluation."""
    import warnings

    warnings.simplefilter("ignore")
    options = kinds(pause=1e-3)[kind]
    going = {"timeout": options["timeout"]} if "timeout" in options else {}

    def evaluated(iteration):
        started.set()

    if path.exists():
        started.set()
        posterior = mgvbp.resume(path, options["log_likelihood"], every=0.02, callback=evaluated, **going)
    else:
        posterior = mgvbp.fit(**options, checkpoint=path, every=0.02, callback=evaluated)
    posterior.save(result)


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")
@pytest.mark.parametrize("kind", kinds(0.0))
def test_killed_twenty_times(kind, path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["joblib", "mgvbp", "pytest"])
    rng, result = np.random.default_rng(zlib.crc32(kind.encode())), path.with_name("result")

    def life(seconds):
        started = context.Event()
        child = context.Process(target=live, args=(kind, path, result, started))
        child.start()
        while not started.wait(0.1):
            assert child.is_alive(), f"a life ended with {child.exitcode} before its first evaluation"
        child.join(seconds)
        child.kill()
        child.join()
        return child.exitcode

    kills, longest, lengths = 0, 0.15, [(0, 0)]
    while kills < 20:
        if life(rng.uniform(0.0, longest)) == 0:  # it came to its end: begin again
            path.unlink()
            continue
        kills += 1
        record = read_checkpoint(path)[1]
        lengths.append((len(record.told), int(record.part.known.sum()) if record.part else 0))
        longest *= 1.25 if lengths[-1] == lengths[-2] else 0.8  # however slow the machine, it comes on
    assert life(None) == 0
    assert same(mgvbp.load(result), mgvbp.fit(**kinds(0.0)[kind]))
    assert len(set(lengths)) >= 3


def test_a_kill_while_the_file_is_written(path, monkeypatch):
    """The file is the last one that was whole; what is left of the next one is apart."""
    broken_off(path, 5)
    before = path.read_bytes()

    def killed(descriptor):
        raise Power

    with monkeypatch.context() as patch:
        patch.setattr(storage.os, "fsync", killed)
        patch.setattr(storage.Path, "unlink", lambda self, missing_ok: None)
        with pytest.raises(Power):
            mgvbp.resume(path, Density(), every=0.0)
    assert path.read_bytes() == before
    left = [p.name for p in path.parent.iterdir() if p != path]
    assert left
    assert all(name.startswith("run.npz.") and name.endswith(".partial") for name in left)
    assert same(mgvbp.resume(path, Density()), mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20))


# --- resuming -----------------------------------------------------------------------------------------


class Counting:
    """A log-likelihood that counts its draws."""

    def __init__(self, function):
        self.function, self.draws = function, 0

    def __call__(self, theta):
        self.draws += len(theta)
        return self.function(theta)


def broken_off(path, after, function=None, **options):
    """A fit that its callback stopped."""
    options = {"dim": D, "method": STEPS, "num_draws": 20} | options
    return mgvbp.fit(
        function or Density(), checkpoint=path, callback=lambda it: it.iteration == after, **options
    )


def test_a_finished_run_is_returned_without_evaluations(path):
    first = mgvbp.fit(Density(), dim=D, checkpoint=path)
    counting = Counting(Density())
    for _ in range(2):
        assert same(mgvbp.resume(path, counting), first)
    assert counting.draws == 2 * 2


def test_only_new_iterations_are_evaluated_and_shown(path):
    broken_off(path, 25)
    counting, seen = Counting(Density()), []
    posterior = mgvbp.resume(path, counting, callback=lambda it: seen.append(it.iteration))
    assert seen == list(range(26, 61))
    assert counting.draws == 2 + 35 * 20
    assert same(posterior, mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20))


def test_a_run_may_be_broken_off_again(path):
    broken_off(path, 10)
    for stop in (20, 30):
        mgvbp.resume(path, Density(), callback=lambda it, stop=stop: it.iteration == stop)
    assert len(read_checkpoint(path)[1].told) == 30
    assert same(mgvbp.resume(path, Density()), mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20))


def test_an_exception_leaves_a_checkpoint(path):
    """Of a fault that was put right the run goes on."""
    left = [100]

    def flawed(theta):
        left[0] -= len(theta)
        if left[0] < 0:
            raise RuntimeError("a flaw")
        return Density()(theta)

    with pytest.raises(RuntimeError, match="a flaw"):
        broken_off(path, -1, flawed)
    assert len(read_checkpoint(path)[1].told) == 5
    assert same(mgvbp.resume(path, Density()), mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20))


class Power(BaseException):
    """It went off."""


def interrupted(path, line):
    """A fit with control-C at a line, counted from the start, that the modules of checkpoints execute."""
    left, files = [line], {mgvbp.checkpoint.__file__, mgvbp.record.__file__}

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # that it was interrupted
            mgvbp.fit(**SHORT, checkpoint=path, every=1e9)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left[0] <= 0


SHORT = {
    "log_likelihood": one_by_one(Density()),
    "grad": lambda theta: WithGradient().value_and_grad(theta[None])[1][0],
    "vectorized": False,
    "dim": D,
    "method": STEPS,
    "estimator": "gradient",
    "num_draws": 8,
    "max_iterations": 2,
}


def test_interrupted_at_any_line(path, monkeypatch):
    """Whatever it was doing then, the run goes on to the same end."""
    monkeypatch.setattr(storage.os, "fsync", lambda descriptor: None)  # there is no power cut here
    whole, line, lengths = mgvbp.fit(**SHORT), 1, set()
    while interrupted(path, line):
        if path.exists():
            record = read_checkpoint(path)[1]
            lengths.add((len(record.told), record.part is not None))
            assert same(mgvbp.resume(path, SHORT["log_likelihood"], grad=SHORT["grad"]), whole)
            path.unlink()
        line += 1
    assert lengths >= {(0, False), (1, False), (1, True), (2, False)}


def controlled(at):
    """A log density with control-C at one of its calls."""
    calls = []

    def log_density(theta):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return Density()(theta)

    return log_density


@pytest.mark.parametrize("method", [STEPS, "auto"], ids=["named", "auto"])
def test_after_an_interrupt_the_warning_says_how_to_go_on(path, method):
    """As it is written there, the call goes on with the run, in a second life as in the first.

    From so near all of 200 seeds had a surface after the first draws, and with it a posterior, and needed three calls.
    """
    settings = {"dim": D, "method": method, "initial_variance": 0.25}
    if method == STEPS:
        settings["num_draws"] = 20
    whole = mgvbp.fit(Density(), **settings)
    pattern = r"^not converged, interrupted: .*mgvbp\.resume\((?P<path>'.*'), \.\.\.\) goes on with it$"
    lives = [
        lambda: mgvbp.fit(controlled(at=2), checkpoint=path, **settings),
        lambda: mgvbp.resume(path, controlled(at=3)),  # the first call compares two draws
    ]
    for life in lives:
        with pytest.warns(ConvergenceWarning, match="interrupted") as caught:
            posterior = life()
        assert posterior.stop_reason == "interrupted"
        assert len(caught) == 1
        assert "max_evaluations" not in str(caught[0].message)
        named = literal_eval(re.match(pattern, str(caught[0].message))["path"])
        assert named == str(path)
    assert same(mgvbp.resume(named, Density()), whole)


@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupt_without_a_result_says_how_to_go_on(path, at):
    """The start is so far away that the first draws gave no surface for any of 1,500 seeds."""
    rates = np.linspace(-1.0, 1.0, 20)[:, None] ** np.arange(D)

    def steep(theta):
        logs = theta @ rates.T
        with np.errstate(over="ignore"):
            return (3.0 * logs - np.exp(logs)).sum(axis=1)

    settings = {"dim": D, "initial_mean": np.full(D, 20.0)}
    calls = []

    def function(theta):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return steep(theta)

    whole = mgvbp.fit(steep, **settings)
    with pytest.raises(KeyboardInterrupt) as caught:
        mgvbp.fit(function, checkpoint=path, **settings)
    assert len(read_checkpoint(path)[1].told) == at - 1
    assert caught.value.__notes__ == [
        f"there is no posterior yet: mgvbp.resume({str(path)!r}, ...) goes on with it"
    ]
    assert same(mgvbp.resume(path, steep), whole)


def test_without_a_file_the_warning_does_not_name_one(path, tmp_path):
    """No checkpoint is asked for, or it could not be written."""
    with pytest.warns(ConvergenceWarning, match=r"interrupted: .*max_evaluations") as caught:
        mgvbp.fit(controlled(at=2), dim=D, initial_variance=0.25)
    assert "resume" not in str(caught[0].message)
    with pytest.warns(mgvbp.MgvbpWarning) as caught:
        mgvbp.fit(controlled(at=2), dim=D, initial_variance=0.25, checkpoint=tmp_path / "nowhere" / "run.npz")
    assert {w.category for w in caught} == {CheckpointWarning, ConvergenceWarning}
    assert not any("resume" in str(w.message) for w in caught)


def test_a_file_that_could_not_be_replaced_is_still_named(path, monkeypatch):
    """The one before is there."""
    write, calls = mgvbp.checkpoint.write_archive, []

    def once(*arguments, **options):
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left")
        write(*arguments, **options)

    monkeypatch.setattr(mgvbp.checkpoint, "write_archive", once)
    with pytest.warns(CheckpointWarning, match="No space"), pytest.warns(ConvergenceWarning, match="resume"):
        mgvbp.fit(controlled(at=3), dim=D, initial_variance=0.25, checkpoint=path)
    monkeypatch.undo()
    assert same(mgvbp.resume(path, Density()), mgvbp.fit(Density(), dim=D, initial_variance=0.25))


def test_an_iteration_is_gone_on_with_where_it_was(path, monkeypatch):
    """Draws of a long iteration are kept as they come, not only iterations."""
    monkeypatch.setattr("mgvbp.parallel.CHUNK", 1e-9)
    calls = []

    def log_density(theta):
        calls.append(theta)
        if len(calls) == 55:
            raise Power
        return Density()(theta[None])[0]

    settings = {"dim": D, "method": STEPS, "num_draws": 20, "vectorized": False, "max_iterations": 5}
    with pytest.raises(Power):
        mgvbp.fit(log_density, checkpoint=path, every=0.0, **settings)
    record = read_checkpoint(path)[1]
    assert len(record.told) == 2
    assert record.part.known.tolist() == [True] * 14 + [False] * 6
    counting = Counting(Density())
    posterior = mgvbp.resume(path, one_by_one(counting))
    assert counting.draws == 2 + 6 + 40
    assert same(posterior, mgvbp.fit(one_by_one(Density()), **settings))


def test_a_first_iteration_that_is_not_finished_shows_the_model(path, monkeypatch):
    monkeypatch.setattr("mgvbp.parallel.CHUNK", 1e-9)
    calls = []

    def log_density(theta):
        calls.append(theta)
        if len(calls) == 5:
            raise Power
        return Density()(theta[None])[0]

    with pytest.raises(Power):
        mgvbp.fit(log_density, dim=D, vectorized=False, checkpoint=path)
    with pytest.raises(InvalidInputError, match="another model"):
        mgvbp.resume(path, lambda theta: 1.0 + one_by_one(Density())(theta))
    counting = Counting(Density())
    assert same(
        mgvbp.resume(path, one_by_one(counting)), mgvbp.fit(one_by_one(Density()), dim=D, vectorized=False)
    )


def test_chunks_of_an_iteration_are_kept(path, monkeypatch):
    """With threads, each chunk as it comes."""
    monkeypatch.setattr("mgvbp.parallel.START_UP", 0.0)
    monkeypatch.setattr("mgvbp.parallel.WORTHWHILE", 0.0)
    monkeypatch.setattr("mgvbp.parallel.CHUNK", 1e-9)
    parts, write = set(), Recorder.write

    def noted(self):
        write(self)
        record = read_checkpoint(path)[1]
        parts.add((len(record.told), int(record.part.known.sum()) if record.part else 0))

    monkeypatch.setattr(Recorder, "write", noted)
    settings = {"dim": D, "method": STEPS, "num_draws": 6, "vectorized": False, "max_iterations": 3}
    with joblib.parallel_config(backend="threading"):
        mgvbp.fit(one_by_one(Density()), n_jobs=2, checkpoint=path, every=0.0, estimator="h", **settings)
    assert {(2, known) for known in range(1, 6)} < parts


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_resumed_by_several_workers(path, backend, monkeypatch):
    monkeypatch.setattr("mgvbp.parallel.START_UP", 0.0)
    monkeypatch.setattr("mgvbp.parallel.WORTHWHILE", 0.0)
    options = {"max_iterations": 12}
    broken_off(path, 6, **options)
    with joblib.parallel_config(backend=backend):
        posterior = mgvbp.resume(path, Density(), n_jobs=2)
    np.testing.assert_allclose(
        posterior.mean, mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20, **options).mean, rtol=1e-12
    )
    assert len(posterior.trace) == 12


def test_failures_of_an_earlier_life_are_remembered(path):
    options = {"method": STEPS, "num_draws": 20, "timeout": 60.0}
    with pytest.warns(NonFiniteWarning):
        whole = mgvbp.fit(Failing(), dim=D, **options)
    with pytest.warns(NonFiniteWarning):
        half = broken_off(path, 30, Failing(), timeout=60.0)
    with pytest.warns(NonFiniteWarning, match="ValueError: no value here"):
        posterior = mgvbp.resume(path, Failing(), timeout=60.0)
    assert posterior.failures == whole.failures
    assert posterior.failures["raised"] > half.failures["raised"] > 0


def test_a_first_draw_that_failed_is_not_what_the_model_is_known_by(path):
    calls = []

    def flaky(theta):
        calls.append(1)
        values = Density()(theta)
        if len(calls) == 1:
            values[0] = np.nan
        return values

    with pytest.warns(NonFiniteWarning):
        broken_off(path, 5, flaky)
    with pytest.warns(NonFiniteWarning):
        posterior = mgvbp.resume(path, Density())
    assert len(posterior.trace) == 60


def test_single_precision_is_known_again(path):
    """Its sums depend on how many draws there are at once."""

    def single(theta):
        terms = (np.cosh(theta - CENTRE)[:, None, :] * np.ones((1, 500, 1))).astype(np.float32)
        return -terms.sum(axis=(1, 2)) / 500 * np.float32(1.0 + 1e-5 * (len(theta) < 5))

    broken_off(path, 5, single)
    assert len(mgvbp.resume(path, single).trace) == 60


SETTINGS = {
    "auto": {},
    "auto with a tolerance": {"tol": 0.05, "max_evaluations": 500},
    "auto with starts": {"starts": [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]},
    "named": {"method": "qbvi", "estimator": "loglik", "num_draws": 40, "max_iterations": 8},
    "method and estimator": {
        "method": QBVI(step_size=0.01, decay_after=None, clip_gradient=10.0),
        "estimator": Score("h", False),
        "draws": "antithetic",
        "num_draws": 40,
        "max_iterations": 8,
    },
    "sobol": {"method": FAST, "draws": "sobol", "num_draws": 32, "max_iterations": 8},
    "diagonal": {"family": "diagonal"},
    "blocks": {"family": BlockDiagonal([[2, 0], [1]])},
    "initial": {"initial_mean": (1, 0, 2), "initial_variance": [1.0, 2.0, np.float32(0.5)]},
    "initial matrix": {"initial_variance": 0.5 * np.eye(3)},
    "seeds": {"rng": np.random.default_rng(9)},
    "numbers of NumPy": {
        "rng": np.int64(3),
        "max_iterations": np.int32(3),
        "method": FAST,
        "num_draws": np.int64(30),
    },
}
BLOCKS = BlockDiagonal([[2, 0], [1]])
PRIORS = {
    "full": Gaussian(np.ones(3), np.eye(3) + 0.2),
    "diagonal": Gaussian(np.ones(3), np.array([1.0, 2.0, 3.0])),
    "blocks": Gaussian.from_factor(np.ones(3), BLOCKS.factor(variance=np.eye(3) + 0.2), BLOCKS),
}


@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_all_settings_are_restored(name, path):
    options = dict(SETTINGS[name])
    first = mgvbp.fit(Density(), PRIORS["full"], checkpoint=path, **options)
    counting = Counting(Density())
    assert same(mgvbp.resume(path, counting), first)
    assert counting.draws == 2


@pytest.mark.parametrize("name", PRIORS)
def test_gaussian_priors_are_in_the_file(name, path):
    first = mgvbp.fit(Density(), PRIORS[name], checkpoint=path)
    again = mgvbp.resume(path, Density())
    assert same(again, first)
    np.testing.assert_array_equal(read_checkpoint(path)[0]["prior"].factor, PRIORS[name].factor)


class Laplace:
    """A prior that a file cannot hold."""

    def log_density(self, theta):
        return -np.abs(theta).sum(axis=1)


def test_other_priors_are_given_again(path):
    first = mgvbp.fit(Density(), Laplace(), dim=D, checkpoint=path)
    with pytest.raises(InvalidInputError, match=r"prior Laplace.*give prior="):
        mgvbp.resume(path, Density())
    assert same(mgvbp.resume(path, Density(), Laplace()), first)


def test_a_function_of_one_draw_and_its_gradient(path):
    options = {"vectorized": False, "grad": lambda theta: -np.sinh(theta)}
    function = lambda theta: -np.cosh(theta).sum()  # noqa: E731
    first = mgvbp.fit(function, dim=D, checkpoint=path, **options)
    assert first.estimator == "gradient"
    assert same(mgvbp.resume(path, function, grad=options["grad"]), first)


# --- settings as text and arrays ----------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_classes_of_settings_survive(name):
    value = PLAIN[name]()
    text, arrays = encoded({"method": value})
    assert decoded(json.loads(json.dumps(text)), arrays) == {"method": value}
    assert arrays == {}


def test_every_field_survives():
    method = VOGN(curvature_step=0.25, step_size=1 / 3, momentum=0.1 + 0.2, window=7)
    text, arrays = encoded({"method": method})
    again = decoded(json.loads(json.dumps(text)), arrays)["method"]
    assert [getattr(again, f.name) for f in fields(again)] == [
        getattr(method, f.name) for f in fields(method)
    ]


class Score2(Score):
    """A user's estimator."""


Namesake = type("Auto", (Auto,), {})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": MGVBP(step_size=lambda t: 0.1)}, "method: step_size"),
        ({"method": FAST, "estimator": Score2("h")}, "estimator"),
        ({"method": Namesake()}, "method"),
        ({"initial_mean": "somewhere"}, "initial_mean"),
    ],
)
def test_settings_that_cannot_be_stored_are_refused_before_the_run(options, message, path):
    counting = Counting(Density())
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        mgvbp.fit(counting, dim=D, checkpoint=path, **options)
    assert counting.draws == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"checkpoint": 3}, InvalidTypeError),
        ({"checkpoint": "run", "every": -1.0}, InvalidInputError),
        ({"checkpoint": "run", "every": float("nan")}, InvalidInputError),
        ({"checkpoint": "run", "every": "minute"}, InvalidInputError),
    ],
)
def test_bad_arguments(options, error):
    with pytest.raises(error, match=list(options)[-1]):
        mgvbp.fit(Density(), dim=D, **options)


# --- files that are refused ---------------------------------------------------------------------------


@pytest.fixture
def saved(path):
    broken_off(path, 5)
    return path


@cache
def five():
    """What a run of five iterations was told."""
    return mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20, max_iterations=5)


def test_another_model(saved):
    counting = Counting(lambda theta: Density()(theta) + 1e-4)
    with pytest.raises(InvalidInputError, match=r"run\.npz .*another model: a draw had the log-likelihood -"):
        mgvbp.resume(saved, counting)
    assert counting.draws == 2


def test_another_gradient(path):
    """With the same values, as that of a sign error."""
    broken_off(path, 5, WithGradient())

    class Other(WithGradient):
        def value_and_grad(self, theta):
            values, gradients = super().value_and_grad(theta)
            return values, gradients * [1.0, 1.0, -1.0]

    with pytest.raises(InvalidInputError, match=r"another model: a draw has other gradients"):
        mgvbp.resume(path, Other())
    assert len(mgvbp.resume(path, WithGradient()).trace) == 60


def test_a_few_observations_of_many_changed(path):
    """A large constant hides them in the values, not in the difference of two."""

    def summed(y):
        total, squares = y.sum(), (y**2).sum()
        return lambda theta: (
            -0.5 * (squares - 2.0 * total * theta[:, 0] + len(y) * theta[:, 0] ** 2) - 100.0 * len(y)
        )

    y = np.random.default_rng(0).standard_normal(200_000)
    broken_off(path, 5, summed(y), dim=1)
    other = y.copy()
    other[:10] += 0.3
    with pytest.raises(InvalidInputError, match=r"log-likelihoods of two draws were .* apart"):
        mgvbp.resume(path, summed(other))
    assert mgvbp.resume(path, lambda theta: summed(y)(theta) * (1.0 + 1e-13)).trace.lower_bound.size > 5


class Flaky(Density):
    """Fails some times, then works."""

    def __init__(self, failures, found=None):
        super().__init__()
        self.failures, self.found = failures, found

    def __call__(self, theta):
        self.failures -= 1
        if self.failures >= 0:
            if self.found is None:
                raise OSError("no network")
            return np.full(len(theta), self.found)
        return super().__call__(theta)


@pytest.mark.parametrize("going", [{}, {"timeout": 60.0}])
@pytest.mark.parametrize("found", [None, np.nan])
def test_the_right_model_may_fail_once(going, found, saved):
    whole = mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20)
    assert same(mgvbp.resume(saved, Flaky(1, found), **going), whole)


def test_a_model_that_fails_is_not_called_another(saved):
    with pytest.raises(InvalidInputError, match=r"could not be evaluated .*: OSError: no network"):
        mgvbp.resume(saved, Flaky(2), timeout=60.0)


def test_a_random_log_likelihood(path):
    """It cannot be known again by its values."""
    rng = np.random.default_rng(3)

    def noisy(theta):
        return Density()(theta) + 0.1 * rng.standard_normal(len(theta))

    broken_off(path, 5, noisy)
    with pytest.raises(InvalidInputError, match=r"a random one, resume\(\.\.\., check=False\)"):
        mgvbp.resume(path, noisy)
    assert len(mgvbp.resume(path, noisy, check=False).trace) == 60
    with pytest.raises(InvalidTypeError, match="check must be True or False"):
        mgvbp.resume(path, noisy, check=0)


def test_nothing_but_failures_is_no_reason_to_refuse(path, monkeypatch):
    """A first iteration without a value shows no model, neither the right one nor another."""
    monkeypatch.setattr("mgvbp.parallel.CHUNK", 1e-9)
    calls = []

    def log_density(theta):
        calls.append(theta)
        if len(calls) == 4:
            raise Power
        return np.nan

    settings = {"dim": D, "method": STEPS, "num_draws": 20, "vectorized": False}
    with pytest.raises(Power):
        mgvbp.fit(log_density, checkpoint=path, **settings)
    with pytest.warns(NonFiniteWarning):
        posterior = mgvbp.resume(path, one_by_one(Density()))
    assert posterior.trace.dropped[0] == 3


def test_a_model_with_a_gradient(saved):
    with pytest.raises(InvalidInputError, match=r"another model|0 derivatives; this one has 1"):
        mgvbp.resume(saved, WithGradient())


def test_a_model_without_its_gradient(path):
    mgvbp.fit(WithGradient(), dim=D, checkpoint=path)
    with pytest.raises(InvalidInputError, match="had a gradient, which is not in"):
        mgvbp.resume(path, Density())


@pytest.mark.parametrize("vectorized", [True, False])
def test_a_gradient_of_jax(path, vectorized):
    jnp = pytest.importorskip("jax.numpy")

    def function(theta):
        return -jnp.cosh(theta - CENTRE).sum(axis=-1)

    first = mgvbp.fit(function, dim=D, grad="jax", vectorized=vectorized, checkpoint=path)
    assert same(mgvbp.resume(path, function, grad="jax"), first)
    assert same(mgvbp.resume(path, mgvbp.from_jax(function)), first)
    with pytest.raises(InvalidInputError, match="had a gradient, which is not in"):
        mgvbp.resume(path, function)
    with pytest.raises(InvalidInputError, match="grad"):
        mgvbp.resume(path, function, grad="torch")


def test_a_model_of_another_dimension(saved):
    with pytest.raises(InvalidInputError, match=r"could not be evaluated .*, of dimension 3: ValueError"):
        mgvbp.resume(saved, lambda theta: -((theta - np.ones(4)) ** 2).sum(axis=1))


def test_a_prior_where_there_was_none(saved):
    with pytest.raises(InvalidInputError, match=r"not the prior of .*, which had none"):
        mgvbp.resume(saved, Density(), Gaussian(np.ones(3), 2.0))


OTHERS = {
    "mean": Gaussian(np.zeros(3), np.array([1.0, 2.0, 3.0])),
    "variance": Gaussian(np.ones(3), np.array([1.0, 2.0, 3.1])),
    "family": PRIORS["full"],
    "dimension": Gaussian(variance=1.0, dim=4),
    "kind": Laplace(),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_prior(other, path):
    """Also where it makes no difference to the draws that were told."""
    settings = {"method": STEPS, "num_draws": 20, "initial_mean": np.zeros(3), "max_iterations": 1}
    first = mgvbp.fit(Density(), PRIORS["diagonal"], checkpoint=path, **settings)
    with pytest.raises(InvalidInputError, match=r"not the prior of .* is in the file: leave prior= out"):
        mgvbp.resume(path, Density(), OTHERS[other])
    assert same(mgvbp.resume(path, Density(), PRIORS["diagonal"]), first)


def test_another_version(saved, monkeypatch):
    monkeypatch.setattr("mgvbp.fitting.version", lambda name: "9.9")
    with pytest.raises(InvalidInputError, match=r"written by mgvbp .*; this is 9\.9"):
        mgvbp.resume(saved, Density())


def test_another_platform(saved, monkeypatch):
    """Whose draws are other ones from some iteration on."""
    rewrite(saved, norms=np.array([*contents(saved)["norms"][:3], 1.0, 1.0]))
    with pytest.raises(InvalidInputError, match=r"other draws at iteration 4.*another platform"):
        mgvbp.resume(saved, Density())


def test_a_posterior_is_no_checkpoint(path):
    five().save(path)
    with pytest.raises(FileFormatError, match="does not hold a mgvbp checkpoint"):
        mgvbp.resume(path, Density())


def test_a_checkpoint_is_no_posterior(saved):
    with pytest.raises(FileFormatError, match="does not hold a mgvbp posterior"):
        mgvbp.load(saved)


def test_no_file(path):
    with pytest.raises(FileNotFoundError):
        mgvbp.resume(path, Density())


def test_a_folder(tmp_path):
    with pytest.raises(OSError, match="directory"):
        mgvbp.resume(tmp_path, Density())


def contents(path):
    with np.load(path) as archive:
        return dict(archive)


def rewrite(path, settings=None, drop=(), header=None, **arrays):
    """Write a checkpoint again with other settings or arrays."""
    parts = contents(path)
    whole = json.loads(parts["header"].tobytes())
    whole["settings"] |= settings or {}
    parts |= arrays
    parts["header"] = np.frombuffer(json.dumps(whole | (header or {})).encode(), dtype=np.uint8)
    np.savez(path, **{name: part for name, part in parts.items() if name not in drop})


GAUSSIAN = {"prior": {"gaussian": "prior", "family": "full"}}
WRONG = {
    "no settings": {"header": {"settings": None}},
    "no failures": {"header": {"failures": None}},
    "failures of another kind": {"header": {"failures": {"raised": "many"}}},
    "failures negative": {"header": {"failures": {"raised": -1, "first_error": ""}}},
    "failures infinite": {"header": {"failures": {"raised": float("inf"), "first_error": ""}}},
    "failures false": {"header": {"failures": {"raised": False, "first_error": ""}}},
    "failures enormous": {"header": {"failures": {"raised": 10**400, "first_error": ""}}},
    "failures without words": {"header": {"failures": {"raised": 1, "first_error": 0}}},
    "another part": {"more": np.zeros(3)},
    "failures by another name": {"header": {"failures": {"burnt": 1}}},
    "dimension of text": {"settings": {"dim": "3"}},
    "dimension nothing": {"settings": {"dim": None}},
    "dimension negative": {"settings": {"dim": -3}},
    "dimension huge": {"settings": {"dim": 10**12}},
    "draws huge": {"settings": {"num_draws": 10**12}},
    "vectorized a number": {"settings": {"vectorized": 1}},
    "method unknown": {"settings": {"method": {"class": "Path"}}},
    "method with another field": {"settings": {"method": {"class": "MGVBP", "steps": 1}}},
    "method with a wrong field": {"settings": {"method": {"class": "MGVBP", "step_size": "x"}}},
    "method an estimator": {"settings": {"method": {"class": "Regression"}}},
    "method a list": {"settings": {"method": [1]}},
    "method a class of lists": {"settings": {"method": {"class": []}}},
    "family unknown": {"settings": {"family": "low-rank"}},
    "family of another dimension": {"settings": {"family": {"blocks": [[0, 1], [2, 3]]}}},
    "blocks as sizes": {"settings": {"family": {"blocks": [3]}}},
    "blocks text": {"settings": {"family": {"blocks": [["a"], ["b"]]}}},
    "array unknown": {"settings": {"initial_mean": {"array": "nowhere"}}},
    "array of lists": {"settings": {"initial_mean": {"array": []}}},
    "seed negative": {"settings": {"rng": [-1]}},
    "seed text": {"settings": {"rng": "0"}},
    "starts nothing": {"settings": {"starts": None}},
    "prior text": {"settings": {"prior": "flat"}},
    "prior without arrays": {"settings": GAUSSIAN},
    "prior of another dimension": {
        "settings": GAUSSIAN,
        "prior_mean": np.zeros(4),
        "prior_factor": np.eye(4),
    },
    "prior without a family": {"settings": {"prior": {"gaussian": "prior"}}, "prior_mean": np.zeros(3)},
    "prior not positive": {"settings": GAUSSIAN, "prior_mean": np.zeros(3), "prior_factor": -np.eye(3)},
    "prior not triangular": {
        "settings": GAUSSIAN,
        "prior_mean": np.zeros(3),
        "prior_factor": np.ones((3, 3)),
    },
    "prior nan": {"settings": GAUSSIAN, "prior_mean": np.full(3, np.nan), "prior_factor": np.eye(3)},
    "prior scalar": {"settings": GAUSSIAN, "prior_mean": np.array(0.0), "prior_factor": np.eye(3)},
    "no sizes": {"drop": ["sizes"]},
    "no norms": {"drop": ["norms"]},
    "no values": {"drop": ["values"]},
    "gradients without values": {"drop": ["values"], "gradients": np.zeros((100, 3))},
    "squares without gradients": {"squares": np.zeros((100, 3))},
    "gradients of another dimension": {"gradients": np.zeros((100, 4))},
    "sizes that are too many": {"sizes": np.array([20, 20, 20, 20, 21])},
    "sizes that overflow": {"sizes": np.array([2**62, 2**62, 2**62, 2**62, 100])},
    "sizes negative": {"sizes": np.array([-20, 40, 20, 20, 40])},
    "sizes of fractions": {"sizes": np.full(5, 20.0)},
    "sizes a matrix": {"sizes": np.full((1, 5), 20)},
    "values single": {"values": np.zeros(100, np.float32)},
    "values text": {"values": np.full(100, "a")},
    "values a matrix": {"values": np.zeros((100, 1))},
    "norms too few": {"norms": np.zeros(4)},
    "known numbers": {"known": np.ones(20)},
    "known too few": {"known": np.ones(19, bool)},
    "known nothing": {"known": np.zeros(20, bool)},
    "objects": {"values": np.array([None] * 100)},
}


EMPTY = {
    "drop": ["values"],
    "sizes": np.zeros(0, np.int64),
    "norms": np.zeros(0),
}
HUGE = {
    "dimension": {"dim": 10**9, "family": "diagonal"},
    "dimension of draws": {"dim": 10**7, "family": "diagonal", "num_draws": None},
    "covariance": {"dim": 10**5},
    "draws": {"num_draws": 10**9},
    "starts": {"method": {"class": "Auto"}, "num_draws": None, "starts": 10**9},
    "covariances of starts": {"dim": 1000, "method": {"class": "Auto"}, "num_draws": None, "starts": 10**4},
}


@pytest.mark.parametrize("what", HUGE)
def test_a_small_file_of_a_huge_run_is_refused(what, saved):
    """Before anything of that size is made; and such a run is not begun."""
    rewrite(saved, HUGE[what], **EMPTY)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=r"run\.npz .*up to 268,435,456 numbers in"):
            mgvbp.resume(saved, Density())
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_a_huge_run_is_not_begun(path):
    with pytest.raises(InvalidInputError, match="up to 268,435,456 numbers in the covariance"):
        mgvbp.fit(Density(), dim=20_000, checkpoint=path)
    assert not path.exists()


def test_draws_that_are_not_those_that_were_told(saved):
    rewrite(saved, {"num_draws": 10**7})
    with pytest.raises(FileFormatError, match="20 draws an iteration, and says 10000000"):
        mgvbp.resume(saved, Density())


def test_memory_that_does_not_suffice(saved, monkeypatch):
    """For what the file says; a model that needs too much is another thing."""

    def greedy(theta):
        if len(theta) > 2:
            raise MemoryError("an array of the model")
        return Density()(theta)

    with pytest.raises(MemoryError, match="an array of the model"):
        mgvbp.resume(saved, greedy)

    def conduct(*arguments):
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr("mgvbp.fitting.conduct", conduct)
    with pytest.raises(FileFormatError, match=r"run\.npz .*not fit into memory: Unable"):
        mgvbp.resume(saved, Density())


def test_a_file_that_is_small_by_compression(saved):
    """Ours are not compressed: what they hold is no larger than they are."""
    parts = contents(saved) | {"sizes": np.full(5, 10**6), "values": np.zeros(5 * 10**6)}
    np.savez_compressed(saved, **parts)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="larger than they can be"):
            mgvbp.resume(saved, Density())
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("damage", WRONG)
def test_a_damaged_checkpoint_is_refused(damage, saved):
    rewrite(saved, **WRONG[damage])
    with pytest.raises(FileFormatError, match=r"run\.npz"):
        mgvbp.resume(saved, Density())


def test_a_rewritten_checkpoint_is_not_refused_for_that(saved):
    rewrite(saved)
    assert len(mgvbp.resume(saved, Density()).trace) == 60


def test_a_part_of_another_iteration(saved):
    rewrite(saved, known=np.arange(20) < 7, norms=np.array([*contents(saved)["norms"][:4], 1.0]))
    with pytest.raises(InvalidInputError, match="other draws at iteration 5"):
        mgvbp.resume(saved, Density())


def test_other_sizes_of_iterations(saved):
    """Valid as such, but not those of this run."""
    rewrite(saved, sizes=np.array([20, 20, 19, 21, 20]))
    with pytest.raises(InvalidInputError, match="other draws at iteration 3"):
        mgvbp.resume(saved, Density())


# --- files that cannot be written ---------------------------------------------------------------------


def test_nowhere(tmp_path):
    with pytest.warns(
        CheckpointWarning, match=r"could not be written, the run goes on: .*No such file"
    ) as caught:
        posterior = broken_off(tmp_path / "nowhere" / "run.npz", -1, every=0.0)
    assert len(caught) == 1
    assert same(posterior, mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20))


FAULTS = [OSError(code, os.strerror(code)) for code in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO)]


@pytest.mark.parametrize("error", [*FAULTS, MemoryError("Unable to allocate")], ids=str)
def test_a_disk_that_fails_for_a_while(error, path, monkeypatch):
    """One warning, the file of before stays whole, and it is written again when the disk is well."""
    written, write = [], storage.write_archive

    def write_archive(path, kind, meta, arrays, **options):
        written.append(len(arrays["sizes"]))
        with monkeypatch.context() as patch:
            if 10 <= written[-1] < 50:
                patch.setattr(storage.os, "fsync", fails)
            write(path, kind, meta, arrays, **options)

    def fails(descriptor):
        raise error

    def after(iteration):
        told = len(read_checkpoint(path)[1].told)
        assert told == (iteration.iteration if not 10 <= iteration.iteration < 50 else 9)

    monkeypatch.setattr("mgvbp.checkpoint.write_archive", write_archive)
    with pytest.warns(CheckpointWarning, match=f"the run goes on: .*{error.args[-1]}") as caught:
        mgvbp.fit(Density(), dim=D, method=STEPS, num_draws=20, checkpoint=path, every=0.0, callback=after)
    assert len(caught) == 1
    assert written == [*range(61), 60]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o500)
    try:
        with pytest.warns(CheckpointWarning, match="Permission"):
            broken_off(folder / "run.npz", 3)
    finally:
        folder.chmod(0o700)


def test_there_is_a_file_from_the_start(path):
    """So that a script can resume whatever happened."""
    copies = []

    def first(theta):
        if not copies:
            copies.append(shutil.copy(path, path.with_name("copy")))
        return Density()(theta)

    posterior = mgvbp.fit(first, dim=D, checkpoint=path)
    assert read_checkpoint(copies[0])[1].told == []
    assert same(mgvbp.resume(copies[0], Density()), posterior)


def test_a_run_is_not_begun_where_there_is_one(path):
    """Unfinished or not: hours of evaluations would be gone."""
    for after in (5, -1):
        broken_off(path, after)
        before, counting = path.read_bytes(), Counting(Density())
        iterations = 5 if after == 5 else 60
        with pytest.raises(
            InvalidInputError, match=rf"a checkpoint of {iterations} iterations at .*mgvbp\.resume\('"
        ):
            mgvbp.fit(counting, dim=D, checkpoint=path)
        assert counting.draws == 0
        assert path.read_bytes() == before
        path.unlink()


def test_nothing_else_is_overwritten(path):
    path.write_text("a thesis")
    for other in (path, path.parent, path.parent / ".." / path.parent.name):
        with pytest.raises(InvalidInputError, match="something that is no checkpoint at"):
            mgvbp.fit(Density(), dim=D, checkpoint=other)
    assert path.read_text() == "a thesis"


@pytest.mark.parametrize("name", ["", ".", "/", "a\0b"])
def test_paths_that_are_none(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counting = Counting(Density())
    with pytest.raises(InvalidInputError, match="checkpoint must be the path of a file"):
        mgvbp.fit(counting, dim=D, checkpoint=name)
    assert counting.draws == 0


def test_a_write_makes_no_copy_of_all(path):
    """With gradients the record can be most of the memory."""
    options = {"dim": 20_000, "family": "diagonal", "method": STEPS, "num_draws": 10, "max_iterations": 20}
    recorders = []

    class Noted(Recorder):
        def write(self):
            recorders.append(self)
            super().write()

    class Quadratic:
        def __call__(self, theta):
            return -0.5 * (theta**2).sum(axis=1)

        def value_and_grad(self, theta):
            return self(theta), -theta

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgvbp.fitting.Recorder", Noted)
        mgvbp.fit(Quadratic(), checkpoint=path, **options)
    size = 8 * 20 * 10 * 20_001
    tracemalloc.start()
    try:
        recorders[-1].write()
        assert tracemalloc.get_traced_memory()[1] < 0.2 * size
    finally:
        tracemalloc.stop()
    assert size < path.stat().st_size < 1.01 * size


def test_a_large_file_is_told_of_once(path, monkeypatch):
    monkeypatch.setattr("mgvbp.checkpoint.LARGE", 10_000)
    with pytest.warns(CheckpointWarning, match=r"has grown to .* GiB") as caught:
        broken_off(path, -1, every=0.0)
    assert len(caught) == 1


def test_it_is_on_the_disk_before_it_has_the_name(path, monkeypatch):
    """And then the name is, where the system can do that."""
    events, fsync, replace = [], os.fsync, storage.Path.replace

    def noted(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def renamed(self, target):
        events.append("name")
        return replace(self, target)

    monkeypatch.setattr(storage.os, "fsync", noted)
    monkeypatch.setattr(storage.Path, "replace", renamed)
    storage.write_archive(path, "thing", {}, {"x": np.zeros(3)})
    assert events == ["file", "name", "folder"]

    def no_folders(*arguments):
        raise PermissionError

    monkeypatch.setattr(storage.os, "open", no_folders)
    storage.write_archive(path, "thing", {}, {"x": np.ones(3)})
    assert storage.read_archive(path, "thing", ["x"])[1]["x"].tolist() == [1.0, 1.0, 1.0]


def test_two_writers_of_one_file(path, monkeypatch):
    """One writes while the other does: the last to end leaves its file, and nothing of the other's."""
    fsync = os.fsync

    def meanwhile(descriptor):
        monkeypatch.setattr(storage.os, "fsync", fsync)
        storage.write_archive(path, "thing", {}, {"x": np.arange(1000.0)}, compressed=False)
        assert len(storage.read_archive(path, "thing", ["x"])[1]["x"]) == 1000

    monkeypatch.setattr(storage.os, "fsync", meanwhile)
    storage.write_archive(path, "thing", {}, {"x": np.zeros(3)})
    assert storage.read_archive(path, "thing", ["x"])[1]["x"].tolist() == [0.0, 0.0, 0.0]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_list_is_written_end_to_end(path):
    parts = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(9.0).reshape(3, 3))]
    storage.write_archive(path, "thing", {}, {"x": parts}, compressed=False)
    np.testing.assert_array_equal(
        storage.read_archive(path, "thing", ["x"])[1]["x"], np.concatenate(parts), strict=True
    )


def test_writes_are_apart(path, monkeypatch):
    """As many seconds as was asked for, by a clock that runs a second an iteration."""
    seconds = [0.0]
    monkeypatch.setattr("mgvbp.checkpoint.time.monotonic", lambda: seconds[0])
    writes = []
    monkeypatch.setattr(Recorder, "write", writing(Recorder.write, writes))

    def log_density(theta):
        seconds[0] += 1.0
        return Density()(theta)

    broken_off(path, 20, log_density, every=6.0)
    assert writes == [0, 6, 12, 18, 20]


def writing(write, writes):
    def noted(self):
        writes.append(len(self.told))
        write(self)

    return noted
