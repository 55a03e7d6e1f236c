"""Simulation-based calibration (Talts et al. 2018): parameters from the prior have uniform ranks.

The rank of a true value among infinitely many draws of a Gaussian posterior is its distribution function there, so
that no draws are needed. All tests of uniformity are at the 1% level, shared among their statistics, with a fixed seed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest, kstest, norm

import mgvbp
from mgvbp.models import LinearRegression
from mgvbp.sklearn import BayesianLinearRegression, BayesianLogisticRegression
from mgvbp.sklearn.base import Scaling
from mgvbp.sklearn.exact import fit_exact
from mgvbp.sklearn.linear import LOG_NOISE_VARIANCE, NormalErrors

SIMULATIONS = 1500
VARIANCE = 1.0


def logistic(rng, n=50, k=3):
    """True coefficients and the posterior of one simulated data set, through the estimator.

    Without an intercept, since data with one class only, which cannot be fitted, then have probability 2⁻⁴⁹.
    """
    X = rng.standard_normal((n, k))
    design = Scaling.of(X, centre=False)(X)
    truth = np.sqrt(VARIANCE) * rng.standard_normal(k)
    y = rng.random(n) < expit(design @ truth)
    classifier = BayesianLogisticRegression(prior_variance=VARIANCE, fit_intercept=False)
    return truth, classifier.fit(X, y).posterior_


def linear(rng, n=25, k=3):
    """The same below the estimator: that scales y, so that its prior depends on the data."""
    X = rng.standard_normal((n, k))
    variances = np.append(np.full(k, VARIANCE), LOG_NOISE_VARIANCE)
    truth = np.sqrt(variances) * rng.standard_normal(k + 1)
    y = X @ truth[:-1] + np.exp(truth[-1]) * rng.standard_normal(n)
    likelihood = NormalErrors(LinearRegression(X, y))
    prior = mgvbp.Gaussian(variance=variances)
    return truth, fit_exact(likelihood, prior, family=mgvbp.Full(k + 1), tol=1e-4, max_iter=200)


SIMULATORS = {"logistic": logistic, "linear": linear}


def standardised(name):
    """``(cᵀθ − cᵀμ)/sd`` for each entry of θ and for their sum, (simulations, d + 1)."""
    rng = np.random.default_rng(2018)
    rows = []
    for _ in range(SIMULATIONS):
        truth, q = SIMULATORS[name](rng)
        deviation = truth - q.mean
        std = np.append(q.std, np.sqrt(q.covariance.sum()))
        rows.append(np.append(deviation, deviation.sum()) / std)
    return np.array(rows)


@pytest.mark.parametrize("name", SIMULATORS)
def test_ranks_are_uniform(name):
    z = standardised(name)
    p_values = [kstest(norm.cdf(column), "uniform").pvalue for column in z.T]
    assert min(p_values) > 0.01 / len(p_values)
    # the test sees what it is to see: posteriors half as wide, and means half a standard deviation off
    assert all(kstest(norm.cdf(2.0 * column), "uniform").pvalue < 1e-4 for column in z.T)
    assert all(kstest(norm.cdf(column + 0.5), "uniform").pvalue < 1e-4 for column in z.T)


def test_predictive_intervals_cover():
    """90% intervals for one new response each of 600 simulated data sets with 15 rows and 2 features."""
    rng = np.random.default_rng(90)
    inside = 0
    for _ in range(600):
        X, beta = 30.0 + 5.0 * rng.standard_normal((16, 2)), rng.standard_normal(2)
        y = 7.0 + X @ beta + 4.0 * rng.standard_normal(16)
        mean, std = BayesianLinearRegression().fit(X[:15], y[:15]).predict(X[15:], return_std=True)
        inside += int(abs(y[15] - mean[0]) < 1.645 * std[0])
    assert binomtest(inside, 600, 0.9).pvalue > 0.01


def test_predicted_probabilities_are_frequencies():
    """Given all else, a new label is 1 with the predicted probability: their sums agree within ±2.58 sd.

    Parameters are drawn from the prior. Plugging in the posterior mean is too sure of itself, as is seen where its
    probability is beyond 0.9.
    """
    rng = np.random.default_rng(7)
    probabilities, plug_in, labels = [], [], []
    for _ in range(400):
        X = rng.standard_normal((20, 3))
        train, new = X[:15], X[15:]
        scaling = Scaling.of(train, centre=False)
        truth = np.sqrt(6.25) * rng.standard_normal(3)
        y = rng.random(20) < expit(scaling(X) @ truth)
        if y[:15].min() == y[:15].max():  # 2⁻¹⁴
            continue
        classifier = BayesianLogisticRegression(fit_intercept=False).fit(train, y[:15])
        probabilities.append(classifier.predict_proba(new)[:, 1])
        plug_in.append(expit(new @ classifier.coef_[0]))
        labels.append(y[15:])
    p, p_plug_in, y = (np.concatenate(parts) for parts in (probabilities, plug_in, labels))

    def deviation(p, some):
        return (y - p)[some].sum() / np.sqrt((p * (1.0 - p))[some].sum())

    assert abs(deviation(p, p > 0.9)) < 2.58
    assert abs(deviation(p, (p > 0.5) & (p < 0.9))) < 2.58
    assert deviation(p_plug_in, p_plug_in > 0.9) < -2.58
