"""Predictions of statsmodels' models by their own machinery, over draws of their parameters."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mgvbp.core.checks import one_of, positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.interop.estimated import PARAMETERS, quietly, simulated, takes_no_more
from mgvbp.problem.predictive import PredictiveDraws, one_of_classes

BEFORE = 1000
"""Days before a stretch of autoregressive errors: a root of 0.99 has left 4e-5 of its start by then."""

Paths = tuple[Array, Array | None]
"""Draws (each, n, m) of one draw of the parameters, and their means (n, m) given these, if they are known."""


def of_series(
    model: Any, params: Array, steps: int | None, exog: Any, of: str, rng: np.random.Generator
) -> PredictiveDraws:
    """Forecasts of a state-space model, its observations again one step ahead, or its smoothed states.

    ``params`` (S, k) are on the model's own scale.
    """
    one_of(of, ("observations", "states"), "of")
    if steps is not None and of == "observations":
        days = positive_integer(steps, "steps")
        draws, means = simulated(params, lambda row, each: future(model, row, days, exog, each, rng))
        index = later(model, days)
    elif steps is not None:
        raise InvalidInputError("states are smoothed, not forecast: leave steps= out")
    else:
        only_ahead(exog)
        inside = one_step_ahead if of == "observations" else smoothed
        draws, means = simulated(params, lambda row, each: inside(model, row, each, rng))
        index = model.data.row_labels
    if draws.shape[2] == 1:
        return PredictiveDraws(draws[:, :, 0], None if means is None else means[:, :, 0], index)
    names = np.atleast_1d(model.endog_names if of == "observations" else model.state_names)
    return PredictiveDraws(draws, means, index, [str(name) for name in names])


def future(model: Any, row: Array, steps: int, exog: Any, each: int, rng: np.random.Generator) -> Paths:
    """``each`` futures of one draw of the parameters: the last state and all shocks are drawn; then their mean."""
    model.update(row)
    found = model.ssm.filter()
    last, doubt = found.predicted_state[:, -1], found.predicted_state_cov[:, :, -1]
    states = last + rng.standard_normal((each, len(last))) @ root(doubt).T
    if exog is None and model.ssm.time_invariant:
        return onward(found, states, steps, rng), onward(found, last[None], steps, None)[0]
    ahead = {"anchor": "end", "exog": exog, "rng": rng}
    paths = model.simulate(row, steps, initial_state=states.T, repetitions=each, **ahead)
    shocks, noise = np.zeros((steps, found.k_posdef)), np.zeros((steps, found.k_endog))
    none = {"state_shocks": shocks, "measurement_shocks": noise}
    calm = model.simulate(row, steps, initial_state=last, **none, **ahead)
    futures = np.moveaxis(np.reshape(np.asarray(paths), (steps, -1, each)), 2, 0)
    return futures, np.reshape(np.asarray(calm), (steps, -1))


def onward(found: Any, states: Array, steps: int, rng: np.random.Generator | None) -> Array:
    """The observations (each, steps, m) that follow ``states`` (each, k), with shocks of ``rng``, or without shocks.

    It is the model's ``simulate`` for systems that do not change, without the time that this takes to set up.
    """
    Z, T = found.design[:, :, -1], found.transition[:, :, -1]
    noise, shock = root(found.obs_cov[:, :, -1]), found.selection[:, :, -1] @ root(found.state_cov[:, :, -1])
    days = []
    for _ in range(steps):
        days.append(states @ Z.T + found.obs_intercept[:, -1])
        states = states @ T.T + found.state_intercept[:, -1]
        if rng is not None:
            days[-1] = days[-1] + rng.standard_normal((len(states), noise.shape[1])) @ noise.T
            states = states + rng.standard_normal((len(states), shock.shape[1])) @ shock.T
    return np.stack(days, axis=1)


def root(covariance: Array) -> Array:
    """A matrix whose product with its transpose is ``covariance`` (..., k, k), which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def one_step_ahead(model: Any, row: Array, each: int, rng: np.random.Generator) -> Paths:
    """The observed days again, each drawn given the true days before it."""
    model.update(row)
    found = model.ssm.filter()
    noise = rng.standard_normal((each, found.nobs, found.k_endog))
    roots = root(np.moveaxis(found.forecasts_error_cov, 2, 0))
    means = np.asarray(found.forecasts.T)
    return means + np.einsum("nij,enj->eni", roots, noise), means


