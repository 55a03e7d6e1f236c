"""The interface of an estimator: from draws ε and values to (g, G, lower bound), all in the frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from mgvbp.core.linalg import Array
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Needs, Prior


class Sample(NamedTuple):
    """Draws and their values; eps is (S, d), the others (S,).

    If the estimator needs them, gradients (S, d) are those of log prior + log-likelihood, and squares (S, d)
    are the sums over the observations of squared gradients of the log-likelihood.
    """

    eps: Array
    log_likelihood: Array
    log_prior: Array
    log_q: Array
    gradients: Array | None = None
    squares: Array | None = None

    @property
    def h(self) -> Array:
        """The paper's h-function: log prior + log-likelihood − log q."""
        return self.log_likelihood + self.log_prior - self.log_q


class Control(NamedTuple):
    """Control-variate constants per coordinate: for the mean (d,) and, for score functions, for the precision."""

    mean: Array
    precision: Array | None = None


class Estimate(NamedTuple):
    """Whitened gradients of the lower bound.

    g : ``L⁻¹ ∇_μ``, (d,).  G : ``−L⁻¹ ∇_Σ L⁻ᵀ``, a family array.
    """

    g: Array
    G: Array
    lower_bound: float
    control: Control | None = None


class Estimator(ABC):
    """From draws and values to whitened gradients."""

    name: str
    needs: ClassVar[Needs] = "values"

    @abstractmethod
    def estimate(self, q: Gaussian, prior: Prior | None, sample: Sample, control: Control | None) -> Estimate:
        """Estimate the gradients at ``q``; ``control`` is that of the previous iteration's estimate."""

    @abstractmethod
    def minimum_draws(self, family: Family, draws: str) -> int:
        """The fewest draws of the kind ``draws`` that determine the estimate."""

    @abstractmethod
    def default_draws(self, family: Family) -> int:
        """A sensible number of draws."""

    def check_prior(self, prior: Prior | None) -> None:  # noqa: B027  (most take any prior)
        """Raise if the estimator cannot be used with this prior."""
