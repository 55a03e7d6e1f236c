"""Thousands of bad calls over the public API: each is refused in one sentence, or accepted and right.

A row of a table is a function and one of its arguments, which gets each of `VALUES` in turn. The row names the values
that are accepted, and says what must then hold; all others must be refused by an error of ours. A name with a tilde
stands for a value that only the user's function, or the system, can refuse: its own exception passes through.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

import mgvbp
from common import case
from common import standard_normal as normal
from mgvbp import (
    MGVB,
    MGVBP,
    QBVI,
    VOGN,
    Auto,
    Gaussian,
    Geodesic,
    Minibatches,
    Model,
    Parameters,
    Problem,
    fit,
)
from mgvbp import models as ready
from mgvbp.errors import LONGEST, MgvbpError
from mgvbp.transforms import (
    CorrelationCholesky,
    FigarchRegion,
    GarchRegion,
    GarchSumRegion,
    Interval,
    LowerBound,
    Ordered,
    Positive,
    Real,
    Simplex,
    UpperBound,
)

pytestmark = pytest.mark.filterwarnings("ignore::mgvbp.errors.MgvbpWarning")

VALUES = {
    "none": lambda: None,
    "yes": lambda: "yes",
    "blank": lambda: "",
    "escape": lambda: "\x1b[31mred\n",
    "bytes": lambda: b"yes",
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "negative": lambda: -1,
    "zero": lambda: 0,
    "true": lambda: True,
    "fraction": lambda: 1.5,
    "trillion": lambda: 10**12,
    "huge": lambda: 1e300,
    "astronomic": lambda: 10**400,
    "complex": lambda: 1.0 + 2.0j,
    "empty": lambda: [],
    "no_rows": lambda: np.zeros((0, 3)),
    "cube": lambda: np.zeros((2, 2, 2)),
    "objects": lambda: np.array([None, "a"], dtype=object),
    "flags": lambda: np.array([True, False]),
    "texts": lambda: np.array(["a", "b"]),
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "nans": lambda: np.full((2, 2), np.nan),
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "function": lambda: lambda: 0.0,
    "generator": lambda: (i for i in range(3)),
    "type": lambda: int,
}
NUMBERS = "negative zero true fraction trillion huge"
POSITIVE = "fraction trillion huge"
SEEDS = "zero trillion astronomic"
FUNCTIONS = "~function ~type"
FILES = "~yes ~escape"
PASSED = (TypeError, OSError)
"""What the user's function raises if it is called with other arguments, and the system if there is no such file."""


class Row(NamedTuple):
    """A function, the argument that is bad, the values that are not, what then holds, and the other arguments."""

    function: Any
    argument: str
    accepted: str
    right: Any
    others: dict[str, Any]
    errors: Any = MgvbpError


def row(function, argument, accepted="", right=lambda found, value: True, /, **others):
    return Row(function, argument, accepted, right, others)


def outcome(function, arguments, errors):
    """How a call ended: in our error, in another one that may pass through, or in what it returned."""
    try:
        return "returned", function(**arguments)
    except errors as error:
        return "refused", error
    except PASSED as error:
        return "passed", error


def judge(rows):
    """Call each row with each value; returns the number of calls."""
    for function, argument, accepted, right, others, errors in rows:
        fine = accepted.split()
        for name, make in VALUES.items():
            with case(getattr(function, "__qualname__", function), argument, name):
                value = make()
                ending, found = outcome(function, {**others, argument: value}, errors)
                expected = "returned" if name in fine else "passed" if f"~{name}" in fine else "refused"
                assert ending == expected, repr(found)
                if ending == "returned":
                    assert right(found, value)
                elif errors is MgvbpError and ending == "refused":
                    assert 10 < len(str(found)) <= LONGEST
                    assert str(found).isprintable()
    return len(rows) * len(VALUES)


# --- what several tables use ------------------------------------------------------------------------------


NAMED = Parameters(b=Real(2), s=Positive())
MODEL = Model(lambda b, s: -0.5 * (b**2).sum(axis=1) - s, NAMED)
PRIOR = Gaussian(variance=1.0, dim=2)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = X @ [1.0, -1.0] + RNG.normal(size=12)
ZEROS = np.zeros((2, 3))