def smoothed(model: Any, row: Array, each: int, rng: np.random.Generator) -> Paths:
    """The states given all observations, drawn by the model's simulation smoother."""
    model.update(row)
    smoother = model.simulation_smoother()
    states = []
    for _ in range(each):
        smoother.simulate(rng=rng)
        states.append(np.array(smoother.simulated_state).T)
    return np.stack(states), None


def only_ahead(exog: Any) -> None:
    """Raise if covariates are given for the days of the data, which have theirs."""
    if exog is not None:
        raise InvalidInputError(
            "exog= of a time series goes with steps=: the covariates of its data are known"
        )


def of_regimes(model: Any, params: Array, steps: int | None, exog: Any, of: str) -> PredictiveDraws:
    """The probabilities of the regimes of a Markov-switching model given all observations, (S, n, regimes)."""
    one_of(of, ("observations", "states"), "of")
    if of == "observations" or steps is not None:
        raise InvalidInputError(
            "statsmodels does not forecast Markov-switching models: posterior.predict(of='states') has the "
            "probabilities of their regimes"
        )
    only_ahead(exog)
    found = [model.smooth(row, return_raw=True) for row in params[:PARAMETERS]]
    draws = np.swapaxes(np.stack([each.smoothed_marginal_probabilities for each in found]), 1, 2)
    index, names = model.data.row_labels, [f"regime {j}" for j in range(draws.shape[2])]
    return PredictiveDraws(draws, None, None if index is None else index[-draws.shape[1] :], names)


def of_rows(
    model: Any, params: Array, exog: Any, index: Any, rng: np.random.Generator, **given: Any
) -> PredictiveDraws:
    """New responses of a regression at the rows of ``exog`` (those of the data if it is None), by its distribution."""
    if hasattr(model, "wexog") and hasattr(model, "wendog"):
        takes_no_more(given, f"predict() of {type(model).__name__}")
        X = np.asarray(model.exog if exog is None else exog, np.float64)
        means = params[:, :-1] @ X.T
        if hasattr(model, "rho"):
            noise = autoregressive(model.rho, means.shape, rng, apart=exog is not None)
        else:
            noise = rng.standard_normal(means.shape)
            noise = correlated(model, noise) if exog is None else noise
        return PredictiveDraws(means + np.sqrt(params[:, -1:]) * noise, means, index)
    if hasattr(model, "k_re"):  # a mixed model, whose scale was integrated out
        raise unpredictable(model)
    if not callable(getattr(model, "get_distribution", None)) or type(model).__name__ == "MNLogit":
        return of_classes(model, params, exog, index, rng, **given)
    trials: Any = 1.0
    if hasattr(model, "estimate_scale"):
        trials, given = of_glm(model, exog, given)
    responses, expected = [], []
    for row in params:
        distribution = quietly(partial(distribution_at, model, row, exog, given))
        # PHReg has distributions of its own, of observed times alone
        if not hasattr(distribution, "support"):
            raise unpredictable(model)
        mean = np.asarray(distribution.mean())
        responses.append((distribution.rvs(size=mean.shape, random_state=rng) / trials).ravel())
        expected.append((mean / trials).ravel())
    return PredictiveDraws(np.stack(responses).astype(np.float64), np.stack(expected), index)


