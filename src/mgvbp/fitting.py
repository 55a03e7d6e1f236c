"""`fit`: from a log-likelihood and a prior to a Gaussian posterior."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.checks import as_floats, positive_integer
from mgvbp.errors import ConvergenceWarning, InvalidTypeError, NonFiniteWarning
from mgvbp.estimators import Estimator, resolve_estimator
from mgvbp.families import Family, resolve_family
from mgvbp.gaussian import Gaussian
from mgvbp.loop import Callback, Limits, run
from mgvbp.methods import Method, resolve_method
from mgvbp.posterior import Posterior
from mgvbp.problem import LogLikelihood, Prior, Problem, log_prior
from mgvbp.progress import progress_bar


def fit(
    log_likelihood: LogLikelihood,
    prior: Prior | None = None,
    *,
    dim: int | None = None,
    method: str | Method = "auto",
    family: str | Family = "full",
    estimator: str | Estimator = "auto",
    draws: str = "auto",
    num_draws: int | None = None,
    initial_mean: ArrayLike | None = None,
    initial_variance: ArrayLike | None = None,
    max_iterations: int | None = None,
    max_evaluations: int | None = None,
    vectorized: bool = True,
    rng: int | np.random.Generator = 0,
    progress: bool = False,
    callback: Callback | None = None,
) -> Posterior:
    """Approximate a posterior by a Gaussian, from evaluations of the log-likelihood alone.

    Parameters
    ----------
    log_likelihood : callable
        (S, d) array -> (S,) array, one value a row; with ``vectorized=False`` (d,) -> float.
        With ``prior=None`` it is the whole log posterior density, up to a constant.
    prior : Gaussian, Posterior, object with ``log_density((S, d)) -> (S,)``, or None
    dim : int, optional
        The number of parameters, where neither the prior nor ``initial_mean`` shows it.
    method : {"auto", "mgvbp", "mgvb", "qbvi", "geodesic"} or Method
        The named methods run with the paper's settings; ``MGVBP(step_size=..., ...)`` has others.
    family : {"full", "diagonal"} or BlockDiagonal
        The structure of the covariance.
    estimator : {"auto", "h", "loglik", "regression"} or Estimator
        How gradients are estimated; ``auto`` is regression where it is affordable, else h.
    draws : {"auto", "mc", "antithetic", "sobol"}
    num_draws : int, optional
        Draws an iteration.
    initial_mean : array_like of shape (d,), optional
        Where to start; by default the prior's mean, or 0.
    initial_variance : float, or array_like of shape (d,) or (d, d), optional
        The variance to start with; 1 by default.
    max_iterations, max_evaluations : int, optional
        Limits; ``max_evaluations`` is never exceeded.
    vectorized : bool
        Whether ``log_likelihood`` takes all draws at once.
    rng : int or numpy.random.Generator
    progress : bool
        Show a progress bar.
    callback : callable, optional
        Called with an `Iteration` after each; a true return value stops the run.

    Returns
    -------
    Posterior

    Raises
    ------
    InvalidInputError, InvalidTypeError
        An argument cannot be used.
    EvaluationError
        The function returned something other than one real number a draw. An exception raised by the function
        itself passes through, with the draws it was given as its attribute ``theta``.

    Examples
    --------
    A straight line through four points, noise variance 1:

    >>> import numpy as np, mgvbp
    >>> X = np.column_stack([np.ones(4), np.arange(4.0)])
    >>> y = np.array([0.1, 1.2, 1.9, 3.2])
    >>> def log_likelihood(theta):
    ...     return -0.5 * ((y - theta @ X.T) ** 2).sum(axis=1)
    >>> posterior = mgvbp.fit(log_likelihood, prior=mgvbp.Gaussian(variance=5.0, dim=2))
    >>> posterior.mean.round(4)
    array([0.1387, 0.9695])
    """
    if callback is not None and not callable(callback):
        raise InvalidTypeError(f"callback must be a function of an Iteration; got {callback!r}")
    if dim is None and initial_mean is not None and not isinstance(prior, Gaussian):
        dim = as_floats(initial_mean, "initial_mean").size
    problem = Problem(log_likelihood, prior, 0 if dim is None else positive_integer(dim, "dim"), vectorized)
    structure = resolve_family(family, problem.dim)
    gradients = resolve_estimator(estimator, structure, num_draws, draws)
    chosen = resolve_method(method, gradients)
    optimizer = chosen.start(
        problem,
        family=structure,
        estimator=gradients,
        draws=draws,
        num_draws=num_draws,
        initial_mean=initial_mean,
        initial_variance=initial_variance,
        rng=rng,
    )
    limits = Limits(
        chosen.max_iterations
        if max_iterations is None
        else positive_integer(max_iterations, "max_iterations"),
        math.inf
        if max_evaluations is None
        else positive_integer(
            max_evaluations,
            f"max_evaluations (one iteration takes {optimizer.num_draws})",
            least=optimizer.num_draws,
        ),
        chosen.window,
        chosen.patience,
    )
    with progress_bar(progress, limits.max_iterations) as report:
        outcome = run(optimizer, problem.evaluate, limits, callback, report)
    best, trace = outcome.best, outcome.trace
    name = method if isinstance(method, str) else type(method).__name__
    if dropped := int(trace.dropped.sum()):
        warnings.warn(
            f"{dropped:,} of {trace.n_evaluations[-1]:,} draws had non-finite values and were left out "
            "(trace.dropped): the result is conditional on the region where the function is finite",
            NonFiniteWarning,
            stacklevel=2,
        )
    if shortened := int(np.count_nonzero(trace.reductions)):
        warnings.warn(
            f"{name} lost positive definiteness and shortened its step in {shortened} of {len(trace)} "
            "iterations (trace.reductions); try a smaller step_size, or MGVBP, which cannot lose it",
            ConvergenceWarning,
            stacklevel=2,
        )

    def log_density(theta: Array) -> Array:
        return problem.evaluate(theta.copy()) + log_prior(problem.prior, theta)

    return Posterior(
        best.mean,
        best.factor,
        best.family,
        lower_bound=outcome.lower_bound,
        converged=outcome.converged,
        stop_reason=outcome.stop_reason,
        trace=trace,
        method=name,
        estimator=gradients.name,
        log_density=log_density,
    )
