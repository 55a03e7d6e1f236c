"""Bad arguments and bad functions: each call fails with a typed error that says what came, or is survived."""

import inspect
import warnings
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import mgvbp
from common import FAST, LogDensity, case
from mgvbp import MGVBP, Auto, BlockDiagonal, Gaussian, fit
from mgvbp import errors as errors_module
from mgvbp.errors import (
    LONGEST,
    ConvergenceWarning,
    DivergenceError,
    EvaluationError,
    InvalidInputError,
    InvalidTypeError,
    MgvbpError,
    MgvbpWarning,
    NonFiniteWarning,
    NotPositiveDefiniteError,
    UnknownNameError,
)
from mgvbp.transforms import Positive, Real, Simplex

CENTRE = np.array([1.0, -2.0])
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])
FAMILIES = {"full": "full", "diagonal": "diagonal", "block": BlockDiagonal([[1], [0]])}
NOT_FINITE = [np.nan, np.inf, -np.inf]
SHORT = MGVBP(step_size=0.3, momentum=0.0, precision_scale=2.0, decay_after=None, window=5)


def log_density(theta):
    """Log of a Gaussian at `CENTRE`, two parameters, without its constant."""
    deviation = theta - CENTRE
    return -0.5 * np.einsum("si,ij,sj->s", deviation, np.linalg.inv(COVARIANCE), deviation)


NORMAL = Gaussian(variance=1.0, dim=3)
fit2 = partial(fit, log_density, dim=2)
step2 = partial(fit2, method=FAST)


@cache
def posterior():
    return fit2(max_iterations=20)


@cache
def state(dim=2, family="full"):
    return MGVBP().start(dim, family=family).state


def returning(function, **options):
    """A fit of two parameters whose log-likelihood returns ``function(theta)``."""
    return partial(fit, function, dim=2, **options)


def diagnosing(function):
    return lambda: posterior().diagnose(log_density=function)


def stepping(step_size):
    return partial(fit2, method=MGVBP(step_size=lambda t: step_size), max_iterations=3)


RAGGED = [[1.0], [1.0, 2.0]]
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
LOPSIDED = [[1.0, 0.5], [0.0, 1.0]]
COMPLEX = np.array([1.0 + 1.0j, 1.0])

BAD_GAUSSIANS = [
    ("no scale", lambda: Gaussian(dim=2), InvalidInputError, "exactly one of variance= and precision="),
    ("both scales", lambda: Gaussian(0.0, 1.0, 1.0, 2), InvalidInputError, "exactly one of variance="),
    ("dim unknown", lambda: Gaussian(variance=1.0), InvalidInputError, "give dim="),
    (
        "matrix mean",
        lambda: Gaussian(np.eye(2), 1.0),
        InvalidInputError,
        r"mean .*vector; got shape \(2, 2\)",
    ),
    (
        "mean against variance",
        lambda: Gaussian(np.zeros(3), [1.0, 1.0]),
        InvalidInputError,
        r"mean has shape \(3,\) and variance \(2,\).*expected",
    ),
    (
        "mean against matrix",
        lambda: Gaussian(np.zeros(3), precision=np.eye(2)),
        InvalidInputError,
        r"mean has shape \(3,\) and precision \(2, 2\).*expected",
    ),
    ("mean against dim", lambda: Gaussian(np.zeros(3), 1.0, dim=2), InvalidInputError, r"\(3,\).*dim=2"),
    ("oblong variance", lambda: Gaussian(0.0, np.ones((2, 3))), InvalidInputError, r"variance \(2, 3\)"),
    ("cube variance", lambda: Gaussian(0.0, np.ones((2, 2, 2))), InvalidInputError, r"\(2, 2, 2\)"),
    ("nan mean", lambda: Gaussian([0.0, np.nan], 1.0), InvalidInputError, "mean has non-finite"),
    ("zero variance", lambda: Gaussian(0.0, 0.0, dim=2), NotPositiveDefiniteError, "variance must be pos"),
    (
        "negative variance",
        lambda: Gaussian(0.0, [1.0, -1.0]),
        NotPositiveDefiniteError,
        r"variance must be positive definite.*-1",
    ),
    ("zero matrix", lambda: Gaussian(0.0, np.zeros((2, 2))), NotPositiveDefiniteError, "variance must be"),
    ("zero precision", lambda: Gaussian(precision=0.0, dim=2), NotPositiveDefiniteError, "precision must"),
    ("indefinite variance", lambda: Gaussian(0.0, INDEFINITE), NotPositiveDefiniteError, "variance must be"),
    (
        "indefinite precision",
        lambda: Gaussian(precision=INDEFINITE),
        NotPositiveDefiniteError,
        "precision must be positive definite",
    ),
    ("lopsided variance", lambda: Gaussian(0.0, LOPSIDED), NotPositiveDefiniteError, "variance is not symm"),
    (
        "lopsided precision",
        lambda: Gaussian(precision=LOPSIDED),
        NotPositiveDefiniteError,
        "precision is not symmetric",
    ),
    ("empty variance", lambda: Gaussian(0.0, np.zeros((0, 0))), InvalidInputError, "empty|dim|at least one"),
    (
        "theta vector",
        lambda: NORMAL.log_density(np.zeros(3)),
        InvalidInputError,
        r"\(3,\); expected \(S, 3\)",
    ),
    ("theta wide", lambda: NORMAL.log_density(np.zeros((2, 4))), InvalidInputError, r"\(2, 4\); expected"),
]

