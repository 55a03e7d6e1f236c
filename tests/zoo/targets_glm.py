"""Generalised linear models on real data: binary, count, ordered and duration responses."""

from __future__ import annotations

import numpy as np

from . import logpdf
from .base import Density, target
from .data import columns, design, sklearn_data


def logistic(X: np.ndarray, y: np.ndarray, sd: float) -> Density:
    def density(theta, xp):
        return logpdf.prior(xp, theta, 0.0, sd) + logpdf.bernoulli(xp, y, theta @ X.T).sum(-1)

    return density


@target(8, "glm", "real")
def logistic_labour():
    """The paper's first example, with its prior N(0, 5)."""
    from mgvbp.datasets import labour

    data = labour()
    return logistic(data.X_train, data.y_train, 5.0**0.5)


@target(6, "glm", "real")
def logistic_cancer():
    X, y = sklearn_data("breast_cancer")
    return logistic(design(X[:200, [0, 1, 4, 6, 8]]), y[:200], 5.0)


@target(21, "glm", "real", "medium")
def logistic_cancer_21():
    """Twenty collinear covariates, nearly separated."""
    X, y = sklearn_data("breast_cancer")
    return logistic(design(X[:300, :20]), y[:300], 1.0)


@target(4, "glm", "real", "scales")
def logistic_wine_raw():
    """Alcohol, magnesium and proline in their own units (13, 100, 750)."""
    X, y = sklearn_data("wine")
    return logistic(design(X[:, [0, 4, 12]], scale=False), 1.0 * (y == 0), 10.0)


@target(3, "glm", "skewed")
def logistic_separated():
    """Separated classes: only the prior N(0, 10²) holds the coefficients."""
    x = np.array([-2.0, -1.5, -1.2, -0.8, 0.9, 1.1, 1.6, 2.2])
    z = np.array([0.5, -0.3, 0.8, -1.0, 0.2, -0.7, 1.0, 0.1])
    return logistic(np.column_stack([np.ones(8), x, z]), 1.0 * (x > 0), 10.0)


@target(62, "glm", "real", "large")
def logistic_digits():
    """Threes against eights on pixels; a ridge prior."""
    X, y = sklearn_data("digits")
    X, y = X[(y == 3) | (y == 8)][:200], y[(y == 3) | (y == 8)][:200]
    varying = np.argsort(-X.std(axis=0), kind="stable")[:61]
    scaled = (X[:, varying] - X[:, varying].mean(axis=0)) / 8.0
    return logistic(np.column_stack([np.ones(len(X)), scaled]), 1.0 * (y == 3), 1.0)


@target(7, "glm", "real")
def probit_mroz():
    y, *x = columns("mroz", "inlf", "kidslt6", "kidsge6", "age", "educ", "exper", "nwifeinc", rows=400)
    X = design(*x)

    def density(theta, xp):
        return logpdf.prior(xp, theta, 0.0, 3.0) + xp.log_ndtr((2.0 * y - 1.0) * (theta @ X.T)).sum(-1)

    return density


def poisson_regression(X: np.ndarray, y: np.ndarray, sd: float) -> Density:
    def density(theta, xp):
        return logpdf.prior(xp, theta, 0.0, sd) + logpdf.poisson(xp, y, theta @ X.T).sum(-1)

    return density


@target(8, "glm", "real", "counts")
def poisson_crime():
    y, *x = columns(
        "crime1", "narr86", "pcnv", "avgsen", "ptime86", "qemp86", "inc86", "black", "hispan", rows=400
    )
    return poisson_regression(design(*x), y, 3.0)


@target(3, "glm", "real", "counts", "scales")
def poisson_fertility_raw():
    """Children on age and education in years: from N(0, 1) the rates reach e^100."""
    y, *x = columns("fertil2", "children", "age", "educ", rows=300)
    return poisson_regression(design(*x, scale=False), y, 5.0)


@target(7, "glm", "real", "counts")
def negative_binomial_affairs():
    y, *x = columns("affairs", "naffairs", "male", "age", "yrsmarr", "relig", "ratemarr", rows=400)
    X = design(*x)

    def density(theta, xp):
        log_size = theta[:, 6:]
        fit = logpdf.negative_binomial(xp, y, theta[:, :6] @ X.T, log_size).sum(-1)
        return logpdf.prior(xp, theta, 0.0, 2.0) + fit

    return density


@target(8, "glm", "real", "counts")
def zero_inflated_smoking():
    """Cigarettes per day (in packs, rounded up): a logit for smoking at all, a Poisson for how much."""
    y, *x = columns("smoke", "cigs", "educ", "age", "lincome", rows=300)
    y, X = np.ceil(y / 5.0), design(*x)
    zero = y == 0

    def density(theta, xp):
        logit, log_rate = theta[:, :4] @ X.T, theta[:, 4:] @ X.T
        none = xp.logaddexp(logit, -xp.exp(log_rate)) - logpdf.softplus(xp, logit)
        some = logpdf.poisson(xp, y, log_rate) - logpdf.softplus(xp, logit)
        return logpdf.prior(xp, theta, 0.0, 2.0) + xp.where(zero, none, some).sum(-1)

    return density


