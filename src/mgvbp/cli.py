"""The command ``mgvbp``."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from mgvbp import InvalidInputError, MgvbpError, MgvbpWarning, MissingDependencyError, __version__

ORDERS = {"arch": "p", "garch": "p,q", "gjr": "p,o,q", "egarch": "p,o,q", "figarch": "p,q"}
"""The models of ``mgvbp volatility``, and what their orders are."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser().parse_args(words)
    arguments.command = words
    try:
        code: int = arguments.run(arguments)
        return code
    except MgvbpError as error:
        print(f"mgvbp: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mgvbp: interrupted", file=sys.stderr)
        return 130


def _reproduce(arguments: argparse.Namespace) -> int:
    try:
        from mgvbp.experiments import EXPERIMENTS, reproduce
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"the experiments need the package {error.name}: pip install 'mgvbp[experiments]'"
        ) from None
    if arguments.names == ["list"]:
        width = max(map(len, EXPERIMENTS))
        print("\n".join(f"{name:<{width}}  {title}" for name, title in EXPERIMENTS.items()))
        return 0
    names = list(EXPERIMENTS) if "all" in arguments.names else list(dict.fromkeys(arguments.names))
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        raise InvalidInputError(
            f"no experiment is called {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}, and all"
        )
    return reproduce(
        names,
        quick=arguments.quick,
        seed=arguments.seed,
        jobs=arguments.jobs,
        directory=arguments.out,
        command="mgvbp " + " ".join(arguments.command),
    )


def _data_list(_: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Column, Table

    from mgvbp.datasets import CATALOGUE, where

    rows, source = Column("rows", justify="right"), Column("source", overflow="fold")
    table = Table("name", rows, source, "found", "terms", box=None)
    for name, entry in CATALOGUE.items():
        table.add_row(name, f"{entry.rows:,}", entry.source, where(name), entry.terms)
    Console().print(table)
    return 0


def _data_fetch(arguments: argparse.Namespace) -> int:
    """Each file that can be had is, also after one that cannot."""
    from mgvbp.datasets import CATALOGUE

    code = 0
    for name in arguments.names or [name for name, entry in CATALOGUE.items() if entry.file]:
        try:
            print(f"{name}: {_fetch_with_bar(name) or 'no file to fetch'}")
        except MgvbpError as error:
            print(f"mgvbp: {error}", file=sys.stderr)
            code = 1
    return code


def _fetch_with_bar(name: str) -> Path | None:
    import pooch
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from mgvbp.datasets import fetch

    pooch.get_logger().setLevel("WARNING")  # the bar says it
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)
        return fetch(name, lambda done, total: progress.update(task, completed=done, total=total))


def _data_path(arguments: argparse.Namespace) -> int:
    from mgvbp.datasets import CATALOGUE, cache_directory, find

    if arguments.name is None:
        print(cache_directory())
        return 0
    path = find(arguments.name)
    if path is not None:
        print(path)
        return 0
    has_file = CATALOGUE[arguments.name].file is not None
    hint = f"is not here: mgvbp data fetch {arguments.name}" if has_file else "has no file"
    print(f"mgvbp: {arguments.name} {hint}", file=sys.stderr)
    return 1


