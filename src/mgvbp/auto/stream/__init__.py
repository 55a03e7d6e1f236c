"""`auto` for networks and minibatches: a point estimate, then safeguarded natural-gradient steps, without tuning.

It never calls the user's function: points go out by ``ask``, values and gradients come in by ``tell``. Begin with
`state`, then `adam` (up to a mode), `step` (one step of the Gaussian) and `search`, which decides after every round
what to keep.
"""

from mgvbp.auto.stream.search import StreamSearch, streams

__all__ = ["StreamSearch", "streams"]
