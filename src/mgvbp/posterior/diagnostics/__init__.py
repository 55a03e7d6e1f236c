"""How good is it? Importance weights of fresh draws from the approximation tell, and correct it."""

from mgvbp.posterior.diagnostics.condition import Condition
from mgvbp.posterior.diagnostics.diagnosis import Diagnosis, diagnose
from mgvbp.posterior.diagnostics.resampling import resample
from mgvbp.posterior.diagnostics.weights import LogDensity

__all__ = ["Condition", "Diagnosis", "LogDensity", "diagnose", "resample"]
