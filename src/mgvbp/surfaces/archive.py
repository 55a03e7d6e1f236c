r"""All evaluated draws, with the density of the mixture that they came from: old queries stay useful.

For a Gaussian q the draws have the multiple-importance ("balance heuristic") weights

.. math:: w_i = \frac{q(\theta_i)}{\sum_k n_k\, q_k(\theta_i)},

where :math:`q_k` are the Gaussians that were drawn from and :math:`n_k` how many draws each gave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian


class View(NamedTuple):
    """Draws in the frame of ``q`` (N, d), with its log density (N,) and their normalised weights for it (N,)."""

    q: Gaussian
    eps: Array
    log_q: Array
    weights: Array

    @property
    def size(self) -> float:
        """Kish's effective number of draws."""
        squared = float(self.weights @ self.weights)
        return 1.0 / squared if squared > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Archive:
    """Evaluated draws, which never change: `add` makes a larger archive."""

    theta: Array
    """The draws, (N, d)."""
    values: Array
    """The log density at the draws, (N,); −inf where it, or its gradient, is not finite."""
    log_mixture: Array
    """The logarithm of Σ n_k q_k at the draws, (N,)."""
    proposals: tuple[tuple[Gaussian, int], ...]
    """The Gaussians that were drawn from, and how many draws each gave."""
    gradients: Array
    """The gradients of the log density, (N, d), 0 where one is not finite; empty, (0, d), in a search by values."""
    groups: NDArray[np.intp]
    """Number of the group that each draw belongs to, (N,), ascending. The draws of a group are pairs ±ε, or one draw;
    those of different groups are independent of each other."""
    noise: float = 0.0
    """Standard deviation, in nats, of the noise in the values; 0 for a function that is not random."""

    @classmethod
    def empty(cls, dim: int, noise: float = 0.0) -> Archive:
        """An archive without draws."""
        rows = np.empty((0, dim))
        return cls(rows, np.empty(0), np.empty(0), (), rows, np.empty(0, dtype=np.intp), noise)

    def add(
        self,
        q: Gaussian,
        theta: Array,
        values: Array,
        gradients: Array | None = None,
        *,
        groups: NDArray[np.intp] | None = None,
    ) -> Archive:
        """The archive with more draws, from ``q``: their values and, if the earlier draws have them, gradients.

        ``groups`` are their groups, counted from 0; without it each draw is one.
        """
        count, finite = len(theta), np.isfinite(values)
        if self.proposals and self.proposals[-1][0] is q:
            proposals = (*self.proposals[:-1], (q, self.proposals[-1][1] + count))
        else:
            proposals = (*self.proposals, (q, count))
        earlier = np.logaddexp(self.log_mixture, math.log(count) + q.log_density_at(self.theta))
        terms = [math.log(n) + proposal.log_density_at(theta) for proposal, n in proposals]
        slopes = self.gradients
        if gradients is not None:
            finite &= np.isfinite(gradients).all(axis=1)
            slopes = np.concatenate([slopes, np.where(finite[:, None], gradients, 0.0)])
        first = self.groups[-1] + 1 if len(self.groups) else 0
        return Archive(
            theta=np.concatenate([self.theta, theta]),
            values=np.concatenate([self.values, np.where(finite, values, -np.inf)]),
            log_mixture=np.concatenate([earlier, np.logaddexp.reduce(terms)]),
            proposals=proposals,
            gradients=slopes,
            groups=np.concatenate([self.groups, first + (np.arange(count) if groups is None else groups)]),
            noise=self.noise,
        )

    def recent(self, most: int) -> Archive:
        """The archive without the oldest Gaussians and their draws, if it has more than ``most`` draws.

        The draws of the last Gaussian always stay.
        """
        counts = [count for _, count in self.proposals]
        dropped = 0
        while dropped < len(counts) - 1 and sum(counts[dropped:]) > most:
            dropped += 1
        if dropped == 0:
            return self
        rows, proposals = slice(sum(counts[:dropped]), None), self.proposals[dropped:]
        theta = self.theta[rows].copy()
        terms = [math.log(n) + proposal.log_density_at(theta) for proposal, n in proposals]
        return Archive(
            theta=theta,
            values=self.values[rows].copy(),
            log_mixture=np.asarray(np.logaddexp.reduce(terms)),
            proposals=proposals,
            gradients=self.gradients[rows].copy(),
            groups=self.groups[rows] - self.groups[rows][0],
            noise=self.noise,
        )

    def latest(self, least: int) -> Archive:
        """The draws of the latest Gaussians, at least ``least`` of them, as if there had been no others."""
        counts = [count for _, count in self.proposals]
        first = len(counts) - 1
        while first > 0 and sum(counts[first:]) < least:
            first -= 1
        return self.recent(sum(counts[first:]))

    def shares(self, count: int) -> NDArray[np.intp]:
        """A number below ``count`` for each draw, (N,), so that each share has its part of every Gaussian's draws.

        Groups stay together, or at least their pairs, if fewer groups than ``count`` are more than a pair.
        """
        sizes = np.bincount(self.groups)
        large = sizes > 2
        if np.count_nonzero(large) < count:
            pairs = np.cumsum(twins(self.groups) >= np.arange(len(self.groups)))
            return pairs % count
        share = np.empty(len(sizes), dtype=np.intp)
        for some in (large, ~large):
            share[some] = np.arange(np.count_nonzero(some)) % count
        return share[self.groups]

    def some(self, rows: NDArray[np.intp]) -> Archive:
        """Some of the draws, with the weights that they have among all."""
        names = ("theta", "values", "log_mixture", "gradients", "groups")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def view(self, q: Gaussian) -> View:
        """All draws, weighted for ``q``; draws whose value is not finite have weight 0."""
        eps = q.family.to_frame(q.factor, self.theta - q.mean)
        log_q = q.log_density_in_frame(eps)
        log_weights = np.where(self.values == -np.inf, -np.inf, log_q - self.log_mixture)
        largest = log_weights.max(initial=-np.inf)
        if largest == -np.inf:
            return View(q, eps, log_q, np.zeros(len(eps)))
        weights = np.exp(log_weights - largest)
        return View(q, eps, log_q, weights / weights.sum())


def twins(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """The index of each draw's mirror image, (N,); its own where it has none.

    In a group of several draws each two that stand side by side, from its first on, are a pair.
    """
    n = np.arange(len(groups))
    starts = np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))
    odd = (n - np.repeat(starts, np.diff(starts, append=len(groups)))) % 2 == 1
    mirrors = n.copy()
    mirrors[odd] -= 1
    mirrors[mirrors[odd]] += 1
    return mirrors


def equal_view(q: Gaussian, theta: Array) -> View:
    """A view of draws (N, d) from ``q``, all with the same weight."""
    eps = q.family.to_frame(q.factor, theta - q.mean)
    return View(q, eps, q.log_density_in_frame(eps), np.full(len(theta), 1.0 / len(theta)))
