"""The verdict of `Posterior.diagnose` against posteriors that are known: how often it is right, and what it costs.

Run:  python benchmarks/verdict.py [--families full diagonal mixture] [--seeds 1] [--max-dim 20] [--targets name ...]
          [--fits directory] [--out file]
      python benchmarks/verdict.py --many [--seeds 1]

Fits from mean 0 and variance 1, by values alone, of the targets in tests/posteriors (`TARGETS`, on which the verdict
was developed, and `HELD_OUT`) and of those of tests/zoo whose moments are known. A case is *fine* if every marginal
mean is within 0.1 standard deviations of the reference's, and every standard deviation within 10%. Wanted: of the cases
that are trusted 99% are fine, and of those that are fine at least 80% are trusted, with half as many evaluations as the
fit. Beside it stands the former rule: 1,000 fresh draws, weights that are even and change little. With ``--fits`` the
fits are kept as files in a directory, so that another rule can be tried without fitting again. With ``--out`` each case
is a line of a file as soon as it is judged, and a run that was stopped goes on after the last of them. ``--many`` has
30 to 200 independent parameters with closed forms, fitted with gradients: Student t, logarithms of gamma variates (log
rates of counts), and a few of either among nearly Gaussian ones.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, polygamma
from threadpoolctl import threadpool_limits

import mgvbp
from mgvbp.posterior.diagnostics.weights import pareto_smoothed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from posteriors import HELD_OUT, TARGETS, Reference, references
from zoo.base import TARGETS as ZOO
from zoo.base import Target

TOLERANCE = 0.1
"""Largest distance of a marginal that is fine: of the mean in standard deviations, of the deviation as a share."""
FORMER_DRAWS, FORMER_SHIFT, FORMER_RATIO, FORMER_EVEN = 1000, 0.2, 1.1, 0.95
"""The former rule: with 1,000 draws only even weights, by their effective share, were trusted."""

MOST = 3000
"""Most evaluations of a fit with many parameters: heavy tails could take many more, which the verdict does not need."""


class Case(NamedTuple):
    """One fit, what is true of it and what was said."""

    group: str
    name: str
    off: float
    """The largest distance of a marginal; see `TOLERANCE`."""
    trusted: bool
    verdict: str
    former: bool
    """Whether the former rule trusted it."""
    parameters: tuple[int, int, int]
    """Parameters that are fine, that are trusted, and that are both."""
    evaluations: float
    """Of the diagnosis, as a share of the fit's."""

    @property
    def fine(self) -> bool:
        return self.off <= TOLERANCE


def groups() -> dict[str, dict[str, Target]]:
    """The targets whose moments are known."""
    rest = {name: t for name, t in ZOO.items() if name in references() and name not in TARGETS}
    return {"development": TARGETS, "held out": HELD_OUT, "zoo": rest}


def fitted(target: Target, family: str, seed: int, directory: Path | None) -> mgvbp.Posterior:
    """The fit, or that of an earlier run."""
    path = None if directory is None else directory / f"{target.name}.{family}.{seed}.pkl"
    if path is not None and path.exists():
        kept: dict[str, Any] = pickle.loads(path.read_bytes())
        posterior: Any = kept["q"]
        posterior._archive, posterior._target = kept["archive"], target.log_density
        return posterior
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        posterior = mgvbp.fit(target.log_density, dim=target.dim, family=family, rng=seed)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps({"q": posterior, "archive": posterior._archive}))
    return posterior


def distances(q: mgvbp.Posterior, known: Reference) -> np.ndarray:
    """How far each marginal is off, (d,)."""
    return np.maximum(np.abs(q.mean - known.mean) / known.sd, np.abs(q.std / known.sd - 1.0))


def formerly(q: mgvbp.Posterior, target: Target, seed: int) -> bool:
    """Whether the former rule trusted it."""
    theta = q.sample(FORMER_DRAWS, rng=(10_000 + seed))
    h = np.nan_to_num(target.log_density(theta), nan=-np.inf) - q.log_density(theta)
    found, x = pareto_smoothed(h), (theta - q.mean) / q.std
    mean = found.weights @ x
    ratio = np.sqrt(np.maximum(found.weights @ x**2 - mean**2, 0.0) / x.var(axis=0))
    near = np.abs(mean - x.mean(axis=0)) <= FORMER_SHIFT
    near &= (ratio <= FORMER_RATIO) & (ratio >= 1.0 / FORMER_RATIO)
    return bool(near.all()) and found.ess >= FORMER_EVEN * FORMER_DRAWS


def judged(group: str, target: Target, family: str, seed: int, directory: Path | None) -> Case:
    q, known = fitted(target, family, seed, directory), references()[target.name]
    diagnosis, off = q.diagnose(rng=seed), distances(q, known)
    trusted = np.array([verdict == "trust" for verdict in diagnosis.verdicts])
    fine = off <= TOLERANCE
    return Case(
        group,
        named(target, family, seed),
        float(off.max()),
        diagnosis.verdict == "trust",
        diagnosis.verdict,
        formerly(q, target, seed),
        (int(fine.sum()), int(trusted.sum()), int((fine & trusted).sum())),
        diagnosis.n_evaluations / q.n_evaluations,
    )


def named(target: Target, family: str, seed: int) -> str:
    return f"{target.name} (d = {target.dim}, {family}, seed {seed})"


def rate(part: int, whole: int) -> str:
    return f"{part}/{whole}" + (f" ({part / whole:.0%})" if whole else "")


