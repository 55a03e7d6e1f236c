"""Figure manifold: a tangent vector, the exponential map with the retraction, and transport, on 2 × 2 precisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import expm, sqrtm

from mgvbp.paper.common import Array
from mgvbp.plots import private_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINT = np.array([[1.0, -0.45], [-0.45, 0.7]])
"""A precision P."""
TANGENT = np.array([[-0.6, 1.0], [1.0, -0.25]])
"""A symmetric matrix ξ, a tangent vector there."""
OTHER = np.array([[0.5, 0.3], [0.3, -0.2]])
"""Another one, which is carried along."""
LARGEST = 2.4
"""The cone is drawn for p₁₁ and p₂₂ up to this."""


def coordinates(P: Array) -> Array:
    """(..., 2, 2) -> (3, ...): p₁₁, p₂₂ and p₁₂."""
    return np.array([P[..., 0, 0], P[..., 1, 1], P[..., 0, 1]])


def exponential(P: Array, xi: Array) -> Array:
    """The end of the geodesic from P along ξ: P^½ exp(P^−½ ξ P^−½) P^½."""
    root = np.real(sqrtm(P))
    inverse = np.linalg.inv(root)
    return np.asarray(root @ expm(inverse @ xi @ inverse) @ root)


def retraction(P: Array, xi: Array) -> Array:
    """The paper's approximation of it: P + ξ + ½ ξ P⁻¹ ξ."""
    return np.asarray(P + xi + 0.5 * xi @ np.linalg.solve(P, xi))


def transport(P: Array, end: Array, xi: Array) -> Array:
    """E ξ Eᵀ with E = (P⁺ P⁻¹)^½."""
    E = np.real(sqrtm(end @ np.linalg.inv(P)))
    return np.asarray(E @ xi @ E.T)


def figure() -> Figure:
    """The three panels."""
    drawing = private_figure(13.0, 4.6)
    panels: list[Any] = [
        drawing.add_subplot(1, 3, i, projection="3d", computed_zorder=False) for i in (1, 2, 3)
    ]
    steps = np.linspace(0.0, 1.0, 60)[:, None, None]
    line = POINT + steps * TANGENT
    geodesic = np.array([exponential(POINT, t * TANGENT) for t in steps[:, 0, 0]])
    retracted = np.array([retraction(POINT, t * TANGENT) for t in steps[:, 0, 0]])
    inside = np.linalg.eigvalsh(line).min(axis=1) > 0.0
    a, angle = np.meshgrid(np.linspace(0.0, LARGEST, 25), np.linspace(0.0, np.pi / 2.0, 25))
    p11, p22 = a * np.cos(angle) ** 2, a * np.sin(angle) ** 2
    for panel, title in zip(
        panels, ("tangent vector", "exponential map, retraction", "transport"), strict=True
    ):
        for side in (1.0, -1.0):
            panel.plot_surface(p11, p22, side * np.sqrt(p11 * p22), color="0.8", alpha=0.25, linewidth=0)
        panel.scatter(*coordinates(POINT), color="k", s=25)
        panel.set(xlabel="p₁₁", ylabel="p₂₂")
        panel.set_zlabel("p₁₂", labelpad=3.0)
        panel.set_title(title, y=0.95)
        panel.view_init(elev=20, azim=-50)
        panel.set_box_aspect(None, zoom=0.78)  # room for the labels
    panels[0].plot(*coordinates(line[inside]), color="C0", label="P + tξ")
    panels[0].plot(*coordinates(line[~inside]), color="C3", ls="--", label="not positive definite")
    panels[1].plot(*coordinates(geodesic), color="0.3", ls=":", lw=2, label="exponential map")
    panels[1].plot(*coordinates(retracted), color="C0", label="retraction")
    panels[1].scatter(*coordinates(geodesic[-1]), color="C2", s=25)
    panels[2].plot(*coordinates(geodesic), color="0.3", ls=":", lw=2, label="exponential map")
    for at, vector, name in (
        (POINT, OTHER, "a vector"),
        (geodesic[-1], transport(POINT, geodesic[-1], OTHER), "the same, carried along"),
    ):
        ends = np.array([at, at + vector])
        panels[2].plot(*coordinates(ends), color="C0" if at is POINT else "C2", lw=2, label=name)
        panels[2].scatter(*coordinates(at), color="k" if at is POINT else "C2", s=25)
    for panel in panels:
        panel.legend(frameon=False, fontsize="small", loc="lower left")
    return drawing
