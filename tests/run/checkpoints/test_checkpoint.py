"""Checkpoints: a run that is broken off, however and however often, ends as if it had not been."""

from __future__ import annotations

import dataclasses
import errno
import json
import multiprocessing
import os
import re
import sys
import threading
import time
import tracemalloc
import warnings
import zlib
from ast import literal_eval
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pytest

import mgvbp
from common import FAST
from mgvbp import MGVBP, QBVI, Auto, BlockDiagonal, Gaussian, Minibatches
from mgvbp.auto.searches.rules import Rules
from mgvbp.auto.state import Phase
from mgvbp.core import storage
from mgvbp.errors import (
    CheckpointWarning,
    ConvergenceWarning,
    FileFormatError,
    InvalidInputError,
    InvalidTypeError,
)
from mgvbp.estimators import Score
from mgvbp.methods.optimizer import Optimizer
from mgvbp.posterior.trace import TRACE_DTYPES
from mgvbp.run import resuming
from mgvbp.run.checkpoints import checkpoint
from mgvbp.run.checkpoints.checkpoint import Recorder, read_checkpoint
from mgvbp.run.checkpoints.encoding import Decoder, Encoder
from mgvbp.run.checkpoints.recognition import difference

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
        return self.value_and_grad(theta)[0]

    def value_and_grad(self, theta):
        logs = theta @ self.powers.T
        with np.errstate(over="ignore"):
            return (3.0 * logs - np.exp(logs)).sum(axis=1), (3.0 - np.exp(logs)) @ self.powers


class Walled:
    """Walls on all sides of nineteen parameters: a search by gradients is stuck before them, and strides."""

    def __call__(self, theta):
        return self.value_and_grad(theta)[0]

    def value_and_grad(self, theta):
        with np.errstate(over="ignore"):
            grown = np.exp(2.0 * theta)
        return (0.7 * theta - 0.5 * grown).sum(axis=1), 0.7 - grown


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
    names = (
        "lower_bound lower_bound_se converged stop_reason method estimator failures gap gap_se other_optima"
    )
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
    monkeypatch.setattr("mgvbp.run.evaluation.attempts.CHUNK", 1e-9)


# --- the state is enough to go on from ----------------------------------------------------------------

