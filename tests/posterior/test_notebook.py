"""What a notebook shows of a posterior: HTML of its own, escaped names, the numbers of `summary`, small pictures."""

from __future__ import annotations

import pickle
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import norm

import mgvbp
from common import standard_normal as quadratic
from mgvbp.errors import ConvergenceWarning, InvalidInputError, InvalidTypeError, MissingDependencyError
from mgvbp.posterior import notebook
from mgvbp.transforms import Interval, Positive, Real


@pytest.fixture(scope="module")
def named():
    y = np.array([1.1, 2.3, 0.4, 1.9])
    parameters = mgvbp.Parameters(mu=Real(), sigma=Positive(), share=Interval(0.0, 1.0))

    def log_likelihood(mu, sigma, share):
        return norm.logpdf(y, mu[:, None], sigma[:, None]).sum(axis=1) + np.log(share) + np.log1p(-share)

    model = mgvbp.Model(log_likelihood, parameters)
    return mgvbp.fit(model, mgvbp.Gaussian(variance=4.0, dim=3))


def tree_of(html):
    """The page as a tree: it must be well-formed."""
    return ElementTree.fromstring(html.replace("<br>", "<br/>"))


def rows_of(html):
    return [["".join(cell.itertext()) for cell in row] for row in tree_of(html).iter("tr")]


# --- html ---------------------------------------------------------------------------------------------


def test_the_table_has_the_numbers_of_the_frame(named):
    head, *rows = rows_of(named._repr_html_())
    assert head == ["parameter", "mean", "sd", "2.5%", "97.5%", "density"]
    frame = named.to_frame()
    assert [row[0] for row in rows] == list(frame.index) == ["mu", "sigma", "share"]
    shown = np.array([[float(x) for x in row[1:5]] for row in rows])
    assert (np.abs(shown - frame) <= 0.0051 * frame[["sd"]].to_numpy()).all(
        axis=None
    )  # three digits of the sd
    assert len(list(tree_of(named._repr_html_()).iter("svg"))) == 3


def test_it_says_whether_the_run_converged(named):
    text = "".join(tree_of(named._repr_html_()).itertext())
    assert "converged: the lower bound is within 0.01 nats" in text
    assert "NOT" not in text
    with pytest.warns(ConvergenceWarning):
        short = mgvbp.fit(quadratic, dim=2, max_evaluations=8)
    assert "NOT converged:" in "".join(tree_of(short._repr_html_()).itertext())


def test_names_cannot_write_html():
    html = mgvbp.fit(quadratic, labels=["<script>alert(1)</script>", 'a"&b'])._repr_html_()
    assert "<script" not in html
    assert [row[0] for row in rows_of(html)[1:]] == ["<script>alert(1)</script>", 'a"&b']


def test_it_needs_nothing_from_elsewhere(named):
    """No scripts, no links, and the colours of the page but for the verdict: it can be read on dark pages."""
    html = named._repr_html_()
    for word in ("http", "<script", "<link", "<img", "url(", "background"):
        assert word not in html
    assert {rest[:6] for rest in html.split("#")[1:]} == {notebook.GOOD[1:]}


def test_long_tables_are_cut():
    posterior = mgvbp.fit(quadratic, dim=300, family="diagonal", method="mgvbp", max_iterations=2)
    rows = rows_of(posterior._repr_html_())
    assert len(rows) == notebook.MOST_ROWS + 2
    assert rows[21][0] == "… 260 more: to_frame() has all"
    assert rows[-1][0] == "theta[299]"
    assert len(posterior.to_frame()) == 300
    large = mgvbp.fit(quadratic, dim=3000, family="diagonal", method="mgvbp", max_iterations=2)
    assert "<svg" not in large._repr_html_()


