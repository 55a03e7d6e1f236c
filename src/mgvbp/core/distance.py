"""How far an approximation is from the posterior, as it was measured."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mgvbp.core.linalg import Array


class Distance(NamedTuple):
    """From q to the posterior, in nats, with standard errors; nan where it cannot be known."""

    kl: float
    kl_se: float
    lower_bound: float
    lower_bound_se: float
    log_evidence: float
    log_evidence_se: float
    misfit: float = 0.0
    """About the part of the distance that a surrogate did not know of: half the variance of its errors."""

    def uncertain(self, nats: float) -> Distance:
        """The same with another error of the evidence, in nats, and so of the distance."""
        return self._replace(
            kl_se=math.hypot(self.kl_se, nats), log_evidence_se=math.hypot(self.log_evidence_se, nats)
        )

    @classmethod
    def of_weights(cls, log_weights: Array) -> Distance:
        """The distance by plain averages of the importance weights p/q of draws from q, given as logarithms (n,)."""
        n = len(log_weights)
        bound, root = float(log_weights.mean()), math.sqrt(n)
        log_evidence = float(logsumexp(log_weights)) - math.log(n)
        w = np.exp(log_weights - log_evidence)
        return cls(
            max(log_evidence - bound, 0.0),
            float((w - log_weights).std(ddof=1)) / root,
            bound,
            float(log_weights.std(ddof=1)) / root,
            log_evidence,
            float(w.std(ddof=1)) / root,
        )
