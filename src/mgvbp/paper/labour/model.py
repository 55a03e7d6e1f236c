"""Logistic regression on the Labour data: its exact lower bound, and the measures of a fit."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from scipy.special import log_expit

import mgvbp
from mgvbp.datasets import labour
from mgvbp.models import LogisticRegression
from mgvbp.paper.bounds import divergence, hermite
from mgvbp.paper.common import PRIOR_VARIANCE, Array
from mgvbp.paper.spec import reference

MEASURES = ("acc", "prec", "rec", "f1")
PERFORMANCE = tuple(f"{part} {measure}" for part, measure in product(("train", "test"), MEASURES))
BETAS = tuple(f"β{i}" for i in range(8))


def expectation(model: LogisticRegression, q: mgvbp.Gaussian, order: int = 60) -> float:
    """E_q of the log-likelihood: one Gauss–Hermite sum for the scalar x_iᵀθ of each row."""
    nodes, weights = hermite(order)
    signed = (2.0 * model.y - 1.0)[:, None] * model.X
    spread = np.sqrt(np.einsum("ni,ij,nj->n", signed, q.covariance, signed))
    values = log_expit(signed @ q.mean + nodes * spread)
    return float(weights @ values.sum(axis=1))


def exact_lower_bound(
    model: LogisticRegression, prior: mgvbp.Gaussian, q: mgvbp.Gaussian, order: int = 60
) -> float:
    """The lower bound at ``q`` without Monte Carlo error: expectation minus KL(q ‖ prior)."""
    return expectation(model, q, order) - divergence(q, prior)


def measures(X: Array, y: Array, beta: Array) -> list[float]:
    """Accuracy, macro averages of precision and recall, and the harmonic mean of these two."""
    predicted = X @ beta > 0.0
    hits = [float(np.sum(predicted[y == label] == label)) for label in (0, 1)]
    precision = sum(hits[k] / max(1, np.sum(predicted == k)) for k in (0, 1)) / 2
    recall = sum(hits[k] / np.sum(y == k) for k in (0, 1)) / 2
    return [sum(hits) / len(y), float(precision), float(recall), float(2 / (1 / precision + 1 / recall))]


class Labour:
    """The likelihood of the training rows, the prior, and the measures of a fit."""

    def __init__(self) -> None:
        self.data = labour()
        self.model = LogisticRegression(self.data.X_train, self.data.y_train)
        self.prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(self.data.names))

    def bound(self, q: mgvbp.Gaussian, order: int = 60) -> float:
        """The exact lower bound at ``q``."""
        return exact_lower_bound(self.model, self.prior, q, order)

    def performance(self, beta: Array) -> dict[str, float]:
        """The measures of a coefficient vector on the training and the test rows."""
        data = self.data
        numbers = measures(data.X_train, data.y_train, beta) + measures(data.X_test, data.y_test, beta)
        return dict(zip(PERFORMANCE, numbers, strict=True))

    def values(self, mean: Array, covariance: Array) -> dict[str, float]:
        """By name: the measures at the mean, the means, and the variances and covariances times 100."""
        scaled = 100.0 * covariance
        return {
            **self.performance(mean),
            **{f"mean {b}": float(mean[i]) for i, b in enumerate(BETAS)},
            **{f"var {b}": float(scaled[i, i]) for i, b in enumerate(BETAS)},
            **{f"cov {BETAS[i]} {BETAS[j]}": float(scaled[i, j]) for i in range(8) for j in range(i)},
        }


problem = cache(Labour)


def optimum(family: str) -> float:
    """The largest lower bound that a Gaussian of the family has."""
    found: float = reference("labour")["exact"]["logistic_perf"][family]["LB*"]
    return found