BAD_BLOCKS = [
    ("gap", lambda: BlockDiagonal([[0, 1], [3]]), InvalidInputError, r"missing \[2\]"),
    ("repeat", lambda: BlockDiagonal([[0, 1], [1, 2]]), InvalidInputError, r"repeated \[1\]"),
    ("negative", lambda: BlockDiagonal([[0, -1]]), InvalidInputError, "negative indices are not allowed"),
    ("no blocks", lambda: BlockDiagonal([]), InvalidInputError, r"non-empty.*got \[\]"),
    ("empty block", lambda: BlockDiagonal([[], [0]]), InvalidInputError, r"non-empty.*got \[\[\], \[0\]\]"),
    ("mixed", lambda: BlockDiagonal([2, [2]]), InvalidInputError, "all sizes .*or all lists"),
    ("zero size", lambda: BlockDiagonal([0, 2]), InvalidInputError, r"positive; got \[0, 2\]"),
    ("negative size", lambda: BlockDiagonal([2, -1]), InvalidInputError, r"positive; got \[2, -1\]"),
    ("fraction size", lambda: BlockDiagonal([1.5, 2]), InvalidInputError, "integer sizes; got"),
    ("float indices", lambda: BlockDiagonal([[0.0, 1.0]]), InvalidInputError, "lists of integers"),
    ("too deep", lambda: BlockDiagonal([[[0, 1]], [[2, 3]]]), InvalidInputError, "all sizes .*or all lists"),
]

BAD_METHODS = [
    ("step_size zero", lambda: MGVBP(step_size=0.0), InvalidInputError, "step_size must be positive; got 0"),
    ("momentum one", lambda: MGVBP(momentum=1.0), InvalidInputError, r"momentum must be in \[0, 1\); got 1"),
    ("window zero", lambda: MGVBP(window=0), InvalidInputError, "window must be at least 1; got 0"),
    ("scale zero", lambda: MGVBP(precision_scale=0.0), InvalidInputError, "precision_scale must be positive"),
    (
        "clip negative",
        lambda: MGVBP(clip_natural_gradient=-1.0),
        InvalidInputError,
        "clip_natural_gradient must be positive; got -1",
    ),
    ("clip_initial alone", lambda: MGVBP(clip_initial=1.0), InvalidInputError, "set that threshold too"),
    ("other class", lambda: mgvbp.QBVI(step_size=0.0), InvalidInputError, "QBVI: step_size"),
    ("schedule negative", stepping(-1.0), MgvbpError, r"step_size.*-1"),
]

BAD_PROBLEMS = [
    ("not callable", lambda: fit(3.0, dim=2), InvalidTypeError, "log_likelihood must be a function.*float"),
    ("a class", lambda: fit(dict, dim=2), InvalidTypeError, "must be a function.*got the class dict itself"),
    ("prior number", partial(fit2, 3.0), InvalidTypeError, "prior must be a mgvbp.Gaussian.*got float"),
    ("prior list", partial(fit2, [stats.norm(), stats.norm()]), InvalidTypeError, "prior must be.*got list"),
    ("prior dict", partial(fit2, {"theta": stats.norm()}), InvalidTypeError, "for a mgvbp.Model a dict"),
    (
        "prior of one draw",
        partial(fit2, np.sum),
        EvaluationError,
        r"prior of theta returned shape \(\).*per draw",
    ),
    (
        "gradient as prior",
        partial(fit2, np.negative),
        EvaluationError,
        "prior of theta returned shape .*per draw",
    ),
    ("prior support", partial(fit2, stats.halfnorm()), InvalidInputError, "prior of theta has the support"),
    ("prior class", partial(fit2, Gaussian), InvalidTypeError, "prior must be.*got"),
    ("prior attribute", partial(fit2, LogDensity(3.0)), InvalidTypeError, "prior"),
    (
        "prior matrix",
        partial(step2, LogDensity(lambda theta: theta), num_draws=12),
        EvaluationError,
        r"prior.log_density returned shape \(12, 2\); expected \(12,\)",
    ),
    (  # vectorized= says nothing about the prior, so that it is no advice here
        "prior scalar",
        partial(step2, LogDensity(lambda theta: 0.0), num_draws=12),
        EvaluationError,
        r"prior.log_density returned shape \(\); expected \(12,\): one value per draw\n",
    ),
    (
        "loglik without prior",
        partial(step2, estimator="loglik"),
        InvalidInputError,
        "needs a Gaussian prior.*use estimator='h'",
    ),
    (
        "loglik with another prior",
        partial(step2, LogDensity(log_density), estimator="loglik"),
        InvalidInputError,
        "needs a Gaussian prior",
    ),
    ("dim unknown", lambda: fit(log_density), InvalidInputError, "give dim=, initial_mean= or a Gaussian"),
    ("dim unknown with prior", lambda: fit(log_density, LogDensity(len)), InvalidInputError, "give dim="),
    (
        "dim against prior",
        partial(fit2, NORMAL),
        InvalidInputError,
        "the prior has 3 parameters, but 2 were asked for",
    ),
    (
        "blocks against dim",
        partial(fit2, family=BlockDiagonal([1, 2])),
        InvalidInputError,
        r"covers 3 parameters, but the problem has 2",
    ),
]

