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
"""Its numbers are integers too, and are compared row by row."""
pytestmark = pytest.mark.skipif(
    not SOURCE.is_file(), reason="the paper's LaTeX does not lie beside MGVBP_DATA"
)


def tables():
    """The LaTeX of each table by its label, without comments."""
    tex = re.sub(r"(?<!\\)%.*", "", SOURCE.read_text(encoding="utf-8"))
    for table in re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", tex, re.DOTALL):
        yield re.search(r"\\label\{tab:(\w+)\}", table)[1], table


def printed():
    """The decimal numbers in the cells of each table, without their signs, which a dash may stand for."""
    for label, table in tables():
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
    found_tables = dict(printed())
    assert len(found_tables) == 19
    numbers = sum((found for label, found in found_tables.items() if label != SETTINGS), Counter())
    assert numbers.total() > 2000
    # rows of the starting values are called by their variances: 0.1 is a name there
    assert set(numbers - known()) <= {0.1}


def lines(tabular):
    """The rows of a tabular with numbers: name, and the text of the other cells."""
    for line in tabular.split(r"\\"):
        name, *cells = (cell.strip() for cell in line.replace(r"\midrule", "").split("&"))
        if cells and "multicolumn" not in line:
            yield name, cells


def number(cell):
    """The number that a cell begins with, or None."""
    found = re.match(r"[\d.]+", cell)
    return float(found[0]) if found else None


def test_every_setting_is_in_the_reference_file():
    """Both panels of tab:hyperparameters, row by row and column by column."""
    known = json.loads((files("mgvbp.paper") / "reference" / "settings.json").read_text(encoding="utf-8"))
    data, settings = re.findall(
        r"\\begin\{tabular\}\{[^}]*\}(.*?)\\end\{tabular\}", dict(tables())[SETTINGS], re.DOTALL
    )
    rows = list(lines(settings.replace("S\\&P", "S and P")))
    assert [name for name, _ in rows] == list(known["paper"]["hyperparameters"])
    for name, cells in rows:
        ours = list(known["paper"]["hyperparameters"][name].values())
        cells = cells[:9] + cells[10:]  # without the start, which is no number
        assert [number(cell) for cell in cells] == ours, name
    rows = list(lines(data.replace(r"S\&P", "S and P")))
    assert len(rows) == len(known["paper"]["datasets"])
    for (_, cells), (name, ours) in zip(rows, known["paper"]["datasets"].items(), strict=True):
        model, *sizes = cells
        assert name.endswith(model)
        columns = ("variational parameters", "samples", "train", "test")
        assert [number(cell) for cell in sizes[:4]] == [ours[c] for c in columns], name
        share = re.search(r"\((\d+)", sizes[2])
        assert (int(share[1]) if share else None) == ours.get("train %")
        assert (sizes[4] if len(sizes) > 4 else "") == known["period"].get(name, "")
