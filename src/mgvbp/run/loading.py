"""A posterior from a file, and the model that it belongs to, which the file has not."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.posterior import Posterior, read_posterior
from mgvbp.problem.problem import LogLikelihood
from mgvbp.run.density import Density
from mgvbp.run.posing import PriorLike, as_function, as_prior, own_gradient, posed


def load(
    path: str | PathLike[str],
    log_likelihood: LogLikelihood | None = None,
    prior: PriorLike | None = None,
    *,
    grad: Callable[[Array], Any] | str | None = None,
) -> Posterior:
    """Read a posterior that `Posterior.save` wrote; with its model it can do all that it could when it was fitted.

    The file has not the model. Without it a posterior has its numbers, draws and pictures; `Posterior.diagnose`,
    `Posterior.mcmc`, `Posterior.predict` and the names of another package's model need it.

    Parameters
    ----------
    path : path
        The file.
    log_likelihood, prior, grad : optional
        The model, as it was given to `fit`. Its parameters must have the labels in the file; values are not compared.

    Raises
    ------
    FileFormatError
        The file is damaged, of another version, or not a posterior.
    InvalidInputError
        The model has other parameters than the posterior.

    Examples
    --------
    >>> import mgvbp, pathlib, tempfile
    >>> def log_density(theta):
    ...     return -0.5 * theta[:, 0] ** 2
    >>> posterior = mgvbp.fit(log_density, dim=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     posterior.save(pathlib.Path(folder, "posterior.npz"))
    ...     again = mgvbp.load(pathlib.Path(folder, "posterior.npz"), log_density)
    >>> bool(again.lower_bound == posterior.lower_bound), again.diagnose().verdict
    (True, 'trust')
    """
    posterior = read_posterior(path)
    if log_likelihood is None:
        if prior is not None or grad is not None:
            raise InvalidInputError("prior= and grad= are parts of a model: give its log_likelihood too")
        return posterior
    log_likelihood = as_function(log_likelihood)
    if grad is None and posterior.estimator == "gradient":
        grad = own_gradient(log_likelihood)
    problem = posed(log_likelihood, as_prior(prior, log_likelihood), posterior.dim, None, grad)
    if problem.labels is not None and problem.labels != posterior.labels:
        raise InvalidInputError(
            f"{path} is the posterior of another model: it has the parameters {', '.join(posterior.labels)}, and this "
            f"model {', '.join(problem.labels)}"
        )
    posterior.parameters = problem.parameters or posterior.parameters
    posterior._target, posterior._model = Density(problem), problem.log_likelihood
    posterior._pointwise = getattr(problem.log_likelihood, "pointwise", None)
    return posterior
