"""What all volatility models share: a mean, a distribution, a convention, a prior and how to fit."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from mgvbp.core import Array, as_generator, one_of, positive_integer
from mgvbp.families import Gaussian
from mgvbp.problem import Key, Parameters, Prior
from mgvbp.transforms import Real, Transform
from mgvbp.volatility.filters import Filter, FilterData, arch_startup, paper_startup
from mgvbp.volatility.forecast import Forecast, forecast
from mgvbp.volatility.laws import LAWS
from mgvbp.volatility.likelihood import Likelihood, Mean, Paths
from mgvbp.volatility.result import VolatilityResult, fit_volatility
from mgvbp.volatility.series import Series, advise
from mgvbp.volatility.simulation import BURN_IN, Future, checked_days

LEAST = 30
"""The fewest returns that a model is fitted to."""


class VolatilityModel(ABC):
    """Returns ``y_t = x_t'm + e_t``, ``e_t = √h_t z_t``, whose variance h_t is a function of the past.

    Parameters
    ----------
    mean : {"zero", "constant", "ar"}, optional
        The conditional mean; a constant by default, as in `arch`, and zero in the paper's convention.
    lags : int
        Of an autoregressive mean.
    dist : {"normal", "t", "skewt", "ged"}
        The distribution of z_t, with variance 1, under the names of `arch`: normal; Student's t with the degrees of
        freedom ``nu``; Hansen's skew-t with ``eta`` and the skewness ``lambda``; the generalised error distribution
        with the power ``nu``.
    convention : {"arch", "paper"}
        How the recursions start, and which prior is the default. "arch": the back-casts and bounds of the
        package of this name, and a prior that moves with the scale of the returns. "paper": fixed start-up
        values for returns in per cent, and N(0, 5 I) on ψ.

    Attributes
    ----------
    parameters : Parameters
        Names and constraints. ψ, the unconstrained θ of `mgvbp.fit`, is what the posterior is Gaussian in.
    """

    filter: Filter
    orders: tuple[int, ...]
    names: tuple[str, ...]
    """Of the parameters of the variance."""

    def __init__(
        self,
        *,
        mean: str | None = None,
        lags: int = 0,
        dist: str = "normal",
        convention: str = "arch",
    ) -> None:
        self.convention = one_of(convention, ("arch", "paper"), "convention")
        if mean is None:
            without_lags = "constant" if convention == "arch" else "zero"
            mean = "ar" if positive_integer(lags, "lags", least=0) else without_lags
        self.mean = Mean(mean, lags)
        self.dist = one_of(dist, tuple(LAWS), "dist")
        self.law = LAWS[self.dist]
        transforms: dict[Key, Transform] = {**dict.fromkeys(self.mean.names, Real()), **self._dynamics()}
        transforms.update(self.law.transforms.items())
        self.parameters = Parameters(transforms)

    @abstractmethod
    def _dynamics(self) -> dict[Key, Transform]:
        """The parameters of the variance and their constraints."""

    @abstractmethod
    def _guesses(self, variance: float) -> list[dict[str, float]]:
        """Parameters of the variance to start from, for returns of this variance."""

    def _prior_moments(self, variance: float) -> dict[str, tuple[float, float]]:
        """Mean and variance of ψ for those parameters of the variance that are not N(0, 5)."""
        return {"omega": (math.log(variance / 10.0), 5.0)}

    @abstractmethod
    def onward(self, likelihood: Likelihood, paths: Paths, shocks: Array) -> Future:
        """Variances and residuals (H, S) after the last day of ``paths``, for future ``shocks`` (H, S)."""

    @abstractmethod
    def _afresh(self, coefficients: Array, shocks: Array) -> Future:
        """A series without a past, from ``shocks`` (H, S)."""

    def coefficients(self, values: Mapping[str, Array]) -> Array:
        """What the filter takes, (k, S), from the values of the parameters, each (S,)."""
        return np.array([values[name] for name in self.names])

    def sample(self, y: Array, X: Array, reference: int) -> FilterData:
        """The data of the filter, with start-up values from the first ``reference`` rows."""
        m = np.linalg.lstsq(X[:reference], y[:reference])[0]
        residuals = y[:reference] - X[:reference] @ m
        startup = arch_startup if self.convention == "arch" else paper_startup
        return FilterData(y, X, startup(residuals))

    def likelihood(self, returns: Any) -> Likelihood:
        """The log-likelihood of ``returns`` as a function of draws of ψ, ready for `mgvbp.fit`."""
        return Likelihood(self, self.series(returns))

    def futures(self, likelihood: Likelihood, theta: Array, days: int, rng: np.random.Generator) -> Forecast:
        """The days after the series of ``likelihood``, one path for each draw ``theta`` (S, d) of ψ."""
        return forecast(likelihood, theta, days, rng)

    def series(self, returns: Any) -> Series:
        """``returns``, checked."""
        return Series.of(returns, least=LEAST + self.mean.lags)

    def prior(self, returns: Any) -> Gaussian:
        """The default prior, Gaussian in ψ.

        In the paper's convention N(0, 5 I). In that of `arch`, with s² the variance and m² the mean square of the
        returns: N(0, m²) for a constant, N(0, 1) for the other coefficients of the mean; log ω ~ N(log(s²/10), 5);
        N(0, 5) for the logits of the shares that the other coefficients of the variance take of their range; for
        an EGARCH N(0, 5) for ω and N(0, 1) for α and γ. In both, the logits of the shape parameters of the errors have
        variance 1 around those of ν = 10 in (2.05, 500) for the t, η = 10 in (2.05, 300) and λ = 0 in (−1, 1) for the
        skew-t, ν = 1.5 in (1.01, 500) for the GED.
        """
        values = self.series(returns).values
        variance = float(np.var(values))
        moments = dict.fromkeys(self.parameters.labels, (0.0, 5.0))
        if self.convention == "arch":
            moments |= dict.fromkeys(self.mean.names, (0.0, 1.0))
            if self.mean.names:
                moments[self.mean.names[0]] = (0.0, float(np.mean(values**2)))
            moments |= self._prior_moments(variance)
        moments |= self.law.prior_moments()
        mean, variances = np.array(list(moments.values())).T
        return Gaussian(mean, variance=variances)

    def starts(self, likelihood: Likelihood) -> Array:
        """Points ψ (G, d) over a coarse grid, of which the best is a good start."""
        sample = likelihood.sample
        m = np.linalg.lstsq(sample.X, sample.y)[0]
        guesses = self._guesses(float(np.var(sample.y - sample.X @ m)))
        fixed = dict(zip(self.mean.names, m, strict=True))
        points = [{**fixed, **self.law.typical, **guess} for guess in guesses]
        values = {name: np.array([point[name] for point in points]) for name in self.parameters.names}
        return self.parameters.unconstrain(values)

    def simulate(
        self, values: Mapping[str, float], days: int, rng: int | np.random.Generator | None = None
    ) -> Array:
        """A series of ``days`` returns from this model.

        Parameters
        ----------
        values : mapping of str to float
            The parameters by name, such as ``{"mu": 0.0, "omega": 0.1, "alpha[1]": 0.1, "beta[1]": 0.8}``.
        days : int
        rng : int or numpy.random.Generator, optional
        """
        psi = self.parameters.unconstrain(values)  # complains of names and ranges
        arrays = self.parameters.constrain(psi[None])
        shocks = self.law.of(arrays).sample((BURN_IN + checked_days(days), 1), as_generator(rng))
        _, residuals = self._afresh(self.coefficients(arrays), shocks)
        past = np.zeros((max(1, self.mean.lags), 1))
        returns, _ = self.mean.onward(self.mean.coefficients(arrays), past, residuals[BURN_IN:])
        return returns[:, 0]

    def fit(
        self,
        returns: Any,
        prior: Prior | None = None,
        *,
        tol: float | None = None,
        max_evaluations: int | None = None,
        rng: int | np.random.Generator = 0,
        progress: bool = False,
    ) -> VolatilityResult:
        """Posterior and maximum likelihood of the parameters given ``returns``.

        Parameters
        ----------
        returns : array_like of shape (T,), or pandas.Series
            Oldest first; in per cent by custom. Dates are kept.
        prior : Gaussian or other prior on ψ, optional
            See `prior` for the default; ``model.parameters.prior(...)`` makes one on the constrained scale.
        tol, max_evaluations, rng, progress
            As in `mgvbp.fit`.

        Returns
        -------
        VolatilityResult
        """
        series = self.series(returns)
        advise(series)
        chosen = self.prior(series) if prior is None else prior
        options = {"tol": tol, "max_evaluations": max_evaluations, "rng": rng, "progress": progress}
        return fit_volatility(Likelihood(self, series), chosen, **options)

    def __repr__(self) -> str:
        mean = f"mean={self.mean.kind!r}" if self.mean.kind != "ar" else f"lags={self.mean.lags}"
        settings = [*map(str, self.orders), mean, f"dist={self.dist!r}", f"convention={self.convention!r}"]
        return f"{type(self).__name__}({', '.join(settings)})"
