"""Models that are functions of named, constrained parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats, shown
from mgvbp.core.linalg import Array
from mgvbp.errors import EvaluationError, InvalidInputError, InvalidTypeError
from mgvbp.problem.calling import as_values
from mgvbp.problem.parameters import Parameters
from mgvbp.problem.priors import ConstrainedPrior
from mgvbp.transforms import Real


@dataclass(frozen=True, init=False)
class Model:
    """A log-likelihood as a function of named, constrained parameters.

    Without a prior, `fit` takes the function for the log density of the parameters on their own scale, up to a
    constant: the prior is flat there, and the log-Jacobian of the constraints is added to make it a density of θ.

    Parameters
    ----------
    function : callable
        Called with one keyword argument per parameter, an array (S, *shape); returns the log-likelihood (S,).
    parameters : Parameters
    pointwise : callable, optional
        The log-likelihood of each of n observations. It is called like ``function``, with all draws at once, and
        returns (S, n). `Posterior.to_arviz` then has the group ``log_likelihood``, for LOO. The attribute
        ``pointwise`` is the same function of θ instead, (S, d) -> (S, n), or None.
    y : array_like of shape (n,), optional
        The observations, for the group ``observed_data`` of `Posterior.to_arviz`; they need ``pointwise``.

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

    With the log-likelihood of each observation, for ArviZ:

    >>> import mgvbp
    >>> def pointwise(mu, sigma):
    ...     return norm.logpdf(y, mu[:, None], sigma[:, None])
    >>> model = Model(log_likelihood, model.parameters, pointwise=pointwise, y=y)
    >>> tree = mgvbp.fit(model, mgvbp.Gaussian(variance=5.0, dim=2)).to_arviz(num_draws=100)
    >>> tree["log_likelihood"]["y"].shape, tree["observed_data"]["y"].shape
    ((1, 100, 3), (3,))
    """

    function: Callable[..., Any]
    parameters: Parameters
    _pointwise: Callable[..., Any] | None = field(default=None, repr=False)

    y: ClassVar[Any] = None  # an instance that is given y has its own; so may a subclass

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: Parameters,
        *,
        pointwise: Callable[..., Any] | None = None,
        y: ArrayLike | None = None,
    ) -> None:
        if not isinstance(parameters, Parameters):
            raise InvalidTypeError(f"parameters must be a mgvbp.Parameters; got {shown(parameters)}")
        _require_function(function, "function", parameters.names)
        if pointwise is not None:
            _require_function(pointwise, "pointwise", parameters.names)
        elif y is not None:
            raise InvalidInputError(
                "y goes with pointwise, the log-likelihood of each observation: give both"
            )
        for name, value in (("function", function), ("parameters", parameters), ("_pointwise", pointwise)):
            object.__setattr__(self, name, value)
        if y is not None:
            object.__setattr__(self, "y", checked_observations(y))

    @property
    def flat_prior(self) -> ConstrainedPrior | None:
        """The prior of a fit that is given none: flat in the parameters; None if it is flat in θ too."""
        unconstrained = all(isinstance(transform, Real) for transform in self.parameters.transforms.values())
        if unconstrained and not self.parameters.shared:
            return None
        return ConstrainedPrior(self.parameters, {})

    @property
    def pointwise(self) -> Callable[[ArrayLike], Array] | None:
        """The log-likelihood of each observation at each row of θ, (S, d) -> (S, n); None if it is not known."""
        return None if self._pointwise is None else self._by_observation

    def _by_observation(self, theta: ArrayLike) -> Array:
        assert self._pointwise is not None
        points = as_floats(theta, "theta")
        values = as_values(self._pointwise(**self.parameters.constrain(points)), points, "pointwise")
        known = self.y is not None
        if values.ndim != 2 or len(values) != len(points) or (known and values.shape[1:] != self.y.shape):
            n = ", ".join(map(str, self.y.shape)) if known else "n"
            raise EvaluationError(
                f"pointwise returned shape {values.shape}; expected ({len(points)}, {n}): a value for each draw and "
                "observation",
                points,
            )
        return values.astype(np.float64, copy=False)

    def __call__(self, theta: ArrayLike) -> Any:
        """The log-likelihood at each row of ``theta``, (S, d) -> (S,)."""
        return self.function(**self.parameters.constrain(theta))


def checked_observations(y: ArrayLike) -> np.ndarray[Any, Any]:
    """``y`` as an array (n,) of numbers, texts or times."""
    try:
        array = np.asarray(y)
    except ValueError:
        array = np.empty(())
    if array.ndim != 1 or not array.size or array.dtype.kind not in "fiubUM":
        raise InvalidInputError(f"y must be an array of n observations; got {shown(y)}")
    return array


def _require_function(function: Any, name: str, names: Iterable[str]) -> None:
    """Raise if ``function`` cannot be called with keyword arguments of these names."""
    if not callable(function):
        raise InvalidTypeError(f"{name} must be a function of the parameters; got {shown(function)}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # of some functions it is not known
        return
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError:
        raise InvalidInputError(
            f"{name} cannot be called with the parameters' names {', '.join(names)}; its arguments are {signature}"
        ) from None
