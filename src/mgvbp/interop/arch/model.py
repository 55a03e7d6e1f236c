"""Volatility models of arch: `from_arch`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats, as_generator, one_of, positive_integer, shown
from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.interop.arch.sample import Sample, default_priors, split
from mgvbp.interop.estimated import (
    EstimatedModel,
    Reading,
    RegionParameters,
    explained,
    quietly,
    row_by_row,
    simulated,
    takes_no_more,
)
from mgvbp.problem.predictive import PredictiveDraws


class ArchModel(EstimatedModel):
    """A model of arch as `mgvbp.fit` takes it, made by `mgvbp.from_arch`; see `EstimatedModel`."""

    def predict(
        self,
        theta: ArrayLike,
        *,
        steps: int | None = None,
        of: str = "observations",
        rng: int | np.random.Generator = 0,
        **given: Any,
    ) -> PredictiveDraws:
        """Returns or variances, one path for each draw of θ; what ``posterior.predict(...)`` calls.

        Parameters
        ----------
        theta : array_like of shape (S, d)
        steps : int, optional
            How many days after the data to forecast, by simulation. By default the observed days are drawn again, each
            given those before it, which checks the model.
        of : {"observations", "variance"}
            The series itself, or its conditional variance.
        rng : int or numpy.random.Generator
        **given
            What else the model's own ``forecast`` takes, such as ``x`` for exogenous means.
        """
        one_of(of, ("observations", "variance"), "of")
        params, generator = self.values(as_floats(theta, "theta")), as_generator(rng)
        if steps is None:
            takes_no_more(given, "predict() of the observed days, without steps=,")
            return self._again(params, of, generator)
        days = positive_integer(steps, "steps")

        def future(row: Array, each: int) -> tuple[Array, Array | None]:
            shocks = self._shocks(row, generator)
            options = {"method": "simulation", "simulations": each, "rng": shocks, "reindex": False}
            found = quietly(lambda: self.model.forecast(row, horizon=days, **options, **given))
            if of == "variance":
                return np.asarray(found.simulations.variances)[-1], None
            return np.asarray(found.simulations.values)[-1], np.asarray(found.mean)[-1]

        with explained(self.model):
            return PredictiveDraws(*simulated(params, future), index=range(1, days + 1))

    def forecast(self, theta: ArrayLike, steps: int, **given: Any) -> PredictiveDraws:
        """The ``steps`` after the data; see `predict`."""
        return self.predict(theta, steps=steps, **given)

    def _again(self, params: Array, of: str, rng: np.random.Generator) -> PredictiveDraws:
        sample, variances, means, draws = Sample(self.model), [], [], []
        for row in params:
            residuals, variance = sample.path(row)
            variances.append(variance)
            means.append(sample.y - residuals)
            shocks = np.asarray(self._shocks(row, rng)(len(residuals)))
            draws.append(means[-1] + np.sqrt(variance) * shocks)
        if of == "variance":
            return PredictiveDraws(np.stack(variances), index=sample.index)
        return PredictiveDraws(np.stack(draws), np.stack(means), sample.index)

    def _shocks(self, row: Array, rng: np.random.Generator) -> Any:
        """A function of a number that makes so many shocks of the model's distribution, drawn from ``rng``."""
        distribution = copy.copy(self.model.distribution)
        distribution._generator = rng
        return distribution.simulate(split(self.model, row)[2])


def from_arch(model: Any, /, priors: Mapping[str, Any] | None = None) -> ArchModel:
    """A model of the package arch in the form that `mgvbp.fit` takes: any mean, volatility and distribution.

    Parameters
    ----------
    model : arch.univariate.base.ARCHModel, or its results
        Such as ``arch_model(returns, vol="EGARCH", dist="skewt")``. A model is first estimated by its own ``fit``; of
        results, the estimate is taken as it is.
    priors : mapping of str to distribution, optional
        Priors of single parameters: objects with ``logpdf`` as those of ``scipy.stats``, one-dimensional `Gaussian`,
        or functions of the values (S,) that return log densities (S,).

    Returns
    -------
    ArchModel
        The log-likelihood of θ. The parameters stay within arch's own bounds and constraints, stationarity among them.

    Raises
    ------
    InvalidInputError
        The model has no data, no parameters, or cannot be estimated.
    InvalidTypeError
        It is not a model of arch.
    UnknownNameError
        A prior is for a name that the model does not have.

    Notes
    -----
    **Default priors.** Parameters that arch bounds, as those of a stationary GARCH, are uniform on what it allows. The
    degrees of freedom of t and skew t have the density ``ν exp(−ν/10) / 100``. Others are normal, with mean 0 and a
    standard deviation of 10 times the larger of the absolute estimate and its standard error. These priors are for
    estimation; to compare models by their evidence, give your own.

    **θ** is unconstrained. Each parameter is an interval's share, through the logistic function, of what arch's bounds
    and inequalities and the parameters before it leave; the log-Jacobian is included. If arch rescales the data
    (``rescale=True``), parameters and forecasts are those of the rescaled data, as in arch.

    Examples
    --------
    >>> import mgvbp, arch
    >>> returns = np.random.default_rng(0).standard_t(6, size=600)
    >>> model = arch.arch_model(returns, mean="Zero", vol="ARCH", p=1, dist="t")
    >>> posterior = mgvbp.fit(mgvbp.from_arch(model))
    >>> posterior.parameters.names
    ('omega', 'alpha[1]', 'nu')
    >>> posterior.forecast(5).draws.shape
    (500, 5)
    """
    base = require("arch.univariate.base", "volatility")
    results = isinstance(model, base.ARCHModelFixedResult)
    if results:
        model, estimate = model.model, np.array(model.params, np.float64)
    if not isinstance(model, base.ARCHModel):
        raise InvalidTypeError(
            f"expected a model of arch, as arch.arch_model(returns) is one; got {shown(model)}"
        )
    if model.y is None:
        raise InvalidInputError("the model has no data: give them, as in arch_model(returns)")
    if not results:
        estimate = estimated(model)
    names = tuple(model._all_parameter_names())
    if not names:
        raise InvalidInputError("the model has no parameters: nothing to approximate")
    sample = Sample(model)
    region = sample.region(estimate)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
    parameters = RegionParameters(
        shapes,
        shapes,
        lambda theta: dict(zip(names, region.point(theta).T, strict=True)),
        lambda values: region.theta(np.stack([values[name] for name in names], axis=1)),
        jacobian=region.log_jacobian,
    )
    reading = Reading(
        parameters=parameters,
        log_likelihood=row_by_row(sample.log_likelihood),
        estimate=region.inside(estimate),
        pointwise=sample.pointwise,
        y=sample.y,
        priors=dict(default_priors(model, names, region)),
    )
    return ArchModel(model, reading, priors)


def estimated(model: Any) -> Array:
    """The estimate of the model's own ``fit``."""
    try:
        return np.array(quietly(lambda: model.fit(disp="off", show_warning=False)).params, np.float64)
    except Exception as error:
        raise InvalidInputError(
            f"the model's fit() failed, and the search begins with its estimate: {error}"
        ) from error
