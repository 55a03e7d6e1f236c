"""Pictures of docs/gallery.md that measure: the certificate, how fits scale, a backtest, the search as an animation.

Run:  python docs/gallery_measured.py [names ...]   (needs mgvbp[experiments,volatility], writes docs/gallery/*)

The times are of one core, whatever else the machine does; the counts and distances do not depend on it.
"""

from __future__ import annotations

import io
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from gallery import FOLDER, banana, plt
from how_figures import BLUE, GREY, ORANGE, contours, figure, ring

import mgvbp
from mgvbp.models import LogisticRegression
from mgvbp.volatility import GARCH, backtest, default_returns

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from zoo import TARGETS  # noqa: E402
from zoo.bound import lower_bound  # noqa: E402


def calibration() -> Any:
    """Stated against true distance to the optimum, for posteriors of the zoo and four tolerances."""
    reference = json.loads((TESTS / "zoo/reference.json").read_text())
    names = [
        name
        for name, entry in reference.items()
        if "full" in entry and "multimodal" not in entry["tags"] and TARGETS[name].dim <= 4
    ]
    rows = []
    for name in names:
        for tol in (0.3, 0.1, 0.03, 0.01):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
                fitted = mgvbp.fit(TARGETS[name].log_density, dim=TARGETS[name].dim, tol=tol)
            bound, _ = lower_bound(TARGETS[name], fitted, num=2**13, seeds=range(2))
            if fitted.converged:
                rows.append((fitted.gap, fitted.gap_se, reference[name]["full"]["lower_bound"] - bound))
    stated, error, true = np.array(rows).T
    holds = true <= stated + 3.0 * error + 0.01
    print(f"certificate: {holds.sum()} of {len(rows)} claims hold, {len(names)} posteriors with d ≤ 4")
    picture, axes = figure(1, 5.6, 4.2)
    line = np.geomspace(1e-5, 1.0, 50)
    axes.fill_between(line, line, 1.0, color="#f3dccb", lw=0, label="the truth is farther than stated")
    axes.scatter(np.maximum(stated, 1e-5), np.maximum(true, 1e-5), s=14, color=BLUE, alpha=0.7, lw=0)
    axes.axhline(0.01, color=GREY, lw=0.8, ls=":")
    axes.set(
        xscale="log", yscale="log", xlim=(1e-5, 0.4), ylim=(1e-5, 0.4), xlabel="stated nats to the optimum",
        ylabel="true nats to the optimum", title=f"{holds.sum()} of {len(rows)} certificates hold",
    )  # fmt: skip
    axes.legend(frameon=False, loc="upper left")
    return picture


def scaling() -> Any:
    """Evaluations and seconds against the number of coefficients of a logistic regression."""
    sizes = {False: (2, 4, 8, 16, 24), True: (2, 4, 8, 16, 32, 64, 128, 256, 512)}
    picture, (left, right) = figure(2)
    for gradients, style in ((False, "s--"), (True, "o-")):
        counts, seconds = [], []
        for dim in sizes[gradients]:
            rng = np.random.default_rng(dim)
            X = rng.normal(size=(10 * dim, dim))
            y = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ rng.normal(size=dim) / np.sqrt(dim)))).astype(
                float
            )
            model = LogisticRegression(X, y)
            start = time.process_time()
            prior = mgvbp.Gaussian(variance=1.0, dim=dim)
            if gradients:
                fitted = mgvbp.fit(model, prior, grad=model.gradient)
            else:
                fitted = mgvbp.fit(
                    lambda theta, model=model: model(theta), prior
                )  # hides the model's gradient
            seconds.append(time.process_time() - start)
            counts.append(fitted.n_evaluations)
            print(
                f"scaling: d = {dim}, gradients {gradients}, {counts[-1]:,}, {seconds[-1]:.2f} s",
                fitted.converged,
            )
        label = "with gradients" if gradients else "by values"
        for axes, figures in ((left, counts), (right, seconds)):
            axes.plot(
                sizes[gradients], figures, style, ms=4, color=BLUE if gradients else ORANGE, label=label
            )
    left.set(
        xscale="log", yscale="log", xlabel="coefficients", ylabel="evaluations", title="To a certificate"
    )
    right.set(xscale="log", yscale="log", xlabel="coefficients", ylabel="seconds of one core")
    left.legend(frameon=False)
    return picture


def var_backtest() -> Any:
    """Value at risk of a day ahead, and the days on which the loss was larger."""
    returns = default_returns().loc["2003":"2012"]
    test = backtest(GARCH(1, 1, dist="t"), returns, start=1000, refit=125, alpha=0.05)
    days, losses, risk = test.dates, -test.returns, test.var[:, 0]
    hit = test.exceedances[:, 0]
    picture, axes = figure(1, 6.4, 3.6)
    axes.vlines(days, 0.0, losses, color="0.75", lw=0.6, label="losses")
    axes.plot(days, risk, color=BLUE, lw=1.2, label="5% value at risk")
    axes.scatter(days[hit], losses[hit], s=12, color=ORANGE, zorder=3, label=f"{hit.sum()} exceedances")
    expected = 0.05 * len(days)
    axes.set(ylabel="per cent", title=f"S&P 500: {expected:.0f} exceedances expected of {len(days)} days")
    axes.xaxis.set_major_locator(mpl.dates.YearLocator())
    axes.xaxis.set_major_formatter(mpl.dates.DateFormatter("%Y"))
    axes.legend(frameon=False, loc="upper left")
    return picture


def animation() -> None:
    """The search of gallery.py a step at a time, once and not for ever; it ends as the still picture."""
    from PIL import Image

    batches: list[Any] = []
    steps: list[Any] = []

    def counted(theta: Any) -> Any:
        batches.append(theta.copy())
        return banana(theta)

    result = mgvbp.fit(counted, dim=2, initial_mean=[-3.0, 4.0], initial_variance=0.1, callback=steps.append)
    shown = [*((step.gaussian, step.n_evaluations) for step in steps), (result, result.n_evaluations)]
    ends = np.cumsum([len(batch) for batch in batches])
    theta = np.concatenate(batches)
    drawn = []
    # less than five seconds, to the result
    for number, (q, known) in list(enumerate(shown))[:: -len(shown) // 27][::-1]:
        picture, axes = figure(1, 5.0, 4.0)
        contours(axes, banana, np.linspace(-5.0, 4.0, 200), np.linspace(-2.5, 9.0, 200))
        new = int(ends[ends < known].max(initial=0))
        axes.scatter(*theta[:new].T, s=6, color="0.45", lw=0)
        axes.scatter(*theta[new:known].T, s=10, color=ORANGE, lw=0)
        axes.plot(*ring(q, 1.0), color="black", lw=1.5)
        axes.set(xlim=(-5, 4), ylim=(-2.5, 9), title=f"step {number + 1}: {known} evaluations")
        content = io.BytesIO()
        picture.savefig(content, dpi=80)
        plt.close(picture)
        drawn.append(Image.open(content).convert("RGB"))
    palette = drawn[-1].quantize(64)
    frames = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in drawn]
    frames[0].save(
        FOLDER / "search.gif",
        save_all=True,
        append_images=frames[1:],
        duration=[170] * (len(frames) - 1) + [3000],
    )


PICTURES = {
    "calibration": calibration,
    "scaling": scaling,
    "var_backtest": var_backtest,
    "animation": animation,
}


def main() -> None:
    """Measure and draw."""
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        if picture := PICTURES[name]():
            picture.savefig(FOLDER / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