@cache
def posterior():
    return fit(MODEL)


def standard(found, value):
    """The result is N(0, I) within what the tolerance of 0.01 nats, or a larger one, allows."""
    return np.abs(found.mean).max() < 0.3 and np.abs(np.log(found.std)).max() < 0.3


def is_value(attribute):
    return lambda found, value: np.all(getattr(found, attribute) == value)


def is_prior(found, value):
    """The prior of a problem is the value, or the density that a function became."""
    return getattr(found.prior, "distribution", found.prior) is value


def empty(found, value):
    return all(np.size(part) == 0 for part in (found.values() if isinstance(found, dict) else [found]))


def same(found, value):
    return np.array_equal(found, value)


# --- fit and resume ---------------------------------------------------------------------------------------


def fit2(**options):
    return fit(normal, **{"dim": 2, **options})


def stepping(**options):
    return fit2(method="mgvbp", max_iterations=3, **options)


def returning(returned):
    return fit(lambda theta: returned, dim=2, vectorized=True)


def returning_each(returned):
    return fit(lambda row: returned, dim=2, vectorized=False, max_iterations=3)


def slopes_returning(returned):
    return fit(normal, dim=2, grad=lambda theta: returned)


def prior_returning(returned):
    return fit(normal, type("Prior", (), {"log_density": lambda self, theta: returned})(), dim=2)


def derivatives_returning(returned):
    methods = {"__call__": lambda self, theta: normal(theta), "value_and_grad": lambda self, theta: returned}
    return fit(type("Likelihood", (), methods)(), dim=2)


def model_returning(returned):
    return fit(Model(lambda b, s: returned, NAMED), Gaussian(variance=1.0, dim=3), vectorized=True)


def batches_returning(returned):
    batches = Minibatches(lambda theta, y: returned, Y, batch_size=3)
    return fit(batches, PRIOR, method="mgvbp", max_iterations=3, vectorized=True)


def steps_returning(returned):
    return fit2(method=MGVBP(step_size=lambda t: returned), max_iterations=3)


FIT = [
    row(lambda f: fit(f, dim=2), "f"),
    row(fit2, "prior", "none ~function", standard),
    row(fit2, "dim"),
    row(fit2, "method"),
    row(fit2, "family", "none", standard),
    row(fit2, "initial_mean", "none flags", standard),
    row(fit2, "initial_variance", "none true fraction trillion", standard),
    row(fit2, "max_iterations", "none trillion", standard),
    row(fit2, "max_evaluations", "none trillion", standard),
    row(fit2, "tol", f"none {POSITIVE}", lambda p, v: p.converged),
    row(fit2, "kl_tol", "none", standard),
    row(lambda kl_tol: fit2(family="auto", kl_tol=kl_tol), "kl_tol", f"none {POSITIVE}", standard),
    row(fit2, "labels", "none texts", lambda p, v: v is None or p.labels == ("a", "b")),
    row(fit2, "noise", f"none zero {POSITIVE}", lambda p, v: v is None or v == 0 or p.gap < np.inf),
    row(mgvbp.Mixture, "components", "none trillion", is_value("components")),
    row(fit2, "starts"),
    row(fit2, "vectorized", "none true", standard),
    row(fit2, "grad", f"none {FUNCTIONS}", standard),
    row(fit2, "rng", SEEDS, standard),
    row(fit2, "progress", "true", standard),
    row(fit2, "callback", f"none {FUNCTIONS}", standard),
    row(stepping, "estimator"),
    row(stepping, "draws"),
    row(stepping, "num_draws", "none", lambda p, v: p.n_evaluations == 36),
    row(returning, "returned"),
    row(returning_each, "returned", NUMBERS.replace("true ", ""), lambda p, v: not p.converged),
    row(slopes_returning, "returned"),
    row(prior_returning, "returned"),
    row(derivatives_returning, "returned"),
    row(model_returning, "returned"),
    row(batches_returning, "returned"),
    row(steps_returning, "returned", "fraction trillion", lambda p, v: np.all(p.trace.step_size == v)),
]


def test_fit():
    assert judge(FIT) > 600


