"""Why a run ended: one code for each reason, with its sentence and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """Reasons to stop. Each value has a sentence, with braces in the place of numbers, and advice."""

    CERTIFIED = ("the lower bound is within {tol:g} nats of its maximum", "")
    SETTLED = ("no improvement in {patience} iterations", "")
    MAX_ITERATIONS = ("reached max_iterations = {limit}", "try a larger max_iterations")
    MAX_EVALUATIONS = ("reached max_evaluations = {limit}", "try a larger max_evaluations")
    IMPROPER = ("the density seems improper: a direction has no scale; give it a (stronger) prior", "")
    NO_REGION = ("no region was found where a Gaussian fits", "")
    CALLBACK = ("stopped by the callback", "")
    INTERRUPTED = ("interrupted", "")
    BROKE_DOWN = ("broke down: {error}", "")


@dataclass(frozen=True)
class Ending:
    """An outcome in a sentence.

    Examples
    --------
    >>> ending = Ending.of(Outcome.MAX_EVALUATIONS, limit=500)
    >>> ending.sentence, ending.advice
    ('reached max_evaluations = 500', 'try a larger max_evaluations')
    """

    outcome: Outcome
    sentence: str

    @classmethod
    def of(cls, outcome: Outcome, **measured: object) -> Ending:
        """The outcome with its numbers filled in."""
        sentence: str = outcome.value[0]
        return cls(outcome, sentence.format(**measured))

    @property
    def advice(self) -> str:
        """What to try; empty if there is no general advice."""
        advice: str = self.outcome.value[1]
        return advice
