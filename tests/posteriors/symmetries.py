"""Maps that leave a posterior as it is, or carry the draws of one parametrisation to another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Map = Callable[[np.ndarray], np.ndarray]
"""θ (..., d) -> θ (..., d)"""


def swap_means(theta: np.ndarray) -> np.ndarray:
    return theta[..., [1, 0]]


def swap_labels(theta: np.ndarray) -> np.ndarray:
    return theta[..., [0, 2, 1, 4, 3]] * np.array([-1.0, 1.0, 1.0, 1.0, 1.0])


SWAPS: dict[str, Map] = {"label_switching_2": swap_means, "label_switching_5": swap_labels}
"""Applied to half the draws, so that both labellings have their share whatever the chains did."""


def centred(theta: np.ndarray) -> np.ndarray:
    """μ, log τ, z to μ, log τ, ``μ + τ z``."""
    return np.concatenate(
        [theta[..., :2], theta[..., :1] + np.exp(theta[..., 1:2]) * theta[..., 2:]], axis=-1
    )


VIA: dict[str, tuple[str, Map]] = {
    "eight_schools_centred": ("eight_schools_noncentred", centred),
    "groups_centred": ("groups_noncentred", centred),
}
"""Another parametrisation of the same model, in which the chains run, and the way back; the evidence is the same."""
