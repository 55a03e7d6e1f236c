"""mgvbp beside its peers: queries, time, memory, gap to the exact optimum and k-hat on thirteen posteriors.

Run:  python benchmarks/peers.py --out results [--quick] [--seeds 3] [--seconds 15]     # pip install -e '.[peers]'

Every (target, peer) is a process of its own with one thread, so that none is warm from another and its memory is
known, and a JSON file in the folder of --out; those that are there are not run again, so that a run which was broken
off goes on. Seconds are the processor's, so that neighbours count for little. Then the tables are printed, as Markdown,
and the figure is written to the same folder. All start from mean 0, work in float64 and see the same log density, prior
included; --seconds ends a run of theirs that has no end of its own (PyVBMC has ten times as much). Targets: ahead of
every peer in queries to a gap of 0.05, 20 times for d <= 10; ahead in time with compilation; and no peer with a lower
bound better by more than 0.02.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from threadpoolctl import threadpool_limits

from mgvbp.errors import MissingDependencyError
from peer import blackjax_vi, numpyro_svi, nuts, ours, pymc_advi, saa, score_matching, vbmc
from peer.figure import draw
from peer.judge import judged
from peer.problems import NAMES, Problem, load
from peer.record import Budget, Prepared
from peer.table import CHAINS, OURS, TRUTH, Record, results, standings, summarised

PEERS: dict[str, Callable[[Problem], Prepared]] = {
    OURS[0]: ours.values,
    OURS[1]: ours.gradients,
    "BlackJAX Pathfinder": blackjax_vi.pathfinder,
    "BlackJAX multi-path": blackjax_vi.multipath,
    "NumPyro SVI": numpyro_svi.usual,
    "NumPyro SVI, decay": numpyro_svi.decay,
    "NumPyro mean field": numpyro_svi.mean_field,
    "NumPyro low rank": numpyro_svi.low_rank,
    "BlackJAX full-rank VI": blackjax_vi.full_rank,
    "PyMC FullRankADVI": pymc_advi.full_rank,
    "SAA-Q": saa.run_saa,
    "GSM-VI": score_matching.gsm,
    "BaM": score_matching.bam,
    TRUTH: nuts.run_nuts,
    "nutpie": nuts.run_nutpie,
    "PyVBMC": vbmc.run_vbmc,
}
PACKAGES = (
    "mgvbp",
    "numpy",
    "scipy",
    "jax",
    "numpyro",
    "blackjax",
    "optax",
    "pymc",
    "pytensor",
    "pyvbmc",
    "gsmvi",
    "nutpie",
)
QUICK = ("labour", "banana_2")
PATIENCE = 10.0
"""PyVBMC spends its time on its own Gaussian process, not on evaluations: it gets so many times the seconds."""


def run(target: str, peer: str, seeds: int, budget: Budget) -> Record:
    """The record of a peer on a problem."""
    threadpool_limits(1)
    problem = load(target)
    record: Record = {
        "target": problem.name,
        "dim": problem.dim,
        "peer": peer,
        "optimum": problem.optimum,
        "log_evidence": problem.log_evidence,
    }
    if peer == "PyVBMC":
        budget = budget._replace(seconds=PATIENCE * budget.seconds)
    try:
        prepared = PEERS[peer](problem)
        paths = [prepared.run(seed, budget) for seed in range(1 if peer in CHAINS else seeds)]
    except (MissingDependencyError, ImportError, ValueError, RuntimeError) as error:
        return record | {"skipped": str(error).partition("\n")[0] or type(error).__name__}
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1024.0  # before the judge takes its own
    runs = [judged(problem, seed, path) for seed, path in enumerate(paths) if path]
    if not runs:
        return record | {"skipped": f"no result within {budget.seconds:g} s"}
    return record | {
        "compile_seconds": prepared.compile_seconds,
        "memory": memory,
        "runs": runs,
        "budget": budget._asdict(),
        "load": os.getloadavg()[0],
    }


def versions() -> str:
    """Of everything that took part."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return ", ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--targets", nargs="*", choices=NAMES)
    parser.add_argument("--peers", nargs="*", choices=list(PEERS))
    parser.add_argument("--show", action="store_true", help="only print what is stored")
    arguments = parser.parse_args()
    targets = arguments.targets or (QUICK if arguments.quick else NAMES)
    budget = Budget(0.1, min(5.0, arguments.seconds)) if arguments.quick else Budget(1.0, arguments.seconds)
    arguments.out.mkdir(parents=True, exist_ok=True)
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    records = []
    for target, peer in product(targets, arguments.peers or PEERS):
        path = arguments.out / f"{target}--{peer.replace(' ', '-').replace(',', '')}.json"
        if not path.exists():
            if arguments.show:
                continue
            start = time.perf_counter()
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                record = pool.submit(run, target, peer, arguments.seeds, budget).result()
            path.write_text(json.dumps(record))
            print(f"{target}, {peer}: {time.perf_counter() - start:.1f} s", flush=True)
        records.append(json.loads(path.read_text()))
    records.sort(key=lambda record: (NAMES.index(record["target"]), list(PEERS).index(record["peer"])))
    rows = summarised(records)
    loads = [record["load"] for record in records if "load" in record]
    print(
        f"\n{versions()}\n{platform.machine()}, {os.cpu_count()} cores, load {min(loads):.1f} to {max(loads):.1f}\n"
    )
    print(results(rows, records), end="\n\n")
    print(standings(rows))
    draw(records, arguments.out / "peers.png", versions())


if __name__ == "__main__":
    main()
