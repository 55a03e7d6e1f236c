"""What all results say of their estimates: bound, likelihood, criteria, and the table that summaries end with."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgvbp.core import Array
from mgvbp.errors import printable
from mgvbp.posterior import Posterior
from mgvbp.problem import Prior
from mgvbp.run import fit
from mgvbp.volatility.maximum import MaximumLikelihood, NamedLikelihood
from mgvbp.volatility.series import Series

WIDEST = 10.0
"""The largest variance that a fit starts with, in units of ``scale``: the curvature at a mode may be near zero."""


class Estimates:
    """A posterior beside the maximum likelihood estimate of all days, those before an update included."""

    posterior: Posterior
    ml: MaximumLikelihood

    @property
    def lower_bound(self) -> float:
        """The lower bound of the log evidence: larger is better, also between models.

        After an update it is that of the new days given the old ones.
        """
        return self.posterior.lower_bound

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of all days, also after an update, at the posterior mean of ψ."""
        return float(self.ml.likelihood.pointwise(self.posterior.mean[None]).sum())

    @property
    def aic(self) -> float:
        """Akaike's information criterion of all days, at the maximum likelihood estimate; smaller is better."""
        return self.ml.aic

    @property
    def bic(self) -> float:
        """Schwarz's information criterion of all days, at the maximum likelihood estimate; smaller is better."""
        return self.ml.bic

    def _summary(self, model: str, series: Series, new: int, unit: str) -> str:
        """A heading on the model, the data (``new`` of them fitted, in ``unit``) and the run; and the table."""
        days, span = self.ml.likelihood.n_obs, f", {series.span}" if series.span else ""
        given = "; the lower bound is that of the new ones given the old" if new < days else ""
        count = f"{new:,} new of {days:,}" if given else f"{days:,}"
        heading = [model, f"{series.name}: {count} {unit}{span}{given}"]
        return printable("\n".join([*heading, *self._run_lines(), "", *self._table_lines()]))

    def _run_lines(self) -> list[str]:
        """How the fits went: lower bound, likelihoods and information criteria."""
        posterior, ml = self.posterior, self.ml
        gap = "" if posterior.gap is None else f", expected gap {posterior.gap:.3f} nats"
        state = "converged" if posterior.converged else f"NOT converged: {posterior.stop_reason}"
        where = "at its maximum" if ml.converged else "where the search for its maximum ended"
        return [
            f"lower bound {posterior.lower_bound:.3f}{gap}, {posterior.n_evaluations:,} evaluations, {state}",
            f"log-likelihood {self.log_likelihood:.3f} at the posterior mean, {ml.log_likelihood:.3f} {where}; "
            f"AIC {ml.aic:.2f}, BIC {ml.bic:.2f}",
        ]

    def _table_lines(self) -> list[str]:
        """One line a parameter: its posterior, and the maximum likelihood estimate with its standard errors."""
        posterior, ml = self.posterior, self.ml
        head = "".join(f"{name:>11}" for name in ("mean", "sd", "2.5%", "97.5%", "ML", "std. err.", "robust"))
        lines = [" " * 12 + head]
        for name, estimate in ml.params.items():
            entry = posterior[name]
            row = [entry.mean, entry.std, *entry.quantile([0.025, 0.975])]
            row += [estimate, ml.std_errors[name], ml.robust_std_errors[name]]
            lines.append(f"{name:<12}" + "".join(f"{x:>11.4g}" for x in row))
        return lines


def fit_from(
    likelihood: NamedLikelihood, prior: Prior, mode: Array, hessian: Array, **options: Any
) -> Posterior:
    """Fit the posterior from a mode (d,), with the inverse of minus the ``hessian`` there as the first covariance."""
    scales = np.outer(likelihood.scale, likelihood.scale)
    curvatures, axes = np.linalg.eigh(-hessian * scales)
    variance = (axes / np.maximum(curvatures, 1.0 / WIDEST)) @ axes.T * scales
    return fit(likelihood, prior, initial_mean=mode, initial_variance=variance, **options)


def fit_after(likelihood: NamedLikelihood, before: Posterior, rng: int | np.random.Generator) -> Posterior:
    """Fit the posterior of new days: the one ``before`` them is the prior and the start."""
    return fit(likelihood, before, initial_mean=before.mean, initial_variance=before.covariance, rng=rng)
