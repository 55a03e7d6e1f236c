"""Ask and tell: draws go out, their values come in, the state moves one step.

The optimiser never calls the model. A loop, a cluster, a simulator or a person may do the evaluating.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats, as_key, positive_integer, require_memory
from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, InvalidInputError, InvalidTypeError
from mgvbp.estimators import Control, Estimate, Estimator, Sample, resolve_estimator
from mgvbp.estimators.draws import resolve_draws
from mgvbp.families import Family, resolve_family
from mgvbp.families.gaussian import Gaussian, checked_factor, frozen
from mgvbp.families.mixture import GaussianMixture
from mgvbp.problem.calling import checked_derivatives, checked_values
from mgvbp.problem.problem import Prior, Problem, grad_log_prior, log_prior, prior_and_dim

STREAM = 0x6D677662
"""Last word of all our seeds, so that a user's own ``default_rng(seed)`` gives other draws."""


class Frame(NamedTuple):
    """The iterate of a method: mean (d,), factor L (family array) and their momenta (None at the start)."""

    mean: Array
    factor: Array
    mean_momentum: Array | None = None
    factor_momentum: Array | None = None


class Step(NamedTuple):
    """The frame after a step, the step size that was taken and how often it had to be halved."""

    frame: Frame
    step_size: float
    reductions: int


class Stepper(Protocol):
    """What the optimiser needs of a method."""

    def step(self, family: Family, frame: Frame, estimate: Estimate, t: int) -> Step:
        """Take step ``t`` from ``frame``."""

    @property
    def estimator(self) -> str:
        """The name of the estimator that is used if the user chooses none."""


@dataclass(frozen=True)
class State:
    """All that a run needs to go on. It is immutable, and a run continues from a pickled copy bit for bit.

    The draws of an iteration are a function of ``key`` and ``iteration``, so no generator is kept.
    """

    frame: Frame
    iteration: int
    key: tuple[int, ...]
    control: Control | None = None


class Info(NamedTuple):
    """What a step found out about the Gaussian that its draws came from."""

    lower_bound: float
    """Estimate of the lower bound."""
    gap: float
    """``½‖g‖² + ‖G‖²``: the predicted distance to the optimum in nats, noise included."""
    step_size: float
    dropped: int
    """Draws left out because their value was not finite."""
    reductions: int
    """How often the step was halved to keep the precision positive definite."""
    noise: float
    """Standard deviation of the gap, where the method knows it; else inf."""
    radius: float
    """Trust radius in nats; inf for methods without one."""
    num_draws: int
    phase: str
    lower_bound_se: float = math.inf
    """Standard error of ``lower_bound`` over the draws, where it is known; else inf."""


