"""The pictures of docs/auto.md, docs/mixtures.md and docs/testing.md: how a fit works, drawn by the code that does it.

Run:  python docs/how_figures.py [names ...]   (needs mgvbp[plots]; writes docs/how/*.png)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import mgvbp
from mgvbp.surfaces import Archive, equal_view, fit_surface

mpl.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).with_name("how")
BLUE, ORANGE, GREY = "#1f5fa8", "#b8530f", "0.45"
SHADES = ["#dbe6f3", "#b3cbe6", "#7fa8d3"]
CIRCLE = np.stack([f(np.linspace(0.0, 2.0 * np.pi, 200)) for f in (np.cos, np.sin)], axis=1)


def figure(columns: int, width: float = 9.6, height: float = 3.3) -> tuple[Any, Any]:
    """Panels in a row, without frames."""
    picture, axes = plt.subplots(1, columns, figsize=(width, height), layout="constrained")
    for panel in np.ravel(axes):
        panel.spines[["top", "right"]].set_visible(False)
    return picture, axes


def contours(axes: Any, log_density: Any, x: Any, y: Any) -> None:
    """The density on a grid, relative to its maximum."""
    mesh = np.stack(np.meshgrid(x, y), axis=-1)
    values = log_density(mesh.reshape(-1, 2)).reshape(len(y), len(x))
    axes.contourf(x, y, np.exp(values - values.max()), [0.01, 0.1, 0.5, 1.01], colors=SHADES)


def ring(q: mgvbp.Gaussian, radius: float = 2.0) -> Any:
    """The ellipse of so many standard deviations."""
    return (q.mean + q.family.from_frame(q.factor, radius * CIRCLE)).T


def frame() -> Any:
    """A posterior of very different scales, and the same in the frame of a Gaussian on its way."""

    def log_density(theta: Any) -> Any:
        a, b = theta[:, 0], theta[:, 1] / 100.0
        return -0.5 * (a - b) ** 2 / 0.02 - 0.5 * b**2 + 0.4 * np.sin(2.0 * b)

    q = mgvbp.Gaussian([-0.3, 10.0], variance=[[0.9, 85.0], [85.0, 8500.0]])
    theta = q.sample(40, np.random.default_rng(0))
    picture, (left, right) = figure(2)
    contours(left, log_density, np.linspace(-3.2, 3.2, 300), np.linspace(-320.0, 320.0, 300))
    left.plot(*ring(q), color="black", lw=1.5)
    left.scatter(*theta.T, s=8, color="black", lw=0)
    left.set(xlabel="θ₁", ylabel="θ₂", title="Your parameters, with their units and correlations")
    grid = np.linspace(-3.2, 3.2, 300)
    contours(right, lambda eps: log_density(q.mean + q.family.from_frame(q.factor, eps)), grid, grid)
    right.plot(*(2.0 * CIRCLE.T), color="black", lw=1.5)
    right.scatter(*q.family.to_frame(q.factor, theta - q.mean).T, s=8, color="black", lw=0)
    right.set(xlabel="ε₁", ylabel="ε₂", title="The frame: the Gaussian is a unit circle", aspect="equal")
    return picture


def surface() -> Any:
    """Draws of three Gaussians, and the quadratic that they all determine at the last one."""

    def log_density(theta: Any) -> Any:
        return 3.0 * theta[:, 0] - 2.0 * np.exp(theta[:, 0])

    rng = np.random.default_rng(3)
    way = [mgvbp.Gaussian([m], variance=[v]) for m, v in ((-2.4, 0.4), (-1.4, 0.5), (-0.5, 0.6))]
    archive = Archive.empty(1)
    for q in way:
        theta = q.sample(6, rng)
        archive = archive.add(q, theta, log_density(theta))
    view = archive.view(q)
    fitted = fit_surface(view, q.family, archive.values, np.inf, polynomials=False)
    assert fitted is not None
    x = np.linspace(-4.0, 2.2, 300)[:, None]
    eps = q.family.to_frame(q.factor, x - q.mean)
    picture, (left, right) = figure(2)
    left.plot(x, log_density(x), color=BLUE, lw=1.5, label="f, the log density")
    left.plot(x, fitted.predicted(eps), "--", color=ORANGE, lw=1.5, label="surface at the last Gaussian")
    left.scatter(
        archive.theta[:, 0],
        archive.values,
        s=12 + 500 * view.weights,
        color="black",
        alpha=0.7,
        lw=0,
        zorder=3,
    )
    left.set(xlabel="θ", ylim=(-18, 1), title="Every draw counts, by its weight (area)")
    left.legend(frameon=False, loc="lower center")
    leap = mgvbp.Gaussian(
        q.mean + q.family.from_frame(q.factor, np.linalg.solve(np.eye(1) + 2 * fitted.G, fitted.g)),
        precision=q.precision * (1.0 + 2.0 * fitted.G),
    )
    exact = np.exp(log_density(x) - log_density(x).max())
    right.fill_between(x[:, 0], exact, color=SHADES[1], lw=0, label="posterior")
    for number, gaussian in enumerate([*way, leap]):
        last = number == len(way)
        density = np.exp(gaussian.log_density(x) - gaussian.log_density(gaussian.mean[None]))
        right.plot(
            x, density, color=ORANGE if last else GREY, lw=2.0 if last else 0.5 + 0.4 * number,
            label="after the leap" if last else ("Gaussians so far" if number == 2 else None),
        )  # fmt: skip
    right.set(xlabel="θ", yticks=[], ylim=(0, 1.4), title="The leap goes to the optimum of the surface")
    right.legend(frameon=False, loc="upper left")
    return picture


def kriging() -> Any:
    """How far the gradient of the bound is off, from so many draws, by a quadratic alone and with kriging."""
    d, repeats = 5, 60
    rates, q = np.linspace(3.0, 12.0, d), mgvbp.Gaussian(np.zeros(d), variance=np.full(d, 0.2))

    def log_density(theta: Any) -> Any:  # of log rates, after some events each
        return (rates * (theta - np.exp(theta))).sum(axis=1)

    exact = fit_surface(
        equal_view(q, grid := q.sample(40_000, np.random.default_rng(9))), q.family, log_density(grid), np.inf
    )
    assert exact is not None
    sizes = np.array([27, 32, 42, 53, 63, 84])
    errors = np.empty((2, len(sizes), repeats))
    for j, size in enumerate(sizes):
        for k in range(repeats):
            theta = q.sample(int(size), np.random.default_rng(1000 * j + k))
            view, values = equal_view(q, theta), log_density(theta)
            for i, tol in enumerate((np.inf, 1e-9)):  # the second models what a quadratic misses
                found = fit_surface(view, q.family, values, tol, polynomials=False)
                assert found is not None
                off = found.g - exact.g, found.G - exact.G
                errors[i, j, k] = 0.5 * off[0] @ off[0] + (off[1] ** 2).sum()
    picture, axes = figure(1, 5.4)
    for row, colour, style, label in zip(
        np.median(errors, axis=2),
        (GREY, BLUE),
        ("s--", "o-"),
        ("a quadratic alone", "with kriging"),
        strict=True,
    ):
        axes.plot(sizes / 21.0, row, style, color=colour, ms=4, label=label)
    axes.set(
        yscale="log", xlabel="draws for each coefficient (21 of them)", ylabel="nats lost by the error",
        title="Five skewed parameters",
    )  # fmt: skip
    axes.legend(frameon=False)
    return picture


def trial() -> Any:
    """A Gaussian with a cliff four standard deviations out: what the search saw, and what the prosecutor asks for."""
    cliff = 4.2

    def log_density(theta: Any) -> Any:
        beyond = np.clip(theta[:, 0] - cliff, 0.0, None)
        return -0.5 * (theta**2).sum(axis=1) - 30.0 * beyond

    search = mgvbp.Auto().start(2)
    points: dict[bool, list[Any]] = {False: [], True: []}
    trials = 0
    while not search.stop_reason:
        theta, trying = search.ask(), search.trying
        if trials and not trying:
            break  # the first trial is over
        points[trying].append(theta)
        trials += trying
        search.tell(log_density(theta))
    draws, probes = (np.concatenate(points[trying]) for trying in (False, True))
    picture, (left, right) = figure(2)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    grid = np.linspace(-7.0, 7.0, 400)
    contours(left, log_density, grid, grid)
    left.scatter(*draws.T, s=6, color="black", lw=0, label=f"{len(draws)} draws of the search")
    left.scatter(*probes.T, s=26, color=ORANGE, marker="x", lw=1.2, label="the prosecutor's")
    left.axvline(cliff, color=GREY, lw=0.8, ls=":")
    left.set(xlim=(-7, 7), ylim=(-7, 7), aspect="equal", xlabel="θ₁", ylabel="θ₂", title="Where it looks")
    left.legend(frameon=False, loc="lower left", fontsize=8)
    x = np.linspace(-7.0, 7.0, 400)
    line = np.column_stack([x, np.zeros_like(x)])
    right.plot(x, log_density(line), color=BLUE, lw=1.5, label="f along the axis of θ₁")
    right.plot(x, -0.5 * x**2, "--", color=GREY, lw=1.5, label="what the draws predict")
    near = probes[(np.abs(probes[:, 1]) < 0.6) & (np.abs(probes[:, 0]) < 7.0)]
    right.scatter(near[:, 0], log_density(near), color=ORANGE, marker="x", s=36, zorder=3)
    right.hist(draws[:, 0], bins=40, bottom=-88, color="black", alpha=0.5)
    right.set(xlabel="θ₁", ylabel="nats", ylim=(-88, 5), title="A cliff that no draw has met")
    right.legend(frameon=False, loc="center left", fontsize=8)
    return picture


def mixture() -> Any:
    """The banana by one, two and four Gaussians, and by as many as the fit wants."""

    def banana(theta: Any) -> Any:
        return -0.5 * theta[:, 0] ** 2 - 2.0 * (theta[:, 1] - theta[:, 0] ** 2) ** 2

    picture, panels = figure(4, height=2.7)
    for axes, number in zip(panels, (1, 2, 4, None), strict=True):
        contours(axes, banana, np.linspace(-3.4, 3.4, 300), np.linspace(-2.0, 8.5, 300))
        fitted = mgvbp.fit(banana, dim=2, family=mgvbp.Mixture(components=number))
        q = fitted.mixture
        for weight, mean, factor in zip(q.weights, q.means, q.factors, strict=True):
            oval = mean + np.linalg.solve(factor.T, 1.5 * CIRCLE.T).T
            axes.plot(*oval.T, color="black", lw=0.6 + 2.0 * weight)
        named = f"{q.weights.size} Gaussian{'s' * (q.weights.size > 1)}" + ", its choice" * (number is None)
        axes.set(xticks=[], yticks=[], title=f"{named}:\n{fitted.kl:.3f} nats away")
        axes.title.set_fontsize(9)
    return picture


PICTURES = {draw.__name__: draw for draw in (frame, surface, kriging, trial, mixture)}


def main() -> None:
    """Draw."""
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]().savefig(FOLDER / f"{name}.png", dpi=120)


if __name__ == "__main__":
    main()
