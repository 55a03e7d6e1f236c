"""The optimal Gaussian lower bounds of the targets, by a deterministic method that shares nothing with mgvbp.

    cd tests && python -m zoo.make_reference [name ...] [--force]      # needs jax

A bound is the average of ``log p(μ + L ε)`` over a fixed scrambled Sobol sample, moment-matched, plus the
entropy; it is maximised over (μ, L) with JAX gradients and L-BFGS. Two starts, Laplace's approximation at
the best mode and N(0, 1), are brought near the optimum by a damped Newton method on the smoothed target,
whose curvature is read from gradients alone: ``E[-∇² log p] = -E[∇log p(θ) εᵀ] L⁻¹`` (Stein). That
also gives the coordinates in which L-BFGS works, so the parameters' scales do not matter. An optimum is
accepted when the one of an independent sample is worth less than 1e-3 more, on either sample.

Every target is one line of ``reference.json``, written as soon as it is known; those present are skipped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from zoo import TARGETS, Target
from zoo.base import jax_backend
from zoo.bound import CHUNK, LOG_2PI, sobol_normals

PATH = Path(__file__).with_name("reference.json")
FULL_LIMIT = 100
"""Largest dimension with a full covariance."""
GAP = 1e-3
SE, LARGEST_SE = 2e-4, 4e-4
"""Aimed at, and accepted."""
LARGEST = 2**16


class Normal(NamedTuple):
    """A Gaussian: mean (d,) and the lower factor of its covariance, (d, d), or for a diagonal one (d,)."""

    mean: np.ndarray
    scale: np.ndarray

    def points(self, eps: np.ndarray) -> np.ndarray:
        return self.mean + (eps * self.scale if self.scale.ndim == 1 else eps @ self.scale.T)

    def entropy(self) -> float:
        diagonal = self.scale if self.scale.ndim == 1 else np.diag(self.scale)
        return 0.5 * len(self.mean) * (1.0 + LOG_2PI) + float(np.log(np.abs(diagonal)).sum())

    def std(self) -> np.ndarray:
        return self.scale if self.scale.ndim == 1 else np.sqrt((self.scale**2).sum(axis=1))


class Derivatives(NamedTuple):
    value: Callable[[np.ndarray], np.ndarray]
    """(S, d) -> (S,)"""
    gradient: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    """(S, d) -> (S,), (S, d)"""
    hessian: Callable[[np.ndarray], np.ndarray]
    """(d,) -> (d, d)"""


def derivatives(target: Target) -> Derivatives:
    import jax

    jax.config.update("jax_enable_x64", True)
    xp = jax_backend()

    def density(theta):
        return target.density(theta, xp)

    def summed(theta):
        values = density(theta)
        return values.sum(), values

    value, gradient = jax.jit(density), jax.jit(jax.grad(summed, has_aux=True))
    hessian = jax.jit(jax.hessian(lambda row: density(row[None])[0]))

    def in_chunks(theta):
        return np.split(theta, range(CHUNK, len(theta), CHUNK))

    def values(theta):
        return np.concatenate([np.asarray(value(chunk)) for chunk in in_chunks(theta)])

    def gradients(theta):
        parts = [gradient(chunk) for chunk in in_chunks(theta)]
        return np.concatenate([np.asarray(v) for _, v in parts]), np.concatenate(
            [np.asarray(g) for g, _ in parts]
        )

    return Derivatives(values, gradients, lambda row: np.asarray(hessian(row)))


def bound(q: Normal, eps: np.ndarray, f: Derivatives) -> float:
    value = float(f.value(q.points(eps)).mean()) + q.entropy()
    return value if np.isfinite(value) else -np.inf


# ---------------------------------------------------------------------------------------------- the starts


def laplace(f: Derivatives, start: np.ndarray, steps: int = 200) -> tuple[float, Normal] | None:
    """A mode by Newton's method with absolute eigenvalues in the diagonal's scale, and its curvature.

    None where it climbs without end: the density of a centred hierarchy has no maximum.
    """
    x = start
    top = float(f.value(x[None])[0])
    for _ in range(steps):
        gradient, hessian = f.gradient(x[None])[1][0], f.hessian(x)
        if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
            break
        unit = np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-20))
        roots, vectors = np.linalg.eigh(hessian / np.outer(unit, unit))
        roots = np.maximum(np.abs(roots), 1e-10)
        direction = vectors @ (vectors.T @ (gradient / unit) / roots) / unit
        slope, length = float(gradient @ direction), 1.0
        while length > 1e-8:
            value = float(f.value((x + length * direction)[None])[0])
            if np.isfinite(value) and value >= top + 1e-4 * length * slope:
                break
            length /= 2.0
        else:
            break
        x, top = x + length * direction, value
        if slope < 1e-9:
            break
    else:
        return None
    hessian = f.hessian(x)
    unit = np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-20))
    roots, vectors = np.linalg.eigh(np.nan_to_num(hessian) / np.outer(unit, unit))
    covariance = (vectors / np.maximum(np.abs(roots), 1e-10)) @ vectors.T / np.outer(unit, unit)
    q = Normal(x, np.linalg.cholesky(covariance))
    # on a spike that thin θ differs from the mean by rounding alone, and densities there are fictions
    return None if (q.std() < 1e-9 * np.abs(q.mean)).any() else (top, q)


def smoothed_newton(f: Derivatives, q: Normal, eps: np.ndarray, steps: int = 400) -> Normal:
    """Newton's method for the full bound, with steps that shrink until the bound rises."""
    current, radius, change = bound(q, eps, f), 3.0, 10.0
    stalled = 0
    while not np.isfinite(current):
        q = Normal(q.mean, q.scale * 0.1)
        current = bound(q, eps, f)
        if np.log(q.std()).max() < -60:
            raise FloatingPointError("the target is not finite at the start")
    for _ in range(steps):
        gradient = f.gradient(q.points(eps))[1] @ q.scale  # in the frame of q
        mean = gradient.mean(axis=0)
        curvature = -(gradient.T @ eps) / len(eps)
        roots, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
        roots = np.clip(np.abs(roots), 1.0 / change, change)
        shift = vectors @ ((vectors.T @ mean) / roots)
        shift *= min(1.0, radius / max(np.linalg.norm(shift), 1e-300))
        root = np.linalg.cholesky((vectors / roots) @ vectors.T)
        trial = Normal(q.mean + q.scale @ shift, q.scale @ root)
        value = bound(trial, eps, f)
        if not np.isfinite(shift).all():
            break
        if value > current:
            stalled = stalled + 1 if value - current < 1e-5 else 0
            q, current = trial, value
            radius, change = radius * 2.0, min(change * 1.5, 10.0)
        else:
            radius, change = min(radius, np.linalg.norm(shift)) / 3.0, max(change**0.5, 1.0 + 1e-3)
            stalled += radius < 1e-4
        if stalled >= 3:
            break
    return q


