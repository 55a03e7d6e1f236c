"""What a draw costs, and what follows from that: who evaluates, how many draws at once, and for how long."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from mgvbp.run.evaluation import attempts
from mgvbp.run.evaluation.attempts import Indices

WORTHWHILE = 0.05
"""Seconds of evaluations in an iteration from which workers are asked: their answers take about 10 ms.

With half of it the messages would cost as much as the workers save; twice as much would leave help unused.
"""
MEMORY = 5
"""Iterations whose median is the cost of a draw, so that two that were held up do not count."""
OVERRUN = 10.0
"""Draws that are evaluated together may take this many times what they usually cost. If that is too little, each is
repeated alone, with the time of one draw."""


class Cost:
    """What a draw has cost, in seconds."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=MEMORY)

    @property
    def known(self) -> bool:
        """Whether anything was learnt yet."""
        return bool(self._recent)

    def learn(self, seconds: float, draws: int) -> None:
        """Take what the draws of an iteration have cost together; nothing is learnt from no draws."""
        if draws:
            self._recent.append(seconds / draws)

    def of(self, draws: int) -> float:
        """The seconds that so many draws should take one after the other; 0 if nothing is known."""
        return draws * sorted(self._recent)[(len(self._recent) - 1) // 2] if self._recent else 0.0

    def chunks(self, rows: Indices, workers: int) -> list[Indices]:
        """Split draws into chunks of about `CHUNK` seconds, but at least one chunk a worker."""
        number = max(workers, math.ceil(self.of(len(rows)) / attempts.CHUNK))
        return np.array_split(rows, min(len(rows), number)) if len(rows) else []

    def limit(self, draws: int, timeout: float | None) -> float | None:
        """The seconds that draws may take together: ``timeout`` for one of them, and ten times the cost of all."""
        if timeout is None:
            return None
        return min(draws * timeout, timeout + OVERRUN * self.of(draws))
