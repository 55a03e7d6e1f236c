"""Time of `mgvbp.resume` for the last iteration of a long run, beside that of a short one and of reading the file.

Run:  python benchmarks/resume.py [--threads 1]

The runs have about 200 and 20,000 evaluations and end, by a limit, one iteration after they were broken off. So what
`resume` takes is to read the state, to ask for two draws again, to make one iteration and to write the state.
Nothing that was done before is done again. The ratio of the long run to the short one is that of the files, or smaller.
For ``auto`` the file has all draws, as its surfaces are fitted to them: there the last iteration itself takes longer.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mgvbp
from timing import LogLikelihood

DIM = 5
DRAWS = 20
LENGTHS = (200, 20_000)
REPEATS = 7


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    print(f"d = {DIM}; BLAS threads: {arguments.threads}; seconds are the smallest of {REPEATS}")
    print(
        f"{'run':<8}{'evaluations':>12}{'iterations':>12}{'file':>10}{'fit':>10}{'resume':>11}{'np.load':>11}"
    )
    with (
        threadpool_limits(arguments.threads),
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", mgvbp.ConvergenceWarning)
        for name in ("mgvbp", "auto"):
            seconds = [row(name, length, Path(folder, f"{name}-{length}.npz")) for length in LENGTHS]
            print(f"{name:<8}resume takes {seconds[1] / seconds[0]:.1f} times as long for the long run")


def row(name: str, length: int, path: Path) -> float:
    """Print a row of the table for a run of about ``length`` evaluations; return the seconds of `resume`."""
    model, options = case(name, length)
    start = time.perf_counter()
    trace = mgvbp.fit(model, dim=DIM, **options).trace
    whole = time.perf_counter() - start
    last = len(trace) - 1
    mgvbp.fit(model, dim=DIM, **options, checkpoint=path, callback=lambda it: it.iteration == last)
    image = path.read_bytes()

    def resumed() -> None:
        assert len(mgvbp.resume(path, model).trace) == len(trace)

    def read() -> None:
        with np.load(path) as archive:
            dict(archive)  # reads all of it

    seconds = smallest(resumed, path, image), smallest(read, path, image)
    print(
        f"{name:<8}{trace.n_evaluations[-1]:>12,}{len(trace):>12,}{len(image) / 2**10:>6,.0f} KiB"
        f"{whole:>8.2f} s{1e3 * seconds[0]:>8.1f} ms{1e3 * seconds[1]:>8.1f} ms"
    )
    return seconds[0]


def case(name: str, length: int) -> tuple[LogLikelihood, dict[str, Any]]:
    """The model and the arguments of `fit` for a run of about ``length`` evaluations that does not end before."""
    if name == "auto":
        return rugged, {"max_evaluations": length, "tol": 1e-6}
    method = mgvbp.MGVBP(step_size=1e-3, patience=length, max_iterations=length // DRAWS)
    return smooth, {"method": method, "num_draws": DRAWS, "estimator": "h"}


def smooth(theta: np.ndarray) -> np.ndarray:
    """A log density that is not Gaussian."""
    return np.asarray(-np.cosh(theta).sum(axis=1))


def rugged(theta: np.ndarray) -> np.ndarray:
    """A log density with ripples, which noise alone keeps ``auto`` from certifying."""
    return np.asarray(-0.5 * (theta**2).sum(axis=1) + 0.3 * np.sin(40.0 * theta).sum(axis=1))


def smallest(function: Any, path: Path, image: bytes) -> float:
    """The least seconds of some calls, each of which finds the file as it was."""
    found = []
    for _ in range(REPEATS):
        path.write_bytes(image)
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


if __name__ == "__main__":
    main()
