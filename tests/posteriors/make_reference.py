"""Evidence, moments and quantiles of the targets, by methods that share nothing with mgvbp.

    cd tests && python -m posteriors.make_reference [name ...] [--force] [--max-dim 20]    # needs jax and scikit-learn

Where there is a closed form, it is taken, with a million independent draws for moments and quantiles. Otherwise 64
Hamiltonian chains adapt a common frame from dispersed starts, a mixture of t distributions is fitted to them, and 64
points resampled by their importance weights start the chains that count: so each mode has its share of them. The
evidence is that of bridge sampling with a mixture fitted to one half of the chains and applied to the other, and again
with the halves exchanged; importance sampling with the same mixtures is stored beside it, and for d ≤ 3 a quadrature
replaces both. Moments come from the chains, or from the weighted draws of the mixture where the chains do not mix.

Every target is one line of ``reference.json``, written as soon as it is known; those present are skipped. Also the
targets of the zoo with d ≤ 20 are there.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, NamedTuple

import numpy as np

import zoo
from posteriors.chains import CHAINS, Draws, Frame, Machine, Walker, approached, compiled, frame_of
from posteriors.closed_forms import EXACT
from posteriors.evidence import Estimate, bridge, fitted, importance
from posteriors.moments import Moments, moments, split_rhat
from posteriors.quadrature import quadrature
from posteriors.reference import PATH
from posteriors.registry import HELD_OUT, TARGETS
from posteriors.symmetries import SWAPS
from zoo.base import Target

OPTIMA_ONLY = {"hierarchy_vague_5", "lynx_hare", "hmm_three_states"}
"""Targets of the zoo whose best Gaussians are known, but not their posteriors."""
LARGEST_SE = 0.02
"""Of the log evidence."""
DIFFERENT = 5.0
"""Largest difference of the chains' moments from those by weights, in standard errors, over all coordinates."""
MIXED = 1.01
"""Largest R-hat with which the chains' moments are taken where weights are an alternative."""
EFFECTIVE = 0.5
"""Share of effective draws from which on weights are one."""
EFFORTS = ((30, 100, 3.0), (200, 1200, 25.0))
"""Rounds of the chains that count: at least and at most so many, the latter if they take less CPU seconds than the
third number; the second effort is for chains that have not mixed after the first."""
BRIDGED = 1500
"""Draws of a chain at most that the bridge uses, evenly spaced."""
EXACT_DRAWS = 1_000_000
PROPOSED = 40_000
BATCHES = 50
CROSS_CHECKED = (
    "log_gamma_5",
    "banana_10",
    "three_modes_5",
    "sinh_arcsinh_6",
    "eight_schools_noncentred",
    "groups_noncentred",
)
"""Targets with a closed form whose chains are run nevertheless: they tell what bridge and weights are worth."""


def exact_entry(name: str) -> tuple[Estimate, Moments, str, dict[str, Any]]:
    exact = EXACT[name]()
    draws = exact.draw(np.random.default_rng(1), EXACT_DRAWS)
    found = moments(draws.reshape(BATCHES, -1, draws.shape[1]))
    return Estimate(exact.log_evidence, 0.0), found, "exact", {}


def initial(target: Target) -> Frame:
    """The zoo's optimal Gaussian where it has one, else N(0, I)."""
    stored = json.loads((PATH.parents[1] / "zoo" / "reference.json").read_text(encoding="utf-8"))
    full = stored.get(target.name, {}).get("full")
    if full is None:
        return Frame(np.zeros(target.dim), np.eye(target.dim))
    factor = np.zeros((target.dim, target.dim))
    factor[np.tril_indices(target.dim)] = full["scale_tril"]
    return Frame(np.array(full["mean"]), factor)


def swapped(name: str, draws: Draws, rng: np.random.Generator) -> Draws:
    """Half the draws mapped by the target's symmetry, if it has one."""
    if name not in SWAPS:
        return draws
    other = SWAPS[name](draws.theta)
    return draws._replace(theta=np.where(rng.random(draws.values.shape)[..., None] < 0.5, draws.theta, other))


