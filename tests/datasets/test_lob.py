"""Limit-order books: windows by brute force, the simulator against its own theory, text there and back."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from common import case, write_books, write_fi2010
from mgvbp import DataUnavailableError, FileFormatError, InvalidInputError, InvalidTypeError
from mgvbp.datasets import LOB, find_joins, load_fi2010, simulate_lob
from mgvbp.datasets.files import VARIABLE
from mgvbp.datasets.lob import Windows, market, text
from mgvbp.datasets.lob.books import ASK, ASK_VOLUME, BID, BID_VOLUME, HORIZONS
from mgvbp.datasets.lob.fi2010 import as_joins
from mgvbp.datasets.lob.simulation import TICK, simulate_stock

LEVEL = 1e-4
"""Of each statistical test; seeds are fixed."""
TRAIN, TEST = "Train_Dst_NoAuction_ZScore_CF_7.txt", "Test_Dst_NoAuction_ZScore_CF_7.txt"


@pytest.fixture(scope="module")
def lob():
    return simulate_lob(20_000)


@pytest.fixture(scope="module")
def small():
    return simulate_lob(600, stocks=3, days=4, rng=5)


@pytest.fixture(scope="module")
def days():
    """Three long days of a stock in euro and shares."""
    return list(simulate_stock(19.0, 1000.0, np.array([8000, 8000, 8000]), np.random.default_rng(1)))


@pytest.fixture
def compact(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setattr(text, "cache_directory", lambda: tmp_path / "cache")
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "cache" / "fi2010"


@pytest.fixture
def written(small, tmp_path, compact):
    """The small data as text, as deep as in the published archive."""
    directory = tmp_path / "archive"
    below = directory / "BenchmarkDatasets/NoAuction/1.NoAuction_Zscore"
    for name in ("NoAuction_Zscore_Training", "NoAuction_Zscore_Testing"):
        (below / name).mkdir(parents=True)
    for path, name in zip(write_fi2010(small, tmp_path), ("Training", "Testing"), strict=True):
        path.rename(below / f"NoAuction_Zscore_{name}" / path.name)
    return directory


def text_file(written, name=TRAIN):
    (path,) = written.rglob(name)
    return path


# --- windows ------------------------------------------------------------------------------------------


def pieces(num_rows, joins):
    edges = [0, *joins, num_rows]
    return [range(a, b) for a, b in pairwise(edges)]


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 12), st.data())
def test_windows_are_all_runs_of_rows_within_a_piece(num_rows, steps, data):
    joins = sorted(data.draw(st.sets(st.integers(1, num_rows - 1), max_size=5))) if num_rows > 1 else []
    features = np.random.default_rng(num_rows).normal(size=(num_rows, 40)).astype(np.float32)
    windows = Windows(features, np.array(joins, dtype=np.intp), steps)
    runs = [range(e - steps + 1, e + 1) for p in pieces(num_rows, joins) for e in p if e - steps + 1 in p]
    assert_array_equal(windows.ends, [run[-1] for run in runs])
    assert windows.shape == (len(runs), 40, steps)
    assert len(windows) == len(runs)
    expected = [features[run.start : run.stop].T for run in runs]
    assert_array_equal(windows[:], np.reshape(expected, (len(runs), 40, steps)))


def test_windows_are_indexed_like_an_array(small):
    X = small.train.X
    every = np.asarray(X)
    assert every.dtype == X.dtype == np.float32
    assert every.shape == X.shape
    assert every.ndim == X.ndim
    rows = np.random.default_rng(0).integers(len(X), size=50)
    mask = np.zeros(len(X), dtype=bool)
    mask[rows] = True
    for index in (3, -1, np.int64(7), slice(2, 90, 3), slice(None, None, -1), rows, list(rows), mask, []):
        part = X[index]
        assert_array_equal(part, every[index])
        assert part.flags.c_contiguous
        assert part.flags.owndata or part.base.flags.owndata
    assert_array_equal(np.asarray(X, dtype=np.float64), every.astype(np.float64), strict=True)
    with pytest.raises(IndexError):
        X[len(X)]
    with pytest.raises(ValueError, match="always a copy"):
        np.asarray(X, copy=False)


def test_windows_keep_no_copy_and_give_none_of_the_data_away(small):
    features = small.train.features.copy()
    windows = Windows(features, small.train.joins)
    features[9] = 7.0
    assert (windows[0][:, -1] == 7.0).all()
    windows[0][:] = 5.0
    assert (features[9] == 7.0).all()


@pytest.mark.parametrize(("steps", "error"), [(0, InvalidInputError), (2.0, InvalidTypeError)])
def test_steps_are_counted(small, steps, error):
    with pytest.raises(error, match="steps"):
        Windows(small.train.features, small.train.joins, steps)


# --- joins --------------------------------------------------------------------------------------------

NORMALISATIONS = {
    "euro": lambda book: book,
    "zscore": lambda book: (book - book.mean(axis=0)) / book.std(axis=0),
    "minmax": lambda book: (book - book.min(axis=0)) / np.ptp(book, axis=0),
    "decpre": lambda book: book / 10.0 ** np.ceil(np.log10(book.max(axis=0))),
}


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_joins_are_found_whatever_the_normalisation(normalisation):
    rng = np.random.default_rng(11)
    segments = [
        segment.book
        for price in (15.0, 15.4, 31.0, 24.0, 24.5)
        for segment in simulate_stock(price, 900.0, rng.integers(200, 500, size=6), rng)
    ]
    known = np.cumsum([len(segment) for segment in segments])[:-1]
    features = NORMALISATIONS[normalisation](np.concatenate(segments)).astype(np.float32)
    assert_array_equal(find_joins(features), known)


def test_simulated_parts_know_their_joins(lob):
    for part, num_segments in ((lob.train, 35), (lob.test, 5)):
        assert len(part.joins) == num_segments - 1
        assert_array_equal(find_joins(part.features), part.joins)


def test_a_join_is_a_jump_of_more_than_the_multiple():
    features = np.zeros((60, 40), dtype=np.float32)
    mid = np.arange(60) % 2 + np.where(np.arange(60) >= 20, 8, 0) + np.where(np.arange(60) >= 40, 12, 0)
    features[:, ASK.start], features[:, BID.start] = mid + 1, mid - 1
    assert_array_equal(find_joins(features), [40])  # moves of 1 but for 8 − 1 and 12 − 1
    assert_array_equal(find_joins(features, jump=5.0), [20, 40])
    assert_array_equal(find_joins(features, jump=11.0), [])
    assert_array_equal(find_joins(np.ones((5, 40), dtype=np.float32)), [])
    with pytest.raises(InvalidInputError, match="jump must be positive"):
        find_joins(features, jump=0.0)


@pytest.mark.parametrize(
    "joins", [[0], [10], [-1], [3, 3], [5, 2], [2.5], [[1, 2]], ["a"], 3, np.array([5, 2], dtype=np.uint8)]
)
def test_wrong_joins_are_refused(joins):
    with pytest.raises(InvalidInputError, match="joins must"):
        as_joins(joins, 10)


def test_no_joins_are_joins():
    assert_array_equal(as_joins([], 10), [])
    assert as_joins(np.array([1, 9], dtype=np.uint8), 10).dtype == np.intp


# --- the simulated book -------------------------------------------------------------------------------


def test_books_are_books(days):
    for day in days:
        ask, bid = day.book[:, ASK], day.book[:, BID]
        assert (np.diff(ask, axis=1) > TICK / 2).all()
        assert (np.diff(bid, axis=1) < -TICK / 2).all()
        spread = (ask[:, 0] - bid[:, 0]) / TICK
        assert_allclose(np.unique(spread.round(6)), [1.0, 2.0])
        assert_allclose(day.book[:, ASK] / TICK, (day.book[:, ASK] / TICK).round(), rtol=0, atol=1e-6)
        volumes = np.hstack([day.book[:, ASK_VOLUME], day.book[:, BID_VOLUME]])
        assert (volumes >= 1.0).all()
        assert_array_equal(volumes, volumes.round())


def mid_price(day):
    return 0.5 * (day.book[:, ASK.start] + day.book[:, BID.start])


@pytest.mark.parametrize("column", range(5))
def test_labels_are_those_of_the_formula(days, column):
    """Ntakaris et al. (2018): the mean of the next mid-prices against the present one, in euro."""
    ahead = HORIZONS[column] // 10
    for day in days:
        mid = mid_price(day)
        future = np.lib.stride_tricks.sliding_window_view(mid[1:], ahead).mean(axis=1)
        change = future / mid[: len(future)] - 1.0
        clear = np.abs(np.abs(change) - market.THRESHOLD) > 1e-12
        expected = np.where(change > market.THRESHOLD, 0, np.where(change < -market.THRESHOLD, 2, 1))
        assert clear.mean() > 0.999
        assert_array_equal(day.labels[: len(future), column][clear], expected[clear])


def test_days_open_away_from_the_close(days):
    assert mid_price(days[0])[0] == pytest.approx(19.0, rel=1e-12)
    for before, after in pairwise(days):
        gap = abs(mid_price(after)[0] / mid_price(before)[-1] - 1.0)
        assert 0.0049 < gap < 0.1


def visible_pressure(day):
    """The sum of imbalances of the last ten snapshots that the docstring of the market has."""
    rho, phi = market.FLOW_MEMORY, market.PRESSURE_MEMORY
    imbalance = np.log(day.book[:, BID_VOLUME.start] / day.book[:, ASK_VOLUME.start]) / market.IMBALANCE
    weights = np.array([1.0, *((phi - rho) * phi ** np.arange(9))])
    scale = np.sqrt((1.0 - phi**2) / (1.0 - rho**2))
    return scale * np.lib.stride_tricks.sliding_window_view(imbalance, 10) @ weights[::-1]


@pytest.mark.parametrize("column", range(5))
def test_a_window_determines_the_probabilities(days, column):
    """From what is seen alone, the probabilities are those of the truth but for 0.2% of the variance."""
    for day in days:
        half_ticks = np.rint(2 * mid_price(day) / TICK).astype(int)
        seen = market.class_probabilities(visible_pressure(day), half_ticks[9:], HORIZONS[column] // 10)
        truth = day.probabilities[9:, column]
        assert np.sqrt(np.mean((seen - truth) ** 2)) < 0.02
        best = np.take_along_axis(truth, seen.argmax(axis=1)[:, None], axis=1)
        assert 0.0 <= truth.max(axis=1).mean() - best.mean() < 0.002


def test_imbalance_and_flow_are_stationary(days):
    """Standard normal, with the autocorrelation of the model; rounding of volumes is nothing beside that."""
    for day in days:
        x = np.log(day.book[:, BID_VOLUME.start] / day.book[:, ASK_VOLUME.start]) / market.IMBALANCE
        se = np.sqrt((1 + market.FLOW_MEMORY) / (1 - market.FLOW_MEMORY) / len(x))
        assert abs(x.mean()) < 4 * se
        assert abs(x.std() - 1.0) < 4 * np.sqrt(0.55 / len(x))
        assert abs(np.corrcoef(x[1:], x[:-1])[0, 1] - market.FLOW_MEMORY) < 4 / np.sqrt(len(x))


# --- the true probabilities ---------------------------------------------------------------------------

PRESSURES = np.array([-2.3, -0.611, 0.0, 0.517, 1.904])


def test_one_snapshot_ahead_has_a_closed_form():
    """Any move counts."""
    s = PRESSURES
    up, down = np.exp(2.0 * s - 2.2), np.exp(-2.0 * s - 2.2)
    expected = np.stack([up, np.ones(5), down], axis=1) / (1.0 + up + down)[:, None]
    assert_allclose(market.class_probabilities(s, np.full(5, 4000), 1), expected, rtol=0, atol=1e-4)
    assert_allclose(market.move_probabilities(s), expected, rtol=1e-13)


@pytest.mark.parametrize(("mid", "ups"), [(4000, [2, 3, 1]), (6000, [2, 3])])
def test_two_snapshots_ahead_by_quadrature(mid, ups):
    """W = 2 D₁ + D₂ is up if above 2 α m: 0.96 or 1.44 half ticks."""
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    phi = market.PRESSURE_MEMORY
    first = market.move_probabilities(PRESSURES)
    later = market.move_probabilities(phi * PRESSURES[:, None] + np.sqrt(1 - phi**2) * z)
    second = np.einsum("sqd,q->sd", later, weights / weights.sum())
    joint = first[:, :, None] * second[:, None, :]
    W = 2 * np.array([1, 0, -1])[:, None] + np.array([1, 0, -1])
    up, down = joint[:, np.isin(W, ups)].sum(axis=1), joint[:, np.isin(-W, ups)].sum(axis=1)
    expected = np.stack([up, 1.0 - up - down, down], axis=1)
    assert_allclose(market.class_probabilities(PRESSURES, np.full(5, mid), 2), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("ahead", [3, 5, 10])
def test_farther_ahead_by_simulation(ahead):
    """Paths from a given pressure, walked one by one: χ² of the classes."""
    rng, paths, mid = np.random.default_rng(ahead), 40_000, 4321
    for start in (-0.9, 0.4):
        s, position, total = np.full(paths, start), np.zeros(paths), np.zeros(paths)
        for _ in range(ahead):
            up, _, down = market.move_probabilities(s).T
            draw = rng.random(paths)
            position += (draw < up) * 1.0 - (draw > 1.0 - down)
            total += position
            s = market.PRESSURE_MEMORY * s + np.sqrt(1 - market.PRESSURE_MEMORY**2) * rng.normal(size=paths)
        change = total / ahead / mid
        alpha = market.THRESHOLD
        counts = [np.sum(change > alpha), np.sum(np.abs(change) <= alpha), np.sum(change < -alpha)]
        expected = market.class_probabilities(np.array([start]), np.array([mid]), ahead)[0] * paths
        assert stats.chisquare(counts, expected).pvalue > LEVEL


def test_probabilities_are_probabilities_and_symmetric():
    s, mid = np.linspace(-6.0, 6.0, 25), np.linspace(2500, 6500, 25).astype(int)
    for ahead in (1, 2, 3, 5, 10):
        p = market.class_probabilities(s, mid, ahead)
        assert (p >= -1e-12).all()
        assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert_allclose(market.class_probabilities(-s, mid, ahead), p[:, ::-1], rtol=0, atol=1e-12)


# --- the simulated data -------------------------------------------------------------------------------


def test_shapes_split_and_z_scores(lob):
    train, test = lob.train, lob.test
    assert len(train.X) == len(train.y) == 20_000
    assert len(test.X) == len(test.y) == 5 * (20_000 // 35)
    assert train.features.shape == (20_000 + 35 * 9, 40)
    assert train.features.dtype == np.float32
    assert train.labels.dtype == np.int8
    assert_allclose(train.features.mean(axis=0, dtype=float), 0.0, rtol=0, atol=1e-5)
    assert_allclose(train.features.std(axis=0, dtype=float), 1.0, rtol=1e-5)
    assert not np.allclose(test.features.mean(axis=0), 0.0, atol=1e-3)  # moments are those of the train part
    assert train.class_names == ("up", "stationary", "down")
    assert train.feature_names[:5] == (
        "ask_price_1",
        "ask_volume_1",
        "bid_price_1",
        "bid_volume_1",
        "ask_price_2",
    )
    assert len(train.feature_names) == 40


@pytest.mark.parametrize(("horizon", "balance"), [(10, (0.2, 0.6, 0.2)), (100, (0.4, 0.2, 0.4))])
def test_classes_are_as_unbalanced_as_in_fi2010(lob, horizon, balance):
    labels = lob.train.labels[:, HORIZONS.index(horizon)]
    assert_allclose(np.bincount(labels, minlength=3) / len(labels), balance, rtol=0, atol=0.03)


def test_the_best_rule_is_as_good_as_it_says(lob):
    """One snapshot ahead, hits are independent given the pressures: z tests of their number and of log p."""
    for part in (lob.train, lob.test):
        p = part.probabilities
        hits = (p.argmax(axis=1) == part.y).sum()
        best = p.max(axis=1)
        z = (hits - best.sum()) / np.sqrt((best * (1 - best)).sum())
        assert 2 * stats.norm.sf(abs(z)) > LEVEL
        assert part.bayes_accuracy == pytest.approx(best.mean())
        log_p = np.log(p)
        mean, second = (p * log_p).sum(axis=1), (p * log_p**2).sum(axis=1)
        z = (log_p[np.arange(len(p)), part.y] - mean).sum() / np.sqrt((second - mean**2).sum())
        assert 2 * stats.norm.sf(abs(z)) > LEVEL


def test_a_model_beats_the_base_rate_and_not_the_best_rule(lob):
    """scikit-learn's logistic regression on the best volumes; ten snapshots are better than the last one."""
    linear = pytest.importorskip("sklearn.linear_model", reason="sklearn extra")
    best = [lob.train.feature_names.index(f"{side}_volume_1") for side in ("ask", "bid")]
    X, X_test = (part.X[:][:, best] for part in (lob.train, lob.test))

    def score(steps):
        model = linear.LogisticRegression(max_iter=500).fit(X[:, :, -steps:].reshape(len(X), -1), lob.train.y)
        return model.score(X_test[:, :, -steps:].reshape(len(X_test), -1), lob.test.y)

    base = np.bincount(lob.test.y).max() / len(lob.test.y)
    se = np.sqrt(0.25 / len(lob.test.y))
    assert score(1) > base + 2 * se
    assert score(10) > score(1) + 2 * se
    assert abs(score(10) - lob.test.bayes_accuracy) < 4 * se


