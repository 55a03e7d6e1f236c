"""Named methods that end near the optimum say so, and those that do not are not called converged."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import mgvbp
from mgvbp.run.loop import Patience

PRIOR = mgvbp.Gaussian(variance=5.0, dim=5)


def quadratic(theta):
    """A normal log density with correlated parameters."""
    return -0.5 * ((theta - 1.0) ** 2).sum(axis=1) - 0.3 * theta[:, 0] * theta[:, 1]


@pytest.mark.parametrize("method", ["mgvbp", "mgvb"])
def test_a_run_that_comes_to_its_limit_at_the_optimum_has_converged(method):
    """Steps of 0.1 on a normal density, by a regression that is exact on it: the distance after 150 is 1e-10 nats."""
    method = getattr(mgvbp, method.upper())(step_size=0.1)
    q = mgvbp.fit(quadratic, PRIOR, method=method, max_iterations=150, rng=0)
    assert q.converged
    assert q.stop_reason.startswith("reached max_iterations = 150; the gradients of the last 30 iterations")
    assert q.gap is None or q.gap < 0.01


def test_a_run_that_comes_to_its_limit_on_its_way_has_not():
    q = mgvbp.fit(quadratic, PRIOR, method=mgvbp.MGVBP(step_size=0.001), max_iterations=60, rng=0)
    assert not q.converged
    assert q.stop_reason == "reached max_iterations = 60"


def survival():
    """A Weibull regression: its density falls as the exponential of an exponential, and so do the first gradients."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(200), rng.standard_normal((200, 3))])
    log_y = X @ [2.0, 0.5, -0.3, 0.2] + np.log(rng.weibull(1.5, 200))

    def parts(theta):
        return np.exp(theta[:, 4:]) * (log_y - theta[:, :4] @ X.T)

    def log_likelihood(theta):
        u = parts(theta)
        return (theta[:, 4:] + u - log_y - np.exp(u)).sum(axis=1)

    def gradient(theta):
        u = parts(theta)
        e = np.exp(u)
        return np.column_stack([np.exp(theta[:, 4:]) * ((e - 1.0) @ X), (1.0 + u - e * u).sum(axis=1)])

    return log_likelihood, gradient


def test_without_a_clip_survival_breaks_down_and_the_advice_helps():
    log_likelihood, gradient = survival()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        broken = mgvbp.fit(log_likelihood, PRIOR, grad=gradient, method="mgvbp", rng=0)
    assert not broken.converged
    assert any("broke down" in str(w.message) and "clip_gradient=100" in str(w.message) for w in caught)
    best = mgvbp.fit(log_likelihood, PRIOR, grad=gradient, rng=0)
    assert best.converged
    for seed in range(4):  # the first bounds are of any size: none of them may pass for the best one
        q = mgvbp.fit(log_likelihood, PRIOR, grad=gradient, method=mgvbp.MGVBP(clip_gradient=100.0), rng=seed)
        assert abs(q.lower_bound - best.lower_bound) < 0.5


def test_a_best_bound_that_was_noise_is_no_convergence():
    """One iteration's bound is far too high; the run that remembers it as its best has not converged."""
    judge = Patience(window=2, patience=5)
    q = mgvbp.Gaussian(variance=1.0, dim=1)
    standings = []
    for t, bound in enumerate([-9.0, -8.0, 1e9, *[-1.0] * 8], start=1):
        standings.append(judge(t, q, SimpleNamespace(lower_bound=bound, lower_bound_se=0.1)))
    assert standings[-1].ending is not None
    assert standings[-1].lower_bound > 1e8
    assert not standings[-1].converged


def test_named_methods_do_not_claim_what_noise_gave_them():
    """A clip of 10 leaves the run where bounds are noise of many powers of ten."""
    log_likelihood, gradient = survival()
    best = mgvbp.fit(log_likelihood, PRIOR, grad=gradient, rng=0).lower_bound
    method = mgvbp.MGVBP(clip_natural_gradient=10.0, max_iterations=900)
    for rng in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            q = mgvbp.fit(log_likelihood, PRIOR, grad=gradient, method=method, rng=rng)
        assert not q.converged or q.lower_bound < best + 1.0
