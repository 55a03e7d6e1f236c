"""The picture of docs/networks.md: reliability on the breast cancer data, over the rows to test of five splits.

Run:  python docs/networks_figure.py   (needs mgvbp[jax,plots,sklearn]; writes docs/reliability.png)
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

import mgvbp
from mgvbp import networks

mpl.use("Agg")
from matplotlib import pyplot as plt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from classification import FITS, NUM_DRAWS, WIDTHS, Task, split

TITLES = {
    "ADAM, ML": "ADAM, maximum likelihood",
    "ADAM, MAP": "ADAM, maximum a posteriori",
    "MGVBP, full": "MGVBP, full covariance",
}
SEEDS = range(5)


def main() -> None:
    """Run the fits and draw."""
    network = networks.dense(WIDTHS["cancer"])
    prior = mgvbp.Gaussian(variance=1.0, dim=network.dim)
    tasks = [Task(network, *split("cancer", seed)) for seed in SEEDS]
    y = np.concatenate([task.y_test for task in tasks])
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.6), layout="constrained", sharey=True)
    for ax, (name, title) in zip(axes, TITLES.items(), strict=True):
        parts = [
            network.predict(FITS[name](task, prior, seed), task.X_test, NUM_DRAWS)
            for task, seed in zip(tasks, SEEDS, strict=True)
        ]
        together = networks.Prediction(
            np.concatenate([part.log_probabilities for part in parts]),
            np.concatenate([part.expected_entropy for part in parts]),
        )
        together.plot_reliability(y, ax)
        ece = together.reliability(y).ece
        ax.set_xlim(0.45, 1.02)  # of two classes the likelier has at least ½
        ax.set_aspect("auto")
        ax.set_title(f"{title}\nexpected calibration error {ece:.3f}", fontsize=9, loc="left")
    for ax in axes[::2]:
        ax.get_legend().remove()
    axes[1].legend(loc="lower left", bbox_to_anchor=(0.0, 0.03), fontsize=8, frameon=False)
    figure.savefig(Path(__file__).with_name("reliability.png"), dpi=130)


if __name__ == "__main__":
    main()
