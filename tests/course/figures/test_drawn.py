"""The figures as they are kept, and how one is saved: text equivalent and dark colors travel inside the SVG."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from canvas import Canvas
from dark import find_dark_color
from style import BACKGROUND, BLUE, save_figure

FOLDER = Path(__file__).parents[3] / "figures"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
# of side notes and guides, with more on a card than a phone shows
LARGE = {"broken_vit_dots", "broken_vit_list", "class_size", "receptive_growth"}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def canvas():
    made = Canvas(120, "A bar", "One bar.")
    made.box(24, 80, 200, 20, BLUE)
    return made.describe("A blue bar.", "A bar, 200 pixels long & blue: a < b.")


def test_a_saved_figure_says_what_it_shows(canvas, tmp_path):
    root = ElementTree.parse(save_figure(canvas, "bar", tmp_path)).getroot()
    assert root.get("role") == "img"
    assert [child.tag for child in root[:2]] == [f"{SVG}title", f"{SVG}desc"]
    assert [child.text for child in root[:2]] == ["A bar", "A bar, 200 pixels long & blue: a < b."]


def test_the_same_figure_is_the_same_bytes(canvas, tmp_path):
    (tmp_path / "again").mkdir()
    first, again = save_figure(canvas, "bar", tmp_path), save_figure(canvas, "bar", tmp_path / "again")
    assert first.read_bytes() == again.read_bytes()
    assert first.with_suffix(".png").read_bytes() == again.with_suffix(".png").read_bytes()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.svg")), ids=lambda path: path.stem)
def test_a_kept_figure_has_its_text_and_its_dark_colors(path):
    root = ElementTree.parse(path).getroot()
    description = root.findtext(f"{SVG}desc")
    assert f"]({path.name})\n\n{description} (`" in PAGE
    sheets = "".join(sheet.text for sheet in root.iter(f"{SVG}style"))
    rules = dict(re.findall(r'\[(?:fill|stroke)="(#\w{6})"\]\{\w+: (#\w{6})\}', sheets))
    assert rules[BACKGROUND] == find_dark_color(BACKGROUND)
    drawn = {element.get(name) for element in root.iter() for name in ("fill", "stroke")} - {None, "none"}
    assert {color for color in drawn if rules.get(color, color) != find_dark_color(color)} == set()
    styles = " ".join(element.get("style") or "" for element in root.iter())
    assert not re.search(r"(fill|stroke): ?#", styles)


@pytest.mark.parametrize(
    "path", [path for path in sorted(FOLDER.glob("*.svg")) if path.stem not in LARGE], ids=lambda path: path.stem
)
def test_the_letters_of_a_lesson_can_be_read_on_a_phone(path):
    svg = path.read_text(encoding="utf-8")
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    sizes = [100 * float(scale) for scale in re.findall(r"scale\(([\d.]+) -\1\)", svg)]  # glyphs have 100 units an em
    assert 400 / width * min(sizes) >= 10
    assert not re.search(r"<use [^>]*scale", svg), "an exponent is smaller than its line"
