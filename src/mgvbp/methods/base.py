r"""One step in the frame, shared by all methods.

With :math:`P = L L^\top`, whitened gradients g and G, momentum m (mean) and M (precision, in the frame):

.. math::
    m &\leftarrow \omega\, m + (1-\omega)\, L^{-\top} g, \qquad
    M \leftarrow \omega\, M + (1-\omega)\, \rho\, G \\
    L^+ &= L K, \quad K K^\top = F(\beta M), \qquad \mu^+ = \mu + \beta\, m, \qquad M^+ = K^{-1} M K .

A method is the function F. :math:`\rho` is ``precision_scale``. The last formula is the paper's vector
transport: M commutes with F, so that :math:`E\,m\,E^\top` with :math:`E = (P^+ P^{-1})^{1/2}` is
:math:`L M F L^\top = L^+ (K^{-1} M K) L^{+\top}`. No inverse, root or determinant is formed.
A structured family (`mgvbp.families.structured`) has its own coordinates, in which M is the whitened gradient and the
step its own retraction: there the methods take the same step, whose length to first order is that of the formula.
The momentum is Algorithm 1's with the factor ω that the listing drops: without it m would grow without bound.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mgvbp.core.checks import positive_integer, positive_number
from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, InvalidInputError, NotPositiveDefiniteError
from mgvbp.estimators import Estimate
from mgvbp.families import Family, Structured
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods.optimizer import Frame, Optimizer, Step
from mgvbp.problem.problem import Problem

MAX_HALVINGS = 200
TRY = "try method='auto', clip_gradient=100 or a smaller step_size"
"""What helps against a divergence. Where the density falls exponentially, as in survival models, the first gradients
are larger by many powers of ten than those near the optimum: then only a clip helps, as in the paper's experiments."""
SMALLEST = 1e-140
"""Factors of the precision beyond this (or its inverse) would overflow when they are squared."""


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    r"""Hyper-parameters that all methods share; the defaults are the paper's for the Labour data.

    Parameters
    ----------
    step_size : float, or callable of the iteration t = 1, 2, ...
        The learning rate β.
    decay_after : int or None
        t' in :math:`\beta_t = \min(\beta, \beta t'/t)`; None, or a callable ``step_size``: no decay.
    momentum : float
        The weight ω of the past direction, 0 ≤ ω < 1.
    precision_scale : float
        Factor ρ on the precision's gradient. 1: the paper's equations (half a natural gradient);
        2: the authors' published code (a whole one). Compare methods at equal values.
    clip_gradient, clip_natural_gradient : float or None
        Largest Euclidean norm of the stacked gradient (∇_μ, ρ∇_Σ) and of the stacked natural gradient;
        a longer one is rescaled.
    clip_initial : float or None
        Replaces whichever of them is set at the first iteration.
    window, patience : int
        The lower bound is averaged over ``window`` iterations; the run stops when this average has not
        improved for ``patience`` iterations.
    max_iterations : int
        Used where `fit` is not given one.
    """

    climbs: ClassVar[bool] = True
    """Whether its fixed point is the maximum of the lower bound, so that the best iterate is the highest one."""

    step_size: float | Callable[[int], float] = 0.01
    decay_after: int | None = 1000
    momentum: float = 0.4
    precision_scale: float = 1.0
    clip_gradient: float | None = None
    clip_natural_gradient: float | None = None
    clip_initial: float | None = None
    window: int = 30
    patience: int = 500
    max_iterations: int = 1200

    def __post_init__(self) -> None:
        def named(field: str) -> tuple[Any, str]:
            return getattr(self, field), f"{type(self).__name__}: {field}"

        if not callable(self.step_size):
            positive_number(*named("step_size"))
        positive_number(*named("precision_scale"))
        for field in ("clip_gradient", "clip_natural_gradient", "clip_initial"):
            if getattr(self, field) is not None:
                positive_number(*named(field))
        for field in ("window", "patience", "max_iterations"):
            positive_integer(*named(field))
        if self.decay_after is not None:
            positive_integer(*named("decay_after"))
        if not isinstance(self.momentum, (int, float, np.number)) or not 0.0 <= self.momentum < 1.0:
            raise InvalidInputError(
                f"{type(self).__name__}: momentum must be in [0, 1); got {self.momentum!r}"
            )
        if self.clip_initial and not (self.clip_gradient or self.clip_natural_gradient):
            raise InvalidInputError(
                f"{type(self).__name__}: clip_initial replaces a threshold: set that threshold too"
            )

    @property
    def estimator(self) -> str:
        """The estimator of `fit` and `start` where none is chosen."""
        return "auto"

    def start(self, target: int | Gaussian | Problem, **options: Any) -> Optimizer:
        """Begin an ask/tell run; see `Optimizer` for the arguments.

        Examples
        --------
        >>> from mgvbp import MGVBP
        >>> opt = MGVBP(step_size=0.1).start(2, rng=0)
        >>> for _ in range(100):
        ...     theta = opt.ask()
        ...     info = opt.tell(-((theta - 3.0) ** 2).sum(axis=1))
        >>> opt.gaussian.mean.round(3)
        array([3., 3.])
        """
        return Optimizer(self, target, **options)

    # --- what makes a method ----------------------------------------------------------------------

    @abstractmethod
    def scaling(self, family: Family, M: Array, beta: float) -> Array:
        """The triangular ``K`` that takes the frame along ``βM``; raises `NotPositiveDefiniteError`."""

    def apply(self, family: Family, L: Array, K: Array) -> Array:
        """The new factor ``L⁺``."""
        return family.product(L, K)

    def transport(self, family: Family, K: Array, M: Array) -> Array:
        """The momentum in the new frame."""
        return family.conjugate(K, M)

    def mean_direction(self, family: Family, L: Array, g: Array) -> Array:
        """What the mean's momentum averages: the natural gradient ``Σ∇_μ = L⁻ᵀ g``."""
        return family.from_frame(L, g)

    def mean_move(self, family: Family, L: Array, m: Array) -> Array:
        """The move of the mean per unit of step, with ``L`` the new factor."""
        return m

    def natural_gradient(self, family: Family, L: Array, G: Array) -> Array:
        """The argument of the method's retraction, whose norm is clipped: ``−∇_Σ = L G Lᵀ``."""
        return family.precision_tangent(L, G)

    # --- the step ---------------------------------------------------------------------------------

    def step(self, family: Family, frame: Frame, estimate: Estimate, t: int) -> Step:
        """Take step ``t`` (1, 2, ...) from ``frame`` along the estimated gradients.

        Where QBVI's first-order update, or round-off in a huge step, loses positive definiteness, the step is
        halved until it does not; `Step.reductions` counts the halvings.
        """
        mu, L, m, M = frame
        g, G = estimate.g, estimate.G
        if isinstance(family, Structured) and (self.clip_gradient or self.clip_natural_gradient):
            raise InvalidInputError(
                f"the gradient of a {family.name} family cannot be clipped: leave clip_gradient and "
                "clip_natural_gradient out, and take a smaller step_size"
            )
        if not (np.isfinite(g.sum()) and np.isfinite(G.sum())):
            raise DivergenceError(f"the gradient is not finite: the iterates ran away; {TRY}")
        weight = self._clipping(family, L, g, G, first=m is None) * (
            1.0 if m is None else 1.0 - self.momentum
        )
        direction = weight * self.mean_direction(family, L, g)
        tangent = weight * self.precision_scale * G
        if m is not None and M is not None:
            direction += self.momentum * m
            tangent += self.momentum * M
        m, M = direction, tangent
        if isinstance(family, Structured):
            K, beta, reductions = None, self.step_size_at(t), 0
            L_new = family.moved(L, M, beta / math.sqrt(2.0))
        else:
            K, beta, reductions = self._scaling_within(family, M, self.step_size_at(t))
            L_new = self.apply(family, L, K)
        mu_new = mu + beta * self.mean_move(family, L_new, m)
        scales = family.diagonal(L_new)
        if not (np.isfinite(mu_new).all() and scales.min() > SMALLEST and scales.max() < 1.0 / SMALLEST):
            raise DivergenceError(f"the mean or the precision ran out of bounds; {TRY}")
        if self.momentum > 0.0 and K is not None:
            M = self.transport(family, K, M)
        return Step(Frame(mu_new, L_new, m, M), beta, reductions)

    def _scaling_within(self, family: Family, M: Array, beta: float) -> tuple[Array, float, int]:
        """``K`` for the largest of β, β/2, β/4, ... that is safely positive definite."""
        safe = True
        for reductions in range(MAX_HALVINGS):
            try:
                K = self.scaling(family, M, beta)
            except NotPositiveDefiniteError:
                safe = False
            else:
                if safe:
                    return K, beta, reductions
                # One halving more: if I + A is positive definite, I + ½A has no eigenvalue below ½.
                safe = True
            beta *= 0.5
        raise DivergenceError(f"no step down to {beta:.1e} keeps the precision positive definite")

    def step_size_at(self, t: int) -> float:
        """The learning rate of iteration ``t`` = 1, 2, ..."""
        if callable(self.step_size):
            return positive_number(self.step_size(t), f"step_size at iteration {t}")
        if self.decay_after is None or t <= self.decay_after:
            return self.step_size
        return self.step_size * self.decay_after / t

    def _clipping(self, family: Family, L: Array, g: Array, G: Array, *, first: bool) -> float:
        """The factor that brings the gradient and the natural gradient within their thresholds."""
        replacement = self.clip_initial if first else None
        shrink = 1.0
        if self.clip_gradient is not None:
            gradient = family.times(L, g), self.precision_scale * family.precision_tangent(L, G)
            shrink *= _shrinkage(replacement or self.clip_gradient, *gradient)
        if self.clip_natural_gradient is not None:
            natural = family.from_frame(L, g), self.precision_scale * self.natural_gradient(family, L, G)
            shrink *= _shrinkage(
                replacement or self.clip_natural_gradient, shrink * natural[0], shrink * natural[1]
            )
        return shrink


def _shrinkage(limit: float, vector: Array, matrix: Array) -> float:
    """The factor that brings the norm of the stacked (vector, matrix) down to ``limit``."""
    norm = math.hypot(np.linalg.norm(vector), np.linalg.norm(matrix))
    return limit / norm if norm > limit else 1.0
