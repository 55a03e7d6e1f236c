"""Figure manifold: its curves are the maps that its caption names."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra plots")

from mgvbp.paper.manifold import OTHER, POINT, TANGENT, exponential, figure, retraction, transport


def test_the_retraction_begins_as_the_exponential_map():
    """They differ from the third order on: an eighth of it at half the step."""
    errors = [
        np.abs(exponential(POINT, t * TANGENT) - retraction(POINT, t * TANGENT)).max() for t in (2e-2, 1e-2)
    ]
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.1)


def test_a_line_leaves_the_cone_and_the_maps_do_not():
    assert np.linalg.eigvalsh(POINT).min() > 0.0 > np.linalg.eigvalsh(POINT + TANGENT).min()
    for to in (exponential, retraction):
        assert np.linalg.eigvalsh(to(POINT, TANGENT)).min() > 0.0


def test_transport_keeps_lengths():
    """In the affine-invariant metric, tr(P⁻¹ξP⁻¹ξ)."""
    end = exponential(POINT, TANGENT)
    carried = transport(POINT, end, OTHER)
    length = [
        np.trace(np.linalg.solve(P, v) @ np.linalg.solve(P, v)) for P, v in ((POINT, OTHER), (end, carried))
    ]
    assert length[0] == pytest.approx(length[1])


def test_three_panels():
    assert len(figure().axes) == 3
