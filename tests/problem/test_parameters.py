"""Named parameters, priors on either scale, and models of named arguments."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import (
    Normal,
    Uniform,
    beta,
    dirichlet,
    expon,
    gamma,
    halfcauchy,
    halfnorm,
    invgamma,
    lognorm,
    multivariate_normal,
    norm,
    uniform,
)

import mgvbp
from mgvbp import EvaluationError, FileFormatError, Gaussian, InvalidInputError, InvalidTypeError
from mgvbp.problem.model import Model
from mgvbp.problem.parameters import Parameters
from mgvbp.problem.problem import log_prior
from mgvbp.transforms import (
    TRANSFORMS,
    CorrelationCholesky,
    GarchRegion,
    Interval,
    LowerBound,
    Ordered,
    Positive,
    Real,
    Simplex,
    UpperBound,
)

ALL = Parameters(
    beta=Real(2, 2),
    sigma=Positive(),
    low=LowerBound(-1.0, 2),
    high=UpperBound(0.5),
    rho=Interval(-1.0, 1.0),
    cuts=Ordered(3),
    weights=Simplex(3),
    L=CorrelationCholesky(3),
    garch=GarchRegion(1, 1, 1),
)
ONE = Parameters(beta=Real(3), sigma=Positive())
THETA = np.random.default_rng(0).standard_normal((7, ALL.dim))

# --- layout -------------------------------------------------------------------------------------------


def test_layout():
    assert ONE.names == ("beta", "sigma")
    assert ONE.dim == 4
    assert ONE.labels == ("beta[0]", "beta[1]", "beta[2]", "sigma")
    assert ONE.slices == {"beta": slice(0, 3), "sigma": slice(3, 4)}
    assert ONE.transforms == {"beta": Real(3), "sigma": Positive()}


def test_labels_of_every_kind():
    """A label for each unconstrained number: the entry it stands for, or just its position."""
    assert ALL.labels == (
        *("beta[0,0]", "beta[0,1]", "beta[1,0]", "beta[1,1]", "sigma", "low[0]", "low[1]", "high", "rho"),
        *("cuts[0]", "cuts[1]", "cuts[2]", "weights[0]", "weights[1]", "L[0]", "L[1]", "L[2]"),
        *("garch[0]", "garch[1]", "garch[2]"),
    )
    assert len(ALL.labels) == ALL.dim == 20


def test_the_order_of_names_matters():
    other = Parameters(sigma=Positive(), beta=Real(3))
    assert other != ONE
    assert other.slices == {"sigma": slice(0, 1), "beta": slice(1, 4)}
    assert Parameters(beta=Real(3), sigma=Positive()) == ONE
    assert len({ONE, other, Parameters(beta=Real(3), sigma=Positive())}) == 2
    assert ONE != "Parameters"


def test_names_of_our_own_arguments_can_be_used():
    parameters = Parameters(self=Real(), transforms=Positive())
    prior = parameters.prior(self=norm(), transforms=expon())
    assert prior.log_density([[0.0, 0.0]]) == pytest.approx(norm.logpdf(0.0) - 1.0)


def test_a_copy_is_the_same():
    assert pickle.loads(pickle.dumps(ALL)) == ALL
    assert eval(repr(ALL)) == ALL


# --- values -------------------------------------------------------------------------------------------


def test_constrain_applies_each_transform_to_its_numbers():
    values = ALL.constrain(THETA)
    assert list(values) == list(ALL.names)
    for name, transform in ALL.transforms.items():
        assert values[name].shape == (7, *transform.shape)
        np.testing.assert_array_equal(values[name], transform.constrain(THETA[:, ALL.slices[name]]))


def test_unconstrain_inverts_constrain_for_many_draws_and_for_one():
    np.testing.assert_allclose(ALL.unconstrain(ALL.constrain(THETA)), THETA, atol=1e-12)
    np.testing.assert_allclose(ALL.unconstrain(ALL.constrain(THETA[0])), THETA[0], atol=1e-12)
    assert ALL.constrain(THETA[0])["sigma"].shape == ()


def test_log_jacobian_is_the_sum():
    total = sum(t.log_jacobian(THETA[:, ALL.slices[name]]) for name, t in ALL.transforms.items())
    np.testing.assert_allclose(ALL.log_jacobian(THETA), total, rtol=1e-14)


def test_values_come_in_any_order():
    theta = ONE.unconstrain({"sigma": 1.0, "beta": [1, 2, 3]})
    np.testing.assert_array_equal(theta, [1.0, 2.0, 3.0, 0.0])


def test_three_values_of_a_scalar_are_three_draws():
    theta = ONE.unconstrain({"beta": np.zeros((3, 3)), "sigma": np.ones(3)})
    np.testing.assert_array_equal(theta, np.zeros((3, 4)))


# --- priors on the constrained scale --------------------------------------------------------------------


def test_a_log_normal_prior_is_a_gaussian_one():
    """The two ways to give a prior, where they are the same."""
    constrained = ONE.prior(beta=norm(1.0, 2.0), sigma=lognorm(0.5, scale=math.exp(0.3)))
    gaussian = Gaussian([1.0, 1.0, 1.0, 0.3], [4.0, 4.0, 4.0, 0.25])
    theta = 3.0 * np.random.default_rng(1).standard_normal((50, 4))
    np.testing.assert_allclose(constrained.log_density(theta), gaussian.log_density(theta), rtol=1e-12)


DENSITIES = [
    (Positive(), halfnorm(scale=2.0)),
    (Positive(), gamma(2.0)),
    (Positive(), invgamma(3.0)),
    (Positive(), halfcauchy()),
    (LowerBound(2.0), expon(loc=2.0)),
    (UpperBound(1.0), norm(-6.0, 1.0)),
    (Interval(0.0, 1.0), beta(0.5, 2.0)),
    (Interval(-1.0, 1.0), uniform(-1.0, 2.0)),
    (Real(), Normal(mu=1.0, sigma=2.0)),
]


@pytest.mark.parametrize(("transform", "distribution"), DENSITIES)
def test_a_prior_is_a_density_of_theta(transform, distribution):
    """Its integral is one, and the mass below a point that of the distribution below the point's value."""
    prior = Parameters(v=transform).prior(v=distribution)

    def density(x):
        return math.exp(prior.log_density([[x]])[0])

    below, above = (quad(density, *ends, epsabs=1e-11, limit=200)[0] for ends in ((-60, 0.4), (0.4, 60)))
    assert below + above == pytest.approx(1.0, abs=1e-8)
    assert below == pytest.approx(distribution.cdf(transform.constrain([[0.4]])[0]), abs=1e-8)