# ------------------------------------------------------------------------------------------ the optimisation


class Frame(NamedTuple):
    """Parameters of L-BFGS around ``q``: to a Gaussian, and the gradient of the bound."""

    size: int
    gaussian: Callable[[np.ndarray], Normal]
    pull: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    """(x, gradients (S, d), ε (S, d)) -> the gradient in x"""


def full_frame(q: Normal) -> Frame:
    """``θ = m + A (u + T ε)``: u, the log diagonal of T and the rest of its lower triangle."""
    d = len(q.mean)
    rows, cols = np.tril_indices(d, -1)

    def triangle(x):
        T = np.diag(np.exp(x[d : 2 * d]))
        T[rows, cols] = x[2 * d :]
        return T

    def gaussian(x):
        return Normal(q.mean + q.scale @ x[:d], q.scale @ triangle(x))

    def pull(x, gradients, eps):
        inner = gradients @ q.scale
        to_T = inner.T @ eps / len(eps)
        return np.concatenate([inner.mean(0), np.diag(to_T) * np.exp(x[d : 2 * d]) + 1.0, to_T[rows, cols]])

    return Frame(2 * d + len(rows), gaussian, pull)


def diagonal_frame(q: Normal, f: Derivatives, eps: np.ndarray) -> Frame:
    """``θ = m + B u + s exp(w) ε``, B from the smoothed curvature."""
    d = len(q.mean)
    gradient = f.gradient(q.points(eps))[1] * q.scale
    curvature = -(gradient.T @ eps) / len(eps)
    roots, vectors = np.linalg.eigh(np.nan_to_num(0.5 * (curvature + curvature.T)))
    B = q.scale[:, None] * vectors / np.sqrt(np.maximum(np.abs(roots), 1e-11 * np.abs(roots).max()))

    def gaussian(x):
        return Normal(q.mean + B @ x[:d], q.scale * np.exp(x[d:]))

    def pull(x, gradients, eps):
        to_scale = (gradients * eps).mean(axis=0) * q.scale * np.exp(x[d:]) + 1.0
        return np.concatenate([B.T @ gradients.mean(axis=0), to_scale])

    return Frame(2 * d, gaussian, pull)


