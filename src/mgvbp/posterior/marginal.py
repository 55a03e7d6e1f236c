"""The distribution of one named parameter under a posterior, on the scale of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtri

from mgvbp.core.checks import as_floats, probabilities
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, UnknownNameError
from mgvbp.families.full import Full
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.problem.parameters import Parameters, entry_labels
from mgvbp.problem.problem import NamedParameters
from mgvbp.transforms import Elementwise

DRAWS = 10_000
"""Moments and quantiles without a formula are estimated from this many draws with seed 0, the same at every call."""

Shapes = Mapping[str, tuple[int, ...]]
"""The shape of a value of each parameter."""


class Marginal:
    """The posterior of one named parameter, on its constrained scale; made by ``posterior["name"]``.

    ``posterior["name[0]"]`` is the marginal of one entry, a scalar.

    Means and standard deviations of `Real`, `Positive`, `LowerBound` and `UpperBound`, quantiles of these and of
    `Interval`, and all densities are exact. Other moments and quantiles are estimated from `DRAWS` draws with a fixed
    seed. For a model of another package all of them are estimated, and there are no densities.

    Attributes
    ----------
    name : str
    shape : tuple of int
        The shape of one value.
    mean, std : ndarray of shape ``shape``, or a number for a scalar parameter

    Examples
    --------
    >>> import mgvbp
    >>> from mgvbp.transforms import Positive
    >>> def log_likelihood(sigma):  # of ten normal observations whose squares add up to 40
    ...     return -10.0 * np.log(sigma) - 0.5 * 40.0 / sigma**2
    >>> model = mgvbp.Model(log_likelihood, mgvbp.Parameters(sigma=Positive()))
    >>> sigma = mgvbp.fit(model, mgvbp.Gaussian(variance=5.0, dim=1))["sigma"]
    >>> sigma.mean.round(1), sigma.quantile([0.025, 0.975]).round(1)
    (np.float64(2.1), array([1.4, 3.2]))
    """

    def __init__(
        self,
        q: Gaussian | GaussianMixture,
        parameters: NamedParameters,
        name: str,
        known: Shapes | None = None,
        drawn: Callable[[str], Array] | None = None,
    ) -> None:
        known = shapes(q, parameters) if known is None else known
        if not isinstance(name, str) or name not in known:
            raise UnknownNameError(f"no parameter is called {name!r}; there are {', '.join(known)}")
        self.name = name
        self.shape: tuple[int, ...] = known[name]
        self._q, self._parameters, self._drawn = q, parameters, drawn

    @property
    def mean(self) -> Any:
        """The mean of each entry."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._draws.mean(axis=0)

    @property
    def std(self) -> Any:
        """The standard deviation of each entry."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._draws.std(axis=0)

    def quantile(self, p: ArrayLike) -> Any:
        """The quantiles of each entry at levels ``p`` between 0 and 1, of shape (*p.shape, *shape)."""
        return self._quantile(probabilities(p, "p"))

    def sample(self, n: int, rng: int | np.random.Generator | None = None) -> Array:
        """``n`` draws, (n, *shape): the same as ``posterior.draws(n, rng)[name]``."""
        return np.asarray(self._parameters.constrain(self._q.sample(n, rng))[self.name])

    def log_density(self, value: ArrayLike) -> Any:
        """Log density at a value (*shape), or at S of them, (S, *shape) -> (S,); −inf outside the support.

        It is the joint density of all entries, with respect to the same measure as the transform's Jacobian.
        """
        values = as_floats(value, self.name)
        if values.shape == self.shape:
            return self._log_density(values[None])[0]
        if values.shape[1:] != self.shape or values.ndim == 0:
            expected = f"{self.shape} or ({', '.join(['S', *map(str, self.shape)])})"
            raise InvalidInputError(f"{self.name} has shape {values.shape}; expected {expected}")
        return self._log_density(values)

    def density(self, value: ArrayLike) -> Any:
        """The density; see `log_density`."""
        return np.exp(self.log_density(value))

    @cached_property
    def _draws(self) -> Array:
        return self.sample(DRAWS, rng=0) if self._drawn is None else self._drawn(self.name)

    def _quantile(self, levels: Array) -> Any:
        return np.quantile(self._draws, levels, axis=0)

    def _log_density(self, values: Array) -> Array:
        raise InvalidInputError(
            f"the density of {self.name} is not known, since it shares a constraint with others or its model "
            f"was written elsewhere; a histogram of posterior[{self.name!r}].sample(n) shows it"
        )

    def __getstate__(self) -> dict[str, Any]:
        """A pickle draws anew: a pickled posterior may not know the model's constraints."""
        return {**self.__dict__, "_drawn": None}

    def __repr__(self) -> str:
        return f"Marginal({self.name!r}, shape={self.shape})"