def table(cases: list[Case]) -> str:
    """The counts of each group and of all."""
    head = [
        "cases",
        "fine",
        "of trusted, fine",
        "of fine, trusted",
        "formerly, of trusted, fine",
        "formerly, of fine, trusted",
        "parameters: of trusted, fine",
        "parameters: of fine, trusted",
        "evaluations, share of the fit (median)",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    names = list(dict.fromkeys(case.group for case in cases))
    for name in [*names, *(["all"] if len(names) > 1 else [])]:
        some = [case for case in cases if name in ("all", case.group)]
        fine = sum(case.fine for case in some)
        cells = [f"{name}: {len(some)}", str(fine)]
        for say in ("trusted", "former"):
            said = sum(getattr(case, say) for case in some)
            both = sum(getattr(case, say) and case.fine for case in some)
            cells += [rate(both, said), rate(both, fine)]
        good, said, both = np.sum([case.parameters for case in some], axis=0)
        cells += [rate(both, said), rate(both, good)]
        cells.append(f"{np.median([case.evaluations for case in some]):.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


class Independent(NamedTuple):
    """Independent parameters: the first are Student t, the others logarithms of gamma variates."""

    degrees: np.ndarray
    shapes: np.ndarray

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        t, g = theta[:, : len(self.degrees)], theta[:, len(self.degrees) :]
        heavy = -0.5 * (self.degrees + 1.0) * np.log1p(t**2 / self.degrees)
        return np.asarray(heavy.sum(axis=1) + g @ self.shapes - np.exp(g).sum(axis=1))

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        t, g = theta[:, : len(self.degrees)], theta[:, len(self.degrees) :]
        return np.hstack([-(self.degrees + 1.0) * t / (self.degrees + t**2), self.shapes - np.exp(g)])

    @property
    def moments(self) -> Reference:
        """Means and standard deviations; nothing else of a reference is known."""
        mean = np.concatenate([np.zeros(len(self.degrees)), digamma(self.shapes)])
        variance = np.concatenate([self.degrees / (self.degrees - 2.0), polygamma(1, self.shapes)])
        return SimpleNamespace(mean=mean, sd=np.sqrt(variance))


def many_parameters(seeds: int) -> None:
    """Print, for each closed form, how many of the parameters that are fine are trusted, and of those that are not."""
    for name, degrees, shapes in (
        ("t, 3 degrees", [3.0], []),
        ("t, 5 degrees", [5.0], []),
        ("t, 30 degrees", [30.0], []),
        ("log-gamma, shape 1", [], [1.0]),
        ("log-gamma, shape 20", [], [20.0]),
        ("one in ten of t, 3 and log-gamma, 1", [3.0, *[50.0] * 9], [1.0, *[30.0] * 9]),
    ):
        for dim in (30, 200):
            each = dim // max(1, len(degrees) + len(shapes))
            target = Independent(np.repeat(degrees, each), np.repeat(shapes, each))
            for seed in range(seeds):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
                    dim = len(target.degrees) + len(target.shapes)
                    q = mgvbp.fit(
                        target.log_density, dim=dim, grad=target.gradient, rng=seed, max_evaluations=MOST
                    )
                    found, kl, kl_se = q.diagnose(rng=seed), q.kl, q.kl_se
                fine = distances(q, target.moments) <= TOLERANCE
                trusted = np.array([verdict == "trust" for verdict in found.verdicts] or [False] * dim)
                print(
                    f"{name:38} d {dim:4} seed {seed} {found.verdict:9} of fine, trusted {(fine & trusted).sum():4} of "
                    f"{fine.sum():4}; of others {(trusted & ~fine).sum():4} of {(~fine).sum():4}; "
                    f"evaluations {found.n_evaluations:5} after {q.n_evaluations:5}; kl {kl:.2f} +- {kl_se:.2f}",
                    flush=True,
                )


def earlier(path: Path | None) -> dict[str, Case]:
    """The cases that an earlier run has left in the file, by name."""
    if path is None or not path.exists():
        return {}
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return {row["name"]: Case(**{**row, "parameters": tuple(row["parameters"])}) for row in rows}


def told(case: Case) -> str:
    """A line about a mistake of the verdict; empty if there is none."""
    if case.fine == case.trusted:
        return ""
    kind = "trusted, but not fine" if case.trusted else "fine, but not trusted"
    return f"{kind}: {case.name}, off by {case.off:.3f}, {case.verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", default=["full", "diagonal", "mixture"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--max-dim", type=int, default=20)
    parser.add_argument("--targets", nargs="+")
    parser.add_argument("--fits", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--many", action="store_true")
    options = parser.parse_args()
    if options.many:
        many_parameters(options.seeds)
        return
    wanted = [
        (group, target, family, seed)
        for family in options.families
        for seed in range(options.seeds)
        for group, targets in groups().items()
        for name, target in targets.items()
        if target.dim <= options.max_dim and (not options.targets or name in options.targets)
    ]
    known, cases = earlier(options.out), []
    with threadpool_limits(1):
        for group, target, family, seed in wanted:
            case = known.get(named(target, family, seed))
            if case is None:
                try:
                    case = judged(group, target, family, seed, options.fits)
                except mgvbp.MgvbpError as error:
                    print(f"{target.name}, {family}: {error}", file=sys.stderr)
                    continue
                if options.out is not None:
                    with options.out.open("a") as file:
                        file.write(json.dumps(case._asdict()) + "\n")
            cases.append(case)
            if line := told(case):
                print(line, flush=True)
    print(table(cases))


if __name__ == "__main__":
    main()
