"""The pictures and the table of docs/tutorials/beyond.md: a Gaussian and a mixture over exact draws.

Run:  python docs/beyond_figure.py   (needs mgvbp[plots]; writes docs/modes.png and docs/schools.png, prints the table)
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.stats

import mgvbp
from mgvbp import plots
from mgvbp.errors import ConvergenceWarning
from mgvbp.transforms import Positive, Real

mpl.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent
RECEIVERS = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 1.0]])  # km to the east and to the north
DISTANCE, DISTANCE_ERROR = np.array([2.9, 3.3, 1.8]), np.array([0.3, 0.3, 1.5])
EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # eight schools: Rubin (1981), table 1
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def collar() -> tuple[mgvbp.Model, Any]:
    """Where the animal is: a log-likelihood with two modes, and a prior."""

    def log_likelihood(east: Any, north: Any) -> Any:
        away = np.hypot(east[:, None] - RECEIVERS[:, 0], north[:, None] - RECEIVERS[:, 1])
        return scipy.stats.norm.logpdf(DISTANCE, away, DISTANCE_ERROR).sum(axis=1)

    parameters = mgvbp.Parameters(east=Real(), north=Real())
    return mgvbp.Model(log_likelihood, parameters), mgvbp.Gaussian(variance=9.0, dim=2)


def schools() -> tuple[mgvbp.Model, Any]:
    """The hierarchy: school j has the effect mu + tau z[j]."""

    def log_likelihood(mu: Any, tau: Any, z: Any) -> Any:
        return scipy.stats.norm.logpdf(EFFECT, mu[:, None] + tau[:, None] * z, ERROR).sum(axis=1)

    parameters = mgvbp.Parameters(mu=Real(), tau=Positive(), z=Real(8))
    prior = parameters.prior(
        mu=scipy.stats.norm(0.0, 10.0), tau=scipy.stats.halfnorm(scale=10.0), z=scipy.stats.norm()
    )
    return mgvbp.Model(log_likelihood, parameters), prior


def draw(path: Path, fits: dict[str, mgvbp.Posterior], names: list[str], exact: Any) -> None:
    """Pairs of two parameters for each fit, side by side, over the exact draws and on the same scales."""
    figure = plt.figure(figsize=(9.0, 4.2), layout="constrained")
    ranges = [np.quantile(exact["posterior"][_variable(name)], [0.001, 0.999]) for name in names]
    for part, (title, fit) in zip(figure.subfigures(1, len(fits), wspace=0.05), fits.items(), strict=True):
        axes = plots.corner(fit, names, exact, axes=part.subplots(2, 2))
        part.suptitle(title)
        for i, (low, high) in enumerate(ranges):
            margin = 0.15 * (high - low)
            for ax in axes[i:, i]:
                ax.set_xlim(low - margin, high + margin)
        axes[1, 0].set_ylim(axes[1, 1].get_xlim())
    figure.savefig(path, dpi=110)


def _variable(name: str) -> str:
    return name.partition("[")[0]


def table(columns: dict[str, Any]) -> None:
    """Means and standard deviations of each column's draws, as Markdown."""
    print("|  | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    rows = {
        "mu": lambda d: d["mu"],
        "tau": lambda d: d["tau"],
        "effect of school A": lambda d: d["mu"] + d["tau"] * d["z"][..., 0],
        "effect of school C": lambda d: d["mu"] + d["tau"] * d["z"][..., 2],
    }
    for label, value in rows.items():
        values = [np.asarray(value(draws)) for draws in columns.values()]
        print(f"| {label} | " + " | ".join(f"{v.mean():.1f} ± {v.std():.1f}" for v in values) + " |")


def main() -> None:
    """Run the fits and draw."""
    model, prior = collar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it says that there are two modes
        gaussian = mgvbp.fit(model, prior, starts=8)
    mixture = mgvbp.fit(model, prior, family="mixture", starts=8)
    exact = mixture.mcmc(draws=500)
    draw(
        FOLDER / "modes.png",
        {"the best Gaussian": gaussian, "the mixture": mixture},
        ["east", "north"],
        exact,
    )

    model, prior = schools()
    gaussian, mixture = mgvbp.fit(model, prior, tol=0.1), mgvbp.fit(model, prior, family="mixture")
    exact = mixture.mcmc(draws=5000)
    draw(
        FOLDER / "schools.png",
        {"the best Gaussian": gaussian, "the mixture": mixture},
        ["tau", "z[0]"],
        exact,
    )
    print(f"Gaussian: {gaussian.n_evaluations} evaluations")
    print(f"mixture: {mixture.n_evaluations} evaluations, kl {mixture.kl:.3f} (se {mixture.kl_se:.3f})")
    for name, fit in (("Gaussian", gaussian), ("mixture", mixture)):
        fresh = fit.diagnose(20_000)
        print(f"{name}: log evidence - elbo is {fresh.log_evidence - fresh.elbo:.3f}, k-hat {fresh.khat:.2f}")
    print(f"chains: {exact.attrs}")
    known = exact["posterior"]
    table(
        {
            "Gaussian": gaussian.draws(200_000, rng=0),
            "mixture": mixture.draws(200_000, rng=0),
            "`posterior.mcmc`": {name: known[name].to_numpy() for name in known.data_vars},
        }
    )


if __name__ == "__main__":
    main()
