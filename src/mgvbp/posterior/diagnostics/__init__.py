"""How good an approximation is: importance weights of fresh draws from it show its errors and can correct them."""

from mgvbp.posterior.diagnostics.condition import Condition
from mgvbp.posterior.diagnostics.diagnosing import affordable, diagnose
from mgvbp.posterior.diagnostics.diagnosis import Diagnosis
from mgvbp.posterior.diagnostics.pool import kept
from mgvbp.posterior.diagnostics.resampling import resample
from mgvbp.posterior.diagnostics.verdict import cost_of_mixture
from mgvbp.posterior.diagnostics.weights import LogDensity, Target

__all__ = [
    "Condition",
    "Diagnosis",
    "LogDensity",
    "Target",
    "affordable",
    "cost_of_mixture",
    "diagnose",
    "kept",
    "resample",
]
