"""``mgvbp volatility``: fit a model of the ARCH family to the returns in a file; forecasts and risk."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from mgvbp import InvalidInputError, MgvbpWarning
from mgvbp.cli.arguments import count, count_or_zero, integers, probabilities

ORDERS = {"arch": "p", "garch": "p,q", "gjr": "p,o,q", "egarch": "p,o,q", "figarch": "p,q"}
"""The models, and the letters of their orders."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "volatility",
        help="fit a model of the ARCH family to returns; forecasts and risk",
        description="Fit a volatility model to the returns in a CSV file: posterior, forecast, value at risk. "
        "Without a file: to the S&P 500 series that the package arch ships.",
    )
    command.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a CSV file, .gz or not")
    data = command.add_argument_group("data")
    data.add_argument(
        "--column", metavar="NAME", help="of the returns (default: found by its name, or the only one)"
    )
    data.add_argument("--prices", action="store_true", help="the column has prices: take 100 log differences")
    model = command.add_argument_group("model")
    model.add_argument("--model", choices=list(ORDERS), default="gjr", help="default: gjr")
    orders = "; ".join(f"{name} {letters}" for name, letters in ORDERS.items())
    model.add_argument("--order", type=integers, metavar="N,N", help=f"default: ones; {orders}")
    model.add_argument("--mean", choices=["zero", "constant", "ar"], help="default: that of the convention")
    model.add_argument("--lags", type=count, metavar="K", help="of --mean ar (default: 1)")
    model.add_argument(
        "--dist", choices=["normal", "t", "skewt", "ged"], default="t", help="of the errors (default: t)"
    )
    model.add_argument(
        "--convention",
        choices=["arch", "paper"],
        default="arch",
        help="start-up values and prior: those of the package arch, or of the paper (default: arch)",
    )
    output = command.add_argument_group("output")
    output.add_argument(
        "--horizon", type=count, default=10, metavar="DAYS", help="of forecast and risk (default: 10)"
    )
    output.add_argument(
        "--alpha",
        type=probabilities,
        default=(0.01, 0.05),
        metavar="P,P",
        help="probabilities of losses beyond the value at risk (default: 0.01,0.05)",
    )
    output.add_argument("--seed", type=count_or_zero, default=0, help="default: 0")
    output.add_argument("--out", type=Path, metavar="DIR", help="write summary, tables and figures there")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fit the model, and print its summary, forecast and risk, or write them to files."""
    from rich.console import Console

    from mgvbp.volatility import checked_horizon, default_returns, read_returns, risk_table, write_report

    model = _model(arguments)
    checked_horizon(arguments.horizon)
    if arguments.out is not None:
        _require_directory(arguments.out)
    if arguments.file is None:
        if arguments.column is not None or arguments.prices:
            raise InvalidInputError("--column and --prices go with a FILE")
        print("no file given: the S&P 500 prices that the package arch ships\n")
        returns = default_returns()
    else:
        returns = read_returns(arguments.file, arguments.column, arguments.prices)
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(f"fitting {len(returns):,} returns; the first run on a machine also compiles")
    with warnings.catch_warnings():
        warnings.simplefilter("always", MgvbpWarning)
        # as errors are printed, without the line of code that the warning came from
        warnings.showwarning = lambda message, *_, **__: print(f"mgvbp: {message}", file=sys.stderr)
        result = model.fit(returns, rng=arguments.seed, progress=console.is_terminal)
    print(result.summary())
    horizon, alphas, rng = arguments.horizon, arguments.alpha, arguments.seed
    if arguments.out is not None:
        files = write_report(result, arguments.out, horizon, alphas, rng, console.is_terminal)
        print(f"\nwritten to {arguments.out}: {', '.join(path.name for path in files)}")
        return 0
    print_table("forecast", result.forecast(horizon, rng=rng).to_frame().reset_index())
    print_table("risk: losses over so many days", risk_table(result, horizon, alphas, rng))
    return 0


def _model(arguments: argparse.Namespace) -> Any:
    from mgvbp import volatility

    letters = ORDERS[arguments.model]
    order = arguments.order or (1,) * len(letters.split(","))
    if len(order) != len(letters.split(",")):
        raise InvalidInputError(f"--order of {arguments.model} is {letters}; got {','.join(map(str, order))}")
    lags = int(arguments.mean == "ar") if arguments.lags is None else arguments.lags
    return getattr(volatility, arguments.model.upper())(
        *order, mean=arguments.mean, lags=lags, dist=arguments.dist, convention=arguments.convention
    )


def _require_directory(path: Path) -> None:
    """Refuse, before the fit and not after it, a path that cannot be a directory."""
    there = next(part for part in (path, *path.parents) if part.exists())
    if not there.is_dir():
        raise InvalidInputError(f"{there} is a file; give a directory, new or not")


def print_table(title: str, frame: Any) -> None:
    """Print a frame: integers in full, other numbers with four digits."""
    from rich.console import Console
    from rich.table import Column, Table

    columns = [Column(name.replace("_", " "), justify="right") for name in frame]
    table = Table(*columns, title=title, title_justify="left", box=None)
    for row in frame.itertuples(index=False):
        table.add_row(*(str(value) if isinstance(value, int) else f"{value:.4g}" for value in row))
    console = Console()
    console.print()
    console.print(table)
