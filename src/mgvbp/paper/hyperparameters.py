"""The paper's table of hyper-parameters, as printed; what the authors' code ran stands beside each experiment."""

from __future__ import annotations

from typing import Any

COLUMNS = ("step_size", "decay_after", "clip_natural_gradient", "clip_initial", "max_iterations")
"""The paper's β, t', the largest norm of a natural gradient, that of the first one, and t_max."""
SHARED = {"momentum": 0.4, "window": 30, "patience": 500}
"""The same in every row: ω, the window w of the moving average, and the patience P."""
ROWS: dict[str, tuple[float, int, float, float, int]] = {
    "Labour": (0.01, 1000, 3000.0, 1000.0, 1200),
    "GARCH": (0.01, 1000, 1000.0, 1000.0, 1200),
    "Istanbul": (0.07, 1000, 50_000.0, 500.0, 1200),
    "Non-diff. model": (0.1, 5000, 150.0, 1000.0, 5000),
}


def printed(row: str, **changes: Any) -> dict[str, Any]:
    """The settings of a method as the paper prints them for a row, with ``changes``."""
    return {**dict(zip(COLUMNS, ROWS[row], strict=True)), **SHARED, **changes}
