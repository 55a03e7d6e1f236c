"""The pictures of docs/plots.md and docs/gallery.md, most of them by a function of mgvbp.plots, on real data.

Run:  python docs/gallery.py [names ...]   (needs mgvbp[experiments,statsmodels,volatility]; writes docs/gallery/*.png)
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.stats

import mgvbp
from mgvbp import plots
from mgvbp.datasets import labour
from mgvbp.models import LogisticRegression
from mgvbp.networks import Prediction
from mgvbp.paper.labour import INITIAL_VARIANCE, METHODS, NUM_DRAWS, PRIOR_VARIANCE, SETTINGS
from mgvbp.paper.target import sample
from mgvbp.transforms import Positive, Real
from mgvbp.volatility import GARCH, default_returns

mpl.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).with_name("gallery")
OPTIMUM = -356.6384849  # Labour, full family, by quadrature: src/mgvbp/paper/reference/labour.json
EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # eight schools: Rubin (1981), table 1
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
RUNS = range(3)


@cache
def logistic() -> tuple[Any, LogisticRegression, mgvbp.Gaussian]:
    """The Labour data, its model and the paper's prior."""
    data = labour()
    model = LogisticRegression(data.X_train, data.y_train)
    return data, model, mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(data.names))


@cache
def named(name: str, estimator: str, seed: int) -> mgvbp.Posterior:
    """A run with the paper's settings on the Labour data."""
    _, model, prior = logistic()
    return mgvbp.fit(
        model,
        prior,
        method=METHODS[name](**SETTINGS),
        estimator=estimator,
        num_draws=NUM_DRAWS,
        initial_variance=INITIAL_VARIANCE,
        rng=seed,
    )


@cache
def automatic(seed: int) -> mgvbp.Posterior:
    """A run of auto on the same."""
    _, model, prior = logistic()
    return mgvbp.fit(model, prior, rng=seed)


@cache
def schools() -> tuple[mgvbp.Posterior, Any, Any]:
    """Posterior, draws by MCMC and prior of the eight schools; school j has the effect mu + tau z[j]."""

    def log_likelihood(mu: Any, tau: Any, z: Any) -> Any:
        return scipy.stats.norm.logpdf(EFFECT, mu[:, None] + tau[:, None] * z, ERROR).sum(axis=1)

    parameters = mgvbp.Parameters(mu=Real(), tau=Positive(), z=Real(8))
    prior = parameters.prior(
        mu=scipy.stats.norm(0.0, 10.0), tau=scipy.stats.halfnorm(scale=10.0), z=scipy.stats.norm()
    )
    model = mgvbp.Model(log_likelihood, parameters)
    posterior = mgvbp.fit(model, prior)
    chains = sample(lambda theta: model(theta) + prior.log_density(theta), posterior, seed=0)
    return posterior, chains, prior


@cache
def garch() -> Any:
    """GARCH(1, 1) with Student's t on two years of the S&P 500: short enough for its band to be seen."""
    return GARCH(1, 1, dist="t").fit(default_returns().loc["2010":"2011"])


def reliability() -> Any:
    """Of the labour-force participation of women that the fit has not seen."""
    data, model, _ = logistic()
    p = model.predictive(automatic(0).sample(1000, rng=0), data.X_test)
    prediction = Prediction.from_outputs([np.log(np.stack([1.0 - p, p], axis=2))])
    return plots.reliability(prediction, data.y_test.astype(int), bins=8)


def banana(theta: Any) -> Any:
    """A density whose ridge is a parabola."""
    return -0.5 * theta[:, 0] ** 2 - 2.0 * (theta[:, 1] - theta[:, 0] ** 2) ** 2


def bent() -> Any:
    """Its mixture of Gaussians over exact draws."""
    posterior = mgvbp.fit(banana, dim=2, family="mixture", labels=["x", "y"])
    return plots.corner(posterior, draws=posterior.mcmc())


def search() -> Any:
    """The way of `auto` in two dimensions: draws, darker the later, the Gaussians on the way and, bold, the result."""
    draws: list[Any] = []
    steps: list[Any] = []

    def counted(theta: Any) -> Any:
        draws.append(theta.copy())
        return banana(theta)

    result = mgvbp.fit(counted, dim=2, initial_mean=[-3.0, 4.0], initial_variance=0.1, callback=steps.append)
    axes = plt.subplots(figsize=(6.0, 4.5), layout="constrained")[1]
    x, y = np.linspace(-5.0, 4.0, 300), np.linspace(-2.5, 9.0, 300)
    mesh = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    axes.contourf(
        x, y, np.exp(banana(mesh)).reshape(300, 300), [0.01, 0.1, 0.5, 1.01], cmap="Blues", alpha=0.5
    )
    order = np.repeat(np.arange(len(draws)), [len(batch) for batch in draws])
    axes.scatter(*np.concatenate(draws).T, c=order, cmap="copper_r", s=7, lw=0)
    circle = np.linspace(0.0, 2.0 * np.pi, 100)
    for q in [*(step.gaussian for step in steps), result]:
        ring = q.mean + q.family.from_frame(q.factor, np.stack([np.cos(circle), np.sin(circle)], axis=1))
        last = q is result
        axes.plot(*ring.T, color="black", lw=2.0 if last else 0.4, alpha=1.0 if last else 0.5)
    axes.set(xlim=(-5, 4), ylim=(-2.5, 9), title=f"{len(order)} evaluations, {len(steps)} Gaussians")
    return axes


def nile() -> Any:
    """A forecast of the flow of the Nile with the uncertainty of its two variances."""
    import statsmodels.api as sm

    flow = sm.datasets.nile.load_pandas().data.set_index("year")["volume"]
    model = sm.tsa.UnobservedComponents(np.asarray(flow), "llevel")
    axes = plots.predictive(mgvbp.fit(mgvbp.from_statsmodels(model)).forecast(20))
    axes.plot(np.arange(-len(flow), 0) + axes.lines[0].get_xdata()[0], flow, color="0.4", lw=1.0)
    axes.set_title("The flow of the Nile, and 20 years more", loc="left")
    return axes


PICTURES = {
    "search": search,
    "nile": nile,
    "banana": bent,
    "lower_bound": lambda: plots.lower_bound(
        {"log-likelihood": named("MGVBP", "loglik", 0), "h": named("MGVBP", "h", 0)}
    ),
    "auto": lambda: plots.lower_bound(automatic(0), against="queries"),
    "marginals": lambda: plots.marginals(schools()[0], ["mu", "tau", "z[0]", "z[6]"], *schools()[1:]),
    "corner": lambda: plots.corner(schools()[0], ["mu", "tau", "z[0]"], schools()[1]),
    "corner_garch": lambda: plots.corner(garch().posterior, ["omega", "alpha[1]", "beta[1]", "nu"]),
    "covariance": lambda: plots.covariance(automatic(0)),
    "convergence": lambda: plots.convergence(
        {"auto": [automatic(seed) for seed in RUNS]}
        | {name: [named(name, "h", seed) for seed in RUNS] for name in ("MGVBP", "MGVB")},
        optimum=OPTIMUM,
    ),
    "volatility_band": lambda: plots.volatility_band(garch()),
    "reliability": reliability,
}


def main() -> None:
    """Run the fits and draw."""
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        np.ravel(PICTURES[name]())[0].figure.savefig(FOLDER / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
