"""`fit`: from a log-likelihood and a prior to a Gaussian posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.auto import Auto, MultiStart, affordable, uses_gradient
from mgvbp.auto.starts import Search
from mgvbp.checks import as_floats, one_of, positive_integer
from mgvbp.errors import (
    ConvergenceWarning,
    InvalidInputError,
    InvalidTypeError,
    NonFiniteWarning,
    warn_user,
)
from mgvbp.estimators import Estimator
from mgvbp.families import Family, resolve_family
from mgvbp.foreign import from_jax
from mgvbp.gaussian import Gaussian
from mgvbp.loop import Callback, Patience, Run, Verdict, run
from mgvbp.methods import Method, resolve_method
from mgvbp.optimizer import STREAM, Info
from mgvbp.posterior import Posterior
from mgvbp.problem import LogLikelihood, Needs, Prior, Problem, agreed_parameters, log_prior
from mgvbp.progress import progress_bar


def fit(
    log_likelihood: LogLikelihood,
    prior: Prior | None = None,
    *,
    dim: int | None = None,
    method: str | Method | Auto = "auto",
    family: str | Family = "full",
    estimator: str | Estimator = "auto",
    draws: str = "auto",
    num_draws: int | None = None,
    initial_mean: ArrayLike | None = None,
    initial_variance: ArrayLike | None = None,
    max_iterations: int | None = None,
    max_evaluations: int | None = None,
    tol: float | None = None,
    starts: int | ArrayLike = 1,
    vectorized: bool = True,
    grad: Callable[[Array], Any] | str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool = False,
    callback: Callback | None = None,
) -> Posterior:
    """Approximate a posterior by a Gaussian, from evaluations of the log-likelihood alone.

    Parameters
    ----------
    log_likelihood : callable
        (S, d) array -> (S,) array, one value a row; with ``vectorized=False`` (d,) -> float.
        With ``prior=None`` it is the whole log posterior density, up to a constant. If it has an attribute
        ``parameters``, as a `Model` and all of `mgvbp.models` have, the posterior knows them by name.
    prior : Gaussian, Posterior, object with ``log_density((S, d)) -> (S,)``, or None
        A Gaussian is a density of θ itself, without a Jacobian; ``parameters.prior(...)`` makes a prior on the
        constrained scale (see `Parameters`).
    dim : int, optional
        The number of parameters, where neither their names, the prior nor ``initial_mean`` shows it.
    method : {"auto", "mgvbp", "mgvb", "qbvi", "geodesic", "vogn"}, Auto or Method
        ``auto`` needs no tuning and certifies its result (`Posterior.gap`). The named methods run with the
        paper's settings; ``MGVBP(step_size=..., ...)`` has others.
    family : {"full", "diagonal"} or BlockDiagonal
        The structure of the covariance; blocks by index or, for named parameters, by name.
    estimator : {"auto", "h", "loglik", "regression", "gradient", "fisher"} or Estimator
        How the named methods estimate the gradients of the lower bound; ``auto`` is gradient where ``log_likelihood``
        comes with its own, else regression where it is affordable, else h.
    draws : {"auto", "mc", "antithetic", "sobol"}
    num_draws : int, optional
        Draws an iteration, of the named methods.
    initial_mean : array_like of shape (d,), optional
        Where to start; by default the prior's mean, or 0.
    initial_variance : float, or array_like of shape (d,) or (d, d), optional
        The variance to start with; 1 by default.
    max_iterations, max_evaluations : int, optional
        Limits; ``max_evaluations`` is never exceeded.
    tol : float, optional
        For ``auto``: how many nats below its optimum the lower bound may be; 0.01 by default.
    starts : int or array_like of shape (K, d)
        For ``auto``: how many starts to try, or their means. All are screened and the best goes on. The first is
        ``initial_mean``, the others are drawn from the prior if that is Gaussian, else from the initial Gaussian.
    vectorized : bool
        Whether ``log_likelihood`` takes all draws at once.
    grad : callable or "jax", optional
        The gradient of ``log_likelihood``, (S, d) -> (S, d), with ``vectorized=False`` (d,) -> (d,), or ``"jax"`` for
        a function that JAX can differentiate (`from_jax`). Models with a method ``value_and_grad`` bring their own.
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
    if tol is not None and method != "auto":
        raise InvalidInputError(
            "tol= goes with method='auto': write Auto(tol), or leave it out for a named method"
        )
    named = agreed_parameters(log_likelihood, prior) is not None
    if dim is None and initial_mean is not None and not isinstance(prior, Gaussian) and not named:
        dim = as_floats(initial_mean, "initial_mean").size
    if isinstance(grad, str):
        one_of(grad, ["jax"], "grad", " or a function")
        log_likelihood, grad, vectorized = from_jax(log_likelihood, vectorized=vectorized), None, True
    dim = 0 if dim is None else positive_integer(dim, "dim")
    problem = Problem(log_likelihood, prior, dim, vectorized, grad)
    structure = resolve_family(family, problem.dim, problem.labels)
    limit = None if max_iterations is None else positive_integer(max_iterations, "max_iterations")
    start: dict[str, Any] = {
        "family": structure,
        "initial_mean": initial_mean,
        "initial_variance": initial_variance,
        "rng": rng,
    }
    default = Auto() if tol is None else Auto(tol)
    automatic = method if isinstance(method, Auto) else default if method == "auto" else None
    if automatic is not None and problem.num_batches > 1:
        raise InvalidInputError(
            "method='auto' needs the same function at every iteration: with minibatches choose a named method, as "
            "method='mgvbp', or leave batch_size out"
        )
    if automatic is not None and affordable(structure, problem):
        own = estimator in ("auto", "gradient") if problem.has_gradient else estimator == "auto"
        if not own or (draws, num_draws) != ("auto", None):
            raise InvalidInputError(
                "method='auto' chooses its own draws; estimator=, draws= and num_draws= go with a named method "
                "such as method='mgvbp'"
            )
        return _fit_auto(problem, automatic, starts, start, limit, max_evaluations, progress, callback)
    if not isinstance(starts, int) or starts != 1:
        raise InvalidInputError("starts= goes with method='auto'; a named method takes initial_mean=")
    chosen = resolve_method("auto" if isinstance(method, Auto) else method)
    if automatic is not None:
        warn_user(
            f"the {structure.name} family has {structure.num_monomials:,} coefficients at d = {structure.dim}, too "
            "many for auto: running mgvbp, which has no certificate; consider a gradient (grad=), family='diagonal' "
            "or BlockDiagonal, which need fewer draws",
            ConvergenceWarning,
        )
    optimizer = chosen.start(problem, estimator=estimator, draws=draws, num_draws=num_draws, **start)
    if max_evaluations is not None:
        name = f"max_evaluations (one iteration takes {optimizer.num_draws})"
        positive_integer(max_evaluations, name, least=optimizer.num_draws)
    limit = limit or chosen.max_iterations
    # whole epochs, or the best iterate would be the one of the luckiest batches
    window = problem.num_batches * math.ceil(chosen.window / problem.num_batches)
    judge = Patience(window, chosen.patience, last=not chosen.climbs)
    evaluate = partial(problem.evaluate_at, needs=optimizer.estimator.needs)
    with progress_bar(progress, limit) as report:
        outcome = run(optimizer, evaluate, judge, limit, max_evaluations or math.inf, callback, report)
    name = type(chosen).__name__
    if shortened := int(np.count_nonzero(outcome.trace.reductions)):
        warn_user(
            f"{name} lost positive definiteness and shortened its step in {shortened} of {len(outcome.trace)} "
            "iterations (trace.reductions); try a smaller step_size, or MGVBP, which cannot lose it",
            ConvergenceWarning,
        )
    return _posterior(problem, outcome, name, optimizer.estimator.name)


