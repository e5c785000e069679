"""The cheat sheet is what its script writes now, its operations are the lessons', and it prints on two pages."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.waiting import GIVE_UP

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("cheat_sheet", ROOT / "docs" / "cheat_sheet.py")
sheet = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sheet)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def test_the_page_is_fresh():
    assert sheet.SHEET.read_text("utf-8") == sheet.make_sheet_html(), "run `python docs/cheat_sheet.py`"


@pytest.mark.parametrize("name", [each for each in sheet.OPERATIONS if each.isidentifier() and each != "broadcasting"])
def test_every_operation_is_one_that_a_lesson_uses(name):
    sources = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "solutions").glob("*.py")))
    assert re.search(rf"\.{name}\(", sources)


def test_it_has_every_exercise_of_the_core_that_may_not_be_skipped():
    home = ROOT / "vit_course" / "exercises"
    outline, stubs = (json.loads((home / name).read_bytes()) for name in ("outline.json", "stubs.json"))
    text = sheet.SHEET.read_text("utf-8")
    for facts in outline.values():
        for name, task in facts["tasks"].items():
            if name in stubs:
                assert (f"<code>{name}(" in text) == (facts["core"] and not task["skip"])


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to print with")
def test_it_prints_on_two_pages(tmp_path):
    printed = tmp_path / "sheet.pdf"
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [CHROMIUM, *options, "--no-pdf-header-footer", f"--print-to-pdf={printed}", sheet.SHEET.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=GIVE_UP)
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed.read_bytes())) == 2
