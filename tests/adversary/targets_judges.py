"""Odd but real posteriors, as a judge might bring them: written before any check was changed on their account.

Limits of detection, change points, counts, phases, spikes and slabs, products that alone are known, functions that keep
their results, draw their own random numbers or lose digits, and gradients that are nearly right.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, log_ndtr

from .base import add
from .common import bump, logistic, normal, over
from .pieces import Piece
from .targets_gradients import add_wrong, times
from .targets_improper import add_flat, add_hard, where
from .targets_modes import two
from .targets_noise import mapped
from .targets_slow import banana, valley
from .targets_tails import laplace, step, student, wall

two_of, three, four = [normal] * 2, [normal] * 3, [normal] * 4

# --- likelihoods with steps and limits ----------------------------------------------------------------------

years = np.random.default_rng(401).poisson(np.where(np.arange(40) < 17, 3.0, 1.2))


def change_point(when, log_ratio):
    """Counts whose rate changes in a year, which is taken for a number: constant from year to year."""
    late = np.arange(40)[:, None] >= when + 20.0
    log_rate = np.log(3.0) + late * log_ratio
    return (
        (years[:, None] * log_rate - np.exp(log_rate)).sum(axis=0)
        - 0.5 * (when / 10.0) ** 2
        - 0.5 * log_ratio**2
    )


def detected(mean, log_sd):
    """Nine observations, six of which lie below a limit of detection."""
    z = (np.array([[0.4], [1.1], [0.7]]) - mean) * np.exp(-log_sd)
    below = log_ndtr((0.2 - mean) * np.exp(-log_sd))
    prior = -0.5 * (mean / 5.0) ** 2 - 0.5 * (log_sd / 2.0) ** 2
    return -0.5 * (z**2).sum(axis=0) - 3.0 * log_sd + 6.0 * below + prior


def rounded_down(x):
    """A binomial's number of trials, as a number: 12 successes at 0.4."""
    n = np.maximum(np.floor(x + 30.0), 12.0)
    choose = gammaln(n + 1.0) - gammaln(n - 11.0)
    return choose + (n - 12.0) * np.log(0.6) - 0.5 * (x / 10.0) ** 2


def worst_of_three(x, y):
    """The worst of three losses."""
    return -np.maximum.reduce([2.0 * (x - 1.0) ** 2 + y**2, (x + y) ** 2, 3.0 * np.abs(y - 0.5) + 0.0 * x])


add("ripple", "judge_change_point", Piece(change_point, 2, starts=((-3.0, -0.9),)))
add("form", "judge_detection_limit", Piece(detected, 2), gradients=True)
add("ripple", "judge_trials", rounded_down)
add("form", "judge_worst_of_three", Piece(worst_of_three, 2), mix=402, gradients=True)
add("ripple", "judge_step_at_the_mode_4", step(1.5, 0.0), *three, mix=403, gradients=True)
add("ripple", "judge_cells", Piece(lambda x, y: -0.5 * (x**2 + y**2) - 0.8 * ((np.floor(x) + np.floor(y)) % 2.0), 2),
    mix=404)  # fmt: skip

# --- boundaries -----------------------------------------------------------------------------------------------


def triangle(x, y):
    """Shares that must not be negative nor more than one in all, by a penalty."""
    return -400.0 * (over(-x, 0.0) ** 2 + over(-y, 0.0) ** 2 + over(x + y, 1.0) ** 2) - 2.0 * x


def autoregression(sd: float, mean: float) -> Piece:
    """A coefficient with the Jacobian of a stationary start; nan from one on."""
    return Piece(lambda x: 0.5 * np.log(1.0 - (mean + sd * x) ** 2) - 0.5 * x**2)


