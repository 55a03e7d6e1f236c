"""What the cells run: the variational methods for the same number of passes, ADAM, MCMC, and the truth."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import mgvbp
from mgvbp import baselines
from mgvbp.paper.common import printed, quietly
from mgvbp.paper.lob.problem import ADAM_STEP, FULL, START_BATCHES, Lob, Plan, problem
from mgvbp.paper.spec import Cells, Outcome

INITIAL_VARIANCE = 0.01
"""Variance of the first Gaussian, that of the paper's table of hyper-parameters."""
PAPER: dict[str, Any] = printed("LOB data", precision_scale=2.0)
"""The paper's hyper-parameters; their decay after 3000 of 4000 iterations is beyond our passes."""


@dataclass(frozen=True)
class Schedule:
    """Steps that rise to iteration a as ``β 10^(−2.5 (1 − t/a))``, stay at β, and fall to 0 along a line.

    The start is far too wide for the curvature there, and full steps would overshoot in the precision by their squares.
    Minibatches and few draws make noise, which only small steps at the end average out.
    """

    step_size: float
    iterations: int
    warm_up: float = 0.1
    """The share of the iterations up to a."""
    falling: float = 0.7
    """The share of the iterations in which the steps fall."""

    def __call__(self, t: int) -> float:
        """The step of iteration ``t`` = 1, 2, ..."""
        rise = max(0.0, 1.0 - t / (self.warm_up * self.iterations))
        fall = min(1.0, (self.iterations + 1 - t) / (self.falling * self.iterations))
        return float(self.step_size * 10.0 ** (-2.5 * rise) * fall)


@dataclass(frozen=True)
class Setting:
    """How a variational method runs."""

    method: type[mgvbp.MGVBP | mgvbp.QBVI]
    family: str
    estimator: str
    num_draws: int
    batches: int
    """Batches in an epoch; with 1 every iteration sees all windows."""
    step_size: float = 0.0
    """The largest step of the `Schedule`; with 0 the step is in ``options``."""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def passes(self) -> float:
        """The passes over the data that an iteration takes."""
        return self.num_draws / self.batches

    def prepared(self, iterations: int) -> mgvbp.MGVBP | mgvbp.QBVI:
        """The method for this number of iterations, none of which patience cuts off."""
        steps = {"step_size": Schedule(self.step_size, iterations)} if self.step_size else {}
        limits = {"patience": iterations, "max_iterations": iterations}
        return self.method(**self.options | steps | limits)


def settings(plan: Plan) -> dict[str, Setting]:
    """The settings by the names of the rows.

    Rows with ``h`` see function values alone and have the paper's settings. 300 draws are more than d + 2, so that the
    gradients determine the whole curvature by a regression. QBVI runs twice: with the steps of MGVBP, which may be too
    long for its diagonal, and with its own. All take whole natural gradients (``precision_scale=2``, which QBVI has by
    definition). Draws, batches and steps were chosen on the data of seed 0, in some twenty trials for MGVBP, eight for
    QBVI and five for VOGN. Other seeds are therefore the fairer comparison.
    """
    ours: dict[str, Any] = {"estimator": "gradient", "num_draws": 300}
    ours |= {"batches": plan.batches, "step_size": plan.step_size}
    paper: dict[str, Any] = {"estimator": "h", "num_draws": 20, "batches": 1, "options": PAPER}
    return {
        "MGVBP gradient": Setting(mgvbp.MGVBP, "full", **ours, options={"precision_scale": 2.0}),
        "QBVI gradient diag": Setting(mgvbp.QBVI, "diagonal", "gradient", 20, 20, 0.01),
        "QBVI diag, same steps": Setting(mgvbp.QBVI, "diagonal", **ours),
        "VOGN diag": Setting(mgvbp.VOGN, "diagonal", "fisher", 2, 10, 0.03, {"curvature_step": 0.1}),
        "MGVBP h": Setting(mgvbp.MGVBP, "full", **paper),
        "QBVI h diag": Setting(mgvbp.QBVI, "diagonal", **paper),
    }


METHODS = tuple(settings(FULL))
BY_VALUES = ("MGVBP h", "QBVI h diag")
"""The rows that see function values alone. They run once more with the paper's iterations, on fewer windows."""
TRUTH = "true probabilities"


class Watch:
    """A callback that looks at some iterations of a run, times all of them, and keeps the last iterate."""

    def __init__(self, lob: Lob, plan: Plan, setting: Setting, iterations: int) -> None:
        self.lob, self.setting, self.draws, self.windows = lob, setting, plan.few_draws, plan.few_windows
        self.marks = {round(t) for t in np.geomspace(1, iterations, plan.checkpoints)}
        self.rows: list[dict[str, float]] = []
        self.times: list[float] = []
        self.last: mgvbp.Gaussian
        self._clock = time.perf_counter()

    def __call__(self, iteration: Any) -> None:
        """Time an iteration, and look at it if it is one of the marks."""
        self.times.append(time.perf_counter() - self._clock)
        self.last = iteration.gaussian
        if iteration.iteration in self.marks:
            q = iteration.gaussian
            row = {"passes": (iteration.iteration - 1) * self.setting.passes}
            row["bound"] = self.lob.bound(q, self.draws)[0]
            self.rows.append(row | self.lob.measures(self.lob.predictions(q, self.draws, self.windows)))
        self._clock = time.perf_counter()


