"""How far an approximation is from the posterior, as it was measured."""

from __future__ import annotations

from typing import NamedTuple


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
