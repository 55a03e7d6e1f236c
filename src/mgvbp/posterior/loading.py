"""Read a posterior back from a file."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from mgvbp.core.checks import as_path
from mgvbp.core.distance import Distance
from mgvbp.core.outcome import Check
from mgvbp.core.storage import DAMAGE, read_archive
from mgvbp.errors import FileFormatError, printable
from mgvbp.families import BlockDiagonal, Family, GaussianMixture, LowRank, SparsePrecision, resolve_family
from mgvbp.families.patterns import sorted_edges
from mgvbp.posterior.posterior import MIXTURE, PATTERN, PLAIN, Posterior
from mgvbp.posterior.trace import TRACE_DTYPES, Trace
from mgvbp.problem.parameters import Parameters


def read_posterior(path: str | PathLike[str]) -> Posterior:
    """What `Posterior.save` wrote, without its model; anything else raises `FileFormatError`."""
    header, arrays = read_archive(as_path(path), "posterior")
    try:
        distance, spec = header["distance"], header["parameters"]
        mixture = [arrays[f"mixture_{name}"] for name in MIXTURE if f"mixture_{name}" in arrays]
        return Posterior(
            arrays["mean"],
            np.asfortranarray(arrays["factor"]),
            _family(header, arrays),
            trace=Trace(**{name: arrays[f"trace_{name}"] for name in TRACE_DTYPES}),
            checks=[Check(**{name: _shown(value) for name, value in c.items()}) for c in header["checks"]],
            mixture=GaussianMixture(*mixture) if mixture else None,
            distance=None if distance is None else Distance(**distance),
            parameters=None if spec is None else Parameters.from_spec(spec),
            **{name: _shown(header[name]) for name in PLAIN},
        )
    except DAMAGE as error:
        raise FileFormatError(f"{path} is not a valid posterior: {error}") from None


def _family(header: dict[str, Any], arrays: dict[str, Any]) -> Family:
    d, blocks = len(arrays["mean"]), header["blocks"]
    if header["family"] == "sparse":
        i, j, order = (arrays[f"pattern_{name}"] for name in PATTERN)
        return SparsePrecision.from_edges(d, sorted_edges(d, i, j), order.astype(np.intp))
    if header["family"] == "low-rank":
        return LowRank.of(d, arrays["factor"].shape[1] - 1)
    return resolve_family(BlockDiagonal(blocks) if blocks else header["family"], d)


def _shown(value: Any) -> Any:
    """``value`` from a header; texts have no characters that a terminal would obey."""
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return printable(value) if isinstance(value, str) else value
