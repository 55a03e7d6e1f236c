"""The version, for files and for the package."""

__version__ = "0.1.0"
