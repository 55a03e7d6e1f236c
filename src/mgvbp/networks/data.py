"""Rows, labels and draws as arrays, or an error that says what came; a network on its data."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from mgvbp.core import Array, as_floats
from mgvbp.errors import InvalidInputError, InvalidTypeError, MgvbpWarning, ScaleWarning, warn_user
from mgvbp.families import Gaussian
from mgvbp.problem import Minibatches

if TYPE_CHECKING:
    from mgvbp.networks.base import BaseNetwork

Labels = NDArray[np.int32]

SHOWN = 1000
"""Most rows whose predictions a progress bar sums up."""

LARGE = 25.0
"""Root mean squares of responses above this get advice. On the diabetes data, with 5 or 20 hidden units, 23 costs
nothing; at 32 R² falls from 0.41 to 0.27 or 0.36, and at 70 the prediction is worse than the mean of y."""

LAZY = ("shape", "dtype", "__getitem__", "__len__")
"""Rows that have all of these are not copied to an array: blocks of them are read when they are needed."""


def as_rows(X: Any) -> Any:
    """``X`` as rows of numbers. An object with a shape and a NumPy dtype that is no array, as a memory map, stays."""
    lazy = all(hasattr(X, name) for name in LAZY) and isinstance(X.dtype, np.dtype)
    rows = whole(X, "X") if lazy else as_array(X, "X")
    if rows.dtype.kind not in "fiub":
        raise InvalidTypeError(f"X must hold numbers; got dtype {rows.dtype}")
    if len(rows.shape) < 2 or math.prod(rows.shape) == 0:
        raise InvalidInputError(f"X has shape {rows.shape}; expected (N, ...), rows of numbers")
    return rows


def as_array(value: Any, name: str) -> np.ndarray[Any, Any]:
    """``value`` as a NumPy array: lists, frames, tensors on the CPU."""
    given = whole(value, name)
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:  # the last is PyTorch's
        raise InvalidTypeError(
            f"{name} must be an array of numbers; got {reprlib.repr(value)}: {error}"
        ) from error


def whole(value: Any, name: str) -> Any:
    """``value`` itself, if it is not a sparse or masked array, which lacks entries."""
    if issparse(value):
        raise InvalidTypeError(f"{name} is sparse; expected a dense array: {name}.toarray() makes one")
    if np.ma.isMaskedArray(value):
        raise InvalidTypeError(f"{name} is a masked array: leave the masked rows out, or fill them in")
    return value


def checked_labels(y: ArrayLike, n: int, num_classes: int) -> Labels:
    """``y`` as ``n`` labels 0, ..., num_classes − 1."""
    given = as_array(y, "y")
    if given.dtype.kind not in "iub":
        raise InvalidTypeError(
            f"y must hold labels 0, ..., {num_classes - 1} as integers; got {given.dtype} values: "
            "np.unique(y, return_inverse=True)[1] makes such labels of any values"
        )
    if given.shape != (n,):
        raise InvalidInputError(f"y has shape {given.shape}; expected ({n},), one label for each row of X")
    if given.min() < 0 or given.max() >= num_classes:
        raise InvalidInputError(
            f"y must hold labels 0, ..., {num_classes - 1}, one for each output; "
            f"got {given.min()} to {given.max()}"
        )
    return given.astype(np.int32, copy=False)


def refuse_nan(values: Array, rows: int, what: str) -> None:
    """Complain of NaN in predictions; ``rows`` is the axis that counts the rows of X."""
    others = tuple(axis for axis in range(values.ndim) if axis != rows)
    if lost := int(np.isnan(values).any(axis=others).sum()):
        raise InvalidInputError(
            f"the {what} of {lost} rows are NaN: X or draws of the weights were out of range"
        )


def draws_of(posterior: Any, num_draws: int, rng: int | np.random.Generator | None) -> Array:
    """Draws (S, d) of θ from a distribution, chains, a point estimate, or numbers."""
    if hasattr(posterior, "__array__"):  # arrays have a flat of their own, frames a sample
        found = posterior
    elif hasattr(posterior, "sample"):
        found = posterior.sample(num_draws, rng)
    else:
        found = getattr(posterior, "flat", getattr(posterior, "theta", posterior))
    try:
        return np.atleast_2d(as_floats(as_array(found, "posterior"), "posterior"))
    except InvalidTypeError:
        raise InvalidTypeError(
            "posterior must be a fit, the results of baselines.nuts or baselines.adam, or draws (S, d); "
            f"got {reprlib.repr(posterior)}"
        ) from None


def warn_of_rounding(y: ArrayLike) -> None:
    """Warn if single precision leaves fewer than three digits of the differences between responses."""
    responses = np.asarray(y, np.float64)
    largest, spread = np.abs(responses).max(), responses.std()
    step = np.spacing(np.float32(largest))
    if 0.0 < spread < 1e3 * step:
        warn_user(
            f"single precision rounds y, up to {largest:.6g}, to steps of {step:.2g}, and its standard "
            f"deviation is {spread:.2g}: subtract the mean of y, or take precision='double'",
            MgvbpWarning,
            "single-precision",
        )


def warn_of_scale(y: np.ndarray[Any, Any]) -> None:
    """Warn if numbers ``y`` are out of reach for a network whose weights are around 1; labels are no numbers."""
    size = float(np.sqrt(np.mean(np.square(y, dtype=np.float64)))) if y.dtype.kind == "f" else 0.0
    if size > LARGE:
        warn_user(
            f"the root mean square of y is {size:.4g}, which a network whose weights have the default prior N(0, I) "
            "does not reach: subtract the mean of y and divide by its standard deviation, or give prior=",
            ScaleWarning,
        )


class NetworkLikelihood(Minibatches):
    """The log-likelihood of a network on data, all at once or in batches; see `mgvbp.Minibatches`.

    The network is its ``log_likelihood``, whose methods bring gradients and names.
    """

    log_likelihood: BaseNetwork
    is_network = True
    """So that `mgvbp.fit` knows that its posterior has many modes and no certificate."""

    @cached_property
    def default_prior(self) -> Gaussian:
        """The prior of a fit that is given none: N(0, I), for which responses should be around 1."""
        warn_of_scale(self.data[1])
        return Gaussian(variance=1.0, dim=self.log_likelihood.dim)

    @cached_property
    def start(self) -> Gaussian | None:
        """Where a fit begins that is given no start: the weights that a PyTorch module came with; else None."""
        initial = getattr(self.log_likelihood, "initial", None)
        return None if initial is None else Gaussian(initial, variance=np.ones(len(initial)))

    def remark(self, theta: Array) -> str:
        """How well the weights θ (d,) predict the first rows to train, for a progress bar."""
        X, y = self.data
        scores = self.log_likelihood.predict(theta[None], X[:SHOWN]).score(y[:SHOWN])
        accuracy = getattr(scores, "accuracy", None)
        return f"RMSE {scores.rmse:.3g}" if accuracy is None else f"accuracy {accuracy:.1%}"

    @cached_property
    def traced(self) -> Callable[[Any], Any]:
        """The log-likelihood of all data as a JAX function of one θ (d,), where the network is one of JAX."""
        function: Callable[[Any], Any] = self.log_likelihood.traced(*self.data)  # type: ignore[attr-defined]
        return function

    @property
    def y(self) -> Array:
        """The labels, or responses."""
        return np.asarray(self.data[-1])

    def predict(self, theta: Array, X: Any, *, rng: object = None) -> Any:
        """What the network predicts for new rows over draws (S, d): see its `predict`, which needs no ``rng``."""
        return self.log_likelihood.predict(theta, X)

    def pointwise(self, theta: Array) -> Array:
        """The log-likelihood of each row of the data at each draw, (S, N)."""
        return self.log_likelihood.pointwise(theta, *self.data)
