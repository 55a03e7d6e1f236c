"""`fit`: from a log-likelihood and a prior to a Gaussian posterior, or a mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto import (
    LOOSE,
    MOST_PARAMETERS,
    MOST_WITH_GRADIENTS,
    Aim,
    Auto,
    Mixture,
    affordable,
    streams,
    uses_gradient,
)
from mgvbp.core.checks import as_floats, as_key, one_of, positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.estimators import Estimator, Gradient
from mgvbp.families import Diagonal, Family, Structured, resolve_family
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods import Method
from mgvbp.methods.optimizer import STREAM, initial_frame
from mgvbp.models.base import SmoothRegression
from mgvbp.posterior.posterior import Posterior
from mgvbp.problem.gradient_check import check_gradient
from mgvbp.problem.problem import LogLikelihood, Problem, agreed_parameters
from mgvbp.run.checkpoints.checkpoint import Recorder
from mgvbp.run.conduct import Settings, conduct
from mgvbp.run.execution import Execution
from mgvbp.run.loop import Callback
from mgvbp.run.posing import PriorLike, as_function, as_prior, own_gradient, posed
from mgvbp.run.resuming import recorded
from mgvbp.run.sparsity import sparse_family

VALUES_UP_TO = 20
"""Parameters up to which a ready model is fitted by its values although it has a gradient: with more, values take many
times as long."""


def fit(
    log_likelihood: LogLikelihood,
    prior: PriorLike | None = None,
    *,
    dim: int | None = None,
    labels: Sequence[str] | None = None,
    method: str | Method | Auto = "auto",
    family: str | Family | Mixture | None = None,
    estimator: str | Estimator = "auto",
    draws: str = "auto",
    num_draws: int | None = None,
    initial_mean: ArrayLike | None = None,
    initial_variance: ArrayLike | None = None,
    max_iterations: int | None = None,
    max_evaluations: int | None = None,
    tol: float | None = None,
    kl_tol: float | None = None,
    starts: int | ArrayLike = 1,
    vectorized: bool | None = None,
    grad: Callable[[Array], Any] | str | None = None,
    noise: float | None = None,
    rng: int | np.random.Generator = 0,
    n_jobs: int | None = None,
    timeout: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: float = 60.0,
    progress: bool = False,
    callback: Callback | None = None,
) -> Posterior:
    """Approximate a posterior by a Gaussian, or a mixture, from evaluations of the log-likelihood alone.

    Parameters
    ----------
    log_likelihood : callable
        (S, d) array -> (S,) array, one value per row, or (d,) array -> float.
        With ``prior=None`` it is the whole log posterior density, up to a constant: a density of θ, or for a `Model`
        one of the parameters on their own scale. (Networks and the regressions of `mgvbp.models` have a default prior;
        ``fit`` of a function that calls one of them has none.) If it has an attribute ``parameters``, as a `Model` and
        all of `mgvbp.models` have, the posterior gives each parameter by its name. A model of PyMC, statsmodels, arch
        or BridgeStan is taken as it is, ``fit(model)`` is ``fit(from_pymc(model))``, and one of NumPyro if it takes no
        arguments.
    prior : Gaussian, Posterior, distribution, function, dict, object with ``log_density((S, d)) -> (S,)``, or None
        A Gaussian is a density of θ itself, without a Jacobian. So is a distribution of ``scipy.stats``, a univariate
        one of every entry, and a function (S, d) -> (S,), for a function of θ. For a `Model` a dict has a distribution
        of the values of each name: it is ``parameters.prior(**dict)`` (see `Parameters`).
    dim : int, optional
        The number of parameters; needed only if neither their names, the prior nor ``initial_mean`` shows it.
    labels : sequence of str, optional
        A name for each entry of θ, if the function is one of θ itself: ``posterior["name"]`` is then the marginal of
        that entry, and tables, draws and files have the names. A `Model` has its own.
    method : {"auto", "mgvbp", "mgvb", "qbvi", "geodesic", "vogn"}, Auto or Method
        ``auto`` needs no tuning and certifies its result (`Posterior.gap`); for networks and minibatches it finds a
        mode and safeguards its steps, without a certificate. The named methods run with the paper's settings; an
        object such as ``MGVBP(step_size=..., ...)`` sets others.
    family : {"full", "diagonal", "mixture", "auto"}, BlockDiagonal, SparsePrecision or Mixture, optional
        The structure of the covariance: full by default, but diagonal for networks and minibatches with ``auto``. For
        more than 100 parameters of a function of JAX, a PyMC or a NumPyro model it is the `SparsePrecision` of the
        Hessian if that is sparse, which holds the best Gaussian; ``"full"`` keeps all entries.
        Blocks are given by index or, for named parameters, by name. ``"mixture"``, or ``Mixture(components=None)``, is
        a mixture of Gaussians with full covariances, which comes near posteriors of any shape in up to about 20
        dimensions, and more with gradients. ``"auto"`` is the Gaussian if it is within ``kl_tol`` of the posterior,
        else the mixture. Both state their distance to the posterior (`Posterior.kl`).
    estimator : {"auto", "h", "loglik", "regression", "gradient", "fisher"} or Estimator
        How the named methods estimate the gradients of the lower bound. ``auto`` is "gradient" if ``log_likelihood``
        has a gradient, else "regression" if it is affordable, else "h".
    draws : {"auto", "mc", "antithetic", "sobol"}
        How the named methods draw: independently ("mc", the default), in pairs ±ε, or by a scrambled Sobol sequence.
    num_draws : int, optional
        Draws per iteration of the named methods.
    initial_mean : array_like of shape (d,), optional
        Where to start; by default the prior's mean, or 0. A model that knows better, as those of `from_statsmodels`
        do, has a Gaussian as its attribute ``start``.
    initial_variance : float, or array_like of shape (d,) or (d, d), optional
        The variance to start with; 1 by default, or that of a model's default prior.
    max_iterations : int, optional
        Iterations after which to stop.
    max_evaluations : int, optional
        The fit never makes more evaluations of the log-likelihood than this.
    tol : float, optional
        For ``auto``: how many nats below its optimum the lower bound may be. By default 0.01 for at most 50
        parameters and d/5000 for more of them (0.2 nats for 1,000), so that each is known equally well. For a mixture
        it is the tolerance of the Gaussian that it starts from, 0.2 by default.
    kl_tol : float, optional
        For ``family="mixture"`` and ``"auto"``: how many nats from the posterior are near enough; 0.05 by default.
    starts : int or array_like of shape (K, d)
        For ``auto``: how many starts to try, or their means. All are screened, and the best goes on. The first start
        is ``initial_mean``; the others are drawn from the prior if it is Gaussian, else from the initial Gaussian.
    vectorized : bool, optional
        Whether ``log_likelihood`` takes all draws at once, which is much faster in NumPy. If it is not said, the first
        evaluation finds out: it tries all draws, and one of them if that fails.
    grad : callable, "jax" or "torch", optional
        The gradient of ``log_likelihood``, (S, d) -> (S, d), or (d,) -> (d,) where that takes one draw. ``"jax"`` and
        ``"torch"`` are for a function, or a `Model` of a function, that JAX (`from_jax`) or PyTorch (`from_torch`) can
        differentiate. Models with a method
        ``value_and_grad`` need no ``grad``. A function is first compared with differences of ``log_likelihood``,
        which takes four evaluations that are not counted.
    noise : float, optional
        For ``auto``: the standard deviation, in nats, of the noise in the values of a log-likelihood that is itself an
        estimate. By default a few draws are evaluated again to see whether there is any; 0 says that there is none.
        Noise is averaged over and is part of the gap.
    rng : int or numpy.random.Generator
    n_jobs : int, optional
        How many workers evaluate draws, through joblib; −1 means one per core. The default is that of
        `joblib.parallel_config`, or this process alone. Evaluations that are too cheap to share stay in this process.
        With workers, a draw whose evaluation fails is tried once more, then left out and counted
        (`Posterior.failures`). Without workers, the exception passes through.
    timeout : float, optional
        Seconds after which the evaluation of a draw has failed.
    checkpoint : path, optional
        Keep the state of the run in this file, from which `mgvbp.resume` continues it. The file must not exist yet.
    every : float
        Seconds between two writes of the checkpoint.
    progress : bool
        Show a progress bar.
    callback : callable, optional
        Called with an `Iteration` after each iteration; a true return value stops the run.

    Returns
    -------
    Posterior
        After control-C it is the best approximation so far, with a warning: ``converged`` is False and
        ``stop_reason`` is "interrupted".

    Raises
    ------
    KeyboardInterrupt
        After control-C, if there is no lower bound yet. A checkpoint is written before.
    InvalidInputError, InvalidTypeError
        An argument cannot be used.
    EvaluationError
        The function returned something other than one real number per draw. An exception raised by the function
        itself passes through; its attribute ``theta`` has the draws that the function was given.

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
    log_likelihood = as_function(log_likelihood)
    automatic = isinstance(method, Auto) or (isinstance(method, str) and method == "auto")
    if tol is not None and method != "auto":
        raise InvalidInputError(
            "tol= goes with method='auto': write Auto(tol), or leave it out for a named method"
        )
    aim = _aim(family, kl_tol)
    if aim is not None and method != "auto":
        raise InvalidInputError(
            "family='mixture' and 'auto' go with method='auto' (and tol= instead of Auto(tol))"
        )
    density = as_prior(prior, log_likelihood)
    named = labels is not None or agreed_parameters(log_likelihood, density) is not None
    if dim is None and initial_mean is not None and not isinstance(density, Gaussian) and not named:
        dim = as_floats(initial_mean, "initial_mean").size
    dim = 0 if dim is None else positive_integer(dim, "dim")
    problem = posed(log_likelihood, density, dim, vectorized, grad, labels)
    key = as_key(rng)
    if family is None and automatic and noise is None and max_evaluations is None:
        family = sparse_family(problem, initial_mean, initial_variance, key)
    structure = _structure(family, problem, automatic)
    derived = own_gradient(log_likelihood)
    if derived is not None and not problem.has_gradient:
        # a model's own gradient serves where it is asked for, or values do not suffice
        ready = isinstance(log_likelihood, SmoothRegression)
        asked = ready and _is_gradient(estimator)
        many = (ready and problem.dim > VALUES_UP_TO) or not affordable(structure, problem)
        if asked or (automatic and many):
            problem = posed(log_likelihood, density, dim, vectorized, derived, labels)
    aim = _affordable(aim, problem)
    if isinstance(method, str) and method == "auto":
        loose = aim is not None and not aim.or_gaussian
        method = Auto(LOOSE if loose and tol is None else tol)
    if isinstance(method, Auto) and _is_gradient(estimator):
        problem.require("gradients")
    begin = getattr(log_likelihood, "start", None)
    if isinstance(begin, Gaussian) and initial_mean is None and initial_variance is None:
        initial_mean, initial_variance = begin.mean, _variance(begin)
    elif prior is None and initial_variance is None and isinstance(problem.prior, Gaussian):
        initial_variance = _variance(problem.prior)  # a model's own prior knows the units of its data
    settings = Settings(
        method=method,
        family=structure,
        estimator=estimator,
        draws=draws,
        num_draws=num_draws,
        initial_mean=initial_mean,
        initial_variance=initial_variance,
        max_iterations=None if max_iterations is None else positive_integer(max_iterations, "max_iterations"),
        max_evaluations=max_evaluations,
        starts=starts,
        noise=noise,
        rng=key,
        aim=aim,
    )
    recorder = None
    if checkpoint is not None:
        recorder = Recorder(checkpoint, every, recorded(problem, density, settings, vectorized, labels))
    execution = Execution(n_jobs, timeout, progress, callback, recorder)
    # with a timeout the function may hang, so it is not called here
    if problem.grad is not None and timeout is None:
        mean, factor, *_ = initial_frame(settings.family, density, initial_mean, initial_variance)
        q = Gaussian.from_factor(mean, factor, settings.family)
        check_gradient(problem, q, np.random.default_rng((*settings.rng, STREAM)))
    return conduct(problem, settings, execution)


