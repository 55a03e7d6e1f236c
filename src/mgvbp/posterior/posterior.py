"""What a fit returns: a Gaussian, or a mixture of them, with the record of how it was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core.checks import as_generator, as_path, positive_integer, require_memory
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Check
from mgvbp.core.storage import write_archive
from mgvbp.errors import InvalidInputError
from mgvbp.families import Family, SparsePrecision
from mgvbp.families.mixture import GaussianMixture
from mgvbp.posterior.arviz import exported
from mgvbp.posterior.diagnostics import LogDensity, kept
from mgvbp.posterior.distance import Distance
from mgvbp.posterior.examined import Examined
from mgvbp.posterior.notebook import posterior_html
from mgvbp.posterior.summary import Summary, frame, one_line
from mgvbp.posterior.trace import TRACE_DTYPES, Trace
from mgvbp.problem.calling import checked_values
from mgvbp.problem.parameters import Parameters
from mgvbp.problem.problem import NamedParameters
from mgvbp.surfaces.archive import Archive

if TYPE_CHECKING:
    from pandas import DataFrame

PREDICTS_BY = "apply a function of yours to posterior.draws(n), or give the model this method"
"""The advice where a model has no method that predicts, and no advice of its own."""
MIXTURE = ("weights", "means", "factors")
"""The arrays of a mixture in a file."""
PLAIN = (
    "lower_bound", "lower_bound_se", "converged", "stop_reason", "method", "estimator", "gap", "gap_se", "rough_kl",
    "other_optima", "failures", "labels",
)  # fmt: skip
"""Attributes that a file has as they are."""
PATTERN = ("rows", "columns", "order")
"""The arrays of a sparse family in a file: its pairs, and the order of the rows of the factor."""


class Posterior(Examined):
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
        Why the run ended, in a sentence.
    trace : Trace
        One value an iteration.
    method, estimator : str
        What was run.
    gap, gap_se : float or None
        Certificate of ``auto``: how many nats the lower bound is expected to lie below the optimum of the family,
        and the standard deviation of this distance; None for the named methods and for mixtures, which have `kl`.
    rough_kl : float or None
        About how many nats a Gaussian of ``auto`` is from the posterior itself, by the draws of the fit alone, for no
        further evaluation. Where a mode or a tail lies beyond all draws it is too small; `kl` is more precise, and has
        an error. None where too few draws were kept, or their values have noise.
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
        rough_kl: float | None = None,
        other_optima: Sequence[float] | None = None,
        checks: Sequence[Check] = (),
        failures: Mapping[str, int] | None = None,
        mixture: GaussianMixture | None = None,
        distance: Distance | None = None,
        parameters: NamedParameters | None = None,
        labels: Sequence[str] | None = None,
        log_density: LogDensity | None = None,
        pointwise: Callable[[Array], Array] | None = None,
        archive: Archive | None = None,
        model: object = None,
    ) -> None:
        self._set(mean, factor, family)
        self.lower_bound, self.lower_bound_se = lower_bound, lower_bound_se
        self.converged, self.stop_reason, self.trace = converged, stop_reason, trace
        self.method, self.estimator = method, estimator
        self.gap, self.gap_se, self.rough_kl = gap, gap_se, rough_kl
        self.other_optima = None if other_optima is None else tuple(other_optima)
        self.checks = tuple(checks)
        self.failures = dict(failures or {})
        self.mixture, self._distance = mixture, distance
        self.parameters = parameters
        self._labels = labels if parameters is None else parameters.labels
        self._target, self._pointwise, self._model = log_density, pointwise, model
        self._archive = kept(archive)

    def predict(
        self, *args: Any, num_draws: int = 500, rng: int | np.random.Generator = 0, **kwargs: Any
    ) -> Any:
        """What the model predicts, over draws of the posterior: doubt about the parameters and noise together.

        It works for every model with a method ``predict(theta, *args, rng=..., **kwargs)`` of draws (S, d): those of
        `mgvbp.models`, of statsmodels and arch, networks and volatility models, and your own.

        Parameters
        ----------
        *args, **kwargs
            What the model needs to know: new rows ``X`` of covariates, or ``steps`` of a time series.
        num_draws : int
            How many draws of the posterior to take.
        rng : int or numpy.random.Generator

        Returns
        -------
        PredictiveDraws, or what else the model returns
            ``draws`` (S, n), ``mean``, ``std``, ``interval(prob)`` and ``frame``. Networks and volatility models have
            predictions of their own.

        Examples
        --------
        >>> import mgvbp
        >>> X = np.column_stack([np.ones(5), np.arange(5.0)])
        >>> model = mgvbp.models.PoissonRegression(X, [2, 3, 9, 14, 30])
        >>> posterior = mgvbp.fit(model, mgvbp.Gaussian(variance=5.0, dim=2))
        >>> prediction = posterior.predict([[1.0, 5.0]])
        >>> prediction.draws.shape, bool(abs(prediction.mean[0] - 57.0) < 5.0)
        ((500, 1), True)
        """
        return self._predicted("predict", args, num_draws, rng, kwargs)

    def forecast(
        self, steps: int, *args: Any, num_draws: int = 500, rng: int | np.random.Generator = 0, **kwargs: Any
    ) -> Any:
        """The ``steps`` after the data, of a model of a time series with a method ``forecast``; see `predict`."""
        count = positive_integer(steps, "steps")
        require_memory(count * positive_integer(num_draws, "num_draws"), "the forecast", "take fewer steps")
        return self._predicted("forecast", (count, *args), num_draws, rng, kwargs)

    def _predicted(
        self, what: str, args: tuple[Any, ...], num_draws: int, rng: int | np.random.Generator, kwargs: Any
    ) -> Any:
        method = getattr(self._model, what, None)
        if not callable(method):
            raise InvalidInputError(
                "a loaded posterior does not know its model: mgvbp.load(path, log_likelihood, prior) predicts"
                if self._model is None
                else f"the model, a {type(self._model).__name__}, has no method {what}(theta, ..., rng): "
                f"{getattr(self._model, 'predicts_by', PREDICTS_BY)}"
            )
        generator = as_generator(rng)
        theta = self.sample(positive_integer(num_draws, "num_draws"), generator)
        return method(theta, *args, rng=generator, **kwargs)

    def to_arviz(self, num_draws: int = 1000, rng: int | np.random.Generator = 0) -> Any:
        """Draws in the format of the installed ArviZ, with one chain; the model, if known, is evaluated at each draw.

        That is an ``arviz.InferenceData`` where ``arviz`` is installed in a version before 1.0, as PyMC 5 needs it, and
        an ``xarray.DataTree`` otherwise. In both, ``data["posterior"]["beta"]`` are the draws of a parameter, and
        ``arviz_stats`` takes either.

        The group ``posterior`` has the values of `draws`. ``sample_stats`` has the log densities of the approximation
        (``log_q``) and of the target (``lp``) at θ. With named parameters, ``unconstrained_posterior`` has θ, which
        the methods of `mgvbp.models` take. If the model has ``pointwise``, ``log_likelihood`` has ``num_draws``
        values for each observation, for LOO, and ``observed_data`` has the model's ``y``. Models of PyMC and NumPyro
        bring the names of their axes, their data and the log-likelihood by observation. A ``/`` in a name, as in the
        thresholds ``0/1`` of statsmodels, is a ``|`` here, since ArviZ's trees have it between groups.
        """
        theta = self.sample(positive_integer(num_draws, "num_draws"), rng)
        stats = {"log_q": self.log_density(theta)}
        if self._target is not None:
            stats["lp"] = checked_values(self._target(theta.copy()), theta, "log_density")
        return exported(self, theta, stats)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything but the model to ``path`` (npz with a JSON header; no pickle); see `load`.

        The parameters of most models of other packages (PyMC, NumPyro, Stan, statsmodels, arch) are not
        `mgvbp.Parameters`; the file has only their labels, and ``mgvbp.load(path, model)`` the rest.
        """
        trace = {f"trace_{name}": getattr(self.trace, name) for name in TRACE_DTYPES}
        blocks = getattr(self.family, "blocks", None)
        meta = {
            "family": self.family.name,
            "blocks": blocks and [block.tolist() for block in blocks],
            **{name: getattr(self, name) for name in PLAIN},
            "checks": [check._asdict() for check in self.checks],
            "distance": self._distance and self._distance._asdict(),
            "parameters": self.parameters.spec() if isinstance(self.parameters, Parameters) else None,
        }
        arrays = {"mean": self.mean, "factor": self.factor, **trace}
        if isinstance(self.family, SparsePrecision):
            pattern = (*self.family.edges, self.family.order)
            arrays |= {f"pattern_{name}": part for name, part in zip(PATTERN, pattern, strict=True)}
        if self.mixture is not None:
            arrays |= {f"mixture_{name}": getattr(self.mixture, name) for name in MIXTURE}
        write_archive(as_path(path), "posterior", meta, arrays)

    def summary(self) -> Summary:
        """A table of means, standard deviations and central 95% intervals, under a heading on the run.

        ``print`` shows its text, a notebook a table with pictures, and its ``frame`` is that of `to_frame`. Named
        parameters appear on their constrained scale; see `Marginal` for how they are computed.
        """
        return Summary.of(self)

    def to_frame(self) -> DataFrame:
        """The table of `summary` as a pandas DataFrame: a row for each number, its label as the index.

        A saved posterior of a model of another package does not know the constraints. Its rows are entries of the
        unconstrained θ, and the index says so: ``theta of sigma``.

        Examples
        --------
        >>> import mgvbp
        >>> posterior = mgvbp.fit(lambda theta: -0.5 * (theta**2).sum(axis=1), labels=["drift", "noise"])
        >>> posterior.to_frame().abs().round(2)  # doctest: +NORMALIZE_WHITESPACE
                   mean   sd  2.5%  97.5%
        parameter
        drift       0.0  1.0  1.96   1.96
        noise       0.0  1.0  1.96   1.96
        """
        return frame(self)

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return posterior_html(self)

    def __getstate__(self) -> dict[str, Any]:
        """A pickle leaves out the model, which is often not picklable; see `save` for the parameters."""
        parameters = self.parameters if isinstance(self.parameters, Parameters) else None
        return {
            **{name: value for name, value in self.__dict__.items() if name not in ("_shapes", "_values")},
            "parameters": parameters,
            "_target": None,
            "_pointwise": None,
            "_archive": None,
            "_model": None,
        }
