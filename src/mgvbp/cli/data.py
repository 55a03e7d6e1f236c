"""``mgvbp data``: list the data sets of the paper, download their files, and say where these are."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mgvbp import MgvbpError


def add(commands: Any) -> None:
    """Add the command and its actions to the parser."""
    command = commands.add_parser(
        "data", help="the data sets of the paper: what there is, and getting the files"
    )
    actions = command.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="all data sets, and where each is found")
    listing.set_defaults(run=show)
    fetch = actions.add_parser("fetch", help="download the files that are not here")
    fetch.add_argument("names", nargs="*", type=_data_set, metavar="NAME", help="default: all with a file")
    fetch.set_defaults(run=get)
    path = actions.add_parser("path", help="print where a file is")
    path.add_argument("name", nargs="?", type=_data_set, metavar="NAME", help="default: print the cache")
    path.set_defaults(run=locate)


def _data_set(text: str) -> str:
    from mgvbp.datasets import CATALOGUE

    if text not in CATALOGUE:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(CATALOGUE)}")
    return text


def show(_: argparse.Namespace) -> int:
    """List all data sets."""
    from rich.console import Console
    from rich.table import Column, Table

    from mgvbp.datasets import CATALOGUE, where

    rows, source = Column("rows", justify="right"), Column("source", overflow="fold")
    table = Table("name", rows, source, "found", "terms", box=None)
    for name, entry in CATALOGUE.items():
        table.add_row(name, f"{entry.rows:,}", entry.source, where(name), entry.terms)
    Console().print(table)
    return 0


def get(arguments: argparse.Namespace) -> int:
    """Download files; one that cannot be had does not keep the others from being downloaded."""
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

    pooch.get_logger().setLevel("WARNING")  # the bar shows what it would say
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)
        return fetch(name, lambda done, total: progress.update(task, completed=done, total=total or None))


def locate(arguments: argparse.Namespace) -> int:
    """Print where a file is, or where the cache is."""
    from mgvbp.datasets import CATALOGUE, cache_directory, find

    path = cache_directory() if arguments.name is None else find(arguments.name)
    if path is not None:
        print(path)
        return 0
    has_file = CATALOGUE[arguments.name].file is not None
    hint = f"is not here: mgvbp data fetch {arguments.name}" if has_file else "has no file"
    print(f"mgvbp: {arguments.name} {hint}", file=sys.stderr)
    return 1
