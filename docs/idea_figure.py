"""The picture of the README: a function, the posterior that its values give, and the certificate.

Run:  python docs/idea_figure.py   (needs mgvbp[plots]; writes docs/idea.png)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.stats

import mgvbp

mpl.use("Agg")
from matplotlib import pyplot as plt

DOSE = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
RESPONSE = np.array([1.4, 2.9, 3.6, 4.6, 5.5])
PRIOR = mgvbp.Gaussian(mean=[2.0, 1.0], variance=2.0)
BLUE, ORANGE, GREY = "#1f5fa8", "#d9722b", "0.55"


def log_likelihood(theta: Any) -> Any:
    """A dose and its response, with a largest response and a dose of half of it, both positive; Student-t errors."""
    top, half = np.exp(theta[:, :1]), np.exp(theta[:, 1:])
    return scipy.stats.t.logpdf(RESPONSE, 4.0, top * DOSE / (half + DOSE), 0.35).sum(axis=1)


def log_density(theta: Any) -> Any:
    """The posterior's, up to its constant."""
    return log_likelihood(theta) + PRIOR.log_density(theta)


def true_gap(q: Any, best: float, nodes: Any, weights: Any) -> float:
    """Nats between the bound of ``q``, by quadrature, and the best one."""
    theta = q.mean + q.family.from_frame(q.factor, nodes)
    return best - float(weights @ (log_density(theta) - q.log_density(theta)))


def main() -> None:
    """Fit, and draw."""
    seen: list[Any] = []
    path: list[Any] = []

    def counted(theta: Any) -> Any:
        seen.append(theta.copy())
        return log_likelihood(theta)

    gaussian = mgvbp.fit(counted, PRIOR, callback=path.append)
    mixture = mgvbp.fit(log_likelihood, PRIOR, family="mixture")
    x, w = np.polynomial.hermite_e.hermegauss(60)
    nodes = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    weights = np.outer(w, w).ravel() / (w.sum() ** 2)
    reference = mgvbp.fit(log_likelihood, PRIOR, tol=1e-4, max_evaluations=20_000)
    best = -true_gap(reference, 0.0, nodes, weights)

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.3), layout="constrained")
    grid = [
        np.linspace(m - 3.0 * s, m + 4.0 * s, 300) for m, s in zip(mixture.mean, mixture.std, strict=True)
    ]
    mesh = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
    density = np.exp(log_density(mesh) - log_density(mesh).max()).reshape(300, 300)
    levels = [0.01, 0.1, 0.5, 1.01]
    theta = np.concatenate(seen)
    left.contourf(*np.exp(grid), density, levels=levels, colors=["#dbe6f3", "#b3cbe6", "#7fa8d3"])
    left.scatter(*np.exp(theta.T), s=5, color="black", lw=0, label=f"its {len(theta)} evaluations")
    left.set(
        xscale="log",
        yscale="log",
        xlim=np.exp(grid[0][[0, -1]]),
        ylim=np.exp(grid[1][[0, -1]]),
        xlabel="largest response",
        ylabel="dose of half of it",
        title="Evaluations of your function",
    )
    left.legend(frameon=False, loc="lower right", handletextpad=0.1)
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
        axis.set_minor_formatter(mpl.ticker.NullFormatter())

    k = np.exp(grid[1])
    exact = density.sum(axis=1) / k
    exact /= np.trapezoid(exact, k)
    draws = np.exp(mixture.sample(200_000, rng=0)[:, 1])
    middle.fill_between(k, exact, color="#b3cbe6", lw=0, label="exact")
    normal = scipy.stats.norm(gaussian.mean[1], gaussian.std[1])
    middle.plot(k, normal.pdf(np.log(k)) / k, "--", color=GREY, lw=1.5, label="best Gaussian")
    kernel = scipy.stats.gaussian_kde(np.log(draws[:50_000]), 0.1)
    middle.plot(k, kernel(np.log(k)) / k, color=BLUE, lw=1.8, label=f"mixture, {mixture.kl:.3f} nats away")
    middle.set(
        xlim=(k[0], k[-1]), ylim=(0, None), yticks=[], xlabel="dose of half of it", title="Its posterior"
    )
    middle.legend(frameon=False)

    queries = [step.n_evaluations for step in path]
    gaps = [true_gap(step.gaussian, best, nodes, weights) for step in path]
    stated = gaussian.trace.gap
    right.plot(queries, gaps, "o-", color="black", ms=3, label="true distance")
    right.plot(queries, stated, "s--", color=ORANGE, ms=3, lw=1, label="stated distance")
    right.axhline(0.01, color=GREY, lw=0.8)
    right.set(yscale="log", xlabel="evaluations", ylabel="nats to the best Gaussian", title="The certificate")
    right.legend(frameon=False)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("idea.png"), dpi=130)


if __name__ == "__main__":
    main()
