"""What a fit returns: a Gaussian with the record of how it was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp._linalg import Array
from mgvbp.checks import positive_integer
from mgvbp.diagnostics import Diagnosis, LogDensity, diagnose
from mgvbp.errors import InvalidInputError
from mgvbp.families import Family
from mgvbp.gaussian import Gaussian
from mgvbp.marginal import Marginal, marginal
from mgvbp.parameters import Parameters, indexed
from mgvbp.problem import NamedParameters
from mgvbp.storage import write_archive
from mgvbp.trace import TRACE_DTYPES, Trace

if TYPE_CHECKING:
    from xarray import DataTree


MOST_ROWS = 1000
"""Rows of a summary; of more, the first and the last ones are shown."""


class Posterior(Gaussian):
    """A Gaussian approximation of a posterior; use it as the prior of the next fit as it is.

    Attributes
    ----------
    lower_bound : float
        Larger is better. For the named methods the largest moving average over the run: a maximum of noisy
        values, which leans upwards. For ``auto`` the surface's estimate at the result, which may exceed the
        maximum by its error. `diagnose` estimates the bound on fresh draws.
    lower_bound_se : float or None
        The standard error of the estimate of ``auto``; None where it is not known.
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
        and the standard deviation of that, where it is known; None for the named methods.
    failures : dict of str to int
        Of a fit with ``n_jobs`` or ``timeout``: draws whose evaluation failed twice, by reason (``raised``,
        ``timed_out``, ``lost``).
    parameters : Parameters or None
        Names and constraints of what was fitted: ``posterior["sigma"]`` is the `Marginal` of a parameter on
        its own scale. ``mean``, ``covariance``, `sample` and `log_density` stay those of the unconstrained θ.
    labels : tuple of str
        A label for each entry of θ.

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
        lower_bound_se: float | None = None,
        converged: bool,
        stop_reason: str,
        trace: Trace,
        method: str,
        estimator: str,
        gap: float | None = None,
        gap_se: float | None = None,
        failures: Mapping[str, int] | None = None,
        parameters: NamedParameters | None = None,
        labels: Sequence[str] | None = None,
        log_density: LogDensity | None = None,
        pointwise: Callable[[Array], Array] | None = None,
    ) -> None:
        self._set(mean, factor, family)
        self.lower_bound = lower_bound
        self.lower_bound_se = lower_bound_se
        self.converged = converged
        self.stop_reason = stop_reason
        self.trace = trace
        self.method = method
        self.estimator = estimator
        self.gap = gap
        self.gap_se = gap_se
        self.failures = dict(failures or {})
        self.parameters = parameters
        if parameters is not None:
            labels = parameters.labels
        self.labels = tuple(indexed("theta", (self.dim,)) if labels is None else labels)
        self._target = log_density
        self._pointwise = pointwise

    @property
    def n_evaluations(self) -> int:
        """How many log-likelihood evaluations the run made."""
        return int(self.trace.n_evaluations[-1])

    def __getitem__(self, name: str) -> Marginal:
        """The distribution of a named parameter on its constrained scale."""
        if self._labelled:
            raise InvalidInputError(
                f"{name!r} is not known on its own scale: a saved posterior of a NumPyro or PyMC model has no "
                "constraints: model.parameters.constrain(posterior.sample(n)) has the values"
            )
        if self.parameters is None:
            raise InvalidInputError(
                f"there is no {name!r}, since the parameters have no names: fit a mgvbp.Model or one of "
                "mgvbp.models"
            )
        return marginal(self, self.parameters, name)

    def __contains__(self, name: object) -> bool:
        """Whether ``posterior[name]`` is there."""
        return self.parameters is not None and isinstance(name, str) and name in self._named(self.mean[None])

    __iter__ = None  # or else Python would try posterior[0], posterior[1], ...

    @property
    def _labelled(self) -> bool:
        """Whether the entries of θ have names but what they stand for is not known."""
        return self.parameters is None and self.labels != tuple(indexed("theta", (self.dim,)))

    def draws(self, n: int, rng: int | np.random.Generator | None = None) -> dict[str, Array]:
        """``n`` draws of every parameter by name on its constrained scale, each (n, *shape).

        They are the rows of ``sample(n, rng)``, transformed; without named parameters, these rows as
        ``theta``.
        """
        return self._named(self.sample(n, rng))

    def _named(self, theta: Array) -> dict[str, Array]:
        return {"theta": theta} if self.parameters is None else self.parameters.constrain(theta)

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
        """Draws as an ArviZ DataTree, one chain.

        Group ``posterior`` has what `draws` gives, and ``sample_stats`` the log density of q. With named
        parameters ``unconstrained_posterior`` has θ, which the methods of `mgvbp.models` take; with a model
        that has ``pointwise``, ``log_likelihood`` has ``num_draws`` values for each observation, for LOO.
        """
        from arviz_base import from_dict

        theta = self.sample(positive_integer(num_draws, "num_draws"), rng)
        groups = {"posterior": self._named(theta), "sample_stats": {"log_q": self.log_density(theta)}}
        if self.parameters is not None:
            groups["unconstrained_posterior"] = {"theta": theta}
        if self._pointwise is not None:
            groups["log_likelihood"] = {"y": self._pointwise(theta)}
        return from_dict(
            {group: {name: np.asarray(v)[None] for name, v in g.items()} for group, g in groups.items()}
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything but the model to ``path`` (npz with a JSON header; no pickle); see `load`.

        Of parameters that are not a `mgvbp.Parameters` (of NumPyro and PyMC models) it keeps the labels.
        """
        trace = {f"trace_{name}": getattr(self.trace, name) for name in TRACE_DTYPES}
        blocks = getattr(self.family, "blocks", None)
        meta = {
            "family": self.family.name,
            "blocks": blocks and [block.tolist() for block in blocks],
            "lower_bound": self.lower_bound,
            "lower_bound_se": self.lower_bound_se,
            "converged": self.converged,
            "stop_reason": self.stop_reason,
            "method": self.method,
            "estimator": self.estimator,
            "gap": self.gap,
            "gap_se": self.gap_se,
            "failures": self.failures,
            "parameters": self.parameters.spec() if isinstance(self.parameters, Parameters) else None,
            "labels": self.labels,
        }
        write_archive(path, "posterior", meta, {"mean": self.mean, "factor": self.factor, **trace})

    def summary(self) -> str:
        """A table of means, standard deviations and central 95% intervals, under a heading on the run.

        Named parameters appear on their constrained scale; see `Marginal` for how they are computed.
        """
        dropped, reductions = int(self.trace.dropped.sum()), int(np.count_nonzero(self.trace.reductions))
        lines = [
            f"{self.method} ({self.estimator} estimator, {self.family.name} family), d = {self.dim}",
            f"lower bound {self.lower_bound:.4f}{_error('se', self.lower_bound_se)} "
            f"after {self.n_evaluations:,} evaluations in {len(self.trace):,} iterations",
            *(
                [f"expected gap to the optimum {self.gap:.4f}{_error('sd', self.gap_se)} nats"]
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
            *(["parameters on their constrained scale"] if self.parameters is not None else []),
            *(["entries of θ, on the unconstrained scale"] if self._labelled else []),
            "",
        ]
        rows = self._rows()
        width = max(12, 2 + max(len(label) for label in rows))
        lines.append(f"{'parameter':<{width}}{'mean':>12}{'sd':>12}{'2.5%':>12}{'97.5%':>12}")
        table = [label.ljust(width) + "".join(f"{x:>12.5g}" for x in row) for label, row in rows.items()]
        if len(table) > MOST_ROWS:
            half = MOST_ROWS // 2
            table[half:-half] = [f"... {len(table) - 2 * half:,} more ..."]
        return "\n".join(lines + table)

    def _rows(self) -> dict[str, Array]:
        """Mean, standard deviation and the ends of the central 95% interval of each number shown."""
        if self.parameters is None:
            z = 1.959963984540054 * self.std
            columns = np.stack([self.mean, self.std, self.mean - z, self.mean + z], axis=-1)
            return dict(zip(self.labels, columns, strict=True))
        rows: dict[str, Array] = {}
        for name in self.parameters.names:
            entry = self[name]
            columns = np.stack([entry.mean, entry.std, *entry.quantile([0.025, 0.975])], axis=-1)
            rows |= zip(indexed(name, entry.shape), columns.reshape(-1, 4), strict=True)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        """Pickles go without the model, which is often not picklable; see `save` for the parameters."""
        parameters = self.parameters if isinstance(self.parameters, Parameters) else None
        return {**self.__dict__, "parameters": parameters, "_target": None, "_pointwise": None}


def _error(kind: str, value: float | None) -> str:
    return "" if value is None else f" ({kind} {value:.4f})"
