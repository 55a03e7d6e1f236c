"""The decisions of every search, as functions from a state to the next one.

They may import everything in `auto` but `search`, `method`, `mixtures` and `stream`. Begin with `rules`, which all
searches with full or diagonal covariances share, and `court`, the trial of their results. `by_values` (with `far_away`)
and `by_gradients` (with `elsewhere` and `doubts`) say what a surface is fitted to; `many` is for more than a hundred
parameters; `structured` and `low_rank`, on the base `pairs`, are for sparse and low-rank precisions.
"""
