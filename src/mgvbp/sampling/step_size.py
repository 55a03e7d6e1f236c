"""The step size of NUTS, by dual averaging (Nesterov 2009; Hoffman and Gelman 2014, Section 3.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

ACCEPTANCE = 0.85
"""The mean acceptance along trajectories that is aimed at.

Stan aims at 0.8. In 0.85 there is a reserve for the curved parts, where steps must be shorter; more would take more
gradients a trajectory. Other values were not measured.
"""
SHRINKAGE, DELAY, DECAY = 0.05, 10.0, 0.75
"""γ, t₀ and κ of Hoffman and Gelman: how fast the step size follows, and how fast the average forgets."""
FIRST = 1.0
"""The step size to begin with; in a frame of the target, with covariance I, good ones are between 0.2 and 1.2."""


@dataclass(frozen=True)
class StepSize:
    """What is known about the step size after some trajectories.

    Examples
    --------
    >>> step = StepSize()
    >>> for _ in range(1000):
    ...     step = step.learn(math.exp(-step.size))  # so that 0.85 is the acceptance at 0.163
    >>> round(step.settled, 2)
    0.16
    """

    log_first: float = math.log(FIRST)
    log_size: float = math.log(FIRST)
    log_average: float = 0.0
    shortfall: float = 0.0
    count: int = 0

    @property
    def size(self) -> float:
        """The step size to try next."""
        return math.exp(self.log_size)

    @property
    def settled(self) -> float:
        """The step size to keep: an average over those tried."""
        return math.exp(self.log_average)

    def learn(self, acceptance: float) -> StepSize:
        """What is known after trajectories with this mean acceptance."""
        t = self.count + 1
        rate = 1.0 / (t + DELAY)
        shortfall = (1.0 - rate) * self.shortfall + rate * (ACCEPTANCE - acceptance)
        log_size = self.log_first - math.sqrt(t) / SHRINKAGE * shortfall
        weight = t**-DECAY
        average = weight * log_size + (1.0 - weight) * self.log_average
        return replace(self, log_size=log_size, log_average=average, shortfall=shortfall, count=t)

    def again(self) -> StepSize:
        """Begin anew at what was settled on."""
        return StepSize(self.log_average, self.log_average)
