"""Why a run ended: one code for each reason, with its sentence and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

ELSEWHERE = "another start (starts=, initial_mean=, initial_variance=) or a reparametrised model"


class Outcome(Enum):
    """Reasons to stop. Each value has a sentence, with braces in the place of numbers, and advice."""

    CERTIFIED = ("the lower bound is within {tol:g} nats of its maximum", "")
    CONFIRMED = ("fresh draws confirm the {what}, {kl:.3f} nats (se {se:.3f}) from the posterior", "")
    UNCONFIRMED = (
        "how far the {what} is from the posterior is not sure: {kl:.2g} nats (se {se:.2g})",
        "try a larger max_evaluations, another parametrisation, or posterior.mcmc()",
    )
    NOISY = (
        "the values are noisy, and a mixture needs exact ones",
        "use family='full', which averages over noise, or a log-likelihood without noise",
    )
    LEVEL = (
        "the lower bound no longer rises: {rounds} rounds in a row gained no more than {tol:.2g} nats each; how far it "
        "is below its maximum is not known",
        "",
    )
    NO_STEP = (
        "every round of steps down to {step:g} lowered the bound, and was undone",
        "check the gradient, or start elsewhere (initial_mean=)",
    )
    SETTLED = ("no improvement in {patience} iterations", "")
    NEAR = (
        "{reached}; the gradients of the last {window} iterations put the lower bound {gap:.2g} nats below its maximum",
        "",
    )
    MAX_ITERATIONS = ("reached max_iterations = {limit}", "try a larger max_iterations")
    MAX_EVALUATIONS = ("reached max_evaluations = {limit}", f"try a larger max_evaluations, {ELSEWHERE}")
    IMPROPER = (
        "the density seems improper: a direction has no scale; give it a (stronger) prior",
        "if the prior is proper, try initial_variance= of the parameters' size",
    )
    FLAT = (
        "the density seems improper: along the axis of {where} it does not fall far from the mean",
        "give the parameter a (stronger) prior",
    )
    OUTSIDE = (
        "{share} of the Gaussian's mass lies where the log density is not finite{where}: no Gaussian has a bound",
        "constrain the parameter (Positive(), Interval() or another transform in Parameters); a boundary that "
        "depends on several parameters, or on the data, is for posterior.mcmc(), which stays inside",
    )
    INCONSISTENT = (
        "the same draw had another value, {nats:.2g} nats away, in the company of other draws",
        "each value must depend on its own row of the draws only; if it is random, with a seed of its own, give noise=",
    )
    DISAGREE = (
        "values and gradients contradict each other: {where}",
        "check the gradient, and that it belongs to the same function and prior",
    )
    JUMP = (
        "the values jump by {nats:.2g} nats where the gradients do not show it, so that these cannot judge the result",
        "make the function continuous, or fit it by values alone (grad=None)",
    )
    UNSETTLED = ("the tails of {where} could not be settled", f"try {ELSEWHERE}")
    SURPASSED = (
        "another Gaussian had a lower bound that is {nats:.2g} nats higher, but led to no result",
        f"try {ELSEWHERE}",
    )
    TOO_NOISY = (
        "the noise of {draws} draws hides how far the lower bound is below its maximum",
        "try a larger tol, or another parametrisation",
    )
    NO_REGION = ("no region was found where a Gaussian fits", f"try {ELSEWHERE}")
    FELL = (
        "the lower bound fell from {first:.6g} at the start to {last:.6g}",
        "try method='auto', or a smaller step_size",
    )
    CALLBACK = ("stopped by the callback", "")
    INTERRUPTED = ("interrupted", "")
    BROKE_DOWN = ("broke down: {error}", f"try {ELSEWHERE}")


REFUTED = frozenset(
    {
        Outcome.IMPROPER,
        Outcome.FLAT,
        Outcome.OUTSIDE,
        Outcome.INCONSISTENT,
        Outcome.DISAGREE,
        Outcome.JUMP,
        Outcome.SURPASSED,
        Outcome.UNSETTLED,
    }
)
"""What shows that no lower bound, or none that was found, can be believed."""


PROPRIETY = "tails that fall"
"""The name of the check that fails where the density seems improper: there may be no posterior then."""


class Check(NamedTuple):
    """An attempt to refute a result."""

    name: str
    passed: bool
    found: str
    """What came of it, in a few words."""


@dataclass(frozen=True)
class Ending:
    """An outcome in a sentence.

    Examples
    --------
    >>> ending = Ending.of(Outcome.MAX_ITERATIONS, limit=500)
    >>> ending.sentence, ending.advice
    ('reached max_iterations = 500', 'try a larger max_iterations')
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
