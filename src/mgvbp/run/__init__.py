"""From a problem to a posterior: the loop, workers that evaluate draws, checkpoints, and `fit`, which combines them.

This package may import every package below it; the packages above see `fit`, `resume`, `load`, `compare_families`
and `nested` only.
Begin with `fitting` and `loop`; `posing` makes the problem, `resuming` goes on from the file of a run, and `loading`
reads what came of one. A draw goes from `loop` through `checkpoints`, if the run is recorded, and `evaluation`, which
may hand it to a worker, to `Problem.evaluate_at`, which calls the user's function.
"""

from mgvbp.run.checkpoints.checkpoint import read_checkpoint
from mgvbp.run.comparison import FamilyComparison, compare_families
from mgvbp.run.fitting import fit
from mgvbp.run.hubs import nested
from mgvbp.run.loading import load
from mgvbp.run.progress import progress_bar
from mgvbp.run.resuming import resume

__all__ = [
    "FamilyComparison",
    "compare_families",
    "fit",
    "load",
    "nested",
    "progress_bar",
    "read_checkpoint",
    "resume",
]
