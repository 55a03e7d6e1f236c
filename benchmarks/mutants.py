"""The strength of the tests: what share of small changes to the code (mutants, made by cosmic-ray) they catch.

Run:  pip install cosmic-ray && python benchmarks/mutants.py [--sample 150] [--seed 0] [--jobs 2]

A fixed random sample of the mutants of families, methods, estimators, surfaces, auto, posterior and problem is tried,
each in a copy of the tree: first the tests that mirror the package, then those of the packages that use it. A mutant is
caught if a test fails, or takes ten times as long as it should. Those that survive are listed, to be looked at: some
change nothing that could be seen (an equivalent one), the others are gaps.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "families": ["families", "methods", "posterior", "auto"],
    "methods": ["methods", "run/test_loop.py", "models"],
    "estimators": ["estimators", "methods", "run/test_gradient.py"],
    "surfaces": ["surfaces", "auto", "posterior"],
    "auto": ["auto", "surfaces", "run"],
    "posterior": ["posterior", "problem", "report"],
    "problem": ["problem", "posterior", "run", "test_bad_input.py"],
}
"""The tests to try, in this order."""
TRIVIAL = ("BitOr", "BitAnd", "BitXor", "Shift", "Decorator")
"""Operators that are left out: floats have no bits, so that any test catches these, and unions are annotations."""
LIMIT = 600
"""Seconds for the tests of a package: ten times what they take, or so."""


class Mutant(NamedTuple):
    """A change: the file, cosmic-ray's operator and which of the places where it applies."""

    path: str
    operator: str
    occurrence: int
    line: int


def all_mutants() -> list[Mutant]:
    """Every mutant of the packages, in a fixed order."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import WorkDB, use_db

    found = []
    with (
        tempfile.TemporaryDirectory() as folder,
        use_db(f"{folder}/session.sqlite", WorkDB.Mode.create) as database,
    ):
        paths = [
            path for package in PACKAGES for path in sorted((ROOT / "src/mgvbp" / package).rglob("*.py"))
        ]
        init(paths, database, {})
        for item in database.work_items:
            (mutation,) = item.mutations
            path = str(Path(mutation.module_path).resolve().relative_to(ROOT))
            place = Mutant(path, mutation.operator_name, mutation.occurrence, mutation.start_pos[0])
            if not any(word in place.operator for word in TRIVIAL):
                found.append(place)
    return sorted(found)


def fails(tree: Path, package: str) -> bool:
    """Whether a test of the package, or of one that uses it, fails in a tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
    for tests in [f"src/mgvbp/{package}", *(f"tests/{name}" for name in PACKAGES[package])]:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            tests,
        ]
        try:
            run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return True
        if run.returncode not in (0, 5):  # 5: there was no test
            return True
    return False


def copied(folder: str) -> Path:
    """A copy of the tree."""
    tree = Path(folder, "tree")
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    return tree


def caught(mutant: Mutant) -> bool | None:
    """Whether a test fails with this change; None if it changes nothing."""
    from cosmic_ray.mutating import apply_mutation
    from cosmic_ray.plugins import get_operator

    with tempfile.TemporaryDirectory() as folder:
        tree = copied(folder)
        operator = get_operator(mutant.operator)()
        original, mutated = apply_mutation(tree / mutant.path, operator, mutant.occurrence)
        if original is None or original == mutated:
            return None
        return fails(tree, mutant.path.split("/")[2])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    mutants = all_mutants()
    chosen = random.Random(arguments.seed).sample(mutants, min(arguments.sample, len(mutants)))
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(folder)
        broken = [package for package in PACKAGES if fails(tree, package)]
    if broken:
        sys.exit(f"tests fail without any change: {', '.join(broken)}")
    results: Any = Parallel(arguments.jobs, return_as="generator")(delayed(caught)(m) for m in chosen)
    alive, tried = 0, 0
    for mutant, found in zip(chosen, results, strict=True):
        tried += found is not None
        if found is False:
            alive += 1
            print(f"{mutant.path}:{mutant.line} {mutant.operator} ({mutant.occurrence}) survives", flush=True)
    print(f"{tried - alive} of {tried} caught, of {len(mutants):,} mutants")


if __name__ == "__main__":
    main()
