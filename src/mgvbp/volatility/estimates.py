"""The table of estimates that summaries end with."""

from __future__ import annotations

from mgvbp.posterior import Posterior
from mgvbp.volatility.maximum import MaximumLikelihood


def run_lines(posterior: Posterior, ml: MaximumLikelihood, log_likelihood: float) -> list[str]:
    """How the fits went: lower bound, likelihoods and information criteria."""
    gap = "" if posterior.gap is None else f", expected gap {posterior.gap:.3f} nats"
    state = "converged" if posterior.converged else f"NOT converged: {posterior.stop_reason}"
    return [
        f"lower bound {posterior.lower_bound:.3f}{gap}, {posterior.n_evaluations:,} evaluations, {state}",
        f"log-likelihood {log_likelihood:.3f} at the posterior mean, {ml.log_likelihood:.3f} at its maximum; "
        f"AIC {ml.aic:.2f}, BIC {ml.bic:.2f}",
    ]


def table_lines(posterior: Posterior, ml: MaximumLikelihood) -> list[str]:
    """One line a parameter: its posterior, and the maximum likelihood estimate with its standard errors."""
    head = "".join(f"{name:>11}" for name in ("mean", "sd", "2.5%", "97.5%", "ML", "std. err.", "robust"))
    lines = [" " * 12 + head]
    for name, estimate in ml.params.items():
        entry = posterior[name]
        row = [entry.mean, entry.std, *entry.quantile([0.025, 0.975])]
        row += [estimate, ml.std_errors[name], ml.robust_std_errors[name]]
        lines.append(f"{name:<12}" + "".join(f"{x:>11.4g}" for x in row))
    return lines
