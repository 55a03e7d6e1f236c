"""The strength of the tests: what share of small changes to the code (mutants, made by cosmic-ray) they catch.

Run:  pip install cosmic-ray coverage && python benchmarks/mutants.py [--sample 150] [--seed 0] [--log mutants.jsonl]

The tests run once without a change, and coverage notes which lines each of them reaches and how long it takes. A fixed
random sample of the mutants of families, methods, estimators, surfaces, auto, posterior and problem is then tried, each
in a copy of the tree, with the tests that reach the changed line: those of its package first, then the others, the
quick ones before the slow ones, until one fails or `BUDGET` is spent. A mutant is caught if a test fails, or takes much
longer than it should. Those that survive are listed, to be looked at: some change nothing that could be seen, the
others are gaps. With ``--log`` what was done is kept: a run that was stopped (Control-C shows what is known) goes
on from there, and so does one after the tests have changed, as far as those that were measured are still there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("families", "methods", "estimators", "surfaces", "auto", "posterior", "problem")
"""The packages whose mutants are tried."""
TESTS = [f"{folder}/{package}" for package in PACKAGES for folder in ("src/mgvbp", "tests")]
"""The tests that may catch them: doctests and those that mirror the packages. Those of higher layers reach the same
lines, but are slower; without them the share that is caught comes out a little too low."""
ELSEWHERE = "--ignore=tests/problem/test_dask.py"
"""Left out, since what they test runs in other processes, where coverage does not see it."""
TRIVIAL = ("BitOr", "BitAnd", "BitXor", "Shift", "Decorator")
"""Operators that are left out: floats have no bits, so that any test catches these, and unions are annotations."""
BUDGET = 12.0
"""Seconds of tests, as measured without a change and under coverage, that a mutant has to survive."""
HEAVY = ("numpy", "scipy.optimize", "scipy.stats", "hypothesis", "mpmath", "joblib", "arviz_stats", "pandas")
"""What takes long to import. It is imported once, and not once a mutant."""
SLACK = 60.0
"""Seconds that these tests may take beyond five times as long as without a change: a machine may be busy."""


class Mutant(NamedTuple):
    """A change: the file, cosmic-ray's operator, which of the places where it applies, and the lines there."""

    path: str
    operator: str
    occurrence: int
    first: int
    last: int


class Coverage(NamedTuple):
    """The seconds of each test, and the tests that reach each line, by file."""

    seconds: dict[str, float]
    reached: dict[str, dict[str, list[str]]]

    def among(self, names: set[str]) -> Coverage:
        """The same of some tests only."""
        seconds = {test: time for test, time in self.seconds.items() if test in names}
        reached = {
            file: {line: [test for test in tests if test in names] for line, tests in lines.items()}
            for file, lines in self.reached.items()
        }
        return Coverage(seconds, reached)

    def tests(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """The tests to try: those of the package, doctests among them, and the others, each the quick ones first.

        Lines that are run at import are reached by all tests of the file, and those that numba compiles, which
        coverage does not see, may be reached by any test of the package.
        """
        lines = self.reached.get(mutant.path, {})
        own = {test for line in range(mutant.first, mutant.last + 1) for test in lines.get(str(line), [])}
        package = mutant.path.split("/")[2]
        near = (f"src/mgvbp/{package}/", f"tests/{package}/")
        chosen = own or {test for tests in lines.values() for test in tests}
        chosen = chosen or {test for test in self.seconds if test.startswith(near)}
        spent, kept = 0.0, list[str]()
        for test in sorted(chosen, key=lambda test: (not test.startswith(near), self.seconds[test], test)):
            spent += self.seconds[test]
            if kept and spent > BUDGET:
                break
            kept.append(test)
        return [t for t in kept if t.startswith(near)], [t for t in kept if not t.startswith(near)]


def all_mutants() -> list[Mutant]:
    """Every mutant of the packages, in a fixed order."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names

    kinds = {n: get_operator(n) for n in operator_names() if not any(word in n for word in TRIVIAL)}
    operators = {name: kind() for name, kind in kinds.items() if not kind.arguments()}
    found = []
    for path in (path for package in PACKAGES for path in (ROOT / "src/mgvbp" / package).rglob("*.py")):
        nodes = list(ast_nodes(get_ast_from_path(path)))
        for name, operator in operators.items():
            places = [place for node in nodes for place in operator.mutation_positions(node)]
            for occurrence, (start, end) in enumerate(places):
                found.append(Mutant(str(path.relative_to(ROOT)), name, occurrence, start[0], end[0]))
    return sorted(found)


def run_tests(tree: Path, tests: list[str], *options: str, limit: float | None = None) -> int | None:
    """The exit code of pytest on these tests of a tree; None if they run out of time.

    The process is a fork of this one, which has imported what takes long to import, but nothing of the tree.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(tests))
        file.flush()
        words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options, f"@{file.name}"]
        # hypothesis was imported before pytest began
        words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        process = get_context("fork").Process(target=in_tree, args=(tree, words))
        process.start()
        process.join(limit)
        if process.exitcode is None:
            process.kill()
            process.join()
            return None
        return process.exitcode