class Optimizer:
    """An ask/tell run of a method.

    Parameters
    ----------
    method : Method
    target : int, Gaussian or Problem
        With a number of parameters, `tell` takes values of the whole log density. With a Gaussian prior, it takes
        values of the log-likelihood. The function of a `Problem` is not called here.
    family : {"full", "diagonal"} or BlockDiagonal
    estimator : {"auto", "h", "loglik", "regression", "gradient", "fisher"} or Estimator
    draws : {"auto", "mc", "antithetic", "sobol"}
    num_draws : int, optional
        Draws per iteration, S.
    initial_mean : array_like of shape (d,), optional
        Where to start; by default the prior's mean, or 0.
    initial_variance : float, or array_like of shape (d,) or (d, d), optional
        Variance to start with, 1 by default; only the family's entries of a matrix are used.
    rng : int or numpy.random.Generator
    state : State, optional
        Continue from this state instead.

    Examples
    --------
    See `Method.start`.
    """

    def __init__(
        self,
        method: Stepper,
        target: int | Gaussian | Problem,
        *,
        family: str | Family = "full",
        estimator: str | Estimator = "auto",
        draws: str = "auto",
        num_draws: int | None = None,
        initial_mean: ArrayLike | None = None,
        initial_variance: ArrayLike | None = None,
        rng: int | np.random.Generator = 0,
        state: State | None = None,
    ) -> None:
        self.method = method
        self.prior, self.dim = prior_and_dim(target)
        self.family = resolve_family(family, self.dim, getattr(target, "labels", None))
        known = isinstance(target, Problem) and target.has_gradient
        chosen = method.estimator if isinstance(estimator, str) and estimator == "auto" else estimator
        self.estimator = resolve_estimator(chosen, self.family, num_draws, draws, known)
        self.estimator.check_prior(self.prior)
        if isinstance(target, Problem):
            target.require(self.estimator.needs)
        if num_draws is None:
            num_draws = self.estimator.default_draws(self.family)
        self.num_draws = num_draws = positive_integer(num_draws, "num_draws")
        least = self.estimator.minimum_draws(self.family, draws)
        if num_draws < least:
            kind = "" if draws == "auto" else f"{draws} "
            raise InvalidInputError(
                f"num_draws={num_draws} is too small: the {self.estimator.name} estimator with the "
                f"{self.family.name} family needs at least {least} {kind}draws "
                f"at d={self.dim}; give more, a smaller family, or estimator='h'"
            )
        require_memory(
            2 * num_draws * self.dim, f"{num_draws:,} draws of {self.dim:,} numbers", "give num_draws="
        )
        self._sampler = resolve_draws(draws, num_draws, self.dim)
        if state is None:
            state = State(
                initial_frame(self.family, self.prior, initial_mean, initial_variance), 0, as_key(rng)
            )
        self.state = self._checked_state(state)
        self._asked: tuple[State, Array, Array] | None = None

    def _checked_state(self, state: State) -> State:
        if not isinstance(state, State):
            raise InvalidTypeError(f"state must be a mgvbp.State; got {type(state).__name__}")
        shape = self.family.shape
        if state.frame.mean.shape != (self.dim,) or state.frame.factor.shape != shape:
            raise InvalidInputError(
                f"the state is of another problem: mean {state.frame.mean.shape} and factor "
                f"{state.frame.factor.shape}; expected ({self.dim},) and {shape} for {self.family!r}"
            )
        return state

    @property
    def gaussian(self) -> Gaussian:
        """The current approximation, from which the next `ask` draws."""
        return Gaussian.from_factor(self.state.frame.mean, self.state.frame.factor, self.family)

    @property
    def trying(self) -> bool:
        """Whether draws lie far out, where the function may fail: never."""
        return False

    def ask(self) -> Array:
        """The draws to evaluate, (S, d); the same ones until `tell`."""
        return self._pending()[1].copy()

    def _pending(self) -> tuple[Array, Array]:
        if self._asked is None or self._asked[0] is not self.state:
            mean, factor, *_ = self.state.frame
            rng = np.random.default_rng((*self.state.key, self.state.iteration, STREAM))
            eps = self._sampler(rng, self.num_draws, self.dim)
            self._asked = self.state, eps, mean + self.family.from_frame(factor, eps)
        return self._asked[1:]

    def tell(
        self, values: ArrayLike, gradients: ArrayLike | None = None, squares: ArrayLike | None = None
    ) -> Info:
        """Take the values (S,) of the draws last asked for and move one step.

        Estimators that need them are also told gradients (S, d), and squares (S, d); see `Problem.evaluate_at`.
        """
        eps, theta = self._pending()
        q = self.gaussian
        log_likelihood = checked_values(values, theta, "log_likelihood")
        sample = Sample(eps, log_likelihood, log_prior(self.prior, theta), q.log_density_in_frame(eps))
        if self.estimator.needs != "values":
            slopes = checked_derivatives(gradients, theta, "grad") + grad_log_prior(self.prior, theta)
            sample = sample._replace(gradients=slopes)
        if self.estimator.needs == "squares":
            sample = sample._replace(squares=checked_derivatives(squares, theta, "value_grad_and_squares"))
        sample, dropped = _finite(sample)
        if len(sample.eps) < 2:
            raise DivergenceError(
                f"{dropped} of {len(theta)} draws have non-finite values (nan or inf): start where the "
                "function is finite (initial_mean, a smaller initial_variance); the draws are this "
                "exception's .theta",
                theta,
            )
        t = self.state.iteration + 1
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # an overflow ends in a DivergenceError
                estimate = self.estimator.estimate(q, self.prior, sample, self.state.control)
                frame, step_size, reductions = self.method.step(self.family, self.state.frame, estimate, t)
        except DivergenceError as error:
            error.theta = theta
            raise
        for array in (*frame, *(estimate.control or ())):
            if array is not None:
                array.setflags(write=False)
        self.state = State(frame, t, self.state.key, estimate.control)
        gap = 0.5 * float(np.vdot(estimate.g, estimate.g)) + float(np.vdot(estimate.G, estimate.G))
        return Info(
            lower_bound=estimate.lower_bound,
            gap=gap,
            step_size=step_size,
            dropped=dropped,
            reductions=reductions,
            noise=math.inf,
            radius=math.inf,
            num_draws=self.num_draws,
            phase="step",
            lower_bound_se=_standard_error(sample.h),
        )


def _standard_error(h: Array) -> float:
    """Of the mean of ``h`` (S,); inf if that cannot be computed."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(h.std(ddof=1)) / math.sqrt(len(h)) if len(h) > 1 else math.inf
    return error if math.isfinite(error) else math.inf


def initial_frame(
    family: Family, prior: Prior | None, mean: ArrayLike | None, variance: ArrayLike | None
) -> Frame:
    """Where to start: the given mean and variance, or the prior's mean (else 0) and variance 1."""
    d = family.dim
    if mean is None:
        mean = prior.mean if isinstance(prior, Gaussian | GaussianMixture) else np.zeros(d)
    mu = np.array(as_floats(mean, "initial_mean"))
    V = as_floats(1.0 if variance is None else variance, "initial_variance")
    if mu.shape != (d,):
        raise InvalidInputError(f"initial_mean has shape {mu.shape}; expected ({d},)")
    if V.shape not in ((), (d,), (d, d)):
        raise InvalidInputError(f"initial_variance has shape {V.shape}; expected (), ({d},) or ({d}, {d})")
    return Frame(frozen(mu), frozen(checked_factor(family, "variance", V, "initial_variance")))


def _finite(sample: Sample) -> tuple[Sample, int]:
    """Leave out draws whose value is not finite, and count them."""
    keep = np.isfinite(sample.log_likelihood) & np.isfinite(sample.log_prior)
    for rows in (sample.gradients, sample.squares):
        if rows is not None:
            keep &= np.isfinite(rows).all(axis=1)
    dropped = len(keep) - int(np.count_nonzero(keep))
    if dropped == 0:
        return sample, 0
    eps, values, prior, log_q, *derivatives = sample
    kept = (rows if rows is None else rows[keep] for rows in derivatives)
    return Sample(eps[keep], values[keep], prior[keep], log_q[keep], *kept), dropped