BAD_RETURNS = [
    (
        "column",
        returning(lambda theta: log_density(theta)[:, None], method=FAST, num_draws=12),
        EvaluationError,
        r"log_likelihood returned shape \(12, 1\); expected \(12,\): one value per draw: is a sum over axis=1 missing",
    ),
    (
        "entries of a row taken for columns",
        returning(lambda theta: -(theta[0] ** 2), vectorized=True, method=FAST, num_draws=12),
        EvaluationError,
        r"returned shape \(2,\); expected \(12,\): one value per draw; it looks written for one draw",
    ),
    (
        "scalar",
        returning(lambda theta: 0.0, vectorized=True),
        EvaluationError,
        r"shape \(\); expected.*try vectorized=False",
    ),
    (
        "one short",
        returning(lambda theta: log_density(theta)[1:], method=FAST, num_draws=12),
        EvaluationError,
        r"shape \(11,\); expected \(12,\)",
    ),
    (
        "complex",
        returning(lambda theta: log_density(theta) + 0j),
        EvaluationError,
        "complex128 values; expec",
    ),
    ("nothing", returning(lambda theta: None), EvaluationError, "None; expected real numbers: is its return"),
    (
        "nothing row by row",
        returning(lambda theta: None, vectorized=False),
        EvaluationError,
        "returned None; expected real",
    ),
    (
        "truth values",
        returning(lambda theta: log_density(theta) > -1.0),
        EvaluationError,
        "bool values; expected real",
    ),
    ("ragged", returning(lambda theta: RAGGED), EvaluationError, "returned values of unequal shapes"),
    (
        "row wise vector",
        returning(lambda theta: theta, vectorized=False, method=FAST, num_draws=12),
        EvaluationError,
        r"returned shape \(2,\) for one draw; expected a number",
    ),
    (
        "row wise ragged",
        returning(lambda theta: np.zeros(1 + (theta[0] > 0)), vectorized=False),
        EvaluationError,
        "unequal shapes",
    ),
]

BAD_OPTIONS = [
    (
        "mean length",
        partial(fit2, initial_mean=np.zeros(3)),
        InvalidInputError,
        r"initial_mean.*\(3,\).*\(2,\)",
    ),
    (
        "mean against prior",
        lambda: fit(log_density, NORMAL, initial_mean=[0.0, 0.0]),
        InvalidInputError,
        r"initial_mean.*\(2,\).*\(3,\)",
    ),
    ("mean matrix", partial(fit2, initial_mean=np.eye(2)), InvalidInputError, r"initial_mean.*\(2, 2\)"),
    (
        "variance length",
        partial(fit2, initial_variance=np.ones(3)),
        InvalidInputError,
        r"initial_variance has shape \(3,\); expected \(\), \(2,\) or \(2, 2\)",
    ),
    (
        "variance zero",
        partial(fit2, initial_variance=0.0),
        NotPositiveDefiniteError,
        "initial_variance must be",
    ),
    ("variance negative", partial(fit2, initial_variance=-1.0), NotPositiveDefiniteError, "initial_variance"),
    (
        "variance indefinite",
        partial(fit2, initial_variance=INDEFINITE),
        NotPositiveDefiniteError,
        "initial_variance must be positive definite",
    ),
    (
        "variance lopsided",
        partial(fit2, initial_variance=LOPSIDED),
        NotPositiveDefiniteError,
        "initial_variance is not symmetric",
    ),
    (
        "few for regression",
        partial(step2, num_draws=5, estimator="regression"),
        InvalidInputError,
        r"num_draws=5 is too small.*full family needs at least 6 draws at d=2; give more",
    ),
    (
        "few antithetic",
        partial(step2, num_draws=6, draws="antithetic", estimator="regression"),
        InvalidInputError,
        "needs at least 8 antithetic draws",
    ),
    ("one draw", partial(step2, num_draws=1), InvalidInputError, "num_draws=1 is too small.*at least 2"),
    ("odd", partial(step2, num_draws=21, draws="antithetic"), InvalidInputError, "must be even, got 21"),
    ("method", partial(fit2, method="adam"), InvalidInputError, r"method must be one of 'auto'.*'adam'"),
    ("method class", partial(fit2, method=MGVBP), InvalidInputError, "method must be.*or a Method; got"),
    ("family", partial(fit2, family="low-rank"), InvalidInputError, "family must be.*got 'low-rank'"),
    ("family list", partial(fit2, family=[1, 1]), InvalidInputError, r"BlockDiagonal\(.*got \[1, 1\]"),
    ("estimator", partial(step2, estimator="reparam"), InvalidInputError, "estimator must be.*'reparam'"),
    ("draws", partial(step2, draws="halton"), InvalidInputError, "draws must be one of 'auto'.*'halton'"),
    ("rng negative", partial(fit2, rng=-1), InvalidTypeError, "rng must be a non-negative int.*got -1"),
    (
        "rng legacy",
        partial(fit2, rng=np.random.RandomState(0)),
        InvalidTypeError,
        "Generator; got RandomState",
    ),
    (
        "max_evaluations small",
        partial(step2, num_draws=20, max_evaluations=19),
        InvalidInputError,
        "max_evaluations .one iteration takes 20. must be at least 20; got 19",
    ),
]

