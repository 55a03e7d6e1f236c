"""Checkpoints: a run that is broken off, however and however often, ends as if it had not been."""

from __future__ import annotations

import dataclasses
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
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pytest

import mgvbp
from common import FAST
from mgvbp import (
    MGVBP,
    QBVI,
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
)
from mgvbp.auto.rules import Rules
from mgvbp.auto.state import Phase
from mgvbp.core import storage
from mgvbp.estimators import Score
from mgvbp.methods.optimizer import Optimizer
from mgvbp.posterior.trace import TRACE_DTYPES
from mgvbp.run import checkpoint
from mgvbp.run.checkpoint import Part, Recorder, read_checkpoint
from mgvbp.run.encoding import CLASSES, Decoder, Encoder

D = 3
CENTRE = np.array([1.0, -0.5, 0.3])
_rng = np.random.default_rng(8)
X = _rng.standard_normal((60, D))
Y = X @ CENTRE + _rng.standard_normal(60)


class Density:
    """A log density that is no quadratic, and counts its draws; ``pause`` seconds a draw."""

    def __init__(self, pause=0.0):
        self.pause, self.draws = pause, 0

    def __call__(self, theta):
        self.draws += len(theta)
        time.sleep(self.pause * len(theta))
        deviation = theta - CENTRE
        return -(np.cosh(deviation) + 0.2 * deviation**2).sum(axis=1)


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


class Steep:
    """A Poisson regression that is far too steep for a surface at the start, which is far away."""

    def __init__(self, dim=D):
        self.powers = np.linspace(-1.0, 1.0, 20)[:, None] ** np.arange(dim)

    def __call__(self, theta):
        logs = theta @ self.powers.T
        with np.errstate(over="ignore"):
            return (3.0 * logs - np.exp(logs)).sum(axis=1)


class SteepWithGradient(Steep):
    def value_and_grad(self, theta):
        with np.errstate(over="ignore"):
            return self(theta), (3.0 - np.exp(theta @ self.powers.T)) @ self.powers


@dataclass
class Linear:
    pause: float

    def __call__(self, theta, X, y):
        time.sleep(self.pause)
        return -0.5 * ((y - theta @ X.T) ** 2).sum(axis=1)


def one_by_one(function):
    """The same as a function of one draw."""
    return lambda theta: function(theta[None])[0]


STEPS = MGVBP(step_size=0.1, momentum=0.4, max_iterations=60, window=5)
NAMED = {"dim": D, "method": STEPS, "num_draws": 20}
PRIOR = Gaussian(variance=2.0, dim=D)


def whole(function=None, **options):
    """The run of `broken_off` without a break."""
    return mgvbp.fit(function or Density(), **NAMED | options)


def broken_off(path, after, function=None, **options):
    """A fit that its callback stopped."""
    stop = {"callback": lambda it: it.iteration == after}
    return mgvbp.fit(function or Density(), checkpoint=path, **NAMED | stop | options)


def same(a, b):
    """Whether two posteriors are the same to the last bit."""
    arrays = [(getattr(a.trace, name), getattr(b.trace, name)) for name in TRACE_DTYPES]
    arrays += [(a.mean, b.mean), (a.factor, b.factor)]
    names = "lower_bound lower_bound_se converged stop_reason method estimator failures gap gap_se other_optima"
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in arrays) and all(
        getattr(a, name) == getattr(b, name) for name in names.split()
    )


class Power(BaseException):
    """It went off."""


def failing_at(call, function, error=KeyboardInterrupt):
    """A function that raises, once, at one of its calls."""
    calls = iter(range(1, 10**9))

    def flawed(theta):
        if next(calls) == call:
            raise error
        return function(theta)

    return flawed


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


@pytest.fixture
def saved(path):
    broken_off(path, 5)
    return path


@pytest.fixture
def small_chunks(monkeypatch):
    """Functions of one draw are given one at a time, so that parts of iterations are kept."""
    monkeypatch.setattr("mgvbp.run.parallel.CHUNK", 1e-9)


# --- the state is enough to go on from ----------------------------------------------------------------

FAR = {"initial_mean": np.full(D, 5.0)}
RUNS = {
    "auto": (Density(), {"dim": D}),
    "starts": (Density(), {"dim": D, "starts": 4}),
    "evolution": (Steep(), {"dim": D, **FAR}),
    "blocks": (Density(), {"dim": D, "family": BlockDiagonal([[2, 0], [1]])}),
    "ascent": (SteepWithGradient(), {"dim": D, "family": "diagonal", **FAR}),
    "gradients of several starts": (SteepWithGradient(8), {"dim": 8, "starts": 2, "rng": 1}),
    "steps": (Density(), {"prior": PRIOR, "method": STEPS, "num_draws": 20, "estimator": "loglik"}),
    "minibatches": (Minibatches(Linear(0.0), X, Y, batch_size=20), {"prior": PRIOR, "method": STEPS, "rng": 5}),
}


