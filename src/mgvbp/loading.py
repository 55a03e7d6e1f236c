"""Read a posterior back from a file, checking every part of it."""

from __future__ import annotations

from os import PathLike

import numpy as np

from mgvbp.errors import FileFormatError, MgvbpError
from mgvbp.families import BlockDiagonal, resolve_family
from mgvbp.posterior import Posterior
from mgvbp.storage import read_archive
from mgvbp.trace import TRACE_COLUMNS, Trace


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
        mean, factor = arrays["mean"], arrays["factor"]
        blocks = header["blocks"]
        family = resolve_family(BlockDiagonal(blocks) if blocks else str(header["family"]), len(mean))
        expected = family.factor(variance=np.array(1.0)).shape
        if mean.ndim != 1 or factor.shape != expected or mean.dtype != float or factor.dtype != float:
            raise FileFormatError(f"arrays of shape {mean.shape} and {factor.shape} are not a {family!r}")
        if not (
            np.isfinite(mean).all() and np.isfinite(factor).all() and (family.diagonal(factor) > 0).all()
        ):
            raise FileFormatError("the mean or the factor of the precision is not valid")
        columns = {name: arrays[f"trace_{name}"] for name in TRACE_COLUMNS}
        if any(c.ndim != 1 or len(c) != len(columns["lower_bound"]) or len(c) == 0 for c in columns.values()):
            raise FileFormatError("the columns of the trace differ in length")
        return Posterior(
            mean,
            np.asfortranarray(factor),
            family,
            lower_bound=float(header["lower_bound"]),
            converged=bool(header["converged"]),
            stop_reason=str(header["stop_reason"]),
            trace=Trace(**columns),
            method=str(header["method"]),
            estimator=str(header["estimator"]),
        )
    except (KeyError, TypeError, ValueError, MgvbpError) as error:
        raise FileFormatError(f"{path} is not a valid posterior: {error}") from None
