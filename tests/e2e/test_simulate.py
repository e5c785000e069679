"""A simulated class before the real judge: grading must find the truth, and the report must be fit to be shown."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from exercise_kit.simulate.simulate import read_truth
from tests.e2e.browser import find_cut_on_phones, needs_chromium, open_browser, take_screenshot
from tests.e2e.commands import run_vit_course
from tests.machine import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.proof]
LESSONS = ("00_start", "01_patchify")


@pytest.fixture(scope="module")
def simulated_class(tmp_path_factory):
    """A simulated class, and what its check said."""
    folder = tmp_path_factory.mktemp("simulated") / "a class"
    lessons = [word for lesson in LESSONS for word in ("--lesson", lesson)]
    run_vit_course("simulate", folder, "--students", 12, "--seed", 4, *lessons, cwd=folder.parent)
    return folder, run_vit_course("simulate", folder, "--check", "--jobs", 2, cwd=folder.parent).stdout


def test_a_simulated_class_is_graded_to_its_truth(simulated_class):
    folder, said = simulated_class
    truth = read_truth(folder)
    kinds = Counter(each["kind"] for entry in truth["submissions"] for each in entry["exercises"])
    assert kinds.keys() >= {"right", "misconception", "unwritten", "hostile"}, kinds
    assert "The grades of 24 submissions are what they have to be" in said


def test_a_difference_from_the_truth_is_reported(simulated_class):
    folder, _ = simulated_class
    truth = read_truth(folder)
    original = (folder / "truth.json").read_bytes()
    entry = truth["submissions"][3]
    entry["exercises"][0]["score"] += 1
    (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    other = run_vit_course("simulate", folder, "--check", cwd=folder.parent, status=1)
    (folder / "truth.json").write_bytes(original)
    assert f"{entry['student']}, {entry['lesson']}: {entry['exercises'][0]['name']}" in other.stdout
    assert "1 difference between the grades of 24 submissions and their truth." in other.stderr


@needs_chromium
def test_its_report_opens_in_a_browser(simulated_class, tmp_path):
    """On a wide screen and on a phone: nothing is fetched, nothing complains, nothing sticks out or is cut."""
    folder, _ = simulated_class
    page_file, names_file = tmp_path / "report.html", tmp_path / "names.html"
    run_vit_course("report", folder, "--out", page_file, "--names", names_file, cwd=folder.parent)
    fetched, complaints = [], []
    with open_browser() as browser:
        page = browser.new_page()
        page.on("request", lambda request: fetched.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(page_file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        take_screenshot(page, "report-1280", full_page=True)
        assert page.get_by_role("heading", name="What to teach next").is_visible()
    assert fetched == [page_file.as_uri()]
    assert complaints == []
    assert find_cut_on_phones(page_file, names_file) == []