def test_the_seed_decides_and_the_horizon_changes_only_what_is_asked(small):
    again = simulate_lob(600, stocks=3, days=4, rng=np.random.default_rng(5))
    later = simulate_lob(600, stocks=3, days=4, rng=5, horizon=50)
    for other in (again, later):
        assert_array_equal(other.train.features, small.train.features)
        assert_array_equal(other.test.labels, small.test.labels)
    assert_array_equal(later.train.y, small.train.labels[small.train.X.ends, 3])
    assert_array_equal(small.train.y, small.train.labels[small.train.X.ends, 0])
    assert not np.array_equal(later.train.probabilities, small.train.probabilities)
    assert not np.array_equal(simulate_lob(600, stocks=3, days=4).train.features, small.train.features)
    assert repr(later.test) == "Books(198 windows in 3 pieces, 50 events ahead)"


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"num_windows": 34}, InvalidInputError, "at least 35"),
        ({"num_windows": 1e4}, InvalidTypeError, "num_windows"),
        ({"stocks": 0}, InvalidInputError, "stocks"),
        ({"days": 1}, InvalidInputError, "days must be at least 2"),
        ({"horizon": 11}, InvalidInputError, r"10, 20, 30, 50, 100 \(events ahead\); got 11"),
        ({"horizon": [10]}, InvalidInputError, "horizon"),
        ({"rng": -1}, InvalidTypeError, "rng"),
    ],
)
def test_wrong_settings_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        simulate_lob(**settings)


