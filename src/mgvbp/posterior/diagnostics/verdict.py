"""The verdict of a diagnosis, how sure it is, and advice in plain words.

A verdict is *settled* if it is the same for all k-hat within two standard errors. The verdict is "trust" only if that
is settled. A "trust" that is not settled becomes "correct", since weights do no harm where they are not needed. The
rules were chosen by their error rates for 117 approximations with d ≤ 10: the best full and diagonal Gaussians of the
benchmark's targets, with 20 seeds of 1,000 draws each. The truth was taken to be the worse of two verdicts from
50,000 draws each, without regard to standard errors.

- *Two standard errors*, not one. For k = ½, k is more than one standard error above k-hat in a fifth of all seeds,
  and more than two in a twentieth.
- *A tail of at most 5% of the draws*, unless the weights are even. With 1,000 draws k-hat is fitted to the 94 largest
  weights, which are not yet the tail. For targets with kinks or heavy tails it is then 0.3 to 0.5, but 0.7 to 1 with
  50,000 draws, so that no number of standard errors is enough.

Where the truth is "distrust", 7.7% of the seeds said "trust" by k-hat alone, 1.4% with two standard errors, and none
of 1,180 with both rules. None of 1,500 other seeds did either, with dimensions up to 40. The price is paid where the
truth is "trust": 88% of the seeds said so by k-hat alone, and 81% do with both rules. Nearly all do if the weights
are even, as they are for most good fits. Hardly any do if the weights are not even, which was so for four targets of
21, with k-hat between 0.43 and 0.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.posterior.diagnostics.weights import shape_error, tail_size

Verdict = Literal["trust", "correct", "distrust"]
VERDICTS: tuple[Verdict, ...] = ("trust", "correct", "distrust")

GOOD = 0.5
"""k-hat up to which the weights have a finite variance (Vehtari et al. 2024; for variational fits Yao et al. 2018)."""
HIGHEST = 0.7
"""k-hat up to which smoothed weights are of use with any affordable number of draws (the same references)."""
EVEN = 0.95
"""Weights are even if the effective sample size is at least this share of the draws. k-hat then hardly matters:
weighting changes expectations by at most √(1/0.95 − 1) = 0.23 standard deviations."""
SHIFT = 0.2
"""Largest error of a mean, in standard deviations, that counts as small: a 95% interval still covers 94.5%."""
RATIO = 1.1
"""Largest factor by which a standard deviation may be off: a 95% interval that is too short by it covers 92.5%."""
ERRORS = 2.0
"""A settled verdict is the same for all k-hat within this many standard errors."""
TAIL = 0.05
"""The weights that k-hat is fitted to count as a tail if they are at most this share of the draws."""
MOST_DRAWS = 1_000_000
"""Largest number of draws that is advised."""
FAR = 0.1
"""A fit that is more nats than this below the family's optimum should go on."""
NEGLIGIBLE = 7.0
"""Another optimum is negligible if its bound is this many nats lower: its mode has about a thousandth of the mass."""
MIXTURES = 20
"""Most parameters for which a mixture is advised: with more, its surrogate needs more draws than it can hold."""
MANY = 100
"""With this many parameters weights are nearly always uneven, however good the marginals are."""

MAYBE: dict[Verdict, str] = {
    "trust": "it may do as it is",
    "correct": "weights may correct it",
    "distrust": "the weights may be unable to correct it",
}


def limit(num_draws: int) -> float:
    """Largest k-hat for which this many draws are enough: ``min(1 − 1/log₁₀ S, 0.7)`` (Vehtari et al. 2024)."""
    return min(1.0 - 1.0 / math.log10(num_draws), HIGHEST)


def correctable(khat: float, ess: float, num_draws: int) -> bool:
    """Whether the weights can correct the approximation."""
    return khat <= limit(num_draws) or ess >= EVEN * num_draws


def near(mean_shift: Array, sd_ratio: Array) -> bool:
    """Whether the weights change means and deviations little."""
    return bool(((np.abs(mean_shift) <= SHIFT) & (sd_ratio <= RATIO) & (sd_ratio >= 1.0 / RATIO)).all())


