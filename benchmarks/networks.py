"""Networks by defaults alone: test log density and calibration beside ADAM's point estimate and IVON; divergence.

Run:  python benchmarks/networks.py [--seeds 3] [--variance V] [names ...]      # needs jax and scikit-learn
      python benchmarks/networks.py --robust [--seeds 20]

The data are scikit-learn's digits, breast cancer, wine and diabetes (a regression, whose noise is learnt). A seed
splits off 30% of the rows to test; inputs, and the responses of the regression, are standardised by the other rows. All
have the same prior, N(0, variance I); without ``--variance`` it is the network's default.

- "ADAM, MAP" is `baselines.adam` with 2,000 iterations on all rows.
- "auto" is ``mgvbp.fit(network.on(X, y, batch_size=100))``; in "auto, linearised" the outputs at its draws are those of
  the network linearised at its mean, f(x, μ) + J(x)(θ − μ) (Immer et al. 2021).
- "IVON" is the package ivon-opt (needs PyTorch) on the same network, prior and batches, from N(0, 0.01 I), with a step
  of 0.1 that falls to 0 by a cosine and ess = N, for as many epochs as "auto" took; "IVON, time" for as many as take
  the CPU time of "auto".

Printed are means over the seeds: the log density per row to test, how far it is above that of ADAM, the expected
calibration error (of the regression, the root of the mean squared error in its place), the lower bound, how far it is
above that of the start, and CPU seconds.

``--robust`` fits five architectures to wine with many seeds, and counts the fits whose lower bound is
below that of their start, or not finite, and those that predict worse than the shares of the classes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

import mgvbp
from mgvbp import baselines, networks
from sklearn import datasets  # type: ignore[import-untyped]

WIDTHS = {"digits": [64, 32, 10], "cancer": [30, 8, 2], "wine": [13, 8, 3], "diabetes": [10, 16, 1]}
LOADERS: dict[str, Callable[..., Any]] = {
    "digits": datasets.load_digits,
    "cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "diabetes": datasets.load_diabetes,
}
BATCH, NUM_DRAWS = 100, 200
ARCHITECTURES: dict[str, tuple[list[int], str]] = {
    "no hidden layer": ([13, 3], "tanh"),
    "8 tanh": ([13, 8, 3], "tanh"),
    "32 relu": ([13, 32, 3], "relu"),
    "16-16 gelu": ([13, 16, 16, 3], "gelu"),
    "8-8-8 sigmoid": ([13, 8, 8, 8, 3], "sigmoid"),
}


class Task(NamedTuple):
    """A network and its data."""

    network: networks.Network
    prior: mgvbp.Gaussian
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]


class Row(NamedTuple):
    """What a fit came to: ``error`` is the expected calibration error, or that of a regression."""

    log_density: float
    error: float
    bound: float
    seconds: float
    rise: float


def task(
    name: str, seed: int, variance: float | None, widths: list[int] | None = None, act: str = "tanh"
) -> Task:
    """The rows of a data set, split by the seed."""
    X, y = LOADERS[name](return_X_y=True)
    regression = name == "diabetes"
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.3, random_state=seed, stratify=None if regression else y
    )
    scaler = StandardScaler().fit(X)
    if regression:
        mean, std = y.mean(), y.std()
        y, y_test = (y - mean) / std, (y_test - mean) / std
    likelihood = networks.normal() if regression else networks.softmax
    network = networks.dense(widths or WIDTHS[name], act, likelihood)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    prior = network.on(X, y).default_prior
    if variance is not None:
        prior = mgvbp.Gaussian(variance=variance, dim=network.dim)
    return Task(network, prior, X, y, X_test, y_test)


def row(it: Task, found: Any, seconds: float, bound: float = np.nan, rise: float = np.nan) -> Row:
    """The scores of a fit on the rows to test."""
    return scored(it, it.network.predict(found, it.X_test, NUM_DRAWS), seconds, bound, rise)


def linearised(it: Task, posterior: mgvbp.Posterior) -> Any:
    """Predictions by the network linearised at the posterior's mean, averaged over draws of the weights."""
    import jax

    draws, mean = posterior.sample(NUM_DRAWS, 0).astype(np.float32), posterior.mean.astype(np.float32)
    X = it.X_test.astype(np.float32)

    def at(step: Any) -> Any:
        return sum(jax.jvp(lambda theta: it.network.forward(it.network._by_name(theta), X), (mean,), (step,)))

    outputs = np.asarray(jax.vmap(at)(draws - mean))
    return it.network.likelihood.prediction([outputs], it.network.weights.constrain(draws.astype(float)))


def scored(it: Task, prediction: Any, seconds: float, bound: float = np.nan, rise: float = np.nan) -> Row:
    """The scores of predictions of the rows to test."""
    scores = prediction.score(it.y_test)
    error = scores.ece if hasattr(scores, "ece") else scores.rmse
    return Row(scores.log_predictive_density, error, bound, seconds, rise)


