"""The kernels that a walker applies in turn, and how the draws so far improve them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.sampling import tmixture
from mgvbp.sampling.frame import Frame, frame_of
from mgvbp.sampling.independence import Independence, Proposal
from mgvbp.sampling.nuts import Nuts
from mgvbp.sampling.points import Kernel
from mgvbp.sampling.slices import EllipticalSlice
from mgvbp.sampling.step_size import StepSize


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
    frame : Frame
        In which the target has about mean 0 and covariance I.
    step : StepSize or None
        Of NUTS; None without gradients.
    """

    proposal: Proposal
    frame: Frame = field(default_factory=Frame)
    step: StepSize | None = None

    def sequence(self, tuning: bool) -> Sequence[Kernel]:
        """The kernels of one transition."""
        first = Independence(self.proposal)
        if self.step is None:
            return first, EllipticalSlice(self.frame)
        return first, Nuts(self.frame, self.step.size if tuning else self.step.settled)

    def learn(self, acceptance: float) -> Kernels:
        """With a step size that has learnt from the acceptance of a trajectory."""
        return self if self.step is None else replace(self, step=self.step.learn(acceptance))

    def adapted(self, draws: Array, rng: np.random.Generator, tuning: bool) -> Kernels:
        """With proposals, and a frame, of the shape of ``draws`` (n, d), where these are enough to know it.

        Without ``tuning`` the frame of NUTS stays, for which its step size was found.
        """
        proposal = tmixture.fitted(draws, rng) or self.proposal
        if self.step is None:
            return Kernels(proposal, frame_of(draws) or self.frame)
        if not tuning:
            return replace(self, proposal=proposal)
        return Kernels(proposal, frame_of(draws) or self.frame, self.step.again())