def correlated(model: Any, noise: Array) -> Array:
    """Standard normal ``noise`` (S, n) with the covariance, up to the scale, of the rows of a linear model."""
    sigma: Any = getattr(model, "sigma", None)
    weights: Any = getattr(model, "weights", None)
    if np.ndim(sigma) == 2:
        return np.asarray(noise @ np.linalg.cholesky(sigma).T)
    if np.ndim(sigma) == 1:
        return np.asarray(noise * np.sqrt(sigma))
    return noise if np.ndim(weights) != 1 else np.asarray(noise / np.sqrt(weights))


def autoregressive(rho: Any, shape: tuple[int, ...], rng: np.random.Generator, *, apart: bool) -> Array:
    """Errors ``e_t = Σ ρ_i e_{t−i} + z_t`` of GLSAR, (S, n): a stretch of a long series, or rows far ``apart``."""
    from scipy.signal import lfilter  # slow to import

    polynomial = np.append(1.0, -np.atleast_1d(rho))
    if apart:
        impulse = lfilter([1.0], polynomial, np.eye(1, BEFORE)[0])
        return np.asarray(np.sqrt((impulse**2).sum()) * rng.standard_normal(shape))
    shocks = rng.standard_normal((shape[0], BEFORE + shape[1]))
    return np.asarray(lfilter([1.0], polynomial, shocks, axis=1)[:, BEFORE:])


def of_glm(model: Any, exog: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The trials behind each response of a GLM, whose binomial responses are shares, and what its distribution takes.

    At the rows of the data, trials and weights are those of the model.
    """
    if exog is None:
        given = {"n_trials": model.n_trials, "var_weights": model.var_weights} | given
    if type(model.family).__name__ != "Binomial":
        return 1.0, given
    # a weight of a share is a number of trials too
    trials = np.asarray(given.get("n_trials", 1.0)) * np.asarray(given.get("var_weights", 1.0))
    if not ((trials > 0) & (trials == np.round(trials))).all():
        raise InvalidInputError(
            "n_trials times var_weights of a binomial response must be whole positive numbers; there is one of "
            f"{trials[(trials <= 0) | (trials != np.round(trials))][0]:g}"
        )
    return trials, given | {"n_trials": trials.astype(np.int64)}


def distribution_at(model: Any, row: Array, exog: Any, given: dict[str, Any]) -> Any:
    """The distribution of the responses at one draw of the parameters."""
    if hasattr(model, "estimate_scale"):
        if not hasattr(model.family, "get_distribution"):
            raise unpredictable(model)
        free = len(row) > model.exog.shape[1]
        return model.get_distribution(row[:-1] if free else row, row[-1] if free else 1.0, exog=exog, **given)
    return model.get_distribution(row, exog=exog, **given)


def of_classes(
    model: Any, params: Array, exog: Any, index: Any, rng: np.random.Generator, **given: Any
) -> PredictiveDraws:
    """Classes of multinomial and ordered models: draws are 1 for the class that came and 0 for the others."""
    shape = (model.exog.shape[1], -1) if type(model).__name__ == "MNLogit" else (-1,)
    rows = [row.reshape(shape, order="F") for row in params]
    try:
        found = quietly(lambda: np.stack([model.predict(row, exog, **given) for row in rows]))
    except NotImplementedError:
        raise unpredictable(model) from None
    if found.ndim != 3:
        raise unpredictable(model)
    classes = getattr(model, "_ynames_map", None)  # of MNLogit; an ordered model has labels
    names = [str(name) for name in (model.labels if classes is None else classes.values())]
    return PredictiveDraws(one_of_classes(found, rng), found, index, names)


def unpredictable(model: Any) -> InvalidInputError:
    """The error where statsmodels has no distribution of the responses."""
    return InvalidInputError(
        f"statsmodels has no distribution of the responses of this {type(model).__name__} (get_distribution): "
        "posterior.draws(n) has the parameters, for predictions of your own"
    )


def later(model: Any, steps: int) -> Any:
    """The labels of so many steps after the data; None if the data have none."""
    index = quietly(lambda: model._get_prediction_index(model.nobs, model.nobs + steps - 1))[3]
    return index if model.data.row_labels is not None else None
