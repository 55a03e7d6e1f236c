"""The paper's experiments: what to run, the numbers to compare with, and the report.

The package is a user of the library like any other: it sees public names only. Begin with `spec`, which says what an
experiment is (cells to run, tables and figures to make), and `target`, which has the runs that experiments share.
Each experiment is a module or a package of its name; `command` runs them, `engine` stores what came of it, and
`report` shows it.
"""

from mgvbp.paper.command import EXPERIMENTS, ON_FILES, REPLICATED, reproduce

__all__ = ["EXPERIMENTS", "ON_FILES", "REPLICATED", "reproduce"]