# --- text files ---------------------------------------------------------------------------------------


def test_what_is_written_is_what_is_read(small, written):
    data = load_fi2010(written, horizon=20)
    assert isinstance(data, LOB)
    for part, original in ((data.train, small.train), (data.test, small.test)):
        assert_allclose(part.features, original.features, rtol=1.2e-7)  # eight digits
        assert_array_equal(part.labels, original.labels)
        assert_array_equal(part.joins, original.joins)
        assert_array_equal(part.y, original.labels[original.X.ends, 1])
        assert part.X.shape == original.X.shape
        assert part.features.dtype == np.float32
        assert part.probabilities is None
        assert part.bayes_accuracy is None


def test_the_text_is_that_of_the_published_files(small, written):
    content = text_file(written).read_bytes()
    num_rows = len(small.train.features)
    assert len(content) == 149 * (16 * num_rows + 2)
    table = np.loadtxt(content.decode().splitlines())
    assert table.shape == (149, num_rows)
    assert_allclose(table[:40].T, small.train.features, rtol=1e-7)
    assert_array_equal(table[40:144], 0.0)
    assert_array_equal(table[144:].T, small.train.labels + 1)
    assert np.unique(table[144:]).tolist() == [1, 2, 3]


def edit(line, column, word):
    """A change of the text: other words at a line and column, both from 1."""

    def change(content):
        lines = content.split(b"\r\n")
        words = lines[line - 1].split()
        words[column - 1] = word
        lines[line - 1] = b" ".join(words)
        return b"\r\n".join(lines)

    return change


