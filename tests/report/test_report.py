"""The page of a posterior needs nothing else, says what the posterior says, and escapes whatever is in it."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import mgvbp
from common import as_posterior, random_covariance, trace
from mgvbp import Gaussian, InvalidInputError, InvalidTypeError, Parameters, fit
from mgvbp.plots.canvas import BAND, GREY, LIGHT, LINE
from mgvbp.report import html_report, posterior_page, write_report
from mgvbp.report.page import Html, paragraph, table, text
from mgvbp.report.posterior_page import MOST_MARGINALS, MOST_ROWS, convergence_words
from mgvbp.transforms import Positive, Real, Simplex

HOSTILE = "</td><script>alert('1')</script>\"&$\\frac{"
VOID = {"meta", "link", "br", "img", "!doctype"}


class Page(HTMLParser):
    """Tags that must match, the text in each of them, attributes, and ids of the elements."""

    def __init__(self, page):
        super().__init__()
        self.open, self.texts, self.attributes, self.tags = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1], data))

    def within(self, tag):
        return [data for where, data in self.texts if where == tag]


def regression():
    def log_likelihood(beta, sigma):
        return -20.0 * np.log(sigma) - 0.5 * (30.0 + 20.0 * ((beta - [1.0, 2.0]) ** 2).sum(axis=1)) / sigma**2

    model = mgvbp.Model(log_likelihood, Parameters(beta=Real(2), sigma=Positive()))
    return fit(model, Gaussian(variance=5.0, dim=3))


@pytest.fixture(scope="module")
def posterior():
    return regression()


@pytest.fixture(scope="module")
def page(posterior):
    return html_report(posterior)


@pytest.fixture
def small():
    return as_posterior(Gaussian([1.0, 2.0], [0.5, 0.1]))


# --- the page -----------------------------------------------------------------------------------------


def test_it_needs_nothing_else(page):
    parsed = Page(page)
    assert not {"script", "iframe", "object", "embed"} & set(parsed.tags)
    assert "http" not in page
    assert "@import" not in page
    links = [value for name, value in parsed.attributes if name in ("src", "href", "xlink:href")]
    assert links
    assert all(value.startswith(("data:", "#")) for value in links)
    assert all(reference.startswith("#") for reference in re.findall(r"url\(['\"]?([^)]*)\)", page))


def test_what_the_pictures_refer_to_is_there_once(page):
    """Several drawings in one page: clips and markers of one must not be taken from another."""
    ids = re.findall(r' id="([^"]*)"', page)
    used = set(re.findall(r"url\(#([^)]*)\)", page)) | set(re.findall(r'href="#([^"]*)"', page))
    assert len(used) > 10
    assert all(ids.count(name) == 1 for name in used)


def test_numbers_are_those_of_the_summary(posterior, page):
    cells = Page(page).texts
    rows = [line.split() for line in posterior.summary().splitlines()[-3:]]
    for label, *numbers in rows:
        start = cells.index(("th", label))
        assert [data for _, data in cells[start + 1 : start + 5]] == numbers
    words = " ".join(Page(page).within("td"))
    assert f"{posterior.n_evaluations:,} log-likelihood queries in {len(posterior.trace)} iterations" in words
    assert f"{posterior.lower_bound:,.4f} nats" in words


def test_the_same_page_at_every_call_and_pyplot_as_it_was(posterior, page):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    assert html_report(posterior) == page
    assert pyplot.get_fignums() == before


def test_it_follows_the_colours_of_the_reader(page):
    assert "prefers-color-scheme: dark" in page
    for variable in ("currentColor", "var(--line)", "var(--paper)", "var(--band)"):
        assert variable in page
    assert page.count("#010203") == 0
    assert 'name="viewport" content="width=device-width' in page


def test_by_day_the_page_has_the_colours_of_the_pictures(page):
    colours = {"line": LINE, "band": BAND, "grey": GREY, "light": LIGHT}
    day = page[: page.index("prefers-color-scheme: dark")]
    assert dict(re.findall(r"--(line|band|grey|light): (#\w+)", day)) == colours


def test_the_experiments_have_the_same_page(page):
    pytest.importorskip("emcee", reason="the experiments need their extra: pip install 'mgvbp[experiments]'")
    from mgvbp.paper.report import html_page

    def frame(html):
        return re.sub(r"<title>.*?</title>", "", html[: html.index("<body>")])

    part = {
        "title": HOSTILE,
        "command": f"mgvbp reproduce {HOSTILE}",
        "made": "now",
        "seconds": 1.0,
        "queries": 1,
        "runs": "",
    }
    other = html_page({"slr": part | {"counts": [], "html": ""}})
    assert frame(other) == frame(page)
    assert "script" not in Page(other).tags
    assert any(f"mgvbp reproduce {HOSTILE}, now" in text for text in Page(other).within("p"))


def test_pictures_and_draws(page, small):
    parsed = Page(page)
    assert parsed.tags.count("figure") == parsed.tags.count("figcaption") == 4
    titles = parsed.within("text")
    assert {"Lower bound", "beta[0]", "sigma", "lower bound (nats)"} <= set(titles)
    assert "with 500 draws" in page
    without = html_report(small, num_draws=0)
    assert "95% of the probability: pairs." in Page(without).within("figcaption")[2]


def test_one_parameter_has_no_pairs():
    single = html_report(as_posterior(Gaussian([0.0], [1.0])))
    assert Page(single).tags.count("figure") == 2
    assert "Posterior of 1 parameter:" in single


def test_many_parameters(monkeypatch):
    """The captions are those of the page; the pictures themselves would take seconds."""
    monkeypatch.setattr(
        posterior_page, "picture", lambda draws, name, caption: paragraph(f"{name}, {len(draws)}: {caption}")
    )
    labels = [f"p{i}" for i in range(250)]
    many = Page(html_report(as_posterior(Gaussian(variance=1.0, dim=250), labels=labels)))
    shown = [name for name in many.within("th") if name in labels]
    assert shown == labels[: MOST_ROWS // 2] + labels[-MOST_ROWS // 2 :]
    assert "… 50 more …" in many.within("th")
    said = " ".join(many.within("p"))
    assert (
        f"marginals, {MOST_MARGINALS}: Marginal densities of the first {MOST_MARGINALS} parameters." in said
    )
    assert "pairs of the first 5 parameters." in said


def test_vector_constraints():
    q = Gaussian(np.zeros(3), random_covariance(3))
    parsed = Page(html_report(as_posterior(q, Parameters(w=Simplex(4)))))
    assert {f"w[{i}]" for i in range(4)} <= set(parsed.within("th"))


# --- plain words --------------------------------------------------------------------------------------


def words(posterior):
    return " ".join(Page("".join(convergence_words(posterior))).within("p"))


def test_a_certificate_in_words(posterior):
    said = words(posterior)
    assert said.startswith("Yes. ")
    assert f"expected to lie {posterior.gap:.2g} nats below" in said
    assert f"give or take {posterior.gap_se:.2g}" in said
    assert "posterior.diagnose(log_density=...)" in said


def test_no_certificate_in_words():
    named = as_posterior(Gaussian(variance=1.0, dim=2))
    assert "no longer improved" in words(named)
    assert "MGVBP has no certificate" in words(named)
    named.converged, named.stop_reason = False, "reached max_iterations = 9"
    said = words(named)
    assert said.startswith("No; the run ended early: reached max_iterations = 9.")
    assert 'class="doubt"' in "".join(convergence_words(named))
    named.gap = named.gap_se = np.inf
    assert "is not known" in words(named)


def test_incidents_are_told():
    run = trace([-2.0, -1.0])
    object.__setattr__(run, "dropped", np.array([3, 4]))
    object.__setattr__(run, "reductions", np.array([0, 2]))
    odd = as_posterior(Gaussian(variance=1.0, dim=2), run=run)
    assert "non-finite" not in words(as_posterior(Gaussian(variance=1.0, dim=2)))
    odd.failures = {"raised": 2, "lost": 1}
    for told in ("7 draws with non-finite", "shortened in 1 iterations", "evaluation of 3 draws failed"):
        assert told in words(odd)


# --- hostile files ------------------------------------------------------------------------------------


def test_whatever_a_file_says_is_escaped(tmp_path):
    labels = [HOSTILE, "\ud800<i>", "$\\frac{$\x00"]
    hostile = as_posterior(Gaussian(np.zeros(3), random_covariance(3)), labels=labels)
    hostile.stop_reason = hostile.method = hostile.estimator = HOSTILE
    hostile.save(tmp_path / "hostile.npz")
    target = write_report(mgvbp.load(tmp_path / "hostile.npz"), tmp_path / "page.html", file=f"{HOSTILE}.npz")
    page = target.read_bytes().decode("utf-8")
    parsed = Page(page)
    assert "script" not in parsed.tags
    assert "i" not in parsed.tags
    assert HOSTILE in parsed.within("th")
    assert HOSTILE in parsed.within("td")
    assert f"Posterior of 3 parameters: {HOSTILE}.npz" in parsed.within("h1")
    assert not [name for name, _ in parsed.attributes if name.startswith("on")]


def test_text_is_escaped():
    assert (
        text('<a href="x">\'&\n\x07') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;\n\N{REPLACEMENT CHARACTER}"
    )


def test_what_is_html_already_is_not_escaped():
    assert text(Html("<b>1</b>")) == "<b>1</b>"
    assert text("a<b", "note") == '<span class="note">a&lt;b</span>'
    assert paragraph(text("a<b"), "good") == '<p class="good">a&lt;b</p>'


def test_a_table():
    html = table(["", "n", "why"], [["<a>", "1", "so"], ["b", Html("<i>2</i>"), ""]], words=True)
    assert html == (
        '<div class="scroll"><table class="words"><tr><th></th><th>n</th><th>why</th></tr>'
        "<tr><th>&lt;a&gt;</th><td>1</td><td>so</td></tr><tr><th>b</th><td><i>2</i></td><td></td></tr></table></div>"
    )
    assert table([], [["a", "1"]]) == '<div class="scroll"><table><tr><th>a</th><td>1</td></tr></table></div>'


def test_bad_arguments(small, tmp_path):
    with pytest.raises(InvalidTypeError, match="expected a posterior"):
        html_report(Gaussian(variance=1.0, dim=2))
    with pytest.raises(InvalidInputError, match="num_draws must be at least 0"):
        html_report(small, num_draws=-1)
    with pytest.raises(InvalidInputError, match="cannot be written: No such file or directory"):
        write_report(small, tmp_path / "missing" / "page.html")
