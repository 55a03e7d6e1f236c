"""What a fit returns: a Gaussian, or a mixture of them, with the record of how it was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from scipy.special import ndtri

from mgvbp.core.checks import as_path, positive_integer
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Check
from mgvbp.core.storage import write_archive
from mgvbp.errors import InvalidInputError
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.posterior.arviz import data_tree, for_arviz
from mgvbp.posterior.diagnostics import Diagnosis, LogDensity, diagnose, resample
from mgvbp.posterior.distance import Distance, from_weights
from mgvbp.posterior.marginal import Marginal, found, marginal
from mgvbp.posterior.mcmc import mcmc, target_of
from mgvbp.posterior.summary import summarise
from mgvbp.posterior.trace import TRACE_DTYPES, Trace
from mgvbp.problem.parameters import Parameters, indexed
from mgvbp.problem.problem import NamedParameters, checked_values

NEW_DRAWS = (100, 1000)
"""Fewest and most draws that `Posterior.kl` is measured with, where the fit has not done so."""
MIXTURE = ("weights", "means", "factors")
"""The arrays of a mixture in a file."""


class Posterior(Gaussian):
    """An approximation of a posterior, a Gaussian or a mixture of them; it can serve as the prior of the next fit.

    Of a mixture, ``mean``, ``covariance``, ``std``, ``precision`` and ``factor`` are those of the Gaussian with the
    same moments; `sample`, `log_density`, marginals, quantiles and plots are those of the mixture itself.

    Attributes
    ----------
    lower_bound : float
        Larger is better. For the named methods it is the largest moving average over the run, which is biased
        upwards, as a maximum of noisy values is. For ``auto`` it is the surface's estimate at the result, which may
        exceed the maximum by its error. `diagnose` estimates the bound on fresh draws.
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
        and the standard deviation of this distance; None for the named methods and for mixtures, which have `kl`.
    other_optima : tuple of float or None
        For a fit with ``starts=``: the lower bounds of the starts that went to other optima, the largest first. It is
        empty if all starts agreed, and None if there was one start. If one of these bounds is not far lower than
        ``lower_bound``, `diagnose` says "distrust".
    checks : tuple of Check
        What tried to refute the certificate of ``auto``, and what came of it: each has a ``name``, ``passed`` and
        ``found``, a sentence. Empty if there was nothing to refute: for the named methods, and for a run that ended
        before it had a result.
    failures : dict of str to int
        For a fit with ``n_jobs`` or ``timeout``: the number of draws whose evaluation failed twice, by reason
        (``raised``, ``timed_out``, ``lost``), and the number ``workers_lost`` of workers whose draws or shards others
        took over.
    mixture : GaussianMixture or None
        The mixture, if that is what was fitted (``family="mixture"`` or ``"auto"``).
    parameters : Parameters or None
        Names and constraints of what was fitted: ``posterior["sigma"]`` is the `Marginal` of a parameter on
        its own scale. ``mean``, ``covariance``, `sample` and `log_density` stay those of the unconstrained θ.

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
        other_optima: Sequence[float] | None = None,
        checks: Sequence[Check] = (),
        failures: Mapping[str, int] | None = None,
        mixture: GaussianMixture | None = None,
        distance: Distance | None = None,
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
        self.other_optima = None if other_optima is None else tuple(other_optima)
        self.checks = tuple(checks)
        self.failures = dict(failures or {})
        self.mixture = mixture
        self._distance = distance
        self.parameters = parameters
        if parameters is not None:
            labels = parameters.labels
        self._labels = labels
        self._target = log_density
        self._pointwise = pointwise

    @property
    def components(self) -> int:
        """The number of Gaussians: 1 unless the posterior is a mixture."""
        return 1 if self.mixture is None else self.mixture.components

    @property
    def kind(self) -> str:
        """What the approximation is, in words."""
        if self.mixture is None:
            return f"{self.family.name} family"
        return f"mixture of {self.components} Gaussian{'s' * (self.components > 1)}"

    @property
    def kl(self) -> float:
        """Nats from the approximation to the posterior itself, ``log_evidence − lower bound``; 0 if they are the same.

        A fit with ``family="mixture"`` or ``"auto"`` has measured it. For others the first use evaluates the model at
        fresh draws, half as many as the fit took, between 100 and 1,000. If their weights are so uneven that the
        distance cannot be known from them, it is nan and there is a warning.
        """
        return self._measured.kl

    @property
    def kl_se(self) -> float:
        """The standard error of `kl`."""
        return self._measured.kl_se

    @property
    def log_evidence(self) -> float:
        """The logarithm of the marginal likelihood, estimated with `kl`; nan if that is not known."""
        return self._measured.log_evidence

    @property
    def log_evidence_se(self) -> float:
        """The standard error of `log_evidence`."""
        return self._measured.log_evidence_se

    @property
    def _measured(self) -> Distance:
        if self._distance is None:
            if self._target is None:
                raise InvalidInputError(
                    "a loaded posterior does not know its model, and its file not its distance: "
                    "posterior.diagnose(log_density=...) has elbo and log_evidence"
                )
            count = int(np.clip(self.n_evaluations // 2, *NEW_DRAWS))
            self._distance = from_weights(self, self._density(None), count)
        return self._distance

    def sample(self, n: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``n`` points, (n, d)."""
        return super().sample(n, rng) if self.mixture is None else self.mixture.sample(n, rng)

    def log_density_at(self, theta: Array) -> Array:
        return super().log_density_at(theta) if self.mixture is None else self.mixture.log_density_at(theta)

    def grad_log_density_at(self, theta: Array) -> Array:
        if self.mixture is None:
            return super().grad_log_density_at(theta)
        return self.mixture.with_gradient(theta)[1]

    def quantiles(self, levels: Sequence[float]) -> Array:
        """Quantiles of each entry of the unconstrained θ, (len(levels), d)."""
        if self.mixture is not None:
            return self.mixture.quantiles(levels)
        return np.asarray(self.mean + np.multiply.outer(ndtri(np.asarray(levels)), self.std))

    @property
    def n_evaluations(self) -> int:
        """How many log-likelihood evaluations the run made."""
        return int(self.trace.n_evaluations[-1])

    def __getitem__(self, name: str) -> Marginal:
        """The distribution of a named parameter, or of the entry with this label, on the constrained scale."""
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
        return marginal(self.mixture or self, self.parameters, name)

    def __contains__(self, name: object) -> bool:
        """Whether ``posterior[name]`` exists."""
        return self.parameters is not None and found(self.named(self.mean[None]), name) is not None

    __iter__ = None  # otherwise Python would iterate over posterior[0], posterior[1], ...

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A label for each entry of θ; the labels are made on first use, as there may be a million."""
        return tuple(indexed("theta", (self.dim,)) if self._labels is None else self._labels)

    @property
    def _labelled(self) -> bool:
        """Whether the entries of θ have labels, while the parameters behind them are not known."""
        if self.parameters is not None or self._labels is None:
            return False
        return self.labels != tuple(indexed("theta", (self.dim,)))

    def draws(self, n: int, rng: int | np.random.Generator | None = None) -> dict[str, Array]:
        """``n`` draws of every parameter by name on its constrained scale, each (n, *shape).

        They are the transformed rows of ``sample(n, rng)``. If the parameters have no names, these rows themselves
        are returned as ``theta``.
        """
        return self.named(self.sample(n, rng))

    def named(self, theta: Array) -> dict[str, Array]:
        """Draws of θ (S, d), such as those of `sample` or `resample`, by name on the constrained scale."""
        return {"theta": theta} if self.parameters is None else self.parameters.constrain(theta)

    def diagnose(
        self,
        num_draws: int = 1000,
        rng: int | np.random.Generator = 0,
        log_density: LogDensity | None = None,
    ) -> Diagnosis:
        """Evaluate the target on fresh draws to see if the result can be trusted; ``print`` shows a report.

        Parameters
        ----------
        num_draws : int
            How many evaluations to spend.
        rng : int or numpy.random.Generator
        log_density : callable, optional
            log prior + log-likelihood, (S, d) -> (S,); needed after `load`, since a file does not contain the model.
        """
        others = self.other_optima
        below = None if others is None else tuple(self.lower_bound - bound for bound in others)
        family, cost = ("", 2 * self.n_evaluations) if self.mixture is None else ("mixture", None)
        density = self._density(log_density)
        return diagnose(self, density, num_draws, rng, self.labels, below, cost, family=family)

    def resample(
        self,
        n: int,
        num_draws: int | None = None,
        rng: int | np.random.Generator = 0,
        log_density: LogDensity | None = None,
    ) -> Array:
        """``n`` draws of θ, (n, d), corrected by Pareto-smoothed importance weights; `named` gives them by name.

        They are chosen from ``num_draws`` draws of `sample` and are closer to the posterior than these, if k-hat is
        not above its limit (see `diagnose`). If it is, there is a warning. A draw of large weight can occur several
        times.

        Parameters
        ----------
        n : int
        num_draws : int, optional
            How many evaluations to spend; by default ``5 n``, and at least 1000.
        rng, log_density
            As for `diagnose`.

        Examples
        --------
        >>> import mgvbp
        >>> from scipy.stats import multivariate_normal
        >>> target = multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]])
        >>> posterior = mgvbp.fit(target.logpdf, dim=2, family="diagonal")
        >>> posterior.std.round(1), posterior.resample(2000).std(axis=0).round(1)
        (array([0.8, 0.8]), array([1., 1.]))
        """
        return resample(self, self._density(log_density), n, num_draws, rng)

    def _density(self, given: LogDensity | None) -> LogDensity:
        density = self._target if given is None else given
        if density is None:
            raise InvalidInputError(
                "a loaded posterior does not know its model: give log_density=, log prior + log-likelihood"
            )
        return density

    def to_arviz(self, num_draws: int = 1000, rng: int | np.random.Generator = 0) -> Any:
        """Draws in the format of the installed ArviZ, with one chain; the model, if known, is evaluated at each draw.

        That is an ``arviz.InferenceData`` where ``arviz`` is installed in a version before 1.0, as PyMC 5 needs it, and
        an ``xarray.DataTree`` otherwise. In both, ``data["posterior"]["beta"]`` are the draws of a parameter, and
        ``arviz_stats`` takes either.

        The group ``posterior`` has the values of `draws`. ``sample_stats`` has the log densities of the approximation
        (``log_q``) and of the target (``lp``) at θ. With named parameters, ``unconstrained_posterior`` has θ, which
        the methods of `mgvbp.models` take. If the model has ``pointwise``, ``log_likelihood`` has ``num_draws``
        values for each observation, for LOO, and ``observed_data`` has the model's ``y``. Models of PyMC and NumPyro
        bring the names of their axes, their data and the log-likelihood by observation.
        """
        theta = self.sample(positive_integer(num_draws, "num_draws"), rng)
        stats = {"log_q": self.log_density(theta)}
        if self._target is not None:
            stats["lp"] = checked_values(self._target(theta.copy()), theta, "log_density")
        tree = data_tree(
            theta,
            parameters=self.parameters,
            labels=None if self.parameters is None and not self._labelled else self.labels,
            stats=stats,
            pointwise=self._pointwise,
        )
        return for_arviz(tree)

    def mcmc(
        self,
        draws: int = 1000,
        chains: int = 4,
        rng: int | np.random.Generator = 0,
        *,
        max_evaluations: int | None = None,
        n_jobs: int | None = None,
        timeout: float | None = None,
        progress: bool = False,
        log_density: LogDensity | None = None,
        grad: LogDensity | None = None,
    ) -> Any:
        """Draws of the posterior itself, by Markov chains that start at the fit and know its shape.

        With gradients the chains are those of NUTS, without them of elliptical slice sampling, both in the frame of
        the fit and mixed with independent proposals of the fit's, later of the chains' own, shape. So there is
        nothing to tune. At least 20 walkers go in lockstep, and a chain of the result is made of several of them. Their
        warm-up is 50 transitions each, which are not kept. Then draws are kept, one a transition if that gives
        effective sizes of a quarter of the draws (a tenth in the tails) and an R-hat of at most 1.01. If it does not,
        the number of transitions from draw to draw is doubled, up to 32 (``thinning``).

        Parameters
        ----------
        draws, chains : int
            So many draws in each of so many chains.
        rng : int or numpy.random.Generator
        max_evaluations : int, optional
            At most so many evaluations of the log density, with its gradient if it has one.
        n_jobs, timeout
            As for `fit`; a draw whose evaluation fails is rejected, and counted.
        progress : bool
            Show a bar.
        log_density : callable, optional
            log prior + log-likelihood, (S, d) -> (S,); needed after `load`, since a file does not contain the model.
            It is evaluated in this process. It must give the same value again; a noisy one (``fit(noise=)``) is an
            error.
        grad : callable, optional
            The gradient of ``log_density``, (S, d) -> (S, d).

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            As for `to_arviz`. ``posterior`` has the parameters by name on their constrained scale, or ``theta``;
            ``unconstrained_posterior`` and ``log_likelihood`` are as in `to_arviz`. ``sample_stats`` has ``lp``, the
            log density at θ, ``acceptance_rate`` and, of NUTS, ``diverging``. The attributes of the tree and of
            ``posterior`` are ``sampler``, the worst ``rhat``, ``ess_bulk`` and ``ess_tail`` over the entries of θ,
            ``n_evaluations``, ``thinning`` and, of NUTS, ``divergences`` and ``step_size``.

        Warns
        -----
        ConvergenceWarning
            R-hat is above 1.01 (more for chains of less than 200 draws, by their noise), transitions diverged, or the
            run was ended by ``max_evaluations`` or control-C: there are then fewer draws.
        NonFiniteWarning
            The log density was not a number at some proposals, which were rejected.

        Examples
        --------
        The logarithm of an exponential variable is skewed; its standard deviation is π/√6, that is 1.28:

        >>> import mgvbp
        >>> posterior = mgvbp.fit(lambda theta: (theta - np.exp(theta)).sum(axis=1), dim=1)
        >>> tree = posterior.mcmc()
        >>> theta = tree["posterior"]["theta"]
        >>> theta.shape, tree.attrs["rhat"] <= 1.01
        ((4, 1000, 1), True)
        >>> posterior.std.round(1), bool(abs(theta.std() - 1.28) < 0.15)
        (array([1.]), True)
        """
        return mcmc(
            self,
            target_of(self._density(log_density), grad),
            draws=draws,
            chains=chains,
            rng=rng,
            max_evaluations=max_evaluations,
            n_jobs=n_jobs,
            timeout=timeout,
            progress=progress,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything but the model to ``path`` (npz with a JSON header; no pickle); see `load`.

        The parameters of NumPyro and PyMC models are not `mgvbp.Parameters`; the file has only their labels.
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
            "other_optima": self.other_optima,
            "checks": [check._asdict() for check in self.checks],
            "failures": self.failures,
            "distance": self._distance and self._distance._asdict(),
            "parameters": self.parameters.spec() if isinstance(self.parameters, Parameters) else None,
            "labels": self.labels,
        }
        arrays = {"mean": self.mean, "factor": self.factor, **trace}
        if self.mixture is not None:
            arrays |= {f"mixture_{name}": getattr(self.mixture, name) for name in MIXTURE}
        write_archive(as_path(path), "posterior", meta, arrays)

    def summary(self) -> str:
        """A table of means, standard deviations and central 95% intervals, under a heading on the run.

        Named parameters appear on their constrained scale; see `Marginal` for how they are computed.
        """
        scale = "entries of θ, on the unconstrained scale" if self._labelled else ""
        return summarise(self, scale if self.parameters is None else "parameters on their constrained scale")

    def __getstate__(self) -> dict[str, Any]:
        """A pickle leaves out the model, which is often not picklable; see `save` for the parameters."""
        parameters = self.parameters if isinstance(self.parameters, Parameters) else None
        return {**self.__dict__, "parameters": parameters, "_target": None, "_pointwise": None}