OWN_DRAWS = "method='auto' chooses its own draws; estimator=, draws= and num_draws= go with a named method"
BAD_AUTO = [
    ("num_draws", partial(fit2, num_draws=20), InvalidInputError, OWN_DRAWS),
    ("estimator", partial(fit2, estimator="regression"), InvalidInputError, OWN_DRAWS),
    ("estimator object", partial(fit2, estimator=mgvbp.Score("h")), InvalidInputError, OWN_DRAWS),
    ("draws", partial(fit2, draws="sobol"), InvalidInputError, OWN_DRAWS),
    ("by name", partial(fit2, method="auto", num_draws=20), InvalidInputError, OWN_DRAWS),
    ("Auto tol", lambda: Auto(tol=0.0), InvalidInputError, "tol must be positive; got 0"),
    ("starts vector", partial(fit2, starts=[0.0, 1.0]), InvalidInputError, r"starts has shape \(2,\); exp"),
    (
        "starts wide",
        partial(fit2, starts=np.zeros((4, 3))),
        InvalidInputError,
        r"starts has shape \(4, 3\); expected a number, or means \(K, 2\)",
    ),
    ("starts empty", partial(fit2, starts=np.zeros((0, 2))), InvalidInputError, r"starts has shape \(0, 2\)"),
    ("max_evaluations one", partial(fit2, max_evaluations=1), InvalidInputError, "max_evaluations .*least 2"),
    ("no parameters", lambda: Auto().start(0), InvalidInputError, "dimension must be at least 1; got 0"),
    (
        "tell column",
        lambda: Auto().start(2).tell(np.zeros((12, 1))),
        EvaluationError,
        r"shape \(12, 1\); expected",
    ),
]

BAD_STARTS = [
    ("no parameters", lambda: MGVBP().start(0), InvalidInputError, "dimension must be at least 1; got 0"),
    (
        "method by hand",
        lambda: mgvbp.Optimizer(MGVBP(), 2, family="x"),
        InvalidInputError,
        "family must be.*'x'",
    ),
    ("state of fewer", lambda: MGVBP().start(3, state=state(2)), InvalidInputError, "state"),
    (
        "state of one, broadcast",
        lambda: MGVBP().start(2, family="diagonal", state=state(1, "diagonal")),
        InvalidInputError,
        "state",
    ),
    (
        "state of another family",
        lambda: MGVBP().start(2, family="diagonal", state=state(2)),
        InvalidInputError,
        "state",
    ),
    (
        "tell column",
        lambda: MGVBP().start(2, num_draws=12).tell(np.zeros((12, 1))),
        EvaluationError,
        r"shape \(12, 1\); expected \(12,\)",
    ),
]

BAD_DIAGNOSES = [
    ("few", lambda: posterior().diagnose(10), InvalidInputError, "num_draws must be at least 25.*got 10"),
    (
        "column",
        diagnosing(lambda theta: log_density(theta)[:, None]),
        EvaluationError,
        r"log_density returned shape \(\d+, 1\); expected \(\d+,\)",
    ),
    ("scalar", diagnosing(lambda theta: 0.0), EvaluationError, r"log_density returned shape \(\); expected"),
    ("short", diagnosing(lambda theta: log_density(theta)[1:]), EvaluationError, r"returned shape \(\d+,\)"),
    ("nan", diagnosing(lambda theta: log_density(theta) * np.nan), DivergenceError, "nan or infinite"),
    ("inf", diagnosing(lambda theta: log_density(theta) + np.inf), DivergenceError, "nan or infinite"),
    ("minus inf", diagnosing(lambda theta: log_density(theta) - np.inf), DivergenceError, "nan or infinite"),
]

