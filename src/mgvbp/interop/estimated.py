"""A likelihood that its own package maximises, as `mgvbp.fit` takes it: default priors, and a start at the estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import EvaluationError, InvalidInputError, MgvbpError
from mgvbp.families.gaussian import Gaussian
from mgvbp.interop.curvature import around
from mgvbp.interop.default_priors import UNIFORM, WIDE, DefaultPrior, checked_priors
from mgvbp.interop.model import ForeignParameters, checked_rows
from mgvbp.problem.parameters import Parameters
from mgvbp.problem.priors import ConstrainedPrior

PARAMETERS = 100
"""Most draws of the parameters behind predictions of a time series: each takes a filter of the whole series. Further
draws are further futures of the same parameters, as the noise of the observations is most of a forecast's width."""


@dataclass(frozen=True)
class RegionParameters(ForeignParameters):
    """Parameters whose constraints are those of another package, with the log-Jacobian of its map.

    Parameters
    ----------
    jacobian : callable
        (S, d) -> (S,): ``log |det ∂values/∂θ|``.
    """

    jacobian: Callable[[Array], Array] = field(kw_only=True)

    def log_jacobian(self, theta: ArrayLike) -> Array:
        """``log |det ∂values/∂θ|`` at the rows of ``theta``, (S, d) -> (S,)."""
        return self.jacobian(checked_rows(as_floats(theta, "theta"), self.dim))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is read from a model of another package.

    Parameters
    ----------
    parameters : Parameters or RegionParameters
        Names and constraints: one number for each name.
    log_likelihood : callable
        (S, k) -> (S,), of the parameters on the model's own scale.
    estimate : ndarray of shape (k,)
        Maximum likelihood, or a start for it.
    score : callable, optional
        (k,) -> (k,), the gradient of the log-likelihood of one row.
    information : ndarray of shape (k, k), optional
        Minus the Hessian of the log-likelihood at the estimate, if it is known.
    pointwise : callable, optional
        (k,) -> (n,), the log-likelihood of each observation.
    y : ndarray, optional
        The observations.
    deviations : mapping of str to float
        The parameters that are squares of standard deviations, with the scale of the prior of the latter.
    priors : mapping of str to object
        Other default priors; `UNIFORM` for parameters that the constraints bound.
    """

    parameters: Parameters | RegionParameters
    log_likelihood: Callable[[Array], Array]
    estimate: Array
    score: Callable[[Array], Array] | None = None
    information: Array | None = None
    pointwise: Callable[[Array], Array] | None = None
    y: Array | None = None
    deviations: Mapping[str, float] = field(default_factory=dict)
    priors: Mapping[str, Any] = field(default_factory=dict)


class EstimatedModel:
    """The log-likelihood of another package's model as a function of θ, with priors and a place to start.

    Give it to `mgvbp.fit` as it is, or with another ``prior=`` for θ as a whole.

    Attributes
    ----------
    model : object
        The model of the other package.
    parameters : NamedParameters
    priors : dict of str to object with ``logpdf``, or callable
        The prior of each parameter on the model's scale.
    default_prior : ConstrainedPrior
        The same as a density of θ, with the log-Jacobian of the constraints: what a fit without ``prior=`` uses.
    start : Gaussian
        The estimate, and the inverse of the curvature of the log-likelihood around it: where `mgvbp.fit` begins.
    y : ndarray or None
        The observations.
    """

    def __init__(self, model: Any, reading: Reading, priors: Mapping[str, Any] | None = None) -> None:
        self.model, self.y, self._reading = model, reading.y, reading
        self.parameters = reading.parameters
        names = self.parameters.names
        given = checked_priors(priors, names)
        theta = self.parameters.unconstrain(dict(zip(names, reading.estimate, strict=True)))
        information = reading.information
        if information is not None:
            units = self._slopes(theta[None])[0]
            information = information * np.outer(units, units)
        mean, covariance = around(self, theta, information)
        self.start = Gaussian(mean, variance=covariance)
        # standard errors on the model's scale, to first order, by differences over half of one
        half = 0.5 * np.linalg.cholesky(self.start.covariance).T
        ahead, behind = np.split(self.values(np.concatenate([mean + half, mean - half])), 2)
        sizes = np.maximum(np.abs(reading.estimate), np.sqrt(((ahead - behind) ** 2).sum(axis=0)))
        normal = {name: DefaultPrior(WIDE * float(size)) for name, size in zip(names, sizes, strict=True)}
        roots = {name: DefaultPrior(scale, root=True) for name, scale in reading.deviations.items()}
        self.priors: dict[str, Any] = normal | roots | dict(reading.priors) | given
        known = {name: prior for name, prior in self.priors.items() if prior is not UNIFORM}
        self.default_prior = ConstrainedPrior(cast(Parameters, self.parameters), known)

    def values(self, theta: Array) -> Array:
        """The parameters on the model's own scale, (S, d) -> (S, k), in the order of their names."""
        values = self.parameters.constrain(theta)
        return np.stack([values[name] for name in self.parameters.names], axis=1)

    def __call__(self, theta: ArrayLike) -> Array:
        """The log-likelihood at each row of ``theta``, (S, d) -> (S,)."""
        rows = checked_rows(as_floats(theta, "theta"), self.parameters.dim)
        return self._reading.log_likelihood(self.values(rows))

    @property
    def value_and_grad(self) -> Callable[[Array], tuple[Array, Array]]:
        """Log-likelihoods (S,) and gradients (S, d), if the model has a score."""
        if self._reading.score is None:
            raise AttributeError("the model has no score")
        return self._value_and_grad

    def _value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        score, values = self._reading.score, self.values(theta)
        assert score is not None
        scores = quietly(lambda: np.stack([score(row) for row in values]))
        return self._reading.log_likelihood(values), scores * self._slopes(theta)

    def _slopes(self, theta: Array) -> Array:
        """The derivative of each parameter in its own entry of θ, the only one it depends on, (S, d) -> (S, d)."""
        assert isinstance(self.parameters, Parameters)
        blocks = self.parameters.blocks(theta)
        return np.exp(np.stack([transform.log_jacobian(columns) for _, transform, columns in blocks], axis=1))

    @property
    def pointwise(self) -> Callable[[ArrayLike], Array] | None:
        """The log-likelihood of each observation at each row of θ, (S, d) -> (S, n); None if it is not known."""
        return None if self._reading.pointwise is None else self._by_observation

    def _by_observation(self, theta: ArrayLike) -> Array:
        assert self._reading.pointwise is not None
        rows = checked_rows(as_floats(theta, "theta"), self.parameters.dim)
        return np.stack([np.asarray(self._reading.pointwise(row)) for row in self.values(rows)])

    def __repr__(self) -> str:
        names = ", ".join(f"{name} ~ {prior!r}" for name, prior in self.priors.items())
        return f"{type(self).__name__}({type(self.model).__name__}: {names})"


