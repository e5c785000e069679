"""The built site: links that lead somewhere, pictures with words, nothing from elsewhere, and pages in a browser.

`make site-check` looks at the whole of it; without VIT_COURSE_SITE, the folder of a built one, a part of it is built.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import re
import shutil
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import playwright.sync_api as playwright
import pytest

from tests.e2e.browser import needs_chromium, open_browser, open_page, take_screenshot

needs_sphinx = pytest.mark.skipif(
    any(importlib.util.find_spec(each) is None for each in ("myst_nb", "pydata_sphinx_theme")),
    reason='the site\'s packages are not installed: pip install -e ".[site]"',
)
pytestmark = [needs_sphinx, pytest.mark.proof]
ROOT = Path(__file__).parents[2]
PART = ("patchify", "train_one_epoch")
MISTAKE = "mistakes/patchify/column-order.html"
SAMPLE = ["index.html", "lessons/01_patchify.html", "lessons/04_block.html", "guides/index.html",
          "guides/instructors/quickstart.html", "guides/instructors/jupyterhub.html", "mistakes/index.html",
          "mistakes/patchify/index.html", MISTAKE, "mistakes/seen/nothing-to-see.html", "search.html"]  # fmt: skip
# what a browser fetches by itself; a link is followed only by its reader
FETCHED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("source", "srcset"),
}
FETCHED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload"}


class Page(HTMLParser):
    """What a page leads to, what it fetches, its anchors, and its pictures."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.unspoken: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}  # type: ignore[misc]
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        fetched = tag != "link" or bool(FETCHED_LINKS & set(str(found.get("rel")).split()))
        self.fetched += [
            str(found[key]) for key in ("src", "href", "srcset") if (tag, key) in FETCHED and key in found and fetched
        ]
        if tag == "img" and not (found.get("alt") or "").strip() and found.get("aria-hidden") != "true":
            self.unspoken.append(str(found.get("src"))[:80])


@pytest.fixture(scope="module")
def site_maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "docs" / "site" / "make_site.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(site_maker: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if built := os.environ.get("VIT_COURSE_SITE"):
        return Path(built).resolve()
    out = tmp_path_factory.mktemp("site")
    site_maker.write_site_sources(out / "source", PART)
    with pytest.MonkeyPatch.context() as environment:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):  # whoever asks a proxy gets no answer
            environment.setenv(name, "http://127.0.0.1:9")
        assert site_maker.build_site(out) == 0
    return (out / "html").resolve()


@pytest.fixture(scope="module")
def parsed_pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_link_inside_leads_to_a_page_and_to_a_place_on_it(site: Path, parsed_pages: dict[Path, Page]) -> None:
    dead = set()
    for path, page in parsed_pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = {*parsed_pages[target].anchors, "top"} if target in parsed_pages else set()
            if not target.is_file() or (parts.fragment and anchors and unquote(parts.fragment) not in anchors):
                dead.add((path.relative_to(site).as_posix(), link))
    assert dead == set()


def test_the_first_page_names_the_minutes_of_the_table(site: Path) -> None:
    row = re.search(r"^\| `00_start` \| (\d+) \|", (ROOT / "docs" / "learn.md").read_text("utf-8"), re.MULTILINE)
    assert row
    assert f"about {row[1]} minutes" in (site / "index.html").read_text("utf-8")


def test_every_guide_has_a_page(site: Path) -> None:
    docs = ROOT / "docs"
    guides = {path.relative_to(docs) for path in docs.rglob("*.md") if (docs / "site") not in path.parents}
    assert len(guides) > 10
    assert [guide for guide in guides if not (site / "guides" / guide).with_suffix(".html").is_file()] == []
    assert 'href="guides/instructors/quickstart.html"' in (site / "index.html").read_text(encoding="utf-8")


def test_pages_fetch_nothing_from_elsewhere(site: Path, parsed_pages: dict[Path, Page]) -> None:
    elsewhere = re.compile(r"(?:https?:)?//")
    assert {each for page in parsed_pages.values() for each in page.fetched if elsewhere.match(each)} == set()
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert [each for text in styles for each in re.findall(r"(?:@import|url\()\s*[\"'(]*https?://[^\"')]*", text)] == []


def test_every_picture_has_words(site: Path, parsed_pages: dict[Path, Page]) -> None:
    unspoken = {
        path.relative_to(site).as_posix(): page.unspoken for path, page in parsed_pages.items() if page.unspoken
    }
    assert unspoken == {}
    assert any("<img" in path.read_text(encoding="utf-8") for path in parsed_pages)


