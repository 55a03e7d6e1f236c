"""Maps that leave a posterior as it is: exchanges of labels."""

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
