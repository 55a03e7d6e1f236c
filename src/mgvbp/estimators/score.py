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
    control_variates : bool
        Subtract the optimal constants, estimated at the previous iteration.
    """

    target: Literal["h", "loglik"] = "h"
    control_variates: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.target, str) or self.target not in ("h", "loglik"):
            raise InvalidInputError(f"target must be 'h' or 'loglik'; got {self.target!r}")

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
        return Estimate(
            g, G, float(h.mean()), optimal_constants(family, eps, f) if self.control_variates else None
        )

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


def _precision_times(prior: Gaussian, v: Array) -> Array:
    R = prior.factor
    return prior.family.times(R, prior.family.to_frame(R, v))
