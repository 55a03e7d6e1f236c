"""Several models on one series: lower bounds, evidence, leave-one-out and hold-out scores, losses."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from mgvbp.core import Array, as_floats, as_key, positive_integer
from mgvbp.errors import ConvergenceWarning, InvalidInputError, InvalidTypeError, MgvbpError, printable
from mgvbp.problem import log_prior
from mgvbp.run import progress_bar
from mgvbp.volatility.family import ARCH, EGARCH, FIGARCH, GARCH, GJR
from mgvbp.volatility.likelihood import Likelihood
from mgvbp.volatility.model import LEAST, VolatilityModel
from mgvbp.volatility.result import DRAWS, VolatilityResult, fit_volatility
from mgvbp.volatility.risk import mixture_log_density
from mgvbp.volatility.scores import leave_one_out, mse, qlike
from mgvbp.volatility.series import Series, advise

FAILURES = (MgvbpError, ArithmeticError, np.linalg.LinAlgError)
"""What a model may raise where it does not suit the data; anything else is a defect, and is raised."""
KHAT = 0.7
"""Estimates whose importance weights have a larger Pareto shape are not to be trusted (Vehtari et al. 2024)."""
SHAPES = {"log_evidence": "khat", "elpd_loo": "khat_loo"}
"""The column of the Pareto shape that tells whether an estimate can be trusted, by the column of the estimate."""


@dataclass(frozen=True)
class Row:
    """What is known of one model; None where it was not asked for, or the fit failed."""

    lower_bound: float | None = None
    log_evidence: float | None = None
    """By importance sampling from the posterior; with its standard error, and k̂ of the weights."""
    log_evidence_se: float | None = None
    khat: float | None = None
    elpd_loo: float | None = None
    """The sum of leave-one-out log densities; with its standard error, and the largest k̂ of a day."""
    elpd_loo_se: float | None = None
    khat_loo: float | None = None
    log_likelihood: float | None = None
    """At its maximum."""
    aic: float | None = None
    bic: float | None = None
    log_score: float | None = None
    """The sum of one-step-ahead log predictive densities over the hold-out."""
    mse: float | None = None
    qlike: float | None = None
    converged: bool | None = None
    failure: str | None = None
    """Why there is nothing else in the row."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models beside each other, the largest lower bound first.

    Attributes
    ----------
    rows : dict of str to Row
    results : dict of str to VolatilityResult
        Of those that could be fitted.
    days : int
        Returns that each model was fitted to.
    holdout : int
        Returns after these that no fit has seen.
    """

    rows: dict[str, Row]
    results: dict[str, VolatilityResult]
    days: int
    holdout: int

    @property
    def best(self) -> VolatilityResult:
        """The result with the largest lower bound."""
        if not self.results:
            reasons = "; ".join(f"{name}: {row.failure}" for name, row in self.rows.items())
            raise InvalidInputError(f"no model could be fitted. {reasons}")
        return next(iter(self.results.values()))

    def to_frame(self) -> Any:
        """A pandas frame with one row a model, without the columns that have nothing in them."""
        import pandas as pd

        rows = [asdict(row) for row in self.rows.values()]
        frame = pd.DataFrame(rows, index=pd.Index(self.rows, name="model"))
        return frame.dropna(axis="columns", how="all")

    def __str__(self) -> str:
        columns = [f.name for f in fields(Row) if f.name != "failure"]
        columns = [c for c in columns if any(getattr(row, c) is not None for row in self.rows.values())]
        rows = [[name, *(cell(row, column) for column in columns)] for name, row in self.rows.items()]
        table = [["model", *columns], *rows]
        widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
        held = f", {self.holdout:,} held out" if self.holdout else ""
        marked = any("?" in text for cells in rows for text in cells[1:])
        doubt = f"; ? is not to be trusted, its khat is above {KHAT}" if marked else ""
        lines = [f"{self.days:,} returns{held}; larger is better, but for aic, bic, mse, qlike{doubt}"]
        for name, *cells in table:
            lines.append("  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip())
        lines += [f"{name} failed: {row.failure}" for name, row in self.rows.items() if row.failure]
        return printable("\n".join(lines))


def ladder() -> list[VolatilityModel]:
    """The models that are compared if none are given: asymmetry, long memory and fat tails, one at a time."""
    normal: list[VolatilityModel] = [ARCH(1), GARCH(1, 1), GJR(1, 1, 1), EGARCH(1, 1, 1), FIGARCH(1, 1)]
    return [*normal, GARCH(1, 1, dist="t"), GJR(1, 1, 1, dist="t"), EGARCH(1, 1, 1, dist="t")]


def compare(
    returns: Any,
    models: VolatilityModel | Iterable[VolatilityModel] | Mapping[str, VolatilityModel] | None = None,
    *,
    holdout: int = 0,
    proxy: Any = None,
    n_jobs: int | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool = False,
) -> Comparison:
    """Fit several models to the same returns and put what they achieve side by side.

    Every model explains the same days: the series of a model with fewer lags in its mean starts later. The row of a
    model that cannot be fitted says why. Lower bounds, evidence and leave-one-out densities (see `leave_one_out`) are
    those of the fitted returns. Lower bounds and evidence also depend on the priors, and each model has its own.

    Parameters
    ----------
    returns : array_like of shape (T,), or pandas.Series
    models : VolatilityModel, several, or mapping of names to them, optional
        By default `ladder`: eight, from ARCH(1) to an asymmetric GARCH with Student-t errors.
    holdout : int
        How many of the last returns no fit sees. They are for one-step-ahead log predictive scores: the posterior of
        the parameters stays as it is, while the filter goes on from day to day.
    proxy : array_like of shape (T,), optional
        Realised variances (not volatilities) of the same days, in the unit of the squared returns. MSE and QLIKE
        compare the posterior means of the variances with them, in the hold-out if there is one.
    n_jobs : int, optional
        Threads, 1 by default. On two cores, two of them took 0.8 to 0.9 times as long as one for the eight
        models on 2,123 days, and half as long on 10,000. Two processes took 1.6 times as long when new and
        0.6 to 0.8 when kept, but their results come back without the model that `Posterior.diagnose` needs.
    rng : int or numpy.random.Generator
        Each model is fitted with the same seed, as ``model.fit(returns, rng=rng)`` would be.
    progress : bool
        Show a progress bar.

    Examples
    --------
    >>> returns = GARCH(1, 1, dist="t").simulate(
    ...     {"mu": 0.0, "omega": 0.05, "alpha[1]": 0.1, "beta[1]": 0.85, "nu": 5.0}, days=1000, rng=1)
    >>> comparison = compare(returns, [ARCH(1), GARCH(1, 1), GARCH(1, 1, dist="t")], holdout=200)
    >>> list(comparison.rows)
    ['GARCH(1,1)-t', 'GARCH(1,1)', 'ARCH(1)']
    """
    chosen = named_models(ladder() if models is None else models)
    lags = max(model.mean.lags for model in chosen.values())
    series = Series.of(returns)
    held = positive_integer(holdout, "holdout", least=0)
    days = len(series) - held - lags
    if days < LEAST:
        raise InvalidInputError(
            f"{len(series)} returns without a holdout of {held} and {lags} lags leave {max(days, 0)} to fit; at "
            f"least {LEAST} are needed"
        )
    advise(series)
    realised = None if proxy is None else checked_proxy(proxy, series, held or days)
    seed = as_key(rng)[0]

    def work(model: VolatilityModel) -> tuple[Row, VolatilityResult | None]:
        try:
            return evaluated(model, series[lags - model.mean.lags :], held, realised, seed)
        except FAILURES as error:
            return Row(failure=f"{type(error).__name__}: {error}"), None

    rows: dict[str, Row] = {}
    results: dict[str, VolatilityResult] = {}
    pool = ThreadPoolExecutor(1 if n_jobs is None else positive_integer(n_jobs, "n_jobs"))
    with warnings.catch_warnings(), progress_bar(progress, len(chosen)) as report, pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the column ``converged`` tells
        for name, (row, result) in zip(chosen, pool.map(work, chosen.values()), strict=True):
            rows[name] = row
            if result is not None:
                results[name] = result
            best = max((r.lower_bound for r in results.values()), default=-math.inf)
            report(len(rows), best, sum(r.posterior.n_evaluations for r in results.values()))
    order = sorted(rows, key=lambda name: -results[name].lower_bound if name in results else math.inf)
    fitted = {name: results[name] for name in order if name in results}
    return Comparison({name: rows[name] for name in order}, fitted, days, held)


def evaluated(
    model: VolatilityModel, series: Series, holdout: int, proxy: Array | None, seed: int
) -> tuple[Row, VolatilityResult]:
    """Fit ``model`` to all but the last ``holdout`` returns and find the numbers of its row."""
    known = len(series) - holdout
    past = series[:known]
    result = fit_volatility(Likelihood(model, past), model.prior(past), rng=seed)
    posterior, ml = result.posterior, result.ml
    diagnosis = posterior.diagnose(rng=seed)
    theta = posterior.sample(DRAWS, rng=seed)
    weights = result.likelihood(theta) + log_prior(result.prior, theta) - posterior.log_density(theta)
    loo = leave_one_out(result.likelihood.pointwise(theta), weights)
    ahead = Likelihood(model, series, known) if holdout else result.likelihood
    mean, sd, law = ahead.predictive(theta)
    h = (sd**2).mean(axis=1)
    x = None if proxy is None else proxy[-len(h) :]
    row = Row(
        lower_bound=posterior.lower_bound,
        log_evidence=diagnosis.log_evidence,
        log_evidence_se=diagnosis.log_evidence_se,
        khat=diagnosis.khat,
        elpd_loo=float(loo.elpd.sum()),
        elpd_loo_se=float(loo.elpd.std() * math.sqrt(len(loo.elpd))),
        khat_loo=float(loo.khat.max()),
        log_likelihood=ml.log_likelihood,
        aic=ml.aic,
        bic=ml.bic,
        log_score=float(mixture_log_density(ahead.y, mean, sd, law).sum()) if holdout else None,
        mse=None if x is None else mse(x, h),
        qlike=None if x is None else qlike(x, h),
        converged=posterior.converged,
    )
    return row, result


def named_models(
    models: VolatilityModel | Iterable[VolatilityModel] | Mapping[str, VolatilityModel],
) -> dict[str, VolatilityModel]:
    """The models by name. Names that are not given are short ones or, where two of those are equal, the full ones."""
    several = isinstance(models, Iterable) and not isinstance(models, str)
    given: Any = models.values() if isinstance(models, Mapping) else models if several else [models]
    chosen = [checked_model(model) for model in given]
    if not chosen:
        raise InvalidInputError("models is empty: give at least one, or None for the default ones")
    if isinstance(models, Mapping):
        return dict(zip(map(str, models), chosen, strict=True))
    # GARCH(1,1), or GARCH(1,1)-t with Student-t errors
    short = [f"{type(m).__name__}({','.join(map(str, m.orders))}){m.law.tail}" for m in chosen]
    for names in (short, [repr(model) for model in chosen]):
        if len(set(names)) == len(names):
            return dict(zip(names, chosen, strict=True))
    repeated = Counter(names).most_common(1)[0][0]
    raise InvalidInputError(f"{repeated} is there twice: give a dict, with a name for each model")


def checked_model(model: object) -> VolatilityModel:
    """``model`` if it is one of the ARCH family."""
    if not isinstance(model, VolatilityModel):
        raise InvalidTypeError(f"expected a volatility model, such as GARCH(1, 1); got {model!r}")
    return model


def checked_proxy(proxy: Any, series: Series, days: int) -> Array:
    """Variances of the same days as the returns, not all zero on the last ``days``, which are compared."""
    values = as_floats(proxy, "proxy")
    if values.shape != series.values.shape:
        raise InvalidInputError(
            f"proxy has shape {values.shape}; expected ({len(series)},): one variance for each return"
        )
    if values.min() < 0.0:
        raise InvalidInputError(f"proxy must be variances, none negative; the least is {values.min()}")
    if not values[-days:].any():
        raise InvalidInputError(f"proxy is zero on all of the {days} days compared: QLIKE is not defined")
    same = getattr(getattr(proxy, "index", None), "equals", None)  # a pandas index has such a method
    if series.index is not None and same is not None and not same(series.index):
        raise InvalidInputError("proxy has other dates than the returns: try proxy.reindex(returns.index)")
    return values


def cell(row: Row, column: str) -> str:
    """What the table shows of a row, with a mark on what is not to be trusted."""
    text = shown(getattr(row, column))
    if column not in SHAPES:
        return text
    khat = getattr(row, SHAPES[column])
    return f"{text} " if khat is None or khat <= KHAT else f"{text}?"


def shown(value: float | bool | None) -> str:
    """A number or truth value in few characters; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.2f}" if abs(value) >= 10.0 else f"{value:.3f}"