def test_pictures_are_densities():
    """The polygon's height over its base is the normal density, to a hundredth of the picture."""
    nodes = 3.0 + 2.0 * norm.ppf(notebook.LEVELS)
    picture = ElementTree.fromstring(notebook.svg(nodes, nodes[0], nodes[-1]))
    points = np.array([pair.split(",") for pair in picture[0].attrib["points"].split()], dtype=float)
    x = (points[1:-1, 0] - 1.0) / (notebook.WIDTH - 2) * (nodes[-1] - nodes[0]) + nodes[0]
    height = (notebook.HEIGHT - 1 - points[1:-1, 1]) / (notebook.HEIGHT - 3)
    np.testing.assert_allclose(height, np.exp(-0.5 * ((x - 3.0) / 2.0) ** 2), atol=0.02)
    assert len(picture) == 2  # and the line at 0
    assert len(ElementTree.fromstring(notebook.svg(nodes + 50.0, nodes[0] + 50.0, nodes[-1] + 50.0))) == 1
    assert notebook.svg(np.full(49, 1.0), 0.0, 2.0) == notebook.svg(np.full(49, np.inf), 0.0, 1.0) == ""


def test_a_mixture_is_drawn_with_its_modes():
    def two_modes(theta):
        return np.logaddexp(norm.logpdf(theta[:, 0], -3.0), norm.logpdf(theta[:, 0], 3.0))

    posterior = mgvbp.fit(two_modes, dim=1, family="mixture", initial_variance=9.0)
    polygon = next(tree_of(posterior._repr_html_()).iter("polygon"))
    y = np.array([pair.split(",")[1] for pair in polygon.attrib["points"].split()], dtype=float)
    middle = len(y) // 2
    assert y[middle - 2 : middle + 3].max() > y[5:middle].min() + 8  # a valley between two peaks; y goes down
    assert "mixture of" in repr(posterior)


# --- text ---------------------------------------------------------------------------------------------


def test_the_repr_is_one_line_about_the_result(named):
    assert repr(named).startswith("Posterior(auto, full family, d = 3, converged, gap ")
    assert repr(named).endswith(f"nats, lower bound {named.lower_bound:.4f})")
    assert "\n" not in repr(named)
    with pytest.warns(ConvergenceWarning):
        assert "NOT converged" in repr(mgvbp.fit(quadratic, dim=2, max_evaluations=8))


def test_a_summary_is_a_text_that_knows_its_table(named):
    summary = named.summary()
    assert isinstance(summary, str)
    assert str(summary) == repr(summary) == f"{summary}"
    assert summary.splitlines()[0] == "auto (regression estimator, full family), d = 3"
    assert summary.frame.equals(named.to_frame())
    assert summary._repr_html_() == named._repr_html_()
    assert pickle.loads(pickle.dumps(summary)) == summary


def test_a_frame_without_pandas(named, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match="needs the package pandas: pip install pandas"):
        named.to_frame()
    assert "sigma" in named.summary()


# --- labels -------------------------------------------------------------------------------------------


def test_labels_are_names(tmp_path):
    posterior = mgvbp.fit(quadratic, labels=["drift", "log noise"])
    assert posterior.labels == ("drift", "log noise")
    assert posterior["log noise"].std == pytest.approx(1.0, rel=0.01)
    assert set(posterior.draws(3)) == {"drift", "log noise"}
    assert "log noise" in posterior.summary()
    assert list(posterior.to_arviz(num_draws=10)["posterior"].data_vars) == ["drift", "log noise"]
    posterior.save(tmp_path / "a.npz")
    loaded = mgvbp.load(tmp_path / "a.npz")
    assert loaded.labels == posterior.labels
    assert loaded["drift"].mean == posterior["drift"].mean
    assert loaded.to_frame().equals(posterior.to_frame())
    following = mgvbp.fit(quadratic, prior=loaded)
    assert following.labels == posterior.labels
    blocks = mgvbp.BlockDiagonal([["log noise"], ["drift"]])
    assert mgvbp.fit(quadratic, labels=["drift", "log noise"], family=blocks).covariance[0, 1] == 0.0


