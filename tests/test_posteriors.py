"""The posteriors that mixtures are judged by are sound, and what is stored of them is right."""

import json
from pathlib import Path

import numpy as np
import pytest

import zoo
from common import case
from posteriors import HELD_OUT, TARGETS, references
from posteriors.chains import Frame
from posteriors.closed_forms import EXACT
from posteriors.evidence import bridge, fitted, importance
from posteriors.make_reference import LARGEST_SE, wanted
from posteriors.quadrature import quadrature
from posteriors.symmetries import SWAPS
from zoo.base import jax_backend

OWN = {name: target for name, target in {**TARGETS, **HELD_OUT}.items() if name not in zoo.TARGETS}
EVERY = {**zoo.TARGETS, **OWN}


def points(target, num=5):
    return 0.4 * np.random.default_rng(3).standard_normal((num, target.dim))


def test_the_set_is_large_and_small_in_dimension():
    dims = [target.dim for target in TARGETS.values()]
    assert len(dims) >= 30
    assert min(dims) == 1
    assert max(dims) <= 15
    assert not set(HELD_OUT) & set(TARGETS)


def test_both_backends_compute_the_same_density_row_by_row():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        for name, target in OWN.items():
            with case(name):
                theta = points(target)
                values = target.log_density(theta)
                assert values.shape == (5,)
                np.testing.assert_allclose(target.log_density(theta[2:3]), values[2:3], rtol=1e-10)
                compiled = jax.jit(lambda theta, density=target.density: density(theta, jax_backend()))
                np.testing.assert_allclose(compiled(theta), values, rtol=1e-9)


def test_extreme_parameters_give_no_plus_infinity():
    for name, target in OWN.items():
        with case(name):
            signs = np.sign(np.random.default_rng(2).standard_normal((20, target.dim)))
            values = target.log_density(50.0 * signs)
            assert not (values == np.inf).any()


def test_every_target_has_a_reference_without_doubts():
    known = references()
    for name, target in wanted(20).items():
        with case(name):
            entry = known[name]
            assert entry.dim == target.dim
            assert entry.log_evidence_se <= LARGEST_SE
            assert entry.checks["notes"] == []
            assert entry.mean.shape == entry.sd.shape == entry.mean_se.shape == (target.dim,)
            assert entry.quantiles.shape == entry.quantiles_se.shape == (3, target.dim)
            assert (np.diff(entry.quantiles, axis=0) > 0).all()
            assert (entry.mean_se < 0.03 * entry.sd).all()


def test_no_bound_of_the_zoo_is_above_the_evidence():
    """The optimal Gaussians were found by a method of their own; on Gaussian targets bound and evidence are one."""
    optima = json.loads((Path(zoo.__file__).parent / "reference.json").read_text(encoding="utf-8"))
    for name, entry in references().items():
        if name in optima:
            with case(name):
                full = optima[name]["full"]
                gap = entry.log_evidence - full["lower_bound"]
                error = np.hypot(entry.log_evidence_se, full["se"])
                assert gap > -4.0 * error - 1e-5
                if "gaussian" in optima[name]["tags"]:
                    assert abs(gap) < 1e-5


def test_stored_bridges_agree_with_what_is_known():
    """Chains and a bridge against quadrature or a closed form: each, and all of them with the spread they promise."""
    z, methods = [], set()
    for name, entry in references().items():
        if entry.method in ("quadrature", "exact") and "bridge" in entry.checks:
            value, se = entry.checks["bridge"]
            z.append((value - entry.log_evidence) / np.hypot(se, entry.log_evidence_se))
            assert abs(z[-1]) < 4.0, name
            methods.add(entry.method)
    assert len(z) >= 15
    assert methods == {"quadrature", "exact"}
    assert np.sqrt(np.mean(np.square(z))) < 2.0


@pytest.mark.parametrize(
    "name", ["rosenbrock_4", "three_modes_5", "sinh_arcsinh_6", "groups_noncentred", "eight_schools_centred"]
)
def test_bridge_and_importance_find_evidence_that_is_known(name):
    """And so the draws of the closed form are right too, for the bridge uses them and the weights do not."""
    exact, rng = EXACT[name](), np.random.default_rng(5)
    proposal = fitted(exact.draw(rng, 3000), rng)
    theta, chains = proposal.sample(rng, 20_000), exact.draw(rng, 20_000)
    f = EVERY[name].log_density
    weights = f(theta) - proposal.log_density(theta)
    both = (f(chains) - proposal.log_density(chains)).reshape(20, -1)
    for estimate in (bridge(both, weights), importance(weights)[0]):
        assert estimate.se < 0.05
        assert abs(estimate.value - exact.log_evidence) < 4.0 * estimate.se


def test_closed_forms_are_those_of_quadrature():
    for name in (
        "log_gamma",
        "skew_normal_2",
        "banana_2",
        "bimodal_2",
        "ring_2",
        "two_modes_2",
        "three_modes_2",
    ):
        with case(name):
            entry = references()[name]
            fine, _ = quadrature(EVERY[name].log_density, Frame(entry.mean, np.diag(entry.sd)))
            assert abs(fine.log_evidence - entry.log_evidence) < 1e-5
            # a million draws: the stored errors are about a thousandth of an sd, and there are six numbers or fewer
            assert (np.abs(fine.mean - entry.mean) < 5.0 * entry.mean_se).all()
            assert (np.abs(fine.sd - entry.sd) < 5.0 * entry.sd_se).all()
            assert (
                np.abs(fine.quantiles - entry.quantiles) < 5.0 * entry.quantiles_se + 1e-3 * entry.sd
            ).all()


@pytest.mark.parametrize("name", list(SWAPS))
def test_a_swap_of_labels_changes_nothing(name):
    theta = points(EVERY[name])
    there = SWAPS[name](theta)
    assert not np.allclose(there, theta)
    np.testing.assert_allclose(SWAPS[name](there), theta)
    np.testing.assert_allclose(EVERY[name].log_density(there), EVERY[name].log_density(theta))
