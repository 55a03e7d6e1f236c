"""Why the paper's MGVB lags on HAR: its first step, which no clip shortens, decides how far a run gets.

Run:  python benchmarks/first_step.py [--seeds 24]

The first iteration has no control variates yet, so that its gradient is mostly noise. The clip of the first iteration
is on the natural gradient. For MGVB this is that of the covariance, which is as small as the covariance, and a clip at
1,000 never binds; for MGVBP it is that of the precision, which is as large as the precision, and the clip binds. Thus
the first step of MGVB changes variances by factors of up to two, and 800 short steps do not undo it for the intercept,
whose variance moves slowly. The second row has a first clip that binds: the spread over seeds is a third of the first
row's. The paper's runs all have one seed, so that its rows of MGVB with the log-likelihood, with h and diagonal have
one draw of luck among them.
Labour with a diagonal covariance is the other place where the paper's MGVB is behind. There the first step does not
matter: the paper's number is lower than that of every seed here, and why is not known. Its MGVBP and QBVI from the same
seed are low as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import mgvbp
from mgvbp.paper import har
from mgvbp.paper.labour.runs import PANELS, fit
from mgvbp.paper.spec import reference

FIRST_CLIPS = {"as the authors ran it": 1000.0, "first step clipped": 0.02}
EARLY = 6
"""The iteration at which the variance of the intercept is looked at: the momentum of the first step has faded."""
Callback = Callable[[Any], None]


def on_har(clip: float, seed: int, callback: Callback) -> mgvbp.Posterior:
    """MGVB on HAR, full covariance."""
    at = har.target("full")
    settings = har.SETTINGS | har.OWN["MGVB"] | {"clip_initial": clip}
    start = har.SHRINKAGE * at.estimate()[0]
    options = {"estimator": "loglik", "initial_mean": start, "callback": callback, **har.OPTIONS}
    return at.by_method("MGVB", settings, seed, **options)


def on_labour(clip: float, seed: int, callback: Callback) -> mgvbp.Posterior:
    """MGVB on Labour, diagonal covariance."""
    panel = PANELS["authors"]
    clipped = replace(panel, settings=panel.settings | {"clip_initial": clip})
    return fit(clipped, "MGVB", "loglik", "diagonal", seed, callback=callback)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=24)
    seeds = range(parser.parse_args().seeds)
    har_paper, labour_paper = (reference(name)["paper"] for name in ("har", "labour"))
    for name, run, paper in (
        ("HAR", on_har, har_paper["vol_est_FIGARCH_HAR"]["MGVB"]["LB*"]),
        ("Labour, diagonal", on_labour, labour_paper["logistic_perf"]["MGVB diag"]["LB*"]),
    ):
        for settings, clip in FIRST_CLIPS.items():
            early: list[float] = []

            def look(iteration: Any, early: list[float] = early) -> None:
                if iteration.iteration == EARLY:
                    early.append(iteration.gaussian.covariance[0, 0])

            runs = [run(clip, seed, look) for seed in seeds]
            bounds, late = [q.lower_bound for q in runs], [q.covariance[0, 0] for q in runs]
            mean, sd = np.mean(bounds), np.std(bounds, ddof=1)
            correlation = np.corrcoef(np.log(early), np.log(late))[0, 1]
            print(
                f"{name}, {settings}: LB* {mean:.3f}, sd {sd:.3f}, {min(bounds):.3f} to {max(bounds):.3f}; "
                f"paper {paper:.3f}, {(mean - paper) / sd:.1f} sd below\n"
                f"    variance of the intercept at iteration {EARLY}: {min(early):.4f} to {max(early):.4f}, "
                f"at the end: {min(late):.4f} to {max(late):.4f}; correlation {correlation:.2f}"
            )


if __name__ == "__main__":
    main()
