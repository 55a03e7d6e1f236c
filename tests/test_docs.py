"""The pages: links lead somewhere, code is Python, pictures have texts, and the reference has every public name."""

import ast
import importlib
import re
import runpy
import tomllib
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from common import case

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *(path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts)]
SUBPACKAGES = [
    "baselines",
    "datasets",
    "estimators",
    "families",
    "methods",
    "models",
    "networks",
    "plots",
    "report",
]
PUBLIC = ["mgvbp", *(f"mgvbp.{name}" for name in [*SUBPACKAGES, "sklearn", "transforms", "volatility"])]
INTERNAL = {"resolve_estimator", "resolve_family", "resolve_method"}  # for other modules, not for users


def text_of(page):
    """A page without its code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def blocks_of(page):
    """The bodies of its blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def anchors_of(page):
    """What a heading is called in a link: lower case, without punctuation, hyphens for blanks, as on GitHub."""
    text = text_of(page)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^\((\S+)\)=$", text, re.MULTILINE))


def links_of(page):
    """The targets of its links and pictures that do not lead into the web."""
    figures = re.findall(r"^```\{image\} (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    targets = [*re.findall(r"\]\(([^)\s]+)\)", text_of(page)), *figures]
    return [target for target in targets if not re.match(r"https?:", target)]


def leads_somewhere(page, target):
    """Whether a link of the page names a file of the project and, if it names a heading, one of that file."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return file.is_file() and file.is_relative_to(ROOT) and (not anchor or anchor in anchors_of(file))


def test_links_lead_to_files_and_headings():
    links = [(page, target) for page in PAGES for target in links_of(page)]
    assert len(links) > 50
    broken = [f"{page.relative_to(ROOT)}: {t}" for page, t in links if not leads_somewhere(page, t)]
    assert broken == []


def test_the_table_of_extras_has_all_of_them():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"^\| (`.*?) \|", text_of(DOCS / "install.md"), re.MULTILINE)
    listed = [extra for row in rows for extra in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(project["optional-dependencies"])


def test_code_blocks_run_or_are_at_least_python():
    for page in PAGES:
        for block in blocks_of(page):
            with case(page.relative_to(ROOT)):
                if ">>> " in block:  # pytest runs it; the blank line ends the expected output
                    assert block.endswith("\n\n"), f"no blank line before the end of {block[:60]!r}"
                else:
                    ast.parse(block)


def documented():
    """The full names that the pages of the reference have entries for."""
    for page in (DOCS / "api").glob("*.md"):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif match := re.match(r"\.\. (?:auto|py:)\w+:: (\S+)", line):
                yield f"{module}.{match[1]}"


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_has_every_public_name(module):
    if module == "mgvbp.sklearn":
        pytest.importorskip("sklearn", reason="needs mgvbp[sklearn]")
    known = {_resolved(name) for name in documented()}
    missing = [
        name
        for name in importlib.import_module(module).__all__
        if name not in INTERNAL and _resolved(f"{module}.{name}") not in known
    ]
    assert not missing


def _resolved(name):
    """Where an object was first defined, so that a name that is exported twice needs one entry."""
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    home = getattr(found, "__module__", None)
    return (home, found.__qualname__) if home and hasattr(found, "__qualname__") else name


def test_every_entry_of_the_reference_exists_once():
    names = list(documented())
    assert len(names) > 100
    assert len(set(names)) == len(names)
    for name in names:
        _resolved(name)


def test_figures_are_self_contained_and_have_a_title():
    for figure in DOCS.glob("*.svg"):
        with case(figure.name):
            text = figure.read_text(encoding="utf-8")
            assert ElementTree.fromstring(text).find("{http://www.w3.org/2000/svg}title") is not None
            assert not re.search(r"(?:href|src|url)\s*[=(]\s*[\"']?https?:", text)


def test_pages_tell_nothing_of_the_machine_they_were_made_on():
    private = re.compile(r"/(?:home|root|tmp|work)/")
    assert [str(page) for page in PAGES if private.search(page.read_text(encoding="utf-8"))] == []


AMERICAN = re.compile(
    r"\b(?:(?:behavi|col|fav|neighb|hon)or\w*|center(?:s|ed|ing)?|analyz\w+|(?:optim|minim|maxim|normal|initial|regular"
    r"|parametr|general|standard|summar|recogn|organ|visual|character|local|linear|factor|penal|special|stabil|marginal"
    r"|discret|symmetr)iz(?:e[ds]?|ing|ations?)|(?:model|label|cancel|signal)(?:ed|ing)|gray|catalog|skeptic\w*)\b",
    re.IGNORECASE,
)


def test_spelling_is_british():
    pages = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    prose = {page.name: re.sub(r"`[^`]*`|\]\([^)]*\)", "", text_of(page)) for page in pages}
    assert {name: words for name, text in prose.items() if (words := AMERICAN.findall(text))} == {}


def test_every_picture_has_a_text():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"!\[\s*\]\(", text), page
        assert text.count("```{image}") + text.count(":img-top:") == text.count("alt:"), page


GOOD = """<html lang="en"><h1 id="top">A</h1><a href="#top">up</a>
<img src="a.png" alt="a"><a href="b.html#x">b</a></html>"""
BAD = """<html><h1 id="x">B</h1><a href="c.html">c</a><a href="a.html#y">y</a><img src="a.png" alt=" ">
<script src="https://cdn.example/x.js"></script><dt id="mgvbp._secret">s</dt></html>"""


def test_the_check_of_the_site_finds_what_is_wrong(tmp_path):
    check = runpy.run_path(str(DOCS / "site_check.py"))["problems"]
    for name, text in (("a.html", GOOD), ("b.html", BAD), ("a.png", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert check(tmp_path) == [
        "b.html: no language",
        "b.html: a.png has no alternative text",
        "b.html: mgvbp._secret is a private name",
        "b.html: https://cdn.example/x.js is fetched from elsewhere",
        "b.html: c.html leads nowhere",
        "b.html: a.html#y leads to a page without that place",
    ]


def test_every_script_whose_figures_are_quoted_is_in_the_ledger():
    """So that ``python docs/figures_check.py`` can say whether they are out of date."""
    check = runpy.run_path(str(DOCS / "figures_check.py"))
    tools = {
        f"docs/{name}.py" for name in ("notebooks", "figures_check", "site_check", "reproduction_page")
    }  # which print no figures
    assert set(check["quoted"]()) - tools == set(check["ledger"]())
    for script, (measured, packages) in check["ledger"]().items():
        with case(script):
            assert datetime.strptime(measured, "%Y-%m-%d %H:%M")
            assert all((ROOT / "src/mgvbp" / package).is_dir() for package in packages)
            assert (ROOT / script).is_file()


def test_scripts_import_names_that_exist():
    """Benchmarks run too long for tests; a name that moved would be noticed by the first user only."""
    scripts = [
        path for folder in ("benchmarks", "docs", "examples") for path in (ROOT / folder).rglob("*.py")
    ]
    imported = {
        (node.module, alias.name)
        for script in scripts
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "mgvbp"
        for alias in node.names
    }
    assert len(imported) > 60
    for module, name in sorted(imported):
        exec(f"from {module} import {name}", {})
