"""Every Gaussian by the same measure: its lower bound on scrambled Sobol points, and PSIS k-hat."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from mgvbp.posterior.diagnostics.weights import pareto_smoothed
from peer.problems import Problem
from peer.record import Array, Snapshot

bounds: Any = import_module("zoo.bound")

ON_THE_WAY: dict[str, Any] = {"num": 2**11, "seeds": (0,)}
AT_THE_END: dict[str, Any] = {"num": 2**13, "seeds": (0, 1)}
KHAT_DRAWS = 4000


def lower_bound(problem: Problem, at: Snapshot, num: int, seeds: Iterable[int]) -> float:
    """``E_q log p + entropy``; −inf for a Gaussian that broke down."""
    if not (np.isfinite(at.mean).all() and np.isfinite(at.scale).all()):
        return -np.inf
    with np.errstate(all="ignore"):
        values = [
            bounds.mean_log_density(
                problem.log_density,
                lambda eps: at.mean + eps @ at.scale.T,
                bounds.cached_normals(num, problem.dim, seed),
            )
            for seed in seeds
        ]
        entropy = 0.5 * problem.dim * (1.0 + bounds.LOG_2PI) + np.linalg.slogdet(at.scale)[1]
    value = float(np.mean(values) + entropy)
    return value if np.isfinite(value) else -np.inf


def khat(problem: Problem, at: Snapshot) -> float:
    """Of plain draws; inf where the log density breaks down at one of them."""
    if not (np.isfinite(at.mean).all() and np.isfinite(at.scale).all()):
        return np.inf
    eps: Array = np.random.default_rng(1).standard_normal((KHAT_DRAWS, problem.dim))
    log_q = -0.5 * (eps**2).sum(axis=1)
    log_p = problem.log_density(at.mean + eps @ at.scale.T)
    return np.inf if np.isnan(log_p).any() else pareto_smoothed(log_p - log_q).khat


def judged(problem: Problem, seed: int, path: list[Snapshot]) -> dict[str, Any]:
    """A run as it is stored."""
    seen = [
        {
            "values": at.values,
            "gradients": at.gradients,
            "seconds": at.seconds,
            "bound": lower_bound(problem, at, **ON_THE_WAY),
        }
        for at in path
    ]
    end = path[-1]
    return {
        "seed": seed,
        "path": seen,
        "bound": lower_bound(problem, end, **AT_THE_END),
        "khat": khat(problem, end),
        "mean": end.mean.tolist(),
        "sd": np.sqrt((end.scale**2).sum(axis=1)).tolist(),
    }
