"""How much is run, and the network on its data: where all methods start, and the measures of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

import mgvbp
from mgvbp import baselines, networks
from mgvbp.datasets import load_fi2010, simulate_lob
from mgvbp.networks import NetworkLikelihood, Prediction
from mgvbp.paper.common import PRIOR_VARIANCE, Array
from mgvbp.paper.spec import Outcome

START_PASSES = 30
"""The paper starts all methods "after 30 ADAM iterations". We take these as 30 passes over the data in batches. 30
steps of 0.01 on all data at once would move no weight by more than 0.3, and leave the network worse than the
frequencies of the classes."""
START_BATCHES = 20
"""Batches in a pass of ADAM: 600 steps in all, with which a weight can move by 6."""
ADAM_STEP = 0.01
"""The step of ADAM, at the start and as a baseline."""
MEASURES = {
    "acc": "accuracy",
    "prec": "precision",
    "rec": "recall",
    "f1": "f1",
    "lpd": "log_predictive_density",
    "ECE": "ece",
}
"""The measures by the names of our columns, and by those in `Prediction.score`."""


@dataclass(frozen=True)
class Plan:
    """The data, and the sizes of the runs."""

    windows: int
    """Windows to simulate for training; of FI-2010 all are taken."""
    passes: int
    """Passes over the data of each method after the start; a pass evaluates all windows for one draw."""
    batches: int
    """Batches in an epoch of MGVBP with gradients. With few passes it needs small batches and long steps."""
    step_size: float
    """The largest step of MGVBP with gradients."""
    bound_draws: int
    few_draws: int
    """Draws for the lower bound at the end, and draws along the way and for predictions."""
    checkpoints: int
    """How often a run is looked at on its way."""
    chain_windows: int = 0
    num_warmup: int = 0
    num_draws: int = 0
    chains: int = 0
    """The size of MCMC, which is too slow for all windows. Without chains it is left out."""
    directory: str = ""
    """The directory of FI-2010; empty for simulated data."""
    few_windows: int = 5000
    """Training windows of the measures along the way, and of the runs by values with the paper's iterations."""
    iterations: int = 0
    """The paper's iterations, for the runs by values; with 0 there are none."""


FULL = Plan(
    windows=50_000, passes=4000, batches=10, step_size=0.05, bound_draws=250, few_draws=50, checkpoints=12,
    chain_windows=1000, num_warmup=100, num_draws=100, chains=2, iterations=4000,
)  # fmt: skip
QUICK = Plan(
    windows=2000, passes=600, batches=20, step_size=0.1, bound_draws=100, few_draws=25, checkpoints=5
)


class Lob:
    """TABL (d = 234) on windows X (n, 40, 10) and classes y (n,), to train and to test, as dicts of both.

    The seed decides the windows if they are simulated.
    """

    def __init__(self, windows: int, directory: str, seed: int) -> None:
        data = load_fi2010(directory) if directory else simulate_lob(windows, rng=seed)
        self.parts = {"train": data.train, "test": data.test}
        self.X = {name: np.asarray(part.X) for name, part in self.parts.items()}
        self.y = {name: part.y for name, part in self.parts.items()}
        self.network = networks.tabl()
        self.prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=self.network.dim)
        self.seed = seed

    @property
    def num_windows(self) -> int:
        """The number of windows to train."""
        return len(self.y["train"])

    def likelihood(self, batches: int = 1) -> NetworkLikelihood:
        """The likelihood of the windows to train, in ``batches``."""
        size = -(-self.num_windows // batches)
        return self.network.on(self.X["train"], self.y["train"], batch_size=size, rng=self.seed)

    @cached_property
    def all_windows(self) -> NetworkLikelihood:
        """The likelihood of all windows to train at once."""
        return self.likelihood()

    @cached_property
    def start(self) -> Array:
        """The mean that all methods start from."""
        steps = START_PASSES * START_BATCHES
        likelihood = self.likelihood(START_BATCHES)
        return baselines.adam(
            likelihood, self.prior, step_size=ADAM_STEP, max_iterations=steps, rng=self.seed
        ).theta

    def bound(self, q: mgvbp.Gaussian, num_draws: int) -> tuple[float, float]:
        """The lower bound on all windows and its standard error; the standardised draws are the same for every q."""
        theta = q.sample(num_draws, rng=2**31)
        h = self.all_windows(theta) + self.prior.log_density(theta) - q.log_density(theta)
        return float(h.mean()), float(h.std(ddof=1) / np.sqrt(num_draws))

    def predictions(self, of: Any, num_draws: int, most: int | None = None) -> dict[str, Prediction]:
        """The predictions for both parts, or ``most`` windows of each, ``of`` a Gaussian, draws or a single θ."""
        return {name: self.network.predict(of, X[:most], num_draws) for name, X in self.X.items()}

    def true_predictions(self) -> dict[str, Prediction]:
        """The predictions by the probabilities that the classes were simulated with; empty for real data."""
        found = {}
        for name, part in self.parts.items():
            if (p := part.probabilities) is not None:
                logs = np.log(np.maximum(p, np.finfo(float).tiny))
                found[name] = Prediction(logs, -(p * logs).sum(axis=1))
        return found

    def measures(self, predictions: Mapping[str, Prediction]) -> dict[str, float]:
        """All measures of predictions by part, such as "test acc"."""
        scores = {
            name: prediction.score(self.y[name][: len(prediction.entropy)])
            for name, prediction in predictions.items()
        }
        return {
            f"{name} {measure}": getattr(score, field)
            for name, score in scores.items()
            for measure, field in MEASURES.items()
        }

    def shown(self, predictions: Mapping[str, Prediction]) -> Outcome:
        """The measures, and of each bin with test windows the confidence, the accuracy and the share of windows."""
        bins = predictions["test"].reliability(self.y["test"])
        some = bins.count > 0
        curves = {
            "confidence": bins.confidence,
            "accuracy": bins.accuracy,
            "share": bins.count / bins.count.sum(),
        }
        return Outcome(self.measures(predictions), {name: x[some].tolist() for name, x in curves.items()})


loaded = cache(Lob)


def problem(plan: Plan, seed: int) -> Lob:
    """The network on the data of a plan, which all its runs share."""
    return loaded(plan.windows, plan.directory, seed)