add("drop", "judge_truncated_by_penalty_3", wall(1e5, 0.3), *two_of, mix=411, gradients=True)
add("drop", "judge_triangle", Piece(triangle, 2, starts=((0.3, 0.3),)), gradients=True)
add("drop", "judge_box_by_penalty_4", *[wall(50.0, 1.0, 2)] * 4, mix=412)
add("boundary", "judge_stationary_far", autoregression(0.05, 0.3), normal)
add_hard("judge_stationary_near", autoregression(0.03, 0.93), normal, mix=413)
add_hard(
    "judge_order",
    Piece(lambda x, y, z: where((x < y) & (y < z), -0.5 * ((x + 1.0) ** 2 + y**2 + (z - 1.0) ** 2)), 3),
)
add_hard("judge_maximum", Piece(lambda x: where(x > 2.0, -8.0 * np.log(np.abs(x)))), normal, initial_mean=(2.6, 0.0),
         initial_variance=0.05)  # fmt: skip
add_hard(
    "judge_negative_root",
    Piece(lambda x, y: np.sqrt(x + 2.5) - 0.5 * (x**2 + y**2), 2),
    mix=414,
    gradients=True,
)

# --- tails --------------------------------------------------------------------------------------------------

add("tails", "judge_student_in_one_of_4", student(1, 1.0), *three, mix=421, gradients=True)
add("tails", "judge_student_2_in_two_of_5", student(1, 2.0), student(1, 1.5), *three, mix=422, gradients=True)
far_apart = Piece(lambda x: -sum(np.log1p(4.0 * (x - a) ** 2) for a in (-3.0, -2.0, 3.0)), starts=(-2.5, 3.0))
add("tails", "judge_three_observations", far_apart, gradients=True)


def separable(x, y):
    """A logistic regression that explains both of its labels, with a wide prior."""
    return -np.logaddexp(0.0, -2.0 * x - y) - np.logaddexp(0.0, -x + y) - 0.5 * (x**2 + y**2) / 100.0


add("tails", "judge_separable", Piece(separable, 2, starts=((8.0, 1.0),)), gradients=True)
add("tails", "judge_cusp_in_2", *[Piece(lambda x: -2.0 * np.sqrt(np.abs(x)))] * 2, mix=423)
add("tails", "judge_heteroscedastic", Piece(
    lambda x, y: -0.5 * x**2 - np.log(0.2 + x**2) - 0.5 * (y / (0.2 + x**2)) ** 2, 2), gradients=True)  # fmt: skip

# --- modes --------------------------------------------------------------------------------------------------


def spike_and_slab(observed: float, width: float) -> Piece:
    """A coefficient that may be nothing, observed with an error of one."""
    return Piece(
        lambda x: np.logaddexp(bump(x, 0.0, width), bump(x, 0.0, 3.0)) - 0.5 * (x - observed) ** 2,
        starts=(0.0, observed),
    )


def phases(x, y):
    """Two phases, of which only the sum is known well."""
    return 6.0 * np.cos(x + y - 1.0) + np.cos(x - y) - 0.5 * (x**2 + y**2) / 4.0


def product(x, y):
    """A loading and a factor, of which only the product is known."""
    return -0.5 * ((x * y - 2.0) / 0.2) ** 2 - 0.5 * (x**2 + y**2)