DAMAGES = {
    "nothing": (lambda content: b"", "lines 1 to 40 .*there are 0 of them"),
    "cut between lines": (lambda c: b"\n".join(c.splitlines()[:148]), "lines 145 to 149 .*there are 4"),
    "cut in the book": (lambda c: c[: len(c) // 4], "lines 1 to 40 .*columns changed from 681"),
    "a line too many": (lambda c: c + b"1 2\r\n", "last 5 lines must be 145 to 149"),
    "a line too few": (lambda c: b"\n".join(c.splitlines()[1:]), "lines 145 to 149 .*there are 4"),
    "a short row": (edit(7, 681, b""), "columns changed from 681 to 680 at row 7"),
    "short labels": (
        lambda c: b"\n".join([*c.splitlines()[:144], *[b"1 2"] * 5]),
        "in each of the 681 columns",
    ),
    "no number": (edit(12, 34, b"1.2.3"), "'1.2.3' to float32 at row 11, column 34"),
    "an underscore": (edit(2, 2, b"1_0"), "'1_0' to float32 at row 1, column 2"),
    "a comment": (edit(2, 5, b"#1"), "'#1' to float32 at row 1, column 5"),
    "nan": (edit(40, 3, b"NaN"), "no finite number of single precision at row 39, column 3"),
    "too large": (edit(40, 3, b"1e39"), "no finite number of single precision at row 39, column 3"),
    "a wrong label": (edit(145, 17, b"4"), "a label 1, 2 or 3"),
    "half a label": (edit(149, 1, b"1.5"), "a label 1, 2 or 3"),
}


def test_damage_is_located(written, compact):
    path = text_file(written)
    whole = path.read_bytes()
    for name, (change, message) in DAMAGES.items():
        path.write_bytes(change(whole))
        with case(name), pytest.raises(FileFormatError, match=message) as caught:
            load_fi2010(written)
        assert str(path) in caught.value.args[0]
    assert not compact.exists()


def test_blank_lines_at_the_end_and_other_line_ends_do_no_harm(small, written):
    path = text_file(written)
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"  ", b"\t") + b"\n \n")
    assert_array_equal(load_fi2010(written).train.labels, small.train.labels)


