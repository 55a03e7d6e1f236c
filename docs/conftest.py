"""The pages of the guide are doctests: each runs in a folder of its own, where it may write."""

import pytest

collect_ignore_glob = ["*.py", "_*"]  # of this folder only the pages are tests


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
