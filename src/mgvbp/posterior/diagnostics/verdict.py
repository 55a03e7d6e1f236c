"""The verdict of a diagnosis, for each parameter and as a whole, how sure it is, and advice in plain words.

A parameter is *trusted* if its mean is within a tenth of a standard deviation, and its standard deviation within a
tenth, of those of the posterior: both estimates, and two standard errors more, have to be within this tolerance.
If not, importance weights *correct* it, provided that k-hat lets them. Else it is *distrusted*. The whole is as good as
its worst parameter.

The tolerance is what is wanted. The errors to spare, the outer draws and the test of mixtures were chosen on posteriors
that are known, by the two mistakes that ``benchmarks/verdict.py`` counts. What made the difference there is that the
draws of the fit take part (`pool`): fresh draws of q alone trust many a posterior whose tails, or other modes, they
never meet. A surrogate through all of these makes the errors a third (`predicted`), so that 8% can be told from 12%.
With more than 20 parameters the weights of all together say little. There each parameter is judged by draws moved out
along its own line, and the whole by draws that are scaled (`lines`).

A mixture has to pass one more test. Its search has measured its distance from the posterior, with a surrogate that also
expects mass where no draw of the mixture comes. With a standard error to spare, that has to be within 0.05 nats, the
default of ``kl_tol``.

A verdict is *settled* if it is the same for all marginals and all k-hat within two standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mgvbp.posterior.diagnostics.marginals import Marginals
from mgvbp.posterior.diagnostics.weights import shape_error

Verdict = Literal["trust", "correct", "distrust"]
VERDICTS: tuple[Verdict, ...] = ("trust", "correct", "distrust")

HIGHEST = 0.7
"""k-hat up to which smoothed weights are of use with any affordable number of draws (Vehtari et al. 2024)."""
EVEN = 0.95
"""Weights are even if the effective sample size is at least this share of the draws. k-hat then hardly matters:
weighting changes expectations by at most √(1/0.95 − 1) = 0.23 standard deviations."""
TOLERANCE = 0.1
"""Largest distance of a mean, in standard deviations, and of a standard deviation, as a share, that is trusted. A
95% interval that is displaced by it still covers 94.9%, and one that is too short by it 92.4%."""
ERRORS = 2.0
"""Standard errors by which the estimates must be within the tolerance: chosen on one half of the posteriors that are
known (full covariances), where all that is trusted is right, and 82% of the right are trusted. With 1 it is 95 and 91%.
On the other half it is 100 and 76% with either."""
SURE = 2.0
"""A settled verdict is the same within so many standard errors."""
CLOSE = 0.05
"""Largest distance of a mixture, in nats, with which it is trusted: the default of ``kl_tol``."""
MOST_DRAWS = 1_000_000
"""Largest number of draws that is advised."""
FAR = 0.1
"""A fit that is more nats than this below the family's optimum should go on."""
NEGLIGIBLE = 7.0
"""Another optimum is negligible if its bound is this many nats lower: its mode has about a thousandth of the mass."""
MIXTURES = 20
"""Most parameters for which a mixture is advised: with more, its surrogate needs more draws than it can hold."""

COST = (100, 60, 1000)
"""A mixture by values takes the evaluations of its own Gaussian fit, at most the first number times d + 2, and the
second times d + 2 besides; with gradients the third times d + 10. Of 69 fits by values four in five took between two
thirds of that and half as much again, and of 62 with gradients seven in ten between half and twice as many
(``benchmarks/mixtures.py``)."""

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


