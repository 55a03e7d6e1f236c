"""Run the cells of an experiment. Each is stored as soon as it is done, so that the next run goes on from there."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy
from threadpoolctl import threadpool_limits

import mgvbp
from mgvbp.paper.spec import Experiment, Outcome


class Store:
    """A directory with one JSON file for each finished cell.

    Quick runs are kept apart, as their cells may have the same names with smaller settings.
    """

    def __init__(self, directory: Path, experiment: str, seed: int, quick: bool) -> None:
        self.directory = directory / "cells" / experiment
        self._suffix = f"seed{seed}{'-quick' if quick else ''}"

    def path(self, cell: str) -> Path:
        """The file of a cell, whether it exists or not."""
        slug = re.sub(r"[^A-Za-z0-9]+", "-", cell).strip("-")
        digest = hashlib.sha256(cell.encode()).hexdigest()[:6]  # two names may have the same slug
        return self.directory / f"{slug}-{digest}-{self._suffix}.json"

    def read(self, cell: str) -> Outcome | None:
        """The outcome of a finished cell; None if it is not there, is damaged or came from another version."""
        try:
            record = json.loads(self.path(cell).read_text(encoding="utf-8"))
            if record["versions"] == versions() and record["cell"] == cell:
                return Outcome(**record["outcome"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def records(self, cells: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The records of finished cells."""
        for cell in cells:
            yield json.loads(self.path(cell).read_text(encoding="utf-8"))


def versions() -> dict[str, str]:
    """The versions that a stored number depends on; of optional packages, those that are installed."""
    found = {"mgvbp": mgvbp.__version__, "numpy": np.__version__, "scipy": scipy.__version__}
    for package in ("jax", "jaxlib", "optax", "blackjax"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def run_cell(cell: str, of: Callable[[int], Outcome], seed: int, path: Path) -> str:
    """Run a cell with one thread, store its outcome and return its name. An interruption leaves no incomplete file."""
    start = time.process_time()  # other programs on the machine do not count
    with threadpool_limits(1):
        outcome = of(seed)
    record = {
        "cell": cell,
        "seed": seed,
        "seconds": time.process_time() - start,
        "versions": versions(),
        "outcome": asdict(outcome),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record), encoding="utf-8")
    partial.replace(path)
    return cell


def run(
    experiment: Experiment, directory: Path, *, quick: bool, seed: int, jobs: int
) -> Iterator[tuple[int, int, dict[str, Outcome]]]:
    """Run the cells that are not yet stored.

    Yields, at the start and after each cell, the number of finished cells, the number of all cells, and the outcomes.
    """
    cells = experiment.cells(quick)
    store = Store(directory, experiment.name, seed, quick)
    outcomes = {cell: found for cell in cells if (found := store.read(cell)) is not None}
    yield len(outcomes), len(cells), outcomes
    missing = {cell: of for cell, of in cells.items() if cell not in outcomes}
    tasks = (joblib.delayed(run_cell)(cell, of, seed, store.path(cell)) for cell, of in missing.items())
    for cell in joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(tasks):
        found = store.read(cell)
        assert found is not None
        outcomes[cell] = found
        yield len(outcomes), len(cells), outcomes
