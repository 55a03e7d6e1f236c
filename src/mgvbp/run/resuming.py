"""`resume`: continue a fit from its checkpoint; and what a checkpoint has to say about the fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from os import PathLike
from typing import Any

import numpy as np

from mgvbp.auto import Auto, streams
from mgvbp.core.checks import as_floats, as_path, positive_integer, true_or_false
from mgvbp.core.linalg import Array
from mgvbp.core.version import __version__
from mgvbp.errors import FileFormatError, InvalidInputError
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods.optimizer import initial_frame
from mgvbp.posterior.posterior import Posterior
from mgvbp.problem.problem import LogLikelihood, Prior, Problem, log_prior
from mgvbp.run.checkpoints.checkpoint import Recorder, read_checkpoint
from mgvbp.run.conduct import Settings, conduct
from mgvbp.run.execution import Execution
from mgvbp.run.loop import Callback
from mgvbp.run.posing import PriorLike, as_function, as_prior, own_gradient, posed

BESIDES = ("version", "dim", "vectorized", "gradient", "prior", "other_prior", "prior_values", "labels")
"""What a checkpoint has besides the settings of a fit."""


def resume(
    path: str | PathLike[str],
    log_likelihood: LogLikelihood,
    prior: PriorLike | None = None,
    *,
    grad: Callable[[Array], Any] | str | None = None,
    max_evaluations: int | None = None,
    n_jobs: int | None = None,
    timeout: float | None = None,
    every: float = 60.0,
    check: bool = True,
    progress: bool = False,
    callback: Callback | None = None,
) -> Posterior:
    """Continue a fit from its checkpoint: the result is, bit for bit, that of a fit without the break.

    This holds on the same platform and for a function that gives the same values again. With ``n_jobs`` values may
    differ in their last digits, as draws are then grouped by how long they took.

    Parameters
    ----------
    path : path
        The file that ``fit(..., checkpoint=path)`` wrote. The state of the continued run is kept in it too.
    log_likelihood : callable
        The same as before. It is evaluated again at two of the first draws, and refused if its values or derivatives
        differ from those in the file.
    prior : optional
        The same as before, if it was not Gaussian; a Gaussian prior is in the file.
    max_evaluations : int, optional
        A larger limit than before: a fit that had come to its limit goes on to this one. Evaluations so far count. The
        fit may differ a little from one that had this limit from the start. Mixtures and minibatches keep theirs.
    check : bool
        False for a log-likelihood that is random, whose values cannot be compared.
    grad, n_jobs, timeout, every, progress, callback
        As for `fit`.

    Raises
    ------
    FileFormatError
        The file is damaged, or not a checkpoint.
    InvalidInputError
        The checkpoint is one of another version, dimension or model.

    Examples
    --------
    >>> import mgvbp, pathlib, tempfile
    >>> def log_density(theta):
    ...     return -0.5 * (theta**2).sum(axis=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.npz")
    ...     first = mgvbp.fit(log_density, dim=2, checkpoint=path)
    ...     again = mgvbp.resume(path, log_density)
    >>> bool((first.mean == again.mean).all())
    True
    """
    saved, log_likelihood = read_checkpoint(as_path(path)), as_function(log_likelihood)
    density = as_prior(prior, log_likelihood)
    known, options = saved.settings, [field.name for field in fields(Settings)]
    if absent := [name for name in (*BESIDES, *options) if name not in known]:
        raise FileFormatError(f"{path} is not a valid checkpoint: it has no {absent[0]}")
    if known["version"] != __version__:
        raise InvalidInputError(
            f"{path} was written by mgvbp {known['version']}; this is {__version__}, whose draws may differ"
        )
    settings = Settings(**{name: known[name] for name in options})
    if known["other_prior"] and density is None:
        raise InvalidInputError(
            f"the fit had a prior {known['other_prior']}, which is not in {path}: give prior="
        )
    if (known["prior"] or not known["other_prior"]) and not _same(density, known["prior"]):
        had = "a Gaussian one, which is in the file" if known["prior"] else "none"
        raise InvalidInputError(f"this is not the prior of {path}, which had {had}: leave prior= out")
    if known["gradient"] and grad is None:
        grad = own_gradient(log_likelihood)
    problem = posed(
        log_likelihood, density or known["prior"], known["dim"], known["vectorized"], grad, known["labels"]
    )
    if known["gradient"] and not problem.has_gradient:
        raise InvalidInputError(
            f"the fit had a gradient, which is not in {path}: give grad= as it was given then"
        )
    if problem.has_gradient and not known["gradient"]:
        raise InvalidInputError(f"the fit of {path} had no gradient: leave grad= out")
    if not np.allclose(known["prior_values"], prior_values(problem, settings), 1e-6, 1e-9, equal_nan=True):
        raise InvalidInputError(f"this is not the prior of {path}: its log density has other values")
    if max_evaluations is not None:
        streamed = isinstance(settings.method, Auto) and streams(problem, settings.family)
        if streamed or settings.aim is not None:
            raise InvalidInputError(
                "the limit of a mixture, a network or minibatches cannot be changed by resume"
            )
        limit = positive_integer(max_evaluations, "max_evaluations")
        settings = replace(settings, max_evaluations=limit)
        saved = replace(saved, settings=saved.settings | {"max_evaluations": limit})
    recorder = Recorder(path, every, saved.settings, saved)
    execution = Execution(n_jobs, timeout, progress, callback, recorder, true_or_false(check, "check"))
    return conduct(problem, settings, execution)


def _same(given: Prior | None, stored: Gaussian | None) -> bool:
    """Whether the given prior is that of the file, or None."""
    if given is None or stored is None:
        return given is None
    return isinstance(given, Gaussian) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=0.0)
        for a, b in ((given.mean, stored.mean), (given.factor, stored.factor))
    )


def recorded(
    problem: Problem,
    prior: Prior | None,
    settings: Settings,
    vectorized: bool | None,
    labels: Sequence[str] | None,
) -> dict[str, Any]:
    """What a checkpoint must contain to repeat a fit with this prior, besides the log-likelihood."""
    gaussian, places = isinstance(prior, Gaussian), ("initial_mean", "initial_variance", "starts")
    given = {name: getattr(settings, name) for name in places}
    return {
        "version": __version__,
        "dim": problem.dim,
        "vectorized": vectorized,
        "gradient": problem.has_gradient,
        "prior": prior if gaussian else None,
        "other_prior": "" if gaussian or prior is None else type(prior).__name__,
        "prior_values": prior_values(problem, settings),
        "labels": None if labels is None else list(labels),
        **vars(settings),
        **{name: as_floats(v, name) for name, v in given.items() if not isinstance(v, int | float | None)},
    }


def prior_values(problem: Problem, settings: Settings) -> Array:
    """The log density of the prior where the fit begins and one standard deviation to either side, (3,).

    A checkpoint knows a prior that is not a Gaussian by these, and the constraints of a `Model` without a prior;
    zeros for all others.
    """
    if problem.prior is None or isinstance(problem.prior, Gaussian):
        return np.zeros(3)
    mean, factor, *_ = initial_frame(settings.family, None, settings.initial_mean, settings.initial_variance)
    std = Gaussian.from_factor(mean, factor, settings.family).std
    return log_prior(problem.prior, mean + np.outer([-1.0, 0.0, 1.0], std))
