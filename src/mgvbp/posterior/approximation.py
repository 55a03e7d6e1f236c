"""The distribution that a fit returns, a Gaussian or a mixture of them, under the names of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np
from scipy.special import ndtri

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.posterior.marginal import DRAWS, Marginal, Shapes, found, marginal, shapes
from mgvbp.problem.parameters import Parameters, indexed
from mgvbp.problem.problem import NamedParameters
from mgvbp.transforms import Real


class Approximation(Gaussian):
    """A Gaussian or a mixture of them, whose entries have labels and whose parameters may have names.

    See `Posterior` for the attributes.
    """

    mixture: GaussianMixture | None
    parameters: NamedParameters | None
    _labels: Sequence[str] | None

    @property
    def components(self) -> int:
        """The number of Gaussians: 1 unless the posterior is a mixture."""
        return 1 if self.mixture is None else self.mixture.components

    @property
    def kind(self) -> str:
        """What the approximation is, in words."""
        if self.mixture is None:
            return f"{self.family.name} family"
        return f"mixture of {self.components} Gaussian{'s' * (self.components > 1)}"

    def sample(self, n: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``n`` points, (n, d)."""
        return super().sample(n, rng) if self.mixture is None else self.mixture.sample(n, rng)

    def log_density_at(self, theta: Array) -> Array:
        return super().log_density_at(theta) if self.mixture is None else self.mixture.log_density_at(theta)

    def grad_log_density_at(self, theta: Array) -> Array:
        if self.mixture is None:
            return super().grad_log_density_at(theta)
        return self.mixture.with_gradient(theta)[1]

    def quantiles(self, levels: Sequence[float]) -> Array:
        """Quantiles of each entry of the unconstrained θ, (len(levels), d)."""
        if self.mixture is not None:
            return self.mixture.quantiles(levels)
        return np.asarray(self.mean + np.multiply.outer(ndtri(np.asarray(levels)), self.std))

    def __getitem__(self, name: str) -> Marginal:
        """The distribution of a named parameter, or of the entry with this label, on the constrained scale."""
        if self._labelled:
            raise InvalidInputError(
                f"{name!r} is not known on its own scale: a saved posterior of a model of another package "
                "(PyMC, NumPyro, Stan, statsmodels, arch) has no constraints: mgvbp.load(path, model) has them"
            )
        return marginal(self.mixture or self, self._named, name, self._shapes, self._drawn)

    def __contains__(self, name: object) -> bool:
        """Whether ``posterior[name]`` exists."""
        return not self._labelled and found(self._named, self._shapes, name) is not None

    __iter__ = None  # otherwise Python would iterate over posterior[0], posterior[1], ...

    @property
    def _named(self) -> NamedParameters:
        """The parameters; where they have no names, the one vector that draws and tables call theta."""
        return Parameters(theta=Real(self.dim)) if self.parameters is None else self.parameters

    @cached_property
    def _shapes(self) -> Shapes:
        """The shape of a value of each parameter."""
        return MappingProxyType(shapes(self, self._named))

    @cached_property
    def _values(self) -> Mapping[str, Array]:
        """The values of all names at `DRAWS` draws, read-only: models of other packages are slow to compute them."""
        values = {name: np.array(value) for name, value in self.named(self.sample(DRAWS, 0)).items()}
        for value in values.values():
            value.setflags(write=False)
        return MappingProxyType(values)

    def _drawn(self, name: str) -> Array:
        return self._values[name]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A label for each entry of θ; the labels are made on first use, as there may be a million."""
        return tuple(indexed("theta", (self.dim,)) if self._labels is None else self._labels)

    @property
    def _labelled(self) -> bool:
        """Whether the entries of θ have labels, while the parameters behind them are not known."""
        if self.parameters is not None or self._labels is None:
            return False
        return self.labels != tuple(indexed("theta", (self.dim,)))

    def named(self, theta: Array) -> dict[str, Array]:
        """Draws of θ (S, d), such as those of `sample` or `resample`, by name on the constrained scale."""
        return {"theta": theta} if self.parameters is None else self.parameters.constrain(theta)