def test_a_formula_is_mathml_and_no_source_of_it_is_left(site: Path) -> None:
    lesson = (site / "lessons" / "04_block.html").read_text(encoding="utf-8")
    assert "<math" in lesson
    assert "<msqrt" in lesson
    assert "mathjax" not in lesson.lower()


def test_a_renamed_mistake_s_page_leads_to_the_new_one(
    site_maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the list of published pages and the same builder, on a site of one page."""
    source = tmp_path / "source"
    (source / "mistakes" / "patchify").mkdir(parents=True)
    (source / "_static").mkdir()
    (source / "index.md").write_text("# Home\n\n```{toctree}\nmistakes/patchify/column-order\n```\n", encoding="utf-8")
    (source / "mistakes" / "patchify" / "column-order.md").write_text("# Column order\n", encoding="utf-8")
    home = tmp_path / "docs" / "site"
    home.mkdir(parents=True)
    shutil.copytree(ROOT / "docs" / "site" / "_static", home / "_static")
    (home / "conf.py").write_text((ROOT / "docs/site/conf.py").read_text(encoding="utf-8"), encoding="utf-8")
    (home / "published.txt").write_text("patchify/by-columns -> patchify/column-order\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(site_maker, "HERE", home)
    assert site_maker.build_site(tmp_path) == 0
    old = (tmp_path / "html" / "mistakes" / "patchify" / "by-columns.html").read_text(encoding="utf-8")
    (target,) = set(re.findall(r'url=([^"]+)"', old))
    there = (tmp_path / "html" / "mistakes" / "patchify" / target).resolve()
    assert there == (tmp_path / "html" / "mistakes" / "patchify" / "column-order.html").resolve()
    assert there.is_file()


@pytest.fixture(scope="module")
def site_address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: playwright.Browser, site_address: str) -> Iterator[playwright.Page]:
    """A page that may fetch from the site alone, and whose complaints are kept in ``page.complaints``."""
    opened = open_page(browser, viewport={"width": 1200, "height": 900}, base_url=site_address)
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "request", lambda sent: None if sent.url.startswith((site_address, "data:")) else complaints.append(sent.url)
    )
    opened.complaints = complaints  # type: ignore[attr-defined]
    yield opened
    opened.close()


def name_picture(path: str) -> str:
    return f"site-{path.removesuffix('.html').replace('/', '-')}"


@needs_chromium
@pytest.mark.parametrize("path", SAMPLE)
def test_a_page_opens_without_a_complaint(page: playwright.Page, path: str) -> None:
    page.goto(path)
    page.wait_for_load_state("networkidle")
    assert page.complaints == []  # type: ignore[attr-defined]
    assert page.locator("h1").first.is_visible()
    take_screenshot(page, name_picture(path))


@needs_chromium
def test_search_finds_a_mistake_by_its_name_and_by_what_it_does(page: playwright.Page) -> None:
    for words in ("column order", "tokens run down the columns"):
        page.goto(f"search.html?q={words.replace(' ', '+')}")
        page.locator(f'#search-results a[href*="{MISTAKE}"]').first.wait_for()
    take_screenshot(page, "site-search-found")
    assert page.complaints == []  # type: ignore[attr-defined]


def measure_contrast(page: playwright.Page, selector: str) -> float:
    """The contrast of an element's text with what lies behind it, after WCAG 2.2."""
    script = """selector => {
      const light = color => {
        const channels = color.match(/[\\d.]+/g).slice(0, 3).map(each => each / 255)
        const linear = channels.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
      }
      const element = document.querySelector(selector)
      let behind = element
      while (behind.parentElement && /rgba\\(.*, 0\\)|transparent/.test(getComputedStyle(behind).backgroundColor))
        behind = behind.parentElement
      const pair = [light(getComputedStyle(element).color), light(getComputedStyle(behind).backgroundColor)].sort()
      return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05)
    }"""
    return float(page.evaluate(script, selector))


@needs_chromium
@pytest.mark.parametrize("path", [MISTAKE, "lessons/01_patchify.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_reads_well_in_both_themes(browser: playwright.Browser, site_address: str, path: str, scheme: str) -> None:
    with browser.new_context(
        color_scheme=scheme, base_url=site_address, viewport={"width": 390, "height": 844}
    ) as context:
        page = open_page(context)
        page.goto(path)
        assert page.locator("html").get_attribute("data-theme") == scheme
        for selector in ("article p", "article p a", "article h1", "article pre", "footer p"):
            assert measure_contrast(page, selector) >= 4.5, selector
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 1, "a phone has to scroll sideways"
        take_screenshot(page, name_picture(f"phone-{scheme}-{path}"))
