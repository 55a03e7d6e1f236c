"""``mgvbp report``: a saved posterior as one HTML page."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mgvbp import FileFormatError, MgvbpError, load
from mgvbp.cli.arguments import count_or_zero, file


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "report",
        help="write a saved posterior as an HTML page: convergence, numbers and pictures",
        description="Write what there is to say of a posterior that posterior.save(FILE) wrote to one HTML page, "
        "which needs nothing else.",
    )
    command.add_argument("file", type=file, metavar="FILE", help="what posterior.save(FILE) wrote")
    command.add_argument(
        "-o", "--out", type=file, metavar="PAGE", help="default: FILE with the ending .html, where FILE is"
    )
    command.add_argument(
        "--draws",
        type=count_or_zero,
        default=500,
        metavar="N",
        help="draws from the posterior to show among the pairs of parameters (default: 500; 0: none)",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read the posterior and write the page."""
    from mgvbp.report import write_report

    path, out = arguments.file, arguments.out or arguments.file.with_suffix(".html")
    try:
        posterior = load(path)
    except FileFormatError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{path} cannot be read: {error.strerror or error}")
    if out.resolve() == path.resolve():
        return _refuse(f"{out} is the posterior itself: choose another page with -o")
    print(f"written to {write_report(posterior, out, file=path.name, num_draws=arguments.draws)}")
    return 0


def _refuse(sentence: str) -> int:
    """Say what is wrong and return the exit code 2, which is that of any argument that cannot be used."""
    print(f"mgvbp: {MgvbpError(sentence)}", file=sys.stderr)
    return 2