def settled(target: Target, machine: Machine, rng: np.random.Generator) -> Walker:
    """Chains that start at draws of the posterior, resampled from a mixture fitted to a pilot run."""
    frame = approached(machine.values, initial(target), rng)
    start = frame.centre + 1.5 * rng.standard_normal((CHAINS, target.dim)) @ frame.factor.T
    finite = np.isfinite(machine.values(start))
    start[~finite] = start[finite][np.arange((~finite).sum()) % finite.sum()]
    walker = Walker(machine, start, frame, seed=1000)
    walker.adapt(7)
    pilot = swapped(target.name, walker.draws(10, 10, 0.0), rng).theta.reshape(-1, target.dim)
    proposal = fitted(pilot, rng)
    theta = proposal.sample(rng, 40_000)
    log_weights = machine.values(theta) - proposal.log_density(theta)
    weights = np.exp(log_weights - log_weights.max())
    walker.theta = theta[rng.choice(len(theta), CHAINS, p=weights / weights.sum())]
    walker.adapt(2)
    return walker


class Weighed(NamedTuple):
    """Both estimates of the log evidence, the effective share and moments by importance."""

    bridge: Estimate
    importance: Estimate
    effective: float
    moments: Moments


def weigh(machine: Machine, draws: Draws, rng: np.random.Generator) -> Weighed:
    """A mixture fitted to each half of the chains and applied to the other."""
    dim = draws.theta.shape[2]
    halves = np.split(rng.permutation(CHAINS), 2)
    bridges, weights, points = [], [], []
    for fit_on, apply_on in (halves, halves[::-1]):
        proposal = fitted(draws.theta[fit_on].reshape(-1, dim), rng)
        theta = proposal.sample(rng, 2 * PROPOSED)
        ratios = machine.values(theta) - proposal.log_density(theta)
        order = rng.permutation(2 * PROPOSED)
        theta, ratios = theta[order], ratios[order]
        every = -(-draws.values.shape[1] // BRIDGED)
        others = draws.theta[apply_on, ::every]
        at_chains = proposal.log_density(others.reshape(-1, dim)).reshape(others.shape[:2])
        bridges.append(bridge(draws.values[apply_on, ::every] - at_chains, ratios[:PROPOSED]))
        weights.append(ratios[PROPOSED:])
        points.append(theta[PROPOSED:])
    both = np.array(bridges)
    log_weights = np.concatenate(weights)
    by_weights, effective = importance(log_weights)
    batched = np.concatenate(points).reshape(BATCHES, -1, dim)
    found = moments(batched, np.exp(log_weights - log_weights.max()).reshape(BATCHES, -1))
    combined = Estimate(float(both[:, 0].mean()), float(np.hypot(*both[:, 1]) / 2.0))
    return Weighed(combined, by_weights, effective, found)


def sampled_entry(target: Target) -> tuple[Estimate, Moments, str, dict[str, Any]]:
    rng = np.random.default_rng(2)
    machine = compiled(target)
    walker = settled(target, machine, rng)
    for effort in EFFORTS:
        draws = swapped(target.name, walker.draws(*effort), rng)
        if split_rhat(draws.theta) <= MIXED:
            break
    weighed = weigh(machine, draws, rng)
    by_chains = moments(draws.theta)
    size, n = np.prod(draws.values.shape), draws.values.shape[1]
    checks: dict[str, Any] = {
        "bridge": [round(v, 5) for v in weighed.bridge],
        "importance": [round(v, 5) for v in weighed.importance],
        "effective": round(weighed.effective, 3),
        "rhat": round(split_rhat(draws.theta), 4),
        "ess": int(((by_chains.sd / by_chains.mean_se) ** 2).min()),
        "draws": int(size),
        "divergent": round(draws.divergent / (CHAINS * n), 5),
    }
    for name in ("mean", "sd"):
        one, two = (getattr(each, name) for each in (by_chains, weighed.moments))
        error = np.hypot(*(getattr(each, f"{name}_se") for each in (by_chains, weighed.moments)))
        checks[f"{name}_z"] = round(float((np.abs(one - two) / error).max()), 2)
    if target.dim <= 3:
        fine, difference = quadrature(machine.values, frame_of(draws.theta.reshape(-1, target.dim)))
        found = Moments(*fine[1:], *difference[1:])
        return Estimate(fine.log_evidence, float(difference.log_evidence)), found, "quadrature", checks
    # weights can miss a thin tail without a sign of it; chains that do not mix between modes show it by R-hat
    if checks["rhat"] > MIXED and weighed.effective > EFFECTIVE:
        return weighed.bridge, weighed.moments, "importance", checks
    return weighed.bridge, by_chains, "chains", checks


def doubts(evidence: Estimate, method: str, checks: dict[str, Any]) -> list[str]:
    """What is wrong with an entry; nothing, for one that can be relied on."""
    found = []
    if not evidence.se <= LARGEST_SE:
        found.append(f"standard error {evidence.se:.3f}")
    for name in ("bridge", "importance"):
        value, se = checks.get(name, (evidence.value, 0.0))
        if not abs(value - evidence.value) <= 4.0 * np.hypot(se, evidence.se) + 0.002:
            found.append(f"{name} {value:.4f} ± {se:.4f} disagrees with {evidence.value:.4f}")
    if method == "chains" and checks["rhat"] > MIXED:
        found.append(f"R-hat {checks['rhat']:.3f}, and few weights are effective: {checks['effective']:.0%}")
    if method in ("chains", "importance") and max(checks["mean_z"], checks["sd_z"]) > DIFFERENT:
        found.append(f"chains and weights disagree, z = {checks['mean_z']} (mean), {checks['sd_z']} (sd)")
    return found


def short(value: np.ndarray, unit: np.ndarray, digits: int) -> Any:
    """Rounded to ``digits`` digits after the leading one of ``unit``, as lists."""
    places = digits - np.floor(np.log10(np.maximum(unit, 1e-300)))
    rounded = np.vectorize(lambda v, p: float(f"{round(v, int(p)):.15g}"))(value, places)
    return rounded.tolist()


def entry(target: Target) -> dict[str, Any]:
    """One target as its line of the JSON file."""
    clock = time.perf_counter()
    known = target.name in EXACT
    evidence, found, method, checks = exact_entry(target.name) if known else sampled_entry(target)
    if target.name in CROSS_CHECKED:
        checks = sampled_entry(target)[3]
    notes = doubts(evidence, method, checks)
    checks |= {"notes": notes, "seconds": round(time.perf_counter() - clock, 1)}
    result: dict[str, Any] = {
        "dim": target.dim,
        "method": method,
        "log_evidence": round(evidence.value, 6),
        "log_evidence_se": float(f"{evidence.se:.2g}"),
    }
    for name in ("mean", "sd", "quantiles"):
        se = getattr(found, f"{name}_se")
        result[name] = short(getattr(found, name), np.broadcast_to(found.sd, se.shape), 4)
        result[f"{name}_se"] = short(se, se, 1)
    return result | {"checks": checks}


def forget() -> None:
    """Drop what JAX compiled for a target."""
    import jax

    jax.clear_caches()


def wanted(max_dim: int) -> dict[str, Target]:
    """This package's targets, the held-out ones, then the rest of the zoo: proper ones with d ≤ ``max_dim``.

    Those of the zoo's hard targets for which no chains have been run are left out.
    """
    every = {**TARGETS, **HELD_OUT, **zoo.TARGETS}
    return {
        name: target
        for name, target in every.items()
        if target.dim <= max_dim and target.is_proper and name not in OPTIMA_ONLY
    }


def load() -> dict[str, Any]:
    return dict(json.loads(PATH.read_text(encoding="utf-8"))) if PATH.exists() else {}


def save(entries: dict[str, Any]) -> None:
    names = [name for name in wanted(10**6) if name in entries]
    lines = [f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in names]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="targets; all by default")
    parser.add_argument("--force", action="store_true", help="redo those already known")
    parser.add_argument("--max-dim", type=int, default=20)
    arguments = parser.parse_args()
    everything = wanted(arguments.max_dim)
    for name in arguments.names or everything:
        if name in load() and not arguments.force:
            continue
        found = entry(everything[name])
        forget()
        save(load() | {name: found})
        checks = found["checks"]
        print(
            f"{name:28s} d={found['dim']:3d} {found['method']:10s} {found['log_evidence']:12.5f} ± "
            f"{found['log_evidence_se']:.0e}  bridge {checks.get('bridge')} weights {checks.get('importance')} "
            f"effective {checks.get('effective')} R-hat {checks.get('rhat')} ess {checks.get('ess')} "
            f"divergent {checks.get('divergent')} z {checks.get('mean_z')} {checks.get('sd_z')} {checks['seconds']} s",
            *(f"\n    {note}" for note in checks["notes"]),
            flush=True,
        )


if __name__ == "__main__":
    main()
