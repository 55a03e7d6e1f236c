"""Models of statsmodels: `from_statsmodels`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats, as_generator, shown
from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.interop.estimated import EstimatedModel, explained, quietly, takes_no_more
from mgvbp.interop.statsmodels.kinds import read
from mgvbp.interop.statsmodels.predict import of_regimes, of_rows, of_series
from mgvbp.problem.predictive import PredictiveDraws

SMOOTHING = (
    "does not say what its parameters may be: take the state-space models, such as "
    "statsmodels.tsa.statespace.exponential_smoothing.ExponentialSmoothing(..., concentrate_scale=False)"
)
UNSUPPORTED = dict.fromkeys(("GEE", "NominalGEE", "OrdinalGEE", "RLM", "QuantReg"), "has no likelihood") | {
    "ETSModel": SMOOTHING,
    "RecursiveLS": "has its scale concentrated out: take OLS, which has the same posterior",
    "VAR": "does not have its likelihood as a function of its parameters: take VARMAX(..., order=(p, 0))",
    "AutoReg": "has its scale concentrated out, and no forecasts here: take SARIMAX or ARIMA, order=(p, 0, 0)",
}
"""What is wrong with models that have a method loglike, and yet no likelihood that can be used."""


class StatsmodelsModel(EstimatedModel):
    """A model of statsmodels as `mgvbp.fit` takes it, made by `mgvbp.from_statsmodels`; see `EstimatedModel`."""

    _formula: Any = None
    """Results of a model made from a formula, which know how to turn a frame into columns."""

    def predict(
        self,
        theta: ArrayLike,
        exog: Any = None,
        *,
        steps: int | None = None,
        of: str = "observations",
        rng: int | np.random.Generator = 0,
        **given: Any,
    ) -> PredictiveDraws:
        """New observations, one set for each draw of θ; what ``posterior.predict(...)`` calls.

        Parameters
        ----------
        theta : array_like of shape (S, d)
        exog : array_like, or a frame for a model made from a formula; optional
            New rows of the covariates, by default those of the data; for a forecast, the covariates of its steps.
        steps : int, optional
            For a time series: how many steps after the data to forecast. By default the observed days are drawn
            again, each given those before it, which checks the model.
        of : {"observations", "states"}
            For a time series: its observations, or its smoothed states; the states of a Markov-switching model are
            the probabilities of its regimes.
        rng : int or numpy.random.Generator
        **given
            What else the model's own ``predict`` or ``get_distribution`` takes, such as ``offset`` or ``exposure``.
        """
        model, params = self.model, self.values(as_floats(theta, "theta"))
        generator = as_generator(rng)
        with explained(model):
            if hasattr(model, "ssm"):
                takes_no_more(given, "predict() of a time series")
                return of_series(model, params, steps, exog, of, generator)
            if hasattr(model, "k_regimes"):
                takes_no_more(given, "predict() of a Markov-switching model")
                return of_regimes(model, params, steps, exog, of)
            if steps is not None or of != "observations":
                raise InvalidInputError(
                    "steps= and of= go with models of time series; give the rows to predict at"
                )
            rows, index = self._rows(exog)
            return of_rows(model, params, rows, index, generator, **given)

    def _rows(self, exog: Any) -> tuple[Array | None, Any]:
        """New rows of the covariates, by the formula if there is one, and their labels; None for those of the data."""
        if exog is None:
            return None, self.model.data.row_labels
        index = getattr(exog, "index", None)
        if self._formula is not None:
            exog, index = self._formula._transform_predict_exog(exog)
        rows, columns = np.asarray(exog, np.float64), np.shape(self.model.exog)[1]
        if rows.ndim != 2 or rows.shape[1] != columns:
            raise InvalidInputError(
                f"exog has shape {rows.shape}; expected (n, {columns}), the columns of the model"
            )
        return rows, index

    def forecast(self, theta: ArrayLike, steps: int, **given: Any) -> PredictiveDraws:
        """The ``steps`` after the data; see `predict`."""
        return self.predict(theta, steps=steps, **given)


def from_statsmodels(model: Any, /, priors: Mapping[str, Any] | None = None) -> StatsmodelsModel:
    """A model of statsmodels in the form that `mgvbp.fit` takes: names, constraints, likelihood, default priors.

    Parameters
    ----------
    model : a model of statsmodels, or its results
        Any model with a likelihood (``loglike``). A model is first estimated by its own ``fit``; of results, the
        estimate is taken as it is.
    priors : mapping of str to distribution, optional
        Priors of single parameters, on the model's scale: objects with ``logpdf`` as those of ``scipy.stats``,
        one-dimensional `Gaussian`, or functions of the values (S,) that return log densities (S,).

    Returns
    -------
    StatsmodelsModel
        The log-likelihood of θ. ``posterior[name]`` is on the model's scale. The attribute ``priors`` has the prior of
        each parameter, and ``start`` the Gaussian with which `fit` begins: the estimate, and the inverse of the
        curvature of the log-likelihood there.

    Raises
    ------
    InvalidInputError
        The model cannot be estimated, or has its scale concentrated out.
    InvalidTypeError
        It is not a model of statsmodels with a likelihood.
    UnknownNameError
        A prior is for a name that the model does not have.

    Notes
    -----
    **Default priors.** The prior of a parameter is normal, with mean 0 and a standard deviation of 10 times the larger
    of its absolute estimate and its standard error, restricted to the values that the model allows. It is so wide that
    the mean of a normal posterior moves by at most a hundredth of its standard error. There are two exceptions. For
    variances of time series, of linear regressions and of random effects, it is the standard deviation that has a
    prior: half-normal, with the standard deviation of the observed series as its scale. Parameters of a single series
    that its ``transform_params`` bounds, such as stationary AR and invertible MA coefficients, damping and
    probabilities of transition, are uniform on what it allows. These priors depend on the data. They are for
    estimation; to compare models by their evidence, give your own.

    **θ** is what statsmodels calls unconstrained parameters (``untransform_params``), but for variances, where it is
    their logarithm, and partial autocorrelations, where it is Fisher's ``arctanh``; for models without constraints θ
    are the parameters themselves. The log-Jacobian is included.

    **What is integrated out.** The variance of OLS, WLS and GLS, and the dispersion of a GLM that has one, is a
    parameter ``scale``. That of MixedLM is integrated out under the prior 1/scale, and the variances of its random
    effects are relative to it, as in its ``params``.

    Examples
    --------
    >>> import mgvbp, statsmodels.api as sm
    >>> data = sm.datasets.spector.load_pandas()
    >>> model = sm.Probit(data.endog, sm.add_constant(data.exog))
    >>> posterior = mgvbp.fit(mgvbp.from_statsmodels(model))
    >>> posterior.parameters.names
    ('const', 'GPA', 'TUCE', 'PSI')
    >>> posterior.predict([[1.0, 3.5, 25.0, 1.0]]).mean.round(1)
    array([0.8])
    """
    require("statsmodels", "statsmodels")
    model, estimate, result = estimated(model)
    found = StatsmodelsModel(model, read(model, estimate), priors)
    if hasattr(model, "formula") and hasattr(result, "_transform_predict_exog"):
        found._formula = result
    return found


def estimated(given: Any) -> tuple[Any, Array, Any]:
    """A model, the maximum of its likelihood and the results that have it, from a model or from its results."""
    known = hasattr(given, "params") and hasattr(given, "model")
    model = given.model if known else given
    if (known and constrained(given)) or getattr(model, "_has_fixed_params", False):
        raise InvalidInputError(
            f"this {type(model).__name__} has constrained or fixed parameters, which a fit here would not keep: give "
            "the model without them, and a narrow prior to each parameter that is known (priors={name: "
            "scipy.stats.norm(value, width)})"
        )
    if known and penalised(given):
        raise InvalidInputError(
            "the penalty of fit_regularized is not part of the likelihood, and would be lost: give the model itself, "
            "and the penalty as priors (priors={name: scipy.stats.norm(0.0, width)}, or scipy.stats.laplace for L1)"
        )
    if not callable(getattr(model, "loglike", None)) or not hasattr(model, "endog"):
        raise InvalidTypeError(
            "expected a model of statsmodels with a likelihood (a method loglike), or its results; got "
            f"{shown(given)}"
        )
    advice = UNSUPPORTED.get(type(model).__name__)
    abstract = require("statsmodels.base.model", "statsmodels").LikelihoodModel.loglike
    if getattr(type(model), "loglike", None) is abstract:
        advice = advice or (SMOOTHING if "holtwinters" in type(model).__module__ else "has no likelihood")
    if advice:
        raise InvalidInputError(f"{type(model).__name__} {advice}")
    # statsmodels itself looks at exog, and a Kalman filter takes missing observations
    if not hasattr(model, "ssm") and not np.isfinite(np.asarray(model.endog, np.float64)).all():
        raise InvalidInputError(
            f"the observations of {type(model).__name__} have missing or infinite values: leave them out, for instance "
            "with missing='drop'"
        )
    result = given if known else maximised(model)
    params = params_of(result)
    if not np.isfinite(params).all():
        raise InvalidInputError(f"the estimate of the model is not finite: {params}")
    return model, params, result


def constrained(result: Any) -> bool:
    """Whether results are those of ``fit_constrained`` or of ``fix_params``."""
    return getattr(result, "constraints", None) is not None or bool(getattr(result, "fixed_params", None))


def penalised(result: Any) -> bool:
    """Whether results are those of ``fit_regularized``."""
    name = type(getattr(result, "_results", result)).__name__
    return name.startswith("L1") or "Regularized" in name


def maximised(model: Any) -> Any:
    """The results of the model's own ``fit``; its warnings are not ours, since the estimate is but a start."""
    known = signature(model.fit).parameters
    wanted = {"disp": 0, "return_params": True}
    options: dict[str, Any] = {name: value for name, value in wanted.items() if name in known}
    if type(model).__name__ == "OrderedModel":  # whose simplex method stops far from the maximum
        options["method"] = "bfgs"

    def fitted(**chosen: Any) -> Any:
        try:
            return quietly(lambda: model.fit(**options | chosen))
        except Exception as error:
            raise InvalidInputError(
                f"{type(model).__name__}.fit() failed, and the search begins with its estimate ({error}): are columns "
                "collinear? If another of its methods succeeds, give the results: "
                "from_statsmodels(model.fit(method=...))"
            ) from error

    result = fitted()
    if "method" in known and not (np.isfinite(params_of(result)).all() and np.isfinite(llf_of(result))):
        with suppress(InvalidInputError):  # least squares have no such method
            result = fitted(method="nm")  # the simplex method does not leave where there are values
    return result


def llf_of(result: Any) -> float:
    """The log-likelihood that results state, or 0 where they state none."""
    return float(quietly(lambda: getattr(result, "llf", 0.0)))


def params_of(result: Any) -> Array:
    """The parameters (k,) of results, or the array of parameters that some models return in their place."""
    params = getattr(result, "params", result)
    try:
        return np.array(params, np.float64).ravel(order="F")
    except (TypeError, ValueError):
        raise InvalidInputError(f"the model's fit() has no vector of parameters: {shown(params)}") from None
