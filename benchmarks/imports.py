"""What ``import mgvbp`` costs: CPU time relative to that of ``import scipy.linalg, scipy.special``, which it needs.

Run:  python benchmarks/imports.py [--repeats 7]

The best of several fresh processes each, the interpreter's own start subtracted. Target: a ratio of at most 1.5.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys


def seconds(code: str, repeats: int) -> float:
    """User and system time of the quickest of some processes that run ``code``."""
    times = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    nothing = seconds("pass", repeats)
    scipy = seconds("import scipy.linalg, scipy.special", repeats) - nothing
    ours = seconds("import mgvbp", repeats) - nothing
    print(
        f"import scipy.linalg, scipy.special {scipy:.3f} s, import mgvbp {ours:.3f} s: ratio {ours / scipy:.2f}"
    )


if __name__ == "__main__":
    main()
