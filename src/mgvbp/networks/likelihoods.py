"""What the outputs of a network say of the responses: class probabilities, or a mean under normal noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import Array, as_floats, positive_number
from mgvbp.errors import InvalidInputError
from mgvbp.families import LOG_2PI
from mgvbp.networks.data import checked_labels
from mgvbp.networks.prediction import NormalPrediction, Prediction
from mgvbp.transforms import Elementwise, Positive


class Likelihood(ABC):
    """The density of the responses given the outputs of a network."""

    @property
    def parameters(self) -> dict[str, Elementwise]:
        """What is learnt besides the weights, with the constraint that `log_density` applies."""
        return {}

    @abstractmethod
    def log_density(self, xp: Any, outputs: Any, y: Any, theta: Mapping[str, Any]) -> Any:
        """``log p(y_i | outputs_i)``; (n, K) and (n,) -> (n,).

        ``xp`` is the library of the arrays, ``jax.numpy`` or ``torch``, of which we use what has the same name in
        both; ``theta`` has the unconstrained numbers of `parameters` and of the weights by name.
        """

    @abstractmethod
    def checked(self, y: ArrayLike, n: int, num_outputs: int) -> np.ndarray[Any, Any]:
        """Responses to ``n`` rows, if a network of ``num_outputs`` outputs can have them."""

    @abstractmethod
    def prediction(self, outputs: Iterable[Array], values: Mapping[str, Array]) -> Any:
        """What the outputs (S, n, K) of S draws say of new rows, which come a block at a time.

        ``values`` has the draws of `parameters` (S,), on their own scale.
        """


@dataclass(frozen=True)
class Softmax(Likelihood):
    """Labels 0, ..., K − 1 with ``P(y = c) ∝ exp(output_c)``; predictions are a `Prediction`."""

    def log_density(self, xp: Any, outputs: Any, y: Any, theta: Mapping[str, Any]) -> Any:
        shifted = outputs - xp.amax(outputs, -1)[..., None]
        chosen = y[..., None] == xp.arange(outputs.shape[-1])
        return xp.where(chosen, shifted, 0.0).sum(-1) - xp.log(xp.exp(shifted).sum(-1))

    def checked(self, y: ArrayLike, n: int, num_outputs: int) -> np.ndarray[Any, Any]:
        if num_outputs < 2:
            raise InvalidInputError(
                f"softmax needs an output for each class, 2 at least; got {num_outputs}. If y are numbers and no "
                "classes, say dense(..., likelihood=mgvbp.networks.normal())"
            )
        return checked_labels(y, n, num_outputs)

    def prediction(self, outputs: Iterable[Array], values: Mapping[str, Array]) -> Prediction:
        return Prediction.from_outputs(outputs)


@dataclass(frozen=True)
class Normal(Likelihood):
    """``y ~ N(output, σ²)`` for a network of one output; predictions are a `NormalPrediction`.

    Parameters
    ----------
    sigma : float, optional
        The noise's standard deviation. By default it is learnt: the last entry of θ is log σ, whose prior is that of
        the other entries, and ``posterior["sigma"]`` is σ.

    Notes
    -----
    In single precision, responses and outputs have seven digits: near 10⁶ they come in steps of 0.06, which hide
    noise of 0.1. Subtract the mean of y, or take ``precision="double"``; `BaseNetwork.on` warns where it matters.
    """

    sigma: float | None = None

    def __post_init__(self) -> None:
        if self.sigma is not None:
            positive_number(self.sigma, "sigma")

    @property
    def parameters(self) -> dict[str, Elementwise]:
        """``sigma``, if it is learnt."""
        return {"sigma": Positive()} if self.sigma is None else {}

    def log_density(self, xp: Any, outputs: Any, y: Any, theta: Mapping[str, Any]) -> Any:
        if self.sigma is None:
            log_sigma, scale = theta["sigma"], xp.exp(-theta["sigma"])
        else:
            log_sigma, scale = math.log(self.sigma), 1.0 / self.sigma
        return -0.5 * ((y - outputs[..., 0]) * scale) ** 2 - log_sigma - 0.5 * LOG_2PI

    def checked(self, y: ArrayLike, n: int, num_outputs: int) -> np.ndarray[Any, Any]:
        if num_outputs != 1:
            raise InvalidInputError(f"the normal likelihood takes a network of one output; got {num_outputs}")
        responses = as_floats(y, "y")
        if responses.shape != (n,):
            raise InvalidInputError(f"y has shape {responses.shape}; expected ({n},), one for each row of X")
        return responses

    def prediction(self, outputs: Iterable[Array], values: Mapping[str, Array]) -> NormalPrediction:
        means = np.concatenate([block[:, :, 0] for block in outputs], axis=1)
        return NormalPrediction(means, values.get("sigma", np.full(len(means), self.sigma)))


softmax = Softmax()


def normal(sigma: float | None = None) -> Normal:
    """Normal noise of a known standard deviation, or of one that is learnt; see `Normal`.

    Single precision needs responses near 0: subtract their mean.
    """
    return Normal(sigma)