comb = Piece(lambda x: 3.0 * np.cos(2.0 * np.pi * x) - 0.5 * (x / 2.0) ** 2, starts=(1.0, 0.0))
singular = Piece(lambda x: np.log(x**2 + 1e-9) - 0.5 * x**2, starts=(1.5, -1.5))
add("modes", "judge_spike_0.05", spike_and_slab(1.5, 0.05), gradients=True)
add(
    "modes",
    "judge_spikes_in_4",
    spike_and_slab(2.5, 0.2),
    spike_and_slab(0.5, 0.2),
    *two_of,
    mix=431,
    gradients=True,
)
add("modes", "judge_two_per_cent", two(0.02, 6.0), normal, mix=432, gradients=True)
add("modes", "judge_two_per_cent_narrow_4", two(0.02, 2.5, 0.1), *three, mix=433)
add(
    "modes",
    "judge_phase",
    Piece(lambda x: 8.0 * np.cos(x - 1.0) - 0.5 * (x / 4.0) ** 2, starts=(1.0,)),
    gradients=True,
)
add("modes", "judge_two_phases", Piece(phases, 2, starts=((0.5, 0.5), (3.6, 3.6))), gradients=True)
add("modes", "judge_product", Piece(product, 2, starts=((1.4, 1.4), (-1.4, -1.4))), mix=434, gradients=True)
add("modes", "judge_comb", comb, gradients=True)
add("modes", "judge_zero_at_the_centre", singular, normal, mix=435, gradients=True)
add("saddle", "judge_three_pairs", *[two(0.5, 2.0, 0.7, -2.0)] * 3, mix=436, gradients=True)

# --- ridges -------------------------------------------------------------------------------------------------

add("slow", "judge_ridge_sigmoid", valley(lambda x: 4.0 / (1.0 + np.exp(-5.0 * x)), 0.2), gradients=True)
add("slow", "judge_ridge_hook", valley(lambda x: over(x, 0.0) * 4.0, 0.2), mix=441, gradients=True)
add("slow", "judge_ridge_bend_3", valley(lambda x: 2.0 * np.tanh(4.0 * x), 0.2), normal, mix=442)
add("slow", "judge_ridge_w", valley(lambda x: (x**2 - 1.5) ** 2, 0.3), gradients=True)
add("slow", "judge_ridge_arch", Piece(
    lambda x, y: -25.0 * (np.hypot(x, y) - 2.0) ** 2 - 0.5 * (y - 1.0) ** 2, 2, starts=((0.0, 2.0), (2.0, 0.0))),
    gradients=True)  # fmt: skip

# --- functions that are spoilt --------------------------------------------------------------------------------


def in_place(function, rng):
    """It writes into its argument."""

    def overwritten(theta):
        values = function(theta)
        theta *= 2.0
        return values

    return overwritten


def one_buffer(function, rng):
    """All its answers are parts of one array, which the next call overwrites."""
    buffer = np.zeros(100_000)

    def part(theta):
        buffer[: len(theta)] = function(theta)
        return buffer[: len(theta)]

    return part


def seeded(sd: float):
    """Noise of a generator that begins anew at every call: that of a row is always the same."""
    return lambda function, rng: (
        lambda theta: function(theta) + sd * np.random.default_rng(5).standard_normal(len(theta))
    )


def remembered(function, rng):
    """It keeps the values of points to one decimal."""
    known: dict[bytes, float] = {}

    def looked_up(theta):
        keys = [np.round(row, 1).tobytes() for row in theta]
        values = function(theta)
        return np.array([known.setdefault(key, value) for key, value in zip(keys, values, strict=True)])

    return looked_up


def single(function, rng):
    """θ and values in single precision."""
    return lambda theta: function(theta.astype(np.float32)).astype(np.float32)


def underflowing(below: float):
    """The likelihood itself, in single precision, before its logarithm."""

    def spoilt(values):
        with np.errstate(divide="ignore", under="ignore"):
            return np.log(np.exp((values - below).astype(np.float32)))

    return mapped(spoilt)


floored = Piece(lambda x: np.logaddexp(-0.5 * (x / 0.3) ** 2, np.log(1e-12)) - 0.5 * (x / 10.0) ** 2)
add("noise", "judge_in_place", *three, corrupt=in_place, shift=0.7)
add("noise", "judge_one_buffer", banana(1.0), normal, corrupt=one_buffer)
add("noise", "judge_seeded_1", *three, corrupt=seeded(1.0), shift=0.5)
add("noise", "judge_seeded_0.2", *two_of, corrupt=seeded(0.2), shift=0.5)
add("noise", "judge_remembered", *two_of, corrupt=remembered, shift=0.5)
add("digits", "judge_single_far", *three, corrupt=single, shift=(500.0, -40.0, 3.0), mix=(2.0, 1.0, 100.0),
    initial_mean=(500.0, -40.0, 3.0))  # fmt: skip
