"""Read a posterior back from a file, checking every part of it."""

from __future__ import annotations

import math
from dataclasses import fields
from os import PathLike
from typing import Any

import numpy as np

from mgvbp.core.checks import as_path, positive_integer
from mgvbp.core.distance import Distance
from mgvbp.core.outcome import Check
from mgvbp.core.storage import DAMAGE, count, read_archive
from mgvbp.errors import FileFormatError
from mgvbp.families import BlockDiagonal, Family, GaussianMixture, SparsePrecision, resolve_family
from mgvbp.families.patterns import sorted_edges
from mgvbp.posterior.failures import Failures
from mgvbp.posterior.posterior import MIXTURE, PATTERN, Posterior
from mgvbp.posterior.trace import TRACE_DTYPES, Trace
from mgvbp.problem.parameters import Parameters

ARRAYS = (
    "mean",
    "factor",
    *(f"trace_{name}" for name in TRACE_DTYPES),
    *(f"mixture_{name}" for name in MIXTURE),
    *(f"pattern_{name}" for name in PATTERN),
)
FAILURES = {field.name for field in fields(Failures)} - {"first_error"}
MOST_COMPONENTS = 64
"""Most Gaussians of a mixture in a file."""
LARGEST_TRACE = 2**30
"""Most bytes of a trace, which has about a hundred per iteration."""


def load(path: str | PathLike[str]) -> Posterior:
    """Read a posterior that `Posterior.save` wrote.

    Raises
    ------
    FileFormatError
        The file is damaged, of another version, or not a posterior.

    Examples
    --------
    >>> import mgvbp, pathlib, tempfile
    >>> posterior = mgvbp.fit(lambda theta: -0.5 * theta[:, 0] ** 2, dim=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     posterior.save(pathlib.Path(folder, "posterior.npz"))
    ...     again = mgvbp.load(pathlib.Path(folder, "posterior.npz"))
    >>> bool(again.lower_bound == posterior.lower_bound)
    True
    """
    header, arrays = read_archive(as_path(path), "posterior", ARRAYS, _size)
    try:
        family = _sparse(arrays) if header["family"] == "sparse" else _family(header, len(arrays["mean"]))
        mean = _checked(arrays["mean"], "float64", (positive_integer(family.dim, "dim"),))
        factor = np.asfortranarray(_checked(arrays["factor"], "float64", family.shape))
        if not (family.diagonal(factor) > 0.0).all():
            raise FileFormatError("the factor of the precision has a diagonal that is not positive")
        if not family.is_lower_triangular(factor):
            raise FileFormatError("the factor of the precision is not lower triangular")
        length = (positive_integer(len(arrays["trace_lower_bound"]), "length of the trace"),)
        columns = {
            name: _checked(arrays[f"trace_{name}"], dtype, length, finite=name not in MAY_BE_INFINITE)
            for name, dtype in TRACE_DTYPES.items()
        }
        if not isinstance(header["converged"], bool):
            raise FileFormatError("the header does not say whether the run converged")
        return Posterior(
            mean,
            factor,
            family,
            lower_bound=_bound(header["lower_bound"]),
            # files of earlier versions do not have this error
            lower_bound_se=_error(header.get("lower_bound_se"), "error of the lower bound"),
            converged=header["converged"],
            stop_reason=_text(header["stop_reason"]),
            trace=Trace(**columns),
            method=_text(header["method"]),
            estimator=_text(header["estimator"]),
            gap=_error(header["gap"], "gap"),
            gap_se=_error(header["gap_se"], "gap's error"),
            other_optima=_other_optima(header.get("other_optima")),
            checks=[_check(check) for check in header.get("checks", [])],
            failures=_failures(header.get("failures", {})),
            mixture=_mixture(arrays, family.dim),
            distance=_distance(header.get("distance")),
            parameters=_parameters(header["parameters"], family.dim),
            labels=_labels(header["labels"], family.dim),
        )
    except DAMAGE as error:
        raise FileFormatError(f"{path} is not a valid posterior: {error}") from None


def _family(header: dict[str, Any], dim: int) -> Family:
    blocks = header["blocks"]
    return resolve_family(stored_blocks(blocks) if blocks else header["family"], dim)


def _sparse(arrays: dict[str, Any]) -> SparsePrecision:
    d, pairs = len(arrays["mean"]), len(arrays["pattern_rows"])
    lengths = {"rows": pairs, "columns": pairs, "order": d}
    i, j, order = (_checked(arrays[f"pattern_{name}"], "int64", (lengths[name],)) for name in PATTERN)
    if not (
        (j >= 0).all() and (i > j).all() and (i < d).all() and np.array_equal(np.sort(order), np.arange(d))
    ):
        raise FileFormatError("the pairs of its sparse precision are not those of the parameters")
    return SparsePrecision.from_edges(d, sorted_edges(d, i, j), order.astype(np.intp))


