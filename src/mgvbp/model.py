"""Models that are functions of named, constrained parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.parameters import Parameters


@dataclass(frozen=True)
class Model:
    """A log-likelihood as a function of named, constrained parameters.

    Parameters
    ----------
    function : callable
        Called with one keyword argument a name, of shape (S, *shape); returns the log-likelihood (S,).
    parameters : Parameters

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from mgvbp.transforms import Positive, Real
    >>> y = np.array([0.3, 1.1, 0.4])
    >>> def log_likelihood(mu, sigma):
    ...     return norm.logpdf(y, mu[:, None], sigma[:, None]).sum(axis=1)
    >>> model = Model(log_likelihood, Parameters(mu=Real(), sigma=Positive()))
    >>> model(np.zeros((2, 2))).round(4)
    array([-3.4868, -3.4868])
    """

    function: Callable[..., Any]
    parameters: Parameters

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidTypeError(f"function must be a function of the parameters; got {self.function!r}")
        if not isinstance(self.parameters, Parameters):
            raise InvalidTypeError(f"parameters must be a mgvbp.Parameters; got {self.parameters!r}")
        if not takes(self.function, self.parameters.names):
            raise InvalidInputError(
                f"function cannot be called with the parameters' names {', '.join(self.parameters.names)}; "
                f"its arguments are {inspect.signature(self.function)}"
            )

    def __call__(self, theta: ArrayLike) -> Any:
        """The log-likelihood at each row of ``theta``, (S, d) -> (S,)."""
        return self.function(**self.parameters.constrain(theta))


def takes(function: Callable[..., Any], names: Iterable[str]) -> bool:
    """Whether the function's signature allows these keyword arguments; True where it has none to look at."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except ValueError:
        return True
    except TypeError:
        return False
    return True
