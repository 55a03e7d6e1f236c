r"""Polynomials of higher degree for h, fitted to its gradients at the draws: h is the potential of its gradients.

With normalised Hermite polynomials :math:`\varphi_\alpha = \prod_i He_{\alpha_i}(\varepsilon_i) / \sqrt{\alpha!}`
and :math:`h \approx \sum_\alpha c_\alpha \varphi_\alpha` each draw gives d equations,

.. math:: v_j = \sum_\alpha c_\alpha \sqrt{\alpha_j}\, \varphi_{\alpha - e_j}(\varepsilon),

for one set of coefficients: 100 draws of 10 parameters determine all 285 up to the third degree. The polynomials and
their gradients are orthogonal under N(0, I), so that higher degrees leave the expected g and G as they are. They take
away most of the noise of g and G, since what a quadratic misses of a smooth log density is mostly of degree three and
four.

For each j the :math:`\alpha` with :math:`\alpha_j > 0` are :math:`\beta + e_j`, where :math:`\beta` runs through all
polynomials of lower degree. So the slopes of all coordinates are the same few polynomials, and their inner products are
taken once.
"""

from __future__ import annotations

from collections.abc import Callable
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
from mgvbp.surfaces.gradient_regression import Draws, Entries, Followed, GradientFit, Slopes


def degrees(draws: Draws) -> list[int]:
    """The degrees from the third on that the draws determine, and that are affordable."""
    N, d = draws.eps.shape
    equations = d / float(draws.weights @ draws.weights)
    affordable = []
    for degree in range(3, constants.HIGHEST_DEGREE + 1):
        size = comb(d + degree, degree) - 1
        if size > constants.GRADIENT_ROOM * equations or size**3 + N * size**2 > constants.MOST_WORK:
            break
        affordable.append(degree)
    return affordable


class _Equations(NamedTuple):
    """The solved equations of a polynomial."""

    phi: Array
    """All polynomials at the draws, one per row; the first is the constant."""
    factor: Array
    """The lower Cholesky factor of the normal equations."""
    coefficients: Array


def potential_followed(draws: Slopes, degree: int) -> Followed | None:
    """What `potential` has, without any errors: cheap, to follow a surface. None if the equations are singular."""
    solved = _solved(draws.eps, draws.weights, draws.sums, degree)
    if solved is None:
        return None
    g, G = _quadratic_part(solved.coefficients, draws.eps.shape[1])
    return Followed(g, G, float(solved.coefficients @ (solved.phi[1:] @ draws.weights)))


def potential(draws: Draws, family: Family, degree: int) -> GradientFit | None:
    """Weighted least squares for a polynomial h of degree ``degree``; None if the equations are singular."""
    weights, v = draws.weights, draws.v
    N, d = draws.eps.shape
    equations = _solved(draws.eps, weights, lambda rows: rows @ v, degree)
    if equations is None:
        return None
    phi, factor, coefficients = equations
    columns, roots = _terms(d, degree).slopes
    slopes = np.ascontiguousarray(phi[: columns.shape[1]].T)
    lower = np.tril(dpotri(factor, lower=1)[0])
    inverse = lower + np.tril(lower, -1).T
    fitted = slopes @ (roots * coefficients[columns]).T
    residuals, much = _leave_out(weights, slopes, inverse, (columns, roots), v - fitted)
    equation = np.zeros((len(coefficients), N))  # of each draw, its residuals times its slopes
    for j in range(d):
        equation[columns[j]] += (weights * residuals[:, j]) * (roots[j][:, None] * slopes.T)
    i, k = np.triu_indices(d)
    errors = (inverse[: d + len(i)] @ equation).T  # what each draw contributes to the quadratic part
    own = np.zeros(N)  # what it contributes to the polynomial at itself, if that is not slight
    own[much] = np.einsum("pn,pn->n", inverse @ equation[:, much], phi[1:, much])
    g, G = _quadratic_part(coefficients, d)
    kept = errors[:, d:] * np.where(family.mask[i, k], np.sqrt(0.5), 0.0)
    return GradientFit(
        g=g,
        G=G,
        fitted=fitted,
        predicted=coefficients @ phi[1:],
        own=own,
        residuals=residuals,
        errors=errors[:, :d],
        bends=Entries(kept),
    )