@dataclass(frozen=True, eq=False)
class Judgement:
    """Whether q can be used as it is, with importance weights, or not at all.

    Parameters
    ----------
    marginals : Marginals or None
        None if nothing can be known about them.
    khat, khat_se, ess : float
        Of the weights of fresh draws; k-hat and its error are infinite if there is no tail to fit.
    num_draws, reused : int
        Fresh draws, and draws of the fit that took part.
    farthest : float or None
        The distance of a mixture as its search has measured it, and one standard error; None for a Gaussian.
    elsewhere : bool
        Whether there are other optima. No draw from q sees them, so that the verdict is "distrust" for any weights.

    Examples
    --------
    >>> import numpy as np
    >>> known = Marginals(*np.array([[0.02, 0.08], [0.01, 0.03], [0.0, 0.01], [0.01, 0.02]]))
    >>> found = Judgement(known, khat=0.3, khat_se=0.1, ess=800.0, num_draws=1000)
    >>> found.verdicts, found.verdict, found.settled
    (('trust', 'correct'), 'correct', False)
    """

    marginals: Marginals | None
    khat: float
    khat_se: float
    ess: float
    num_draws: int
    reused: int = 0
    farthest: float | None = None
    elsewhere: bool = False

    @property
    def unseen(self) -> bool:
        """Whether there may be mass that no draw of q has met."""
        return self.elsewhere or not (self.farthest is None or self.farthest <= CLOSE)

    @property
    def verdict(self) -> Verdict:
        """That of the worst parameter."""
        return self._at(ERRORS, 0.0)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each parameter; empty if nothing is known about them."""
        if self.marginals is None:
            return ()
        otherwise = self._without(0.0)
        within = self.marginals.off(ERRORS) <= TOLERANCE
        return tuple("trust" if inside and not self.unseen else otherwise for inside in within)

    @property
    def settled(self) -> bool:
        """Whether the verdict is the same within two standard errors."""
        return len(self.possible) == 1

    @property
    def possible(self) -> tuple[Verdict, ...]:
        """The verdicts within two standard errors, the best first."""
        best, worst = (VERDICTS.index(self._at(errors, errors)) for errors in (-SURE, SURE))
        return VERDICTS[best : worst + 1]

    @property
    def needed(self) -> int | None:
        """The larger number of draws that would settle it if the estimates stayed the same; None if too many."""
        return next((n for n in _round_numbers(self.num_draws) if self._with(n).settled), None)

    @property
    def doubt(self) -> str:
        """A sentence about the other verdicts that are possible; empty if the verdict is settled."""
        if self.settled:
            return ""
        others = [MAYBE[verdict] for verdict in self.possible if verdict != self.verdict]
        number = self.needed
        more = f"diagnose({number}) should tell more"
        if number is None:
            more = f"it is so close to a limit that even {MOST_DRAWS:,} might not tell"
        return f" That is not settled with {self.num_draws:,} draws: {', or '.join(others)}; {more}."

    def _at(self, errors: float, khat_errors: float) -> Verdict:
        """The verdict if the marginals were so many standard errors worse, and k-hat as well."""
        near = self.marginals is not None and bool((self.marginals.off(errors) <= TOLERANCE).all())
        return "trust" if near and not self.unseen else self._without(khat_errors)

    def _without(self, khat_errors: float) -> Verdict:
        """The verdict on what is not trusted."""
        khat = self.khat + (khat_errors * self.khat_se if math.isfinite(self.khat) else 0.0)
        usable = not self.elsewhere and correctable(khat, self.ess, self.num_draws)
        return "correct" if usable else "distrust"

    def _with(self, num_draws: int) -> Judgement:
        """The judgement with more draws, if the estimates and the share of effective draws stayed the same."""
        known = self.marginals
        if known is not None:
            smaller = math.sqrt((self.num_draws + self.reused) / (num_draws + self.reused))
            known = known._replace(
                shift_se=smaller * known.shift_se, log_ratio_se=smaller * known.log_ratio_se
            )
        return replace(
            self,
            marginals=known,
            khat_se=shape_error(self.khat, num_draws),
            ess=self.ess * num_draws / self.num_draws,
            num_draws=num_draws,
        )


def _round_numbers(above: int) -> Iterator[int]:
    """1, 2 and 5 times powers of ten that are larger than ``above``, up to the most draws that are advised."""
    powers = (10**p for p in range(1, round(math.log10(MOST_DRAWS)) + 1))
    return (n for power in powers for n in (power, 2 * power, 5 * power) if above < n <= MOST_DRAWS)


def cost_of_mixture(evaluations: int, dim: int, gradients: bool) -> int:
    """About how many evaluations a mixture takes where a Gaussian took so many, to two digits."""
    most, rounds, climbs = COST
    total = climbs * (dim + 10) if gradients else min(evaluations, most * (dim + 2)) + rounds * (dim + 2)
    return int(float(f"{total:.2g}"))


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
    unfinished = ""
    if gap is not None and gap > FAR:
        far = f" The lower bound seems {gap:.2g} nats below what the family can reach"
        unfinished = f"{far}: let the fit go on first (max_iterations, tol, or method='auto')."
    if judgement.verdict == "trust":
        return (
            "Use it as it is: all means are within 0.1 standard deviations of the posterior's, and all standard "
            "deviations within 10%." + judgement.doubt + unfinished
        )
    if below:
        return _elsewhere(below) + unfinished
    trusted = judgement.verdicts.count("trust")
    fine = f" {trusted:,} of {dim:,} parameters can be used as they are." if trusted else ""
    if judgement.elsewhere:
        fine += " Draws further out, or those of the fit, have met mass that draws of it hardly meet."
    elif judgement.unseen:
        fine += f" It may be {judgement.farthest:.2g} nats from the posterior: there is room for what no draw has met."
    if judgement.verdict == "correct":
        return "Use importance-corrected draws: posterior.resample(n)." + fine + judgement.doubt + unfinished
    choices = ["posterior.mcmc(), which draws from the posterior itself"]
    if family != "mixture" and dim <= MIXTURES:
        choices.insert(0, "family='mixture'" + (f" (about {cost:,} evaluations)" if cost else ""))
    if family not in ("full", "mixture", "sparse"):
        choices.insert(0, "a richer family (family='full', or larger blocks)")
    return f"The weights cannot correct it: try {', or '.join(choices)}.{fine}{judgement.doubt}{unfinished}"


def _elsewhere(below: tuple[float, ...]) -> str:
    """What to do if starts went to other optima, which are ``below`` nats lower."""
    found = "A start went to another optimum,"
    if len(below) > 1:
        found = f"{len(below)} starts went to other optima, the best of them"
    return (
        f"{found} with a lower bound {min(below):.2g} nats lower. Draws from one mode, and their importance weights, "
        "cannot see another; the difference is about the log of how much more probable this one is. Unless that "
        "is enough to leave the others out, make the modes one (order what can be exchanged, a stronger prior) or keep "
        "them all: family='mixture' with the same starts=."
    )
