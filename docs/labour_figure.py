"""The picture of docs/auto.md: gap to the exact optimum against queries, on the Labour data.

Run:  python docs/labour_figure.py   (needs mgvbp[experiments,plots]; writes docs/labour.png)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import mgvbp
from mgvbp.datasets import labour
from mgvbp.models import LogisticRegression
from mgvbp.paper.labour import (
    INITIAL_VARIANCE,
    METHODS,
    NUM_DRAWS,
    PRIOR_VARIANCE,
    SETTINGS,
    exact_lower_bound,
)

mpl.use("Agg")
from matplotlib import pyplot as plt

OPTIMUM = -356.6384849  # full family, by quadrature: src/mgvbp/paper/reference/labour.json


def path(model: LogisticRegression, prior: mgvbp.Gaussian, **options: Any) -> tuple[list[int], list[float]]:
    """Queries and exact gap over the iterations of a fit."""
    queries, gaps = [], []

    def record(iteration: Any) -> None:
        queries.append(iteration.n_evaluations)
        gaps.append(OPTIMUM - exact_lower_bound(model, prior, iteration.gaussian))

    mgvbp.fit(model, prior, callback=record, **options)
    return queries, gaps


def main() -> None:
    """Run the fits and draw."""
    data = labour()
    model = LogisticRegression(data.X_train, data.y_train)
    prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(data.names))
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    queries, gaps = path(model, prior)
    print(f"auto: certified after {queries[-1]} evaluations, {gaps[-1]:.4f} nats below the optimum")
    axes.plot(queries, gaps, "o-", color="black", lw=2, ms=3, label="auto")
    start = np.sqrt(INITIAL_VARIANCE) * np.random.default_rng(0).standard_normal(prior.dim)
    for (name, method), style in zip(METHODS.items(), ("-", "--", ":"), strict=True):
        queries, gaps = path(
            model,
            prior,
            method=method(**SETTINGS),
            estimator="h",
            num_draws=NUM_DRAWS,
            initial_mean=start,
            initial_variance=INITIAL_VARIANCE,
        )
        axes.plot(queries, gaps, style, lw=1.4, label=f"{name}, the paper's settings")
    axes.axhline(0.01, color="grey", lw=0.8)
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(1e-5, 1e6),
        xlabel="log-likelihood queries",
        ylabel="nats below the optimum",
        title="Logistic regression on the Labour data, 8 parameters",
    )
    axes.legend(frameon=False, loc="upper right")
    figure.savefig(Path(__file__).with_name("labour.png"), dpi=130)


if __name__ == "__main__":
    main()
