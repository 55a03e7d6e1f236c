"""Which figures of the README and the docs are out of date: what has changed in the code since they were printed.

Run:  python docs/figures_check.py   (in a clone; reads docs/figures.toml and git's log)

A figure is out of date if a commit since has touched a package that it depends on; a new run of its command says
whether it has changed. Figures of `mgvbp reproduce` are kept with the tests (src/mgvbp/paper/reference).
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent


def ledger() -> dict[str, tuple[str, list[str]]]:
    """By script: when its figures were printed, and the packages that they depend on."""
    folders = tomllib.loads((DOCS / "figures.toml").read_text(encoding="utf-8"))
    return {
        f"{folder}/{name}.py": (entry["measured"], entry["of"])
        for folder, entries in folders.items()
        for name, entry in entries.items()
    }


def quoted() -> dict[str, list[str]]:
    """By script: the pages that name it."""
    found: dict[str, list[str]] = {}
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        scripts = re.findall(r"\b(?:benchmarks|docs)/\w+\.py", text)
        scripts += [f"docs/{name}" for name in re.findall(r"\]\((\w+\.py)\)", text)]
        for script in dict.fromkeys(scripts):
            if "_build" not in page.parts:
                found.setdefault(script, []).append(page.name)
    return found


def main() -> None:
    """Print a line for each script, the stalest first."""
    pages, rows = quoted(), []
    for script, (measured, packages) in ledger().items():
        paths = [f"src/mgvbp/{package}" for package in packages]
        command = ["git", "log", "--oneline", "--no-merges", f"--since={measured} +0000", "--", *paths]
        changes = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        rows.append((len(changes), script, measured, ", ".join(pages.get(script, []))))
    for changes, script, measured, where in sorted(rows, reverse=True):
        state = f"{changes} commits since" if changes else "up to date"
        print(f"{state:<18}{script:<32}{measured:<18}{where}")


if __name__ == "__main__":
    main()