def test_entries_of_an_array_are_independent():
    parameters = Parameters(B=Positive(2, 3))
    theta = np.random.default_rng(2).standard_normal((5, 6))
    expected = expon.logpdf(np.exp(theta)).sum(axis=1) + theta.sum(axis=1)
    np.testing.assert_allclose(parameters.prior(B=expon()).log_density(theta), expected, rtol=1e-13)


DIRICHLET = dirichlet([2.0, 3.0])


@pytest.mark.parametrize("draws", [1, 2, 5])
@pytest.mark.parametrize("given", [DIRICHLET, lambda p: DIRICHLET.logpdf(p.T)], ids=["frozen", "function"])
def test_multivariate_distributions_and_functions(draws, given):
    """As many draws as entries, too; scipy's multivariate normal drops the axis of a single draw."""
    parameters = Parameters(beta=Real(2), p=Simplex(2))
    covariance = [[2.0, 0.5], [0.5, 1.0]]
    prior = parameters.prior(beta=multivariate_normal([0.0, 1.0], covariance), p=given)
    theta = np.random.default_rng(3).standard_normal((draws, 3))
    p = parameters.constrain(theta)["p"]
    gaussian = Gaussian([0.0, 1.0], covariance).log_density(theta[:, :2])
    expected = gaussian + beta(2.0, 3.0).logpdf(p[:, 0]) + parameters.log_jacobian(theta)
    np.testing.assert_allclose(prior.log_density(theta), expected, rtol=1e-12)


def test_a_prior_on_the_correlation_matrix():
    """Uniform 3×3 correlation matrices, as the docstring of CorrelationCholesky tells to give them."""
    volume = math.pi**2 / 2
    parameters = Parameters(L=CorrelationCholesky(3))
    prior = parameters.prior(L=lambda L: np.log(L[:, 1, 1]) - math.log(volume))
    axis = np.arange(-10.0, 10.1, 0.4)
    theta = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    assert 0.4**3 * np.exp(prior.log_density(theta)).sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("distribution", [norm(), gamma(2.0), invgamma(2.0), halfcauchy(), lognorm(1.0)])
