"""The way of a draw from the loop to the user's function: few functions of ours, on both sides of a process."""

import os
import sys
import time
from pathlib import Path

import pytest
from joblib.externals.loky import ProcessPoolExecutor

import mgvbp
from common import FAST

SOURCE = str(Path(mgvbp.__file__).parent)
OPTIONS = {"dim": 2, "method": FAST, "num_draws": 20, "max_iterations": 2}


def way(frame):
    """The functions of mgvbp above a frame, from the loop down if the loop is among them; each is counted once."""
    found = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(SOURCE):
            if (Path(code.co_filename).name, code.co_name) == ("loop.py", "run"):
                break
            found.append(f"{Path(code.co_filename).stem}.{code.co_qualname}")
        frame = frame.f_back
    return list(dict.fromkeys(reversed(found)))


@pytest.mark.parametrize("vectorized", [True, False])
def test_a_plain_run(vectorized):
    ways = []

    def log_density(theta):
        ways.append(way(sys._getframe()))
        return -(theta**2).sum(axis=-1)

    mgvbp.fit(log_density, **OPTIONS, vectorized=vectorized)
    assert ways
    assert max(map(len, ways)) <= 4, ways


def test_with_workers_timeout_and_checkpoint(tmp_path, monkeypatch):
    """The way to a worker in this process, and the way to the function in that one."""
    home, log, ways = os.getpid(), tmp_path / "log", []
    submit = ProcessPoolExecutor.submit

    def handed_over(self, *task):
        ways.append(way(sys._getframe()))
        return submit(self, *task)

    def log_density(theta):
        time.sleep(0.01)
        if os.getpid() != home:
            with log.open("a") as file:
                file.write(" ".join(way(sys._getframe())) + "\n")
        return -0.5 * float(theta @ theta)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", handed_over)
    checkpoint = {"checkpoint": tmp_path / "run.npz", "every": 0.0}
    mgvbp.fit(log_density, **OPTIONS, vectorized=False, n_jobs=2, timeout=60.0, **checkpoint)
    there = [line.split() for line in log.read_text().splitlines()]
    assert ways
    assert there
    longest = {*max(ways, key=len), *max(there, key=len)}
    assert len(longest) <= 8, (ways[-1], there[-1])
    assert {"pool.Pool.__call__", "problem.Problem.evaluate_at"} < longest