def test_labels_survive_a_break(tmp_path):
    path = tmp_path / "run.npz"
    first = mgvbp.fit(quadratic, labels=["a", "b"], checkpoint=path)
    again = mgvbp.resume(path, quadratic)
    assert again.labels == first.labels == ("a", "b")
    np.testing.assert_array_equal(again.mean, first.mean)


def test_labels_of_numpy_become_plain_strings():
    posterior = mgvbp.fit(quadratic, labels=np.array(["a", "b"]))
    assert posterior.labels == ("a", "b")
    assert {type(label) for label in posterior.labels} == {str}


def test_labels_do_not_change_the_result():
    with_names, without = mgvbp.fit(quadratic, labels=["a", "b"]), mgvbp.fit(quadratic, dim=2)
    np.testing.assert_array_equal(with_names.factor, without.factor)
    assert with_names.lower_bound == without.lower_bound


@pytest.mark.parametrize("labels", [["a", "a"], "ab", [1, 2], [], 3])
def test_bad_labels(labels):
    with pytest.raises(InvalidInputError, match="labels must be a list of different strings"):
        mgvbp.fit(quadratic, labels=labels, dim=2)


def test_labels_that_do_not_fit(named):
    with pytest.raises(InvalidInputError, match="dim= is 3, but the model has 2"):
        mgvbp.fit(quadratic, labels=["a", "b"], dim=3)
    with pytest.raises(InvalidInputError, match="the prior's dimension is 3"):
        mgvbp.fit(quadratic, mgvbp.Gaussian(variance=1.0, dim=3), labels=["a", "b"])
    with pytest.raises(InvalidInputError, match=r"the parameters have names, .*leave labels= out"):
        mgvbp.fit(mgvbp.models.PoissonRegression([[1.0]], [2]), labels=["rate"])
    with pytest.raises(InvalidInputError, match="printable"):
        mgvbp.fit(quadratic, labels=["a", "\x1b[31m"])


def test_a_thousand_labels_are_no_burden():
    """Each name's marginal is found without transforming all the others: far fewer calls than the square of d."""
    labels = [f"p{i}" for i in range(1000)]
    posterior = mgvbp.fit(quadratic, labels=labels, family="diagonal", method="mgvbp", max_iterations=2)
    calls = 0

    def counted(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counted)
    try:
        frame = posterior.to_frame()
    finally:
        sys.setprofile(None)
    assert list(frame.index) == labels
    assert calls < 100_000


def test_corrected_draws_have_names(named):
    corrected = named.draws(50, rng=1, corrected=True)
    theta = named.resample(50, rng=1)
    assert set(corrected) == {"mu", "sigma", "share"}
    np.testing.assert_array_equal(corrected["sigma"], named.named(theta)["sigma"])
    with pytest.raises(InvalidTypeError, match="corrected must be True or False"):
        named.draws(5, corrected="yes")


# --- a diagnosis --------------------------------------------------------------------------------------


def test_a_diagnosis_shows_its_verdict_advice_and_corrections():
    """The numbers of its arrays and the sentences of its text; names are escaped, and at most 40 rows are shown."""
    labels = ["<b>drift</b>", *(f"x{i}" for i in range(44))]
    diagnosis = mgvbp.fit(quadratic, labels=labels, grad=lambda theta: -theta).diagnose()
    html = diagnosis._repr_html_()
    text = "".join(tree_of(html).itertext())
    assert f"{diagnosis.verdict.upper()}. {diagnosis.advice}" in text
    assert all(line in text for line in str(diagnosis).split("\n\n")[0].splitlines())
    assert "<b>drift" not in html
    head, *rows, last = rows_of(html)
    assert head[1] == "mean shift/sd"
    assert len(rows) == 40
    assert last[0] == "… 5 more, less far off"
    for label, shift, *_, verdict in rows:
        i = labels.index(label)
        assert float(shift) == pytest.approx(diagnosis.mean_shift[i], abs=6e-4)
        assert verdict == diagnosis.verdicts[i]
