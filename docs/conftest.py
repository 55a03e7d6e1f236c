"""The pages of the guide are doctests: each runs in a folder of its own, where it may write."""

import os

import pytest

collect_ignore_glob = ["*.py", "_*"]  # of this folder only the pages are tests
# for PyMC's own functions: PyTensor's C compiler takes a minute for each, its Python code a second
os.environ.setdefault("PYTENSOR_FLAGS", "cxx=,mode=FAST_COMPILE")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
