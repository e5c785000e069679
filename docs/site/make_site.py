"""The site's sources, put together from what the repository has: guides, students' notebooks, known mistakes.

    python docs/site/make_site.py OUT

writes ``OUT/source``, and by Sphinx ``OUT/html``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from exercise_kit.authoring.addresses import read_addresses
from exercise_kit.authoring.mistake_pages import PagesError, map_redirects, render_pages, write_pages
from exercise_kit.authoring.notebook import FILE as BADGE

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PUBLISHED = HERE / "published.txt"
SHEET = ROOT / "docs" / "cheat_sheet.html"
OUTLINE = ROOT / "vit_course" / "exercises" / "outline.json"
_LINK = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)\s#]+)((?:#[^)\s]*)?\))")
# where a file of the repository stands on the site
_PLACES = {"docs": "guides", "docs/instructors": "guides/instructors", "notebooks": "lessons", "figures": "figures"}


def write_site_sources(source: Path, only: Collection[str] = ()) -> None:
    """Write the site's sources into a folder that is made anew.

    Args:
        source: the folder.
        only: the names of exercises, where the mistakes of all are not wanted.

    Raises:
        PagesError: a page that was published would be lost.
    """
    map_redirects(PUBLISHED.read_text("utf-8"))
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE, source, ignore=shutil.ignore_patterns("*.py", "*.txt", "__pycache__"))
    for path in HERE.rglob("*.md"):
        text = _rewrite_links(path).replace(
            "COLAB-OF-LESSON-00", read_addresses(ROOT).make_colab_address("notebooks/00_start.ipynb")
        )
        text = text.replace("MINUTES-OF-LESSON-00", str(_read_lesson_minutes("00_start")))
        (source / path.relative_to(HERE)).write_text(text, encoding="utf-8")
    for home, place in _PLACES.items():
        (source / place).mkdir(exist_ok=True)
        for path in sorted((ROOT / home).iterdir()):
            if home == "figures" and path.suffix == ".svg":
                shutil.copy(path, source / place)
            elif path.suffix == ".md" and place.startswith("guides"):
                (source / place / path.name).write_text(_rewrite_links(path), encoding="utf-8")
            elif path.suffix == ".ipynb":
                (source / place / path.name).write_text(_fold_setup_cell(path), encoding="utf-8")
    write_pages(source, render_pages(only))
    for path in (BADGE, SHEET):
        shutil.copy(path, source / "_static")


def _read_lesson_minutes(lesson: str) -> int:
    """The minutes that the builder has computed for a lesson, as docs/learn.md and the lesson state them."""
    return int(json.loads(OUTLINE.read_text("utf-8"))[lesson]["minutes"])


def _rewrite_links(path: Path) -> str:
    """A Markdown file whose links lead to where their files are on the site, or else in the repository."""

    def point_to_site(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        found = (path.parent / target).resolve()
        if not found.is_relative_to(ROOT) or not found.exists():
            return match[0]
        inside = found.relative_to(ROOT)
        home, name = inside.parent.as_posix(), inside.name
        if home in _PLACES and name.endswith((".md", ".ipynb", ".svg")):
            return f"{before}/{_PLACES[home]}/{name}{after}" if name != "README.md" else match[0]
        return f"{before}{read_addresses(ROOT).repository}/blob/main/{inside.as_posix()}{after}"

    return _LINK.sub(point_to_site, path.read_text("utf-8"))


def _fold_setup_cell(path: Path) -> str:
    """A notebook whose setup cell is folded: it is for machines."""
    notebook = json.loads(path.read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["id"].endswith("setup"):
            cell["metadata"]["tags"] = ["hide-input"]
    return json.dumps(notebook)


def build_site(out: Path) -> int:
    """Build the site of ``out/source`` into ``out/html``; every warning is an error. Returns Sphinx's exit status."""
    options = ["-b", "html", "-c", str(HERE), "-W", "--keep-going", "-q", "-j", "auto"]
    options += ["-D", f"html_static_path={out / 'source' / '_static'}"]  # it has the cheat sheet, too
    return subprocess.run([sys.executable, "-m", "sphinx", *options, out / "source", out / "html"]).returncode


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder for the sources and the site")
    out = parser.parse_args().out.resolve()
    try:
        write_site_sources(out / "source")
    except PagesError as error:
        sys.exit(f"{PUBLISHED.relative_to(ROOT)}: {error}")
    shutil.rmtree(out / "html", ignore_errors=True)
    if status := build_site(out):
        sys.exit(status)
    print(f"The site is in {out / 'html'}: open index.html there, or `python -m http.server -d` that folder.")


if __name__ == "__main__":
    main()
