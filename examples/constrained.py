"""Named parameters under constraints: the frequencies of three alleles, which sum to one.

Blood of group A is of genotype AA or AO, and so on; we see groups of 521 patients, not genotypes (Clarke et
al. 1959, *British Medical Journal* 1, 603). Their genes are combined at random: the law of Hardy and
Weinberg.

Run:  python examples/constrained.py [picture.png]
"""

import sys

import numpy as np
import scipy.stats

import mgvbp
from mgvbp.transforms import Simplex

patients = np.array([186, 38, 13, 284])  # of groups A, B, AB, O


def log_likelihood(allele):
    """Of the frequencies of the alleles A, B and O, (S, 3) -> (S,)."""
    a, b, o = allele.T
    groups = np.stack([a * a + 2 * a * o, b * b + 2 * b * o, 2 * a * b, o * o], axis=1)
    return np.log(groups) @ patients


parameters = mgvbp.Parameters(allele=Simplex(3))
model = mgvbp.Model(log_likelihood, parameters)
prior = parameters.prior(allele=scipy.stats.dirichlet([1.0, 1.0, 1.0]))  # of the frequencies themselves
posterior = mgvbp.fit(model, prior)

allele = posterior.draws(4000, rng=0)["allele"]  # (4000, 3), each row sums to one
for name, values in zip("ABO", allele.T, strict=True):
    print(f"allele {name}: {values.mean():.4f} ± {values.std():.4f}")
carriers = 2.0 * allele[:, 0] * allele[:, 2] / (allele[:, 0] ** 2 + 2.0 * allele[:, 0] * allele[:, 2])
print(f"of group A, carriers of O: {carriers.mean():.3f} ± {carriers.std():.3f}")
print(f"{posterior.n_evaluations} evaluations, verdict: {posterior.diagnose().verdict}")

if len(sys.argv) > 1:
    panels = mgvbp.plots.marginals(posterior)
    panels[0].figure.savefig(sys.argv[1])
