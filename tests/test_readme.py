"""What the README and the landing page name is there after ``import mgvbp`` alone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mgvbp

ROOT = Path(__file__).parents[1]
PAGES = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/index.md"))
RESOLVE = """
import functools, sys, mgvbp
for name in sys.argv[1:]:
    try:
        functools.reduce(getattr, name.split(".")[1:], mgvbp)
    except mgvbp.MissingDependencyError:
        pass
    except AttributeError as error:
        print(name, error)
"""


def test_every_dotted_name_resolves():
    """In a process of its own: a test that imports a subpackage would hide that ``import mgvbp`` does not."""
    names = set(re.findall(r"\bmgvbp(?:\.[A-Za-z_]\w*)+", PAGES))
    assert {"mgvbp.fit", "mgvbp.networks.dense", "mgvbp.volatility.GJR"} <= names
    command = [sys.executable, "-c", RESOLVE, *sorted(names)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


def test_other_names_are_errors():
    with pytest.raises(AttributeError, match="module 'mgvbp' has no attribute 'nets'"):
        mgvbp.nets
    assert mgvbp.baselines.Chains.__name__ == "Chains"
