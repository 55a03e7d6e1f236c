"""What all other packages use: linear algebra in the frame, checks of arguments, optional packages, files.

This package may import nothing of mgvbp but `mgvbp.errors`, and knows nothing of distributions or models. Begin with
`linalg`, whose triangular factors all other packages use, and with `checks`, for the arguments of public functions.
"""

from mgvbp.core.checks import (
    as_floats,
    as_generator,
    as_key,
    as_path,
    one_of,
    positive_integer,
    positive_number,
    probabilities,
    require_memory,
    true_or_false,
)
from mgvbp.core.linalg import Array
from mgvbp.core.optional import require

__all__ = [
    "Array",
    "as_floats",
    "as_generator",
    "as_key",
    "as_path",
    "one_of",
    "positive_integer",
    "positive_number",
    "probabilities",
    "require",
    "require_memory",
    "true_or_false",
]