def run_method(name: str, plan: Plan, seed: int) -> Outcome:
    """A variational method from the common start for the common number of passes."""
    lob, setting = problem(plan, seed), settings(plan)[name]
    iterations, start = max(1, int(plan.passes / setting.passes)), lob.start
    path = Watch(lob, plan, setting, iterations)  # its clock starts now
    with quietly():
        fitted = mgvbp.fit(
            lob.likelihood(setting.batches),
            lob.prior,
            method=setting.prepared(iterations),
            family=setting.family,
            estimator=setting.estimator,
            num_draws=setting.num_draws,
            initial_mean=start,
            initial_variance=INITIAL_VARIANCE,
            rng=seed,
            callback=path,
        )
    # with minibatches the best iterate would be that of the luckiest batch; the last one is settled, as steps fall to 0
    q = path.last if setting.batches > 1 else fitted
    bound, error = lob.bound(q, plan.bound_draws)
    shown = lob.shown(lob.predictions(q, plan.few_draws))
    usual = float(np.median(path.times))  # the first iterations also compile
    values = shown.values | {"LB*": bound, "s.e.": error, "s/iter": usual}
    values |= {"iterations": float(len(fitted.trace)), "passes": len(fitted.trace) * setting.passes}
    record = asdict(plan) | asdict(setting) | {"method": setting.method.__name__}
    curves = {name: [row[name] for row in path.rows] for name in path.rows[0]}
    return Outcome(values, curves | shown.curves, record, fitted.n_evaluations)


def run_adam(plan: Plan, seed: int) -> Outcome:
    """The point estimate of ADAM after the same number of passes."""
    lob = problem(plan, seed)
    likelihood, steps = lob.likelihood(START_BATCHES), plan.passes * START_BATCHES
    options: dict[str, Any] = {"step_size": ADAM_STEP, "max_iterations": steps}
    found = baselines.adam(likelihood, lob.prior, initial=lob.start, rng=seed, **options)
    record = {**asdict(plan), "method": "ADAM", "batches": START_BATCHES, **options}
    shown = lob.shown(lob.predictions(found.theta, 1))
    return replace(shown, settings=record, n_evaluations=found.n_evaluations)


def run_mcmc(plan: Plan, seed: int) -> Outcome:
    """NUTS on a random part of the windows, from points around the common start."""
    lob = problem(plan, seed)
    rng = np.random.default_rng([seed, 1])
    rows = rng.choice(lob.num_windows, min(plan.chain_windows, lob.num_windows), replace=False)
    start = lob.start + 0.01 * rng.standard_normal((plan.chains, lob.network.dim))
    with quietly():
        chains = baselines.nuts(
            lob.network.on(lob.X["train"][rows], lob.y["train"][rows]),
            lob.prior,
            initial=start,
            num_warmup=plan.num_warmup,
            num_draws=plan.num_draws,
            chains=plan.chains,
            rng=seed,
        )
    thinned = chains.flat[:: -(-len(chains.flat) // plan.bound_draws)]  # at most so many
    shown = lob.shown(lob.predictions(thinned, 1))
    values = shown.values | chains.diagnostics | {"divergences": float(chains.divergences)}
    values |= {"windows": float(len(rows)), "kept": float(len(chains.flat)), "chains": float(plan.chains)}
    return Outcome(values, shown.curves, {**asdict(plan), "method": "NUTS"})


def run_truth(plan: Plan, seed: int) -> Outcome:
    """The measures of the probabilities that the classes were simulated with."""
    lob = problem(plan, seed)
    return replace(lob.shown(lob.true_predictions()), settings=asdict(plan))


def cells(plan: Plan) -> Cells:
    """All runs of a plan."""
    found: Cells = {name: partial(run_method, name, plan) for name in METHODS}
    found["ADAM"] = partial(run_adam, plan)
    for name in BY_VALUES if plan.iterations else ():
        setting = settings(plan)[name]
        longer = replace(
            plan, windows=plan.few_windows, passes=round(plan.iterations * setting.passes), iterations=0
        )
        if not plan.directory:
            found[f"{name}, {plan.iterations:,} iterations"] = partial(run_method, name, longer)
    if plan.chains:
        found["MCMC"] = partial(run_mcmc, plan)
    if not plan.directory:
        found[TRUTH] = partial(run_truth, plan)
    return found
