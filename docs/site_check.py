"""Check the built site: its links lead somewhere, it needs no network, and it can be read without seeing it.

Run:  python docs/site_check.py docs/_build   (what ``sphinx-build`` has written; prints what is wrong and returns 1)
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements that a browser fetches by itself, and the attribute that says from where."""


class Page(HTMLParser):
    """What a page links to, what it fetches, the places that can be linked to, and what is wrong with it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.places: set[str] = {""}
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.wrong: list[str] = []
        self.headings = 0
        self.feed(file.read_text(encoding="utf-8"))
        if self.headings != 1 and file.name != "search.html":  # whose heading the theme writes by script
            self.wrong.append(f"{self.headings} headings of the first level")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element is, and what it lacks."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[key] for key in ("id", "name") if key in given}
        self.headings += tag == "h1"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in FETCHED and given.get("rel") not in ("canonical", "index", "search", "next", "prev"):
            self.fetched.append(given.get(FETCHED[tag], ""))
        if tag == "html" and not given.get("lang"):
            self.wrong.append("no language")
        if tag == "img" and not given.get("alt", "").strip():
            self.wrong.append(f"{given.get('src')} has no alternative text")
        if tag == "svg" and given.get("role") == "img" and not given.get("aria-label"):
            self.wrong.append("a formula has no label")
        private = re.search(r"(?:^|\.)_[a-z]\w*$", given.get("id", ""))
        if tag == "dt" and private:
            self.wrong.append(f"{given['id']} is a private name")


def problems(site: Path) -> list[str]:
    """What is wrong with the pages of a site, a line each."""
    pages = {file: Page(file) for file in sorted(site.rglob("*.html")) if "_static" not in file.parts}
    found = []
    for file, page in pages.items():
        wrong = list(page.wrong)
        wrong += [f"{address} is fetched from elsewhere" for address in page.fetched if "//" in address]
        local = [*page.links, *(address for address in page.fetched if address)]
        for link in local:
            path, _, place = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
            if not target.is_file():
                wrong.append(f"{link} leads nowhere")
            elif target in pages and unquote(place) not in pages[target].places:
                wrong.append(f"{link} leads to a page without that place")
        found += [f"{file.relative_to(site)}: {line}" for line in dict.fromkeys(wrong)]
    return found


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]).resolve())
    print("\n".join(lines) or "the site has no dead link, needs no network, and all its pictures have a text")
    sys.exit(bool(lines))