def test_fit_with_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numbers = iter(range(100))
    whole = fit(normal, PRIOR, checkpoint="run.npz")

    def recorded(every):
        return fit(normal, PRIOR, checkpoint=f"{next(numbers)}.npz", every=every)

    def resumed(**options):
        return mgvbp.resume(**{"path": "run.npz", "log_likelihood": normal, **options})

    def unchanged(found, value):
        return found.lower_bound == whole.lower_bound

    judge([
        row(recorded, "every", "inf zero true fraction trillion huge astronomic", unchanged),
        row(resumed, "log_likelihood"),
        row(resumed, "path", FILES),
        row(resumed, "prior", "none", unchanged),
        row(resumed, "grad", "none", unchanged),
        row(resumed, "check", "true", unchanged),
        row(resumed, "progress", "true", unchanged),
        row(resumed, "callback", "none function type", unchanged),  # no iteration is left to call it
        row(mgvbp.load, "path", FILES),
        row(fit2, "checkpoint", "none yes escape", standard),
        row(lambda path: posterior().save(path), "path", "yes escape"),
        row(mgvbp.load, "path", "yes escape", lambda p, v: same(p.mean, posterior().mean)),
        row(mgvbp.load, "log_likelihood", "none", path="yes"),
        row(mgvbp.load, "prior", "none function", path="yes", log_likelihood=normal),
    ])  # fmt: skip


# --- distributions, parameters and models -----------------------------------------------------------------

GAUSSIANS = [
    row(Gaussian, "mean", NUMBERS, is_value("mean"), variance=1.0, dim=3),
    row(Gaussian, "variance", "true fraction trillion", lambda g, v: np.allclose(g.std**2, v), dim=3),
    row(Gaussian, "precision", "true fraction trillion", lambda g, v: np.allclose(g.std**-2, v), dim=3),
    row(Gaussian, "dim", variance=1.0),
    row(PRIOR.log_density, "theta"),
    row(PRIOR.grad_log_density, "theta"),
    row(PRIOR.covariance_of, "entries", "empty", empty),
    row(PRIOR.sample, "n", "zero", empty),
    row(PRIOR.sample, "rng", f"none {SEEDS}", lambda draws, v: draws.shape == (2, 2), n=2),
    row(mgvbp.BlockDiagonal, "blocks"),
    row(lambda block: mgvbp.BlockDiagonal([[0, 1], block]), "block"),
    row(mgvbp.Diagonal, "dim", "trillion", is_value("dim")),
    row(mgvbp.Full, "dim", "trillion", is_value("dim")),
]


def priced(returned):
    return NAMED.prior(b=stats.norm(), s=lambda s: returned).log_density(ZEROS)


PARAMETERS = [
    row(lambda given: Parameters(given), "given"),
    row(Parameters, "a"),
    row(Parameters.from_spec, "spec"),
    row(NAMED.constrain, "theta", "no_rows", empty),
    row(NAMED.log_jacobian, "theta", "no_rows", empty),
    row(NAMED.unconstrain, "values"),
    row(lambda s: NAMED.unconstrain({"b": [0.0, 0.0], "s": s}), "s", "true fraction trillion huge",
        lambda theta, v: np.isclose(theta[2], math.log(v))),
    row(lambda s: NAMED.prior(b=stats.norm(), s=s), "s", "function type"),
    row(priced, "returned"),
    *(row(kind, "n", "trillion", lambda t, v: t.arguments == (v,)) for kind in (Ordered, Simplex, CorrelationCholesky)),
    *(row(lambda n, kind=kind: kind(n), "n", "trillion", is_value("size")) for kind in (Real, Positive)),
    row(Interval, "lower", "negative zero true fraction", lambda t, v: t.bounds == (v, 2.0), upper=2.0),
    row(Interval, "upper", NUMBERS, lambda t, v: t.bounds == (-2.0, v), lower=-2.0),
    row(lambda n: Interval(0.0, 1.0, n), "n", "trillion", is_value("size")),
    row(LowerBound, "lower", NUMBERS, lambda t, v: t.bounds == (v, math.inf)),
    row(UpperBound, "upper", NUMBERS, lambda t, v: t.bounds == (-math.inf, v)),
    row(GarchRegion, "p", "zero trillion", lambda t, v: t.size == v + 1, o=0, q=1),
    row(GarchSumRegion, "q", "trillion", lambda t, v: t.size == v, p=0, o=0),
    row(FigarchRegion, "q", "zero", lambda t, v: t.size == 2, p=1),
    row(Positive().mean, "mu", f"{NUMBERS} empty no_rows cube flags", lambda m, v: np.all(m > 0.0), sd=1.0),
    row(Positive().std, "sd", "zero true fraction trillion huge empty no_rows cube flags", mu=0.0),
    *(
        row(getattr(t, method), argument, accepted, empty)
        for t, none in (
            (Interval(0.0, 1.0, 2), ""), (Ordered(2), ""), (Simplex(3), ""), (CorrelationCholesky(2), ""),
            (GarchRegion(1, 0, 1), ""), (FigarchRegion(1, 1), "no_rows"),
        )
        for method, argument, accepted in (
            ("constrain", "x", none), ("log_jacobian", "x", none),
            ("unconstrain", "value", "no_rows" if t.shape == (3,) else ""),
        )
    ),
]  # fmt: skip


