"""What all networks share: named weights, checks, and sums over blocks of draws and rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import Array, as_floats, one_of, positive_integer
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.networks.data import NetworkLikelihood, as_array, as_rows, draws_of, warn_of_rounding
from mgvbp.networks.kernels import (
    DERIVATIVES,
    DRAWS,
    PAIRS,
    Function,
    Kernels,
    Library,
    Rows,
    blocks,
    cut,
    filled_up,
    kernels,
)
from mgvbp.networks.likelihoods import Likelihood
from mgvbp.problem import Parameters
from mgvbp.transforms import Elementwise, Real

PRECISIONS = {"single": np.float32, "double": np.float64}
"""The precisions that a network may compute in."""
Shapes = Mapping[str, tuple[int, ...] | Elementwise]
"""The shape of each of the weights by name; or the constraint under which the network puts it."""


class BaseNetwork(ABC):
    """A network with named weights θ and a likelihood: a log-likelihood of draws of θ and rows of data.

    All draws are evaluated together, in blocks of rows, so that memory is bounded. The network computes in its
    precision; sums over rows are in float64. Blocks come in few sizes, as JAX compiles once for each. ``X`` is anything
    with a ``shape`` whose first axis takes slices, as a memory map or `mgvbp.datasets.Windows`.

    Attributes
    ----------
    weights : Parameters
        Names and shapes of the weights, and of what the likelihood learns: ``weights.labels``;
        ``weights.constrain(theta)`` is a dict of arrays, ``weights.unconstrain(dict)`` is θ.
    likelihood : Likelihood
    precision : str
    """

    sums_over_rows: ClassVar[bool] = True  # so that mgvbp.Minibatches need not check it

    def __init__(self, weights: Shapes, likelihood: Likelihood, precision: str, library: Library) -> None:
        if not isinstance(likelihood, Likelihood):
            raise InvalidTypeError(
                "likelihood must be networks.softmax, networks.normal(sigma) or another Likelihood; "
                f"got {likelihood!r}"
            )
        # `mgvbp.fit` looks for the second name
        self.weights = self.parameters = named_weights(weights, likelihood)
        self.likelihood = likelihood
        self.precision = one_of(precision, PRECISIONS, "precision")
        self._dtype = PRECISIONS[self.precision]
        self._library = library
        self._num_outputs: dict[tuple[int, ...], int] = {}

    @abstractmethod
    def _forward(self, weights: dict[str, Any], X: Any) -> Any:
        """The outputs (n, K) of one draw of the weights."""

    @abstractmethod
    def _shape_of_outputs(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the outputs for data of a shape; raises what the network raises."""

    @property
    def dim(self) -> int:
        """The length of θ."""
        return self.weights.dim

    def __call__(self, theta: ArrayLike, X: Any, y: ArrayLike) -> Array:
        """The log-likelihood of the rows at each draw; (S, d), (n, ...) and (n,) -> (S,)."""
        return self._sums(self._kernels.values, theta, X, y, PAIRS)[0]

    def value_and_grad(self, theta: ArrayLike, X: Any, y: ArrayLike) -> tuple[Array, ...]:
        """The log-likelihood (S,) and its gradients (S, d)."""
        return self._sums(self._kernels.gradients, theta, X, y, PAIRS)

    def value_grad_and_squares(self, theta: ArrayLike, X: Any, y: ArrayLike) -> tuple[Array, ...]:
        """The log-likelihood (S,), its gradients and the sums over the rows of their squared gradients (S, d)."""
        return self._sums(self._kernels.squares, theta, X, y, min(PAIRS, DERIVATIVES // self.dim))

    def pointwise(self, theta: ArrayLike, X: Any, y: ArrayLike) -> Array:
        """The log-likelihood of each row at each draw, (S, n)."""
        draws, (rows, responses) = self._draws(theta), self._data(X, y)
        values = np.empty((len(draws), len(rows)))
        for some, part, arrays in self._blocks(draws, PAIRS, rows, responses):
            values[some, part] = cut(self._kernels.pointwise(*arrays), some, part)
        return values

    def on(
        self, X: Any, y: ArrayLike, batch_size: int | None = None, rng: int | np.random.Generator = 0
    ) -> NetworkLikelihood:
        """The log-likelihood of data, all at once or in minibatches, as `mgvbp.fit` takes it.

        Parameters
        ----------
        X : array_like of shape (N, ...)
            Finite numbers. An array of another precision than the network's is copied.
        y : array_like of shape (N,)
        batch_size : int, optional
            Rows of a minibatch; by default all.
        rng : int or numpy.random.Generator
            Seed of the order of the rows.
        """
        rows, responses = self._data(X, y)
        if isinstance(rows, np.ndarray):
            rows = rows.astype(self._dtype, copy=False)
        for part, _ in blocks(len(rows), PAIRS):
            refuse_non_finite(rows[part])
        if self.precision == "single" and responses.dtype.kind == "f":
            warn_of_rounding(y)
        return NetworkLikelihood(self, rows, responses, batch_size=batch_size, rng=rng)

    def predict(
        self, posterior: Any, X: Any, num_draws: int = 100, rng: int | np.random.Generator | None = 0
    ) -> Any:
        """Predictions for new rows, averaged over the posterior.

        Parameters
        ----------
        posterior : Gaussian, Chains, PointEstimate or array_like of shape (S, d) or (d,)
            A fit, what a baseline found, draws of θ, or a single θ.
        X : array_like of shape (N, ...)
            Finite numbers.
        num_draws : int
            Draws from a Gaussian.
        rng : int or numpy.random.Generator, optional
            Of these draws.

        Returns
        -------
        Prediction or NormalPrediction
            As the likelihood is.
        """
        draws = self._draws(draws_of(posterior, positive_integer(num_draws, "num_draws"), rng))
        rows = as_rows(X)
        self._outputs_of(rows)
        values = self.weights.constrain(draws)
        return self.likelihood.prediction(self._outputs(draws, rows), values)

    def _outputs(self, draws: Array, X: Any) -> Iterator[Array]:
        """Outputs (S, n, K), a block of rows at a time."""
        for part, group in groupby(self._blocks(draws, PAIRS, X), key=itemgetter(1)):
            refuse_non_finite(X[part])
            results = [cut(self._kernels.outputs(*arrays), some, part) for some, _, arrays in group]
            yield np.concatenate(results)

    def _sums(
        self, kernel: Function, theta: ArrayLike, X: Any, y: ArrayLike, pairs: int
    ) -> tuple[Array, ...]:
        draws, (rows, responses) = self._draws(theta), self._data(X, y)
        totals = (np.zeros(len(draws)), np.zeros(draws.shape), np.zeros(draws.shape))
        for some, part, arrays in self._blocks(draws, pairs, rows, responses):
            present = np.arange(len(arrays[-1])) < part.stop - part.start
            terms = kernel(*arrays, present)
            for total, term in zip(totals, terms, strict=False):
                total[some] += cut(term, some)
        return totals[: len(terms)]

    def _blocks(
        self, draws: Array, pairs: int, X: Any, *responses: Rows
    ) -> Iterator[tuple[slice, slice, tuple[Rows, ...]]]:
        """Which draws and rows make up each block, and their arrays, filled up to the block's size."""
        single = draws.astype(self._dtype, copy=False)
        for part, height in blocks(len(X), max(1, pairs // min(len(draws), DRAWS))):
            data = [np.asarray(X[part], self._dtype), *(rows[part] for rows in responses)]
            data = [filled_up(array, height) for array in data]
            for some, size in blocks(len(draws), DRAWS):
                yield some, part, (filled_up(single[some], size), *data)

    @cached_property
    def _kernels(self) -> Kernels:
        library, likelihood = self._library, self.likelihood

        def outputs(theta: Any, X: Any) -> Any:
            return self._forward(self._by_name(theta), X)

        def log_densities(theta: Any, X: Any, y: Any) -> Any:
            return likelihood.log_density(library.xp, outputs(theta, X), y, self._by_name(theta))

        return kernels(library, outputs, log_densities)

    def _by_name(self, theta: Any) -> dict[str, Any]:
        """The entries of one θ (d,), an array of any library, in the shapes of the weights."""
        shapes = {name: transform.shape for name, transform in self.weights.transforms.items()}
        return {name: theta[where].reshape(shapes[name]) for name, where in self.weights.slices.items()}

    # --- checks ---------------------------------------------------------------------------------------

    def _draws(self, theta: ArrayLike) -> Array:
        draws = as_floats(theta, "theta", finite=False)
        if draws.ndim != 2 or draws.shape[1] != self.dim or len(draws) == 0:
            raise InvalidInputError(f"theta has shape {draws.shape}; expected (S, {self.dim})")
        return draws

    def _data(self, X: Any, y: ArrayLike) -> tuple[Any, Rows]:
        rows = as_rows(X)
        responses = self.likelihood.checked(as_array(y, "y"), len(rows), self._outputs_of(rows))
        return rows, responses if responses.dtype.kind == "i" else responses.astype(self._dtype, copy=False)

    def _outputs_of(self, X: Any) -> int:
        """How many outputs the network has for a row of ``X``."""
        shape = tuple(X.shape[1:])
        if shape not in self._num_outputs:
            try:
                found = self._shape_of_outputs((2, *shape))
            except Exception as error:
                raise InvalidInputError(f"the network cannot take rows of shape {shape}: {error}") from error
            if len(found) != 2 or found[0] != 2:
                raise InvalidInputError(
                    f"the network made outputs of shape {found} of two rows of shape {shape}; expected (2, K)"
                )
            self._num_outputs[shape] = found[1]
        return self._num_outputs[shape]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {t.shape}" for name, t in self.weights.transforms.items())
        return f"{type(self).__name__}(dim={self.dim}: {shapes})"


def refuse_non_finite(rows: Rows) -> None:
    """Raise if rows of X have entries that are not finite."""
    if not np.isfinite(rows).all():
        raise InvalidInputError("X has non-finite entries")


def named_weights(weights: Shapes, likelihood: Likelihood) -> Parameters:
    """The weights of these shapes, and what the likelihood adds to them."""
    if not isinstance(weights, Mapping):
        raise InvalidTypeError(f'weights must be a dict of shapes, such as {{"W": (4, 3)}}; got {weights!r}')
    transforms: dict[Any, Any] = {}
    for name, shape in weights.items():
        if not isinstance(shape, (tuple, list, Elementwise)):
            raise InvalidTypeError(f"the shape of {name} must be a tuple, such as (4, 3); got {shape!r}")
        transforms[name] = shape if isinstance(shape, Elementwise) else Real(*shape)
    if doubled := set(transforms) & set(likelihood.parameters):
        raise InvalidInputError(f"{', '.join(doubled)} is a parameter of the likelihood: rename the weight")
    return Parameters(transforms | likelihood.parameters)
