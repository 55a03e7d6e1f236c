"""What is computed for a block of draws and rows, in the words that JAX and PyTorch share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

Function = Callable[..., Any]


class Library(Protocol):
    """An array library with derivatives."""

    xp: Any
    """Its functions of arrays."""

    def vmap(self, function: Function, axes: tuple[int | None, ...]) -> Function:
        """``function`` mapped over these axes of its arguments."""

    def value_and_grad(self, function: Function) -> Function:
        """The value of ``function`` and its gradient by the first argument."""

    def compiled(self, function: Function) -> Function:
        """``function`` with NumPy arrays as arguments and results."""


@dataclass(frozen=True)
class Kernels:
    """Functions of draws (S, d) and rows; the last argument of the sums, (n,), says which of the rows count.

    Attributes
    ----------
    outputs : callable
        (theta, X) -> (S, n, K).
    pointwise : callable
        (theta, X, y) -> (S, n).
    values, gradients, squares : callable
        (theta, X, y, present) -> a tuple of sums over the rows, in float64: of the log densities (S,); also of their
        gradients (S, d); also of the squares of each row's gradient (S, d).
    """

    outputs: Function
    pointwise: Function
    values: Function
    gradients: Function
    squares: Function


def kernels(library: Library, outputs: Function, log_densities: Function) -> Kernels:
    """Compile ``outputs(theta, X) -> (n, K)`` and ``log_densities(theta, X, y) -> (n,)`` of one draw for many."""
    xp = library.xp

    def value(theta: Any, X: Any, y: Any, present: Any) -> Any:
        return xp.where(present, log_densities(theta, X, y), 0.0).sum(dtype=xp.float64)

    def one_row(theta: Any, x: Any, y: Any) -> Any:
        return log_densities(theta, x[None], y[None])[0]

    def squares(theta: Any, X: Any, y: Any, present: Any) -> Any:
        of_rows = library.vmap(library.value_and_grad(one_row), (None, 0, 0))
        values, gradients = of_rows(theta, X, y)
        kept = xp.where(present[:, None], gradients, 0.0)
        return (
            xp.where(present, values, 0.0).sum(dtype=xp.float64),
            kept.sum(0, dtype=xp.float64),
            (kept**2).sum(0, dtype=xp.float64),
        )

    def over_draws(function: Function, others: int) -> Function:
        return library.compiled(library.vmap(function, (0, *[None] * others)))

    return Kernels(
        outputs=over_draws(outputs, 1),
        pointwise=over_draws(log_densities, 2),
        values=over_draws(lambda *args: (value(*args),), 3),
        gradients=over_draws(library.value_and_grad(value), 3),
        squares=over_draws(squares, 3),
    )
