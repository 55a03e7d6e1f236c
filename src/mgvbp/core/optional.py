"""Import optional packages, which only parts of mgvbp need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mgvbp.errors import MissingDependencyError


def require(module: str, extra: str) -> Any:
    """Import a module of an optional package; without it, raise an error that names the ``extra`` that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"this needs the package {package}: pip install 'mgvbp[{extra}]'"
        ) from None
