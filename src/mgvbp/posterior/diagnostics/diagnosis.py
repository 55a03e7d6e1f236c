"""`diagnose`: what fresh draws show about an approximation, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp, softmax

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.certificate import UNKNOWN, certify
from mgvbp.posterior.diagnostics.condition import Condition, condition
from mgvbp.posterior.diagnostics.lines import Lines, along_lines
from mgvbp.posterior.diagnostics.marginals import Marginals, by_weights
from mgvbp.posterior.diagnostics.outer import MOST, PER_DRAW, Outer, evaluated_outside
from mgvbp.posterior.diagnostics.path import UNLIKELY, by_path, by_profiles
from mgvbp.posterior.diagnostics.pool import Outside, Pool, pooled
from mgvbp.posterior.diagnostics.verdict import (
    ERRORS,
    NEGLIGIBLE,
    TOLERANCE,
    Judgement,
    Verdict,
    advise,
    correctable,
    limit,
)
from mgvbp.posterior.diagnostics.weights import (
    LogDensity,
    Smoothed,
    apart,
    beyond,
    evaluated,
    pareto_smoothed,
)
from mgvbp.posterior.notebook import diagnosis_html
from mgvbp.surfaces.archive import Archive

SHOWN = 5
"""Number of parameters in the table of a report: those that may be furthest off."""
BUDGET = (100, 1000)
"""Fewest and most evaluations of a diagnosis by default."""
MANY = 20
"""With more parameters than this weights are uneven even where every marginal is right: what `lines` and `path` say
counts then, and gradients are evaluated with the draws. With fewer, weights that fail tell of a tail."""

HOPELESS = 1.0
"""k-hat of all draws together above which q misses much of the mass: their weights are bounded where q has been."""

SPREAD = 4.0
"""Variance of the lengths of draws, in those of q, above which nothing is known about many parameters: their scales are
uncertain together, as those of a multivariate t are, and no line of a single parameter tells. With ten degrees of
freedom and 30 parameters, whose standard deviations are 12% too small, it is about this."""

OBLIQUE = 0.01
"""Nats for each of many parameters that q is from the posterior, and that no line of a parameter explains, above which
nothing is known although every line looks right: there are tails in directions that mix the parameters. For independent
t variables that are turned it is 0.013 with four degrees of freedom, and 0.004 with ten."""

MISSED = 0.08
"""Share of the mass above which draws that hardly came from q show the same: other modes have 0.1 and more there, heavy
tails of Student's t with three degrees of freedom 0.06 at most."""


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
        About how many evaluations a fit of a mixture takes: twice as many as this fit. None if that is not known.
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
        within 10%, with a standard error to spare. If not, it is ``"correct"`` where weights can correct that.
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
        return Judgement(
            self._marginals if self.known else None,
            self.khat,
            self.khat_se,
            self.ess,
            self.num_draws,
            self.reused,
            self.farthest,
            bool(self._rivals) or self.missed,
        )

    @property
    def _marginals(self) -> Marginals:
        with np.errstate(divide="ignore"):
            ratio = np.log(self.sd_ratio)
        return Marginals(self.mean_shift, self.mean_shift_se, ratio, self.sd_ratio_se / self.sd_ratio)

    def __str__(self) -> str:
        return "\n".join(
            [*self._facts, "", *self._table(), "", f"{self.verdict.upper()}. {self.advice}", *self._modes]
        )

    def _repr_html_(self) -> str:
        return diagnosis_html(self)

    @property
    def _facts(self) -> list[str]:
        """What the draws say of the whole: bound, evidence, weights, gap and condition numbers."""
        error = (
            f"(se {self.log_evidence_se:.4f})" if np.isfinite(self.log_evidence_se) else "(error not known)"
        )
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