@dataclass(frozen=True)
class Judgement:
    """Whether q can be used as it is, with importance weights, or not at all.

    Parameters
    ----------
    khat, khat_se : float
        Both are infinite if there is no tail to fit.
    ess : float
    num_draws : int
    near : bool
        See `near`.
    elsewhere : bool
        Whether there are other optima. No draw from q sees them, so that the verdict is "distrust" for any weights.

    Examples
    --------
    >>> few = Judgement(khat=0.2, khat_se=shape_error(0.2, 1000), ess=800.0, num_draws=1000, near=True)
    >>> few.verdict, few.settled, few.needed
    ('correct', False, 5000)
    """

    khat: float
    khat_se: float
    ess: float
    num_draws: int
    near: bool
    elsewhere: bool = False

    @property
    def verdict(self) -> Verdict:
        """What to do; "trust" only if that is settled."""
        found = self._at(self.khat)
        return "correct" if found == "trust" and not self.settled else found

    @property
    def settled(self) -> bool:
        """Whether the verdict is the same within two standard errors."""
        return len(self.possible) == 1 and (self.possible != ("trust",) or self._even or self._has_tail)

    @property
    def possible(self) -> tuple[Verdict, ...]:
        """The verdicts within two standard errors, the best first."""
        reach = ERRORS * self.khat_se if math.isfinite(self.khat) else 0.0
        best, worst = (VERDICTS.index(self._at(khat)) for khat in (self.khat - reach, self.khat + reach))
        return VERDICTS[best : worst + 1]

    @property
    def needed(self) -> int | None:
        """The larger number of draws that would settle the question if k-hat stayed the same; None if too many.

        The question is whether weights can correct q, if that is open, and otherwise whether they have to.
        """
        open_to_distrust = "distrust" in self.possible

        def tells(more: Judgement) -> bool:
            return more.settled or (open_to_distrust and more.possible[-1] != "distrust")

        return next((number for number in _round_numbers(self.num_draws) if tells(self._with(number))), None)

    @property
    def doubt(self) -> str:
        """A sentence about the other verdicts that are possible; empty if the verdict is settled."""
        if self.settled:
            return ""
        others = [MAYBE[verdict] for verdict in self.possible if verdict != self.verdict]
        number = self.needed
        more = (
            f"k-hat is so close to a limit that even {MOST_DRAWS:,} might not tell"
            if number is None
            else f"diagnose({number}) should tell more"
        )
        return f" That is not settled with {self.num_draws:,} draws: {', or '.join(others)}; {more}."

    @property
    def _even(self) -> bool:
        return self.ess >= EVEN * self.num_draws

    @property
    def _has_tail(self) -> bool:
        return tail_size(self.num_draws) <= TAIL * self.num_draws

    def _at(self, khat: float) -> Verdict:
        """The verdict if k-hat had no error."""
        if self.elsewhere or not correctable(khat, self.ess, self.num_draws):
            return "distrust"
        return "trust" if self.near and (khat <= GOOD or self._even) else "correct"

    def _with(self, num_draws: int) -> Judgement:
        """The judgement with more draws, if k-hat and the share of effective draws stayed the same."""
        return replace(
            self,
            khat_se=shape_error(self.khat, num_draws),
            ess=self.ess * num_draws / self.num_draws,
            num_draws=num_draws,
        )


def _round_numbers(above: int) -> Iterator[int]:
    """1, 2 and 5 times powers of ten that are larger than ``above``, up to the most draws that are advised."""
    powers = (10**p for p in range(1, round(math.log10(MOST_DRAWS)) + 1))
    return (n for power in powers for n in (power, 2 * power, 5 * power) if above < n <= MOST_DRAWS)


def advise(
    judgement: Judgement,
    family: str,
    dim: int,
    gap: float | None,
    below: tuple[float, ...] = (),
    cost: int | None = None,
) -> str:
    """What to do, in a few sentences.

    ``below`` has how many nats lower the other optima are; ``cost`` is about how many evaluations a mixture takes.
    """
    unfinished = (
        f" The lower bound seems {gap:.2g} nats below what the family can reach: let the fit go on first "
        "(max_iterations, tol, or method='auto')."
        if gap is not None and gap > FAR
        else ""
    )
    if judgement.verdict == "trust":
        return "Use it as it is: importance weights change means and deviations little." + unfinished
    if judgement.verdict == "correct":
        return "Use importance-corrected draws: posterior.resample(n)." + judgement.doubt + unfinished
    if below:
        return _elsewhere(below) + unfinished
    choices = ["posterior.mcmc(), which draws from the posterior itself"]
    if family != "mixture" and dim <= MIXTURES:
        choices.insert(0, "family='mixture'" + (f" (about {cost:,} evaluations)" if cost else ""))
    if family not in ("full", "mixture"):
        choices.insert(0, "a richer family (family='full', or larger blocks)")
    words = f"The weights cannot correct it: try {', or '.join(choices)}." + judgement.doubt
    if dim >= MANY:
        words += (
            " With so many parameters single marginals and predictions can be good all the same: check those."
        )
    return words + unfinished


def _elsewhere(below: tuple[float, ...]) -> str:
    """What to do if starts went to other optima, which are ``below`` nats lower."""
    found = (
        f"{len(below)} starts went to other optima, the best of them"
        if len(below) > 1
        else "A start went to another optimum,"
    )
    return (
        f"{found} with a lower bound {min(below):.2g} nats lower. Draws from one mode, and their importance weights, "
        "cannot see another; the difference is about the log of how much more probable this one is. Unless that "
        "is enough to leave the others out, make the modes one (order what can be exchanged, a stronger prior) or keep "
        "them all: family='mixture' with the same starts=."
    )