BAD_NAMES = [
    (
        "label of an entry",
        lambda: mgvbp.Parameters({"a[0]": Real(), "a": Real(2)}),
        InvalidInputError,
        r"the name a\[0\] is also that of an entry of another",
    ),
    (
        "entry of a value",
        lambda: mgvbp.Parameters({"a[2]": Real(), "a": Simplex(3)}),
        InvalidInputError,
        "entry",
    ),
    ("number", lambda: mgvbp.Parameters({1: Real()}), InvalidTypeError, "name must be a string; got 1"),
    (
        "escape",
        lambda: mgvbp.Parameters({"\x1b[2J": Real()}),
        InvalidInputError,
        r"printable.*got '\\x1b\[2J'",
    ),
    ("shared", lambda: mgvbp.Parameters({("a", "b\n"): Simplex(2)}), InvalidInputError, r"printable.*'b\\n'"),
    (
        "column",
        lambda: mgvbp.models.LinearRegression(np.eye(2), [0.0, 1.0], names=["a", "b\r"]),
        InvalidInputError,
        "printable",
    ),
    ("load", lambda: mgvbp.load(None), InvalidTypeError, "path must be the path of a file; got None"),
    (
        "vectorized",
        partial(fit2, vectorized="yes"),
        InvalidTypeError,
        "vectorized must be True or False.*'yes'",
    ),
]

BAD_SIZES = [  # on a machine of 16 GB
    (
        "full",
        lambda: fit(log_density, dim=10**5),
        InvalidInputError,
        "full family with 100,000 parameters would take 160 GB, but this machine has 16 GB: try family='diagonal'",
    ),
    (
        "prior",
        lambda: Gaussian(variance=1.0, dim=10**9),
        InvalidInputError,
        "diagonal .*32 GB.*fewer parameters",
    ),
    ("parameters", lambda: fit(log_density, dim=10**9), InvalidInputError, "fit of 1,000,000,000 par.*32 GB"),
    (
        "labels",
        lambda: fit(mgvbp.Model(lambda a: a[:, 0], mgvbp.Parameters(a=Real(10**9)))),
        InvalidInputError,
        "112 GB",
    ),
    ("blocks", lambda: BlockDiagonal([10**5, 2]), InvalidInputError, "up to 100,000 .*80 GB.*smaller ones"),
    (
        "draws",
        lambda: NORMAL.sample(10**9),
        InvalidInputError,
        "1,000,000,000 draws .*48 GB.*fewer at a time",
    ),
    ("num_draws", partial(step2, num_draws=10**9), InvalidInputError, "32 GB.*give num_draws="),
    (
        "beyond measure",
        lambda: Gaussian(np.zeros(3), 1.0).sample(2**62),
        InvalidInputError,
        "over a billion GB",
    ),
    (
        "tiny",
        partial(fit2, initial_variance=1e-320),
        InvalidInputError,
        "initial_variance must be between 1e-150",
    ),
    (
        "vast",
        partial(fit2, initial_variance=1e300),
        InvalidInputError,
        "initial_variance must be between 1e-150",
    ),
]


def test_names_with_brackets_are_saved_and_loaded(tmp_path):
    names = mgvbp.Parameters({"a[0]": Real(), "a": Real(), "b": Simplex(2)})
    fit(mgvbp.Model(lambda **v: -(v["a"] ** 2) - v["a[0]"] ** 2, names)).save(tmp_path / "q.npz")
    assert mgvbp.load(tmp_path / "q.npz").parameters == names


def test_a_message_is_one_short_line():
    error = UnknownNameError(f"no parameter is called \x1b[31mred\n{'a, ' * 1000}")
    assert str(error).isprintable()
    assert len(str(error)) == LONGEST
    assert str(error).startswith("no parameter is called \N{REPLACEMENT CHARACTER}[31mred a, ")


TABLE = {
    "name": BAD_NAMES,
    "size": BAD_SIZES,
    "gaussian": BAD_GAUSSIANS,
    "blocks": BAD_BLOCKS,
    "method": BAD_METHODS,
    "problem": BAD_PROBLEMS,
    "return": BAD_RETURNS,
    "option": BAD_OPTIONS,
    "auto": BAD_AUTO,
    "start": BAD_STARTS,
    "diagnose": BAD_DIAGNOSES,
}


@pytest.mark.parametrize("group", TABLE)
def test_bad_calls(group, monkeypatch):
    monkeypatch.setattr("mgvbp.core.checks.memory", lambda: 16e9)
    for name, call, error, message in TABLE[group]:
        with case(name):
            with pytest.raises(error, match=f"(?s){message}") as caught:
                call()
            assert isinstance(caught.value, MgvbpError)


def test_every_error_has_the_same_base():
    classes = [c for _, c in inspect.getmembers(errors_module, inspect.isclass)]
    assert all(issubclass(c, MgvbpWarning if issubclass(c, Warning) else MgvbpError) for c in classes)
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(InvalidTypeError, TypeError)