def diagnose(
    q: Gaussian,
    log_density: LogDensity,
    num_draws: int,
    rng: int | np.random.Generator,
    labels: Sequence[str],
    below: tuple[float, ...] | None = None,
    cost: int | None = None,
    *,
    family: str = "",
    archive: Archive | None = None,
    farthest: float | None = None,
    missed: bool = False,
) -> Diagnosis:
    """Evaluate ``log_density`` (log prior + log-likelihood) at ``num_draws`` draws from ``q``.

    ``archive`` has the draws of the fit, evaluated by the same function; ``farthest`` is about a mixture. ``missed``
    tells that the fit has met mass, or tails that do not fall, where no draw of q comes.
    """
    generator, many = apart(rng), q.dim > MANY
    draws = evaluated(q, log_density, num_draws, generator, gradients=many and family != "mixture")
    far = None if many else further_out(q, log_density, num_draws, generator)
    lines = None
    if many and family != "mixture":
        lines = along_lines(q, draws, log_density, outer(num_draws), generator)
    h = draws.log_weights
    smoothed = pareto_smoothed(h)
    outside = int(np.count_nonzero(np.isneginf(h)))
    gap, gap_se = UNKNOWN if family == "mixture" else certify(q, draws, archive)
    pool = pooled(q, draws, far, archive)
    known, elsewhere, marginals = _marginals(q, pool, gaussian=family != "mixture", lines=lines)
    ratio = np.exp(marginals.log_ratio)
    return Diagnosis(
        elbo=float(h.mean()),
        elbo_se=np.inf if outside else float(h.std(ddof=1) / np.sqrt(num_draws)),
        khat=smoothed.khat,
        khat_se=smoothed.khat_se,
        log_evidence=float(logsumexp(h) - np.log(num_draws)),
        log_evidence_se=_evidence_error(h, smoothed),
        ess=smoothed.ess,
        mean_shift=marginals.shift,
        sd_ratio=ratio,
        mean_shift_se=marginals.shift_se,
        sd_ratio_se=ratio * marginals.log_ratio_se,
        known=known,
        missed=missed or elsewhere,
        reused=0 if archive is None else len(archive.theta),
        n_evaluations=num_draws
        + (0 if far is None else len(far.theta))
        + (0 if lines is None else lines.n_evaluations),
        gap=gap,
        gap_se=gap_se,
        condition=condition(q),
        outside=outside,
        family=family or q.family.name,
        labels=tuple(labels),
        log_weights=h,
        below=below,
        cost=cost,
        farthest=farthest,
    )


def _evidence_error(h: Array, smoothed: Smoothed) -> float:
    """The standard error of the log evidence by log weights (S,), as far as their tail is known; else inf.

    To the spread of the mean it adds the part that lies beyond all draws. k-hat is taken one standard error too large.
    """
    shares = softmax(h)
    spread = float(np.linalg.norm(shares - shares.mean()))
    return math.hypot(spread, beyond(h, smoothed.khat + smoothed.khat_se))


def _unexplained(pool: Pool, lines: Lines) -> float:
    """Nats of the distance, to second order half the variance of h, that the profiles of the parameters do not have."""
    h = (pool.log_p - pool.log_q)[-pool.fresh :]
    inside = h[np.isfinite(h)]
    return 0.5 * float(inside.var()) - sum(each.kl for each in lines.profiles.moments)


def affordable(evaluations: int, dim: int) -> int:
    """Draws of q such that all of a diagnosis takes half as many evaluations as the fit, and 100 to 1,000.

    If it is not known what the fit took, ``evaluations`` is 0, and 1,000 draws are made.
    """
    if not evaluations:
        return BUDGET[1]
    total = int(np.clip(evaluations // 2, *BUDGET))
    return round(total / (1.0 + PER_DRAW))


def outer(num_draws: int) -> int:
    """How many draws are made further out, beside so many of q."""
    return int(min(MOST, PER_DRAW * num_draws))


def further_out(
    q: Gaussian, log_density: LogDensity, num_draws: int, rng: np.random.Generator
) -> Outside | None:
    """Outer draws in proportion to ``num_draws``, as many for each parameter; None where the function fails there."""
    source = Outer(q)
    each = max(1, outer(num_draws) // q.dim)
    theta = source.sample(each * q.dim, rng)
    log_p = evaluated_outside(log_density, theta)
    return None if log_p is None else Outside(theta, log_p, source)


def _marginals(
    q: Gaussian, pool: Pool, *, gaussian: bool, lines: Lines | None
) -> tuple[bool, bool, Marginals]:
    """Whether the marginals are known, whether q misses much of the mass, and what is known best about them."""
    # smoothing would shrink the weights of the few draws that have met a tail; it is here for k-hat
    smoothed, weights = pareto_smoothed(pool.log_weights), softmax(pool.log_weights)
    weighted = by_weights(q, pool, weights)
    usable = correctable(smoothed.khat, smoothed.ess, len(pool.theta))
    if q.dim > MANY:
        half = by_path(q, pool, weights, stein=gaussian, profiles=lines and lines.profiles)
        shared = lines is not None and lines.spread > SPREAD
        # weights of draws of q alone know nothing of tails further out, and cannot correct what all have in common
        if half is not None and (
            lines is not None or not usable or half.typical_error < weighted.typical_error
        ):
            far = lines is not None and _unexplained(pool, lines) > OBLIQUE * q.dim
            oblique = far and bool((half.off(ERRORS) <= TOLERANCE).all())
            return not (shared or oblique), shared, half
        if lines is not None:
            return usable and not shared, shared, weighted.or_farther(by_profiles(lines.profiles))
    foreign = float(weights[pool.share_of_q < UNLIKELY].sum())
    missed = q.dim <= MANY and (smoothed.khat > HOPELESS or foreign > MISSED)
    return usable, missed, weighted
