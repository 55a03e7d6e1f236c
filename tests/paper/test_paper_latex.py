"""The reference files against the paper's LaTeX: no printed number is missing or mistyped."""

import json
import os
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

SOURCE = Path(os.environ.get("MGVBP_DATA", "")) / ".." / ".." / "paper" / "mgvbp.tex"
SETTINGS = "hyperparameters"
"""Its numbers are settings of the experiments, in the code that runs them."""
pytestmark = pytest.mark.skipif(
    not SOURCE.is_file(), reason="the paper's LaTeX does not lie beside MGVBP_DATA"
)


def printed():
    """The decimal numbers in the cells of each table, without their signs, which a dash may stand for."""
    tex = re.sub(r"(?<!\\)%.*", "", SOURCE.read_text(encoding="utf-8"))
    for table in re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", tex, re.DOTALL):
        label = re.search(r"\\label\{tab:(\w+)\}", table)[1]
        cells = "".join(re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", table, re.DOTALL))
        cells = re.sub(r"\\\w+(\([^)]*\)|\[[^]]*\]|\{[^{}]*\})+", "", cells)  # rules, spans and their widths
        yield label, Counter(float(x) for x in re.findall(r"(?<![\w.])\d+\.\d+", cells))


def known():
    """The numbers of the reference files, without their signs."""

    def numbers(value):
        if isinstance(value, dict | list):
            for part in value.values() if isinstance(value, dict) else value:
                yield from numbers(part)
        elif isinstance(value, int | float):
            yield abs(float(value))

    folder = files("mgvbp.paper") / "reference"
    return Counter(
        x
        for file in folder.iterdir()
        if file.name.endswith(".json")
        for x in numbers(json.loads(file.read_text()))
    )


def test_every_printed_number_is_in_the_reference_files():
    tables = dict(printed())
    assert len(tables) == 19
    numbers = sum((found for label, found in tables.items() if label != SETTINGS), Counter())
    assert numbers.total() > 2000
    # rows of the starting values are called by their variances: 0.1 is a name there
    assert set(numbers - known()) <= {0.1}