def _structure(family: str | Family | Mixture | None, problem: Problem, automatic: bool) -> Family:
    """The covariance structure of the Gaussian; by default full, or diagonal for networks and minibatches."""
    if family is None:
        family = "diagonal" if automatic and streams(problem, None) else "full"
    if isinstance(family, str):
        others = ", or a BlockDiagonal, SparsePrecision, LowRank or Mixture"
        one_of(family, ["full", "diagonal", "mixture", "auto"], "family", others)
    structure: Any = "full" if _is_mixture(family) else family
    return resolve_family(structure, problem.dim, problem.labels)


def _variance(q: Gaussian) -> Array:
    """The covariance (d, d), or the variances (d,) where the family is diagonal or a covariance would be too large."""
    return q.std**2 if isinstance(q.family, Diagonal | Structured) else q.covariance


def _is_gradient(estimator: object) -> bool:
    return isinstance(estimator, Gradient) or (isinstance(estimator, str) and estimator == "gradient")


def _is_mixture(family: object) -> TypeGuard[str | Mixture]:
    return isinstance(family, Mixture) or (isinstance(family, str) and family in ("mixture", "auto"))


def _affordable(aim: Aim | None, problem: Problem) -> Aim | None:
    """The same aim, if a mixture may have so many parameters; ``family="auto"`` is the Gaussian with more of them."""
    most = MOST_WITH_GRADIENTS if uses_gradient(problem) else MOST_PARAMETERS
    if aim is None or problem.dim <= most:
        return aim
    if aim.or_gaussian:
        return None
    raise InvalidInputError(
        f"family='mixture' is for at most {MOST_PARAMETERS} parameters, or {MOST_WITH_GRADIENTS} with "
        f"gradients, and there are {problem.dim}: fit a Gaussian, and go on from there with posterior.mcmc()"
    )


def _aim(family: object, kl_tol: float | None) -> Aim | None:
    """What a mixture is to reach; None if a Gaussian is wanted."""
    if not _is_mixture(family):
        if kl_tol is not None:
            raise InvalidInputError("kl_tol= goes with family='mixture' or 'auto'")
        return None
    components = family.components if isinstance(family, Mixture) else None
    return Aim(Aim.kl_tol if kl_tol is None else kl_tol, components, family == "auto")