# --- finding the files --------------------------------------------------------------------------------


def test_upper_and_lower_case_do_not_matter(small, written):
    path = text_file(written)
    path.rename(path.with_name(path.name.replace("ZScore", "Zscore")))
    assert_array_equal(load_fi2010(written).train.labels, small.train.labels)


def test_every_variant_has_its_own_file(written):
    for kind in ("Auction_MinMax", "NoAuction_DecPre"):
        for name in (TRAIN, TEST):
            path = text_file(written, name)
            path.with_name(name.replace("NoAuction_ZScore_CF_7", kind + "_CF_2")).write_bytes(
                path.read_bytes()
            )
    assert len(load_fi2010(written, 2, 10, "minmax", True).train.X) == 600
    assert len(load_fi2010(written, 2, 10, "decpre").train.X) == 600
    with pytest.raises(DataUnavailableError, match=r"no Train_Dst_NoAuction_MinMax_CF_2.txt below .*etsin"):
        load_fi2010(written, 2, 10, "minmax")
    with pytest.raises(DataUnavailableError, match=r"no Train_Dst_Auction_MinMax_CF_3.txt"):
        load_fi2010(written, 3, 10, "minmax", auction=True)


def test_two_files_of_a_name_are_one_too_many(written):
    path = text_file(written)
    (written / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InvalidInputError, match=r"more than one Train_Dst_NoAuction_ZScore_CF_7.txt"):
        load_fi2010(written)


