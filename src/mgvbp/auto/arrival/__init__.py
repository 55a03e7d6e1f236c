"""From far away to where a Gaussian may fit: by Newton's steps or ranks of values, or by climbing with gradients.

These are immutable records with a ``tell`` each. They know nothing of the state of a search, and may import `surfaces`
and lower layers. Begin with `approach`, the usual way by values, and `ascent`, the one by gradients; `evolution` and
`climb` are for where these are lost, and `laplace` is what follows an ascent.
"""