def simulated(
    params: Array, simulate: Callable[[Array, int], tuple[Array, Array | None]]
) -> tuple[Array, Array | None]:
    """One path for each draw of the parameters ``params`` (S, k), and the means of the paths if they are known.

    ``simulate(row, each)`` gives so many paths (each, n, ...) of one draw of the parameters, and their mean (n, ...).
    """
    rows = params[:PARAMETERS]
    each = -(-len(params) // len(rows))
    parts = [simulate(row, each) for row in rows]
    known = [mean for _, mean in parts if mean is not None]
    means = np.repeat(np.stack(known), each, axis=0)[: len(params)] if known else None
    return np.concatenate([paths for paths, _ in parts])[: len(params)], means


@contextmanager
def explained(model: Any) -> Iterator[None]:
    """Any error of the other package while it predicts, as one sentence of ours."""
    try:
        yield
    except MgvbpError:
        raise
    except Exception as error:
        raise InvalidInputError(f"{type(model).__name__} cannot predict this: {described(error)}") from error


def takes_no_more(given: Mapping[str, Any], what: str) -> None:
    """Raise if there are keywords that ``what`` does not take: nothing that is given may go unused."""
    if given:
        names = ", ".join(f"{name}=" for name in given)
        raise InvalidInputError(f"{what} takes no {names}: leave it out")


def described(error: Exception) -> str:
    """The kind of an error and what it says, which may be nothing."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def row_by_row(log_likelihood: Callable[[Array], float]) -> Callable[[Array], Array]:
    """A function of one row as a function of rows; −inf where it is not defined, or its linear algebra fails."""

    def at(row: Array) -> float:
        if not np.isfinite(row).all():
            return -np.inf
        try:
            return float(np.real(log_likelihood(row)))
        except (np.linalg.LinAlgError, FloatingPointError, ZeroDivisionError):
            return -np.inf

    def at_rows(rows: Array) -> Array:
        try:
            return np.asarray(quietly(lambda: np.array([at(row) for row in rows])))
        except (TypeError, AttributeError, NotImplementedError) as error:
            raise EvaluationError(
                f"the model's loglike cannot be evaluated: {described(error)}", rows
            ) from error

    return at_rows


def quietly(function: Callable[[], Any]) -> Any:
    """The result of ``function``, without warnings: other packages warn of overflow where the density is 0."""
    import warnings

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function()