def test_a_prior_far_out_is_minus_infinity_without_a_warning(distribution):
    """Where exp(θ) overflows, the Jacobian alone would be a large density."""
    values = (
        Parameters(v=Positive(2)).prior(v=distribution).log_density([[1e6, 0.0], [0.0, 0.0], [0.0, 700.0]])
    )
    assert values[0] == -math.inf
    assert np.isfinite(values[1])
    assert values[2] < -690.0  # at most v^-2 dv


@pytest.mark.parametrize(
    ("transform", "distribution", "message"),
    [
        (
            Real(),
            halfnorm(),
            r"prior of v has the support \(0\.0, inf\), but Real\(\) goes beyond it: use Pos",
        ),
        (Real(2), lognorm([1.0, 1.0], loc=[-1.0, -2.0]), r"\(-1\.0, inf\), but Real\(2\)"),
        (Positive(), uniform(0.0, 3.0), r"\(0\.0, 3\.0\), but Positive\(\)"),
        (LowerBound(-1.0), expon(), r"\(0\.0, inf\), but LowerBound\(-1\.0\)"),
        (UpperBound(2.0), uniform(0.0, 2.0), r"\(0\.0, 2\.0\), but UpperBound\(2\.0\)"),
        (Interval(-1.0, 1.0), beta(2.0, 2.0), r"\(0\.0, 1\.0\), but Interval\(-1\.0, 1\.0\)"),
        (Positive(), Uniform(a=1.0, b=2.0), r"\(1\.0, 2\.0\), but Positive\(\)"),
        (
            Ordered(3),
            halfnorm(),
            r"\(0\.0, inf\), but Ordered\(3\) goes .* use a distribution of all real numbers",
        ),
        (Ordered(1), uniform(-9.0, 18.0), r"\(-9\.0, 9\.0\), but Ordered\(1\)"),
    ],
)
def test_a_prior_that_is_zero_where_the_constraint_is_not(transform, distribution, message):
    with pytest.raises(InvalidInputError, match=message):
        Parameters(v=transform).prior(v=distribution)


