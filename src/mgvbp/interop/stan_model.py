"""Stan programs through BridgeStan: the density, gradient and transforms are those of the compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.interop.model import ForeignModel, ForeignParameters, Observations

INTERFACE = (
    "log_density", "log_density_gradient", "param_constrain", "param_names", "param_unc_names", "param_unconstrain",
)  # fmt: skip
"""The methods of BridgeStan's ``StanModel`` that are used."""
POINTWISE = "log_lik"
"""What Stan's users call the log-likelihood of each observation, a vector among the generated quantities."""
SEED = 0
"""The seed of random generated quantities; the same draws of θ give the same ones again."""


def from_stan(model: Any, /) -> ForeignModel:
    """A Stan program, compiled by BridgeStan, in the form that `mgvbp.fit` takes, without a prior: it has its own.

    Parameters
    ----------
    model : bridgestan.StanModel, or an object with the same methods
        ``param_names`` and ``param_constrain`` take ``include_tp`` and ``include_gq``, ``log_density`` and
        ``log_density_gradient`` take ``propto``, as BridgeStan's do.

    Returns
    -------
    ForeignModel
        The log density of the unconstrained parameters with its gradient, one draw after the other. Scalars such as
        ``theta.1.2`` become arrays: ``posterior["theta"]`` has the shape that the program declares, counted from 0.
        `ForeignParameters.constrain` also gives transformed parameters and generated quantities. If one of these is
        called ``log_lik``, it is the group ``log_likelihood`` of `Posterior.to_arviz`.

        Where the program rejects, or raises an error, the density is zero; an error at all of several draws passes if
        no draw has had a value yet.

    Raises
    ------
    InvalidInputError
        The program has no parameters.
    InvalidTypeError
        The object lacks a method.

    Examples
    --------
    ::

        import bridgestan

        model = bridgestan.StanModel("eight_schools.stan", data="eight_schools.json")
        posterior = mgvbp.fit(mgvbp.from_stan(model))
    """
    if missing := [name for name in INTERFACE if not callable(getattr(model, name, None))]:
        raise InvalidTypeError(
            f"model must be a bridgestan.StanModel, or have its methods; {type(model).__name__} has no "
            f"{', '.join(missing)}: bridgestan.StanModel(program, data=data) takes the files of a cmdstanpy model"
        )
    names = list(model.param_names())
    if not names:
        raise InvalidInputError("the Stan program has no parameters: nothing to approximate")
    places = arrays_of(names)
    free = arrays_of(model.param_unc_names())
    if list(free) != [name for name in places if name in free]:
        raise InvalidInputError(
            f"the names of the unconstrained parameters, {', '.join(free)}, are not those of the parameters, "
            f"{', '.join(places)}"
        )
    derived = list(model.param_names(include_tp=True))
    everything = list(model.param_names(include_tp=True, include_gq=True))
    all_places, generated = arrays_of(everything), len(everything) > len(derived)

    def evaluate(theta: Array) -> dict[str, Array]:
        options: dict[str, Any] = {"include_tp": True}
        if generated:
            options |= {"include_gq": True, "rng": model.new_rng(SEED)}
        flat = np.array([model.param_constrain(row, **options) for row in np.ascontiguousarray(theta)])
        flat = flat.reshape(len(theta), len(everything))
        return {name: flat[:, where] for name, where in all_places.items()}

    def to_values(theta: Array) -> dict[str, Array]:
        return {name: value for name, value in evaluate(theta).items() if name != POINTWISE}

    def to_theta(values: dict[str, Array]) -> Array:
        rows = np.empty((len(next(iter(values.values()))), len(names)))
        for name, where in places.items():
            rows[:, where] = values[name]
        return np.array([inverse(model, row) for row in rows]).reshape(len(rows), -1)

    # θ has the columns of a matrix one after the other, so that its part is a vector; a simplex of one has none
    layout = {name: where.shape if where.ndim < 2 else (where.size,) for name, where in free.items()}
    parameters = ForeignParameters(
        {name: where.shape for name, where in places.items()},
        {name: layout.get(name, (0,)) for name in places},
        to_values,
        to_theta,
    )
    likelihoods = Observations(lambda theta: {POINTWISE: evaluate(theta)[POINTWISE]})
    return ForeignModel(StanDensity(model), parameters, likelihoods if POINTWISE in all_places else None)


class StanDensity:
    """The log density of a Stan program, constants and Jacobians included, (S, d) -> (S,), with its gradient."""

    def __init__(self, model: Any) -> None:
        self._model = model
        # whether a draw has had a value: then errors are about draws, not about the program
        self._worked = False

    def __call__(self, theta: Array) -> Array:
        """The log density at each row of θ; −inf where the program rejects."""
        return np.array([value for value, _ in self._rows(theta, gradients=False)])

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log densities (S,) and gradients (S, d); −inf and nan where the program rejects."""
        rows = self._rows(theta, gradients=True)
        return np.array([value for value, _ in rows]), np.array([row for _, row in rows]).reshape(theta.shape)

    def _rows(self, theta: Array, *, gradients: bool) -> list[tuple[float, Array]]:
        none, found, failed = np.full(theta.shape[1], np.nan), [], 0
        for row in np.ascontiguousarray(theta):
            try:
                if gradients:
                    value, gradient = self._model.log_density_gradient(row, propto=False)
                    found.append((float(value), np.array(gradient)))
                else:
                    found.append((float(self._model.log_density(row, propto=False)), none))
                self._worked = True
            except RuntimeError:  # BridgeStan's for whatever the program raises, reject() among it
                failed += 1
                if failed == len(theta) > 1 and not self._worked:  # one draw may be the initial mean alone
                    raise
                found.append((-np.inf, none))
        return found


def inverse(model: Any, row: Array) -> Array:
    """The unconstrained parameters of one vector of parameters; raise if it is outside the support."""
    try:
        return np.array(model.param_unconstrain(row))
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInputError(f"a value is outside the support of its parameter: {reason}") from None


def arrays_of(names: Sequence[str]) -> dict[str, Any]:
    """Where the entries of each array are among scalars that are called ``name.1.2``, counted from 1.

    Names with other parts, as of tuples and complex numbers (``z.real``), stay those of single numbers.

    Examples
    --------
    >>> arrays_of(["mu", "a.1.1", "a.2.1", "a.1.2", "a.2.2"])["a"]
    array([[1, 3],
           [2, 4]])
    """
    entries: dict[str, list[tuple[tuple[int, ...], int]]] = {}
    for position, scalar in enumerate(names):
        name, *index = scalar.split(".")
        if not all(part.isdecimal() for part in index):
            name, index = scalar, []
        entries.setdefault(name, []).append((tuple(int(part) - 1 for part in index), position))
    found = {}
    for name, members in entries.items():
        sizes = np.max([entry for entry, _ in members], axis=0) + 1 if members[0][0] else ()
        where = np.zeros(tuple(map(int, sizes)), int)
        for entry, position in members:
            where[entry] = position
        found[name] = where
    return found
