"""A network on its data: what `mgvbp.fit` and the baselines take."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mgvbp.core import Array
from mgvbp.problem import Minibatches


class NetworkLikelihood(Minibatches):
    """The log-likelihood of a network on data, all at once or in batches; see `mgvbp.Minibatches`.

    The network is its ``log_likelihood``, whose methods bring gradients and names.
    """

    @cached_property
    def traced(self) -> Callable[[Any], Any]:
        """The log-likelihood of all data as a JAX function of one θ (d,), where the network is one of JAX."""
        function: Callable[[Any], Any] = self.log_likelihood.traced(*self.data)  # type: ignore[attr-defined]
        return function

    @property
    def y(self) -> Array:
        """The labels, or responses."""
        return np.asarray(self.data[-1])

    def pointwise(self, theta: Array) -> Array:
        """The log-likelihood of each row of the data at each draw, (S, N)."""
        values: Array = self.log_likelihood.pointwise(theta, *self.data)  # type: ignore[attr-defined]
        return values
