"""Several starts: each goes on until it is roughly there, the best one to the end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.auto.search import Search
from mgvbp.errors import DivergenceError
from mgvbp.gaussian import Gaussian
from mgvbp.optimizer import Info

SCREENING_GAP = 0.5
"""Nats from its optimum at which a start can be compared with the others."""
DIFFERENT = 3.0
"""Posterior standard deviations between means that make two optima different."""


class MultiStart:
    """Runs searches one after the other until each is screened, then the best of them to its end.

    At most half of ``max_evaluations`` goes to the screening, in equal shares; starts for which that is not
    enough to fit a surface are left out.
    """

    def __init__(self, optimizers: Sequence[Search], max_evaluations: int) -> None:
        self._asked_for = len(optimizers)
        self._budget = max_evaluations
        most = max(1, max_evaluations // (4 * optimizers[0].least))
        self._optimizers = list(optimizers[:most])
        for optimizer in self._optimizers:
            optimizer.max_evaluations = max_evaluations // (2 if most > 1 else 1) // len(self._optimizers)
        self._current = self._lost = self._spent = 0
        self._final = False

    @property
    def _active(self) -> Search:
        return self._optimizers[self._current]

    @property
    def best(self) -> Search:
        """The start that was chosen; until then, the one with the largest lower bound so far."""
        return self._active if self._final else max(self._optimizers, key=lambda start: start.lower_bound)

    @property
    def gaussian(self) -> Gaussian:
        """The approximation that is worked on."""
        return self._active.gaussian

    @property
    def converged(self) -> bool:
        """Whether the best start came to its end."""
        return self._final and self._active.converged

    @property
    def stop_reason(self) -> str:
        """Why the last run stopped; empty while it goes on."""
        if not self._final:
            return ""
        limited = self._active.stop_reason.startswith("reached max_evaluations")
        return f"reached max_evaluations = {self._budget}" if limited else self._active.stop_reason

    def ask(self) -> Array:
        """The draws to evaluate."""
        return self._active.ask()

    def tell(self, values: ArrayLike, *gradients: ArrayLike) -> Info:
        """Take their values, and gradients if they are wanted; go to the next start when this one is screened."""
        asked = len(self._active.ask())
        try:
            info = self._active.tell(values, *gradients)
            screened = not self._final and (self._active.stop_reason or self._active.gap < SCREENING_GAP)
            self._current += bool(screened)
        except DivergenceError:  # nothing finite there: this start is out, unless all are
            del self._optimizers[self._current]
            self._lost += 1
            if not self._optimizers:
                raise
            info = Info(-math.inf, math.inf, 0.0, asked, 0, math.inf, math.inf, asked, "survey")
        self._spent += asked
        if self._current == len(self._optimizers):
            self._choose()
        return info

    def _choose(self) -> None:
        self._final = True
        bounds = [optimizer.lower_bound for optimizer in self._optimizers]
        self._current = int(np.argmax(bounds))
        self._active.resume(self._budget - self._spent + self._active.n_evaluations)

    @property
    def other_optima(self) -> tuple[float, ...] | None:
        """Lower bounds of starts that went elsewhere, the largest first; None if there was but one start."""
        if len(self._optimizers) + self._lost == 1:
            return None
        best = self.best.gaussian
        others = [
            other.lower_bound
            for other in self._optimizers
            if math.isfinite(other.lower_bound)
            and np.abs((other.gaussian.mean - best.mean) / best.std).max() > DIFFERENT
        ]
        return tuple(sorted(others, reverse=True))

    @property
    def disagreement(self) -> str:
        """What there is to say about the starts; empty if all were tried and found the same optimum."""
        tried, others = len(self._optimizers), self.other_optima
        remarks = []
        if tried + self._lost < self._asked_for:
            remarks.append(f"max_evaluations was enough to try {tried} of {self._asked_for} starts")
        if others:
            listed = ", ".join(f"{bound:.2f}" for bound in others)
            remarks.append(
                f"{len(others)} of {tried} starts went to other optima (lower bounds {listed}; best "
                f"{self.best.lower_bound:.2f}): the posterior may have several modes, of which a Gaussian shows one"
            )
        return "; ".join(remarks)
