"""``mgvbp reproduce``: the experiments of the paper."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mgvbp import InvalidInputError, MissingDependencyError
from mgvbp.cli.arguments import count, count_or_zero, processes


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "reproduce",
        help="run experiments of the paper and show our numbers beside its and the exact optimum's",
    )
    command.add_argument("names", nargs="+", metavar="NAME", help="an experiment, several, all, or list")
    command.add_argument("--quick", action="store_true", help="a small part: seconds, for lob about a minute")
    command.add_argument("--seed", type=count_or_zero, default=0)
    command.add_argument("--jobs", type=processes, default=1, help="processes (default 1; -1: one a core)")
    command.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="the text files of FI-2010, for lob alone (default: simulated order books)",
    )
    command.add_argument(
        "--runs",
        type=count,
        metavar="N",
        help="runs of MGVBP in a row, for starts alone, at most 200 (default 20, as in the authors' files; the paper "
        "says 200, which take ten times as long)",
    )
    command.add_argument(
        "--out",
        type=Path,
        default=Path("mgvbp-reproduce"),
        metavar="DIR",
        help="for the report and for finished runs, which are not run again (default: %(default)s)",
    )
    command.add_argument(
        "--finished", action="store_true", help="run nothing: make the report of the runs that have finished"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run experiments, or list them."""
    try:
        from mgvbp.paper import EXPERIMENTS, ON_FILES, REPLICATED, reproduce
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
    for option, experiment in (("data", ON_FILES), ("runs", REPLICATED)):
        if getattr(arguments, option) is not None and experiment not in names:
            raise InvalidInputError(
                f"--{option} is for the experiment {experiment}, which is not among {', '.join(names)}"
            )
    return reproduce(
        names,
        quick=arguments.quick,
        seed=arguments.seed,
        jobs=arguments.jobs,
        directory=arguments.out,
        command="mgvbp " + " ".join(arguments.command),
        data=arguments.data,
        runs=arguments.runs,
        finished_only=arguments.finished,
    )
