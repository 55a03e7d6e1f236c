"""The version of the package, which checkpoints record."""

__version__ = "0.2.0"
