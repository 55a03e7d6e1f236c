"""The paper's experiments: what to run, the numbers to compare with, and the report.

A user of the library like any other: it sees public names only. Begin with `command`, which runs experiments, and
`spec`, what an experiment is: cells to run, tables and figures to make. One module or package an experiment.
"""

from mgvbp.paper.command import EXPERIMENTS, ON_FILES, reproduce

__all__ = ["EXPERIMENTS", "ON_FILES", "reproduce"]