def each(returned):
    return Model(lambda b, s: s, NAMED, pointwise=lambda b, s: returned).pointwise(ZEROS)


MODELS = [
    row(Model, "function", "type", parameters=NAMED),  # int has no signature that could be compared
    row(Model, "parameters", function=lambda b, s: s),
    row(Model, "pointwise", "none type", function=lambda b, s: s, parameters=NAMED),
    row(Model, "y", "none flags texts", lambda m, v: v is None or same(m.y, v),
        function=lambda b, s: s, parameters=NAMED, pointwise=lambda b, s: b),
    row(MODEL, "theta", "no_rows", empty),
    row(each, "returned", "nans", lambda found, v: np.all(np.isnan(found))),
    row(Minibatches(lambda t, y: t[:, 0], Y, batch_size=3).at, "iteration", "trillion"),
    row(lambda f: Minibatches(f, Y), "f", "function type"),  # it is called by the fit
    row(lambda data: Minibatches(normal, data), "data", "cube objects flags texts nans",
        lambda batches, v: batches.data[0] is v),  # it is the function that knows what to do with them
    row(lambda **size: Minibatches(normal, Y, **size), "batch_size", "none", lambda m, v: m.num_batches == 1),
    row(lambda **seed: Minibatches(normal, Y, **seed), "rng", SEEDS),
    row(ready.HAR, "volatility"),
    row(ready.lagged_means, "volatility"),
    row(ready.PoissonRegression, "exposure", "none true fraction trillion huge", X=X, y=np.ones(12)),
    row(ready.Reconstruction, "sigma", X=X, y=Y),
    *(row(ready.Reconstruction.simulate, argument, accepted, lambda found, v: found.X.shape == (9, 3),
          **{"n": 9, "dim": 3} | {argument: None})
      for argument, accepted in (("n", ""), ("dim", ""), ("sigma", POSITIVE), ("squared", "true"),
                                 ("rng", f"none {SEEDS}"))),
]  # fmt: skip
RESPONSES = {
    ready.LinearRegression: Y,
    ready.StudentRegression: Y,
    ready.LogisticRegression: np.arange(12) % 2,
    ready.MultinomialRegression: np.arange(12) % 3,
    ready.PoissonRegression: np.arange(12),
    ready.NegativeBinomialRegression: np.arange(12),
}
for kind, y in RESPONSES.items():
    model = kind(X, y)
    draws = np.zeros((3, model.parameters.dim))
    at_nan = "nans" if model.parameters.dim == 2 else ""
    MODELS += [
        row(kind, "X", y=y),
        row(kind, "y", X=X),
        row(kind, "names", "none texts", lambda m, v: v is None or m.names == tuple(v), X=X, y=y),
        row(model, "theta", at_nan, lambda found, v: np.all(np.isnan(found))),
        row(model.pointwise, "theta", at_nan, lambda found, v: np.all(np.isnan(found))),
        row(model.predictive, "X", theta=draws),
        row(model.log_predictive_density, "y", theta=draws, X=X),
    ]


