"""Steps of a Gaussian on surfaces that have been fitted, without a query.

These are functions of a surface; they know nothing of the state of a search, and may import `surfaces` and lower
layers. Begin with `leap`, one step of the natural gradient. `polish` goes on to the optimum on the draws at hand and
`slow` looks for directions in which leaps make little progress; `secants` and `tangents` are the steps of sparse and
low-rank precisions.
"""
