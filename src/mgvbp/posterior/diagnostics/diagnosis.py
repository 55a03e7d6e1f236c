"""What fresh draws have shown about an approximation, as numbers, a verdict and a report; `diagnosing` makes it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.posterior.diagnostics.condition import Condition
from mgvbp.posterior.diagnostics.marginals import Marginals
from mgvbp.posterior.diagnostics.verdict import ERRORS, NEGLIGIBLE, Judgement, Verdict, advise, limit
from mgvbp.posterior.notebook import diagnosis_html

SHOWN = 5
"""Number of parameters in the table of a report: those that may be furthest off."""


@dataclass(frozen=True)
class Diagnosis:
    """Estimates from fresh draws; ``print(diagnosis)`` is a report that ends with `advice`.

    Equality compares the numbers, but neither the arrays nor the condition numbers.

    Attributes
    ----------
    elbo, elbo_se : float
        The lower bound, unbiased, and its standard error; −inf and inf where a draw has density zero.
    khat : float
        Pareto shape of the importance weights p/q. Up to 0.5 they have a finite variance; up to 0.7, less if there are
        few draws, the approximation can be corrected by weighting.
    khat_se : float
        Standard error of k-hat over seeds: about 0.14 with 1,000 draws, 0.05 with 100,000. It does not include that
        more draws reach further out, where the tail may differ.
    log_evidence, log_evidence_se : float
        Importance-sampling estimate of the log marginal likelihood and its standard error, which counts what may lie
        beyond all draws. It is infinite, since not known, if k-hat is within a standard error of 1 or above.
    ess : float
        Effective sample size of the Pareto-smoothed weights, at most `num_draws`.
    mean_shift, sd_ratio : ndarray of shape (d,)
        How the posterior differs from q in the unconstrained θ: the shift of the mean, in standard deviations of q, and
        the ratio of the standard deviations, by weights of all draws, of those further out and of those of the fit.
        With more than 20 parameters, where weights degenerate, they are from draws moved out along the line of each
        parameter, and from the way to the posterior. Both compare the weighted draws with the same draws weighted for
        q, so that the noise of the draws cancels: where q is exact they are 0 and 1.
    mean_shift_se, sd_ratio_se : ndarray of shape (d,)
        Their standard errors.
    known : bool
        Whether these numbers can be believed; if not, no parameter is trusted.
    missed : bool
        Whether the draws further out, or those of the fit, have met mass that draws of q hardly meet, as that of
        another mode or of tails that do not fall: weights of these cannot correct q then.
    reused : int
        Number of draws of the fit that took part. None does after `load`, for a method other than ``auto``, and where
        ``log_density=`` was given.
    gap, gap_se : float or None
        Nats by which the lower bound is below what the family can reach, from the gradients in the frame, and the
        standard error. The estimate is of second order, so that a gap of a nat can be off by a fifth. It is None with
        fewer than two draws per coefficient of a quadratic, with a draw of density zero, or where a quadratic says
        little about the target: the gradients are then not known well enough.
    below : tuple of float or None
        For a fit with ``starts=``: how many nats the lower bounds of other optima, which starts found, are below that
        of q. Draws from q cannot see these optima. The verdict is then ``"distrust"``, unless all of them are so much
        lower (7 nats) that they have less than a thousandth of the mass. It is empty if all starts agreed, and None
        if there was one start.
    cost : int or None
        About how many evaluations a fit of a mixture takes. None if that is not known.
    condition : Condition
        Condition numbers of q's ``correlation`` and ``covariance`` matrices.
    outside : int
        Number of draws where the density is zero; they have weight 0.
    n_evaluations : int
        Evaluations that the diagnosis took: those of fresh draws, and of draws further out.
    farthest : float or None
        For a mixture: its distance from the posterior as the fit has measured it (`Posterior.kl`) and one standard
        error, in nats. Above 0.05 there may be mass that no draw has met, so that it is not trusted.
    labels : tuple of str
        A label for each entry of θ.
    family : str
    log_weights : ndarray of shape (S,)
        ``log p(θ) − log q(θ)`` at the draws, neither smoothed nor normalised.

    Examples
    --------
    Independent Gaussians for two parameters of correlation 0.5 are too narrow; weights can correct that:

    >>> import mgvbp
    >>> from scipy.stats import multivariate_normal
    >>> target = multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> diagnosis = mgvbp.fit(target.logpdf, dim=2, family="diagonal").diagnose(20_000)
    >>> bool((diagnosis.sd_ratio > 1.1).all())
    True
    >>> diagnosis.verdict, diagnosis.verdicts, diagnosis.settled, diagnosis.advice
    ('correct', ('correct', 'correct'), True, 'Use importance-corrected draws: posterior.resample(n).')
    """

    elbo: float
    elbo_se: float
    khat: float
    khat_se: float
    log_evidence: float
    log_evidence_se: float
    ess: float
    mean_shift: Array = field(compare=False)
    sd_ratio: Array = field(compare=False)
    gap: float | None
    gap_se: float | None
    condition: Condition = field(compare=False)  # the last digits differ from run to run
    outside: int
    family: str
    labels: tuple[str, ...] = field(repr=False)
    log_weights: Array = field(compare=False, repr=False)
    below: tuple[float, ...] | None = None
    cost: int | None = None
    mean_shift_se: Array = field(kw_only=True, compare=False)
    sd_ratio_se: Array = field(kw_only=True, compare=False)
    known: bool = field(kw_only=True)
    missed: bool = field(kw_only=True, default=False)
    reused: int = field(kw_only=True, compare=False)
    n_evaluations: int = field(kw_only=True)
    farthest: float | None = field(kw_only=True, default=None)

    @property
    def num_draws(self) -> int:
        """How many draws were evaluated."""
        return len(self.log_weights)

    @property
    def verdict(self) -> Verdict:
        """Whether to ``"trust"`` q as it is, to ``"correct"`` it by weights, or to ``"distrust"`` it.

        It is that of the worst parameter; see `verdicts`.
        """
        return self._judgement.verdict

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict on each entry of θ.

        It is ``"trust"`` if the mean is within 0.1 standard deviations of the posterior's and the standard deviation
        within 10%, with two standard errors to spare. If not, it is ``"correct"`` where weights can correct that.
        """
        return self._judgement.verdicts or (self.verdict,) * len(self.labels)

    @property
    def settled(self) -> bool:
        """Whether the verdict is the same within two standard errors of all estimates; if not, `advice` says so."""
        return self._judgement.settled

    @property
    def advice(self) -> str:
        """What to do, in plain words."""
        return advise(self._judgement, self.family, len(self.labels), self.gap, self._rivals, self.cost)

    @property
    def _judgement(self) -> Judgement:
        known, elsewhere = self._marginals if self.known else None, bool(self._rivals) or self.missed
        of_weights = self.khat, self.khat_se, self.ess, self.num_draws
        return Judgement(known, *of_weights, self.reused, self.farthest, elsewhere)

    @property
    def _marginals(self) -> Marginals:
        with np.errstate(divide="ignore"):
            ratio = np.log(self.sd_ratio)
        return Marginals(self.mean_shift, self.mean_shift_se, ratio, self.sd_ratio_se / self.sd_ratio)

    def __str__(self) -> str:
        advice = f"{self.verdict.upper()}. {self.advice}"
        return "\n".join([*self._facts, "", *self._table(), "", advice, *self._modes])

    def _repr_html_(self) -> str:
        return diagnosis_html(self)

    @property
    def _facts(self) -> list[str]:
        """What the draws say of the whole: bound, evidence, weights, gap and condition numbers."""
        known = np.isfinite(self.log_evidence_se)
        error = f"(se {self.log_evidence_se:.4f})" if known else "(error not known)"
        gap = "not known" if self.gap is None else f"{self.gap:.4f} (se {self.gap_se:.4f}) nats"
        return [
            f"lower bound {self.elbo:.4f} (se {self.elbo_se:.4f})",
            f"log evidence {self.log_evidence:.4f} {error}",
            f"k-hat {self.khat:.2f} (se {self.khat_se:.2f}; at most {limit(self.num_draws):.2f} with "
            f"{self.num_draws:,} draws), effective sample size {self.ess:.0f}",
            *([f"{self.outside:,} draws have density zero"] if self.outside else []),
            f"gap to the family's optimum {gap}",
            f"condition number of the correlations {self.condition.correlation:.3g}, "
            f"of the covariance {self.condition.covariance:.3g}",
        ]

    @property
    def _rivals(self) -> tuple[float, ...]:
        """How many nats lower those other optima are that are not negligible."""
        return tuple(nats for nats in self.below or () if nats < NEGLIGIBLE)

    @property
    def _modes(self) -> list[str]:
        """A sentence about other modes, for the case that no other mode that matters was found."""
        blind = "Fresh draws from one mode cannot see others"
        if self._rivals:
            return []
        if self.below is None:
            return [f"{blind}: try starts=8."]
        return [f"{blind}; the starts of the fit found none{' that matters' if self.below else ''}."]

    def _worst(self, most: int) -> list[int]:
        """The entries that may be furthest off, in descending order."""
        return list(np.argsort(-self._marginals.off(ERRORS), kind="stable")[:most])

    def _table(self) -> list[str]:
        """The table of the parameters that may be furthest off, in descending order."""
        worst, verdicts = self._worst(SHOWN), self.verdicts
        some = "largest corrections" if len(worst) < len(self.labels) else "corrections"
        width = max([len(some), *(len(self.labels[i]) for i in worst)]) + 2
        return [f"{some:<{width}}{'mean shift/sd':>14}{'se':>7}{'sd ratio':>10}{'se':>7}  verdict"] + [
            f"{self.labels[i]:<{width}}{self.mean_shift[i]:>+14.3f}{self.mean_shift_se[i]:>7.3f}"
            f"{self.sd_ratio[i]:>10.3f}{self.sd_ratio_se[i]:>7.3f}  {verdicts[i]}"
            for i in worst
        ]