def test_distributions_parameters_and_models():
    assert judge(GAUSSIANS) + judge(PARAMETERS) + judge(MODELS) > 2000
    names = {name: make() for name, make in VALUES.items() if getattr(type(make()), "__hash__", None)}
    for name, value in names.items():
        for key in (value, ("a", value)):
            with case(name, key):
                if name == "yes":
                    assert Parameters({key: Real(2)}).names[-1] == "yes"
                    continue
                with pytest.raises(MgvbpError):
                    Parameters({key: Real(2)})


# --- methods, and runs by ask and tell --------------------------------------------------------------------


def told(run, **others):
    return lambda **arguments: run.tell(**{**others, **arguments})


def asks(run, value):
    return run.ask().shape[1] == 2


START = {"target": 2}
SEARCH, RUN = Auto().start(2, gradients=True), MGVBP().start(2, estimator="gradient")
METHODS = [
    *(
        row(kind, "step_size", f"{POSITIVE} function type", is_value("step_size"))
        for kind in (MGVBP, MGVB, QBVI, Geodesic, VOGN)
    ),
    *(row(MGVBP, name, "trillion", is_value(name)) for name in ("window", "patience", "max_iterations")),
    row(MGVBP, "decay_after", "none trillion", is_value("decay_after")),
    row(MGVBP, "momentum", "zero", is_value("momentum")),
    row(MGVBP, "precision_scale", POSITIVE, is_value("precision_scale")),
    row(MGVBP, "clip_gradient", f"none {POSITIVE}", is_value("clip_gradient")),
    row(MGVBP, "clip_natural_gradient", f"none {POSITIVE}", is_value("clip_natural_gradient")),
    row(MGVBP, "clip_initial", "none"),
    row(VOGN, "curvature_step"),
    row(mgvbp.Score, "target"),
    row(Auto, "tol", f"none {POSITIVE}", is_value("tol")),
    *(
        row(method.start, argument, accepted, asks, **START if argument != "target" else {})
        for method in (Auto(), MGVBP())
        for argument, accepted in (
            ("target", ""),
            ("family", ""),
            ("initial_mean", "none flags"),
            ("initial_variance", "none true fraction trillion"),
            ("rng", SEEDS),
        )
    ),
    row(Auto().start, "max_evaluations", "none trillion", asks, **START),
    row(Auto().start, "starts", **START),
    row(Auto().start, "gradients", "none true", asks, **START),
    row(MGVBP().start, "estimator", **START),
    row(MGVBP().start, "draws", **START),
    row(MGVBP().start, "num_draws", "none", asks, **START),
    row(MGVBP().start, "state", "none", asks, **START),
    row(told(SEARCH), "values"),
    row(told(RUN), "values"),
    row(told(SEARCH, values=normal(SEARCH.ask())), "gradients"),
    row(told(RUN, values=normal(RUN.ask())), "gradients"),
    row(Problem, "log_likelihood", "function", dim=2),
    row(Problem, "prior", "none function", is_prior, log_likelihood=normal, dim=2),
    row(Problem, "dim", log_likelihood=normal),
    row(Problem, "vectorized", "none true", is_value("vectorized"), log_likelihood=normal, dim=2),
    row(Problem, "grad", "none function type", is_value("grad"), log_likelihood=normal, dim=2),
    row(Problem(normal, dim=2).evaluate, "theta", "nans", lambda found, v: np.all(np.isnan(found))),
    row(mgvbp.compare_families, "families", "none", log_likelihood=normal, dim=2),
]


def test_methods_and_runs():
    assert judge(METHODS) > 600


# --- what comes out ---------------------------------------------------------------------------------------


def chains(**options):
    return fit2().mcmc(**{"draws": 9, "chains": 2, **options})