class TransformedMarginal(Marginal):
    """A `Marginal` whose transform is known, so that it has formulas for its moments and density."""

    _q: Gaussian

    def __init__(self, q: Gaussian, parameters: Parameters, name: str) -> None:
        super().__init__(q, parameters, name)
        self._transform, self._where = parameters.transforms[name], parameters.slices[name]

    @property
    def mean(self) -> Any:
        exact = self._transform.mean(*self._normal)
        return super().mean if exact is None else exact.reshape(self.shape)[()]

    @property
    def std(self) -> Any:
        exact = self._transform.std(*self._normal)
        return super().std if exact is None else exact.reshape(self.shape)[()]

    @cached_property
    def _normal(self) -> tuple[Array, Array]:
        """Means and standard deviations of the unconstrained numbers."""
        return self._q.mean[self._where], self._q.std[self._where]

    @cached_property
    def _joint(self) -> Gaussian:
        """The distribution of the unconstrained numbers."""
        return Gaussian(self._normal[0], variance=self._q.covariance_of(range(self._q.dim)[self._where]))

    @cached_property
    def _draws(self) -> Array:
        if not self._transform.increasing:
            return self.sample(DRAWS, rng=0)
        # each entry depends on one number alone: its quantiles at equidistant levels leave next to no error
        return self._at_levels((np.arange(DRAWS) + 0.5) / DRAWS)

    def _at_levels(self, levels: Array) -> Array:
        mu, sd = self._normal
        return self._transform.constrain(mu + sd * ndtri(levels)[:, None])

    def _quantile(self, levels: Array) -> Any:
        if not self._transform.increasing:
            return super()._quantile(levels)
        return self._at_levels(levels.ravel()).reshape(levels.shape + self.shape)[()]

    def _log_density(self, values: Array) -> Array:
        if not isinstance(self._transform, Elementwise):
            return self._by_halves(values)
        lower, upper = self._transform.bounds
        inside = ((values > lower) & (values < upper)).all(axis=tuple(range(1, values.ndim)))
        result = np.full(len(values), -np.inf)
        result[inside] = self._by_halves(values[inside])
        return result

    def alone(self, i: int, parameters: Parameters) -> Marginal:
        """The marginal of the i-th entry, which is a function of the i-th unconstrained number alone."""
        mu, sd = (numbers[[i]] for numbers in self._normal)
        return TransformedMarginal(Gaussian(mu, variance=sd**2), parameters, parameters.names[0])

    def _by_halves(self, values: Array) -> Array:
        try:
            x = self._transform.unconstrain(values)
        except InvalidInputError:  # some value is outside the support: split the values to find it
            if len(values) == 1:
                return np.array([-np.inf])
            return np.concatenate([self._by_halves(half) for half in np.array_split(values, 2)])
        return self._joint.log_density(x) - self._transform.log_jacobian(x)


class MixtureMarginal(Marginal):
    """A `Marginal` under a mixture: moments and densities are those of its Gaussians, weighted."""

    _q: GaussianMixture

    def __init__(self, mixture: GaussianMixture, parameters: Parameters, name: str) -> None:
        super().__init__(mixture, parameters, name)
        full = Full(mixture.dim)
        self._transform = parameters.transforms[name]
        self._where = list(range(mixture.dim)[parameters.slices[name]])
        self._parts = [
            TransformedMarginal(Gaussian.from_factor(mean, np.asfortranarray(factor), full), parameters, name)
            for mean, factor in zip(mixture.means, mixture.factors, strict=True)
        ]

    @property
    def mean(self) -> Any:
        return self._average([part.mean for part in self._parts])

    @property
    def std(self) -> Any:
        squares = [part.std**2 + (part.mean - self.mean) ** 2 for part in self._parts]
        return np.sqrt(self._average(squares))

    def _average(self, values: list[Any]) -> Any:
        return np.tensordot(self._q.weights, np.asarray(values), axes=1)[()]

    def _quantile(self, levels: Array) -> Any:
        if not self._transform.increasing:
            return super()._quantile(levels)
        numbers = self._q.marginal(self._where).quantiles(levels.ravel())
        return self._transform.constrain(numbers).reshape(levels.shape + self.shape)[()]

    def _log_density(self, values: Array) -> Array:
        terms = [part._log_density(values) for part in self._parts]
        return np.asarray(logsumexp(np.log(self._q.weights)[:, None] + terms, axis=0))

    def alone(self, i: int, parameters: Parameters) -> Marginal:
        """The marginal of the i-th entry, which is a function of the i-th unconstrained number alone."""
        return MixtureMarginal(self._q.marginal([self._where[i]]), parameters, parameters.names[0])


