"""Store the best Gaussian of every target that has one.

    cd tests && python -m adversary.make_reference [name ...] [--force]

Each target is one line of ``reference.json``: the best lower bound, and the Gaussian's mean and the lower triangle of
its covariance's factor. Those present are skipped.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from adversary import TARGETS
from adversary.base import PATH, references


def main() -> None:
    parser = argparse.ArgumentParser(description="Best lower bounds of the adversaries")
    parser.add_argument("names", nargs="*", help="targets; all by default")
    parser.add_argument("--force", action="store_true", help="redo those already known")
    arguments = parser.parse_args()
    entries = dict(references())
    for name in arguments.names or TARGETS:
        target = TARGETS[name]
        if not target.proper or (name in entries and not arguments.force):
            continue
        start = time.perf_counter()
        bound, mean, scale = target.find_best()
        entries[name] = {
            "bound": float(f"{bound:.10g}"),
            "mean": [float(f"{x:.8g}") for x in mean],
            "scale": [float(f"{x:.8g}") for x in scale[np.tril_indices(target.dim)]],
        }
        lines = [f"{json.dumps(n)}: {json.dumps(entries[n])}" for n in TARGETS if n in entries]
        PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(f"{name:32s} d={target.dim:2d} {bound:14.6f} {time.perf_counter() - start:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
