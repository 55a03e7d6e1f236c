"""The command ``mgvbp``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mgvbp import MgvbpError, __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = _parser().parse_args(argv)
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
    from rich.console import Console

    from mgvbp.experiments import labour

    labour.reproduce(
        Console(), quick=arguments.quick, seed=arguments.seed, precision_scale=arguments.precision_scale
    )
    return 0


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mgvbp", description="Gaussian posterior approximations from log-likelihood evaluations alone."
    )
    parser.add_argument("--version", action="version", version=f"mgvbp {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    reproduce = commands.add_parser(
        "reproduce", help="run an experiment of the paper and print our numbers beside its"
    )
    reproduce.add_argument("experiment", choices=["labour"])
    reproduce.add_argument("--quick", action="store_true", help="only the first row of each method")
    reproduce.add_argument("--seed", type=_seed, default=0)
    reproduce.add_argument(
        "--precision-scale",
        type=float,
        choices=[1.0, 2.0],
        help="1: the paper's equations; 2: the authors' code; for all methods (default: each method's own)",
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
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)


def _data_set(text: str) -> str:
    from mgvbp.datasets import CATALOGUE

    if text not in CATALOGUE:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(CATALOGUE)}")
    return text
