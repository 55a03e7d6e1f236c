"""The search by values: what it learns from its first points, and what it gives where few evaluations are allowed."""

import numpy as np
import pytest

from mgvbp import Auto, fit
from mgvbp.errors import ConvergenceWarning


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_the_noise_is_the_spread_of_the_first_point_evaluated_three_times(noise):
    search = Auto().start(2)
    theta = search.ask()
    assert (theta[[-2, -1]] == theta[0]).all()
    values = -0.5 * np.square(theta).sum(axis=1)
    values[[-2, -1]] += [noise, -noise]
    search.tell(values)
    assert search.state.active.archive.noise == pytest.approx(noise)
    assert search.state.active.phase == "survey", "noise is no place for an approach, and this one is near"


def logistic(d, seed):
    """A logistic regression with 300 observations: the log density, prior N(0, 25) included."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(300), rng.normal(size=(300, d - 1)) * np.geomspace(0.5, 2.0, d - 1)])
    y = rng.random(300) < 1.0 / (1.0 + np.exp(-X @ rng.normal(size=d)))
    signs = np.where(y, -1.0, 1.0)
    return lambda t: -np.logaddexp(0.0, (t @ X.T) * signs).sum(axis=1) - 0.02 * np.square(t).sum(axis=1)


def test_few_evaluations_give_nearly_the_best_gaussian():
    """After 20 (d + 2) evaluations; the former search was tens of nats away then."""
    near = 0
    for seed in range(4):
        f = logistic(7, seed)
        best = fit(f, dim=7, rng=seed)
        assert best.converged
        with pytest.warns(ConvergenceWarning):
            early = fit(f, dim=7, rng=seed, max_evaluations=126)
        theta = early.sample(4000, rng=seed)
        lost = best.lower_bound - np.mean(f(theta) - early.log_density(theta))
        assert lost < 5.0
        assert lost < 5.0 * early.gap + 0.2, "the stated gap is honest"
        near += lost < 0.5
    assert near >= 3


def test_a_limit_within_the_approach_returns_where_it_is():
    f = logistic(7, 0)
    with pytest.warns(ConvergenceWarning, match="nothing is known yet"):
        early = fit(f, dim=7, max_evaluations=20)
    assert early.n_evaluations == 20
    assert f(early.mean[None])[0] > f(np.zeros((1, 7)))[0] + 10.0
    assert early.gap == np.inf
