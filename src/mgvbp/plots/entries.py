"""The numbers that a posterior is made of, one by one, on the scale of their values; other draws and priors of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError, MgvbpWarning, UnknownNameError, warn_user
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.marginal import Marginal, marginal
from mgvbp.posterior.posterior import Posterior
from mgvbp.problem.parameters import Parameters, entry_labels
from mgvbp.problem.priors import ConstrainedPrior, univariate
from mgvbp.transforms import Elementwise, Real

Draws = Mapping[str, ArrayLike] | ArrayLike | Any
"""One of: a dict of values by name, each (N, *shape) or (chains, n, *shape); an array of θ, (N, d) or (chains, n, d);
an object with such an array as ``draws``, as `mgvbp.baselines.Chains`; a DataTree or InferenceData of ArviZ with a
group ``posterior``, or that group alone."""

Prior = Gaussian | ConstrainedPrior

UNNAMED = "theta"
"""What `Posterior.draws` calls θ where the parameters have no names."""


class Entry(NamedTuple):
    """One number: an entry of a parameter's value, or of θ where the parameters have no names."""

    label: str
    """The name, with what the entry is called, or its index, where it is one of several: as in the tables."""
    name: str
    shape: tuple[int, ...]
    position: int
    """The parameter, the shape of its value, and the number's place among those of the value in C order."""
    column: int | None = None
    """The number of the single entry of θ that decides it; None if it depends on several."""
    transform: Elementwise | None = None
    """The increasing function that maps this entry to it."""

    @property
    def numbered(self) -> str:
        """The name with the index, whatever the entry is called."""
        index = map(str, np.unravel_index(self.position, self.shape))
        return f"{self.name}[{','.join(index)}]" if self.shape else self.name

    def of(self, draws: Mapping[str, Array]) -> Array:
        """The draws (N,) of this number, out of those of all parameters, each (N, *shape)."""
        values = draws[self.name]
        return values.reshape(len(values), -1)[:, self.position]

    def law(self, q: Gaussian) -> Marginal | None:
        """The distribution of this number if θ ~ ``q``, with exact density and quantiles; None without a formula."""
        if self.column is None or self.transform is None:
            return None
        own = slice(self.column, self.column + 1)
        mixture = q.mixture if isinstance(q, Posterior) else None
        alone = (
            Gaussian(q.mean[own], variance=q.std[own] ** 2)
            if mixture is None
            else mixture.marginal([self.column])
        )
        return marginal(alone, Parameters({"value": self.transform}), "value")


def chosen(posterior: Posterior, names: str | Iterable[str] | None, most: int) -> list[Entry]:
    """The entries that ``names`` selects, by parameter or by label; by default all. At most ``most`` are allowed."""
    if not isinstance(posterior, Posterior):
        raise InvalidTypeError(f"expected a posterior, as mgvbp.fit returns it; got {posterior!r}")
    by_name = _entries(posterior)
    if names is None:
        own = by_name if posterior.parameters is None else posterior.parameters.names
        found = [entry for name in own for entry in by_name[name]]
    else:
        found = _with_names(by_name, [names] if isinstance(names, str) else names)
    if len(found) > most:
        raise InvalidInputError(
            f"{len(found):,} panels are too many to read, {most} at most: choose with names=, such as "
            f"names={[entry.label for entry in found[:2]]!r}"
        )
    return found


def _entries(posterior: Posterior) -> dict[str, list[Entry]]:
    parameters = posterior.parameters
    if parameters is None:
        shape = (posterior.dim,)
        every = [Entry(label, UNNAMED, shape, i, i, Real()) for i, label in enumerate(posterior.labels)]
        return {UNNAMED: every} if UNNAMED not in posterior.labels else {e.label: [e] for e in every}
    shapes = {name: np.shape(v)[1:] for name, v in parameters.constrain(posterior.mean[None]).items()}
    known = parameters.transforms if isinstance(parameters, Parameters) else {}
    slices = parameters.slices if isinstance(parameters, Parameters) else {}
    by_name = {}
    for name, shape in shapes.items():
        transform = known.get(name)
        single = transform.single if isinstance(transform, Elementwise) else None
        by_name[name] = [
            Entry(label, name, shape, i, slices[name].start + i if single else None, single)
            for i, label in enumerate(entry_labels(parameters, name, shape))
        ]
    return by_name


def _with_names(by_name: Mapping[str, list[Entry]], names: Iterable[str]) -> list[Entry]:
    every = [entry for entries in by_name.values() for entry in entries]
    by_label = {entry.numbered: [entry] for entry in every} | {entry.label: [entry] for entry in every}
    if not isinstance(names, Iterable):
        raise InvalidTypeError(f"names must be names of parameters, or labels of entries; got {names!r}")
    found: list[Entry] = []
    for name in names:
        entries = (by_name.get(name) or by_label.get(name)) if isinstance(name, str) else None
        if entries is None:
            known = [*by_name, *(entry.label for entry in every if entry.label not in by_name)]
            more = ", ..." if len(known) > 20 else ""
            raise UnknownNameError(
                f"no parameter is called {name!r}; there are {', '.join(known[:20])}{more}"
            )
        found += entries
    if not found:
        raise InvalidInputError("names is empty; leave it out to see all")
    return found


