"""Large models with structured precisions: CPU seconds, memory, lower bounds and standard deviations.

    python benchmarks/large.py                     # all cases, in their smallest sizes
    python benchmarks/large.py sv --sizes 500 2000 10000
    python benchmarks/large.py sv --sizes 500 --nuts --guides
    python benchmarks/large.py level --sizes 1000 10000 100000
    python benchmarks/large.py hierarchy grid logistic

Each fit runs in a process of its own, whose peak memory is shown above that of the imports. After a sparse one
`mgvbp.nested` goes on to the marginal of its hubs: "nested" has the seconds of both, the bound of the whole, and of
the marginal its evaluations and its distance to the posterior (in the place of the gap). The bound has the noise of 32
pairs, which its error does not know of. ``--guides`` runs NumPyro's AutoLowRankMultivariateNormal and AutoNormal (Adam,
5,000 steps of 0.01) and BlackJAX's Pathfinder (at most 1,000 steps) on the same density and shows their bounds on 1,000
fresh draws. ``--nuts`` runs NumPyro's NUTS on it and compares standard deviations. Growth exponents are the slopes of
log seconds by log d between the sizes of a case.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing as mp
import resource
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

DEFAULT_SIZES = {
    "sv": [500],
    "spx": [500],
    "level": [1000],
    "hierarchy": [2000],
    "grid": [2500],
    "logistic": [1000],
}
PRIOR = "mu ~ N(0, 9), atanh(phi) ~ N(1.5, 0.25), log(sigma) ~ N(-1.5, 0.49)"


class Case(NamedTuple):
    """A log density in JAX of one draw, its dimension, and the families to fit."""

    traced: Callable[[Any], Any]
    dim: int
    families: dict[str, Any]


def volatility(y: np.ndarray) -> Case:
    """Stochastic volatility: states h (T), then mu, atanh(phi), log(sigma)."""
    import jax.numpy as jnp

    import mgvbp

    T, squares = len(y), np.square(y) + 1e-12

    def traced(theta: Any) -> Any:
        h, (mu, a, s) = theta[:T], theta[T:]
        phi, z = jnp.tanh(a), h - mu
        e = z[1:] - phi * z[:-1]
        root = 1.0 - phi**2
        states = -0.5 * ((e**2).sum() + root * z[0] ** 2) * jnp.exp(-2.0 * s) - T * s + 0.5 * jnp.log(root)
        prior = -0.5 * ((mu / 3.0) ** 2 + ((a - 1.5) / 0.5) ** 2 + ((s + 1.5) / 0.7) ** 2)
        return states + prior - 0.5 * (h + squares * jnp.exp(-h)).sum()

    families = {"sparse": mgvbp.SparsePrecision.arrow(T + 3, 3, order=1)}
    return Case(traced, T + 3, families)


def simulated(T: int) -> Case:
    """Simulated returns, phi = 0.97, sigma = 0.2."""
    rng = np.random.default_rng(0)
    h = np.empty(T)
    h[0] = -1.0 + 0.2 / math.sqrt(1.0 - 0.97**2) * rng.standard_normal()
    for t in range(1, T):
        h[t] = -1.0 + 0.97 * (h[t - 1] + 1.0) + 0.2 * rng.standard_normal()
    return volatility(np.exp(0.5 * h) * rng.standard_normal(T))


def observed(T: int) -> Case:
    """The last T daily returns of the S&P 500 in `mgvbp.datasets`, in units of their standard deviation."""
    import mgvbp

    data = mgvbp.datasets.load("sp500")
    returns = data.frame[data.target].to_numpy()[-T:]
    return volatility((returns - returns.mean()) / returns.std())


def level(T: int) -> Case:
    """A random walk that is observed with noise: states x (T), then the logs of both scales, with normal priors."""
    import jax.numpy as jnp

    import mgvbp

    rng = np.random.default_rng(4)
    y = np.cumsum(0.1 * rng.standard_normal(T)) + 0.5 * rng.standard_normal(T)

    def traced(theta: Any) -> Any:
        x, (a, s) = theta[:T], theta[T:]
        noise = jnp.exp(-2.0 * a) * ((y - x) ** 2).sum() + 2.0 * T * a
        steps = jnp.exp(-2.0 * s) * ((jnp.diff(x) ** 2).sum() + x[0] ** 2) + 2.0 * T * s
        return -0.5 * (noise + steps + (a + 1.0) ** 2 + (s + 2.0) ** 2)

    return Case(traced, T + 2, {"sparse": mgvbp.SparsePrecision.arrow(T + 2, 2, order=1)})


def hierarchy(groups: int) -> Case:
    """Logistic regression: an intercept and a slope for each group of 20 people, with common means and scales."""
    import jax
    import jax.numpy as jnp

    import mgvbp

    rng = np.random.default_rng(1)
    x = rng.standard_normal((groups, 20))
    effects = np.array([-0.5, 1.0]) + rng.standard_normal((groups, 2)) * [0.8, 0.5]
    y = rng.uniform(size=x.shape) < 1.0 / (1.0 + np.exp(-effects[:, :1] - effects[:, 1:] * x))

    def traced(theta: Any) -> Any:
        b, m, s = theta[: 2 * groups].reshape(groups, 2), theta[-4:-2], theta[-2:]
        eta = b[:, :1] + b[:, 1:] * x
        prior = -0.5 * (m**2 / 4.0 + s**2).sum()
        return (
            (y * eta - jax.nn.softplus(eta)).sum()
            - 0.5 * (((b - m) * jnp.exp(-s)) ** 2).sum()
            - groups * s.sum()
            + prior
        )

    return Case(traced, 2 * groups + 4, {"sparse": mgvbp.SparsePrecision.block_arrow([2] * groups, 4)})


def grid(d: int) -> Case:
    """A log-Gaussian Cox process on a square grid: counts whose log intensity is a Gaussian Markov field."""
    import jax.numpy as jnp

    import mgvbp

    n = round(math.sqrt(d))
    rng = np.random.default_rng(2)
    u = np.linspace(0.0, 3.0, n)
    y = rng.poisson(np.exp(1.0 + np.sin(u)[:, None] * np.cos(u)[None]))

    def traced(theta: Any) -> Any:
        x, m, s = theta[:-2].reshape(n, n), theta[-2], theta[-1]
        z = x - m
        field = (jnp.diff(z, axis=0) ** 2).sum() + (jnp.diff(z, axis=1) ** 2).sum() + 0.1 * (z**2).sum()
        prior = -0.5 * (m**2 / 4.0 + (s - 1.0) ** 2)
        return (y * x - jnp.exp(x)).sum() - 0.5 * jnp.exp(2.0 * s) * field + n * n * s + prior

    cell = np.arange(n * n).reshape(n, n)
    pairs = [(cell[1:], cell[:-1]), (cell[:, 1:], cell[:, :-1])]
    pairs += [(np.full(n * n + 1 - k, n * n + 1 - k), np.arange(n * n + 1 - k)) for k in (0, 1)]
    a, b = (np.concatenate([end[k].ravel() for end in pairs]) for k in (0, 1))
    from scipy.sparse import coo_array

    pattern = coo_array((np.ones(len(a)), (a, b)), shape=(n * n + 2, n * n + 2))
    return Case(traced, n * n + 2, {"sparse": mgvbp.SparsePrecision(pattern)})


def logistic(d: int) -> Case:
    """Logistic regression with d correlated covariates and 1,000 observations, prior N(0, 1/d) on each coefficient."""
    import jax
    import jax.numpy as jnp

    import mgvbp

    rng = np.random.default_rng(3)
    factors = rng.standard_normal((1000, 10))
    X = factors @ rng.standard_normal((10, d)) / math.sqrt(10.0) + 0.5 * rng.standard_normal((1000, d))
    y = rng.uniform(size=1000) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(d) / math.sqrt(d)))

    def traced(theta: Any) -> Any:
        eta = jnp.asarray(X) @ theta
        return (y * eta - jax.nn.softplus(eta)).sum() - 0.5 * d * (theta**2).sum()

    families = {"diagonal": "diagonal", "low rank": mgvbp.LowRank()} | ({"full": "full"} if d <= 1000 else {})
    return Case(traced, d, families)


CASES: dict[str, Callable[[int], Case]] = {
    "sv": simulated,
    "spx": observed,
    "level": level,
    "hierarchy": hierarchy,
    "grid": grid,
    "logistic": logistic,
}


class Found(NamedTuple):
    """What came of a fit."""

    seconds: float
    memory: float
    bound: float
    bound_se: float
    gap: float | None
    converged: bool
    evaluations: int
    mean: np.ndarray
    std: np.ndarray


def one_fit(case: str, size: int, family: str, queue: Any) -> None:
    """Fit one family, and go on to its hubs; put what came of both into the queue."""
    import warnings

    import mgvbp

    made = CASES[case](size)
    model = mgvbp.from_jax(made.traced)
    model.value_and_grad(np.zeros((64, made.dim)))  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def spent(start: float) -> tuple[float, float]:
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0
        return time.process_time() - start, memory

    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        posterior = mgvbp.fit(model, dim=made.dim, family=made.families[family])
    taken = spent(start)
    theta = posterior.sample(1000, 7)
    h = np.concatenate([model(some) for some in np.split(theta, 10)]) - posterior.log_density(theta)
    measured = float(h.mean()), float(h.std()) / math.sqrt(1000)
    found = {
        family: Found(
            *taken,
            *measured,
            posterior.gap,
            posterior.converged,
            posterior.n_evaluations,
            posterior.mean,
            posterior.std,
        )
    }
    if family == "sparse":
        start = time.process_time() - taken[0]
        with warnings.catch_warnings(action="ignore"):
            whole = mgvbp.nested(posterior)
        hubs, mean, std = whole.hubs, whole.mean, whole.std
        measured = hubs.lower_bound, hubs.lower_bound_se or 0.0
        found["nested"] = Found(
            *spent(start), *measured, hubs.kl, hubs.converged, hubs.n_evaluations, mean, std
        )
    queue.put(found)


def guide(case: str, size: int, name: str, queue: Any) -> None:
    """Fit a guide of NumPyro by Adam; put its seconds and its bound on fresh draws into the queue."""
    import jax
    import numpyro  # type: ignore[import-untyped]
    import optax
    from numpyro.infer import SVI, Trace_ELBO, autoguide  # type: ignore[import-untyped]

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    made = CASES[case](size)
    if name == "Pathfinder":
        queue.put(pathfinder(made))
        return

    def model() -> None:
        flat = numpyro.distributions.ImproperUniform(
            numpyro.distributions.constraints.real_vector, (), (made.dim,)
        )
        numpyro.factor("density", made.traced(numpyro.sample("theta", flat)))

    start = time.process_time()
    fitted = getattr(autoguide, name)(
        model, init_loc_fn=numpyro.infer.init_to_value(values={"theta": np.zeros(made.dim)})
    )
    svi = SVI(model, fitted, optax.adam(0.01), Trace_ELBO(num_particles=4))
    found = svi.run(jax.random.PRNGKey(0), 5000, progress_bar=False)
    seconds = time.process_time() - start
    bound = -float(Trace_ELBO(num_particles=1000).loss(jax.random.PRNGKey(1), found.params, model, fitted))
    queue.put((seconds, bound))


def pathfinder(made: Case) -> tuple[float, float]:
    """Seconds and bound of BlackJAX's Pathfinder."""
    import jax
    from blackjax.vi import pathfinder as package

    start = time.process_time()
    key, first = jax.random.PRNGKey(0), np.zeros(made.dim)
    state, _ = package.approximate(key, made.traced, first, num_samples=200, maxiter=1000)
    jax.block_until_ready(state)  # type: ignore[no-untyped-call]
    seconds = time.process_time() - start
    theta, log_q = package.sample(jax.random.PRNGKey(1), state, 1000)
    return seconds, float((jax.lax.map(made.traced, theta) - log_q).mean())