def snapshots(path, function, options):
    """A run with a file after each iteration: its posterior, the files, and the states that went into them."""
    files, states = [], []

    class Noted(Recorder):
        def keep(self, snapshot):
            states.append(snapshot)
            super().keep(snapshot)

    def after(iteration):
        files.append(path.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgvbp.run.fitting.Recorder", Noted)
        patch.setattr(storage.os, "fsync", lambda descriptor: None)
        return mgvbp.fit(function, checkpoint=path, every=0.0, callback=after, **options), files, states


def test_from_every_phase_a_run_goes_on_bit_for_bit(path):
    phases = set()
    for function, options in RUNS.values():
        posterior, files, states = snapshots(path, function, options)
        assert same(posterior, mgvbp.fit(function, **options))
        phase = posterior.trace.phase.tolist()
        firsts = {phase.index(name) for name in phase}  # its first draws are told, more of them are to come
        screened = {k for k, state in enumerate(states) if getattr(state.search, "current", 0) > 0}
        for k in sorted({*firsts, *list(screened)[::3], len(files) // 2, len(files) - 2}):
            path.write_bytes(files[k])
            assert same(mgvbp.resume(path, function), posterior)
            phases.add(phase[k])
        path.unlink()
    assert phases == {"step", *(phase.value for phase in Phase)}


def alike(a, b, twins):
    """Whether two states cannot be told apart, neither by their values nor by types, memory or what they share."""
    if isinstance(a, np.ndarray | Gaussian) and twins.setdefault(id(a), b) is not b:
        return False
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        strides = a.strides == b.strides or a.size == 0
        return strides and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, Gaussian):
        return all(alike(getattr(a, name), getattr(b, name), twins) for name in ("mean", "factor"))
    if dataclasses.is_dataclass(a):
        names = [field.name for field in dataclasses.fields(a)]
        return all(alike(getattr(a, name), getattr(b, name), twins) for name in names)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(alike(x, y, twins) for x, y in zip(a, b, strict=True))
    return a == b


def again(value):
    """What a file makes of a value."""
    encoder = Encoder()
    text = json.loads(json.dumps(encoder(value)))
    return Decoder({kind: np.concatenate(parts) for kind, parts in encoder.arrays.items()})(text)


def test_states_come_back_as_they_were(path):
    for name in ("starts", "evolution", "ascent", "gradients of several starts", "steps"):
        for state in snapshots(path, *RUNS[name])[2]:
            assert alike(replace(state, rows=()), again(replace(state, rows=())), {})
        path.unlink()


def test_nothing_is_done_again(path, monkeypatch):
    """To resume takes the values of two draws and of those that are new; told are only these."""
    told = []
    for kind in (Optimizer, Rules):
        tell = kind.tell
        monkeypatch.setattr(kind, "tell", lambda *given, tell=tell: (told.append(1), tell(*given))[1])
    for options in (NAMED, {"dim": D, "starts": 3}):
        posterior = mgvbp.fit(Density(), **options)
        iterations, evaluations = len(posterior.trace), posterior.trace.n_evaluations
        for after in (1, iterations // 2, iterations - 1, iterations):
            mgvbp.fit(Density(), checkpoint=path, callback=lambda it, k=after: it.iteration == k, **options)
            function, seen = Density(), []
            told.clear()
            assert same(mgvbp.resume(path, function, callback=lambda it: seen.append(it.iteration)), posterior)
            assert seen == list(range(after + 1, iterations + 1))
            assert len(told) == iterations - after
            assert function.draws == 2 + evaluations[-1] - evaluations[after - 1]
            path.unlink()


def test_a_run_may_be_broken_off_again(path):
    broken_off(path, 10)
    for stop in (20, 30):
        mgvbp.resume(path, Density(), callback=lambda it, stop=stop: it.iteration == stop)
    assert read_checkpoint(path).iterations == 30
    assert same(mgvbp.resume(path, Density()), whole())


def test_a_run_that_broke_down_does_so_again(path):
    """Its last draws are known, so that they are told again, but not evaluated."""

    def ends(theta):
        calls.append(len(theta))
        return Density()(theta) if len(calls) < 6 else np.full(len(theta), np.nan)

    calls = []
    with pytest.warns(ConvergenceWarning, match="broke down"):
        posterior = broken_off(path, -1, ends)
    function = Density()
    with pytest.warns(ConvergenceWarning, match="broke down"):
        assert same(mgvbp.resume(path, function), posterior)
    assert function.draws == 2


# --- killed -------------------------------------------------------------------------------------------


def kinds(pause):
    """The fits of the crash test: arguments of `fit`, with a log-likelihood that takes its time."""
    return {
        "starts": {"log_likelihood": one_by_one(Density(pause)), "dim": D, "vectorized": False, "starts": 3},
        "gradient": {"log_likelihood": WithGradient(2 * pause), "prior": PRIOR, "starts": 2},
        "named": {"log_likelihood": Density(pause / 5), "prior": PRIOR, "method": STEPS, "num_draws": 20},
        "minibatches": {
            "log_likelihood": Minibatches(Linear(3 * pause), X, Y, batch_size=20), "prior": PRIOR, "method": STEPS
        },
        "failures": {"log_likelihood": Failing(pause / 5), "timeout": 60.0, **NAMED},
    }  # fmt: skip


def live(kind, path, result, started):
    """One life of a run: begins or goes on, and tells when it comes to the first evaluation."""
    warnings.simplefilter("ignore")
    options = kinds(pause=1e-3)[kind]
    going = {"every": 0.01, "callback": lambda iteration: started.set(), "timeout": options.pop("timeout", None)}
    if path.exists():
        started.set()
        posterior = mgvbp.resume(path, options["log_likelihood"], **going)
    else:
        posterior = mgvbp.fit(**options, checkpoint=path, **going)
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

    kills, longest, lengths = 0, 0.05, [(0, 0)]
    while kills < 20:
        if life(rng.uniform(0.0, longest)) == 0:  # it came to its end: begin again
            path.unlink()
            continue
        kills += 1
        saved = read_checkpoint(path)
        lengths.append((saved.iterations, int(saved.part.known.sum()) if saved.part else 0))
        longest *= 1.25 if lengths[-1] == lengths[-2] else 0.8  # however slow the machine, it comes on
    assert life(None) == 0
    assert same(mgvbp.load(result), mgvbp.fit(**kinds(0.0)[kind]))
    assert len(set(lengths)) >= 3


def test_a_kill_while_the_file_is_written(saved, monkeypatch):
    """The file is the last one that was whole; what is left of the next one is apart."""
    before = saved.read_bytes()

    def killed(descriptor):
        raise Power

    with monkeypatch.context() as patch:
        patch.setattr(storage.os, "fsync", killed)
        patch.setattr(storage.Path, "unlink", lambda self, missing_ok: None)
        with pytest.raises(Power):
            mgvbp.resume(saved, Density(), every=0.0)
    assert saved.read_bytes() == before
    left = [p.name for p in saved.parent.iterdir() if p != saved]
    assert left
    assert all(name.startswith("run.npz.") and name.endswith(".partial") for name in left)
    assert same(mgvbp.resume(saved, Density()), whole())


# --- interrupted --------------------------------------------------------------------------------------

SHORT = {
    "log_likelihood": one_by_one(Failing()),
    "grad": one_by_one(lambda theta: WithGradient().value_and_grad(theta)[1]),
    "vectorized": False,
    "dim": D,
    "method": STEPS,
    "estimator": "gradient",
    "num_draws": 8,
    "max_iterations": 2,
    "rng": 8,
    "timeout": 60.0,
}


def interrupted(path, line):
    """A fit with control-C at a line, counted from the start, that the module of checkpoints executes."""
    left = [line]

    def trace(frame, event, argument):
        if frame.f_code.co_filename != checkpoint.__file__:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        mgvbp.fit(**SHORT, checkpoint=path, every=1e9)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left[0] <= 0


@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")
def test_interrupted_at_any_line(path, monkeypatch, small_chunks):
    """Whatever it was doing then, the run goes on to the same end, and counts no failure twice or never."""
    monkeypatch.setattr(storage.os, "fsync", lambda descriptor: None)  # there is no power cut here
    monkeypatch.setattr("mgvbp.run.fitting.check_gradient", lambda *given: None)  # nor a wrong gradient
    going = {name: SHORT[name] for name in ("log_likelihood", "grad", "timeout")}
    posterior, line, lengths = mgvbp.fit(**SHORT), 1, set()
    assert posterior.failures["raised"] > 0
    while interrupted(path, line):
        if path.exists():
            saved = read_checkpoint(path)
            lengths.add((saved.iterations, int(saved.part.known.sum()) if saved.part else None))
            assert same(mgvbp.resume(path, **going), posterior)
            path.unlink()
        line += 1
    assert lengths >= {(0, None), (0, 0), (0, 3), (0, 8), (1, None), (1, 1), (1, 8), (2, None)}


@pytest.mark.parametrize("method", [STEPS, "auto"], ids=["named", "auto"])
def test_after_an_interrupt_the_warning_says_how_to_go_on(path, method):
    """As it is written there, the call goes on with the run, in a second life as in the first."""
    settings = {"dim": D, "method": method, "num_draws": 20 if method == STEPS else None}
    pattern = r"^not converged, interrupted: .*mgvbp\.resume\((?P<path>'.*'), \.\.\.\) goes on with it$"
    lives = [
        lambda: mgvbp.fit(failing_at(2, Density()), checkpoint=path, **settings),
        lambda: mgvbp.resume(path, failing_at(3, Density())),  # the first call compares two draws
    ]
    for life in lives:
        with pytest.warns(ConvergenceWarning, match="interrupted") as caught:
            posterior = life()
        assert posterior.stop_reason == "interrupted"
        assert len(caught) == 1
        assert "max_evaluations" not in str(caught[0].message)
        named = literal_eval(re.match(pattern, str(caught[0].message))["path"])
        assert named == str(path)
    assert same(mgvbp.resume(named, Density()), mgvbp.fit(Density(), **settings))


def test_an_interrupt_without_a_result_says_how_to_go_on(path):
    """The start is so far away that the first draws give no surface."""
    for at in (1, 2):
        with pytest.raises(KeyboardInterrupt) as caught:
            mgvbp.fit(failing_at(at, Steep()), dim=D, checkpoint=path, **FAR)
        assert read_checkpoint(path).iterations == at - 1
        advice = f"there is no posterior yet: mgvbp.resume({str(path)!r}, ...) goes on with it"
        assert caught.value.__notes__ == [advice]
        assert same(mgvbp.resume(path, Steep()), mgvbp.fit(Steep(), dim=D, **FAR))
        path.unlink()


def test_without_a_file_the_warning_does_not_name_one(tmp_path):
    """No checkpoint is asked for, or it could not be written."""
    with pytest.warns(ConvergenceWarning, match=r"interrupted: .*max_evaluations") as caught:
        mgvbp.fit(failing_at(2, Density()), dim=D)
    assert "resume" not in str(caught[0].message)
    with pytest.warns(mgvbp.MgvbpWarning) as caught:
        mgvbp.fit(failing_at(2, Density()), dim=D, checkpoint=tmp_path / "nowhere" / "run.npz")
    assert {w.category for w in caught} == {CheckpointWarning, ConvergenceWarning}
    assert not any("resume" in str(w.message) for w in caught)


def test_a_file_that_could_not_be_replaced_is_still_named(path, monkeypatch):
    """The one before is there."""
    full = failing_at(2, lambda given: None, OSError(errno.ENOSPC, "No space left"))
    write = checkpoint.write_archive
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_archive", lambda *given, **options: (full(given), write(*given, **options)))
        with pytest.warns(CheckpointWarning, match="No space"), pytest.warns(ConvergenceWarning, match="resume"):
            mgvbp.fit(failing_at(3, Density()), dim=D, checkpoint=path)
    assert same(mgvbp.resume(path, Density()), mgvbp.fit(Density(), dim=D))


def test_an_exception_leaves_a_checkpoint(path):
    """Of a fault that was put right the run goes on."""
    with pytest.raises(RuntimeError, match="a flaw"):
        broken_off(path, -1, failing_at(6, Density(), RuntimeError("a flaw")))
    assert read_checkpoint(path).iterations == 5
    assert same(mgvbp.resume(path, Density()), whole())


# --- parts of an iteration ----------------------------------------------------------------------------


def test_an_iteration_is_gone_on_with_where_it_was(path, small_chunks):
    """Draws of a long iteration are kept as they come, not only iterations."""
    settings = {"vectorized": False, "max_iterations": 5}
    with pytest.raises(Power):
        broken_off(path, -1, failing_at(55, one_by_one(Density()), Power), every=0.0, **settings)
    saved = read_checkpoint(path)
    assert saved.iterations == 2
    assert saved.part.known.tolist() == [True] * 14 + [False] * 6
    function = Density()
    assert same(mgvbp.resume(path, one_by_one(function)), whole(one_by_one(Density()), **settings))
    assert function.draws == 2 + 6 + 40


def test_a_first_iteration_that_is_not_finished_shows_the_model(path, small_chunks):
    with pytest.raises(Power):
        broken_off(path, -1, failing_at(5, one_by_one(Density()), Power), vectorized=False)
    with pytest.raises(InvalidInputError, match="another model"):
        mgvbp.resume(path, lambda theta: 1.0 + one_by_one(Density())(theta))
    assert same(mgvbp.resume(path, one_by_one(Density())), whole(one_by_one(Density()), vectorized=False))


def test_a_first_iteration_without_a_value_shows_no_model(path, small_chunks):
    with pytest.raises(Power):
        broken_off(path, -1, failing_at(4, lambda theta: np.nan, Power), vectorized=False)
    with pytest.warns(NonFiniteWarning):
        assert mgvbp.resume(path, one_by_one(Density())).trace.dropped[0] == 3


def test_many_chunks_take_no_copies():
    """Values are written in place, and draws are known after that."""
    part = Part.of(np.zeros((1000, 500)))
    part = part.with_rows(np.array([3]), (np.ones(1), np.ones((1, 500))))
    tracemalloc.start()
    try:
        for row in range(4, 200):
            assert part.with_rows(np.array([row]), (np.ones(1), np.ones((1, 500)))) is part
        assert tracemalloc.get_traced_memory()[1] < 10**5
    finally:
        tracemalloc.stop()
    assert np.flatnonzero(part.known).tolist() == list(range(3, 200))
    assert np.array_equal(np.isfinite(part.arrays[1]).all(axis=1), part.known)
    rest = np.flatnonzero(~part.known)
    done = part.completed(rest, (np.zeros(len(rest)), np.zeros((len(rest), 500))))
    assert done.known.all()
    assert np.isnan(part.arrays[0][0])
    assert done.arrays[0].sum() == 197


def test_several_workers(path, monkeypatch, small_chunks):
    """Each chunk of a thread is kept as it comes, and what workers have begun others may end."""
    for name in ("START_UP", "WORTHWHILE"):
        monkeypatch.setattr(f"mgvbp.run.parallel.{name}", 0.0)
    parts, write, options = {}, Recorder.write, {"max_iterations": 4, "estimator": "h", "num_draws": 6}

    def noted(self):
        write(self)
        saved = read_checkpoint(path)
        parts[saved.iterations, int(saved.part.known.sum()) if saved.part else 0] = path.read_bytes()

    with monkeypatch.context() as patch, joblib.parallel_config(backend="threading"):
        patch.setattr(Recorder, "write", noted)
        broken_off(path, -1, one_by_one(Density()), vectorized=False, n_jobs=2, every=0.0, **options)
    assert {(2, known) for known in range(1, 6)} < set(parts)
    mean = whole(**options).mean
    for backend, n_jobs in (("loky", 2), ("threading", 2), ("loky", None)):
        path.write_bytes(parts[2, 4])
        with joblib.parallel_config(backend=backend):
            posterior = mgvbp.resume(path, one_by_one(Density()), n_jobs=n_jobs)
        np.testing.assert_allclose(posterior.mean, mean, rtol=1e-12)
        assert len(posterior.trace) == 4


def test_failures_of_an_earlier_life_are_remembered(path):
    with pytest.warns(NonFiniteWarning):
        posterior = whole(Failing(), timeout=60.0)
    with pytest.warns(NonFiniteWarning):
        half = broken_off(path, 30, Failing(), timeout=60.0)
    with pytest.warns(NonFiniteWarning, match="ValueError: no value here"):
        assert same(mgvbp.resume(path, Failing(), timeout=60.0), posterior)
    assert posterior.failures["raised"] > half.failures["raised"] > 0


# --- settings -----------------------------------------------------------------------------------------

BLOCKS = BlockDiagonal([[2, 0], [1]])
PRIORS = {
    "full": Gaussian(np.ones(3), np.eye(3) + 0.2),
    "diagonal": Gaussian(np.ones(3), np.array([1.0, 2.0, 3.0])),
    "blocks": Gaussian.from_factor(np.ones(3), BLOCKS.factor(variance=np.eye(3) + 0.2), BLOCKS),
}
SETTINGS = [
    {"tol": 0.05, "max_evaluations": 500},
    {"starts": [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]},
    {"family": "diagonal"},
    {"initial_mean": (1, 0, 2), "initial_variance": [1.0, 2.0, np.float32(0.5)]},
    {"initial_variance": 0.5 * np.eye(3), "rng": np.random.default_rng(9)},
    {"method": "qbvi", "estimator": "loglik", "num_draws": 40, "max_iterations": 8},
    {
        "method": QBVI(step_size=0.01, decay_after=None, clip_gradient=10.0), "estimator": Score("h", False),
        "draws": "antithetic", "num_draws": 40, "max_iterations": 8,
    },
    {"method": FAST, "draws": "sobol", "num_draws": 32, "max_iterations": 8},
    {"method": FAST, "rng": np.int64(3), "max_iterations": np.int32(3), "num_draws": np.int64(30)},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")
def test_all_settings_are_restored(path):
    for number, options in enumerate(SETTINGS):
        prior = list(PRIORS.values())[number % 3]
        first, function = mgvbp.fit(Density(), prior, checkpoint=path, **options), Density()
        assert same(mgvbp.resume(path, function), first)
        assert function.draws == 2
        assert read_checkpoint(path).settings["prior"].factor.tobytes() == prior.factor.tobytes()
        path.unlink()


def test_classes_of_settings_survive():
    for kind in CLASSES.values():
        if all(field.default is not dataclasses.MISSING for field in getattr(kind, "__dataclass_fields__", {}).values()):
            value = kind() if dataclasses.is_dataclass(kind) else None
            assert again({"it": value}) == {"it": value}


class Laplace:
    """A prior that a file cannot hold."""

    def log_density(self, theta):
        return -np.abs(theta).sum(axis=1)


def test_other_priors_are_given_again(path):
    first = mgvbp.fit(Density(), Laplace(), dim=D, checkpoint=path)
    with pytest.raises(InvalidInputError, match=r"prior Laplace.*give prior="):
        mgvbp.resume(path, Density())
    assert same(mgvbp.resume(path, Density(), Laplace()), first)


def test_gradients_are_given_again(path):
    options = {"vectorized": False, "grad": lambda theta: -np.sinh(theta)}
    function = one_by_one(lambda theta: -np.cosh(theta).sum(axis=1))
    first = mgvbp.fit(function, dim=D, checkpoint=path, **options)
    assert first.estimator == "gradient"
    assert same(mgvbp.resume(path, function, grad=options["grad"]), first)
    with pytest.raises(InvalidInputError, match="had a gradient, which is not in"):
        mgvbp.resume(path, function)


def test_gradients_of_jax(path):
    jnp = pytest.importorskip("jax.numpy")

    def function(theta):
        return -jnp.cosh(theta - CENTRE).sum(axis=-1)

    for vectorized in (True, False):
        first = mgvbp.fit(function, dim=D, grad="jax", vectorized=vectorized, checkpoint=path)
        assert same(mgvbp.resume(path, function, grad="jax"), first)
        assert same(mgvbp.resume(path, mgvbp.from_jax(function)), first)
        with pytest.raises(InvalidInputError, match="had a gradient, which is not in"):
            mgvbp.resume(path, function)
        with pytest.raises(InvalidInputError, match="grad"):
            mgvbp.resume(path, function, grad="torch")
        path.unlink()


class Score2(Score):
    """A user's estimator."""


Namesake = type("Auto", (Auto,), {})
REFUSED = [
    ({"method": MGVBP(step_size=lambda t: 0.1)}, "method: step_size"),
    ({"method": FAST, "estimator": Score2("h")}, "estimator"),
    ({"method": Namesake()}, "method"),
    ({"initial_mean": "somewhere"}, "initial_mean"),
    ({"checkpoint": 3}, "checkpoint must be the path of a file"),
    *(({"checkpoint": name}, "checkpoint must be the path of a file") for name in ("", ".", "/", "a\0b")),
    *(({"every": every}, "every must be a number") for every in (-1.0, float("nan"), "minute")),
]


def test_arguments_that_are_refused_before_the_run(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    for options, message in REFUSED:
        function = Density()
        with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
            mgvbp.fit(function, **{"dim": D, "checkpoint": path, **options})
        assert function.draws == 0
        assert list(path.parent.iterdir()) == []


# --- another model, prior or version ------------------------------------------------------------------


def test_another_model(saved):
    before = saved.read_bytes()
    function = Density()
    with pytest.raises(InvalidInputError, match=r"run\.npz .*another model: a draw had the log-likelihood -"):
        mgvbp.resume(saved, lambda theta: function(theta) + 1e-4)
    assert function.draws == 2
    with pytest.raises(InvalidInputError, match=r"another model|0 derivatives; this one has 1"):
        mgvbp.resume(saved, WithGradient())
    with pytest.raises(InvalidInputError, match=r"could not be evaluated .*, of dimension 3: ValueError"):
        mgvbp.resume(saved, lambda theta: -((theta - np.ones(4)) ** 2).sum(axis=1))
    assert saved.read_bytes() == before


def test_another_gradient(path):
    """With the same values, as that of a sign error."""
    broken_off(path, 5, WithGradient())

    class Other(WithGradient):
        def value_and_grad(self, theta):
            values, gradients = super().value_and_grad(theta)
            return values, gradients * [1.0, 1.0, -1.0]

    with pytest.raises(InvalidInputError, match=r"another model: a draw has other gradients"):
        mgvbp.resume(path, Other())
    assert same(mgvbp.resume(path, WithGradient()), whole(WithGradient()))


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
    assert len(mgvbp.resume(path, lambda theta: summed(y)(theta) * (1.0 + 1e-13)).trace) > 5


def test_single_precision_is_known_again(path):
    """Its sums depend on how many draws there are at once."""

    def single(theta):
        terms = (np.cosh(theta - CENTRE)[:, None, :] * np.ones((1, 500, 1))).astype(np.float32)
        return -terms.sum(axis=(1, 2)) / 500 * np.float32(1.0 + 1e-5 * (len(theta) < 5))

    broken_off(path, 5, single)
    assert len(mgvbp.resume(path, single).trace) == 60


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


def test_the_right_model_may_fail_once(saved):
    before, posterior = saved.read_bytes(), whole()

    def flaky(times, found):
        def function(theta):
            calls.append(1)
            if len(calls) <= times and found is None:
                raise OSError("no network")
            return Density()(theta) if len(calls) > times else np.full(len(theta), found)

        calls = []
        return function

    for going in ({}, {"timeout": 60.0}):
        for found in (None, np.nan):
            saved.write_bytes(before)
            assert same(mgvbp.resume(saved, flaky(1, found), **going), posterior)
        with pytest.raises(InvalidInputError, match=r"could not be evaluated .*: OSError: no network"):
            mgvbp.resume(saved, flaky(2, None), **going)


def test_a_first_draw_that_failed_is_not_what_the_model_is_known_by(path):
    calls = []

    def flaky(theta):
        calls.append(1)
        values = Density()(theta)
        values[0] = np.nan if len(calls) == 1 else values[0]
        return values

    with pytest.warns(NonFiniteWarning):
        broken_off(path, 5, flaky)
    with pytest.warns(NonFiniteWarning):
        assert len(mgvbp.resume(path, Density()).trace) == 60


def test_another_prior(saved, path):
    """Also where it makes no difference to the draws that were told."""
    with pytest.raises(InvalidInputError, match=r"not the prior of .*, which had none"):
        mgvbp.resume(saved, Density(), Gaussian(np.ones(3), 2.0))
    path.unlink()
    options = {"prior": PRIORS["diagonal"], "initial_mean": np.zeros(3), "max_iterations": 1}
    first = broken_off(path, -1, **options)
    others = [
        Gaussian(np.zeros(3), np.array([1.0, 2.0, 3.0])),
        Gaussian(np.ones(3), np.array([1.0, 2.0, 3.1])),
        Gaussian(variance=1.0, dim=4),
        PRIORS["full"],
        Laplace(),
    ]
    for other in others:
        with pytest.raises(InvalidInputError, match=r"not the prior of .* is in the file: leave prior= out"):
            mgvbp.resume(path, Density(), other)
    assert same(mgvbp.resume(path, Density(), PRIORS["diagonal"]), first)


def test_another_version(path, monkeypatch):
    """Whose states may even have other fields."""
    for module in ("mgvbp.run.fitting", "mgvbp.run.checkpoint"):
        monkeypatch.setattr(f"{module}.__version__", "9.9")
    broken_off(path, 5)
    monkeypatch.undo()
    with pytest.raises(InvalidInputError, match=r"written by mgvbp 9\.9; this is "):
        mgvbp.resume(path, Density())
    monkeypatch.delitem(CLASSES, "State")
    with pytest.raises(FileFormatError, match=r"written by mgvbp 9\.9, is not a valid checkpoint of mgvbp \d"):
        mgvbp.resume(path, Density())


# --- files that are refused ---------------------------------------------------------------------------


def test_other_files(path, saved):
    with pytest.raises(FileFormatError, match="does not hold a mgvbp posterior"):
        mgvbp.load(saved)
    whole(max_iterations=3).save(path)
    with pytest.raises(FileFormatError, match="does not hold a mgvbp checkpoint"):
        mgvbp.resume(path, Density())
    with pytest.raises(FileNotFoundError):
        mgvbp.resume(path.with_name("nothing"), Density())
    with pytest.raises(OSError, match="directory"):
        mgvbp.resume(path.parent, Density())


def contents(path):
    with np.load(path) as archive:
        return dict(archive)


def test_a_changed_file_is_refused(saved):
    """Whatever has changed: an array, the header, or the list of parts."""
    parts = contents(saved)
    header = json.loads(parts["header"].tobytes())
    header["content"]["settings"]["dict"]["num_draws"] = 21
    changes = [
        *({name: np.roll(array, 1)} for name, array in parts.items() if array.any() and name != "header"),
        {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)},
        {"header": np.frombuffer(b"{}", np.uint8)},
        {"more": np.zeros(3)},
        {"float64": None},
        {"float64": np.append(parts["float64"], 0.0)},
        {"float64": parts["float64"].astype(np.float32)},
        {"float64": np.array([None])},
    ]
    for change in changes:
        np.savez(saved, **{name: array for name, array in (parts | change).items() if array is not None})
        with pytest.raises(FileFormatError, match=r"run\.npz"):
            mgvbp.resume(saved, Density())
    np.savez(saved, **parts)
    assert same(mgvbp.resume(saved, Density()), whole())


def test_a_file_that_is_small_by_compression(saved):
    """Ours are not compressed: what they hold is no larger than they are, and nothing larger is made."""
    np.savez_compressed(saved, **contents(saved) | {"float64": np.zeros(5 * 10**6)})
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="larger than they can be"):
            mgvbp.resume(saved, Density())
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


# --- files that are written ---------------------------------------------------------------------------


def test_there_is_a_file_from_the_start(path):
    """So that a script can resume whatever happened."""
    copies = []

    def first(theta):
        if not copies:
            copies.append(shutil.copy(path, path.with_name("copy")))
        return Density()(theta)

    posterior = mgvbp.fit(first, dim=D, checkpoint=path)
    assert read_checkpoint(copies[0]).iterations == 0
    assert same(mgvbp.resume(copies[0], Density()), posterior)


def test_a_run_is_not_begun_where_there_is_something(path):
    """Neither over a run, unfinished or not, as hours of evaluations would be gone, nor over anything else."""
    function = Density()
    for after, iterations in ((1, "1 iteration"), (-1, "60 iterations")):
        broken_off(path, after)
        before = path.read_bytes()
        with pytest.raises(InvalidInputError, match=rf"a checkpoint of {iterations} at .*mgvbp\.resume\('"):
            mgvbp.fit(function, dim=D, checkpoint=path)
        assert path.read_bytes() == before
        path.unlink()
    path.write_text("a thesis")
    for other in (path, path.parent, path.parent / ".." / path.parent.name):
        with pytest.raises(InvalidInputError, match="something that is no checkpoint at"):
            mgvbp.fit(function, dim=D, checkpoint=other)
    assert path.read_text() == "a thesis"
    assert function.draws == 0


def test_nowhere(tmp_path):
    with pytest.warns(CheckpointWarning, match=r"not be written, the run goes on: .*No such file") as caught:
        posterior = broken_off(tmp_path / "nowhere" / "run.npz", -1, every=0.0)
    assert len(caught) == 1
    assert same(posterior, whole())


def test_a_disk_that_fails_for_a_while(path, monkeypatch):
    """One warning, the file of before stays whole, and it is written again when the disk is well."""
    codes = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO)
    for error in (*(OSError(code, os.strerror(code)) for code in codes), MemoryError("Unable to allocate")):
        write, now = storage.write_archive, [0]

        def write_archive(*given, write=write, now=now, error=error, **options):
            def fsync(descriptor):
                if 10 <= now[0] < 15:
                    raise error

            with monkeypatch.context() as patch:
                patch.setattr(storage.os, "fsync", fsync)
                write(*given, **options)

        def log_density(theta, now=now):
            now[0] += 1
            return Density()(theta)

        def after(iteration):
            t = iteration.iteration
            assert read_checkpoint(path).iterations == (t if not 10 <= t < 15 else 9)

        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "write_archive", write_archive)
            with pytest.warns(CheckpointWarning, match=f"the run goes on: .*{error.args[-1]}") as caught:
                broken_off(path, -1, log_density, every=0.0, max_iterations=20, callback=after)
        assert len(caught) == 1
        assert [p.name for p in path.parent.iterdir()] == [path.name]
        path.unlink()


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


def test_a_write_makes_no_copy_of_all(path):
    """With gradients the draws can be most of the memory."""

    class Quadratic:
        def __call__(self, theta):
            return -0.5 * (theta**2).sum(axis=1)

        def value_and_grad(self, theta):
            recorder.append(1)
            return self(theta), -theta

    recorder, shape = [], (100, 5000)
    noted = Recorder(path, 1e9, {})
    theta = np.ones(shape)
    noted.evaluated(lambda *given: Quadratic().value_and_grad(theta), 1, theta)
    size = 2 * theta.nbytes
    tracemalloc.start()
    try:
        noted.write()
        assert tracemalloc.get_traced_memory()[1] < 0.6 * size
    finally:
        tracemalloc.stop()
    assert size < path.stat().st_size < 1.05 * size


def test_a_large_file_is_told_of_once(path, monkeypatch):
    monkeypatch.setattr("mgvbp.run.checkpoint.LARGE", 10_000)
    with pytest.warns(CheckpointWarning, match=r"has grown to .* GiB") as caught:
        broken_off(path, -1, every=0.0)
    assert len(caught) == 1


def test_writes_are_apart(path, monkeypatch):
    """As many seconds as was asked for, by a clock that runs a second an iteration."""
    seconds, writes, write = [0.0], [], Recorder.write
    monkeypatch.setattr("mgvbp.run.checkpoint.time.monotonic", lambda: seconds[0])
    monkeypatch.setattr(Recorder, "write", lambda self: (writes.append(self._saved.iterations), write(self)))

    def log_density(theta):
        seconds[0] += 1.0
        return Density()(theta)

    broken_off(path, 20, log_density, every=6.0)
    assert writes == [0, 6, 12, 18, 20]


def test_it_is_on_the_disk_before_it_has_the_name(path, monkeypatch):
    """And then the name is, where the system can do that."""
    events, fsync, rename = [], os.fsync, storage.Path.replace

    def noted(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def renamed(self, target):
        events.append("name")
        return rename(self, target)

    def no_folders(*arguments):
        raise PermissionError

    monkeypatch.setattr(storage.os, "fsync", noted)
    monkeypatch.setattr(storage.Path, "replace", renamed)
    storage.write_archive(path, "thing", {}, {"x": np.zeros(3)})
    assert events == ["file", "name", "folder"]
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
    found = storage.read_archive(path, "thing", ["x"])[1]["x"]
    np.testing.assert_array_equal(found, np.concatenate(parts), strict=True)
