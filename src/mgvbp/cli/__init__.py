"""The command ``mgvbp``. Each of its commands is a module that adds itself to the parser by ``add(commands)``.

The package sees public names only, like any other user. Begin with `main` below.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from mgvbp import MgvbpError, __version__
from mgvbp.cli import data, report, reproduce, volatility


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = parser().parse_args(words)
    arguments.command = words
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except MgvbpError as error:
        print(f"mgvbp: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mgvbp: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output, as head does, has seen enough
        # Python flushes the output once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="mgvbp", description="Posterior approximations of any model, with a certificate."
    )
    top.add_argument("--version", action="version", version=f"mgvbp {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for command in (reproduce, data, volatility, report):
        command.add(commands)
    return top
