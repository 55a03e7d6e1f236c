"""What the tests of pictures share: a posterior, draws to compare it with, and how lines are found."""

import numpy as np

from common import random_covariance
from mgvbp import Gaussian, Parameters
from mgvbp.transforms import Interval, Positive, Real, Simplex

HOSTILE = "$\\frac{$ <b>&\n" + 50 * "x"
"""A label that is neither a formula, nor HTML, nor short."""
PARAMETERS = Parameters(mu=Real(), sigma=Positive(), beta=Real(2), rho=Interval(-1.0, 1.0), w=Simplex(3))
Q = Gaussian(np.linspace(-0.5, 0.6, 7), random_covariance(7))
THETA = Q.sample(1000, rng=1) + 0.3
VALUES = PARAMETERS.constrain(THETA)


def labelled(ax, label):
    """The line with this label; the labels of bounds have more behind it."""
    (found,) = [line for line in ax.lines if str(line.get_label()).startswith(label)]
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def stairs(ax, label):
    (found,) = [patch for patch in ax.patches if patch.get_label() == label]
    return found.get_data().values, found.get_data().edges