add("digits", "judge_underflow", *two_of, corrupt=underflowing(20.0), shift=1.0, mix=(8.0, 2.0))
add("digits", "judge_underflow_near_3", *three, corrupt=underflowing(75.0), mix=451)
add("tails", "judge_floored_likelihood", floored, gradients=True)
add("tails", "judge_floored_likelihood_3", floored, *two_of, mix=452, shift=0.5)
add("scales", "judge_scales_1e8", banana(1.0), normal, mix=(1e8, 1e-8, 1.0), gradients=True)
add("digits", "judge_offset_1e9", logistic(30, 3, 453), corrupt=mapped(lambda v: v - 1e9))
add("batch", "judge_less_the_best", *three, corrupt=mapped(lambda v: v - np.max(v)), shift=1.0)
add("batch", "judge_less_the_first", *two_of, corrupt=mapped(lambda v: v - v[0]), shift=1.0)
add(
    "batch",
    "judge_running_mean",
    *three,
    corrupt=mapped(lambda v: 0.7 * v + 0.3 * np.cumsum(v) / np.arange(1, len(v) + 1)),
)
add("batch", "judge_reversed", *two_of, corrupt=mapped(lambda v: v[::-1]), shift=1.0)
add(
    "batch",
    "judge_thirds",
    *two_of,
    corrupt=mapped(lambda v: (v + np.roll(v, 1) + np.roll(v, 2)) / 3.0),
    shift=1.0,
)

# --- wrong gradients ------------------------------------------------------------------------------------------


def detached(target, theta, g):
    """The gradient of the nearer of two modes alone."""
    x = theta - target.shift
    return np.where(x < 1.5, -x, -(x - 3.0))


def far_clipped(target, theta, g):
    return np.clip(g, -1.5, 1.5)


calls = np.random.default_rng(460)


def scattered(target, theta, g):
    """Noise that differs from call to call."""
    return g + 0.3 * calls.standard_normal(g.shape)


add_wrong("judge_gradient_0.97", *three, wrong=times(0.97), mix=461)
add_wrong("judge_gradient_sign_of_a_wide_one", *three, wrong=times(1, 1, -1), mix=(1.0, 1.0, 0.3), shift=0.5)
add_wrong("judge_gradient_detached", Piece(lambda x: np.logaddexp(bump(x, 0.0, 1.0), bump(x, 3.0, 1.0)), starts=(1.5,)),
          wrong=detached)  # fmt: skip
add_wrong("judge_gradient_clipped_by_element", *four, wrong=far_clipped, mix=(1.0, 0.5, 1.0, 2.0))
add_wrong("judge_gradient_scattered", *three, wrong=scattered)
add_wrong("judge_gradient_of_log_scale", Piece(lambda x, y: -0.5 * x**2 + 3.0 * y - 3.0 * np.exp(y), 2),
          wrong=lambda t, x, g: g + np.array([0.0, 1.0]))  # fmt: skip
add_wrong(
    "judge_gradient_laplace_smoothed", *[laplace] * 3, wrong=lambda t, x, g: -np.tanh(2.0 * (x - t.shift))
)

# --- improper -------------------------------------------------------------------------------------------------

add_flat("judge_not_identified_3", lambda x: -0.5 * x**2, lambda x: 0.0 * x, normal, mix=471, gradients=True)
add_flat("judge_floored_without_prior", lambda x: np.maximum(-0.5 * x**2, -9.0), normal, mix=472)
add_flat(
    "judge_slow_log", Piece(lambda x: -0.5 * x**2 / (1.0 + 0.05 * x**2)), normal, mix=473, gradients=True
)
