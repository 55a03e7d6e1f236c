"""The kernels that a walker applies in turn, and how the draws so far improve them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.sampling.frame import Frame, frame_of
from mgvbp.sampling.independence import Independence, Proposal
from mgvbp.sampling.nuts import Nuts
from mgvbp.sampling.points import Kernel
from mgvbp.sampling.slices import EllipticalSlice
from mgvbp.sampling.step_size import StepSize
from mgvbp.sampling.tmixture import TMixture, fitted


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of a fit as proposals: positions in its own frame. The fit may be a mixture, with several modes."""

    q: Gaussian

    def sample(self, rng: np.random.Generator) -> Array:
        """One draw, (d,)."""
        drawn = self.q.sample(1, rng) - self.q.mean
        return np.asarray(self.q.family.to_frame(self.q.factor, drawn)[0])

    def log_density(self, position: Array) -> float:
        """The log density at a position (d,), up to a constant."""
        return float(
            self.q.log_density(self.q.mean + self.q.family.from_frame(self.q.factor, position[None]))[0]
        )


@dataclass(frozen=True, eq=False)
class Kernels:
    """Independence Metropolis, which goes far, then NUTS or an elliptical slice, which goes on where that is rejected.

    Parameters
    ----------
    proposal : Proposal
        Of independence Metropolis.
    shape : TMixture or Frame
        What the target looks like: for slices a mixture; for NUTS a frame in which it has about covariance I.
    step : StepSize or None
        Of NUTS; None without gradients.
    """

    proposal: Proposal
    shape: TMixture | Frame
    step: StepSize | None = None

    @classmethod
    def of(cls, q: Gaussian, gradients: bool) -> Kernels:
        """The kernels to begin with, for a target that looks like the fit ``q``."""
        return cls(Draws(q), Frame(), StepSize()) if gradients else cls(Draws(q), TMixture.standard(q.dim))

    def sequence(self, tuning: bool) -> Sequence[Kernel]:
        """The kernels of one transition."""
        first = Independence(self.proposal)
        if isinstance(self.shape, TMixture):
            return first, EllipticalSlice(self.shape)
        assert self.step is not None
        return first, Nuts(self.shape, self.step.size if tuning else self.step.settled)

    def learn(self, acceptance: float) -> Kernels:
        """With a step size that has learnt from the acceptance of a trajectory."""
        return self if self.step is None else replace(self, step=self.step.learn(acceptance))

    def adapted(self, draws: Array, rng: np.random.Generator, tuning: bool) -> Kernels:
        """With the shape of ``draws`` (n, d), where these are enough to know it.

        Without ``tuning`` the frame of NUTS stays, for which its step size was found.
        """
        mixture = fitted(draws, rng)
        if mixture is None:
            return self if self.step is None or not tuning else replace(self, step=self.step.again())
        if self.step is None:
            return Kernels(mixture, mixture)
        if not tuning:
            return replace(self, proposal=mixture)
        return Kernels(mixture, frame_of(draws) or self.shape, self.step.again())