def test_the_users_directory_is_the_default(small, written, monkeypatch):
    with pytest.raises(DataUnavailableError, match=r"download FI-2010 by hand from etsin.fairdata.fi"):
        load_fi2010()
    monkeypatch.setenv(VARIABLE, str(written))
    assert_array_equal(load_fi2010().test.labels, small.test.labels)
    with pytest.raises(DataUnavailableError, match="there is no directory"):
        load_fi2010(written / "nowhere")


def test_the_user_may_know_the_joins(written):
    data = load_fi2010(written, joins=([100], []))
    assert_array_equal(data.train.joins, [100])
    assert len(data.train.X) == len(data.train.features) - 2 * 9
    assert len(data.test.X) == len(data.test.features) - 9
    with pytest.raises(InvalidInputError, match="joins must be row numbers"):
        load_fi2010(written, joins=([100], [10_000]))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"fold": 0}, InvalidInputError, "fold must be at least 1"),
        ({"fold": 10}, InvalidInputError, "fold must be at most 9"),
        ({"fold": "7"}, InvalidTypeError, "fold"),
        ({"horizon": 1}, InvalidInputError, "horizon must be one of 10, 20"),
        ({"normalisation": "z"}, InvalidInputError, "one of 'zscore', 'minmax', 'decpre'"),
        ({"auction": "no"}, InvalidTypeError, "auction"),
        ({"progress": 1}, InvalidTypeError, "progress"),
        ({"joins": [[1]]}, InvalidInputError, "joins must be a pair"),
    ],
)
def test_wrong_arguments_are_refused(written, settings, error, message):
    with pytest.raises(error, match=message):
        load_fi2010(written, **settings)