# --- draws from elsewhere -----------------------------------------------------------------------------


def columns(draws: Draws, posterior: Posterior, entries: list[Entry]) -> list[Array]:
    """The draws (N,) of each entry."""
    if isinstance(chains := getattr(draws, "draws", None), np.ndarray):
        draws = chains
    elif hasattr(draws, "posterior"):
        draws = draws.posterior
    if hasattr(draws, "data_vars"):
        # `Posterior.to_arviz` has no slashes in names
        own = {entry.name.replace("/", "|"): entry.name for entry in entries}
        draws = {own.get(str(name), str(name)): variable.values for name, variable in draws.data_vars.items()}
    if isinstance(draws, Mapping):
        return [_column(draws, entry) for entry in entries]
    theta = _flat(as_floats(draws, "draws"), (posterior.dim,), "draws")
    values = posterior.named(theta)
    return [entry.of(values) for entry in entries]


def _column(draws: Mapping[str, ArrayLike], entry: Entry) -> Array:
    if entry.name in draws:
        values = _flat(as_floats(draws[entry.name], f"draws[{entry.name!r}]"), entry.shape, entry.name)
        return entry.of({entry.name: values})
    for label in (entry.label, entry.numbered):
        if label in draws:
            return _flat(as_floats(draws[label], f"draws[{label!r}]"), (), label)
    raise InvalidInputError(
        f"draws has no {entry.name!r}, only {', '.join(map(str, draws)) or 'nothing'}: choose with names="
    )


def _flat(values: Array, shape: tuple[int, ...], name: str) -> Array:
    """Draws (N, *shape), of one chain or of several."""
    extra = values.ndim - len(shape)
    if extra not in (1, 2) or values.shape[extra:] != shape or values.size == 0:
        own = "".join(f", {n}" for n in shape)
        raise InvalidInputError(
            f"the draws of {name} have shape {values.shape}; expected (N{own}) or (chains, n{own})"
        )
    return np.reshape(values, (-1, *shape))


# --- priors -------------------------------------------------------------------------------------------


def has_formula(prior: Prior, entry: Entry) -> bool:
    """Whether `prior_density` has a formula for the density of a number."""
    if isinstance(prior, Gaussian):
        return entry.column is not None
    # where entries share a constraint, a distribution of single entries is not the density that the constraint leaves
    return univariate(prior.distributions.get(entry.name)) and (entry.column is not None or not entry.shape)


def prior_density(prior: Prior, entry: Entry, grid: Array) -> Array:
    """The density of one number at the points of ``grid``.

    For parameters under a common constraint it is the distribution as it was given, which ignores what the constraint
    cuts off.
    """
    if isinstance(prior, Gaussian):
        law = entry.law(prior)
        assert law is not None
        return np.asarray(law.density(grid))
    every = np.broadcast_to(grid.reshape(-1, *[1] * len(entry.shape)), (len(grid), *entry.shape))
    return entry.of({entry.name: np.asarray(prior.distributions[entry.name].pdf(every))})


def prior_draws(prior: Prior, posterior: Posterior, entries: list[Entry], n: int) -> dict[str, Array]:
    """``n`` draws of each parameter that has entries without a formula, (n, *shape).

    A parameter whose prior cannot be drawn from is left out, with a warning.
    """
    if not isinstance(prior, Gaussian | ConstrainedPrior):
        raise InvalidTypeError(
            f"prior must be a mgvbp.Gaussian, or what parameters.prior(...) returns; got {prior!r}"
        )
    if isinstance(prior, Gaussian) and prior.dim != posterior.dim:
        raise InvalidInputError(f"the prior has {prior.dim} dimensions, the posterior {posterior.dim}")
    wanted = {entry.name: entry for entry in entries if not has_formula(prior, entry)}
    if isinstance(prior, Gaussian):
        return posterior.named(prior.sample(n, rng=0)) if wanted else {}
    unknown = [name for name in wanted if not _can_be_drawn(prior.distributions.get(name))]
    if unknown:
        warn_user(
            f"the prior of {', '.join(unknown)} is left out of the picture, as the density of single entries is not "
            "known where the prior is a function, or one of single numbers under a vector constraint: give a "
            "distribution of the whole value that can be drawn from, as scipy.stats.dirichlet for a Simplex",
            MgvbpWarning,
            "prior-not-drawn",
        )
    rng = np.random.default_rng(0)
    return {
        name: np.reshape(prior.distributions[name].rvs(size=n, random_state=rng), (n, *entry.shape))
        for name, entry in wanted.items()
        if name not in unknown
    }


def _can_be_drawn(distribution: Any) -> bool:
    """Whether it is a multivariate distribution with draws of a whole value."""
    return hasattr(distribution, "rvs") and not univariate(distribution)
