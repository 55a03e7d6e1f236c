"""What several test files share."""

import importlib
import warnings
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest

from mgvbp import MGVB, MGVBP, QBVI, Gaussian, Geodesic, Posterior
from mgvbp.posterior.trace import TRACE_DTYPES, Trace

FAST = MGVBP(step_size=0.5, decay_after=40, momentum=0.0, precision_scale=2.0, window=10, patience=40)
"""Long steps for gradients with little noise (the regression estimator): converges in a few iterations."""


def posterior_of(q, log_density=None, **options):
    """A posterior that is the Gaussian ``q``, whatever the target, of a converged run of one iteration."""
    columns = {name: np.zeros(1, dtype) for name, dtype in TRACE_DTYPES.items()}
    run = {"lower_bound": 0.0, "converged": True, "stop_reason": "", "method": "", "estimator": ""}
    known = {**run, "trace": Trace(**columns), **options}
    return Posterior(q.mean, q.factor, q.family, log_density=log_density, **known)


def rescaled(q, variance, log_density=None, **options):
    """A posterior with so many times the variance of ``q``."""
    wider = Gaussian.from_factor(q.mean, q.factor / np.sqrt(variance), q.family)
    return posterior_of(wider, log_density, **options)


def printed_numbers(tables, label):
    """The paper's numbers that the table with this label shows."""
    table = next(table for table in tables if table.label == label)
    return [row.paper[c] for row in table.rows for c in table.columns if row.paper.get(c) is not None]


def installed(package):
    """The package, or a skipped test; what other packages have to say on import is not ours."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return importlib.import_module(package)
    except ModuleNotFoundError:
        pytest.skip(f"{package} is not installed: pip install {package}")


def group_names(data):
    """The groups of what `Posterior.to_arviz` returns: a DataTree, or an InferenceData where ArviZ is before 1.0."""
    return set(data.children if hasattr(data, "children") else data.groups())


def standard_normal(theta):
    """The log density of independent standard normals, without its constant, (S, d) -> (S,)."""
    return -0.5 * (theta**2).sum(axis=1)


# --- loops over cases ----------------------------------------------------------------------------------


@contextmanager
def case(*what):
    """Say which case of a loop failed: whatever is raised inside gets a note that names it."""
    try:
        yield
    except BaseException as error:  # what pytest raises itself, as for a missing exception, is no Exception
        error.add_note(f"This happened in the case {', '.join(map(str, what))}.")
        raise


# --- what several files of methods, families and estimators share --------------------------------------

METHODS = [MGVBP, MGVB, QBVI, Geodesic]
"""The methods that differ by one formula, how the precision moves along a tangent vector."""


class LogDensity:
    """A prior of which nothing but the log density is known."""

    def __init__(self, log_density):
        self.log_density = log_density


def random_spd(rng, d, condition=10.0):
    """A symmetric matrix with eigenvalues from √condition to 1/√condition along random axes."""
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = Q * np.geomspace(condition**0.5, condition**-0.5, d) @ Q.T
    return (A + A.T) / 2


def structure(family):
    """True at the entries that a matrix of the family may have, (d, d)."""
    mask = np.zeros((family.dim, family.dim), dtype=bool)
    mask[family.pairs] = True
    return mask | mask.T


def trace(bounds, averages=None, queries=None, phase="step"):
    """The trace of a run with these bounds, of ten queries an iteration if nothing else is said."""
    n = len(bounds)
    columns = {name: np.zeros(n, dtype) for name, dtype in TRACE_DTYPES.items()}
    columns |= {
        "phase": np.full(n, phase, "U8"),
        "lower_bound": np.asarray(bounds, float),
        "smoothed": np.asarray(bounds if averages is None else averages, float),
        "n_evaluations": np.asarray(np.arange(1, n + 1) * 10 if queries is None else queries),
    }
    return Trace(**columns)


def as_posterior(q, parameters=None, run=None, lower_bound=-1.0, method="MGVBP", labels=None):
    """A posterior that is the Gaussian ``q``, of a converged run of a named method."""
    return posterior_of(
        q, lower_bound=lower_bound, stop_reason="done", trace=run or trace([-2.0, -1.0]), method=method,
        estimator="h", parameters=parameters, labels=labels,
    )  # fmt: skip


def random_covariance(d, seed=0):
    """A positive definite matrix (d, d) that correlates everything."""
    A = np.random.default_rng(seed).normal(size=(d, d + 3))
    return 0.1 * A @ A.T


class Optimum(NamedTuple):
    """The largest lower bound of a family, and the mean and the variances of the Gaussian that has it."""

    bound: float
    mean: list[float]
    variance: list[float]


def divergence(q, prior_variance=5.0):
    """KL(q ‖ N(0, prior_variance I)); 5 is the paper's."""
    scaled = q.covariance / prior_variance
    return 0.5 * (np.trace(scaled) + q.mean @ q.mean / prior_variance - q.dim - np.linalg.slogdet(scaled)[1])


def linear_bound(model, q):
    """The bound of a linear regression at q(β, ψ), ψ = log σ, with the paper's prior; in closed form.

    Weighting q by exp(−2ψ) shifts the mean of β by −2 Cov(β, ψ) and leaves its covariance alone:
    E[exp(−2ψ) ‖y − Xβ‖²] = exp(−2μ_ψ + 2σ²_ψ) (‖y − X(μ_β − 2 Cov(β, ψ))‖² + tr(XᵀX Σ_β)).
    """
    mean, covariance = q.mean, q.covariance
    weight = np.exp(-2.0 * mean[-1] + 2.0 * covariance[-1, -1])
    residual = model.y - model.X @ (mean[:-1] - 2.0 * covariance[:-1, -1])
    squares = residual @ residual + np.trace(model.X.T @ model.X @ covariance[:-1, :-1])
    likelihood = -len(model.y) * (0.5 * np.log(2.0 * np.pi) + mean[-1]) - 0.5 * weight * squares
    return likelihood - divergence(q)


def assert_is_the_optimum(posterior, exact_bound, optimum, sd):
    """Three claims: the bound, the means in units of the posterior's ``sd``, the variances.

    ``exact_bound`` is the bound at the posterior, computed without draws.
    """
    assert -1e-6 < optimum.bound - exact_bound < 0.01
    assert abs(posterior.lower_bound - optimum.bound) < 0.01
    assert np.abs((posterior.mean - optimum.mean) / sd).max() < 0.05
    np.testing.assert_allclose(posterior.std**2, optimum.variance, rtol=0.03)


def write_fi2010(data, directory, fold=7):
    """Books as the two text files of a fold of FI-2010, as MATLAB's ``save -ascii`` writes them."""
    paths = tuple(directory / f"{part}_Dst_NoAuction_ZScore_CF_{fold}.txt" for part in ("Train", "Test"))
    for path, books in zip(paths, (data.train, data.test), strict=True):
        write_books(path, books.features, books.labels)
    return paths


def write_books(path, features, labels):
    with path.open("wb") as file:
        for table in (features.T, np.zeros((104, len(features)), np.float32), labels.T + 1):
            np.savetxt(file, table, "%16.7e", delimiter="", newline="\r\n")