def results():
    p = posterior()
    s, b = p["s"], p["b"]
    shaped = lambda *shape: lambda found, v: found.shape == shape  # noqa: E731
    return [
        row(p.sample, "n", "zero", empty),
        row(p.draws, "n", "zero", empty),
        row(p.named, "theta", "no_rows", empty),
        row(p.log_density, "theta", "no_rows", empty),
        row(p.diagnose, "num_draws", "none", lambda d, v: math.isfinite(d.elbo)),
        row(p.diagnose, "rng", f"none {SEEDS}", lambda d, v: math.isfinite(d.elbo)),
        row(p.diagnose, "log_density", f"none {FUNCTIONS}", lambda d, v: math.isfinite(d.elbo)),
        row(lambda returned: p.diagnose(log_density=lambda theta: returned), "returned"),
        row(p.draws, "corrected", "true", lambda found, v: found["b"].shape == (9, 2), n=9),
        row(lambda n: p.draws(n, corrected=True), "n"),
        row(p.forecast, "steps"),
        row(p.predict, "X"),
        row(chains, "draws"),
        row(chains, "chains"),
        row(chains, "max_evaluations", "none trillion"),
        row(chains, "timeout", f"none {POSITIVE}"),
        row(chains, "progress", "true"),
        row(chains, "log_density", f"none {FUNCTIONS}"),
        row(p.resample, "n"),
        row(p.resample, "num_draws", "none", shaped(9, 3), n=9),
        row(p.resample, "rng", f"none {SEEDS}", shaped(9, 3), n=9),
        row(p.to_arviz, "num_draws"),
        row(p.to_arviz, "rng", f"none {SEEDS}", num_draws=9),
        row(lambda name: p[name], "name"),
        row(lambda name: fit2()[name], "name"),
        row(lambda name: name in p, "name", " ".join(VALUES), lambda found, v: found is False),
        row(s.quantile, "p", "empty no_rows", empty),
        row(s.density, "value", f"{NUMBERS} empty flags",
            lambda found, v: np.all(np.where(np.asarray(v) > 0, found >= 0.0, found == 0.0))),
        row(b.log_density, "value", "flags", lambda found, v: np.isfinite(found)),
        row(s.sample, "n", "zero", empty),
        row(p["b[0]"].sample, "rng", f"none {SEEDS}", shaped(9), n=9),
    ]  # fmt: skip


def test_posteriors():
    assert judge(results()) > 500


# --- packages that are imported on demand -----------------------------------------------------------------


def test_plots_and_reports():
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from mgvbp import plots, report

    p = posterior()
    run = fit2()

    def drawn(draw, argument, accepted="", **others):
        def closed(**arguments):
            try:
                return draw(**{**others, **arguments})
            finally:
                plt.close("all")

        return row(closed, argument, accepted)

    judge([
        drawn(plots.convergence, "posteriors"),
        drawn(plots.convergence, "optimum", f"none {NUMBERS}", posteriors=run),
        drawn(plots.convergence, "floor", POSITIVE, posteriors=run, optimum=5.0),
        drawn(plots.convergence, "ax", "none", posteriors=run),
        drawn(plots.lower_bound, "posteriors"),
        drawn(plots.lower_bound, "against", posteriors=run),
        drawn(plots.corner, "posterior"),
        drawn(plots.corner, "names", "none", posterior=p),
        drawn(plots.corner, "draws", "none", posterior=p),
        drawn(plots.marginals, "posterior"),
        drawn(plots.marginals, "names", "none", posterior=p),
        drawn(plots.marginals, "draws", "none", posterior=p),
        drawn(plots.marginals, "prior", "none", posterior=p),
        drawn(plots.covariance, "posterior"),
        drawn(plots.covariance, "correlation", "true", posterior=p),
        row(report.html_report, "posterior"),
        row(report.html_report, "num_draws", "zero", lambda page, v: page.startswith("<!"), posterior=run),
    ])  # fmt: skip