def stored_blocks(blocks: Any) -> BlockDiagonal:
    """The blocks that a header lists."""
    # BlockDiagonal takes numbers for sizes; a damaged file could name a size that fills the memory
    if not isinstance(blocks, list) or not all(isinstance(block, list) for block in blocks):
        raise FileFormatError("its blocks are no lists of indices")
    return BlockDiagonal(blocks)


def _size(header: dict[str, Any]) -> int:
    """The most bytes that the arrays of a posterior with this header can have."""
    labels = header["labels"]
    if header["family"] == "sparse":
        pairs, entries = (count(number, "numbers") for number in header["numbers"])
        return 8 * (2 * len(labels) + 2 * pairs + entries) + LARGEST_TRACE
    family = _family(header, len(labels) if isinstance(labels, list) and labels else 1)
    d = family.dim
    return 8 * (d + math.prod(family.shape) + MOST_COMPONENTS * (1 + d + d * d)) + LARGEST_TRACE


MAY_BE_INFINITE = ("phase", "lower_bound", "smoothed", "gap", "noise", "radius")


def _checked(array: Any, dtype: str, shape: tuple[int, ...], *, finite: bool = True) -> Any:
    if array.dtype != np.dtype(dtype) or array.shape != shape:
        raise FileFormatError(f"an array is {array.dtype} {array.shape}; expected {dtype} {shape}")
    if array.dtype.kind != "U" and (np.isnan(array).any() or (finite and np.isinf(array).any())):
        raise FileFormatError("an array holds values that are not finite")
    return array


def _parameters(spec: Any, dim: int) -> Parameters | None:
    parameters = None if spec is None else Parameters.from_spec(spec)
    # checked before arrays of that size are made: a damaged file could describe one that fills the memory
    if parameters is not None and parameters.dim != dim:
        raise FileFormatError(
            f"the named parameters make up {parameters.dim} numbers, but the mean has {dim}"
        )
    return parameters


def _labels(labels: Any, dim: int) -> list[str]:
    texts = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    if not texts or len(labels) != dim or len(set(labels)) != dim:
        raise FileFormatError(f"expected {dim} different labels")
    return [_text(label) for label in labels]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FileFormatError(f"the header has {str(value)[:100]} where a text should be")
    # a terminal obeys control characters
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value)


def _bound(value: Any) -> float:
    """The lower bound: a number, or −∞ if the run was stopped before it had one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value) < math.inf:
        raise FileFormatError(f"the lower bound cannot be {str(value)[:100]}")
    return float(value)


def _error(value: Any, name: str) -> float | None:
    """An error or gap: a number, or infinite if the run was stopped before it had one; None if it is not known."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value) >= 0.0:
        raise FileFormatError(f"the {name} cannot be {str(value)[:100]}")
    return float(value)


def _other_optima(bounds: Any) -> list[float] | None:
    if bounds is not None and not isinstance(bounds, list):
        raise FileFormatError(f"the other optima cannot be {str(bounds)[:100]}")
    return None if bounds is None else [_bound(bound) for bound in bounds]


def _mixture(arrays: dict[str, Any], dim: int) -> GaussianMixture | None:
    if "mixture_weights" not in arrays:
        return None
    count = len(arrays["mixture_weights"])
    shapes = ((count,), (count, dim), (count, dim, dim))
    parts = [
        _checked(arrays[f"mixture_{name}"], "float64", shape)
        for name, shape in zip(MIXTURE, shapes, strict=True)
    ]
    return GaussianMixture(*parts)


def _distance(stored: Any) -> Distance | None:
    if stored is None:
        return None
    if not all(isinstance(value, int | float) for value in stored.values()):
        raise FileFormatError("the distance to the posterior is not made of numbers")
    return Distance(**{name: float(value) for name, value in stored.items()})


def _check(stored: Any) -> Check:
    check = Check(**stored)
    if not isinstance(check.passed, bool):
        raise FileFormatError("a check does not say whether it passed")
    return Check(_text(check.name), check.passed, _text(check.found))


def _failures(stored: Any) -> dict[str, int]:
    if unknown := set(stored) - FAILURES:
        raise FileFormatError(f"{sorted(unknown)[0][:100]!r} is not a reason for which evaluations fail")
    return {name: count(number, name) for name, number in stored.items()}