def nuts(case: str, size: int, queue: Any) -> None:
    """Two chains of NUTS; put seconds, means, standard deviations and the largest r-hat into the queue."""
    import jax
    from numpyro.diagnostics import summary  # type: ignore[import-untyped]
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    made = CASES[case](size)
    start = time.process_time()
    kernel = NUTS(potential_fn=lambda theta: -made.traced(theta), max_tree_depth=9)
    mcmc = MCMC(
        kernel, num_warmup=600, num_samples=1000, num_chains=2, chain_method="sequential", progress_bar=False
    )
    first = 0.1 * np.random.default_rng(0).standard_normal((2, made.dim))
    mcmc.run(jax.random.PRNGKey(0), init_params=first)
    draws = np.asarray(mcmc.get_samples(group_by_chain=True))
    rhat = summary({"theta": draws})["theta"]["r_hat"].max()
    flat = draws.reshape(-1, made.dim)
    queue.put((time.process_time() - start, flat.mean(axis=0), flat.std(axis=0, ddof=1), float(rhat)))


def apart(function: Callable[..., None], *args: Any) -> Any:
    """What a function puts into a queue, in a process of its own."""
    context = mp.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=function, args=(*args, queue))
    process.start()
    while process.is_alive() and queue.empty():
        time.sleep(0.2)
    found = None if queue.empty() and not process.is_alive() else queue.get()
    process.join()
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(CASES)}; all by default")
    parser.add_argument("--sizes", type=int, nargs="*")
    parser.add_argument("--guides", action="store_true")
    parser.add_argument("--nuts", action="store_true")
    options = parser.parse_args()
    print(
        f"{'case':<11}{'size':>7}  {'fit':<30}{'CPU s':>8}{'MB':>7}{'bound':>13}{'se':>7}{'gap':>8}{'evaluations':>12}"
    )
    seconds: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for case in options.cases or list(CASES):
        for size in options.sizes or DEFAULT_SIZES[case]:
            made = CASES[case](size)
            for family in made.families:
                found = apart(one_fit, case, size, family)
                if found is None:
                    print(f"{case:<11}{size:>7}  {family:<30} failed", flush=True)
                    continue
                for label, it in found.items():
                    name = label + ("" if it.converged else ", NOT converged")
                    shown = "none" if it.gap is None else f"{it.gap:.3f}"
                    row = f"{it.seconds:>8.1f}{it.memory:>7.0f}{it.bound:>13.2f}{it.bound_se:>7.2f}{shown:>8}"
                    print(f"{case:<11}{size:>7}  {name:<30}{row}{it.evaluations:>12,}", flush=True)
                    seconds.setdefault((case, label), []).append((made.dim, it.seconds))
                if options.nuts and family != "diagonal":
                    compare(case, size, found)
            for name in (
                ("AutoLowRankMultivariateNormal", "AutoNormal", "Pathfinder") if options.guides else ()
            ):
                other = apart(guide, case, size, name)
                row = "failed" if other is None else f"{other[0]:>8.1f}{'':>7}{other[1]:>13.2f}"
                print(f"{case:<11}{size:>7}  {name:<30}{row}", flush=True)
    for (case, family), points in seconds.items():
        for (d0, t0), (d1, t1) in pairwise(points):
            print(
                f"{case}, {family}: seconds grow as d^{math.log(t1 / t0) / math.log(d1 / d0):.2f} from {d0:,} to {d1:,}"
            )


def compare(case: str, size: int, fits: dict[str, Found]) -> None:
    """Print how far standard deviations and means are from those of NUTS."""
    found = apart(nuts, case, size)
    if found is None:
        return
    t, centre, spread, rhat = found
    print(
        f"{case:<11}{size:>7}  NUTS {t:.0f} s, r-hat up to {rhat:.3f}; last three sd {spread[-3:].round(3)}"
    )
    for label, it in fits.items():
        off, shift = np.abs(it.std / spread - 1.0), np.abs(it.mean - centre) / spread
        print(
            f"{'':<20}{label}: sd off by {np.median(off):.1%} (median), {np.quantile(off, 0.95):.1%} (95%); means by "
            f"{np.median(shift):.2f} sd (median); last three sd {it.std[-3:].round(3)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
