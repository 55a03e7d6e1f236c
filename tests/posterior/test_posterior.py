"""What a fit returns: its moments, its diagnosis, its files."""

import errno
import gc
import io
import json
import os
import pickle
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import mgvbp
from common import FAST, rescaled
from mgvbp import MGVBP, BlockDiagonal, Gaussian, Posterior, fit, load
from mgvbp.errors import ConvergenceWarning, DivergenceError, FileFormatError, InvalidInputError

FAMILIES = {"full": "full", "diagonal": "diagonal", "block": BlockDiagonal([[0, 2], [1]])}
EACH = pytest.mark.parametrize("family", FAMILIES)
X = np.array([[1.0, 0.2, -0.5], [0.3, 1.0, 0.1], [-0.4, 0.8, 1.2], [0.9, -0.7, 0.6], [0.1, 0.5, 1.5]])
Y = np.array([0.4, -1.1, 0.9, 0.2, 1.3])
PRIOR = Gaussian([0.5, 0.0, -0.5], variance=[1.0, 2.0, 3.0])


def log_likelihood(theta, rows=slice(None)):
    """Linear regression with noise variance 1."""
    residuals = Y[rows] - theta @ X[rows].T
    return -0.5 * (residuals**2 + np.log(2.0 * np.pi)).sum(axis=1)


def log_posterior(theta):
    return log_likelihood(theta) + PRIOR.log_density(theta)


EXACT_PRECISION = X.T @ X + PRIOR.precision
EXACT_MEAN = np.linalg.solve(EXACT_PRECISION, X.T @ Y + PRIOR.precision @ PRIOR.mean)
LOG_EVIDENCE = stats.multivariate_normal(X @ PRIOR.mean, np.eye(len(Y)) + X @ PRIOR.covariance @ X.T).logpdf(
    Y
)


def fitted(family="full", **options):
    return fit(log_likelihood, PRIOR, family=FAMILIES[family], **options)


@pytest.fixture(scope="module")
def posteriors():
    return {family: fitted(family) for family in FAMILIES}


# --- moments ------------------------------------------------------------------------------------------


@EACH
def test_moments_agree_with_the_inverse(posteriors, family):
    posterior = posteriors[family]
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(posterior.precision), atol=1e-13)
    np.testing.assert_allclose(posterior.std, np.sqrt(np.diag(posterior.covariance)), rtol=1e-13)
    R = posterior.family.dense_factor(posterior.factor)
    np.testing.assert_allclose(posterior.precision, R @ R.T, atol=1e-13)
    arrays = posterior.mean, posterior.covariance, posterior.precision, posterior.std
    assert [a.shape for a in arrays] == [(3,), (3, 3), (3, 3), (3,)]
    assert {a.dtype for a in arrays} == {np.dtype(np.float64)}


@EACH
def test_the_optimum_of_each_family(posteriors, family):
    """Of a Gaussian target: its mean, and its precision restricted to the structure."""
    structure = {"full": np.ones((3, 3)), "diagonal": np.eye(3), "block": np.eye(3)}[family].copy()
    if family == "block":
        structure[0, 2] = structure[2, 0] = 1.0
    np.testing.assert_allclose(posteriors[family].mean, EXACT_MEAN, atol=1e-6)
    np.testing.assert_allclose(posteriors[family].precision, EXACT_PRECISION * structure, atol=1e-5)


@EACH
def test_log_density_is_scipys(posteriors, family):
    posterior = posteriors[family]
    theta = np.random.default_rng(0).normal(size=(50, 3)) * 3.0
    expected = stats.multivariate_normal(posterior.mean, posterior.covariance).logpdf(theta)
    np.testing.assert_allclose(posterior.log_density(theta), expected, rtol=1e-11)


@EACH
def test_moments_of_a_sample(posteriors, family):
    """20 statistics beyond 5 standard errors: probability 1e-5 for a right sampler; the seed is fixed."""
    posterior, n = posteriors[family], 40_000
    theta = posterior.sample(n, rng=1)
    assert theta.shape == (n, 3)
    assert np.all(np.abs(theta.mean(axis=0) - posterior.mean) < 5.0 * posterior.std / np.sqrt(n))
    C = posterior.covariance
    error = np.sqrt((np.outer(np.diag(C), np.diag(C)) + C**2) / n)
    assert np.all(np.abs(np.cov(theta.T) - C) < 5.0 * error)


