"""`auto` from the paper's starting values: queries and exact gap on Labour and on GARCH(1,0,1).

Run:  python benchmarks/starts.py [--seeds 200]

Labour: within 0.01 nats of the exact optimum with a median of at most 600 queries from mean 0, variance 1; at most
2,000 from N(0, 10 I), N(±5, 10 I) and the constants ±20. GARCH: at most 4,000 queries; on the paper's S&P 500 returns
(1,698 days; `mgvbp data fetch sp500`) against their exact optimum, else on simulated returns, where the runs are
compared with the best of them. Last, the time of a Labour fit over that of its bare likelihood calls, with the plain
SciPy expression that a user would write.
"""

from __future__ import annotations

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

import mgvbp
from mgvbp import datasets
from mgvbp.models import LogisticRegression
from mgvbp.paper.labour import PRIOR_VARIANCE, exact_lower_bound
from mgvbp.volatility import GARCH, Likelihood
from timing import best_time, plain_logistic

LABOUR_OPTIMUM, GARCH_OPTIMUM = -356.6384849425426, -2027.500797113209


def starting_points(dim: int, seeds: int) -> dict[str, list[np.ndarray]]:
    """The paper's two tables of starting values, and mean 0."""
    rngs = [np.random.default_rng(1000 + seed) for seed in range(seeds)]
    noise = [np.sqrt(10.0) * rng.standard_normal(dim) for rng in rngs]
    named = {
        "0": [np.zeros(dim)] * seeds,
        "20": [np.full(dim, 20.0)] * seeds,
        "-20": [np.full(dim, -20.0)] * seeds,
    }
    for centre in (0.0, 5.0, -5.0):
        named[f"N({centre:g}, 10 I)"] = [centre + z for z in noise]
    return named


def garch_bound(model: Likelihood, prior: mgvbp.Gaussian, q: mgvbp.Gaussian) -> float:
    """The lower bound by a tensor Gauss–Hermite rule, 15 nodes a coordinate."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    eps = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    w = np.prod(
        np.stack(np.meshgrid(weights, weights, weights, indexing="ij"), axis=-1).reshape(-1, 3), axis=1
    )
    keep = w > 1e-14 * w.max()
    theta = q.mean + q.family.from_frame(q.factor, eps[keep])
    h = model(theta) + prior.log_density(theta) - q.log_density(theta)
    return float(w[keep] @ h / w[keep].sum())


def report(name: str, gaps: list[float], queries: list[int], unconverged: int) -> None:
    print(
        f"{name:<16}{np.median(queries):>9.0f}{max(queries):>9}{np.median(gaps):>12.4f}{max(gaps):>10.4f}"
        f"{np.mean(np.array(gaps) <= 0.01):>12.1%}{unconverged:>13}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=200)
    arguments = parser.parse_args()
    data = datasets.labour()
    model = LogisticRegression(data.X_train, data.y_train)
    prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(data.names))
    heading = f"{'start':<16}{'median':>9}{'most':>9}{'median gap':>12}{'worst':>10}"
    heading += f"{'gap <= 0.01':>12}{'unconverged':>13}"
    with threadpool_limits(1):
        print(
            f"Labour, {arguments.seeds} seeds, exact optimum {LABOUR_OPTIMUM:.4f}; queries and nats\n{heading}"
        )
        for name, means in starting_points(prior.dim, arguments.seeds).items():
            fits = [mgvbp.fit(model, prior, initial_mean=mean, rng=seed) for seed, mean in enumerate(means)]
            gaps = [LABOUR_OPTIMUM - exact_lower_bound(model, prior, q) for q in fits]
            report(name, gaps, [q.n_evaluations for q in fits], sum(not q.converged for q in fits))
        garch_table(arguments.seeds, heading)
        seen: list[np.ndarray] = []
        plain = plain_logistic(data.X_train, data.y_train)

        def recorded(theta: np.ndarray) -> np.ndarray:
            seen.append(theta)
            return plain(theta)

        mgvbp.fit(recorded, prior)
        whole, bare = (
            best_time(lambda: mgvbp.fit(plain, prior)),
            best_time(lambda: [plain(theta) for theta in seen]),
        )
        print(
            f"Labour fit {1e3 * whole:.1f} ms, its bare likelihood calls {1e3 * bare:.1f} ms: ratio {whole / bare:.2f}"
        )


def garch_table(seeds: int, heading: str) -> None:
    real = datasets.find("sp500") is not None
    returns = datasets.load("sp500" if real else "synthetic-sp500").train["r"]
    label = (
        f"S&P 500, exact optimum {GARCH_OPTIMUM:.4f}" if real else "simulated returns, gap to the best run"
    )
    garch = GARCH(1, 1, convention="paper")
    model, prior = garch.likelihood(returns), garch.prior(returns)
    print(f"GARCH(1,0,1), {seeds} seeds, {label}\n{heading}")
    results = {
        name: [mgvbp.fit(model, prior, initial_mean=mean, rng=seed) for seed, mean in enumerate(means)]
        for name, means in starting_points(3, seeds).items()
    }
    bounds = {name: [garch_bound(model, prior, q) for q in fits] for name, fits in results.items()}
    best = GARCH_OPTIMUM if real else max(max(row) for row in bounds.values())
    for name, fits in results.items():
        gaps = [best - bound for bound in bounds[name]]
        report(name, gaps, [q.n_evaluations for q in fits], sum(not q.converged for q in fits))


if __name__ == "__main__":
    main()
