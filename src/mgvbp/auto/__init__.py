"""`auto`: the Gaussian optimum without tuning, from few queries, with a certificate.

This package may import `surfaces` and `methods`. It never calls the user's function: draws go out by ``ask``, values
come in by ``tell``. Begin with `state`, which holds how far a search has come, and `searches`, the rules that make the
next state of it. The rules combine what knows nothing of a state: `arrival` comes from far away, `steps` moves a
Gaussian on a surface, `trial` attempts to refute a result. `search` runs one start or several; `method` has the
options, and `constants` the numbers that decide. `mixtures` goes on from the best Gaussian to mixtures; `stream` is
the search for networks and minibatches.
"""

from mgvbp.auto.constants import MOST_PARAMETERS as MOST_BY_GRADIENTS
from mgvbp.auto.method import NEEDS_GRADIENTS, Auto, affordable, uses_gradient
from mgvbp.auto.mixtures import LOOSE, MOST_PARAMETERS, MOST_WITH_GRADIENTS, Aim, Mixture, MixtureSearch
from mgvbp.auto.search import Search, Starts, extended
from mgvbp.auto.stream import StreamSearch, streams

__all__ = [
    "LOOSE",
    "MOST_BY_GRADIENTS",
    "MOST_PARAMETERS",
    "MOST_WITH_GRADIENTS",
    "NEEDS_GRADIENTS",
    "Aim",
    "Auto",
    "Mixture",
    "MixtureSearch",
    "Search",
    "Starts",
    "StreamSearch",
    "affordable",
    "extended",
    "streams",
    "uses_gradient",
]