def maximise(f: Derivatives, q: Normal, eps: np.ndarray, rounds: int = 12) -> tuple[float, Normal]:
    """Maximise the bound on the sample ``eps`` in the family of ``q``, with a new frame in each round."""
    best = bound(q, eps, f)
    for _ in range(rounds):
        frame = full_frame(q) if q.scale.ndim == 2 else diagonal_frame(q, f, eps)

        def loss(x, frame=frame):
            with np.errstate(over="ignore", invalid="ignore"):
                trial = frame.gaussian(x)
                values, gradients = f.gradient(trial.points(eps))
                value = values.mean() + trial.entropy()
            if not (np.isfinite(value) and np.isfinite(gradients).all()):
                return 1e12, np.zeros_like(x)
            return -value, -frame.pull(x, gradients, eps)

        result = minimize(
            loss,
            np.zeros(frame.size),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 150, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-6},
        )
        trial = frame.gaussian(result.x)
        value = bound(trial, eps, f)
        gain = value - best
        if value > best:
            best, q = value, trial
        if not gain > 2e-6:
            break
    return best, q


def verified(f: Derivatives, q: Normal, num: int) -> tuple[Normal, float, int]:
    """The optimum on samples large enough that two of them agree; the gap between them; their size."""
    d = len(q.mean)
    while True:
        one, two = sobol_normals(num, d, 101), sobol_normals(num, d, 202)
        best_one, q_one = maximise(f, q, one)
        best_two, q_two = maximise(f, q_one, two)
        gap = max(best_one - bound(q_two, one, f), best_two - bound(q_one, two, f))
        if gap < GAP or num >= LARGEST:
            return q_one, float(gap), num
        q, num = q_one, 2 * num


def averaged(f: Derivatives, q: Normal, num: int) -> tuple[float, float]:
    """The bound over 16 independent scrambles, as large as memory lets them be; if need be over 64."""
    largest = min(2**20, 2 ** int(np.log2(2**25 / len(q.mean))))
    count = 16
    while True:
        values = [bound(q, sobol_normals(num, len(q.mean), 1000 + i), f) for i in range(count)]
        se = float(np.std(values, ddof=1) / np.sqrt(count))
        if not se >= (SE if num < largest else LARGEST_SE) or count == 64:
            return float(np.mean(values)), se
        if num == largest:
            count = 64
        # the error falls at least as the root of the size
        num = min(largest, num * 2 ** max(1, int(np.ceil(2.0 * np.log2(se / SE)))))


