"""How good is it? Importance weights of fresh draws from the approximation tell, and correct it."""

from mgvbp.diagnostics.condition import Condition
from mgvbp.diagnostics.diagnosis import Diagnosis, diagnose
from mgvbp.diagnostics.resampling import resample
from mgvbp.diagnostics.weights import LogDensity

__all__ = ["Condition", "Diagnosis", "LogDensity", "diagnose", "resample"]
