"""`mgvbp reproduce`: run experiments, print their tables, write the report."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mgvbp import DataUnavailableError, MissingDependencyError, datasets
from mgvbp.paper.engine import Store, run
from mgvbp.paper.report import Section, print_tables, write_report
from mgvbp.paper.spec import Experiment, Outcome

EXPERIMENTS = {
    "slr": "Simple linear regression: the path to the posterior",
    "labour": "Logistic regression on the Labour data",
    "volatility": "ARCH, GARCH, GJR, EGARCH and FIGARCH on the S&P 500",
    "har": "Realised volatility: the regression table and HAR",
    "istanbul": "Linear regression on the Istanbul stock exchange: four covariance structures",
    "nondiff": "The non-differentiable model",
    "lob": "A neural network on limit-order books",
    "settings": "Data sets and hyper-parameters",
    "starts": "Starting values",
    "runtime": "Running times",
}
"""Titles by name, in the order of the paper. Each experiment is the ``EXPERIMENT`` of the module of its name."""
ON_FILES = "lob"
"""The experiment that takes files of data in place of its simulated ones."""
REPLICATED = "starts"
"""The experiment that takes a number of runs."""
NEEDED = ("emcee", "matplotlib")
"""Packages without which a run would break off late. They come with the extra ``experiments``."""


def load(name: str, data: Path | None = None, runs: int | None = None) -> Experiment:
    """The experiment with this name.

    If ``data`` is given, `ON_FILES` runs on the files in this directory. If ``runs`` is given, `REPLICATED` has this
    many runs in a row.
    """
    module = import_module(f"mgvbp.paper.{name}")
    found: Experiment = module.EXPERIMENT
    if data and name == ON_FILES:
        found = module.on_files(data)
    if runs and name == REPLICATED:
        found = module.with_runs(runs)
    return found


def reproduce(
    names: list[str],
    *,
    quick: bool,
    seed: int,
    jobs: int,
    directory: Path,
    command: str,
    data: Path | None = None,
    runs: int | None = None,
    finished_only: bool = False,
) -> int:
    """Run experiments one after the other; returns 0, or 1 if an experiment had to be left out.

    The report is written to ``directory``, where finished cells are kept, so that an interrupted run can go on.
    ``command`` is the command line, for the report; ``data`` is the directory with the files of `ON_FILES`, and
    ``runs`` is the number of runs in a row of `REPLICATED`. With ``finished_only`` nothing is run: the report is of the
    cells that are there.
    """
    if absent := [package for package in NEEDED if find_spec(package) is None]:
        raise MissingDependencyError(
            f"the experiments need the package{'s' * (len(absent) > 1)} {', '.join(absent)}: "
            "pip install 'mgvbp[experiments]'"
        )
    console, code = Console(), 0
    for name, experiment in {name: load(name, data, runs) for name in names}.items():
        title = EXPERIMENTS[name]
        try:
            for needed in experiment.data:
                datasets.load(needed)
            console.rule(title)
            outcomes = finished(experiment, directory, quick, seed, jobs, finished_only)
        except (DataUnavailableError, MissingDependencyError) as error:
            console.print(f"\n[bold]{title}[/bold]: left out. {escape(str(error))}")
            code = 1
            continue
        if finished_only and not outcomes:
            continue
        tables = experiment.tables(outcomes)
        print_tables(console, tables)
        store = Store(directory, experiment.name, seed, quick)
        figures = experiment.figures(outcomes)
        total = len(experiment.cells(quick))
        section = Section(name, title, tables, figures, list(store.records(outcomes)), total)
        page = write_report(directory, section, command, EXPERIMENTS)
        console.print(f"\nreport: {page}")
    return code


def finished(
    experiment: Experiment, directory: Path, quick: bool, seed: int, jobs: int, only: bool = False
) -> dict[str, Outcome]:
    """Run all cells and return their outcomes; a terminal shows a progress bar.

    With ``only`` nothing is run: the outcomes are those of the cells that have finished before.
    """
    columns = TextColumn(experiment.name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    screen = Console(stderr=True)
    outcomes: dict[str, Outcome] = {}
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task(experiment.name, total=None)
        for done, total, found in run(experiment, directory, quick=quick, seed=seed, jobs=jobs):
            progress.update(task, completed=done, total=total)
            outcomes = found
            if only:
                break
    return outcomes
