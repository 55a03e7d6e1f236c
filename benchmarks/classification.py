"""Networks with one hidden layer on real data: test log predictive density of posteriors and of ADAM's point estimates.

Run:  python benchmarks/classification.py [--seeds 5] [--variance 1] [names ...]      # needs jax and scikit-learn

The data are scikit-learn's digits, wine and breast cancer. A seed splits off 30% of the rows, by class, to test, and
starts ADAM; features are standardised by the mean and the standard deviation of the other rows. All but
"ADAM, ML" have the prior N(0, variance I) on all weights, one variance for all data; the variational methods
start from 100 iterations of ADAM. Step sizes were chosen by the lower bound, that is without rows to test. ADAM without
a prior has no end where classes can be separated: its numbers are those after 2,000 iterations.

Printed are means over the seeds ± their standard errors, per row of the test data: the log predictive density, how much
it is above that of each point estimate (paired by seed), accuracy and expected calibration error; of the whole
training data the lower bound from 1,000 fresh draws; and the median of the seconds, as the first seed also compiles.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

import mgvbp
from mgvbp import baselines, networks
from mgvbp.methods import Method
from sklearn import datasets  # type: ignore[import-untyped]

WIDTHS = {"wine": (13, 8, 3), "cancer": (30, 8, 2), "digits": (64, 16, 10)}
LOADERS = {"wine": datasets.load_wine, "cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}
LARGEST_FULL = 300
"""Weights up to which covariances are full and NUTS is run: wine has 139, cancer 266, but digits 1,210."""
NUM_DRAWS = 300
"""Draws of the weights in a prediction."""
POINTS = ("ADAM, ML", "ADAM, MAP")
"""Maximum likelihood, and maximum a posteriori with the prior of all others."""
HEADINGS = ("accuracy", "ECE", "lower bound", "seconds")


class Task(NamedTuple):
    """A network and its data; rows (n, features) and labels (n,)."""

    network: networks.Network
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


class Row(NamedTuple):
    """What one run came to; the lower bound is nan where there is none."""

    log_density: float
    accuracy: float
    ece: float
    bound: float
    seconds: float


Fit = Callable[[Task, mgvbp.Gaussian, int], Any]
"""From a task, a prior and a seed to a posterior, draws of θ, or one θ."""


def split(name: str, seed: int) -> tuple[NDArray[Any], ...]:
    """Rows and labels to train, rows and labels to test."""
    X, y = LOADERS[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def adam(task: Task, prior: mgvbp.Gaussian | None, seed: int, max_iterations: int = 2000) -> Any:
    """The largest log posterior density or, without a prior, the largest log-likelihood."""
    data = task.network.on(task.X, task.y)
    return baselines.adam(data, prior, max_iterations=max_iterations, rng=seed).theta


def by_unit(task: Task) -> mgvbp.BlockDiagonal:
    """A block for what enters each hidden unit, and one for what leaves them all."""
    width = task.network.weights.transforms["b1"].shape[0]
    entering = task.network.weights.slices["b1"].stop
    return mgvbp.BlockDiagonal(
        [
            *np.arange(entering).reshape(-1, width).T.tolist(),
            np.arange(entering, task.network.dim).tolist(),
        ]
    )


def variational(
    method: Method, family: str | Callable[[Task], Any], batch_size: int | None = None, **options: Any
) -> Fit:
    """A fit from the hundredth iterate of ADAM."""

    def fit(task: Task, prior: mgvbp.Gaussian, seed: int) -> mgvbp.Posterior:
        mean = adam(task, prior, seed, max_iterations=100)
        return mgvbp.fit(
            task.network.on(task.X, task.y, batch_size=batch_size, rng=seed),
            prior,
            method=method,
            family=family(task) if callable(family) else family,
            draws="antithetic",
            initial_mean=mean,
            initial_variance=0.01,
            rng=seed,
            **options,
        )

    return fit


def nuts(task: Task, prior: mgvbp.Gaussian, seed: int) -> NDArray[np.float64]:
    """Draws from the posterior itself, from one chain."""
    data = task.network.on(task.X, task.y)
    return baselines.nuts(data, prior, num_warmup=300, num_draws=500, chains=1, rng=seed).flat


STEPS: dict[str, Any] = {"step_size": 0.1, "precision_scale": 2.0}
FITS: dict[str, Fit] = {
    "ADAM, ML": lambda task, prior, seed: adam(task, None, seed),
    "ADAM, MAP": adam,
    "MGVBP, full": variational(
        mgvbp.MGVBP(**STEPS, decay_after=200, max_iterations=400), "full", num_draws=50
    ),
    "MGVBP, blocks": variational(
        mgvbp.MGVBP(**STEPS, decay_after=300, max_iterations=600), by_unit, num_draws=20
    ),
    "MGVBP, diagonal": variational(
        mgvbp.MGVBP(**STEPS, decay_after=300, max_iterations=600), "diagonal", num_draws=10
    ),
    "QBVI, diagonal": variational(
        mgvbp.QBVI(**STEPS, decay_after=300, max_iterations=600), "diagonal", num_draws=10
    ),
    "VOGN, diagonal": variational(
        mgvbp.VOGN(step_size=0.02, curvature_step=0.02, decay_after=500, max_iterations=2000),
        "diagonal",
        batch_size=100,
        num_draws=4,
    ),
    "NUTS": nuts,
}
SMALL_ONLY = ("MGVBP, full", "NUTS")


def run(fit: Fit, task: Task, prior: mgvbp.Gaussian, seed: int) -> Row:
    """Fit, predict and score."""
    begin = perf_counter()
    fitted = fit(task, prior, seed)
    seconds = perf_counter() - begin
    scores = task.network.predict(fitted, task.X_test, NUM_DRAWS).score(task.y_test)
    bound = fitted.diagnose(1000).elbo if isinstance(fitted, mgvbp.Posterior) else np.nan
    return Row(scores.log_predictive_density, scores.accuracy, scores.ece, bound, seconds)


def runs(name: str, variance: float, seeds: Sequence[int]) -> dict[str, list[Row]]:
    """The rows of every method on a data set, one a seed."""
    network = networks.dense(WIDTHS[name])
    prior = mgvbp.Gaussian(variance=variance, dim=network.dim)
    tasks = [Task(network, *split(name, seed)) for seed in seeds]
    return {
        method: [run(fit, task, prior, seed) for task, seed in zip(tasks, seeds, strict=True)]
        for method, fit in FITS.items()
        if network.dim <= LARGEST_FULL or method not in SMALL_ONLY
    }


def average(values: NDArray[np.float64], digits: int) -> str:
    """The mean over seeds ± its standard error; a dash if there is nothing to average."""
    if not np.isfinite(values).all():
        return "–"
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{error}".replace("-", "−")


def table(results: dict[str, list[Row]]) -> str:
    """The results on one data set, in Markdown."""
    header = ["", "log density", *(f"above {point}" for point in POINTS), *HEADINGS]
    lines = [header, ["---"] * len(header)]
    densities = {method: np.array([row.log_density for row in rows]) for method, rows in results.items()}
    for method, rows in results.items():
        _, accuracy, ece, bound, seconds = np.array(rows).T
        above = [average(densities[method] - densities[point], 3) for point in POINTS]
        lines.append(
            [
                method,
                average(densities[method], 3),
                *above,
                average(accuracy, 3),
                average(ece, 3),
                average(bound, 1),
                f"{np.median(seconds):.1f}",
            ]
        )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=", ".join(WIDTHS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--variance", type=float, default=1.0, help="of the prior of every weight")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        for name in arguments.names or WIDTHS:
            results = runs(name, arguments.variance, range(arguments.seeds))
            widths = "-".join(map(str, WIDTHS[name]))
            print(
                f"\n{name}, {widths}, prior variance {arguments.variance:g}\n\n{table(results)}", flush=True
            )


if __name__ == "__main__":
    main()
