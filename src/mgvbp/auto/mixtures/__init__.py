"""From the best Gaussian to the posterior: a mixture of Gaussians from the draws at hand and a few more.

This package may import what `auto` may. Begin with `search`: a Gaussian search first, then `scouts` look for other
modes, then come the `rounds`. In each round a `surrogate` of the log density is fitted to all draws so far, a mixture
is fitted to the surrogate without any query (`ascent`), and new draws are asked for: draws of the mixture, which say
how far it is from the posterior (`distance`), and draws where the surrogate knows least of what may matter
(`exploration`). With gradients there is no surrogate: the same steps climb the bound on the log density itself
(`climbing`).
"""

from mgvbp.auto.mixtures.rounds import MOST_PARAMETERS, Aim
from mgvbp.auto.mixtures.search import LOOSE, MOST_WITH_GRADIENTS, Mixture, MixtureSearch

__all__ = ["LOOSE", "MOST_PARAMETERS", "MOST_WITH_GRADIENTS", "Aim", "Mixture", "MixtureSearch"]
