"""A fitted volatility model as files: a summary, tables, the posterior and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core import positive_integer, require
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.volatility.forecast import checked_losses
from mgvbp.volatility.plots import (
    plot_forecast,
    plot_parameters,
    plot_residuals,
    plot_result,
    plot_volatility,
)
from mgvbp.volatility.result import VolatilityResult

if TYPE_CHECKING:
    import pandas as pd

    from mgvbp.volatility.forecast import Forecast

LEVEL, TAILS = 0.9, (0.05, 0.95)
"""The probability of bands in tables and pictures, and the levels of their ends."""
QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
"""The posterior quantiles in the table of the parameters."""
DPI = 150
"""Dots per inch of the pictures."""


def write_report(
    result: VolatilityResult,
    directory: str | PathLike[str],
    horizon: int = 10,
    alphas: Sequence[float] = (0.01, 0.05),
    rng: int = 0,
    progress: bool = False,
) -> list[Path]:
    """Write a report on ``result`` to a directory, which is created if it does not exist.

    Files of the same names are replaced, others are left alone: ``summary.txt``; ``parameters.csv``,
    ``volatility.csv``, ``forecast.csv`` and ``risk.csv``; ``posterior.npz``, for `mgvbp.load`; ``overview.png``,
    ``overview.svg``, ``volatility.png``, ``forecast.png``, ``residuals.png`` and ``parameters.png``.

    Parameters
    ----------
    result : VolatilityResult
    directory : str or path
    horizon : int
        Days of the forecast, and of the risk beside that of the next day.
    alphas : sequence of float
        Probabilities of losses beyond the value at risk.
    rng : int
        Seed of the simulated futures.
    progress : bool
        Show a progress bar.

    Returns
    -------
    list of Path
        The files, in the order in which they were written.

    Raises
    ------
    InvalidInputError
        An argument cannot be used, or the directory cannot be written to.
    MissingDependencyError
        pandas or matplotlib is not installed.
    """
    require("pandas", "volatility")
    require("matplotlib", "volatility")
    _refuse_others(result)
    future = result.forecast(horizon, rng=rng)
    forecast, risk = future.to_frame(TAILS), risk_table(result, horizon, alphas, rng, future)
    tables = [frame.to_string(float_format="{:.4g}".format) for frame in (forecast, risk.set_index("days"))]
    summary = "\n\n".join([result.summary(), *tables, ""])
    overview = cache(lambda: plot_result(result, level=LEVEL, forecast=future))
    pictures: dict[str, Callable[[], Any]] = {
        "overview.png": overview,
        "overview.svg": overview,
        "volatility.png": lambda: plot_volatility(result, level=LEVEL).figure,
        "forecast.png": lambda: plot_forecast(result, level=LEVEL, forecast=future).figure,
        "residuals.png": lambda: plot_residuals(result, level=LEVEL).figure,
        "parameters.png": lambda: plot_parameters(result)[0].figure,
    }
    parts: dict[str, Callable[[Path], object]] = {
        "summary.txt": lambda path: path.write_text(summary, encoding="utf-8"),
        "parameters.csv": parameter_table(result).to_csv,
        "volatility.csv": volatility_table(result).to_csv,
        "forecast.csv": forecast.to_csv,
        "risk.csv": partial(risk.to_csv, index=False),
        "posterior.npz": result.posterior.save,
        **{name: partial(_write_picture, draw) for name, draw in pictures.items()},
    }
    return _write(parts, Path(directory), progress)


def parameter_table(result: VolatilityResult) -> pd.DataFrame:
    """Posterior and maximum likelihood, one row a parameter."""
    rows = {}
    for name in result.model.parameters.names:
        entry = result.posterior[name]
        rows[name] = {
            "mean": float(entry.mean),
            "sd": float(entry.std),
            **{f"{100 * p:g}%": float(entry.quantile(p)) for p in QUANTILES},
            "ml": result.ml.params[name],
            "std_error": result.ml.std_errors[name],
            "robust_std_error": result.ml.robust_std_errors[name],
        }
    frame: pd.DataFrame = require("pandas", "volatility").DataFrame.from_dict(rows, orient="index")
    return frame.rename_axis("parameter")


def volatility_table(result: VolatilityResult) -> pd.DataFrame:
    """Return, volatility with the ends of its band, and standardised residual, one row a day."""
    first, index = result.likelihood.offset, result.returns.index
    low, high = (np.asarray(end) for end in result.volatility_band(LEVEL))
    columns = {
        "return": result.returns.values[first:],
        "volatility": np.asarray(result.conditional_volatility),
        **{f"volatility_{100 * p:g}%": end for p, end in zip(TAILS, (low, high), strict=True)},
        "standardized_residual": np.asarray(result.standardized_residuals),
    }
    frame: pd.DataFrame = require("pandas", "volatility").DataFrame(columns, index=result.returns.days(first))
    return frame.rename_axis("date" if hasattr(index, "year") else "day")


def risk_table(
    result: VolatilityResult,
    horizon: int = 10,
    alphas: Sequence[float] = (0.01, 0.05),
    rng: int = 0,
    forecast: Forecast | None = None,
) -> pd.DataFrame:
    """Value at risk and expected shortfall of the next day and of the sum over ``horizon`` days.

    Parameters
    ----------
    result : VolatilityResult
    horizon : int
    alphas : sequence of float
        Probabilities of losses beyond the value at risk.
    rng : int
        Seed of the simulated futures.
    forecast : Forecast, optional
        Of ``horizon`` days, if there is one: it is not simulated again.

    Examples
    --------
    >>> from mgvbp.volatility import ARCH
    >>> model = ARCH(1, mean="zero")
    >>> result = model.fit(model.simulate({"omega": 0.5, "alpha[1]": 0.5}, days=300, rng=0))
    >>> risk_table(result, horizon=5, alphas=[0.05]).round({"value_at_risk": 1, "expected_shortfall": 1})
       days  alpha  value_at_risk  expected_shortfall
    0     1   0.05            1.3                 1.6
    1     5   0.05            3.3                 4.3
    """
    _refuse_others(result)
    sources: dict[int, VolatilityResult | Forecast] = {1: result}
    if positive_integer(horizon, "horizon") > 1:
        sources[horizon] = result.forecast(horizon, rng=rng) if forecast is None else forecast
    rows = [
        {
            "days": days,
            "alpha": alpha,
            "value_at_risk": source.var(alpha),
            "expected_shortfall": source.expected_shortfall(alpha),
        }
        for days, source in sources.items()
        for alpha in checked_losses(alphas)
    ]
    frame: pd.DataFrame = require("pandas", "volatility").DataFrame(rows)
    return frame


def _refuse_others(result: object) -> None:
    if not isinstance(result, VolatilityResult):
        raise InvalidTypeError(
            f"expected a fitted volatility model, as GARCH(1, 1).fit(returns) returns it; got {result!r}"
        )


# --- files --------------------------------------------------------------------------------------------


def _write(parts: dict[str, Callable[[Path], object]], directory: Path, progress: bool) -> list[Path]:
    from rich.console import Console
    from rich.progress import track

    path, written = directory, []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        console = Console(stderr=True)
        shown = track(parts.items(), "report", console=console, transient=True, disable=not progress)
        for name, write in shown:
            path = directory / name
            write(path)
            written.append(path)
    except FileExistsError:
        raise InvalidInputError(f"{directory} is a file; give a directory, new or not") from None
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error.strerror or error}") from None
    return written


def _write_picture(draw: Callable[[], Any], path: Path) -> None:
    draw().savefig(path, dpi=DPI)