def reference(target: Target) -> dict:
    """The optima of one target, as its entry of the JSON file."""
    clock = time.perf_counter()
    f, d = derivatives(target), target.dim
    rng = np.random.default_rng(7)
    small = sobol_normals(2**11, d, 303)

    climbs = [laplace(f, start) for start in [np.zeros(d), *0.5 * rng.standard_normal((3, d))]]
    modes = [mode for mode in climbs if mode and np.isfinite(bound(mode[1], small, f))]
    first = (
        max(modes, key=lambda mode: mode[0])[1]
        if modes
        else Normal(0.5 * rng.standard_normal(d), 0.3 * np.eye(d))
    )
    starts = [first, Normal(np.zeros(d), np.eye(d))]
    near = [smoothed_newton(f, q, small) for q in starts]

    entry: dict = {"dim": d}
    tags, notes, size = set(target.tags), [], 0
    for family in ("full", "diagonal"):
        if family == "full" and d > FULL_LIMIT:
            continue
        if family == "full":
            inits = list(near)
        else:
            inits = [Normal(q.mean, 1.0 / np.sqrt((np.linalg.inv(q.scale) ** 2).sum(axis=0))) for q in near]
        # a third start, off to the side: symmetric saddles would hold the first two
        aside = inits[0].mean + inits[0].std() * rng.standard_normal(d)
        inits.append(Normal(aside, inits[0].scale * 0.6))
        optima = [maximise(f, q, small) for q in inits]
        ends = [value for value, _ in optima]
        if max(ends) - min(ends) > GAP:
            shown = ", ".join(f"{end:.4f}" for end in ends)
            notes.append(f"{family}: from Laplace, N(0, 1) and aside the optima are {shown}")
            if max(ends) - min(ends[:2]) > GAP:
                tags.add("multimodal")
        q, gap, num = verified(f, optima[int(np.argmax(ends))][1], 2**12)
        value, se = averaged(f, q, max(num, 2**14))
        size = max(size, num)
        entry[family] = {
            "lower_bound": value,
            "se": se,
            "residual_gap": gap,
            "mean": q.mean.tolist(),
            "std": q.std().tolist(),
        }
        if family == "full":
            entry[family]["scale_tril"] = q.scale[np.tril_indices(d)].tolist()
        if not (gap < GAP and se < LARGEST_SE):
            notes.append(f"{family}: not verified (gap {gap:.0e}, se {se:.0e})")
    entry |= {
        "tags": sorted(tags),
        "notes": notes,
        "sample_size": size,
        "seconds": round(time.perf_counter() - clock, 1),
    }
    return entry


def save(entries: dict) -> None:
    """One line for each target, in the order of the zoo."""

    def short(value):
        if isinstance(value, float):
            return float(f"{value:.12g}")
        if isinstance(value, dict):
            return {key: short(item) for key, item in value.items()}
        return [short(item) for item in value] if isinstance(value, list) else value

    lines = [f"{json.dumps(name)}: {json.dumps(short(entries[name]))}" for name in TARGETS if name in entries]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def load() -> dict:
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def main() -> None:
    parser = argparse.ArgumentParser(description="Optimal Gaussian lower bounds of the zoo")
    parser.add_argument("names", nargs="*", help="targets; all by default")
    parser.add_argument("--force", action="store_true", help="redo those already known")
    arguments = parser.parse_args()
    names = arguments.names or list(TARGETS)
    for name in names:
        if not TARGETS[name].is_proper or (name in load() and not arguments.force):
            continue
        entry = reference(TARGETS[name])
        save(load() | {name: entry})
        print(f"{name:28s} d={entry['dim']:3d} n={entry['sample_size']:6d} {entry['seconds']:6.1f} s", end="")
        for family in ("full", "diagonal"):
            if family in entry:
                result = entry[family]
                print(f"  {family} {result['lower_bound']:.5f} ± {result['se']:.0e}", end="")
                print(f" gap {result['residual_gap']:.0e}", end="")
        print(*(f"\n    {note}" for note in entry["notes"]), flush=True)


if __name__ == "__main__":
    main()