def _volatility(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from mgvbp.volatility import default_returns, read_returns, risk_table, write_report

    model = _volatility_model(arguments)
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
        warnings.showwarning = _show_warning
        result = model.fit(returns, rng=arguments.seed, progress=console.is_terminal)
    print(result.summary())
    horizon, alphas, seed = arguments.horizon, arguments.alpha, arguments.seed
    if arguments.out is not None:
        files = write_report(result, arguments.out, horizon, alphas, seed, console.is_terminal)
        print(f"\nwritten to {arguments.out}: {', '.join(path.name for path in files)}")
        return 0
    _print_table("forecast", result.forecast(horizon, rng=seed).to_frame().reset_index())
    _print_table("risk: losses over so many days", risk_table(result, horizon, alphas, seed))
    return 0


def _volatility_model(arguments: argparse.Namespace) -> Any:
    from mgvbp import volatility

    letters = ORDERS[arguments.model]
    order = arguments.order or (1,) * len(letters.split(","))
    if len(order) != len(letters.split(",")):
        raise InvalidInputError(f"--order of {arguments.model} is {letters}; got {','.join(map(str, order))}")
    lags = int(arguments.mean == "ar") if arguments.lags is None else arguments.lags
    return getattr(volatility, arguments.model.upper())(
        *order, mean=arguments.mean, lags=lags, dist=arguments.dist, convention=arguments.convention
    )


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """As errors are shown, without the line of code that it came from."""
    print(f"mgvbp: {message}", file=sys.stderr)


def _print_table(title: str, frame: Any) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    columns = [Column(name.replace("_", " "), justify="right") for name in frame]
    table = Table(*columns, title=title, title_justify="left", box=None)
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{value:.4g}" for value in row))
    console = Console()
    console.print()
    console.print(table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mgvbp", description="Gaussian posterior approximations from log-likelihood evaluations alone."
    )
    parser.add_argument("--version", action="version", version=f"mgvbp {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    reproduce = commands.add_parser(
        "reproduce",
        help="run experiments of the paper and show our numbers beside its and the exact optimum's",
    )
    reproduce.add_argument("names", nargs="+", metavar="NAME", help="an experiment, several, all, or list")
    reproduce.add_argument("--quick", action="store_true", help="a part that takes seconds")
    reproduce.add_argument("--seed", type=_seed, default=0)
    reproduce.add_argument("--jobs", type=_jobs, default=1, help="processes (default 1; -1: one a core)")
    reproduce.add_argument(
        "--out",
        type=Path,
        default=Path("mgvbp-reproduce"),
        metavar="DIR",
        help="for the report and for finished runs, which are not run again (default: %(default)s)",
    )
    reproduce.set_defaults(run=_reproduce)
    data = commands.add_parser(
        "data", help="the data sets of the paper: what there is, and getting the files"
    )
    actions = data.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="all data sets, and where each is found")
    listing.set_defaults(run=_data_list)
    fetch = actions.add_parser("fetch", help="download the files that are not here")
    fetch.add_argument("names", nargs="*", type=_data_set, metavar="NAME", help="default: all with a file")
    fetch.set_defaults(run=_data_fetch)
    path = actions.add_parser("path", help="print where a file is")
    path.add_argument("name", nargs="?", type=_data_set, metavar="NAME", help="default: print the cache")
    path.set_defaults(run=_data_path)
    _add_volatility(commands)
    return parser


def _add_volatility(commands: Any) -> None:
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
    model.add_argument("--order", type=_order, metavar="N,N", help=f"default: ones; {orders}")
    model.add_argument("--mean", choices=["zero", "constant", "ar"], help="default: that of the convention")
    model.add_argument("--lags", type=_count, metavar="K", help="of --mean ar (default: 1)")
    model.add_argument("--dist", choices=["normal", "t"], default="t", help="of the errors (default: t)")
    model.add_argument(
        "--convention",
        choices=["arch", "paper"],
        default="arch",
        help="start-up values and prior: those of the package arch, or of the paper (default: arch)",
    )
    output = command.add_argument_group("output")
    output.add_argument(
        "--horizon", type=_count, default=10, metavar="DAYS", help="of forecast and risk (default: 10)"
    )
    output.add_argument(
        "--alpha",
        type=_probabilities,
        default=(0.01, 0.05),
        metavar="P,P",
        help="probabilities of losses beyond the value at risk (default: 0.01,0.05)",
    )
    output.add_argument("--seed", type=_seed, default=0, help="default: 0")
    output.add_argument("--out", type=Path, metavar="DIR", help="write summary, tables and figures there")
    command.set_defaults(run=_volatility)


def _order(text: str) -> tuple[int, ...]:
    if not all(part.isdecimal() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not integers with commas between, such as 1,1")
    return tuple(map(int, text.split(",")))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def _probabilities(text: str) -> tuple[float, ...]:
    try:
        levels = tuple(map(float, text.split(",")))
    except ValueError:
        levels = ()
    if not levels or not all(0.0 < level < 0.5 for level in levels):
        raise argparse.ArgumentTypeError(f"{text!r} is not numbers between 0 and 0.5 with commas between")
    return levels


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)


def _jobs(text: str) -> int:
    if text != "-1" and not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of processes nor -1")
    return int(text)


def _data_set(text: str) -> str:
    from mgvbp.datasets import CATALOGUE

    if text not in CATALOGUE:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(CATALOGUE)}")
    return text