def test_data_baselines_and_networks():
    from mgvbp import baselines, datasets, networks

    class Sloped:
        def __call__(self, theta):
            return normal(theta)

        def value_and_grad(self, theta):
            return normal(theta), -theta

    def adam(**options):
        return baselines.adam(**{"log_likelihood": Sloped(), "dim": 2, "max_iterations": 3, **options})

    judge([
        *(row(function, "name") for function in (datasets.load, datasets.find, datasets.where, datasets.fetch)),
        row(adam, "log_likelihood"),
        row(adam, "prior", "none ~function"),
        row(adam, "dim"),
        row(adam, "initial", "none flags"),
        row(adam, "rng", SEEDS),
        row(adam, "progress", "true"),
        row(networks.normal, "sigma", f"none {POSITIVE}"),
        row(datasets.find_joins, "features"),
    ])  # fmt: skip
    pytest.importorskip("jax")
    judge([
        row(baselines.nuts, argument, log_likelihood=mgvbp.from_jax(lambda theta: -(theta**2).sum()), dim=2)
        for argument in ("num_draws", "num_warmup", "chains")
    ])  # fmt: skip
    network = networks.dense([2, 3, 2])
    q = Gaussian(variance=1.0, dim=network.dim)
    labels = np.arange(12) % 2
    prediction = network.predict(q, X)
    judge([
        row(networks.dense, "widths"),
        row(networks.dense, "activation", widths=[2, 2]),
        row(networks.dense, "precision", widths=[2, 2]),
        row(networks.dense, "likelihood", widths=[2, 2]),
        row(network.on, "X", y=labels),
        row(network.on, "y", X=X),
        row(network.on, "batch_size", "none", X=X, y=labels),
        row(network.pointwise, "theta", X=X, y=labels),
        row(network.predict, "posterior", X=X),
        row(network.predict, "X", posterior=q),
        row(network.predict, "num_draws", posterior=q, X=X),
        row(prediction.score, "y"),
        row(prediction.reliability, "y"),
        row(mgvbp.from_jax, "function", "function type"),
        row(lambda **given: mgvbp.from_jax(normal, **given), "vectorized", "none true"),
    ])  # fmt: skip


def test_models_of_other_packages():
    judge([
        row(lambda model: mgvbp.from_stan(model), "model"),
        row(lambda model: mgvbp.from_pymc(model), "model"),
        row(lambda model: mgvbp.from_numpyro(model), "model"),
    ])  # fmt: skip
    regression = ready.LinearRegression(X, Y)
    fitted = fit(regression)
    judge([
        row(fitted.predict, "X", "none", lambda found, v: found.draws.shape == (500, 12)),
        row(fitted.predict, "num_draws", X=X),
        row(fitted.predict, "rng", f"none {SEEDS}", lambda found, v: found.draws.shape == (500, 12), X=X),
        row(fitted.forecast, "steps"),
    ])  # fmt: skip


def test_models_of_statsmodels_and_arch():
    api, arch = pytest.importorskip("statsmodels.api"), pytest.importorskip("arch")
    linear = api.OLS(Y, X)
    series = fit(mgvbp.from_statsmodels(api.tsa.SARIMAX(np.cumsum(Y), order=(1, 0, 0))))
    returns = arch.arch_model(np.random.default_rng(0).normal(size=200), rescale=False)
    judge([
        row(lambda model: mgvbp.from_statsmodels(model), "model"),
        row(lambda priors: mgvbp.from_statsmodels(linear, priors), "priors", "none"),
        row(lambda prior: mgvbp.from_statsmodels(linear, {"x1": prior}), "prior", "function"),
        row(lambda model: mgvbp.from_arch(model), "model"),
        row(lambda priors: mgvbp.from_arch(returns, priors), "priors", "none"),
        row(lambda prior: mgvbp.from_arch(returns, {"mu": prior}), "prior", "function"),
        row(series.forecast, "steps"),
        row(series.forecast, "num_draws", steps=2),
    ])  # fmt: skip


def test_estimators_of_scikit_learn():
    """The data go through scikit-learn's own checks, whose errors its users know."""
    pytest.importorskip("sklearn")
    from mgvbp import sklearn

    for kind, y in (
        (sklearn.BayesianLinearRegression, Y),
        (sklearn.BayesianLogisticRegression, np.arange(12) % 2),
        (sklearn.BayesianPoissonRegressor, np.arange(12)),
    ):
        fitted = kind().fit(X, y)

        def made(kind=kind, y=y, **options):
            return kind(**options).fit(X, y)

        theirs = [row(kind().fit, "X", y=y), row(kind().fit, "y", X=X), row(fitted.predict, "X")]
        judge([
            row(made, "prior_variance", "fraction trillion"),
            row(made, "fit_intercept", "true"),
            row(made, "family"),
            row(made, "tol", POSITIVE),
            row(made, "max_iter", "trillion"),
            *(each._replace(errors=(ValueError, TypeError, OverflowError)) for each in theirs),
        ])  # fmt: skip