def test_a_bar_is_shown_for_text_only(written, capsys):
    load_fi2010(written)
    assert capsys.readouterr() == ("", "")
    text_file(written, TEST).touch()
    load_fi2010(written, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert TEST in err
    assert TRAIN not in err


# --- the compact copy ---------------------------------------------------------------------------------


@pytest.fixture
def readings(monkeypatch):
    """The text files that were read."""
    names = []

    def noted(path, progress=False, read=text.read_text):
        names.append(path.name)
        return read(path, progress)

    monkeypatch.setattr(text, "read_text", noted)
    return names


def mapped(array):
    while array.base is not None and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


def test_text_is_read_once(written, compact, readings):
    first, second = load_fi2010(written), load_fi2010(written, horizon=100)
    assert readings == [TRAIN, TEST]
    assert_array_equal(first.train.features, second.train.features)
    for part in (first.train, second.test):
        assert mapped(part.features)
        assert mapped(part.labels)
        assert not part.features.flags.writeable
    assert len(list(compact.iterdir())) == 4
    size = sum(path.stat().st_size for path in compact.glob("Train*.npy"))
    assert size == 165 * len(first.train.features) + 2 * 128


def test_a_stale_copy_is_made_anew(small, written, readings):
    load_fi2010(written)
    changed = simulate_lob(600, stocks=3, days=4, rng=6)
    write_books(text_file(written), changed.train.features, changed.train.labels)
    data = load_fi2010(written)
    assert readings == [TRAIN, TEST, TRAIN]
    assert_array_equal(data.train.labels, changed.train.labels)
    assert_array_equal(data.test.labels, small.test.labels)


@pytest.mark.parametrize("change", [lambda c: c[:-100], lambda c: b""], ids=["truncated", "empty"])
@pytest.mark.parametrize("kind", ["features", "labels"])
def test_a_damaged_copy_is_made_anew(small, written, compact, readings, kind, change):
    load_fi2010(written)
    (path,) = compact.glob(f"Train*.{kind}.npy")
    path.write_bytes(change(path.read_bytes()))
    for _ in range(2):
        data = load_fi2010(written)
        assert_array_equal(data.train.labels, small.train.labels)
        assert mapped(data.train.features)
    assert readings == [TRAIN, TEST, TRAIN]
    assert len(list(compact.iterdir())) == 4


def test_files_of_one_name_in_two_directories_have_two_copies(written, tmp_path, readings):
    other = simulate_lob(600, stocks=3, days=4, rng=6)
    (tmp_path / "other").mkdir()
    write_fi2010(other, tmp_path / "other")
    for _ in range(2):
        load_fi2010(written)
        assert_array_equal(load_fi2010(tmp_path / "other").train.labels, other.train.labels)
    assert len(readings) == 4


def test_a_cache_that_cannot_be_written_is_said(written, compact):
    compact.parent.write_text("a file where the directory should be")
    with pytest.raises(DataUnavailableError, match=f"a compact copy of {TRAIN} must be written to .*failed"):
        load_fi2010(written)