@pytest.mark.parametrize("rows", ["log_likelihood", "prior"])
@pytest.mark.parametrize("options", [{"method": FAST, "num_draws": 12}, {}], ids=["named", "auto"])
def test_a_bad_return_comes_with_the_draws(options, rows):
    call = (
        partial(fit, log_density, LogDensity(np.sum))
        if rows == "prior"
        else partial(fit, np.sum, vectorized=True)
    )
    with pytest.raises(EvaluationError, match=f"{rows}.*one value per draw") as caught:
        call(dim=2, **options)
    number = options.get("num_draws") or len(Auto().start(2).ask())
    assert caught.value.theta.shape == (number, 2)


def test_arrays_given_to_constructors_are_copied():
    mean, variance, block = np.zeros(2), np.eye(2), np.array([0, 1])
    gaussian, family = Gaussian(mean, variance), BlockDiagonal([block, [2]])
    mean[:], variance[:], block[:] = 9.0, 9.0, 9
    assert np.array_equal(gaussian.mean, [0.0, 0.0])
    assert np.array_equal(gaussian.covariance, np.eye(2))
    assert repr(family) == "BlockDiagonal([[0, 1], [2]])"


# --- exceptions inside the user's function ------------------------------------------------------------


class ModelError(RuntimeError):
    """An exception of the user's own."""


def broken(theta):
    raise ModelError("singular design")


def notes(error):
    return " ".join(getattr(error, "__notes__", []))


def test_an_exception_passes_through_with_all_draws():
    seen = []

    def function(theta):
        seen.append(theta.copy())
        broken(theta)

    with pytest.raises(ModelError, match="singular design") as caught:
        fit(function, dim=2)
    assert str(caught.value) == "singular design"
    assert np.array_equal(caught.value.theta, seen[0])
    assert "given to mgvbp" in notes(caught.value)


def test_an_exception_passes_through_with_its_row():
    seen = []

    def function(row):
        seen.append(row.copy())
        return broken(row) if len(seen) == 30 else -0.5 * row @ row

    with pytest.raises(ModelError) as caught:
        fit(function, dim=2, vectorized=False, method=FAST, num_draws=12)
    assert caught.value.theta.shape == (2,)
    assert np.array_equal(caught.value.theta, seen[-1])
    assert len(seen) == 30
    assert "(2,)" in notes(caught.value)


def test_an_exception_in_the_prior_passes_through():
    with pytest.raises(ModelError) as caught:
        fit(log_density, LogDensity(broken), dim=2, method=FAST, num_draws=12)
    assert caught.value.theta.shape == (12, 2)


# --- values that are not finite -----------------------------------------------------------------------


def spoilt(value, fraction, seed=0):
    """`log_density` with a random part of its values replaced, and the list of how many were at each call."""
    rng, counts = np.random.default_rng(seed), []

    def function(theta):
        bad = rng.random(len(theta)) < fraction
        counts.append(np.count_nonzero(bad))
        return np.where(bad, value, log_density(theta))

    return function, counts


def all_finite(posterior):
    arrays = posterior.mean, posterior.factor, posterior.covariance, posterior.precision, posterior.std
    return all(np.isfinite(a).all() for a in arrays) and np.isfinite(posterior.lower_bound)