STEEP = Steep().__call__
FAR = {"initial_mean": np.full(D, 5.0)}
RUNS = {
    "auto": (Density(), {"dim": D}),
    "starts": (Density(), {"dim": D, "starts": 4}),
    "evolution": (STEEP, {"dim": D, **FAR}),
    "blocks": (Density(), {"dim": D, "family": BlockDiagonal([[2, 0], [1]])}),
    "ascent": (Steep(), {"dim": D, "family": "diagonal", **FAR}),
    "gradients of several starts": (Steep(8), {"dim": 8, "starts": 2, "rng": 1}),
    "strides": (Walled(), {"dim": 19, "max_evaluations": 3000}),
    "steps": (Density(), {"prior": PRIOR, "method": STEPS, "num_draws": 20, "estimator": "loglik"}),
    "minibatches": (
        Minibatches(Linear(0.0), X, Y, batch_size=20),
        {"prior": PRIOR, "method": STEPS, "rng": 5},
    ),
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


@pytest.mark.filterwarnings("ignore:not converged:mgvbp.errors.ConvergenceWarning")  # the one that strides
def test_from_every_phase_a_run_goes_on_bit_for_bit(path):
    phases = set()
    for function, options in RUNS.values():
        posterior, files, states = snapshots(path, function, options)
        assert same(posterior, mgvbp.fit(function, **options))
        phase = posterior.trace.phase.tolist()
        firsts = {phase.index(name) for name in phase}  # its first draws are told, more of them are to come
        screened = {k for k, state in enumerate(states) if getattr(state.search, "current", 0) > 0}
        for k in sorted({*firsts, *list(screened)[::9], len(files) // 2, len(files) - 2}):
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


@pytest.mark.filterwarnings("ignore::mgvbp.ConvergenceWarning")
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
            function = Density()
            told.clear()
            assert same(mgvbp.resume(path, function), posterior)
            assert len(told) == iterations - after
            assert function.draws == 2 + evaluations[-1] - evaluations[after - 1]
            path.unlink()


def test_a_function_may_change_what_it_is_given(path):
    def function(theta):
        values = Density()(theta)
        theta[:] = np.nan
        return values

    broken_off(path, 5, function)
    mgvbp.resume(path, function, callback=lambda it: it.iteration == 10)
    assert same(mgvbp.resume(path, function), whole())


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
    going = {
        "every": 0.01,
        "callback": lambda iteration: started.set(),
        "timeout": options.pop("timeout", None),
    }
    if path.exists():
        started.set()
        posterior = mgvbp.resume(path, options["log_likelihood"], **going)
    else:
        posterior = mgvbp.fit(**options, checkpoint=path, **going)
    posterior.save(result)


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")
@pytest.mark.parametrize("kind", kinds(0.0))
def test_killed_again_and_again(kind, path):
    """Eight times at least, and until it was so at three different places: a busy machine takes more."""
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
    while kills < 8 or len(set(lengths)) < 4:
        if life(rng.uniform(0.0, longest)) == 0:  # it came to its end: begin again
            path.unlink()
            continue
        kills += 1
        saved = read_checkpoint(path)
        lengths.append((saved.iterations, int(saved.part.known.sum()) if saved.part else 0))
        longest *= 1.5 if lengths[-1] == lengths[-2] else 0.8  # however slow the machine, it comes on
    assert life(None) == 0
    assert same(mgvbp.load(result), mgvbp.fit(**kinds(0.0)[kind]))


# --- interrupted --------------------------------------------------------------------------------------

GOING = {
    "log_likelihood": one_by_one(Failing()), "timeout": 60.0,
    "grad": one_by_one(lambda theta: WithGradient().value_and_grad(theta)[1]),
}  # fmt: skip
SHORT = GOING | {
    "dim": D, "vectorized": False, "method": STEPS, "estimator": "gradient", "num_draws": 4, "rng": 4,
    "max_iterations": 2,
}  # fmt: skip


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
    posterior, line, lengths = mgvbp.fit(**SHORT), 1, set()
    assert posterior.failures["raised"] > 0
    while interrupted(path, line):
        if path.exists():
            saved = read_checkpoint(path)
            lengths.add((saved.iterations, int(saved.part.known.sum()) if saved.part else None))
            assert same(mgvbp.resume(path, **GOING), posterior)
            path.unlink()
        line += 2  # a line takes several passes, and is met by some of them
    assert lengths >= {(0, None), (0, 0), (0, 2), (0, 4), (1, None), (1, 1), (1, 4), (2, None)}


@pytest.mark.parametrize("method", [STEPS, "auto"], ids=["named", "auto"])
def test_after_an_interrupt_the_warning_says_how_to_go_on(path, method):
    """As it is written there, the call goes on with the run, in a second life as in the first."""
    settings = {"dim": D, "method": method, "num_draws": 20 if method == STEPS else None}
    pattern = r"^not converged, interrupted: .*mgvbp\.resume\((?P<path>'.*'), \.\.\.\) goes on with it \(docs: .*\)$"
    lives = [
        lambda: mgvbp.fit(
            failing_at(3, Density()), checkpoint=path, **settings
        ),  # the first points give no bound
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
            mgvbp.fit(failing_at(at, STEEP), dim=D, checkpoint=path, **FAR)
        assert read_checkpoint(path).iterations == at - 1
        advice = f"there is no posterior yet: mgvbp.resume({str(path)!r}, ...) goes on with it"
        assert caught.value.__notes__ == [advice]
        assert same(mgvbp.resume(path, STEEP), mgvbp.fit(STEEP, dim=D, **FAR))
        path.unlink()


def test_a_warning_names_the_file_that_there_is(path, tmp_path, monkeypatch):
    """None if no checkpoint was asked for, or if it could not be written; but one that could not be replaced."""
    with pytest.warns(ConvergenceWarning, match="interrupted: the lower bound may be") as caught:
        mgvbp.fit(failing_at(3, Density()), dim=D)
    assert "resume" not in str(caught[0].message)
    with pytest.warns(mgvbp.MgvbpWarning) as caught:
        mgvbp.fit(failing_at(3, Density()), dim=D, every=0.0, checkpoint=tmp_path / "nowhere" / "run.npz")
    assert [w.category for w in caught] == [CheckpointWarning, ConvergenceWarning]
    assert "the run goes on: [Errno 2] No such file" in str(caught[0].message)
    assert "resume" not in str(caught[1].message)
    with monkeypatch.context() as patch:
        error = OSError(errno.ENOSPC, "No space left")
        patch.setattr(storage.os, "fsync", failing_at(3, os.fsync, error))  # the first two are of one file
        with (
            pytest.warns(CheckpointWarning, match="No space"),
            pytest.warns(ConvergenceWarning, match="resume"),
        ):
            mgvbp.fit(failing_at(3, Density()), dim=D, checkpoint=path)
    assert same(mgvbp.resume(path, Density()), mgvbp.fit(Density(), dim=D))


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
    """If it has a value."""
    function = one_by_one(Density())
    with pytest.raises(Power):
        broken_off(path, -1, failing_at(5, function, Power), vectorized=False)
    with pytest.raises(InvalidInputError, match="another model"):
        mgvbp.resume(path, lambda theta: 1.0 + function(theta))
    assert same(mgvbp.resume(path, function), whole(function, vectorized=False))
    path.unlink()
    with pytest.raises(Power):
        broken_off(path, -1, failing_at(4, lambda theta: np.nan, Power), vectorized=False)
    assert mgvbp.resume(path, function).trace.dropped[0] == 3


def test_several_workers(path, monkeypatch, small_chunks):
    """Each chunk of a thread is kept as it comes, and what workers have begun others may end."""
    monkeypatch.setattr("mgvbp.run.evaluation.cost.WORTHWHILE", 0.0)
    parts, write, options = {}, Recorder.write, {"max_iterations": 4, "estimator": "h", "num_draws": 6}

    def noted(self, **options):
        write(self, **options)
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


class Laplace:
    """A prior that a file cannot hold."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def log_density(self, theta):
        return -np.abs(theta).sum(axis=1) / self.scale


def test_gradients_are_given_again(path):
    jnp = pytest.importorskip("jax.numpy")
    function = lambda theta: -jnp.cosh(theta - CENTRE).sum(axis=-1)  # noqa: E731
    slopes = lambda theta: -np.sinh(theta - CENTRE)  # noqa: E731
    for vectorized, grad in ((True, slopes), (False, slopes), (False, "jax")):
        first = mgvbp.fit(function, dim=D, grad=grad, vectorized=vectorized, checkpoint=path)
        assert first.estimator == "gradient"
        assert same(mgvbp.resume(path, function, grad=grad), first)
        for wrong in (None, "tensorflow"):
            with pytest.raises(InvalidInputError, match="grad"):
                mgvbp.resume(path, function, grad=wrong)
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


def test_another_model(path):
    """It is asked for two draws, and the file stays as it is."""
    broken_off(path, 5, WithGradient())
    before, function = path.read_bytes(), WithGradient()

    class Other(WithGradient):
        def value_and_grad(self, theta):
            values, gradients = super().value_and_grad(theta)
            return values, gradients * [1.0, 1.0, -1.0]  # a sign error

    class Wide(WithGradient):
        def value_and_grad(self, theta):
            return function(theta @ np.ones(4)), theta

    with pytest.raises(InvalidInputError, match=r"run\.npz .*another model: a draw had the log-likelihood -"):
        mgvbp.resume(path, lambda theta: function(theta) + 1e-4, grad=lambda theta: theta)
    assert function.draws == 2
    with pytest.raises(InvalidInputError, match="another model: a draw has other gradients"):
        mgvbp.resume(path, Other())
    with pytest.raises(InvalidInputError, match=r"could not be evaluated .*, of dimension 3: ValueError"):
        mgvbp.resume(path, Wide())
    with pytest.raises(InvalidInputError, match="had a gradient, which is not in"):
        mgvbp.resume(path, Density())
    assert path.read_bytes() == before
    assert same(mgvbp.resume(path, function), whole(WithGradient()))
    path.unlink()
    broken_off(path, 3)
    for check in (True, False):
        with pytest.raises(InvalidInputError, match="had no gradient: leave grad= out"):
            mgvbp.resume(path, Density(), grad=lambda theta: -theta, check=check)


def test_what_makes_a_model_another_one():
    """Not its last digits, of which single precision has few, but a change of the data that a large constant hides."""
    values, slopes = np.array([-1e7, -1e7 - 3.0]) - 1 / 3, np.array([[1.0, 2.0], [3.0, 4.0]])
    single = np.float64(np.float32([-123.4567, -120.1234]))
    for before, after, expected in [
        ((values,), (values * (1.0 + 1e-13),), ""),
        ((values,), (values + 1.0,), ""),
        (
            (values,),
            (values + np.array([0.0, 0.1]),),
            "the log-likelihoods of two draws were -3 apart, and are -2.9",
        ),
        ((values[:1],), (values[:1] * (1.0 + 1e-5),), "a draw had the log-likelihood -10000000.33, and has"),
        ((single,), (single * (1.0 + 1e-4),), ""),
        ((single,), (single * (1.0 + 1e-2),), "a draw had the log-likelihood -123.4567"),
        ((values, slopes / 3.0), (values, slopes / 3.0 + 1e-9), ""),
        ((values, slopes), (values, slopes * [1.0, -1.0]), "a draw has other gradients"),
        ((values, slopes, slopes), (values, slopes, slopes + 1.0), "a draw has other squares"),
    ]:
        assert difference(before, after).startswith(expected)
        assert bool(difference(before, after)) == bool(expected)


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


@pytest.mark.filterwarnings("ignore::mgvbp.errors.MgvbpWarning")
def test_one_draw_that_fails_after_the_break_is_no_breakdown(path):
    """The line search of an ascent has one draw an iteration: a failure there is the end only if none had a value."""

    def climbed(theta):
        if abs(theta[0] - 30.0) < 4.0 and not failed:
            failed.append(theta)
        if any(np.array_equal(theta, other) for other in failed):
            raise OSError("no licence")
        return -0.5 * float(np.square(theta - 40.0).sum())

    options = {"dim": 2, "vectorized": False, "grad": lambda theta: 40.0 - theta, "timeout": 60.0}
    failed = []
    alone = mgvbp.fit(climbed, **options)
    for after in (1, 2, 3):
        mgvbp.fit(climbed, **options, checkpoint=path, callback=lambda it, at=after: it.iteration == at)
        posterior = mgvbp.resume(path, climbed, grad=options["grad"], timeout=60.0)
        assert same(posterior, alone)
        path.unlink()


def test_another_prior(path):
    """One that is not Gaussian is given again; else another one is refused, even if it has made no difference yet."""
    options = {"prior": Laplace(), "max_iterations": 1}
    first = broken_off(path, -1, **options)
    with pytest.raises(InvalidInputError, match=r"prior Laplace.*give prior="):
        mgvbp.resume(path, Density())
    with pytest.raises(InvalidInputError, match=r"not the prior of .*: its log density has other values"):
        mgvbp.resume(path, Density(), Laplace(5.0))
    assert same(mgvbp.resume(path, Density(), Laplace()), first)
    others = [Laplace(), PRIORS["full"], PRIORS["diagonal"], Gaussian(variance=1.0, dim=4), PRIOR]
    for prior, had in ((None, "none"), (Gaussian(np.ones(3), np.array([1.0, 2.0, 3.1])), "a Gaussian one")):
        path.unlink()
        first = broken_off(path, -1, **options | {"prior": prior, "initial_mean": np.zeros(3)})
        for other in others:
            with pytest.raises(InvalidInputError, match=rf"not the prior of .*, which had {had}"):
                mgvbp.resume(path, Density(), other)
        assert same(mgvbp.resume(path, Density(), prior), first)


def test_another_version(path, monkeypatch):
    """Its states may even be of classes that this one does not know."""
    with monkeypatch.context() as patch:
        for module in (resuming, checkpoint):
            patch.setattr(module, "__version__", "9.9")
        broken_off(path, 5)
    with pytest.raises(InvalidInputError, match=r"written by mgvbp 9\.9; this is "):
        mgvbp.resume(path, Density())
    monkeypatch.delattr("mgvbp.methods.optimizer.State")
    with pytest.raises(
        FileFormatError, match=r"written by mgvbp 9\.9, is not a valid checkpoint of mgvbp \d"
    ):
        mgvbp.resume(path, Density())


# --- files that are refused ---------------------------------------------------------------------------


def test_other_files_are_refused(path, saved):
    """Whatever has changed: an array, the header, or the list of parts."""
    with np.load(saved) as archive:
        parts = dict(archive)
    header = json.loads(parts["header"].tobytes())
    saved_fields = header["content"]["dict"]["saved"]["fields"]
    saved_fields["settings"]["dict"]["num_draws"] = 21
    changes = [
        *({name: np.append(array[:-1], array[:1] == 0)} for name, array in parts.items() if len(array)),
        *({"header": np.frombuffer(text, np.uint8)} for text in (b"{}", json.dumps(header).encode())),
        *({"float64": array} for array in (None, np.append(parts["float64"], 0.0), np.array([None]))),
        {"float64": parts["float64"].astype(np.float32)},
        {"float64": np.zeros(10**7)},
        {"more": np.zeros(3)},
    ]
    for change in changes:
        changed = {name: array for name, array in (parts | change).items() if array is not None}
        np.savez_compressed(path, **changed)
        with pytest.raises(FileFormatError, match=r"run\.npz"):
            mgvbp.resume(path, Density())
    np.savez(path, **parts)
    with pytest.raises(FileFormatError, match=r"not a posterior but the checkpoint of a run: mgvbp\.resume"):
        mgvbp.load(path)
    posterior = mgvbp.resume(path, Density())
    assert same(posterior, whole())
    posterior.save(path)
    with pytest.raises(FileFormatError, match=r"not a checkpoint but a saved posterior: mgvbp\.load"):
        mgvbp.resume(path, Density())
    for other in (path.with_name("nothing"), path.parent):
        with pytest.raises(OSError, match="directory"):
            mgvbp.resume(other, Density())


# --- files that are written ---------------------------------------------------------------------------


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


def test_of_runs_that_begin_at_once_one_has_the_file(path):
    """They meet in their gradients, which are compared with differences before the file is written."""
    barrier = threading.Barrier(4)

    def begun(number):
        met = []

        def grad(theta):
            if not met:
                met.append(barrier.wait(60.0))
            return -theta

        try:
            return mgvbp.fit(lambda theta: -0.5 * (theta**2).sum(axis=1), dim=2, grad=grad, checkpoint=path)
        except InvalidInputError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        refused = [found for found in pool.map(begun, range(4)) if isinstance(found, str)]
    assert len(refused) == 3
    assert all(re.match(r"there is a checkpoint of \d+ iterations? at ", message) for message in refused)


def test_a_disk_that_fails_for_a_while(path, monkeypatch):
    """One warning, the file of before stays whole, and it is written again when the disk is well."""
    codes, now = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO), [0]

    def fsync(descriptor):
        if 4 <= now[0] < 7:
            raise error

    def log_density(theta):
        now[0] += 1
        return Density()(theta)

    def after(iteration):
        t = iteration.iteration
        assert read_checkpoint(path).iterations == (t if not 4 <= t < 7 else 3)

    monkeypatch.setattr(storage.os, "fsync", fsync)
    for error in (*(OSError(code, os.strerror(code)) for code in codes), MemoryError("Unable to allocate")):
        now[0] = 0
        with pytest.warns(CheckpointWarning, match=f"the run goes on: .*{error.args[-1]}") as caught:
            broken_off(path, -1, log_density, every=0.0, max_iterations=9, callback=after)
        assert len(caught) == 1
        assert [p.name for p in path.parent.iterdir()] == [path.name]
        path.unlink()


def test_a_write_makes_no_copy_of_all(path):
    """With gradients the draws of an iteration can be most of the memory."""
    recorder, theta = Recorder(path, 1e9, {}), np.ones((100, 5000))
    recorder.evaluated(lambda *given: (np.zeros(100), -theta), 1, theta)
    tracemalloc.start()
    try:
        recorder.write()
        assert tracemalloc.get_traced_memory()[1] < 1.2 * theta.nbytes
    finally:
        tracemalloc.stop()
    assert 2.0 * theta.nbytes < path.stat().st_size < 2.1 * theta.nbytes


def test_writes_are_apart(path, monkeypatch):
    """As many seconds as was asked for, by a clock that runs a second an iteration."""
    seconds, writes, write = [0.0], [], Recorder.write
    monkeypatch.setattr("mgvbp.run.checkpoints.checkpoint.time.monotonic", lambda: seconds[0])

    def noted(self, **options):
        writes.append(self._saved.iterations)
        write(self, **options)

    monkeypatch.setattr(Recorder, "write", noted)

    def log_density(theta):
        seconds[0] += 1.0
        return Density()(theta)

    broken_off(path, 20, log_density, every=6.0)
    assert writes == [0, 6, 12, 18, 20]


def test_a_ready_model_that_was_fitted_by_its_gradient_resumes_by_it(tmp_path):
    """`fit` takes the gradient by itself with more than 20 parameters, and so does `resume`."""
    X = np.random.default_rng(0).standard_normal((60, 22))
    model = mgvbp.models.LogisticRegression(X, X[:, 0] > 0.0)
    path = tmp_path / "run.npz"
    first = mgvbp.fit(model, checkpoint=path)
    assert first.estimator == "gradient"
    again = mgvbp.resume(path, model)
    np.testing.assert_array_equal(again.mean, first.mean)


def test_any_model_with_a_gradient_of_its_own_resumes_by_it(tmp_path):
    """A method ``gradient`` serves `fit` where values do not suffice, whatever the class of the model."""

    class Bowl:
        def __call__(self, theta):
            return -0.5 * (theta * theta).sum(axis=1)

        def gradient(self, theta):
            return -theta

    path = tmp_path / "run.npz"
    first = mgvbp.fit(Bowl(), dim=60, checkpoint=path)
    assert first.estimator == "gradient"
    again = mgvbp.resume(path, Bowl())
    np.testing.assert_array_equal(again.mean, first.mean)


def bent(theta):
    return -np.cosh(theta).sum(axis=1) - 0.5 * (theta[:, 0] * theta[:, 1]) ** 2


def slopes(theta):
    x, y, z = theta.T
    return np.column_stack([-np.sinh(x) - x * y * y, -np.sinh(y) - y * x * x, -np.sinh(z)])


@pytest.mark.filterwarnings("ignore::mgvbp.ConvergenceWarning")  # few evaluations
@pytest.mark.parametrize("options", [{}, {"starts": 3}, {"grad": slopes}])
def test_a_fit_that_came_to_its_limit_goes_on_to_a_larger_one(tmp_path, options):
    path, given = tmp_path / "run.npz", {"grad": options.get("grad")}
    first = mgvbp.fit(bent, dim=3, max_evaluations=60, checkpoint=path, **options)
    assert (first.converged, first.n_evaluations <= 60) == (False, True)
    further = mgvbp.resume(path, bent, max_evaluations=5000, **given)
    assert further.converged
    assert 60 < further.n_evaluations < 5000
    np.testing.assert_array_equal(further.trace.lower_bound[: len(first.trace)], first.trace.lower_bound)
    again = mgvbp.resume(path, bent, **given)
    np.testing.assert_array_equal(again.mean, further.mean)
    # what has been certified stays so, whatever the limit
    certified = mgvbp.resume(path, bent, max_evaluations=6000, **given)
    np.testing.assert_array_equal(certified.mean, further.mean)


@pytest.mark.filterwarnings("ignore::mgvbp.ConvergenceWarning")
def test_a_named_method_goes_on_to_a_larger_limit_as_if_it_had_had_it(tmp_path):
    paths = tmp_path / "short.npz", tmp_path / "long.npz"
    for path, limit in zip(paths, (60, 200), strict=True):
        whole = mgvbp.fit(bent, dim=3, method="mgvbp", num_draws=10, max_evaluations=limit, checkpoint=path)
    further = mgvbp.resume(paths[0], bent, max_evaluations=200)
    np.testing.assert_array_equal(further.mean, whole.mean)
    assert further.n_evaluations == whole.n_evaluations


@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")
@pytest.mark.parametrize(
    "options", [{}, {"starts": 3}, {"grad": slopes}, {"grad": slopes, "family": mgvbp.LowRank(1)}]
)
def test_no_limit_is_exceeded_by_going_on(tmp_path, options):
    given = {"grad": options.get("grad")}
    for old in (64, 90, 130):
        path = tmp_path / f"{old}.npz"
        mgvbp.fit(bent, dim=3, max_evaluations=old, checkpoint=path, **options)
        for more in (1, 10, 40):
            posterior = mgvbp.resume(path, bent, max_evaluations=old + more, **given)
            assert posterior.n_evaluations <= old + more
            again = mgvbp.resume(path, bent, **given)
            np.testing.assert_array_equal(again.mean, posterior.mean)


@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")
def test_limits_that_a_fit_cannot_go_on_to(tmp_path):
    path, mixture = tmp_path / "run.npz", tmp_path / "mixture.npz"
    mgvbp.fit(bent, dim=3, max_evaluations=60, checkpoint=path)
    with pytest.raises(mgvbp.InvalidInputError, match="max_evaluations is 50, but the fit had 60"):
        mgvbp.resume(path, bent, max_evaluations=50)
    with pytest.raises(mgvbp.InvalidTypeError, match="max_evaluations"):
        mgvbp.resume(path, bent, max_evaluations="100")
    assert mgvbp.resume(path, bent, max_evaluations=60).n_evaluations <= 60
    mgvbp.fit(bent, dim=3, max_evaluations=100, family="mixture", checkpoint=mixture)
    with pytest.raises(mgvbp.InvalidInputError, match="limit of a mixture"):
        mgvbp.resume(mixture, bent, max_evaluations=500)
