r"""`nested`: the marginal of a few hubs, and the Gaussian of all other parameters given each value of them.

The scale of a hierarchy and its effects form a funnel, of which a Gaussian fits a slice. Given the scale, the effects
are nearly Gaussian. For a value h of the hubs let :math:`q_h(x)` be the sparse Gaussian of the others x with the
largest

.. math::
    \mathcal{L}(h) = E_{q_h}[\log p(x, h) - \log q_h(x)] \le \log p(h) .

This function of a few parameters is the log density of the hubs up to what :math:`q_h` leaves, and `fit` takes it as
any other. With its result q(h), the lower bound of :math:`q(h)\,q_h(x)` on the evidence is that of the fit, but for the
noise below. Integrated nested Laplace approximations (Rue, Martino and Chopin 2009) are the same idea with the Gaussian
at the mode in the place of the best one.

:math:`q_h` is found by steps

.. math::
    P^+ = (1 - \beta) P - \beta\, E[\nabla^2_x \log p], \qquad m^+ = m + \beta\,(P^+)^{-1} E[\nabla_x \log p] ,

as in `mgvbp.auto.searches.structured`, from the nearest h that is known. All h have the same pairs ±ε, so that the
noise of their bounds is nearly the same. It cancels in the marginal, and stays in the lower bound, whose error does not
know of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_generator, as_key, positive_integer, shown
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError, NotPositiveDefiniteError
from mgvbp.families import SparsePrecision
from mgvbp.families.base import Indices
from mgvbp.families.gaussian import LOG_2PI, Gaussian, as_rows
from mgvbp.interop import ForeignParameters
from mgvbp.methods.optimizer import STREAM
from mgvbp.posterior.posterior import Posterior
from mgvbp.problem.parameters import Key, Parameters, real
from mgvbp.problem.problem import NamedParameters, Problem, density_and_gradient
from mgvbp.run.density import ALL_DATA, Density
from mgvbp.run.fitting import fit
from mgvbp.transforms import Real, Transform

MOST_HUBS = 6
"""Most hubs: their density is known by its values alone, for which there are to be few parameters."""
PAIRS = 32
"""Fewest pairs of draws. With 128 the moments of the three hubs of a stochastic volatility model with 500 days are the
same within 0.02 of their standard deviations."""
PER_NEIGHBOUR = 3
"""Fewest pairs per coefficient of a regression."""
NEAR = 1e-4
"""A Gaussian is the best one if the next step promises less than this, in nats. Steps are near to Newton's, so that it
costs one more than a tenth as near."""
MOST_STEPS = 40
"""Most steps for one value of the hubs; the bound of the last Gaussian is a bound, too."""
SHORTEST = 1e-6
"""Shorter steps are not tried: the precision hardly changes."""
DRAWS = 200
"""Draws of the hubs over which the moments of all others are averaged."""
MOST_NUMBERS = 2e7
"""Most numbers in the Gaussians that are kept, of which the nearest one begins the next search: 0.16 GB."""


class Known(NamedTuple):
    """The Gaussian of the rest at a value of the hubs (k,), and its bound."""

    hubs: Array
    mean: Array
    factor: Array
    bound: float = -np.inf


class Seen(NamedTuple):
    """What the draws say of such a Gaussian: its bound, and the expected gradient and Hessian by the rest."""

    bound: float
    slope: Array
    curvature: Array


class Given:
    """The bound on the log density of the hubs, (S, k) -> (S,), by the best Gaussian of the rest given each row."""

    vectorized = True

    def __init__(self, problem: Problem, q: Posterior, hubs: Indices, key: tuple[int, ...]) -> None:
        assert isinstance(q.family, SparsePrecision)
        self.problem, self.dim, self.hubs = problem, q.dim, hubs
        self.parameters = named(q, hubs)
        self.rest = np.setdiff1d(np.arange(q.dim), hubs)
        self.family = family = q.family.without(hubs)
        pairs = max(PAIRS, PER_NEIGHBOUR * family.neighbours.hubs[1])
        half = np.random.default_rng((*key, STREAM)).standard_normal((pairs, family.dim))
        self.eps = np.concatenate([half, -half])
        self.start = Gaussian(q.mean[hubs], variance=q.std[hubs] ** 2)
        precisions = q.family.diagonal(q.family.entries(q.factor))[self.rest]
        first = Known(q.mean[hubs], q.mean[self.rest], family.factor(precision=precisions))
        self._known = [self._climbed(first)]
        self._most = max(1, int(MOST_NUMBERS / (family.dim + family.shape[0])))

    def __call__(self, hubs: Array) -> Array:
        """The bounds at the rows of ``hubs``; −inf where no Gaussian near that of other hubs has finite values."""
        return np.array([self.at(row).bound for row in hubs])

    def at(self, hubs: Array) -> Known:
        """The best Gaussian of the rest for one value of the hubs (k,)."""
        away = np.array([known.hubs for known in self._known]) - hubs
        nearest = self._known[int(np.square(away / self.start.std).sum(axis=1).argmin())]
        if (nearest.hubs == hubs).all():
            return nearest
        found = self._climbed(nearest._replace(hubs=hubs, bound=-np.inf))
        if found.bound > -np.inf:
            self._known = [*self._known, found][-self._most :]
        return found

    def _climbed(self, start: Known) -> Known:
        """The best Gaussian at these hubs, from one that is known to be near; its bound is −inf if there is none."""
        best = candidate = start
        here, least, beta = None, np.inf, 1.0
        for _ in range(MOST_STEPS):
            now = self._seen(candidate)
            whole = None if now is None else self._step(candidate, now, 1.0)
            promised = np.inf if whole is None else whole[1]
            if now is not None and (now.bound > best.bound or promised < least):
                best, here, least = candidate._replace(bound=now.bound), now, promised
                beta = min(1.0, 2.0 * beta)
            else:
                beta *= 0.5
            if here is None or least < NEAR:
                break
            step = whole if beta == 1.0 else self._step(best, here, beta)
            while step is None and beta > SHORTEST:
                beta *= 0.5
                step = self._step(best, here, beta)
            if step is None:
                break
            candidate = step[0]
        return best

    def _step(self, q: Known, here: Seen, beta: float) -> tuple[Known, float] | None:
        """The Gaussian after a step β and the nats that it promises; None if it has no precision."""
        family = self.family
        try:
            factor = family.cholesky((1.0 - beta) * family.entries(q.factor) - beta * here.curvature)
        except NotPositiveDefiniteError:
            return None
        move, turn = family.solve(factor, here.slope), family.whitened(factor, factor - q.factor)
        mean = q.mean + beta * family.from_frame(factor, move)
        return q._replace(mean=mean, factor=factor), 0.5 * float(move @ move + turn @ turn)

    def _seen(self, q: Known) -> Seen | None:
        """What the draws say; None if one of them is not finite."""
        family, pairs = self.family, len(self.eps) // 2
        delta = family.from_frame(q.factor, self.eps)
        theta = np.empty((len(delta), self.dim))
        theta[:, self.rest], theta[:, self.hubs] = q.mean + delta, q.hubs
        found = self.problem.evaluate_at(ALL_DATA, theta.copy(), "gradients")
        values, slopes = density_and_gradient(self.problem.prior, theta, *found)
        slopes = slopes[:, self.rest]
        if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
            return None
        of_q = family.log_root(q.factor) - 0.5 * (np.square(self.eps).sum(axis=1) + family.dim * LOG_2PI)
        curvature = family.curvature(delta[:pairs], 0.5 * (slopes[:pairs] - slopes[pairs:]))
        assert curvature is not None  # there are enough pairs
        return Seen(float((values - of_q).mean()), slopes.mean(axis=0), curvature)


class Nested:
    r"""The distribution :math:`q(h)\,q_h(x)` that `nested` returns.

    Attributes
    ----------
    hubs : Posterior
        The hubs by themselves. Its lower bound is that of the whole distribution on the evidence, but for the noise of
        the pairs that all values of the hubs share: the spread of log p − log q over 8, which is not in its error.
    """

    def __init__(self, hubs: Posterior, given: Given) -> None:
        self.hubs, self._given = hubs, given

    @property
    def dim(self) -> int:
        """The number of parameters d."""
        return self._given.dim

    @property
    def mean(self) -> Array:
        """The means, (d,), on the unconstrained scale."""
        return self._moments[0]

    @property
    def std(self) -> Array:
        """The standard deviations, (d,)."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Those of the rest are averages over draws of the hubs of what is known given each of them."""
        given, mean, std = self._given, np.empty(self.dim), np.empty(self.dim)
        known = [given.at(row) for row in self.hubs.sample(DRAWS, 0)]
        means = np.array([q.mean for q in known])
        within = np.mean([given.family.variances(q.factor) for q in known], axis=0)
        mean[given.rest], std[given.rest] = means.mean(axis=0), np.sqrt(within + means.var(axis=0))
        mean[given.hubs], std[given.hubs] = self.hubs.mean, self.hubs.std
        return mean, std

    def sample(self, n: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``n`` points, (n, d). Each takes some evaluations: the Gaussian of the rest given its hubs."""
        generator, given = as_generator(rng), self._given
        theta = np.empty((positive_integer(n, "n"), self.dim))
        theta[:, given.hubs] = self.hubs.sample(n, generator)
        for row in theta:
            q = given.at(row[given.hubs])
            row[given.rest] = q.mean + given.family.from_frame(
                q.factor, generator.standard_normal(given.family.dim)
            )
        return theta

    def log_density(self, theta: ArrayLike) -> Array:
        """Log density at each row of ``theta``, (S, d) -> (S,); each takes some evaluations, as in `sample`."""
        given, points = self._given, as_rows(theta, self.dim)
        out = self.hubs.log_density(points[:, given.hubs])
        for k, row in enumerate(points):
            q = given.at(row[given.hubs])
            of_rest = Gaussian.from_factor(q.mean, q.factor, given.family)
            out[k] += of_rest.log_density_at(row[None, given.rest])[0]
        return out

    def __repr__(self) -> str:
        return f"Nested(hubs={', '.join(self.hubs.labels)}; dim={self.dim})"


def nested(
    posterior: Posterior,
    hubs: Sequence[str | int] | None = None,
    *,
    rng: int | np.random.Generator = 0,
    **options: Any,
) -> Nested:
    """Go on from a fit with a `SparsePrecision` to the marginal of its hubs, which need not be Gaussian.

    Scales of hierarchies and of time series are such hubs: all effects or states depend on them, and the best Gaussian
    of all parameters has far too small standard deviations for them. Here all others are Gaussian only given the hubs.

    Parameters
    ----------
    posterior : Posterior
        A fit with ``family=SparsePrecision(...)``, by gradients.
    hubs : sequence of str or int, optional
        Labels or indices of at most six parameters. By default those that depend on many others in the pattern.
    rng : int or numpy.random.Generator
    **options
        Options of `mgvbp.fit` for the hubs. By default it goes on to a mixture where a Gaussian is not near enough
        (``family="auto"``).

    Returns
    -------
    Nested
        With ``hubs``, their posterior, and ``mean``, ``std``, `sample` and `log_density` of all parameters.

    Examples
    --------
    A random walk of 200 days that is observed with noise, whose scales are not known.

    >>> import mgvbp
    >>> y = np.cumsum(0.2 * np.random.default_rng(0).standard_normal(200)) + np.sin(99.0 * np.arange(200))
    >>> class Level:
    ...     def value_and_grad(self, theta):
    ...         x, s = theta[:, :200], theta[:, 200:]
    ...         left, steps = y - x, np.diff(x, prepend=0.0)
    ...         squares = np.column_stack([np.square(left).sum(axis=1), np.square(steps).sum(axis=1)])
    ...         scales = np.exp(-2.0 * s)
    ...         value = -(0.5 * scales * squares + 200.0 * s + 0.5 * s**2).sum(axis=1)
    ...         slopes = scales[:, 1:] * steps
    ...         by_x = scales[:, :1] * left - slopes + np.append(slopes[:, 1:], 0.0 * s[:, :1], axis=1)
    ...         return value, np.hstack([by_x, scales * squares - 200.0 - s])
    ...     def __call__(self, theta):
    ...         return self.value_and_grad(theta)[0]
    >>> posterior = mgvbp.fit(Level(), dim=202, family=mgvbp.SparsePrecision.arrow(202, hubs=2, order=1))
    >>> whole = mgvbp.nested(posterior)
    >>> posterior.std[-1].round(2), whole.std[-1].round(2)  # of the log of the scale of the steps
    (np.float64(0.05), np.float64(0.21))
    """
    if not isinstance(posterior, Posterior):
        raise InvalidTypeError(f"posterior must be what mgvbp.fit returns; got {shown(posterior)}")
    family, density = posterior.family, posterior._target
    if density is None:
        raise InvalidInputError(
            "a loaded posterior does not know its model: mgvbp.load(path, log_likelihood, prior)"
        )
    if not isinstance(family, SparsePrecision) or not isinstance(density, Density):
        raise InvalidInputError(
            "nested takes a fit with family=SparsePrecision(...), whose zeros say what depends on its hubs; got the "
            f"{family.name} family"
        )
    where = family.hubs if hubs is None else chosen(hubs, posterior.labels)
    if not 0 < len(where) <= min(MOST_HUBS, posterior.dim - 1):
        raise InvalidInputError(
            f"the pattern has {len(where)} parameters on which many others depend; expected 1 to {MOST_HUBS}: choose "
            "them, as in hubs=['sigma']"
            if hubs is None
            else f"give 1 to {MOST_HUBS} hubs, and not all parameters; got {len(where)}"
        )
    key = as_key(rng)
    given = Given(density.problem, posterior, where, key)
    chosen_options: dict[str, Any] = {
        "family": "auto",
        "noise": 0.0,
        "rng": np.random.default_rng(key),
    } | options
    return Nested(fit(given, **chosen_options), given)


def chosen(hubs: Sequence[str | int], labels: Sequence[str]) -> Indices:
    """The indices of hubs that are given by labels or indices, sorted."""
    places: dict[Any, int] = {label: k for k, label in enumerate(labels)} | {k: k for k in range(len(labels))}
    try:
        if isinstance(hubs, str):  # whose letters might be labels
            raise TypeError
        return np.unique([places[hub] for hub in hubs])
    except (KeyError, TypeError):
        raise InvalidInputError(
            f"hubs must be a list of labels, such as {labels[-1]!r}, or of indices below {len(labels)}; "
            f"got {shown(hubs)}"
        ) from None


def named(posterior: Posterior, hubs: Indices) -> NamedParameters:
    """The parameters that the hubs are, with their constraints; entries of θ where they are parts of a constrained one.

    What has a name stands for a value under its constraint, and what is called ``theta[3]`` for a number of θ.
    """
    given, inside = posterior.parameters, set(hubs.tolist())
    if isinstance(given, Parameters):
        transforms = given.transforms
        found: dict[Key, Transform] = {}
        for name, where in given.slices.items():
            entries, transform = range(given.dim)[where], transforms.get(name)
            if transform is not None and inside.issuperset(entries):
                found[name] = transform
                continue
            plain = isinstance(transform, Real)
            found |= {given.labels[k] if plain else f"theta[{k}]": Real() for k in entries if k in inside}
        return Parameters(found)
    if isinstance(given, ForeignParameters):
        names = [name for name, where in given.slices.items() if inside.issuperset(range(given.dim)[where])]
        part = given.part(names, posterior.mean)
        if part.dim == len(hubs):
            return part
    return real([f"theta[{k}]" for k in hubs])
