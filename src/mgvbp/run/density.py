"""The density of a posterior, for what comes after the fit: a function of θ, and evaluations by workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Needs, Problem, grad_log_prior, log_prior
from mgvbp.run.evaluation.evaluation import Here, evaluator
from mgvbp.run.loop import lenient

ALL_DATA = cast(Any, None)
"""The iteration at which a log-likelihood of minibatches is that of all data."""


class Density:
    """log prior + log-likelihood of a problem; `Posterior` calls it and knows nothing of workers.

    Examples
    --------
    >>> density = Density(Problem(lambda theta: -(theta**2).sum(axis=1), dim=2))
    >>> density(np.ones((3, 2))), density.has_gradient
    (array([-2., -2., -2.]), False)
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __call__(self, theta: Array) -> Array:
        """Log densities (S,) at the rows of θ (S, d)."""
        return self.problem.evaluate(theta.copy()) + log_prior(self.problem.prior, theta)

    @property
    def has_gradient(self) -> bool:
        """Whether both parts of the density have a gradient."""
        return self.problem.has_gradient and not self.problem.missing_gradient

    @contextmanager
    def evaluating(
        self, gradients: bool, n_jobs: int | None, timeout: float | None, failures: Failures
    ) -> Iterator[Callable[[Array], tuple[Array, Array | None]]]:
        """Yield a function of θ (S, d) that gives log densities and, if wanted, gradients; nan where it fails.

        A pool of workers counts what fails in ``failures``. In this process an exception at the first batch passes, as
        the function is then broken; later it may be one of draws far out.
        """
        problem, prior = self.problem, self.problem.prior
        needs: Needs = "gradients" if gradients else "values"
        with evaluator(problem, needs, n_jobs, timeout, failures) as evaluate:
            begun = False

            def at(theta: Array) -> tuple[Array, Array | None]:
                nonlocal begun
                if begun and isinstance(evaluate, Here):
                    values, *derivatives = lenient(evaluate, ALL_DATA, theta.copy())
                else:
                    values, *derivatives = evaluate(ALL_DATA, theta.copy())
                begun = True
                with np.errstate(all="ignore"):
                    values = values + log_prior(prior, theta)
                    if not gradients:
                        return values, None
                    found = derivatives[0] if derivatives else np.full_like(theta, np.nan)
                    return values, found + grad_log_prior(prior, theta)

            yield at
