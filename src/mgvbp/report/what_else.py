"""What a file holds that does not hold a posterior."""

from __future__ import annotations

from os import PathLike

from mgvbp.errors import FileFormatError
from mgvbp.run import read_checkpoint


def is_checkpoint(path: str | PathLike[str]) -> bool:
    """Whether ``mgvbp.fit(..., checkpoint=path)`` wrote this file."""
    try:
        read_checkpoint(path)
    except (FileFormatError, OSError):
        return False
    return True