def test_seeds_of_a_sample(posteriors):
    posterior = posteriors["full"]
    assert np.array_equal(posterior.sample(5, rng=3), posterior.sample(5, rng=np.random.default_rng(3)))
    assert not np.array_equal(posterior.sample(5, rng=3), posterior.sample(5, rng=4))


def test_a_posterior_cannot_be_written(posteriors):
    with pytest.raises(ValueError, match="read-only"):
        posteriors["full"].mean[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        posteriors["full"].factor[0, 0] = 1.0


# --- diagnose -----------------------------------------------------------------------------------------


def test_an_exact_fit_is_diagnosed_as_one(posteriors):
    diagnosis = posteriors["full"].diagnose()
    assert diagnosis.elbo == pytest.approx(LOG_EVIDENCE, abs=1e-6)
    assert diagnosis.log_evidence == pytest.approx(LOG_EVIDENCE, abs=1e-6)
    assert diagnosis.elbo_se < 1e-6
    assert diagnosis.log_evidence_se < 1e-6
    assert diagnosis.khat < 0.7


@pytest.mark.parametrize("family", ["diagonal", "block"])
def test_the_evidence_of_an_inexact_fit(posteriors, family):
    diagnosis = posteriors[family].diagnose(20_000)
    assert diagnosis.log_evidence_se > 1e-4
    assert abs(diagnosis.log_evidence - LOG_EVIDENCE) < 3.0 * diagnosis.log_evidence_se
    # E_q h in closed form: the evidence less the divergence from the posterior
    ratio = EXACT_PRECISION @ posteriors[family].covariance
    gap = 0.5 * (np.trace(ratio) - 3.0 - np.log(np.linalg.det(ratio)))
    assert abs(diagnosis.elbo - (LOG_EVIDENCE - gap)) < 3.0 * diagnosis.elbo_se


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_khat_is_the_shape_of_the_weights(posteriors, k):
    """A target that is q times a weight of known generalised Pareto shape.

    The tail has 3√n = 1341 weights, and its shape a standard error of about (1 + k)/√1341 = 0.05.
    """
    q = posteriors["diagonal"]

    def target(theta):
        uniform = stats.norm.cdf((theta[:, 0] - q.mean[0]) / q.std[0])
        return q.log_density(theta) + np.log(stats.genpareto(c=k, scale=1.0).ppf(uniform))

    assert q.diagnose(200_000, log_density=target).khat == pytest.approx(k, abs=0.2)


def test_heavy_tails_are_noticed():
    """A Cauchy: the mean k-hat of ten diagnoses is 0.83 ± 0.03 for 20 narrow Gaussians, and 1.2 ± 0.3 for 20 fits."""
    target = stats.multivariate_t(np.zeros(2), np.eye(2), df=1)
    posteriors = [fit(target.logpdf, dim=2, rng=seed) for seed in range(3)]
    narrow = rescaled(posteriors[0], 0.1)
    found = [narrow.diagnose(20_000, seed, target.logpdf).khat for seed in range(10)]
    assert np.mean(found) > 0.7
    found = [posterior.diagnose(4000, seed).khat for posterior in posteriors for seed in range(10)]
    assert np.mean(found) > 0.5


def test_a_wide_approximation_is_reliable(posteriors):
    """q wider than the target: bounded weights, however bad the bound."""
    exact = posteriors["full"]
    wide = stats.multivariate_normal(exact.mean, 0.5 * exact.covariance)
    assert exact.diagnose(4000, log_density=wide.logpdf).khat < 0.5


def test_a_target_that_is_the_approximation_itself(posteriors):
    """All weights are 1, to the last bit."""
    q = posteriors["full"]
    diagnosis = q.diagnose(log_density=q.log_density)
    assert (diagnosis.elbo, diagnosis.elbo_se) == (0.0, 0.0)
    evidence = diagnosis.log_evidence, diagnosis.log_evidence_se
    assert evidence == pytest.approx((0.0, 0.0), abs=1e-12)
    assert diagnosis.khat < 0.7


def test_a_target_with_bounded_support_is_diagnosed():
    """Draws outside have weight 0: the lower bound is −inf, the evidence is not."""
    q = fit(lambda theta: -0.5 * theta[:, 0] ** 2, dim=1)

    def half(theta):
        return np.where(theta[:, 0] > 0.0, stats.norm(0.0, 0.8).logpdf(theta[:, 0]), -np.inf)

    diagnosis = q.diagnose(4000, log_density=half)
    assert diagnosis.elbo == -np.inf
    assert diagnosis.elbo_se == np.inf
    assert abs(diagnosis.log_evidence - np.log(0.5)) < 3.0 * diagnosis.log_evidence_se
    assert diagnosis.khat < 0.7


def test_a_bad_value_in_the_diagnosis_comes_with_its_draws(posteriors):
    with pytest.raises(DivergenceError) as caught:
        posteriors["full"].diagnose(50, log_density=lambda theta: np.full(len(theta), np.nan))
    assert caught.value.theta.shape == (50, 3)


def test_a_function_that_modifies_its_argument_is_diagnosed_right(posteriors):
    def greedy(theta):
        values = log_likelihood(theta)
        theta[:] = 0.0
        return values

    careless = fit(greedy, PRIOR, family="diagonal")
    assert np.array_equal(careless.mean, posteriors["diagonal"].mean)
    assert careless.diagnose() == posteriors["diagonal"].diagnose()


def test_the_draws_of_the_diagnosis_are_fresh():
    """With every seed at its default none of the draws of the fit come back."""
    fit_eps = MGVBP().start(3).ask()
    seen = []
    fitted("diagonal").diagnose(log_density=lambda theta: seen.append(theta.copy()) or log_posterior(theta))
    q = fitted("diagonal")
    fresh = (seen[0] - q.mean) / q.std
    assert np.abs(fresh[: len(fit_eps)] - fit_eps).max() > 0.1


# --- ArviZ --------------------------------------------------------------------------------------------


@EACH
def test_to_arviz(posteriors, family):
    posterior = posteriors[family]
    tree = posterior.to_arviz(num_draws=70, rng=2)
    theta = tree["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "theta_dim_0")
    assert theta.shape == (1, 70, 3)
    assert np.array_equal(theta.to_numpy()[0], posterior.sample(70, rng=2))
    log_q = tree["sample_stats"]["log_q"]
    assert log_q.dims == ("chain", "draw")
    assert np.array_equal(log_q.to_numpy()[0], posterior.log_density(theta.to_numpy()[0]))


def test_to_arviz_default_size(posteriors):
    assert posteriors["full"].to_arviz()["posterior"]["theta"].shape == (1, 1000, 3)


def test_to_arviz_of_no_draws(posteriors):
    with pytest.raises(InvalidInputError, match=r"num_draws must be .*got 0"):
        posteriors["full"].to_arviz(0)


# --- summary ------------------------------------------------------------------------------------------


@EACH
def test_summary_has_the_numbers(posteriors, family):
    posterior = posteriors[family]
    text = posterior.summary()
    assert f"\nlower bound {posterior.lower_bound:.4f} (se {posterior.lower_bound_se:.4f}) after " in text
    assert f"{posterior.n_evaluations:,} evaluations" in text
    assert f"{len(posterior.trace)} iterations" in text
    assert f"regression estimator, {family} family), d = 3" in text
    assert f"\nconverged: {posterior.stop_reason}" in text
    assert "expected gap to the optimum 0.0000 (sd 0.0000) nats" in text
    lines = text.splitlines()[-3:]
    for i, (line, m, s) in enumerate(zip(lines, posterior.mean, posterior.std, strict=True)):
        label, *numbers = line.split()
        assert label == f"theta[{i}]"
        low, high = stats.norm(m, s).interval(0.95)
        assert [float(n) for n in numbers] == pytest.approx([m, s, low, high], abs=0.0051 * s)


def test_summary_of_a_run_that_did_not_converge():
    text = fitted(method=FAST, max_iterations=5).summary()
    assert "NOT converged: reached max_iterations = 5" in text
    assert "gap" not in text
    assert "(se" not in text


def test_summary_of_a_gap_without_its_error(posteriors):
    q = posteriors["full"]
    options = {"lower_bound": -1.0, "converged": True, "stop_reason": "", "trace": q.trace}
    text = Posterior(
        q.mean, q.factor, q.family, **options, method="", estimator="", gap=0.004, gap_se=None
    ).summary()
    assert "\nexpected gap to the optimum 0.0040 nats\n" in text
    assert "\nlower bound -1.0000 after " in text


def test_summary_of_auto_that_did_not_converge():
    with pytest.warns(ConvergenceWarning, match="reached max_iterations = 2"):
        posterior = fitted(max_iterations=2)
    assert "NOT converged: reached max_iterations = 2" in posterior.summary()
    assert f"expected gap to the optimum {posterior.gap:.4f}" in posterior.summary()


# --- the error of the lower bound ---------------------------------------------------------------------


def log_logistic(theta):
    """Ten observations of a logit: no quadratic, so that the surface has an error."""
    return 7.0 * theta[:, 0] - 10.0 * np.logaddexp(0.0, theta[:, 0])


@pytest.mark.parametrize("starts", [1, 3])
def test_auto_has_the_error_of_its_lower_bound(starts):
    """Against quadrature; beyond 5 standard errors with probability 6e-7, if they are right."""
    q = fit(log_logistic, Gaussian(variance=5.0, dim=1), starts=starts)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    theta = q.mean + q.std * nodes[:, None]
    h = log_logistic(theta) + stats.norm(0.0, np.sqrt(5.0)).logpdf(theta[:, 0]) - q.log_density(theta)
    exact = weights @ h / weights.sum()
    assert 0.0 < q.lower_bound_se < 0.1
    assert abs(q.lower_bound - exact) < 5.0 * q.lower_bound_se


@pytest.mark.parametrize("others", [None, (), (-3.5,), (-3.5, -1e300)], ids=repr)
def test_other_optima_are_saved(posteriors, others, tmp_path):
    q = posteriors["full"]
    options = {"lower_bound": -1.0, "converged": True, "stop_reason": "", "trace": q.trace}
    failures = {"raised": 2, "timed_out": 3, "lost": 1, "workers_lost": 4}
    options |= {"method": "auto", "estimator": "regression", "other_optima": others, "failures": failures}
    Posterior(q.mean, q.factor, q.family, **options).save(tmp_path / "posterior.npz")
    again = load(tmp_path / "posterior.npz")
    assert again.other_optima == others
    assert again.failures == failures
    expected = None if others is None else tuple(-1.0 - bound for bound in others)
    assert again.diagnose(100, log_density=q.log_density).below == expected


# --- pickles ------------------------------------------------------------------------------------------


def same(a, b):
    scalars = "lower_bound", "converged", "stop_reason", "method", "estimator", "n_evaluations", "dim"
    scalars += "lower_bound_se", "gap", "gap_se"
    columns = zip(vars(a.trace).values(), vars(b.trace).values(), strict=True)
    return (
        all(getattr(a, name) == getattr(b, name) for name in scalars)
        and repr(a.family) == repr(b.family)
        and a.mean.tobytes() == b.mean.tobytes()
        and a.factor.tobytes("F") == b.factor.tobytes("F")
        and a.factor.flags.f_contiguous == b.factor.flags.f_contiguous
        and all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in columns)
    )


@EACH
def test_pickle(posteriors, family):
    posterior = posteriors[family]
    again = pickle.loads(pickle.dumps(posterior))
    assert isinstance(again, Posterior)
    assert same(again, posterior)
    with pytest.raises(InvalidInputError, match="log_density="):
        again.diagnose()


def test_pickling_leaves_the_original_its_model(posteriors):
    pickle.dumps(posteriors["diagonal"])
    assert posteriors["diagonal"].diagnose() == posteriors["diagonal"].diagnose(log_density=log_posterior)


# --- files --------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("kind", [str, Path])
def test_save_and_load(posteriors, family, kind, tmp_path):
    path = tmp_path / "posterior.npz"
    assert posteriors[family].save(kind(path)) is None
    again = load(kind(path))
    assert same(again, posteriors[family])
    assert np.array_equal(again.covariance, posteriors[family].covariance)
    assert not again.mean.flags.writeable
    assert [p.name for p in tmp_path.iterdir()] == ["posterior.npz"]


@EACH
def test_save_and_load_a_named_method(family, tmp_path):
    posterior = fitted(family, method=FAST)
    assert posterior.lower_bound_se is posterior.gap is posterior.gap_se is None
    posterior.save(tmp_path / "p")
    assert same(load(tmp_path / "p"), posterior)


def log_banana(theta):
    x, y, z = theta.T
    return -0.5 * ((x / 3.0) ** 2 + (30.0 * (y - x**2 - 50.0)) ** 2 + z**2)


@pytest.mark.parametrize("limit", [2, 10, 30, 100])
def test_save_and_load_a_run_that_was_stopped_early(limit, tmp_path):
    """Before there is a surface the bound is −inf and the gap inf."""
    with pytest.warns(ConvergenceWarning):
        posterior = fit(log_banana, dim=3, max_evaluations=limit)
    posterior.save(tmp_path / "p")
    assert same(load(tmp_path / "p"), posterior)


def test_the_name_is_taken_as_it_is(posteriors, tmp_path):
    posteriors["full"].save(tmp_path / "no suffix")
    assert same(load(tmp_path / "no suffix"), posteriors["full"])


def test_a_run_with_bad_draws_survives_the_file(tmp_path):
    def function(theta):
        return np.where(np.arange(len(theta)) == 3, np.nan, log_likelihood(theta))

    with pytest.warns(mgvbp.NonFiniteWarning):
        posterior = fit(function, PRIOR, method=FAST, max_iterations=8)
    posterior.save(tmp_path / "p")
    assert load(tmp_path / "p").trace.dropped.tolist() == [1] * 8


def test_a_run_of_auto_with_bad_draws_survives_the_file(tmp_path):
    def function(theta):
        return np.where(np.arange(len(theta)) == 3, np.nan, log_likelihood(theta))

    with pytest.warns(mgvbp.NonFiniteWarning):
        posterior = fit(function, PRIOR)
    posterior.save(tmp_path / "p")
    assert same(load(tmp_path / "p"), posterior)
    trace = load(tmp_path / "p").trace
    assert set(trace.dropped[trace.phase != "trial"].tolist()) == {1}


def test_a_loaded_posterior_needs_its_model_to_be_diagnosed(posteriors, tmp_path):
    posteriors["diagonal"].save(tmp_path / "p")
    again = load(tmp_path / "p")
    with pytest.raises(InvalidInputError, match="log_density="):
        again.diagnose()
    assert again.diagnose(log_density=log_posterior) == posteriors["diagonal"].diagnose()


@EACH
def test_a_loaded_posterior_is_a_prior(posteriors, family, tmp_path):
    """Yesterday's posterior, from the file, is today's prior: bit for bit, and right."""
    yesterday = fit(lambda t: log_likelihood(t, slice(2)), PRIOR, family=FAMILIES[family])
    yesterday.save(tmp_path / "p")

    def today(theta):
        return log_likelihood(theta, slice(2, None))

    again, direct = (fit(today, p, family=FAMILIES[family]) for p in (load(tmp_path / "p"), yesterday))
    assert same(again, direct)
    if family == "full":
        np.testing.assert_allclose(again.mean, EXACT_MEAN, atol=1e-6)
        np.testing.assert_allclose(again.precision, EXACT_PRECISION, atol=1e-5)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.npz")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(OSError, match="directory"):
        load(tmp_path)


# --- files that are refused ---------------------------------------------------------------------------


class Trap:
    """Unpickling it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def saved(posteriors, tmp_path):
    path = tmp_path / "posterior.npz"
    posteriors["full"].save(path)
    return path


def contents(path):
    with np.load(path) as archive:
        return dict(archive)


def rewrite(path, header=None, drop=(), **arrays):
    """Write the archive again with another header (bytes, or changes to the old one) and other arrays."""
    parts = contents(path)
    if isinstance(header, dict):
        header = json.dumps(json.loads(parts["header"].tobytes()) | header).encode()
    if header is not None:
        parts["header"] = np.frombuffer(header, dtype=np.uint8)
    parts |= arrays
    np.savez_compressed(path, **{name: part for name, part in parts.items() if name not in drop})


def without_key(path, key):
    header = json.loads(contents(path)["header"].tobytes())
    del header[key]
    rewrite(path, header=json.dumps(header).encode())


def shorter(path, fraction):
    data = path.read_bytes()
    path.write_bytes(data[: int(fraction * len(data))])


def huge(path):
    """An array whose header claims 2⁵⁰ numbers."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1125899906842624,), }"
    header = header.ljust(117) + b"\n"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def twice(path):
    """Two members of one name, which readers choose from as they like."""
    member = io.BytesIO()
    np.save(member, contents(path)["mean"] + 100.0)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("mean.npy", member.getvalue())


def entry(array, index, value):
    array = array.copy()
    array[index] = value
    return array


def changed(name, index, value):
    return lambda p: rewrite(p, **{name: entry(contents(p)[name], index, value)})


def converted(name, dtype):
    return lambda p: rewrite(p, **{name: contents(p)[name].astype(dtype)})


def named(path, header):
    rewrite(path, header=header)


DAMAGE = {
    "empty": lambda p: p.write_bytes(b""),
    "one byte": lambda p: p.write_bytes(b"P"),
    "random bytes": lambda p: p.write_bytes(np.random.default_rng(0).bytes(3000)),
    "zeros": lambda p: p.write_bytes(bytes(3000)),
    "text": lambda p: p.write_text("lower bound -1.0\n"),
    "magic only": lambda p: p.write_bytes(b"PK\x03\x04"),
    "half": lambda p: shorter(p, 0.5),
    "most": lambda p: shorter(p, 0.99),
    "npy": lambda p: np.save(p.open("wb"), np.zeros(3)),
    "pickle": lambda p: p.write_bytes(pickle.dumps({"mean": [0.0]})),
    "empty archive": lambda p: np.savez(p),
    "plain archive": lambda p: np.savez(p, mean=np.zeros(3)),
    "other version": lambda p: named(p, {"mgvbp": 3}),
    "version as text": lambda p: named(p, {"mgvbp": "2"}),
    "no version": lambda p: without_key(p, "mgvbp"),
    "other kind": lambda p: named(p, {"kind": "checkpoint"}),
    "header not JSON": lambda p: named(p, b"{mgvbp: 1"),
    "header not UTF-8": lambda p: named(p, b"\xff\xfe\x00"),
    "header a list": lambda p: named(p, b"[1, 2]"),
    "header a number": lambda p: named(p, b"1"),
    "header of nothing": lambda p: named(p, b""),
    "header too deep": lambda p: named(p, b"[" * 100_000),
    "no lower bound": lambda p: without_key(p, "lower_bound"),
    "no blocks": lambda p: without_key(p, "blocks"),
    "lower bound text": lambda p: named(p, {"lower_bound": "high"}),
    "lower bound null": lambda p: named(p, {"lower_bound": None}),
    "lower bound nan": lambda p: named(p, {"lower_bound": float("nan")}),
    "other optima a number": lambda p: named(p, {"other_optima": 1.0}),
    "failures infinite": lambda p: named(p, {"failures": {"raised": float("inf")}}),
    "failures a number": lambda p: named(p, {"failures": 3}),
    "stop reason a number": lambda p: named(p, {"stop_reason": 1}),
    "blocks as sizes": lambda p: named(p, {"blocks": [10**9]}),
    "another part": lambda p: rewrite(p, more=np.zeros(3)),
    "a part twice": twice,
    "converged text": lambda p: named(p, {"converged": "false"}),
    "no gap": lambda p: without_key(p, "gap"),
    "no parameters": lambda p: without_key(p, "parameters"),
    "no labels": lambda p: without_key(p, "labels"),
    "gap text": lambda p: named(p, {"gap": "small"}),
    "unknown family": lambda p: named(p, {"family": "low-rank"}),
    "block family without blocks": lambda p: named(p, {"family": "block"}),
    "another family": lambda p: named(p, {"family": "diagonal"}),
    "blocks ragged": lambda p: named(p, {"blocks": [[0, [1]], [2]]}),
    "no mean": lambda p: rewrite(p, drop=["mean"]),
    "no factor": lambda p: rewrite(p, drop=["factor"]),
    "no trace": lambda p: rewrite(p, drop=["trace_gap"]),
    "mean scalar": lambda p: rewrite(p, mean=np.array(0.0)),
    "mean empty": lambda p: rewrite(p, mean=np.zeros(0), factor=np.zeros((0, 0))),
    "mean longer": lambda p: rewrite(p, mean=np.zeros(4)),
    "mean single": converted("mean", np.float32),
    "factor not triangular": changed("factor", (0, 2), 1.0),
    "trace longer": lambda p: rewrite(p, trace_gap=np.append(contents(p)["trace_gap"], 0.0)),
    "object array": lambda p: rewrite(p, mean=np.array([None, 1.0, 2.0])),
    "trap": lambda p: rewrite(p, factor=np.array([Trap(p.with_name("sprung"))], dtype=object)),
    "trap aside": lambda p: rewrite(p, more=np.array([Trap(p.with_name("sprung"))], dtype=object)),
    "huge array": huge,
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # test_a_refused_file_is_closed
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_file_is_refused(damage, saved):
    DAMAGE[damage](saved)
    with pytest.raises(FileFormatError, match=r"posterior\.npz") as caught:
        load(saved)
    assert isinstance(caught.value, ValueError)
    assert not saved.with_name("sprung").exists()


def test_the_version_of_a_refused_file_is_named(saved):
    rewrite(saved, header={"mgvbp": 7})
    with pytest.raises(FileFormatError, match=r"format 7; this version of mgvbp reads 2"):
        load(saved)


def test_a_refused_file_is_closed(saved):
    shorter(saved, 0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(FileFormatError):
            load(saved)
        gc.collect()
    assert [str(w.message) for w in caught] == []


@pytest.fixture(scope="module")
def image(tmp_path_factory, posteriors):
    """A saved file, to be damaged in a copy."""
    path = tmp_path_factory.mktemp("fuzz") / "posterior.npz"
    posteriors["block"].save(path)
    return path


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # test_a_refused_file_is_closed
@settings(max_examples=200, derandomize=True)
@given(flips=st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_load_or_are_refused(image, flips):
    damaged, copy = bytearray(image.read_bytes()), image.with_name("damaged.npz")
    for position, mask in flips:
        damaged[position % len(damaged)] ^= mask
    copy.write_bytes(damaged)
    try:
        posterior = load(copy)
    except FileFormatError:
        return
    assert np.isfinite(posterior.covariance).all()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # test_a_refused_file_is_closed
@settings(max_examples=50, derandomize=True)
@given(length=st.integers(0, 2**20))
def test_truncated_file_is_refused(image, length):
    data, copy = image.read_bytes(), image.with_name("short.npz")
    copy.write_bytes(data[: length % len(data)])
    with pytest.raises(FileFormatError):
        load(copy)


# --- files that cannot be written ---------------------------------------------------------------------


def test_a_folder_that_does_not_exist(posteriors, tmp_path):
    with pytest.raises(OSError, match="No such file"):
        posteriors["full"].save(tmp_path / "nowhere" / "p.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_a_folder(posteriors, tmp_path):
    (tmp_path / "p.npz").mkdir()
    with pytest.raises(OSError, match="directory"):
        posteriors["full"].save(tmp_path / "p.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["p.npz"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(posteriors):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        posteriors["full"].save(folder / "p.npz")
        before = (folder / "p.npz").read_bytes()
        folder.chmod(0o500)
        try:
            with pytest.raises(PermissionError):
                posteriors["diagonal"].save(folder / "p.npz")
            assert [p.name for p in folder.iterdir()] == ["p.npz"]
            assert (folder / "p.npz").read_bytes() == before
        finally:
            folder.chmod(0o700)


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()], ids=repr)
def test_a_disk_that_is_full(posteriors, tmp_path, monkeypatch, exists, error):
    path = tmp_path / "p.npz"
    if exists:
        posteriors["full"].save(path)

    def fails(descriptor):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("mgvbp.core.storage.os.fsync", fails)
        with pytest.raises(type(error)):
            posteriors["diagonal"].save(path)
    assert [p.name for p in tmp_path.iterdir()] == (["p.npz"] if exists else [])
    if exists:
        assert same(load(path), posteriors["full"])


def test_saving_again_replaces(posteriors, tmp_path):
    for family in ("full", "diagonal"):
        posteriors[family].save(tmp_path / "p.npz")
    assert same(load(tmp_path / "p.npz"), posteriors["diagonal"])
