"""Exact draws from a posterior, by Markov chains that start at a fit and know its shape.

This package may import what describes a Gaussian (`core`, `families`) and calls the target through a function that it
is given. Begin with `chains`, which runs the walkers of `walkers`. `nuts`, `slices`, `axes` and `independence` have one
kernel each, and `kernels` combines them; `tmixture` describes the draws of the warm-up. `convergence` says if chains
have mixed.
"""

from mgvbp.sampling.chains import Sampled, sample
from mgvbp.sampling.convergence import LARGEST_RHAT, ess, largest_rhat, rhat, warn_of_chains

__all__ = ["LARGEST_RHAT", "Sampled", "ess", "largest_rhat", "rhat", "sample", "warn_of_chains"]