def _fit_auto(
    problem: Problem,
    method: Auto,
    starts: int | ArrayLike,
    start: dict[str, Any],
    max_iterations: int | None,
    max_evaluations: int | None,
    progress: bool,
    callback: Callback | None,
) -> Posterior:
    first = method.start(problem, max_evaluations=max_evaluations, **start)
    means = _means(starts, first, problem.prior)
    optimizer: Search | MultiStart = first
    if not isinstance(starts, int | np.integer) or len(means) > 1:
        keys = [(*first.key, k) for k in range(len(means))]
        runs = [
            method.start(problem, **{**start, "initial_mean": m, "rng": k})
            for m, k in zip(means, keys, strict=True)
        ]
        optimizer = MultiStart(runs, first.max_evaluations * (1 if max_evaluations else len(means)))

    def judge(t: int, q: Gaussian, info: Info) -> Verdict:
        bound = optimizer.lower_bound
        return Verdict(optimizer.gaussian, bound, bound, optimizer.stop_reason, optimizer.converged)

    needs: Needs = "gradients" if uses_gradient(problem) else "values"
    evaluate = partial(problem.evaluate_at, needs=needs)
    with progress_bar(progress, None) as report:
        outcome = run(optimizer, evaluate, judge, max_iterations or math.inf, math.inf, callback, report)
    if not outcome.converged:
        warn_user(
            f"not converged, {outcome.stop_reason}: the lower bound may be {optimizer.gap:.2g} nats below its maximum; "
            "try a larger max_evaluations, another start (starts=, initial_mean=, initial_variance=) or a "
            "reparametrised model",
            ConvergenceWarning,
        )
    if isinstance(optimizer, MultiStart) and optimizer.disagreement:
        warn_user(optimizer.disagreement, ConvergenceWarning)
    return _posterior(
        problem,
        outcome,
        "auto",
        "gradient" if needs == "gradients" else "regression",
        optimizer.lower_bound_se,
        optimizer.gap,
        optimizer.gap_se,
    )


