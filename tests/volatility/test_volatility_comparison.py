"""`compare` against what its parts say by themselves."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import mgvbp
from common import case
from mgvbp import InvalidInputError, InvalidTypeError
from mgvbp.volatility import ARCH, GARCH, HAR, Likelihood
from mgvbp.volatility.comparison import Comparison, Row, compare, ladder, named_models
from mgvbp.volatility.scores import leave_one_out, mse, qlike
from mgvbp.volatility.series import Series

TRUE = {"mu": 0.05, "omega": 0.05, "alpha[1]": 0.1, "beta[1]": 0.85, "nu": 5.0}
MODELS = {"arch": ARCH(1), "garch": GARCH(1, 1), "garch t": GARCH(1, 1, dist="t")}
HOLDOUT = 200


@cache
def returns():
    values = GARCH(1, 1, dist="t").simulate(TRUE, 900, rng=3)
    return pd.Series(values, pd.bdate_range("2015-01-01", periods=900), name="r")


def proxy():
    return pd.Series(np.random.default_rng(1).gamma(2.0, 0.5, 900), returns().index)


@cache
def compared():
    return compare(returns(), MODELS, holdout=HOLDOUT, proxy=proxy())


def test_the_row_of_a_model_is_what_its_fit_says():
    past, row = returns()[:-HOLDOUT], compared().rows["garch"]
    alone, known = MODELS["garch"].fit(past), compared().results["garch"]
    np.testing.assert_array_equal(known.posterior.mean, alone.posterior.mean)
    assert row.lower_bound == alone.lower_bound
    assert (row.log_likelihood, row.aic, row.bic) == (alone.ml.log_likelihood, alone.aic, alone.bic)
    diagnosis = alone.posterior.diagnose()
    assert (row.log_evidence, row.log_evidence_se) == (diagnosis.log_evidence, diagnosis.log_evidence_se)
    assert (row.khat, row.converged, row.failure) == (diagnosis.khat, True, None)
    theta = alone.posterior.sample(500, rng=0)
    ahead = Likelihood(alone.model, Series.of(returns()), known=700)
    scores = logsumexp(ahead.pointwise(theta), axis=0) - np.log(500.0)
    assert row.log_score == pytest.approx(scores.sum(), rel=1e-12)
    h = ahead.paths(theta).variance[700:-1].mean(axis=1)
    x = proxy().to_numpy()[-HOLDOUT:]
    assert row.mse == pytest.approx(np.mean((x - h) ** 2), rel=1e-12)
    assert row.qlike == pytest.approx(qlike(x, h), rel=1e-12)


def test_leave_one_out_of_a_model_is_near_that_of_refits():
    """Five days, each left out of the likelihood for good; 0.02 is what 500 draws give away."""
    result = compared().results["garch t"]
    theta = result.posterior.sample(500, rng=0)
    weights = result.likelihood(theta) + result.prior.log_density(theta) - result.posterior.log_density(theta)
    found = leave_one_out(result.likelihood.pointwise(theta), weights).elpd
    assert compared().rows["garch t"].elpd_loo == pytest.approx(found.sum(), rel=1e-12)
    start = {"initial_mean": result.posterior.mean, "initial_variance": result.posterior.covariance}
    for day in range(35, 700, 140):
        without = mgvbp.fit(
            lambda psi, day=day: result.likelihood(psi) - result.likelihood.pointwise(psi)[:, day],
            result.prior,
            **start,
        )
        density = result.likelihood.pointwise(without.sample(2000, rng=1))[:, day]
        assert found[day] == pytest.approx(logsumexp(density) - np.log(2000.0), abs=0.02)


def test_the_truth_wins():
    assert list(compared().rows) == ["garch t", "garch", "arch"]
    assert list(compared().results) == ["garch t", "garch", "arch"]
    assert compared().best is compared().results["garch t"]
    rows = list(compared().rows.values())
    for score in ("lower_bound", "log_evidence", "elpd_loo", "log_score"):
        assert np.all(np.diff([getattr(row, score) for row in rows]) < 0.0)


def test_the_holdout_is_not_seen():
    changed = returns().copy()
    changed.iloc[-HOLDOUT:] *= -3.0
    again = compare(changed, MODELS, holdout=HOLDOUT)
    for name, row in again.rows.items():
        assert row.lower_bound == compared().rows[name].lower_bound
        assert row.elpd_loo == compared().rows[name].elpd_loo
        assert row.log_score < compared().rows[name].log_score - 100.0
        assert row.mse is None


def test_a_proxy_without_a_holdout_is_for_the_days_of_the_fit():
    row = compare(returns()[:300], [GARCH(1, 1)], proxy=proxy().to_numpy()[:300]).rows["GARCH(1,1)"]
    result = GARCH(1, 1).fit(returns()[:300])
    assert row.mse == pytest.approx(mse(proxy()[:300], result.paths.variance[:-1].mean(axis=1)), rel=1e-12)
    assert row.log_score is None


def test_models_with_other_lags_explain_the_same_days():
    found = compare(returns()[:400], [GARCH(1, 1), GARCH(1, 1, lags=3)], holdout=50)
    assert found.days == 347
    for result in found.results.values():
        assert result.likelihood.n_obs == 347
        assert result.conditional_volatility.index[0] == returns().index[3]
        assert result.conditional_volatility.index[-1] == returns().index[349]
    assert found.rows.keys() == {repr(GARCH(1, 1)), repr(GARCH(1, 1, lags=3))}


def test_threads_change_nothing():
    found = compare(returns(), MODELS, holdout=HOLDOUT, proxy=proxy(), n_jobs=3)
    assert found.rows == compared().rows


def test_a_generator_is_a_seed_and_one_model_or_an_iterator_will_do():
    first, second = (compare(returns()[:300], GARCH(1, 1), rng=np.random.default_rng(7)) for _ in range(2))
    assert first.rows == second.rows
    assert set(first.rows) == {"GARCH(1,1)"}
    several = compare(returns()[:300], (model for model in (ARCH(1), GARCH(1, 1))))
    assert set(several.rows) == {"ARCH(1)", "GARCH(1,1)"}


class Broken(GARCH):
    error = ArithmeticError

    def prior(self, returns):
        raise self.error("no prior today")


def test_a_model_that_fails_says_why_and_the_others_go_on():
    found = compare(returns()[:200], {"broken": Broken(1, 1), "garch": GARCH(1, 1)})
    assert list(found.rows) == ["garch", "broken"]
    assert found.rows["broken"].failure == "ArithmeticError: no prior today"
    assert list(found.results) == ["garch"]
    assert "broken failed: ArithmeticError: no prior today" in str(found)
    assert found.to_frame().loc["broken", "failure"] == "ArithmeticError: no prior today"


def test_the_best_of_nothing_is_an_error_and_a_defect_is_raised(monkeypatch):
    for error in (InvalidInputError, mgvbp.DivergenceError, np.linalg.LinAlgError):
        monkeypatch.setattr(Broken, "error", error)
        found = compare(returns()[:100], Broken(1, 1))
        with pytest.raises(InvalidInputError, match=r"no model could be fitted. Broken.*: no prior today"):
            found.best
    for error in (ValueError, TypeError, IndexError):
        monkeypatch.setattr(Broken, "error", error)
        with pytest.raises(error, match="no prior today"):
            compare(returns()[:100], [Broken(1, 1), GARCH(1, 1)])


def test_a_fit_has_thirty_days_or_there_is_none():
    assert compare(returns()[:52], ARCH(1, lags=2), holdout=20).days == 30
    for days, holdout, left in ((51, 20, 29), (100, 80, 18), (30, 40, 0)):
        with pytest.raises(InvalidInputError, match=f"leave {left} to fit; at least 30"):
            compare(returns()[:days], [ARCH(1), ARCH(1, lags=2)], holdout=holdout)


def test_a_proxy_is_not_zero_on_the_days_that_count():
    for holdout in (0, 200):
        zero = np.zeros(900)
        zero[: -holdout or 2] = 1.0  # days without a score: before the holdout, or the lags
        with pytest.raises(InvalidInputError, match=f"zero on all of the {holdout or 898} days"):
            compare(returns(), [ARCH(1), ARCH(1, lags=2)], holdout=holdout, proxy=zero)
        zero[-1] = 1.0
        assert compare(returns(), ARCH(1, lags=2), holdout=holdout, proxy=zero).rows["ARCH(1)"].qlike > 0.0


def test_the_table():
    lines = str(compared()).splitlines()
    assert lines[0].startswith("700 returns, 200 held out")
    assert lines[1].split()[:2] == ["model", "lower_bound"]
    assert len({len(line) for line in lines[1:]}) == 1
    assert [line.split("  ")[0] for line in lines[2:]] == list(compared().rows)
    assert "log_score" not in str(compare(returns()[:100], [ARCH(1)]))


def test_a_question_mark_is_beside_what_is_not_to_be_trusted():
    sound = Row(log_evidence=-21.0, khat=0.7, elpd_loo=-22.0, khat_loo=-np.inf)
    for khat, khat_loo in ((0.2, 0.2), (0.71, 0.2), (0.2, 0.71), (0.71, 0.71), (0.2, np.nan)):
        doubtful = Row(log_evidence=-11.0, khat=khat, elpd_loo=-12.0, khat_loo=khat_loo)
        rows = {"a": doubtful, "really?": sound, "b": Row(failure="no")}
        heading, _, first, second, *_ = str(Comparison(rows, {}, 100, 0)).splitlines()
        with case(khat, khat_loo):
            assert ("-11.00?" in first) == (khat > 0.7)
            assert ("-12.00?" in first) == (not khat_loo <= 0.7)
            assert "?" not in second.removeprefix("really?")
            assert first.index("-11.00") == second.index("-21.00")
            assert ("? is not to be trusted" in heading) == ("?" in first)


def test_names_give_no_commands_to_the_terminal():
    assert str(Comparison({"\x1b[31mred": Row(failure="\x07")}, {}, 100, 0)).replace("\n", "").isprintable()


def test_the_frame():
    frame = compared().to_frame()
    assert list(frame.index) == list(compared().rows)
    assert frame["lower_bound"].to_list() == [row.lower_bound for row in compared().rows.values()]
    assert "failure" not in frame
    assert {"mse", "qlike", "log_score"} <= set(frame)


def test_the_ladder_has_eight_models_with_names_of_their_own(monkeypatch):
    """Without models it is the ladder that is compared; here the first of its steps."""
    assert len(ladder()) == len(named_models(ladder())) == 8
    steps = ladder()[:2]
    monkeypatch.setattr("mgvbp.volatility.comparison.ladder", lambda: steps)
    assert set(compare(returns()[:300]).rows) == {"ARCH(1)", "GARCH(1,1)"}


def test_one_warning_of_the_scale():
    with pytest.warns(mgvbp.ScaleWarning) as caught:
        compare(0.01 * returns()[:200], [GARCH(1, 1), ARCH(1)])
    assert len(caught) == 1


def test_a_fit_that_did_not_converge_is_in_the_table_not_in_a_warning(monkeypatch):
    def doubtful(*args, **options):
        warnings.warn("not converged", mgvbp.ConvergenceWarning, stacklevel=2)
        result = fit(*args, **options)
        result.posterior.converged = False
        return result

    fit = mgvbp.volatility.comparison.fit_volatility
    monkeypatch.setattr(mgvbp.volatility.comparison, "fit_volatility", doubtful)
    found = compare(returns()[:100], [ARCH(1)])
    assert found.rows["ARCH(1)"].converged is False
    assert "NO" in str(found)


def test_compare_complains():
    for arguments, error, message in (
        ({"models": []}, InvalidInputError, "empty"),
        ({"models": (model for model in ())}, InvalidInputError, "empty"),
        ({"models": [GARCH]}, InvalidTypeError, "such as GARCH"),
        ({"models": "garch"}, InvalidTypeError, "got 'garch'"),
        ({"models": 5}, InvalidTypeError, "got 5"),
        ({"models": HAR()}, InvalidTypeError, "got HAR"),
        ({"models": [GARCH(1, 1), GARCH(1, 1)]}, InvalidInputError, "twice"),
        ({"holdout": 900}, InvalidInputError, "leave 0 to fit"),
        ({"holdout": 0.2}, InvalidTypeError, "integer"),
        ({"n_jobs": 0}, InvalidInputError, "at least 1"),
        ({"proxy": np.ones(5)}, InvalidInputError, "one variance for each return"),
        ({"proxy": -np.ones(900)}, InvalidInputError, "none negative"),
        ({"proxy": pd.Series(np.ones(900))}, InvalidInputError, "reindex"),
    ):
        with case(arguments), pytest.raises(error, match=message):
            compare(returns(), **arguments)
