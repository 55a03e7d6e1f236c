"""An approximation beside the model that it stands for: their distance, a diagnosis, corrected and exact draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mgvbp.core.checks import as_generator, true_or_false
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import PROPRIETY, Check
from mgvbp.errors import InvalidInputError
from mgvbp.posterior.approximation import Approximation
from mgvbp.posterior.diagnostics import (
    Diagnosis,
    LogDensity,
    Target,
    affordable,
    cost_of_mixture,
    diagnose,
    resample,
)
from mgvbp.posterior.distance import Distance, from_weights, unknown
from mgvbp.posterior.trace import Trace
from mgvbp.surfaces.archive import Archive


class Examined(Approximation):
    """An approximation whose model, if it is known, can be evaluated at draws.

    See `Posterior` for the attributes.
    """

    lower_bound: float
    trace: Trace
    other_optima: tuple[float, ...] | None
    checks: tuple[Check, ...]
    _distance: Distance | None
    _archive: Archive | None
    _target: LogDensity | None
    _pointwise: Callable[[Array], Array] | None

    @property
    def n_evaluations(self) -> int:
        """How many log-likelihood evaluations the run made."""
        return int(self.trace.n_evaluations[-1])

    @property
    def kl(self) -> float:
        """Nats from the approximation to the posterior itself, ``log_evidence − lower bound``; 0 if they are the same.

        A fit with ``family="mixture"`` or ``"auto"`` has measured it. For others the first use evaluates the model at
        fresh draws, half as many as the fit took, between 100 and 1,000; those of the fit take part. If the weights are
        so uneven that the distance cannot be known from them, it is nan and there is a warning. So it is where the fit
        has found tails that do not fall (`checks`), as there may be no posterior then.
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
                    "mgvbp.load(path, log_likelihood, prior)"
                )
            if self._improper:
                why = f"{self._improper}: there may be no posterior to measure the distance to"
                self._distance = unknown(why)
            else:
                self._distance = from_weights(self, self._density(None), self.n_evaluations, self._archive)
        return self._distance

    @property
    def _improper(self) -> str:
        """What the fit has found in the tails that no draw of the approximation sees; empty if nothing."""
        failed = (check.found for check in self.checks if check.name == PROPRIETY and not check.passed)
        return next(failed, "")

    def draws(
        self, n: int, rng: int | np.random.Generator | None = None, *, corrected: bool = False
    ) -> dict[str, Array]:
        """``n`` draws of every parameter by name on its constrained scale, each (n, *shape).

        They are the transformed rows of ``sample(n, rng)``, or of ``resample(n, rng=rng)``, which evaluates the model,
        if they are to be ``corrected``. If the parameters have no names, these rows themselves are returned as
        ``theta``.
        """
        if true_or_false(corrected, "corrected"):
            return self.named(self.resample(n, rng=as_generator(rng)))
        return self.named(self.sample(n, rng))

    def diagnose(
        self,
        num_draws: int | None = None,
        rng: int | np.random.Generator = 0,
        log_density: LogDensity | None = None,
    ) -> Diagnosis:
        """Evaluate the target on fresh draws to see if the result can be trusted; ``print`` shows a report.

        The draws that ``auto`` has evaluated on its way take part, which costs nothing; see `Diagnosis`.

        Parameters
        ----------
        num_draws : int, optional
            How many draws of the approximation to evaluate. Half as many, at most 1,000, are made
            further out. By default all of this takes half as many evaluations as the fit, between 100 and 1,000.
        rng : int or numpy.random.Generator
        log_density : callable, optional
            log prior + log-likelihood, (S, d) -> (S,); needed after `load` without the model.
        """
        others = self.other_optima
        below = None if others is None else tuple(self.lower_bound - bound for bound in others)
        known = None if self.mixture is None else self._distance
        density = self._density(log_density)
        climbs, cost = isinstance(density, Target) and density.has_gradient, None
        if self.mixture is None and self.n_evaluations:
            cost = cost_of_mixture(self.n_evaluations, self.dim, climbs)
        return diagnose(
            self,
            density,
            affordable(self.n_evaluations, self.dim) if num_draws is None else num_draws,
            rng,
            self.labels,
            below,
            cost,
            archive=self._archive if log_density is None else None,
            farthest=known and known.kl + known.kl_se,
            missed=bool(self._improper) and log_density is None,
        )

    def resample(
        self,
        n: int,
        num_draws: int | None = None,
        rng: int | np.random.Generator = 0,
        log_density: LogDensity | None = None,
    ) -> Array:
        """``n`` draws of θ, (n, d), corrected by Pareto-smoothed importance weights.

        They are chosen from ``num_draws`` draws of `sample` and are closer to the posterior than these, if k-hat is
        not above its limit (see `diagnose`). If it is, there is a warning. A draw of large weight can occur several
        times. ``draws(n, corrected=True)`` has such draws by name.

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
            log prior + log-likelihood, (S, d) -> (S,); needed after `load` without the model.
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
        from mgvbp.posterior.mcmc import mcmc, target_of  # with all of `mgvbp.sampling`, which few fits need

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

    def _density(self, given: LogDensity | None) -> LogDensity:
        density = self._target if given is None else given
        if density is None:
            raise InvalidInputError(
                "a loaded posterior does not know its model: mgvbp.load(path, log_likelihood, prior), or give "
                "log_density=, log prior + log-likelihood"
            )
        return density
