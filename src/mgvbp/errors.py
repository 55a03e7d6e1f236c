"""Every error and warning that mgvbp raises on purpose, so that a caller can catch one kind."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


__all__ = [
    "CheckpointWarning",
    "ConvergenceWarning",
    "DataUnavailableError",
    "DivergenceError",
    "EvaluationError",
    "FileFormatError",
    "InvalidInputError",
    "InvalidTypeError",
    "MgvbpError",
    "MgvbpWarning",
    "MissingDependencyError",
    "NonFiniteWarning",
    "NotPositiveDefiniteError",
    "ScaleWarning",
    "UnknownNameError",
]


LONGEST = 300
"""Most characters of a message; what the user gave may be a matrix, or a thousand names."""


class MgvbpError(Exception):
    """Base class of all errors raised by mgvbp; a note below the message names the section of the docs on it."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.add_note(f"({section(type(self).__name__)})")

    def __str__(self) -> str:
        """The message on one line, without control characters, which a terminal would obey."""
        text = printable(" ".join(Exception.__str__(self).split()))
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[5 - LONGEST // 2 :]}"


class InvalidInputError(MgvbpError, ValueError):
    """An argument has a shape, value or combination that cannot be used."""


class InvalidTypeError(MgvbpError, TypeError):
    """An argument is of a kind that cannot be used."""


class NotPositiveDefiniteError(InvalidInputError, np.linalg.LinAlgError):
    """A matrix that must be symmetric positive definite is not."""


class EvaluationError(MgvbpError):
    """The user's function returned something that cannot be used.

    Attributes
    ----------
    theta : ndarray of shape (S, d) or (d,), or None
        The draws that the function was given.
    """

    def __init__(self, message: str, theta: NDArray[np.float64] | None = None) -> None:
        super().__init__(message)
        self.theta = theta


class DivergenceError(EvaluationError):
    """Too few usable values are left to go on: the iterates ran away or the function broke down."""


class FileFormatError(MgvbpError, ValueError):
    """A file is not one that mgvbp wrote, is damaged, or comes from a version that cannot be read."""


class DataUnavailableError(MgvbpError, OSError):
    """The file of a data set is missing and cannot be downloaded; the message says what to do."""


class MissingDependencyError(MgvbpError, ImportError):
    """An optional package is needed and not installed; the message has the install command."""


class UnknownNameError(InvalidInputError, KeyError):
    """There is no parameter of this name; the message lists the names."""

    __str__ = MgvbpError.__str__


class MgvbpWarning(UserWarning):
    """Base class of all warnings issued by mgvbp."""


class NonFiniteWarning(MgvbpWarning):
    """Some draws had non-finite values and were left out."""


class ConvergenceWarning(MgvbpWarning):
    """The result may not be the optimum; the message says why and what to try."""


class ScaleWarning(MgvbpWarning):
    """The numbers are very small or very large, or prices in place of returns; the message says what to fit instead."""


class CheckpointWarning(MgvbpWarning):
    """A checkpoint could not be written, or has grown large; the run goes on."""


def section(name: str) -> str:
    """Where the docs say what to do about the class, the warning or the `Outcome` of this name.

    Examples
    --------
    >>> section("MAX_EVALUATIONS")
    'docs: errors#max-evaluations'
    """
    return f"docs: errors#{name.lower().replace('_', '-')}"


def warn_user(message: str, category: type[MgvbpWarning], about: str = "") -> None:
    """Issue a warning that points to the user's line which called mgvbp, and to the docs' section ``about`` it."""
    level = 2
    while str(sys._getframe(level - 1).f_globals.get("__name__")).partition(".")[0] == "mgvbp":
        level += 1
    text = f"{message} ({section(about or category.__name__)})"
    warnings.warn(printable(text), category, stacklevel=level)


def printable(text: str) -> str:
    r"""``text`` for a terminal, which labels and cells of files must not give commands to.

    Characters that cannot be printed, such as escapes, become �; line breaks stay.

    Examples
    --------
    >>> printable("\x1b[31mreturns")
    '�[31mreturns'
    """
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
