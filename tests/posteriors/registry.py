"""Where the targets of this package are registered; those of the zoo are taken over by name."""

from __future__ import annotations

from collections.abc import Callable

import zoo
from zoo.base import Density, Target

FROM_ZOO = (
    "log_gamma",
    "log_gamma_5",
    "skew_normal_2",
    "banana_2",
    "banana_10",
    "funnel_3",
    "funnel_10",
    "student_t_5",
    "laplace_4",
    "bimodal_2",
    "logistic_separated",
    "student_regression",
    "linear_heteroscedastic",
    "michaelis_menten",
    "biexponential_decay",
    "dose_response",
    "saturated_sigmoid",
    "smooth_change_point",
    "eight_schools_centred",
    "eight_schools_noncentred",
    "logistic_groups_noncentred",
    "normal_mixture",
    "normal_mixture_apart",
    "poisson_mixture_children",
    "local_level_inflation",
    "garch11",
    "garch11_t_nyse",
    "gp_hyperparameters",
    "lotka_volterra",
    "sir_epidemic",
    "logistic_growth",
)
"""Targets of the zoo that are not Gaussian, with d ≤ 15."""

TARGETS: dict[str, Target] = {name: zoo.TARGETS[name] for name in FROM_ZOO}
HELD_OUT: dict[str, Target] = {}

Builder = Callable[[], Density]


def register(targets: dict[str, Target], dim: int, tags: tuple[str, ...]) -> Callable[[Builder], Builder]:
    """A decorator that enters a builder into ``targets`` under its own name."""

    def enter(build: Builder) -> Builder:
        name = build.__name__
        assert name not in {**TARGETS, **HELD_OUT, **zoo.TARGETS}, name
        targets[name] = Target(name, dim, build, tags)
        return build

    return enter


def target(dim: int, *tags: str) -> Callable[[Builder], Builder]:
    """Register the decorated builder for development."""
    return register(TARGETS, dim, tags)


def held_out(dim: int, *tags: str) -> Callable[[Builder], Builder]:
    """Register the decorated builder among those on which nothing may be tuned."""
    return register(HELD_OUT, dim, tags)
