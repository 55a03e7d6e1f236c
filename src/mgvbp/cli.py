"""The command ``mgvbp``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mgvbp import MgvbpError, __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return _reproduce(arguments)
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
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)
