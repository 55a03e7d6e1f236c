r"""Polynomials of higher degree for h, fitted to its gradients at the draws: h is the potential of its gradients.

With normalised Hermite polynomials :math:`\varphi_\alpha = \prod_i He_{\alpha_i}(\varepsilon_i) / \sqrt{\alpha!}`
and :math:`h \approx \sum_\alpha c_\alpha \varphi_\alpha` each draw gives d equations,

.. math:: v_j = \sum_\alpha c_\alpha \sqrt{\alpha_j}\, \varphi_{\alpha - e_j}(\varepsilon),

for one set of coefficients: 100 draws of 10 parameters determine all 285 up to the third degree. The polynomials and
their gradients are orthogonal under N(0, I), so that higher degrees leave the expected g and G as they are. They take
away most of the noise of g and G, since what a quadratic misses of a smooth log density is mostly of degree three and
four.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from mgvbp.core.linalg import Array, collinear
from mgvbp.families import Family
from mgvbp.families.base import Indices
from mgvbp.surfaces import constants
from mgvbp.surfaces.gradient_regression import Draws, Entries, GradientFit


def degrees(draws: Draws) -> list[int]:
    """The degrees from the third on that the draws determine, and that are affordable."""
    N, d = draws.eps.shape
    equations = d / float(draws.weights @ draws.weights)
    affordable = []
    for degree in range(3, constants.HIGHEST_DEGREE + 1):
        size, slopes = comb(d + degree, degree) - 1, comb(d + degree - 1, degree - 1)
        if (
            size > constants.GRADIENT_ROOM * equations
            or size**3 + N * d * size * slopes > constants.MOST_WORK
        ):
            break
        affordable.append(degree)
    return affordable


class _Equations(NamedTuple):
    """The solved equations of a polynomial."""

    phi: Array
    """All polynomials at the draws, one per row; the first is the constant."""
    slopes: list[tuple[Indices, Array]]
    """For each coordinate j: the polynomials with α_j > 0, and their slopes at the draws, (N, columns)."""
    factor: Array
    """The lower Cholesky factor of the normal equations."""
    coefficients: Array


def potential_followed(draws: Draws, degree: int) -> tuple[Array, Array, Array] | None:
    """g, G and what the polynomial of this degree predicts of h (N,), without any errors: cheap, to follow a surface.

    None if the equations are singular.
    """
    solved = _solved(draws, degree)
    if solved is None:
        return None
    g, G = _quadratic_part(solved.coefficients, draws.eps.shape[1])
    return g, G, solved.coefficients @ solved.phi[1:]


def potential(draws: Draws, family: Family, degree: int) -> GradientFit | None:
    """Weighted least squares for a polynomial h of degree ``degree``; None if the equations are singular."""
    weights, v = draws.weights, draws.v
    N, d = draws.eps.shape
    equations = _solved(draws, degree)
    if equations is None:
        return None
    phi, slopes, factor, coefficients = equations
    lower = np.tril(dpotri(factor, lower=1)[0])
    inverse = lower + np.tril(lower, -1).T
    i, k = np.triu_indices(d)
    count = d + len(i)  # coefficients of degree one and two come first
    fitted, hat, influence = np.empty((N, d)), np.empty((N, d, d)), np.empty((d, N, count))
    own = np.empty((N, d))  # influence of each slope on the polynomial at its own draw
    for j, (columns, X) in enumerate(slopes):
        fitted[:, j] = X @ coefficients[columns]
        solved = weights[:, None] * (X @ inverse[columns])
        influence[j] = solved[:, :count]
        own[:, j] = np.einsum("np,pn->n", solved, phi[1:])
        for other, (others, Y) in enumerate(slopes):
            hat[:, j, other] = np.einsum("np,np->n", solved[:, others], Y)
    # leave-one-out: (I − hat) r_out = r, for the d equations of each draw together
    residuals = np.linalg.solve((1.0 + 1e-9) * np.eye(d) - hat, (v - fitted)[:, :, None])[:, :, 0]
    errors = np.einsum("jnp,nj->np", influence, residuals)
    g, G = _quadratic_part(coefficients, d)
    kept = errors[:, d:] * np.where(family.mask[i, k], np.sqrt(0.5), 0.0)
    return GradientFit(
        g=g,
        G=G,
        fitted=fitted,
        predicted=coefficients @ phi[1:],
        own=np.einsum("nj,nj->n", own, residuals),
        residuals=np.asarray(residuals, dtype=np.float64),
        errors=errors[:, :d],
        bends=Entries(kept),
    )


def _solved(draws: Draws, degree: int) -> _Equations | None:
    """The normal equations of a polynomial, solved; None if they are singular."""
    eps, weights, v = draws.eps, draws.weights, draws.v
    terms = _terms(eps.shape[1], degree)
    phi = _polynomials(eps, terms)
    # the equations of coordinate j, (N, columns): only polynomials with α_j > 0 have a slope in this coordinate
    slopes = [(columns, phi[source].T * root) for columns, source, root in terms.slopes]
    A, right = np.zeros((len(phi) - 1,) * 2), np.zeros(len(phi) - 1)
    for j, (columns, X) in enumerate(slopes):
        weighted = weights[:, None] * X
        A[np.ix_(columns, columns)] += weighted.T @ X
        right[columns] += v[:, j] @ weighted
    squares = A.diagonal().copy()
    factor, failed = dpotrf(A.T, lower=1, overwrite_a=1)
    if failed or collinear(factor, squares):
        return None
    return _Equations(phi, slopes, factor, dpotrs(factor, right, lower=1)[0])


def _quadratic_part(coefficients: Array, dim: int) -> tuple[Array, Array]:
    """G and G from the coefficients of degree one and two.

    φ is ε_iε_k off the diagonal and (ε_i² − 1)/√2 on it: either way ‖G‖² is half the squared coefficient.
    """
    i, k = np.triu_indices(dim)
    G = np.zeros((dim, dim), order="F")
    G[i, k] = G[k, i] = -coefficients[dim : dim + len(i)] * np.where(i == k, np.sqrt(0.5), 0.5)
    return coefficients[:dim], G


class _Terms(NamedTuple):
    """How polynomials up to a degree follow from lower ones, and which polynomials are their slopes."""

    recurrences: list[tuple[int, int, int, int]]
    """For each polynomial α but the constant: a coordinate j, its power, and the indices of α − e_j and α − 2e_j."""
    slopes: list[tuple[Indices, Indices, Array]]
    """For each coordinate j and the α with α_j > 0: the indices of their coefficients and of α − e_j, and √α_j."""


@lru_cache(maxsize=32)
def _terms(dim: int, degree: int) -> _Terms:
    multisets = [m for k in range(degree + 1) for m in combinations_with_replacement(range(dim), k)]
    index = {m: n for n, m in enumerate(multisets)}
    recurrences = []
    slopes: list[list[tuple[int, int, int]]] = [[] for _ in range(dim)]
    for n, m in enumerate(multisets[1:], start=1):
        for j in set(m):
            at = m.index(j)
            slopes[j].append((n, index[m[:at] + m[at + 1 :]], m.count(j)))
        j, power = m[-1], m.count(m[-1])
        recurrences.append((j, power, index[m[:-1]], index[m[:-2]] if power > 1 else 0))
    columns = [np.array(rows).T for rows in slopes]
    return _Terms(recurrences, [(n - 1, source, np.sqrt(power)) for n, source, power in columns])


def _polynomials(eps: Array, terms: _Terms) -> Array:
    """All φ_α at the draws (N, d), one per row, by √α_j φ_α = ε_j φ_{α−e_j} − √(α_j − 1) φ_{α−2e_j}."""
    x, phi = np.ascontiguousarray(eps.T), np.empty((1 + len(terms.recurrences), len(eps)))
    phi[0] = 1.0
    for n, (j, power, once, twice) in enumerate(terms.recurrences, start=1):
        row = x[j] * phi[once]
        if power > 1:
            row -= np.sqrt(power - 1.0) * phi[twice]
        phi[n] = row / np.sqrt(power)
    return phi