@pytest.mark.parametrize("value", NOT_FINITE)
def test_bad_draws_are_dropped_counted_and_warned_of_once(value):
    function, counts = spoilt(value, 0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = fit(function, dim=2, method=SHORT, num_draws=30, max_iterations=60)
    assert [w.category for w in caught] == [NonFiniteWarning]
    assert "left out" in str(caught[0].message)
    assert np.array_equal(posterior.trace.dropped, counts)
    assert f"{sum(counts):,} draws with non-finite values" in posterior.summary()
    assert all_finite(posterior)
    # regression meets a Gaussian target exactly with the draws that are left
    np.testing.assert_allclose(posterior.mean, CENTRE, atol=1e-6)
    np.testing.assert_allclose(posterior.covariance, COVARIANCE, atol=1e-6)


@pytest.mark.parametrize("estimator", ["h", "loglik"])
def test_bad_draws_do_not_bias_the_score_estimators(estimator):
    function, counts = spoilt(np.nan, 0.1)
    method = MGVBP(step_size=0.1, decay_after=50)
    prior = Gaussian(variance=1e6, dim=2)
    with pytest.warns(NonFiniteWarning, match="non-finite"):
        posterior = fit(
            function, prior, method=method, estimator=estimator, num_draws=300, max_iterations=300
        )
    assert posterior.trace.dropped.sum() == sum(counts)
    np.testing.assert_allclose(posterior.mean, CENTRE, atol=0.1)
    np.testing.assert_allclose(posterior.covariance, COVARIANCE, atol=0.1)


def test_opposite_infinities_of_prior_and_likelihood_are_dropped():
    """inf − inf is one more non-finite value: no RuntimeWarning on the way."""

    def where_large(value):
        return lambda theta: np.where(theta[:, 0] > 2.0, value, log_density(theta))

    options = {"method": FAST, "num_draws": 60, "max_iterations": 9}
    with pytest.warns(NonFiniteWarning, match="non-finite"):
        posterior = fit(where_large(np.inf), LogDensity(where_large(-np.inf)), dim=2, **options)
    assert all_finite(posterior)


@pytest.mark.parametrize("value", NOT_FINITE)
def test_all_draws_bad_at_the_start(value):
    search = Auto().start(2)
    search.tell(np.full(len(search.ask()), value))  # on the axes
    number = len(search.ask())
    for count, shown, options in (
        (12, "12 of 12", {"method": FAST, "num_draws": 12}),
        (number, f"all {number}", {}),
    ):
        with case(options):
            with pytest.raises(DivergenceError, match=rf"{shown} draws.*initial_mean") as caught:
                fit(lambda theta: np.full(len(theta), value), dim=2, **options)
            assert caught.value.theta.shape == (count, 2)


@pytest.mark.filterwarnings("ignore::mgvbp.errors.NonFiniteWarning")
def test_too_few_draws_left_for_the_regression():
    def function(theta):
        return np.where(np.arange(len(theta)) < 5, log_density(theta), np.nan)

    with pytest.raises(DivergenceError, match=r"5 draws with finite values are left.*needs 6") as caught:
        fit(function, dim=2, method=FAST, num_draws=12)
    assert caught.value.theta is not None
    assert caught.value.theta.shape == (12, 2)


def dying(after):
    """`log_density` that is all nan from call ``after + 1`` on."""
    calls = []

    def function(theta):
        calls.append(len(theta))
        return log_density(theta) if len(calls) <= after else np.full(len(theta), np.nan)

    return function


@pytest.mark.parametrize("after", [1, 7])
def test_a_later_breakdown_returns_the_best_iterate(after):
    means = []
    with pytest.warns(ConvergenceWarning, match="broke down and returns its best iterate"):
        posterior = fit(
            dying(after),
            dim=2,
            method=SHORT,
            callback=lambda iteration: means.append(iteration.gaussian.mean),
        )
    assert not posterior.converged
    assert posterior.stop_reason.startswith("broke down: ")
    assert "NOT converged" in posterior.summary()
    assert len(posterior.trace) == after
    first_full_window = min(SHORT.window, after) - 1
    best = first_full_window + np.argmax(posterior.trace.smoothed[first_full_window:])
    assert np.array_equal(posterior.mean, means[best])
    assert all_finite(posterior)


def losing(theta):
    """Convex: QBVI asks for a negative precision."""
    return 2.0 * (theta**2).sum(axis=1)


@pytest.mark.parametrize(
    ("category", "function", "method"),
    [
        (
            NonFiniteWarning,
            lambda theta: np.where(np.arange(len(theta)) == 0, np.nan, log_density(theta)),
            SHORT,
        ),
        (ConvergenceWarning, dying(3), SHORT),
        (ConvergenceWarning, losing, mgvbp.QBVI(step_size=0.9)),
    ],
    ids=["dropped draws", "breakdown", "shortened steps"],
)
def test_warnings_point_at_the_call_of_fit(category, function, method):
    with pytest.warns(category) as caught:
        fit(function, dim=2, method=method, max_iterations=5)
    assert [w.filename for w in caught] == [__file__]


def anything_nan(posterior):
    trace = [column for name, column in vars(posterior.trace).items() if name != "phase"]
    arrays = posterior.mean, posterior.factor, posterior.covariance, posterior.precision, posterior.std
    return any(np.isnan(a).any() for a in (*arrays, posterior.lower_bound, *trace))


@pytest.mark.filterwarnings("ignore::mgvbp.errors.MgvbpWarning")
@settings(max_examples=60, derandomize=True)
@given(
    value=st.sampled_from(NOT_FINITE),
    fraction=st.floats(0.0, 0.9),
    seed=st.integers(0, 2**16),
    family=st.sampled_from(sorted(FAMILIES)),
    estimator=st.sampled_from(["h", "loglik", "regression"]),
    method=st.sampled_from([FAST, "mgvbp", "mgvb", "qbvi", "geodesic"]),
    draws=st.sampled_from(["mc", "antithetic", "sobol"]),
)
def test_no_posterior_holds_a_nan(value, fraction, seed, family, estimator, method, draws):
    function, _ = spoilt(value, fraction, seed)
    options = {"family": FAMILIES[family], "estimator": estimator, "method": method, "draws": draws}
    prior = Gaussian(variance=10.0, dim=2)
    try:
        posterior = fit(function, prior, num_draws=16, max_iterations=25, rng=seed, **options)
    except DivergenceError:
        return  # too few values are left at the first iteration
    assert not anything_nan(posterior)


@pytest.mark.filterwarnings("ignore::mgvbp.errors.MgvbpWarning")
@settings(max_examples=60, derandomize=True)
@given(
    value=st.sampled_from(NOT_FINITE),
    fraction=st.floats(0.0, 0.9),
    seed=st.integers(0, 2**16),
    family=st.sampled_from(sorted(FAMILIES)),
)
def test_no_posterior_of_auto_holds_a_nan(value, fraction, seed, family):
    function, counts = spoilt(value, fraction, seed)
    prior = Gaussian(variance=10.0, dim=2)
    try:
        posterior = fit(function, prior, max_evaluations=400, rng=seed, family=FAMILIES[family])
    except DivergenceError:
        return  # no value at all at the first iteration
    assert not anything_nan(posterior)
    trials = posterior.trace.phase == "trial"  # there a function may fail
    tried = int(posterior.trace.num_draws[trials].sum())
    last = counts[-1] if posterior.stop_reason.startswith("broke down") else 0  # it is not in the trace
    assert sum(counts) - tried - last <= posterior.trace.dropped.sum() <= sum(counts)


@pytest.mark.filterwarnings("ignore::mgvbp.errors.MgvbpWarning", "ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_that_blows_up_says_so(family):
    """A cliff of 1e12 nats: an error, or a Gaussian that has a covariance and a precision; not 0 and inf."""
    options = {"family": FAMILIES[family], "method": "mgvbp", "max_iterations": 40}
    for value, estimator in product([1e12, -1e12], ["h", "loglik", "regression"]):

        def cliff(theta, value=value):
            return np.where(theta[:, 0] > 1.0, value, log_density(theta))

        with case(value, estimator):
            try:
                posterior = fit(cliff, Gaussian(variance=1.0, dim=2), estimator=estimator, **options)
            except DivergenceError:
                continue
            assert all_finite(posterior)
            assert (posterior.std > 0.0).all()


# --- what a newcomer does -----------------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [True, False])
def test_a_function_of_names_that_was_not_wrapped(vectorized):
    parameters = mgvbp.Parameters(mu=Real(), sigma=Positive())
    prior = parameters.prior(mu=stats.norm(), sigma=stats.halfnorm())
    with pytest.raises(TypeError, match="missing 1 required") as caught:
        fit(lambda mu, sigma: -(mu**2), prior, vectorized=vectorized)
    (note,) = caught.value.__notes__
    assert note.endswith("if it is a function of mu, sigma, wrap it: mgvbp.Model(f, parameters)")


def test_a_model_is_not_told_to_be_wrapped():
    model = mgvbp.Model(lambda mu: mu @ np.ones(7), mgvbp.Parameters(mu=Real()))
    with pytest.raises(ValueError, match="matmul") as caught:
        fit(model, Gaussian(variance=1.0, dim=1))
    assert "wrap" not in caught.value.__notes__[0]


def loss(theta):
    """Minus the log-likelihood of a regression: it has no upper bound."""
    return -50.0 * log_density(theta)


@pytest.mark.parametrize("prior", [None, Gaussian(variance=100.0, dim=2)], ids=["flat", "prior"])
@pytest.mark.parametrize("options", [{}, {"method": "mgvbp"}, {"grad": "own"}, {"starts": 3}], ids=str)
def test_a_negative_log_likelihood_is_recognised(prior, options):
    if "grad" in options:
        options = {"grad": lambda theta: 50.0 * (theta - CENTRE) @ np.linalg.inv(COVARIANCE)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = fit(loss, prior, dim=2, **options)
    told = [str(w.message) for w in caught]
    assert not posterior.converged
    assert sum("grows without bound: is it the negative log-likelihood" in message for message in told) == 1
    assert not any("max_evaluations, another start" in message for message in told)


def test_a_large_constant_is_not_growth():
    """A density is known up to a constant: warnings are errors here."""
    assert fit(lambda theta: log_density(theta) + 1e11, dim=2, tol=0.1).lower_bound > 1e10


@pytest.mark.parametrize("options", [{}, {"method": "mgvbp"}, {"starts": 2}], ids=str)
@pytest.mark.parametrize(("value", "noted"), [(np.nan, True), (-np.inf, False)], ids=str)
def test_nan_everywhere_is_a_matter_of_the_data(options, value, noted):
    with pytest.raises(DivergenceError, match="non-finite") as caught:
        fit(lambda theta: np.full(len(theta), value), dim=2, **options)
    assert caught.value.__notes__[1:] == ["the function is nan at every draw: check the data for nan"] * noted


def test_where_the_draws_without_a_value_were():
    """Far from the posterior, 40 standard deviations away, which needs no warning; or in the middle of it."""

    def above(limit, centre):
        return lambda theta: np.where(theta[:, 0] > limit, -0.5 * ((theta - centre) ** 2).sum(axis=1), np.nan)

    assert fit(above(-5.0, 30.0), dim=3, initial_variance=100.0).trace.dropped.sum() > 0
    with pytest.warns(
        ConvergenceWarning, match=r"of the Gaussian's mass lies where the log density is not finite"
    ):
        fit(above(0.0, 1.0), dim=3)
