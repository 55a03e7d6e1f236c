"""The paper's experiments: what to run, the numbers to compare with, and the report."""

from mgvbp.experiments.command import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "reproduce"]
