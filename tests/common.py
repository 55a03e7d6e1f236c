"""What several test files share."""

import numpy as np

from mgvbp import MGVBP, Gaussian, Posterior
from mgvbp.posterior.trace import TRACE_DTYPES, Trace

FAST = MGVBP(step_size=0.5, decay_after=40, momentum=0.0, precision_scale=2.0, window=10, patience=40)
"""Long steps for gradients with little noise (the regression estimator): converges in a few iterations."""


def posterior_of(q, log_density=None, **options):
    """A posterior that is the Gaussian ``q``, whatever the target, of a run of one iteration."""
    columns = {name: np.zeros(1, dtype) for name, dtype in TRACE_DTYPES.items()}
    return Posterior(
        q.mean,
        q.factor,
        q.family,
        lower_bound=0.0,
        converged=True,
        stop_reason="",
        trace=Trace(**columns),
        method="",
        estimator="",
        log_density=log_density,
        **options,
    )


def rescaled(q, variance, log_density=None, **options):
    """A posterior with so many times the variance of ``q``."""
    wider = Gaussian.from_factor(q.mean, q.factor / np.sqrt(variance), q.family)
    return posterior_of(wider, log_density, **options)