def _leave_out(
    weights: Array, slopes: Array, inverse: Array, terms: tuple[Indices, Array], residuals: Array
) -> tuple[Array, Indices]:
    """Residuals (N, d) of the polynomial that is fitted without the draw: (I − hat) r_out = r for its d equations.

    The matrix hat, (d, d), is what the equations of a draw say about themselves. Where they say little, the mean of its
    diagonal stands for all of it. That is so for most draws if there are many; the indices of the others are returned
    as well.
    """
    (columns, roots), d = terms, len(terms[0])
    own = sum(
        root[:, None] * inverse[np.ix_(column, column)] * root
        for column, root in zip(columns, roots, strict=True)
    )
    leverage = weights * np.einsum("nm,nm->n", slopes @ own, slopes) / d
    left_out = residuals / np.maximum(1.0 - leverage, constants.EVEN_LEVERAGE)[:, None]
    much = np.flatnonzero(leverage > constants.SLIGHT_LEVERAGE)
    hat, some = np.empty((len(much), d, d)), slopes[much]
    for j in range(d):
        block = roots[j][:, None] * inverse[columns[j]][:, columns[j:].ravel()] * roots[j:].ravel()
        rows = (some @ block).reshape(len(much), d - j, len(block)) @ some[:, :, None]
        hat[:, j, j:] = hat[:, j:, j] = weights[much, None] * rows[:, :, 0]
    left_out[much] = np.linalg.solve((1.0 + 1e-9) * np.eye(d) - hat, residuals[much, :, None])[:, :, 0]
    return left_out, much


def _solved(eps: Array, weights: Array, sums: Callable[[Array], Array], degree: int) -> _Equations | None:
    """The normal equations of a polynomial, solved; None if they are singular.

    ``sums`` multiplies rows (k, N) with the gradients v (N, d).
    """
    terms = _terms(eps.shape[1], degree)
    columns, roots = terms.slopes
    phi = _polynomials(eps, terms)
    slopes = phi[: columns.shape[1]]
    weighted = weights * slopes
    gram, sides = weighted @ slopes.T, sums(weighted)
    A, right = np.zeros((len(phi) - 1,) * 2), np.zeros(len(phi) - 1)
    for j, (column, root) in enumerate(zip(columns, roots, strict=True)):
        A[np.ix_(column, column)] += root[:, None] * gram * root
        right[column] += root * sides[:, j]
    squares = A.diagonal().copy()
    factor, failed = dpotrf(A.T, lower=1, overwrite_a=1)
    if failed or collinear(factor, squares):
        return None
    return _Equations(phi, factor, dpotrs(factor, right, lower=1)[0])


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

    recurrences: list[tuple[int, slice, slice, slice, Array]]
    """For all α of one degree that begin with coordinate j: j, their indices, those of α − e_j, those of the α − 2e_j
    that exist, which belong to the first of the α, and the powers α_j as a column."""
    slopes: tuple[Indices, Array]
    """For each coordinate j and β of lower degree: the index of the coefficient of α = β + e_j, and √α_j, (d, m)."""


@lru_cache(maxsize=32)
def _terms(dim: int, degree: int) -> _Terms:
    levels = [list(combinations_with_replacement(range(dim), k)) for k in range(degree + 1)]
    starts = np.cumsum([0, *map(len, levels)])
    multisets = [m for level in levels for m in level]
    index = {m: n for n, m in enumerate(multisets)}
    recurrences = []
    for k in range(1, degree + 1):
        first = int(starts[k])
        for j in range(dim):
            # what follows the first j is a multiset of coordinates from j on; these stand last among their degree
            count, once, twice = (_from(dim - j, k - n) for n in (1, 1, 2))
            alpha = slice(first, first + count)
            powers = np.array([[float(m.count(j))] for m in multisets[alpha]])
            before = slice(int(starts[k]) - once, int(starts[k]))
            last = slice(int(starts[k - 1]) - twice, int(starts[k - 1]))
            recurrences.append((j, alpha, before, last, powers))
            first += count
    lower = multisets[: starts[degree]]
    columns = [[index[tuple(sorted((*m, j)))] - 1 for m in lower] for j in range(dim)]
    roots = [[m.count(j) + 1.0 for m in lower] for j in range(dim)]
    return _Terms(recurrences, (np.array(columns), np.sqrt(roots)))


def _from(coordinates: int, degree: int) -> int:
    """The number of multisets of so many coordinates; none of a negative degree."""
    return comb(coordinates + degree - 1, degree) if degree >= 0 else 0


def _polynomials(eps: Array, terms: _Terms) -> Array:
    """All φ_α at the draws (N, d), one per row, by √α_j φ_α = ε_j φ_{α−e_j} − √(α_j − 1) φ_{α−2e_j}."""
    x = np.ascontiguousarray(eps.T)
    phi = np.empty((terms.recurrences[-1][1].stop, len(eps)))
    phi[0] = 1.0
    for j, alpha, once, twice, powers in terms.recurrences:
        rows = phi[alpha]
        np.multiply(x[j], phi[once], out=rows)
        again = twice.stop - twice.start
        rows[:again] -= np.sqrt(powers[:again] - 1.0) * phi[twice]
        rows /= np.sqrt(powers)
    return phi