def test_volatility():
    pytest.importorskip("pandas")
    from mgvbp import volatility

    garch = volatility.GARCH()
    truth = {"mu": 0.0, "omega": 0.1, "alpha[1]": 0.2, "beta[1]": 0.7}
    returns = np.asarray(garch.simulate(truth, days=250, rng=0))  # no GARCH would have a ridge, and take long
    result = garch.fit(returns)
    forecast = result.forecast(2, 100)
    simulated = {
        garch: truth,
        volatility.HAR(): {"intercept": 1.0, "daily": 0.4, "weekly": 0.3, "monthly": 0.2, "sigma": 1.0},
    }
    orders = {
        "GARCH": ("", "zero"),
        "GJR": ("zero", "zero"),
        "EGARCH": ("zero", "zero"),
        "FIGARCH": ("zero", "zero"),
    }
    judge([
        *(row(getattr(volatility, name), letter, accepted)
          for name, both in orders.items() for letter, accepted in zip("pq", both, strict=True)),
        row(volatility.GARCH, "mean", "none"),
        row(volatility.GARCH, "dist"),
        row(volatility.GARCH, "convention"),
        row(garch.fit, "returns"),
        row(garch.fit, "prior", "none", lambda found, v: found.posterior.converged, returns=returns),
        row(garch.prior, "returns"),
        row(garch.simulate, "values", days=10),
        *(row(model.simulate, "days", values=values) for model, values in simulated.items()),
        row(volatility.HAR().fit, "realised"),
        row(volatility.risk_table, "result"),
        row(volatility.risk_table, "alphas", result=result),
        row(volatility.write_report, "result", directory="nowhere"),
        row(result.var, "alpha"),
        row(result.expected_shortfall, "alpha"),
        row(result.volatility_band, "level"),
        row(forecast.var, "alpha"),
        row(forecast.quantile, "of", p=0.5),
        row(volatility.backtest, "model", returns=returns),
        row(volatility.backtest, "start", model=garch, returns=returns),
        row(volatility.backtest, "alpha", model=garch, returns=returns),
        row(volatility.backtest, "mode", model=garch, returns=returns),
        row(volatility.kupiec, "exceedances", "flags", alpha=0.05),
        row(volatility.kupiec, "alpha", exceedances=np.arange(100) % 20 == 0),
        row(volatility.christoffersen, "alpha", exceedances=np.arange(100) % 20 == 0),
        row(volatility.mse, "x", h=returns**2),
        row(volatility.qlike, "h", x=returns**2),
        row(volatility.read_returns, "path"),
    ])  # fmt: skip


WORDS = ("", "yes", "-1", "0", "1.5", "nan", "1e300", "1" * 30, "\x1b[31mred", "\0", "[]", "None", "-")
COMMANDS = [
    ("volatility", "--order", "{}"),
    ("volatility", "--alpha", "{}"),
    ("volatility", "--model", "{}"),
    ("volatility", "--lags={}", "nowhere.csv"),
    ("volatility", "--seed={}", "nowhere.csv"),
    ("volatility", "{}"),
    ("report", "{}"),
    ("report", "nowhere.npz", "--draws={}"),
    ("data", "fetch", "{}"),
    ("data", "path", "{}"),
    ("data", "{}"),
    ("reproduce", "{}"),
    ("reproduce", "starts", "--jobs={}x"),
    ("{}",),
]


def test_the_command_line(capsys, tmp_path, monkeypatch):
    from mgvbp.cli import main

    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        for word in WORDS:
            with case(command, repr(word)):
                try:
                    code = main([part.format(word) for part in command])
                except SystemExit as stop:  # argparse, after its usage
                    code = stop.code
                told = capsys.readouterr().err.splitlines()
                assert code in (1, 2)
                assert "error: " in told[-1] or told[-1].startswith("mgvbp: ")
                assert told[-1].isprintable()
                assert len(told) == 1 or told[0].startswith("usage: ")