@pytest.mark.parametrize(
    "distribution",
    [
        norm([0.0, 1.0], 2.0),
        multivariate_normal([0.0, 1.0], 4.0 * np.eye(2)),
        lambda cuts: norm.logpdf(cuts, [0.0, 1.0], 2.0).sum(axis=1),
    ],
    ids=["entries", "vector", "function"],
)
def test_priors_of_increasing_numbers(distribution):
    """v = (x₀, x₀ + exp x₁): the density of the values, and exp x₁."""
    x = np.array([[-30.0, 0.5], [0.3, -1.0], [2.0, 1.5]])
    values = np.column_stack([x[:, 0], x[:, 0] + np.exp(x[:, 1])])
    expected = norm.logpdf(values, [0.0, 1.0], 2.0).sum(axis=1) + x[:, 1]
    found = Parameters(v=Ordered(2)).prior(v=distribution).log_density(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_support_may_end_a_rounding_error_early():
    distribution = uniform(-3.0, 0.3 - -3.0)
    assert distribution.support()[1] < 0.3
    assert np.isfinite(Parameters(v=Interval(-3.0, 0.3)).prior(v=distribution).log_density([[0.0]]))


def test_a_logpdf_that_does_not_take_the_values():
    prior = Parameters(beta=Real(3)).prior(beta=multivariate_normal([0.0, 0.0]))
    with pytest.raises(
        EvaluationError, match=r"prior of beta does not take .*\(5, 3\).*shape \(5,\)\n"
    ) as caught:
        prior.log_density(np.zeros((5, 3)))
    assert caught.value.theta.shape == (5, 3)


def test_an_exception_of_a_function_passes_through():
    def function(sigma):
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        Parameters(sigma=Positive()).prior(sigma=function).log_density(np.zeros((5, 1)))


def test_no_draws():
    prior = ONE.prior(beta=norm(), sigma=expon())
    assert prior.log_density(np.empty((0, 4))).shape == (0,)


def test_a_prior_is_one_for_a_problem():
    prior = ONE.prior(beta=norm(0, 5), sigma=halfnorm())
    theta = np.random.default_rng(4).standard_normal((3, 4))
    np.testing.assert_array_equal(log_prior(prior, theta), prior.log_density(theta))


# --- models -------------------------------------------------------------------------------------------

Y = np.array([0.3, 1.1, 0.4, -0.2, 0.9])


def log_likelihood(mu, sigma):
    return norm.logpdf(Y, np.expand_dims(mu, -1), np.expand_dims(sigma, -1)).sum(axis=-1)


LOCATION = Model(log_likelihood, Parameters(mu=Real(), sigma=Positive()))


def test_a_model_is_a_function_of_theta():
    theta = np.array([[0.0, 0.0], [0.5, -1.0]])
    expected = [norm(0.0, 1.0).logpdf(Y).sum(), norm(0.5, math.exp(-1.0)).logpdf(Y).sum()]
    np.testing.assert_allclose(LOCATION(theta), expected, rtol=1e-14)
    np.testing.assert_allclose(LOCATION(theta[1]), expected[1], rtol=1e-14)  # vectorized=False


def test_fits_with_the_same_prior_on_either_scale_agree():
    prior = LOCATION.parameters.prior(mu=norm(0.0, 2.0), sigma=lognorm(1.0))
    constrained = mgvbp.fit(LOCATION, prior, dim=2, tol=1e-4)
    unconstrained = mgvbp.fit(LOCATION, Gaussian(variance=[4.0, 1.0]), tol=1e-4)
    np.testing.assert_allclose(constrained.mean, unconstrained.mean, atol=0.02 * unconstrained.std.min())
    assert constrained.lower_bound == pytest.approx(unconstrained.lower_bound, abs=1e-3)


@pytest.mark.parametrize("function", [lambda **values: values["mu"], lambda sigma, mu=0: mu, max])
def test_functions_that_may_take_the_names_are_taken(function):
    assert Model(function, LOCATION.parameters).function is function


# --- files --------------------------------------------------------------------------------------------


def test_spec_round_trip_through_json():
    assert Parameters.from_spec(json.loads(json.dumps(ALL.spec()))) == ALL
    assert ONE.spec() == [["beta", "Real", [3]], ["sigma", "Positive", []]]


HOSTILE = [
    None,
    3,
    "abc",
    [],
    {},
    {"beta": "Real"},
    [["beta", "Real"]],
    [["beta", "Real", [3], 4]],
    [["beta", "Real", 3]],
    [["beta", "Real", "3"]],
    [["beta", "Real", {"shape": 3}]],
    [["beta", "Real", [[3]]]],
    [["beta", "Real", [-1]]],
    [["beta", "Real", [True]]],
    [["beta", "Real", [1e300]]],
    [["beta", "LowerBound", []]],
    [["beta", "LowerBound", [math.nan]]],
    [["beta", "LowerBound", [10**400]]],
    [["beta", "Simplex", [3, 4]]],
    [["beta", "Transform", []]],
    [["beta", "Elementwise", []]],
    [["beta", "__import__", ["os"]]],
    [["beta", ["Real"], []]],
    [["beta", None, []]],
    [[["beta"], "Real", []]],
    [[1, "Real", []]],
    [["", "Real", []]],
    [[["a", "a"], "GarchRegion", [1, 0, 1]]],
    [[["a"], "GarchRegion", [1, 0, 1]]],
    [[["a", 1], "GarchRegion", [1, 0, 1]]],
    [[["a", ["b"]], "GarchRegion", [1, 0, 1]]],
    [[[], "Real", [0]]],
    [["beta", "Real", []], ["beta", "Real", []]],
]


@pytest.mark.parametrize("spec", HOSTILE, ids=str)
def test_any_other_spec_is_refused(spec):
    with pytest.raises(FileFormatError, match="not a description of parameters"):
        Parameters.from_spec(spec)


ENTRIES = st.tuples(
    st.sampled_from(["a", "b", "self", "if", 1]),
    st.sampled_from([*TRANSFORMS, "eval"]),
    st.lists(st.integers(-1, 4) | st.floats() | st.none(), max_size=3),
)


@given(spec=st.lists(ENTRIES, max_size=2))
@settings(max_examples=300)
def test_a_spec_gives_parameters_or_a_file_format_error(spec):
    try:
        parameters = Parameters.from_spec(spec)
    except FileFormatError:
        return
    assert Parameters.from_spec(parameters.spec()) == parameters


# --- names for the entries of a vector ----------------------------------------------------------------

WHOLE = Parameters(omega=Positive(), garch=GarchRegion(1, 1, 1), nu=LowerBound(2.0))
COEFFICIENTS = ("alpha[1]", "gamma[1]", "beta[1]")
SPLIT = Parameters({"omega": Positive(), COEFFICIENTS: GarchRegion(1, 1, 1)}, nu=LowerBound(2.0))


def test_split_names():
    assert SPLIT.names == SPLIT.labels == ("omega", *COEFFICIENTS, "nu")
    assert SPLIT.dim == WHOLE.dim
    assert SPLIT.slices["gamma[1]"] == slice(2, 3)
    assert SPLIT.slices["nu"] == slice(4, 5)
    assert Parameters.from_spec(json.loads(json.dumps(SPLIT.spec()))) == SPLIT
    assert repr(SPLIT).startswith("Parameters({'omega': Positive()")


def test_split_values_are_the_entries_of_the_vector():
    theta = np.random.default_rng(1).standard_normal((4, 5))
    split, whole = SPLIT.constrain(theta), WHOLE.constrain(theta)
    np.testing.assert_array_equal(np.stack([split[name] for name in COEFFICIENTS], axis=1), whole["garch"])
    np.testing.assert_array_equal(split["nu"], whole["nu"])
    np.testing.assert_array_equal(SPLIT.log_jacobian(theta), WHOLE.log_jacobian(theta))
    np.testing.assert_allclose(SPLIT.unconstrain(split), theta, rtol=1e-9)
    one = {name: float(value[0]) for name, value in split.items()}
    np.testing.assert_allclose(SPLIT.unconstrain(one), theta[0], rtol=1e-9)


def test_split_values_outside_the_region_are_named():
    with pytest.raises(InvalidInputError, match=r"alpha\[1\], gamma\[1\], beta\[1\]: .*below 0.9998"):
        SPLIT.unconstrain({"omega": 1.0, "alpha[1]": 0.9, "gamma[1]": 0.0, "beta[1]": 0.2, "nu": 5.0})


def test_split_prior_is_the_sum_over_the_names():
    theta = np.random.default_rng(2).standard_normal((3, 5))
    each = {name: norm(0.2, 0.5) for name in COEFFICIENTS}
    omega, nu = gamma(2.0), expon(2.0)
    split = SPLIT.prior(omega=omega, **each, nu=nu).log_density(theta)
    whole = WHOLE.prior(omega=omega, garch=norm(0.2, 0.5), nu=nu).log_density(theta)
    np.testing.assert_allclose(split, whole, rtol=1e-13)


def test_a_posterior_with_split_names():
    q = mgvbp.fit(SplitTarget(), mgvbp.Gaussian(variance=1.0, dim=5))
    draws = q.draws(10_000, rng=0)
    assert q["alpha[1]"].mean == pytest.approx(draws["alpha[1]"].mean(), abs=1e-12)
    assert "beta[1]" in q.summary()
    with pytest.raises(InvalidInputError, match="shares a constraint"):
        q["beta[1]"].density(0.5)


class SplitTarget:
    parameters = SPLIT

    def __call__(self, theta):
        return -((theta - 0.3) ** 2).sum(axis=1)


# --- bad arguments --------------------------------------------------------------------------------------

BAD = [
    ("none", lambda: Parameters(), InvalidInputError, "at least one parameter"),
    ("not an identifier", lambda: Parameters(**{"a b": Real()}), InvalidInputError, "identifier; got 'a b'"),
    ("keyword", lambda: Parameters(**{"lambda": Real()}), InvalidInputError, "identifier; got 'lambda'"),
    ("not a dict", lambda: Parameters(Real()), InvalidTypeError, "a dict of them"),
    ("too few names", lambda: Parameters({("a", "b"): GarchRegion(1, 1, 1)}), InvalidInputError, "cannot be split"),
    ("simplex", lambda: Parameters({("a", "b"): Simplex(2)}), InvalidInputError, "cannot be split"),
    ("twice", lambda: Parameters({("a", "b"): Real(2)}, a=Real()), InvalidInputError, "the same name: a, b, a"),
    ("number as a name", lambda: Parameters({("a", 1): Real(2)}), InvalidTypeError, "name must be a string"),
    ("a number", lambda: Parameters(beta=3), InvalidTypeError, "beta must be a transform.*got 3"),
    ("a class", lambda: Parameters(beta=Real), InvalidTypeError, "beta must be a transform"),
    ("short theta", lambda: ONE.constrain(np.zeros((2, 3))), InvalidInputError, r"\(2, 3\).*\(S, 4\)"),
    ("short row", lambda: ONE.constrain(np.zeros(3)), InvalidInputError, r"expected \(S, 4\)"),
    ("cube", lambda: ONE.constrain(np.zeros((1, 2, 4))), InvalidInputError, r"expected \(S, 4\)"),
    ("nan", lambda: ONE.constrain([[np.nan] * 4]), InvalidInputError, "theta has non-finite"),
    ("one Jacobian", lambda: ONE.log_jacobian(np.zeros(4)), InvalidInputError, r"expected \(S, 4\)"),
    ("missing value", lambda: ONE.unconstrain({"beta": 0}), InvalidInputError, "beta, sigma; got beta"),
    ("no values", lambda: ONE.unconstrain({}), InvalidInputError, "no value for beta, sigma: .*got nothing"),
    ("a list", lambda: ONE.unconstrain([1.0]), InvalidTypeError, "expected a dict with beta, sigma"),
    (
        "mixed axes",
        lambda: ONE.unconstrain({"beta": np.zeros((2, 3)), "sigma": 1.0}),
        InvalidInputError,
        r"same leading axis, or all without; got beta \(2, 3\), sigma \(\)",
    ),
    (
        "lengths",
        lambda: ONE.unconstrain({"beta": np.zeros((2, 3)), "sigma": np.ones(3)}),
        InvalidInputError,
        "same leading axis",
    ),
    (
        "wrong shape",
        lambda: ONE.unconstrain({"beta": np.zeros((3, 2)), "sigma": np.ones(3)}),
        InvalidInputError,
        r"beta: .*shape \(3, 2\); expected \(S, 3\)",
    ),
    (
        "outside",
        lambda: ONE.unconstrain({"beta": np.zeros(3), "sigma": -1.0}),
        InvalidInputError,
        r"sigma: Positive\(\) takes values in \(0, inf\); got -1",
    ),
    ("text value", lambda: ONE.unconstrain({"beta": "a", "sigma": 1}), InvalidTypeError, "beta must be"),
    ("missing prior", lambda: ONE.prior(beta=norm()), InvalidInputError, "^no prior for sigma: expected beta, "),
    (
        "unknown prior",
        lambda: ONE.prior(beta=norm(), sigma=norm(), tau=norm()),
        InvalidInputError,
        "^expected beta, sigma; got beta, sigma, tau",
    ),
    (
        "prior without its arguments",
        lambda: Parameters(v=Positive()).prior(v=gamma),
        InvalidTypeError,
        r"prior of v needs arguments, as scipy\.stats\.gamma\(2\.0\) has them",
    ),
    ("prior of no kind", lambda: ONE.prior(beta=norm(), sigma=1.0), InvalidTypeError, "sigma must.*got 1.0"),
    (
        "prior of a wrong shape",
        lambda: ONE.prior(beta=lambda b: b[:, :2], sigma=norm()).log_density(np.zeros((5, 4))),
        EvaluationError,
        r"prior of beta returned shape \(5, 2\); expected \(5,\)",
    ),
    ("model of nothing", lambda: Model(3, ONE), InvalidTypeError, "function must be a function.*got 3"),
    ("dict as parameters", lambda: Model(max, {"beta": Real()}), InvalidTypeError, "mgvbp.Parameters"),
    (
        "other arguments",
        lambda: Model(lambda b, sigma: sigma, ONE),
        InvalidInputError,
        r"names beta, sigma; its arguments are \(b, sigma\)",
    ),
    ("one too many", lambda: Model(lambda beta, sigma, tau: tau, ONE), InvalidInputError, "beta, sigma, tau"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
