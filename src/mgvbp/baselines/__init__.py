"""What to compare an approximation with: a point estimate by ADAM, and the posterior itself by NUTS.

It may import `run` and what is below, by what those packages show at their top. Begin with `target`, the log
density that both climb or sample; `adam` and `nuts` use optax and blackjax (``pip install 'mgvbp[jax]'``), `chains`
holds draws.
"""

from mgvbp.baselines.adam import AdamIteration, PointEstimate, adam
from mgvbp.baselines.chains import Chains
from mgvbp.baselines.nuts import nuts

__all__ = ["AdamIteration", "Chains", "PointEstimate", "adam", "nuts"]
