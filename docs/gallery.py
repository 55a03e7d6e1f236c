"""The pictures of docs/plots.md, one a function of mgvbp.plots, on real data.

Run:  python docs/gallery.py   (needs mgvbp[experiments,volatility]; writes docs/gallery/*.png)
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

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


PICTURES = {
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
    for name, draw in PICTURES.items():
        np.ravel(draw())[0].figure.savefig(FOLDER / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