def _means(starts: int | ArrayLike, first: Search, prior: Prior | None) -> list[Array]:
    q = first.gaussian
    if isinstance(starts, int | float | str | np.generic) or starts is None:
        number = positive_integer(starts, "starts")
        source = prior if isinstance(prior, Gaussian) else q
        return [q.mean, *source.sample(number - 1, np.random.default_rng((*first.key, STREAM)))]
    means = as_floats(starts, "starts")
    if means.ndim != 2 or means.shape[1] != q.dim or len(means) == 0:
        raise InvalidInputError(f"starts has shape {means.shape}; expected a number, or means (K, {q.dim})")
    return list(means)


def _posterior(
    problem: Problem,
    outcome: Run,
    method: str,
    estimator: str,
    lower_bound_se: float | None = None,
    gap: float | None = None,
    gap_se: float | None = None,
) -> Posterior:
    trace = outcome.trace
    if dropped := int(trace.dropped.sum()):
        warn_user(
            f"{dropped:,} of {trace.n_evaluations[-1]:,} draws had non-finite values and were left out "
            "(trace.dropped): the result is conditional on the region where the function is finite",
            NonFiniteWarning,
        )

    def log_density(theta: Array) -> Array:
        return problem.evaluate(theta.copy()) + log_prior(problem.prior, theta)

    return Posterior(
        outcome.best.mean,
        outcome.best.factor,
        outcome.best.family,
        lower_bound=outcome.lower_bound,
        lower_bound_se=lower_bound_se,
        converged=outcome.converged,
        stop_reason=outcome.stop_reason,
        trace=trace,
        method=method,
        estimator=estimator,
        gap=gap,
        gap_se=gap_se,
        parameters=problem.parameters,
        log_density=log_density,
        pointwise=getattr(problem.log_likelihood, "pointwise", None),
    )