def fitted(it: Task, seed: int) -> tuple[mgvbp.Posterior, float]:
    """The posterior by defaults, and how far its bound is above that of its start."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.errors.ConvergenceWarning)
        data = it.network.on(it.X, it.y, batch_size=min(BATCH, len(it.X)), rng=seed)
        posterior = mgvbp.fit(data, it.prior, rng=seed)
    known = posterior.trace.smoothed[np.isfinite(posterior.trace.smoothed)]
    return posterior, float(posterior.lower_bound - known[0]) if len(known) else np.nan


def ivon(it: Task, seed: int, epochs: float, seconds: float) -> tuple[NDArray[np.float64], float]:
    """Draws of θ by IVON after so many epochs or CPU seconds, whichever comes first."""
    import ivon as package
    import torch

    torch.manual_seed(seed)
    network, batch = it.network, min(BATCH, len(it.X))
    N, regression = len(it.X), "sigma" in it.network.weights.slices
    theta = torch.nn.Parameter(0.1 * torch.randn(network.dim))
    delta = 1.0 / float(it.prior.std[0] ** 2) / N
    optimizer = package.IVON([theta], lr=0.1, ess=N, weight_decay=delta, hess_init=0.1)
    steps = max(1, round(epochs * N / batch))
    X, y = torch.tensor(it.X, dtype=torch.float32), torch.tensor(it.y)
    start, order = process_time(), torch.randperm(N)

    def loss(rows: Any) -> Any:
        hidden, slices = X[rows], network.weights.slices
        shapes = {name: t.shape for name, t in network.weights.transforms.items()}
        layers = sum(name.startswith("W") for name in slices)
        for k in range(1, layers + 1):
            W, b = (theta[slices[f"{kind}{k}"]].reshape(shapes[f"{kind}{k}"]) for kind in "Wb")
            hidden = hidden @ W + b
            if k < layers:
                hidden = torch.tanh(hidden)
        if not regression:
            return torch.nn.functional.cross_entropy(hidden, y[rows])
        log_sigma = theta[slices["sigma"]]
        return (0.5 * ((y[rows].float() - hidden[:, 0]) * torch.exp(-log_sigma)) ** 2 + log_sigma).mean()

    for step in range(steps):
        share = max(step / steps, (process_time() - start) / seconds)
        if share >= 1.0:
            break
        optimizer.param_groups[0]["lr"] = 0.05 * (1.0 + np.cos(np.pi * share))
        position = step * batch % (N - batch + 1)
        if position < batch:
            order = torch.randperm(N)
        with optimizer.sampled_params(train=True):
            optimizer.zero_grad()
            loss(order[position : position + batch]).backward()
        optimizer.step()
    draws = []
    for _ in range(NUM_DRAWS):
        with optimizer.sampled_params():
            draws.append(theta.detach().numpy().astype(float).copy())
    return np.array(draws), process_time() - start


def compared(name: str, seed: int, variance: float | None) -> dict[str, Row]:
    """All fits of a data set."""
    it = task(name, seed, variance)
    start = process_time()
    data = it.network.on(it.X, it.y)
    point = baselines.adam(data, it.prior, max_iterations=2000, rng=seed)
    rows = {"ADAM, MAP": row(it, point, process_time() - start)}
    start = process_time()
    posterior, rise = fitted(it, seed)
    seconds = process_time() - start
    rows["auto"] = row(it, posterior, seconds, posterior.lower_bound, rise)
    rows["auto, linearised"] = scored(it, linearised(it, posterior), seconds)
    epochs = len(posterior.trace) / it.network.on(it.X, it.y, batch_size=min(BATCH, len(it.X))).num_batches
    try:
        for label, limits in (("IVON", (epochs, np.inf)), ("IVON, time", (np.inf, seconds))):
            draws, spent = ivon(it, seed, *(1e5 if limit == np.inf else limit for limit in limits))
            rows[label] = row(it, draws, spent)
    except ModuleNotFoundError as missing:
        print(f"IVON is left out: {missing}", file=sys.stderr)
    return rows


def compare(names: list[str], seeds: int, variance: float | None) -> None:
    """Print a table for each data set."""
    for name in names:
        runs = [compared(name, seed, variance) for seed in range(seeds)]
        print(f"\n{name}, {seeds} seeds\n")
        print("|  | log density | above ADAM | ECE (RMSE) | lower bound | above its start | CPU seconds |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for label in runs[0]:
            rows = [run[label] for run in runs]
            above = [run[label].log_density - run["ADAM, MAP"].log_density for run in runs]
            density, error, bound, seconds, rise = np.mean(rows, axis=0)
            print(
                f"| {label} | {density:.3f} | {np.mean(above):+.3f} | {error:.3f} | {bound:.1f} | {rise:+.1f} | "
                f"{seconds:.1f} |",
                flush=True,
            )


def robust(seeds: int) -> None:
    """Print how many fits ended below their start, or predict worse than the shares of the classes."""
    print("| architecture | fits | below the start | not finite | worse than the shares | least rise |")
    print("| --- | --- | --- | --- | --- | --- |")
    for label, (widths, act) in ARCHITECTURES.items():
        rises, worse, lost = [], 0, 0
        for seed in range(seeds):
            it = task("wine", seed, None, widths, act)
            posterior, rise = fitted(it, seed)
            shares = np.bincount(it.y) / len(it.y)
            worse += row(it, posterior, 0.0).log_density < np.log(shares[it.y_test]).mean()
            lost += not np.isfinite(posterior.lower_bound)
            rises.append(rise)
        below = sum(rise < 0.0 for rise in rises)
        print(f"| {label} | {seeds} | {below} | {lost} | {worse} | {min(rises):+.1f} |", flush=True)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*WIDTHS, []], help="data sets; all by default")
    parser.add_argument("--seeds", type=int, help="3 by default, 20 with --robust")
    parser.add_argument("--variance", type=float, help="of the prior")
    parser.add_argument("--robust", action="store_true")
    arguments = parser.parse_args()
    if arguments.robust:
        robust(arguments.seeds or 20)
    else:
        compare(arguments.names or list(WIDTHS), arguments.seeds or 3, arguments.variance)


if __name__ == "__main__":
    main()
