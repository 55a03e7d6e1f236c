"""The kinds of statsmodels' models: each is read by what it has, names, constraints, likelihood and estimate."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.interop.default_priors import UNIFORM
from mgvbp.interop.estimated import Reading, quietly, row_by_row
from mgvbp.interop.statsmodels.transformed import transformed_parameters
from mgvbp.problem.parameters import Parameters
from mgvbp.transforms import Positive, Real

POSITIVE_ALPHA = (
    "NegativeBinomial", "NegativeBinomialP", "ZeroInflatedNegativeBinomialP", "TruncatedLFNegativeBinomialP",
)  # fmt: skip
"""Models whose last parameter, the dispersion ``alpha``, is positive."""
KNOWN_SCALE = ("Binomial", "Poisson", "NegativeBinomial")
"""Families of GLM whose dispersion is 1; that of others is to be estimated."""
CLASSES, SEPARATED = ("Logit", "Probit", "MNLogit"), -1e-3
"""Models of classes, and a log-likelihood above which all of them are known."""
ANALYTIC = ("statsmodels.discrete.", "statsmodels.genmod.")
"""Where scores are formulas; elsewhere they are differences of the log-likelihood, which gain nothing."""


def read(model: Any, estimate: Array) -> Reading:
    """What `mgvbp` needs to know of a model of statsmodels whose parameters were estimated as ``estimate``."""
    kind = plain
    if callable(getattr(model, "transform_params", None)):
        kind = state_space
    elif hasattr(model, "group_labels") and hasattr(model, "k_re"):
        kind = mixed
    elif hasattr(model, "wexog") and hasattr(model, "wendog"):
        kind = linear
    elif hasattr(model, "estimate_scale") and hasattr(model, "family"):
        kind = generalised
    return replace(kind(model, estimate), y=observations(model))


def state_space(model: Any, estimate: Array) -> Reading:
    """State-space and Markov-switching models, whose constraints are their ``transform_params``."""
    if getattr(getattr(model, "ssm", None), "filter_concentrated", False):
        raise InvalidInputError(
            "the scale is concentrated out of this likelihood: build the model with concentrate_scale=False"
        )
    spread = float(np.nanmax(np.nanstd(np.asarray(model.endog, np.float64), axis=0)))
    parameters, squares, bounded = transformed_parameters(model, estimate, smallest=1e-10 * spread**2)
    return Reading(
        parameters=parameters,
        log_likelihood=row_by_row(model.loglike),
        estimate=estimate,
        pointwise=getattr(model, "loglikeobs", None),
        deviations=dict.fromkeys(squares, spread),
        priors=dict.fromkeys(bounded, UNIFORM),
    )


def linear(model: Any, estimate: Array) -> Reading:
    """OLS, WLS and GLS: coefficients and the variance of the errors, ``scale``, which statsmodels concentrates out."""
    names, n = unique(model.exog_names), len(model.wendog)
    y, X = np.asarray(model.wendog, np.float64), np.asarray(model.wexog, np.float64)
    squares = float(((y - X @ estimate) ** 2).sum())
    # what weights and correlations add to the log-likelihood, whatever the parameters are
    constant = model.loglike(estimate) + 0.5 * n * (np.log(2.0 * np.pi * squares / n) + 1.0)

    def log_likelihood(rows: Array) -> Array:
        errors = ((y - rows[:, :-1] @ X.T) ** 2).sum(axis=1)
        scale = rows[:, -1]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.asarray(constant - 0.5 * n * np.log(2.0 * np.pi * scale) - 0.5 * errors / scale)

    def score(row: Array) -> Array:
        errors, scale = y - X @ row[:-1], row[-1]
        return np.append(X.T @ errors / scale, 0.5 * (errors @ errors / scale - n) / scale)

    weights = independent(model)

    def pointwise(row: Array) -> Array:
        errors, scale = y - X @ row[:-1], row[-1]
        return np.asarray(0.5 * np.log(weights / (2.0 * np.pi * scale)) - 0.5 * errors**2 / scale)

    scale = squares / n
    information = np.zeros((len(names) + 1, len(names) + 1))
    information[:-1, :-1], information[-1, -1] = X.T @ X / scale, 0.5 * n / scale**2
    return Reading(
        parameters=real_and_positive(names, ["scale"]),
        log_likelihood=log_likelihood,
        estimate=np.append(estimate, scale),
        score=score,
        information=information,
        pointwise=None if weights is None else pointwise,
        deviations={"scale": float(np.std(y))},
    )


def independent(model: Any) -> Array | None:
    """The weights (n,) of the rows of a linear model, one over their variances; None if the rows are correlated."""
    n = len(model.endog)
    sigma: Any = getattr(model, "sigma", None)
    if len(model.wendog) != n or np.ndim(sigma) == 2:  # autoregressive errors have fewer rows
        return None
    return np.asarray(np.broadcast_to(getattr(model, "weights", 1.0) if sigma is None else 1.0 / sigma, n))


def generalised(model: Any, estimate: Array) -> Reading:
    """GLM: coefficients and, where the family has one, the dispersion ``scale``."""
    names, free = unique(model.exog_names), type(model.family).__name__ not in KNOWN_SCALE

    def pointwise(row: Array) -> Array:
        mu = model.predict(row[:-1] if free else row)
        by_row = model.family.loglike_obs(model.endog, mu, model.var_weights, row[-1] if free else 1.0)
        return np.asarray(by_row * model.freq_weights)

    if free:
        return Reading(
            parameters=real_and_positive(names, ["scale"]),
            log_likelihood=row_by_row(lambda row: model.loglike(row[:-1], scale=row[-1])),
            estimate=np.append(estimate, model.estimate_scale(model.predict(estimate))),
            pointwise=pointwise,
        )
    return Reading(
        parameters=real_and_positive(names),
        log_likelihood=row_by_row(lambda row: model.loglike(row, scale=1.0)),
        estimate=estimate,
        score=lambda row: np.asarray(model.score(row, scale=1.0)),
        information=-quietly(lambda: np.asarray(model.hessian(estimate, scale=1.0))),
        pointwise=pointwise,
    )


def mixed(model: Any, estimate: Array) -> Reading:
    """MixedLM: fixed effects and variances of the random effects in units of the residual variance.

    statsmodels' likelihood has the residual variance concentrated out, which is, up to a constant, the same as
    integrated out under the prior ``1/scale``.
    """
    if model.k_re > 1:
        raise InvalidInputError(
            "a MixedLM with correlated random effects has parameters that must make a positive definite matrix, which "
            "is not supported: give the effects as variance components (vc_formula=), which are independent"
        )
    from statsmodels.regression.mixed_linear_model import MixedLMParams

    # the restricted likelihood has no fixed effects; theirs, with a wide prior, integrates to it
    full = copy.copy(model)
    full.reml = False
    fixed, size = model.k_fe, model.k_fe + model.k_re + model.k_vc

    def log_likelihood(row: Array) -> float:
        params = MixedLMParams.from_packed(row, fixed, model.k_re, use_sqrt=False, has_fe=True)
        return float(full.loglike(params, profile_fe=False))

    names = unique(model.data.param_names)[:size]
    residuals = model.endog - model.exog @ estimate[:fixed]  # the random effects included
    spread = float(np.std(model.endog) / np.sqrt(np.var(residuals)))
    return Reading(
        parameters=real_and_positive(names[:fixed], names[fixed:]),
        log_likelihood=row_by_row(log_likelihood),
        estimate=np.append(estimate[:fixed], np.maximum(estimate[fixed:size], 1e-6 * spread**2)),
        deviations=dict.fromkeys(names[fixed:], spread),
    )


def plain(model: Any, estimate: Array) -> Reading:
    """All others: real parameters, but for the dispersion of negative binomials."""
    names, kind = parameter_names(model, len(estimate)), type(model).__name__
    dispersed = kind in POSITIVE_ALPHA and names[-1] == "alpha"
    if dispersed:
        estimate = np.append(estimate[:-1], max(estimate[-1], 1e-6))
    if kind in CLASSES and model.loglike(estimate) > SEPARATED:
        raise InvalidInputError(
            "the covariates tell the classes apart without error, so that the likelihood has no maximum and default "
            "priors have no scale: fit one of mgvbp.models with a prior, such as LogisticRegression(X, y)"
        )
    score: Callable[[Array], Array] | None = None
    information = None
    if type(model).__module__.startswith(ANALYTIC) and callable(getattr(model, "score", None)):

        def score(row: Array) -> Array:
            return np.asarray(model.score(row), np.float64).ravel(order="F")

        if not dispersed:
            information = -quietly(lambda: np.asarray(model.hessian(estimate), np.float64))

    return Reading(
        parameters=real_and_positive(names[:-1], names[-1:]) if dispersed else real_and_positive(names),
        log_likelihood=row_by_row(model.loglike),
        estimate=estimate,
        score=score,
        information=information,
        pointwise=by_observation(model),
    )


def real_and_positive(real: Sequence[str], positive: Sequence[str] = ()) -> Parameters:
    """Parameters of one number each, the first without constraints."""
    return Parameters({**{name: Real() for name in real}, **{name: Positive() for name in positive}})


def by_observation(model: Any) -> Callable[[Array], Array] | None:
    """The model's ``loglikeobs``, (k,) -> (n,), if it has one; that of MNLogit has a column for each class."""
    if not callable(getattr(model, "loglikeobs", None)):
        return None

    def pointwise(row: Array) -> Array:
        found = np.asarray(model.loglikeobs(row), np.float64)
        return np.asarray(found.sum(axis=1)) if found.ndim == 2 else found

    return pointwise


def parameter_names(model: Any, number: int) -> list[str]:
    """One name for each of so many parameters; those of a model of J classes have the class in brackets."""
    names = list(getattr(getattr(model, "data", None), "param_names", None) or model.exog_names or [])
    classes = getattr(model, "_ynames_map", None)
    if classes is not None and len(names) * (len(classes) - 1) == number:
        return [f"{name}[{classes[j]}]" for j in list(classes)[1:] for name in names]
    if len(names) != number:
        names = [f"params[{i}]" for i in range(number)]
    return unique(names)


def unique(names: Any) -> list[str]:
    """The names as strings, none of them twice."""
    texts = [str(name) for name in names]
    if len(set(texts)) == len(texts):
        return texts
    return [f"{text}#{i}" if texts.count(text) > 1 else text for i, text in enumerate(texts)]


def observations(model: Any) -> Array | None:
    """The observed series or responses (n,), if they are numbers in one column."""
    y = np.asarray(model.endog)
    return np.asarray(y.reshape(len(y)), np.float64) if y.size == len(y) and y.dtype.kind in "fiub" else None
