"""What a fit returns: a Gaussian with the record of how it was found."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp._linalg import Array
from mgvbp.diagnostics import Diagnosis, LogDensity, diagnose
from mgvbp.errors import InvalidInputError
from mgvbp.families import Family
from mgvbp.gaussian import Gaussian
from mgvbp.storage import write_archive
from mgvbp.trace import TRACE_DTYPES, Trace

if TYPE_CHECKING:
    from xarray import DataTree


class Posterior(Gaussian):
    """A Gaussian approximation of a posterior; use it as the prior of the next fit as it is.

    Attributes
    ----------
    lower_bound : float
        The largest moving average of the lower bound over the run (larger is better). A maximum of noisy
        values leans upwards; `diagnose` estimates the bound on fresh draws.
    converged : bool
        For ``auto``, whether the certificate holds; for the named methods, whether the smoothed bound no longer
        improved.
    stop_reason : str
    trace : Trace
        One value an iteration.
    method, estimator : str
        What was run.
    gap, gap_se : float or None
        Certificate of ``auto``: how many nats the lower bound is expected to lie below the optimum of the family,
        and the standard deviation of that; None for the named methods.

    Examples
    --------
    >>> import mgvbp
    >>> posterior = mgvbp.fit(lambda theta: -0.5 * ((theta - 1.0) ** 2).sum(axis=1), dim=2)
    >>> posterior.mean.round(3), posterior.std.round(3)
    (array([1., 1.]), array([1., 1.]))
    """

    def __init__(
        self,
        mean: Array,
        factor: Array,
        family: Family,
        *,
        lower_bound: float,
        converged: bool,
        stop_reason: str,
        trace: Trace,
        method: str,
        estimator: str,
        gap: float | None = None,
        gap_se: float | None = None,
        log_density: LogDensity | None = None,
    ) -> None:
        self._set(mean, factor, family)
        self.lower_bound = lower_bound
        self.converged = converged
        self.stop_reason = stop_reason
        self.trace = trace
        self.method = method
        self.estimator = estimator
        self.gap = gap
        self.gap_se = gap_se
        self._target = log_density

    @property
    def n_evaluations(self) -> int:
        """How many log-likelihood evaluations the run made."""
        return int(self.trace.n_evaluations[-1])

    def diagnose(
        self,
        num_draws: int = 1000,
        rng: int | np.random.Generator = 0,
        log_density: LogDensity | None = None,
    ) -> Diagnosis:
        """Evaluate the target on fresh draws: lower bound, PSIS k-hat and evidence, each with its error.

        Parameters
        ----------
        num_draws : int
            How many evaluations to spend.
        rng : int or numpy.random.Generator
        log_density : callable, optional
            log prior + log-likelihood, (S, d) -> (S,); needed after `load`, which brings no model back.
        """
        target = log_density or self._target
        if target is None:
            raise InvalidInputError(
                "a loaded posterior does not know its model: give log_density=, log prior + log-likelihood"
            )
        return diagnose(self, target, num_draws, rng)

    def to_arviz(self, num_draws: int = 1000, rng: int | np.random.Generator = 0) -> DataTree:
        """Draws as an ArviZ DataTree: group ``posterior``, variable ``theta``, one chain."""
        from arviz_base import from_dict

        theta = self.sample(num_draws, rng)
        log_q = self.log_density(theta)
        return from_dict({"posterior": {"theta": theta[None]}, "sample_stats": {"log_q": log_q[None]}})

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything but the model to ``path`` (npz with a JSON header; no pickle); see `load`."""
        trace = {f"trace_{name}": getattr(self.trace, name) for name in TRACE_DTYPES}
        blocks = getattr(self.family, "blocks", None)
        meta = {
            "family": self.family.name,
            "blocks": blocks and [block.tolist() for block in blocks],
            "lower_bound": self.lower_bound,
            "converged": self.converged,
            "stop_reason": self.stop_reason,
            "method": self.method,
            "estimator": self.estimator,
            "gap": self.gap,
            "gap_se": self.gap_se,
        }
        write_archive(path, "posterior", meta, {"mean": self.mean, "factor": self.factor, **trace})

    def summary(self) -> str:
        """A table of means, standard deviations and central 95% intervals, under a heading on the run."""
        std = self.std
        dropped, reductions = int(self.trace.dropped.sum()), int(np.count_nonzero(self.trace.reductions))
        lines = [
            f"{self.method} ({self.estimator} estimator, {self.family.name} family), d = {self.dim}",
            f"lower bound {self.lower_bound:.4f} after {self.n_evaluations:,} evaluations "
            f"in {len(self.trace):,} iterations",
            *(
                [f"expected gap to the optimum {self.gap:.4f} (sd {self.gap_se:.4f}) nats"]
                if self.gap is not None
                else []
            ),
            f"{'converged' if self.converged else 'NOT converged'}: {self.stop_reason}",
            *([f"{dropped:,} draws with non-finite values were left out"] if dropped else []),
            *(
                [f"the step was shortened in {reductions:,} iterations to stay positive definite"]
                if reductions
                else []
            ),
            "",
            f"{'parameter':<12}{'mean':>12}{'sd':>12}{'2.5%':>12}{'97.5%':>12}",
        ]
        z = 1.959963984540054
        for i, (m, s) in enumerate(zip(self.mean, std, strict=True)):
            lines.append(f"{f'theta[{i}]':<12}{m:>12.5g}{s:>12.5g}{m - z * s:>12.5g}{m + z * s:>12.5g}")
        return "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        """Pickles go without the model, which is often not picklable."""
        return {**self.__dict__, "_target": None}
