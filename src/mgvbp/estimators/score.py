r"""The paper's score-function estimators, on h and on the log-likelihood, with control variates.

With :math:`\theta_s = \mu + L^{-\top}\varepsilon_s` the paper's eq:natgrad_mu_llh and
eq:natgrad_S_llh, whitened, are

.. math::
    g = \frac1S \sum_s \varepsilon_s (f_s - c), \qquad
    G = \frac1{2S} \sum_s (I - \varepsilon_s \varepsilon_s^\top) (f_s - c),

where f is h (any prior), or the log-likelihood (Gaussian prior), which adds the exact prior terms
:math:`-L^{-1}P_0(\mu-\mu_0)` to g and :math:`\tfrac12(L^{-1}P_0L^{-\top} - I)` to G.

The constant c differs by coordinate. For a score coordinate z the variance is least at
:math:`c^\star = E[z^2 f] / E[z^2]`, and :math:`E[z^2]` is known in the frame: 1 for
:math:`\varepsilon_i`, 1/2 for :math:`\tfrac12(1-\varepsilon_i^2)`, 1/4 for
:math:`\tfrac12\varepsilon_i\varepsilon_j`. It is estimated as
:math:`\bar f + \overline{z^2 (f - \bar f)} / E[z^2]`, so that a shift of f shifts c by as much. Estimated on
the same draws c would bias the gradient; taken from the previous iteration it does not, so the first
iteration has c = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.estimators.base import Control, Estimate, Estimator, Sample
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Prior


@dataclass(frozen=True)
class Score(Estimator):
    """Score-function (REINFORCE) gradients.

    Parameters
    ----------
    target : {"h", "loglik"}
        The function in the estimator. ``"h"`` holds for every prior, and its noise vanishes where q is
        close to the posterior; ``"loglik"`` needs a Gaussian prior and treats it exactly.
    control_variates : {True, False, "sample"}
        Subtract the optimal constants, estimated at the previous iteration: with the variance of the score that is
        known (True), or with the sample covariance over the sample variance ("sample"), which is the paper's eq:c_star
        as it stands. Both cost the same; the first has less noise.

    Examples
    --------
    >>> import mgvbp
    >>> estimator = Score("h", control_variates="sample")
    >>> q = mgvbp.fit(
    ...     lambda x: -(x[:, 0] ** 2), mgvbp.Gaussian(variance=1.0, dim=1), method="mgvbp", estimator=estimator, rng=0
    ... )
    >>> abs(q.mean[0]) < 0.05
    np.True_
    """

    target: Literal["h", "loglik"] = "h"
    control_variates: bool | Literal["sample"] = True

    def __post_init__(self) -> None:
        if not isinstance(self.target, str) or self.target not in ("h", "loglik"):
            raise InvalidInputError(f"target must be 'h' or 'loglik'; got {self.target!r}")
        if not isinstance(self.control_variates, bool) and self.control_variates != "sample":
            raise InvalidInputError(
                f"control_variates must be True, False or 'sample'; got {self.control_variates!r}"
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the estimator in `fit`."""
        return self.target

    def estimate(self, q: Gaussian, prior: Prior | None, sample: Sample, control: Control | None) -> Estimate:
        """Estimate g, G and the lower bound; carries the constants for the next iteration."""
        eps, h, family = sample.eps, sample.h, q.family
        f = h if self.target == "h" else sample.log_likelihood
        f_mean = f.mean()
        g = f @ eps / len(f)
        G = family.shift(family.moment(eps, f), -f_mean)  # −2 G for c = 0
        if control is not None:
            g -= control.mean * eps.mean(axis=0)
            assert control.precision is not None
            G -= control.precision * family.shift(family.moment(eps), -1.0)
        G *= -0.5
        if self.target == "loglik":
            assert isinstance(prior, Gaussian)
            g -= family.solve(q.factor, _precision_times(prior, q.mean - prior.mean))
            G += 0.5 * family.shift(family.whitened_precision(q.factor, prior.family, prior.factor), -1.0)
        constants = sample_constants if self.control_variates == "sample" else optimal_constants
        return Estimate(g, G, float(h.mean()), constants(family, eps, f) if self.control_variates else None)

    def minimum_draws(self, family: Family, draws: str) -> int:
        """Two: one draw has no spread."""
        return 2

    def default_draws(self, family: Family) -> int:
        """As many as the paper's larger experiments."""
        return 100

    def check_prior(self, prior: Prior | None) -> None:
        """The log-likelihood estimator needs a Gaussian prior."""
        if self.target == "loglik" and not isinstance(prior, Gaussian):
            raise InvalidInputError(
                "estimator='loglik' needs a Gaussian prior, whose terms it adds exactly; use estimator='h'"
            )


def optimal_constants(family: Family, eps: Array, f: Array) -> Control:
    """The variance-minimising constants, one per coordinate of g and of G."""
    f_mean = f.mean()
    deviation = f - f_mean
    squares = eps * eps
    second = deviation @ squares / len(f)  # mean of ε_i² (f − f̄)
    fourth = deviation @ (squares * squares) / len(f)
    # off the diagonal z² / E[z²] = ε_i² ε_j²; on it ½(1 − ε_i²)², which (f − f̄ sums to 0) is ½ε_i⁴ − ε_i²
    precision = family.shift(family.moment(squares, deviation), -0.5 * fourth - second)
    return Control(f_mean + second, precision + f_mean)


def sample_constants(family: Family, eps: Array, f: Array) -> Control:
    """The paper's eq:c_star with sample moments, Cov(z f, z) / Var(z); without spread in z, the mean of f."""

    def ratio(zzf: Array, zf: Array, z: Array, zz: Array) -> Array:
        spread = zz - z * z
        return np.divide(zzf - zf * z, spread, out=np.full_like(spread, f_mean), where=spread > 1e-12)

    f_mean, squares = float(f.mean()), eps * eps
    twice = f @ squares / len(f)  # mean of ε_i² f
    z, zf = family.shift(family.moment(eps), -1.0), family.shift(family.moment(eps, f), -f_mean)
    # off the diagonal z is ε_i ε_j, on it ε_i² − 1
    zz = family.shift(family.moment(squares), 1.0 - 2.0 * squares.mean(axis=0))
    zzf = family.shift(family.moment(squares, f), f_mean - 2.0 * twice)
    mean = ratio(twice, f @ eps / len(f), eps.mean(axis=0), squares.mean(axis=0))
    return Control(mean, ratio(zzf, zf, z, zz))


def _precision_times(prior: Gaussian, v: Array) -> Array:
    R = prior.factor
    return prior.family.times(R, prior.family.to_frame(R, v))
