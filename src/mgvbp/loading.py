"""Read a posterior back from a file, checking every part of it."""

from __future__ import annotations

import math
from os import PathLike
from typing import Any

import numpy as np

from mgvbp.checks import positive_integer
from mgvbp.errors import FileFormatError, MgvbpError
from mgvbp.families import BlockDiagonal, resolve_family
from mgvbp.parameters import Parameters
from mgvbp.posterior import Posterior
from mgvbp.storage import DAMAGE, read_archive
from mgvbp.trace import TRACE_DTYPES, Trace


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
    header, arrays = read_archive(path, "posterior")
    try:
        blocks = header["blocks"]
        family = resolve_family(BlockDiagonal(blocks) if blocks else header["family"], len(arrays["mean"]))
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
        if not isinstance(header["converged"], bool) or math.isnan(header["lower_bound"]):
            raise FileFormatError("the header has wrong values")
        return Posterior(
            mean,
            factor,
            family,
            lower_bound=float(header["lower_bound"]),
            # files of earlier versions have none
            lower_bound_se=_error(header.get("lower_bound_se"), "error of the lower bound"),
            converged=header["converged"],
            stop_reason=str(header["stop_reason"]),
            trace=Trace(**columns),
            method=str(header["method"]),
            estimator=str(header["estimator"]),
            gap=_error(header["gap"], "gap"),
            gap_se=_error(header["gap_se"], "gap's error"),
            failures={str(name): int(count) for name, count in header.get("failures", {}).items()},
            parameters=_parameters(header["parameters"], family.dim),
            labels=_labels(header["labels"], family.dim),
        )
    except (*DAMAGE, AttributeError, MgvbpError) as error:
        raise FileFormatError(f"{path} is not a valid posterior: {error}") from None


MAY_BE_INFINITE = ("phase", "lower_bound", "smoothed", "gap", "noise", "radius")


def _checked(array: Any, dtype: str, shape: tuple[int, ...], *, finite: bool = True) -> Any:
    if array.dtype != np.dtype(dtype) or array.shape != shape:
        raise FileFormatError(f"an array is {array.dtype} {array.shape}; expected {dtype} {shape}")
    if array.dtype.kind != "U" and (np.isnan(array).any() or (finite and np.isinf(array).any())):
        raise FileFormatError("an array holds values that are not finite")
    return array


def _parameters(spec: Any, dim: int) -> Parameters | None:
    parameters = None if spec is None else Parameters.from_spec(spec)
    # before anything of that size is made: a few bytes can describe an array that fills the memory
    if parameters is not None and parameters.dim != dim:
        raise FileFormatError(
            f"the named parameters make up {parameters.dim} numbers, but the mean has {dim}"
        )
    return parameters


def _labels(labels: Any, dim: int) -> list[str]:
    texts = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    if not texts or len(labels) != dim or len(set(labels)) != dim:
        raise FileFormatError(f"expected {dim} different labels")
    return list(labels)


def _error(value: Any, name: str) -> float | None:
    if value is None or (isinstance(value, int | float) and value >= 0.0):
        return value
    raise FileFormatError(f"the {name} cannot be {value!r}")