@target(4, "glm", "real", "counts")
def beta_binomial_401k():
    """Participants among those eligible, overdispersed."""
    y, n, *x = columns("401k", "totpart", "totelg", "mrate", "age", rows=120)
    X = design(*x)

    def density(theta, xp):
        size, eta = xp.exp(theta[:, 3:]), theta[:, :3] @ X.T
        a, b = size * logpdf.sigmoid(xp, eta), size * logpdf.sigmoid(xp, -eta)
        fit = (
            xp.gammaln(y + a)
            + xp.gammaln(n - y + b)
            - xp.gammaln(n + size)
            - (xp.gammaln(a) + xp.gammaln(b) - xp.gammaln(size))
        )
        return logpdf.prior(xp, theta, 0.0, 3.0) + fit.sum(-1)

    return density


@target(7, "glm", "real", "ordered")
def ordered_probit_marriage():
    """A rating from 1 to 5; the four cut points are the first and log differences."""
    y, *x = columns("affairs", "ratemarr", "male", "yrsmarr", "educ", rows=250)
    X = design(*x)[:, 1:]
    y = y.astype(int)

    def density(theta, xp):
        first, gaps = theta[:, 3:4], xp.exp(theta[:, 4:])
        cuts = first + xp.concatenate([xp.zeros_like(first), xp.cumsum(gaps, axis=-1)], axis=-1)
        far = xp.full_like(first, 40.0)
        edges = xp.concatenate([cuts[:, :1] - far, cuts, cuts[:, -1:] + far], axis=-1)
        eta = theta[:, :3] @ X.T
        fit = logpdf.log_diff_ndtr(xp, edges[:, y] - eta, edges[:, y - 1] - eta)
        return logpdf.prior(xp, theta, 0.0, 2.0) + fit.sum(-1)

    return density


def multinomial(X: np.ndarray, y: np.ndarray, sd: float) -> Density:
    """Three classes, the first of which has logit 0."""
    onehot = (y[:, None] == np.arange(3)) * 1.0
    p = X.shape[1]

    def density(theta, xp):
        one, two = theta[:, :p] @ X.T, theta[:, p:] @ X.T
        total = xp.logaddexp(xp.logaddexp(one, two), 0.0)
        return logpdf.prior(xp, theta, 0.0, sd) + (onehot[:, 1] * one + onehot[:, 2] * two - total).sum(-1)

    return density


@target(10, "glm", "real")
def multinomial_iris():
    X, y = sklearn_data("iris")
    return multinomial(design(X), y, 3.0)


@target(16, "glm", "real", "medium")
def multinomial_wine():
    X, y = sklearn_data("wine")
    return multinomial(design(X[:, :7]), y, 2.0)


@target(7, "survival", "real")
def weibull_recidivism():
    """Months until a new arrest, most of them censored; the shape is a softplus."""
    durat, cens, *x = columns(
        "recid", "durat", "cens", "priors", "age", "alcohol", "drugs", "tserved", rows=400
    )
    X, log_t = design(*x), np.log(durat / 12.0)

    def density(theta, xp):
        shape, eta = logpdf.softplus(xp, theta[:, 6:]), theta[:, :6] @ X.T
        z = shape * (log_t - eta)
        fit = (1.0 - cens) * (xp.log(shape) + z) - xp.exp(z)
        return logpdf.prior(xp, theta, 0.0, 3.0) + fit.sum(-1)

    return density


@target(6, "survival", "real")
def lognormal_recidivism():
    durat, cens, *x = columns("recid", "durat", "cens", "priors", "age", "black", "married", rows=300)
    X, log_t = design(*x), np.log(durat)

    def density(theta, xp):
        log_sd = theta[:, 5:]
        z = (log_t - theta[:, :5] @ X.T) * xp.exp(-log_sd)
        fit = xp.where(cens == 1, xp.log_ndtr(-z), -0.5 * z**2 - log_sd)
        return logpdf.prior(xp, theta, 0.0, 3.0) + fit.sum(-1)

    return density


@target(5, "survival", "real")
def gamma_durations():
    """Gamma regression of the uncensored durations with a log link."""
    durat, *x = columns("recid", "durat", "priors", "age", "tserved", rows=200)
    X, t = design(*x), durat / 12.0

    def density(theta, xp):
        eta, log_shape = theta[:, :4] @ X.T, theta[:, 4:]
        shape = xp.exp(log_shape)
        log_rate = log_shape - eta
        fit = shape * log_rate - xp.gammaln(shape) + (shape - 1.0) * np.log(t) - t * xp.exp(log_rate)
        return logpdf.prior(xp, theta, 0.0, 3.0) + fit.sum(-1)

    return density
