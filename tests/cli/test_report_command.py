"""``mgvbp report``: it writes the page, and says in one line what is wrong with a file."""

import sys

import numpy as np
import pytest

from common import as_posterior
from mgvbp import Gaussian, fit
from mgvbp.cli import main
from mgvbp.report import html_report


@pytest.fixture
def small():
    return as_posterior(Gaussian([1.0, 2.0], [0.5, 0.1]))


@pytest.fixture
def file(small, tmp_path):
    path = tmp_path / "fit.npz"
    small.save(path)
    return path


def run(capsys, *arguments):
    code = main(["report", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err.splitlines()


def test_the_command_writes_the_page(file, small, capsys):
    target = file.with_suffix(".html")
    assert run(capsys, file) == (0, [f"written to {target}"], [])
    assert target.read_text(encoding="utf-8") == html_report(small, file="fit.npz")
    assert "mgvbp.load(&#x27;fit.npz&#x27;)" in target.read_text(encoding="utf-8")


def test_options(file, capsys, tmp_path):
    code, _, _ = run(capsys, file, "-o", tmp_path / "other.html", "--draws", "7")
    assert code == 0
    assert "with 7 draws" in (tmp_path / "other.html").read_text(encoding="utf-8")
    assert not file.with_suffix(".html").exists()


def wrong_files(folder, posterior):
    (folder / "text.npz").write_text("hello")
    np.savez(folder / "arrays.npz", a=np.zeros(3))
    posterior.save(folder / "same.html")
    return {
        "text.npz": "is not a mgvbp file",
        "arrays.npz": "is not a mgvbp file",
        "missing.npz": "cannot be read: No such file or directory",
        ".": "cannot be read: Is a directory",
        "same.html": "is the posterior itself: choose another page with -o",
    }


def test_what_is_no_posterior(small, capsys, tmp_path):
    for name, message in wrong_files(tmp_path, small).items():
        code, out, err = run(capsys, tmp_path / name)
        assert (code, out, len(err)) == (2, [], 1)
        assert err[0].startswith(f"mgvbp: {tmp_path / name}")
        assert message in err[0]
    assert {path.name for path in tmp_path.iterdir()} == {"text.npz", "arrays.npz", "same.html"}


def power_cut(iteration):
    raise RuntimeError("power cut")


def test_a_checkpoint_is_called_one(capsys, tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(RuntimeError, match="power cut"):
        fit(lambda theta: -0.5 * theta[:, 0] ** 2, dim=1, checkpoint=path, every=1e-9, callback=power_cut)
    code, out, err = run(capsys, path)
    assert (code, out, len(err)) == (2, [], 1)
    assert f"{path} is not a posterior but the checkpoint of a run: mgvbp.resume(path, " in err[0]
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


def test_where_the_page_cannot_be_written(file, capsys, tmp_path):
    code, _, err = run(capsys, file, "-o", tmp_path)
    assert (code, err) == (1, [f"mgvbp: {tmp_path} cannot be written: Is a directory"])


def test_without_matplotlib(file, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run(capsys, file)
    assert code == 1
    assert err == ["mgvbp: this needs the package matplotlib: pip install 'mgvbp[plots]'"]
