"""Every error and warning names the section of docs/errors.md that says what to do about it."""

import ast
import pickle
import re
import traceback
import warnings
from pathlib import Path

import pytest

import mgvbp
from mgvbp import errors
from mgvbp.core.outcome import Outcome

ROOT = Path(__file__).parents[1]
SECTIONS = set(
    re.findall(r"^\((\S+)\)=$", (ROOT / "docs/errors.md").read_text(encoding="utf-8"), re.MULTILINE)
)
SUCCESS = {Outcome.CERTIFIED, Outcome.CONFIRMED, Outcome.NEAR}
NAMES = [*errors.__all__, *(outcome.name for outcome in Outcome if outcome not in SUCCESS)]


def anchor(name):
    return errors.section(name).partition("#")[2]


def warned():
    """The sections that calls of `warn_user` name in words; other calls pass the name of an `Outcome`, or none."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = getattr(node, "func", None)
            if isinstance(called, ast.Name) and called.id == "warn_user" and len(node.args) == 3:
                named = node.args[2]
                if isinstance(named, ast.Constant):
                    yield named.value
                else:
                    assert ast.unparse(named).endswith("outcome.name"), f"{path}: {ast.unparse(named)}"


def test_the_page_has_a_section_for_every_class_outcome_and_warning_and_no_other():
    assert {*map(anchor, NAMES), *warned()} == SECTIONS


def test_warnings_are_issued_in_one_way_only():
    """By `warn_user`, which adds the name of the section."""
    other = [
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if "warnings.warn(" in path.read_text(encoding="utf-8") and path.name != "errors.py"
    ]
    assert other == []


def test_an_error_has_its_section_below_the_message_once():
    with pytest.raises(errors.InvalidInputError) as caught:
        mgvbp.Gaussian(variance=-1.0, dim=2)
    assert str(caught.value).count("docs:") == 0
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        shown = traceback.format_exception_only(error)
        assert [line.strip() for line in shown if "docs:" in line] == [
            f"({errors.section(type(error).__name__)})"
        ]


def test_a_warning_ends_with_its_section():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mgvbp.fit(lambda theta: -(theta**4).sum(axis=1), dim=2, max_evaluations=20)
    assert [str(w.message).rpartition(" (")[2] for w in caught] == ["docs: errors#max-evaluations)"]
