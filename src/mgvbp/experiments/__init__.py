"""The paper's experiments: what to run, the numbers to compare with, and the report."""

from mgvbp.experiments.command import EXPERIMENTS, ON_FILES, reproduce

__all__ = ["EXPERIMENTS", "ON_FILES", "reproduce"]