class EntryMarginal(Marginal):
    """The `Marginal` of one entry of a parameter: moments and draws come from the whole, the density is its own."""

    def __init__(self, whole: Marginal, label: str, index: tuple[int, ...]) -> None:
        self.name, self.shape = label, ()
        self._whole, self._index = whole, index

    @property
    def mean(self) -> Any:
        return self._whole.mean[self._index]

    @property
    def std(self) -> Any:
        return self._whole.std[self._index]

    def sample(self, n: int, rng: int | np.random.Generator | None = None) -> Array:
        column: Any = (slice(None), *self._index)
        return np.asarray(self._whole.sample(n, rng)[column])

    def _quantile(self, levels: Array) -> Any:
        return self._whole.quantile(levels)[..., *self._index]

    def _log_density(self, values: Array) -> Array:
        whole, transform = self._whole, getattr(self._whole, "_transform", None)
        if not isinstance(transform, Elementwise):
            return super()._log_density(values)
        assert isinstance(whole, TransformedMarginal | MixtureMarginal)  # which alone have a transform
        parameters = Parameters({self.name: transform.single})
        alone = whole.alone(int(np.ravel_multi_index(self._index, whole.shape)), parameters)
        return np.asarray(alone.log_density(values))


def shapes(q: Gaussian | GaussianMixture, parameters: NamedParameters) -> dict[str, tuple[int, ...]]:
    """The shape of a value of each parameter; of parameters of our own without transforming anything."""
    if isinstance(parameters, Parameters):
        own = parameters.transforms
        return {name: own[name].shape if name in own else () for name in parameters.names}
    return {name: np.shape(value)[1:] for name, value in parameters.constrain(q.mean[None]).items()}


def found(parameters: object, known: Shapes, name: object) -> tuple[str, tuple[int, ...]] | None:
    """The parameter and the index of the entry that ``name`` refers to; the index is () for a whole parameter.

    ``known`` are the shapes of all parameters. An entry has its index in brackets or, in a model with coordinates, its
    label as tables have it. The result is None if ``name`` refers to no parameter.

    Examples
    --------
    >>> known = {"beta": (3,), "alpha[1]": ()}
    >>> [found(None, known, name) for name in ("beta", "alpha[1]", "beta[2]", "beta[3]")]
    [('beta', ()), ('alpha[1]', ()), ('beta', (2,)), None]
    """
    if not isinstance(name, str):
        return None
    if name in known:
        return name, ()
    whole, bracket, entry = name.partition("[")
    if not bracket or whole not in known:
        return None
    shape, numbers = known[whole], entry.removesuffix("]").split(",")
    index = tuple(int(number) for number in numbers if number.isdecimal())
    inside = len(index) == len(shape) and all(i < n for i, n in zip(index, shape, strict=True))
    if inside and name == f"{whole}[{','.join(map(str, index))}]":
        return whole, index
    labels = entry_labels(parameters, whole, shape)
    if name not in labels:
        return None
    return whole, tuple(int(i) for i in np.unravel_index(labels.index(name), shape))


def marginal(
    q: Gaussian | GaussianMixture,
    parameters: NamedParameters,
    name: str,
    known: Shapes | None = None,
    drawn: Callable[[str], Array] | None = None,
) -> Marginal:
    """The distribution of the parameter ``name``, or of the entry with this label, if θ ~ ``q``.

    A caller that asks for many names computes once what all share: ``known`` is the result of `shapes`, and
    ``drawn(name)`` are the values (`DRAWS`, *shape) at ``q.sample(DRAWS, 0)``.
    """
    known = shapes(q, parameters) if known is None else known
    entry = found(parameters, known, name)
    if entry is not None and entry[1]:
        return EntryMarginal(marginal(q, parameters, entry[0], known, drawn), name, entry[1])
    if isinstance(parameters, Parameters) and name not in parameters.shared:
        if isinstance(q, GaussianMixture):
            return MixtureMarginal(q, parameters, name)
        return TransformedMarginal(q, parameters, name)
    return Marginal(q, parameters, name, known, drawn)
