"""The time of `BayesianLogisticRegression` on scikit-learn's own data, beside that of its `LogisticRegression`.

Run:  OPENBLAS_NUM_THREADS=1 python benchmarks/sklearn_speed.py [--repeats 3] [--digits]

CPU seconds of the quickest of some fits: of scikit-learn on the data as they are, with as many iterations as it needs,
and on standardised features (ours are standardised inside). Target: at most 5 times those on the data as they are.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

from mgvbp.errors import ConvergenceWarning
from mgvbp.sklearn import BayesianLogisticRegression

MOST_ITERATIONS = 100_000
"""Enough for scikit-learn's solver on raw features."""


def seconds(make: Callable[[], Any], X: Any, y: Any, repeats: int) -> float:
    """CPU time of the quickest of some fits."""
    times = []
    for _ in range(repeats):
        before = time.process_time()
        make().fit(X, y)
        times.append(time.process_time() - before)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--digits", action="store_true", help="also the digits, 585 coefficients")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    sets = {"breast cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}
    if arguments.digits:
        sets["digits"] = load_digits
    print(f"{'data':<15}{'as they are':>13}{'standardised':>14}{'ours':>8}{'ratio':>8}{'ratio std':>11}")
    for name, load in sets.items():
        X, y = load(return_X_y=True)
        raw = seconds(lambda: LogisticRegression(max_iter=MOST_ITERATIONS), X, y, arguments.repeats)
        scaled = seconds(
            lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=MOST_ITERATIONS)),
            X,
            y,
            arguments.repeats,
        )
        ours = seconds(BayesianLogisticRegression, X, y, 1 if name == "digits" else arguments.repeats)
        print(f"{name:<15}{raw:>13.3f}{scaled:>14.3f}{ours:>8.3f}{ours / raw:>8.2f}{ours / scaled:>11.1f}")


if __name__ == "__main__":
    main()