def in_tree(tree: Path, words: list[str]) -> None:
    """Run pytest in a tree, without output, and exit with its code."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")  # for the processes that tests start
    sys.path.insert(0, str(tree / "src"))
    sys.exit(int(pytest.main(words, plugins=[sys.modules[__name__]])))


def covered(tree: Path) -> Coverage:
    """Run all tests once, with this file as a plugin that notes what each of them reaches."""
    note = tree / "coverage.json"
    run_tests(tree, TESTS, ELSEWHERE, f"--reached={note}")
    seconds, reached, failed = json.loads(note.read_text())
    for test in failed:
        print(f"{test} fails without any change, and is left out")
    return Coverage(seconds, reached)


def there(tree: Path) -> set[str]:
    """The names of all tests of a tree: one that is not there any more would look like a failure."""
    note = tree / "names.json"
    run_tests(tree, TESTS, ELSEWHERE, "--collect-only", f"--names={note}")
    return set(json.loads(note.read_text()))


def caught(tree: Path, coverage: Coverage, mutant: Mutant) -> tuple[bool | None, int]:
    """Whether a test fails with this change, None if it changes nothing; and the number of tests that were chosen."""
    from cosmic_ray.mutating import apply_mutation
    from cosmic_ray.plugins import get_operator

    file, groups = tree / mutant.path, [tests for tests in coverage.tests(mutant) if tests]
    kept = file.read_text(encoding="utf-8")
    try:
        sys.dont_write_bytecode = True  # a file that changes within a second looks unchanged to Python
        original, mutated = apply_mutation(file, get_operator(mutant.operator)(), mutant.occurrence)
        if original is None or original == mutated:
            return None, 0
        for tests in groups:
            limit = 5.0 * sum(coverage.seconds[test] for test in tests) + SLACK
            if run_tests(tree, tests, "-x", limit=limit) != 0:
                return True, sum(map(len, groups))
        return False, sum(map(len, groups))
    finally:
        file.write_text(kept, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="a file to go on from: what was done is written there")
    arguments = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for module in HEAVY:
        with suppress(ImportError):
            import_module(module)
    mutants = all_mutants()
    chosen = random.Random(arguments.seed).sample(mutants, min(arguments.sample, len(mutants)))
    log = arguments.log or Path(os.devnull)
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
    done = {tuple(line["mutant"]): line for line in lines if "mutant" in line}
    with tempfile.TemporaryDirectory() as folder, log.open("a") as notes:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "__pycache__"))
        known = next((Coverage(*line["coverage"]) for line in lines if "coverage" in line), None)
        coverage = known or covered(tree)
        if known is None:
            print(json.dumps({"coverage": coverage}), file=notes, flush=True)
        coverage = coverage.among(there(tree))
        with suppress(KeyboardInterrupt):
            for mutant in chosen:
                if mutant in done:
                    continue
                found, number = caught(tree, coverage, mutant)
                done[mutant] = {"mutant": mutant, "caught": found, "tests": number}
                print(json.dumps(done[mutant]), file=notes, flush=True)
    results = [done[mutant] for mutant in chosen if mutant in done]
    for line in results:
        if line["caught"] is False:
            mutant = Mutant(*line["mutant"])
            place = f"{mutant.path}:{mutant.first} {mutant.operator} ({mutant.occurrence})"
            print(f"{place} survives {line['tests']} tests")
    tried = [line for line in results if line["caught"] is not None]
    print(f"{sum(line['caught'] for line in tried)} of {len(tried)} caught, of {len(mutants):,} mutants")


# --- the plugin of pytest -----------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to write what each test reaches, and all their names; see `covered` and `there`."""
    parser.addoption("--reached")
    parser.addoption("--names")


class Reached:
    """Notes the seconds of each test and the lines that it reaches."""

    def __init__(self, path: Path, root: Path) -> None:
        from coverage import Coverage as Measured

        self.path, self.root, self.seconds, self.failed = path, root, dict[str, float](), set[str]()
        self.measured = Measured(data_file=None, source=[str(root / "src/mgvbp" / name) for name in PACKAGES])
        self.measured.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """One test."""
        self.measured.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - start
            self.measured.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails as it is shows nothing."""
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write all of it."""
        self.measured.stop()
        data, reached = self.measured.get_data(), {}
        for file in data.measured_files():
            lines = data.contexts_by_lineno(file)
            name = str(Path(file).resolve().relative_to(self.root))
            kept = {line: set(tests) - self.failed - {""} for line, tests in lines.items()}
            reached[name] = {line: sorted(tests) for line, tests in kept.items()}
        self.path.write_text(json.dumps([self.seconds, reached, sorted(self.failed)]))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the names of the tests, where there is a file to write to."""
    if path := session.config.getoption("--names"):
        Path(path).write_text(json.dumps([item.nodeid for item in session.items]))


def pytest_configure(config: pytest.Config) -> None:
    """Start to note, where there is a file to write to."""
    if path := config.getoption("--reached"):
        config.pluginmanager.register(Reached(Path(path), config.rootpath.resolve()))


if __name__ == "__main__":
    main()
