"""The page: whole, hostile to nobody, silent about who is who, and about what hidden checks expect."""

import re
from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest

from exercise_kit.reasons import Reason
from exercise_kit.report.collect import collect_class_work
from exercise_kit.report.manual_grading import ManualGrading, Question
from exercise_kit.report.page import render_lecture_page, render_private_page
from exercise_kit.report.plots import count_tenths
from exercise_kit.report.tally import tally_class
from tests.html import Page
from tests.kit.report.conftest import STRIPS, make_exercise_result, make_failed_check, make_passed_check

TODAY = date(2026, 3, 7)
HOSTILE = "<script>alert(1)<"
NAMES = ["Zoë Quist", "محمد علي", "张伟", "🦊fox", HOSTILE, "\u202eevil", "q" * 180, "no utf\udcff8", "javascript:x"]


def render_page(class_folder):
    return render_lecture_page(tally_class(collect_class_work(class_folder.folder)), "vision", TODAY)


@pytest.fixture
def class_with_everything(class_folder):
    """A class with everything: named, unnamed, unwritten, unasked; hostile names and words."""
    wrong = make_failed_check(misconception="column order", seen="raised `Quist <img src=x onerror=alert(1)>`")
    odd = make_failed_check("test_odd", seen=f"it gave {HOSTILE}")
    unwritten = make_exercise_result(
        "unpatchify",
        make_failed_check(),
        max_score=5.0,
        problem="unpatchify is not written yet",
        reason=Reason.NOT_WRITTEN,
    )
    for name in NAMES:
        class_folder.keep(
            class_folder.hand_in(name, patchify=STRIPS),
            make_exercise_result("patchify", wrong, make_passed_check(), score=4.0, seconds=0.1),
            make_exercise_result("conv_from_linear", odd, max_score=5.0, seconds=0.1),
            unwritten,
            flags=("reference-copied",),
            reason=f"of {name}",
        )
    class_folder.hand_in("rejected").write_text("{")
    class_folder.hand_in("waiting")
    return class_folder


def test_a_page_is_whole(class_with_everything):
    outline = Page(render_page(class_with_everything))
    ids, headings = (
        outline.find_attribute_values("id"),
        [int(tag[1]) for tag in outline.tags if re.fullmatch("h[1-6]", tag)],
    )
    assert len(ids) == len(set(ids))
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    assert outline.tags.count("caption") == outline.tags.count("table")
    assert outline.tags.count("th") == len(outline.find_attribute_values("scope", "th"))
    assert ("html", "lang", "en") in outline.attributes
    pictures = outline.find_attribute_values("aria-label", "svg")
    assert len(pictures) == 4
    assert all(pictures)


def test_a_page_needs_nobody_and_runs_nothing(class_with_everything):
    text = render_page(class_with_everything)
    outline = Page(text)
    assert {*outline.tags}.isdisjoint({"script", "img", "iframe", "object", "embed", "link", "form", "image"})
    assert not [name for _, name, _ in outline.attributes if name.startswith("on")]
    links = [value for _, name, value in outline.attributes if name in ("href", "src", "xlink:href")]
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= {*outline.find_attribute_values("id")}
    assert "url(http" not in text
    assert not re.search(r"\burl\((?!#)", text)


def test_a_page_names_nobody_and_leaks_nothing(class_with_everything):
    text = render_page(class_with_everything)
    for word in ("Quist", "Zoë", "محمد", "张伟", "fox", "alert", "evil", "qqqq", "no utf", "submitted/", "0.4711"):
        assert word not in text
    assert str(class_with_everything.folder) not in text
    assert "Expected" not in text
    text.encode("utf-8")


def test_a_page_says_what_there_is(class_with_everything):
    text = render_page(class_with_everything)
    for words in (
        "column order",
        "Which grid axis varies fastest in your reshape?",
        "01_patchify, Two kinds of axes",
        "return images.reshape(batch, -1, channels * patch_size ** 2)",
        "1 notebook is not graded yet",
        "vit-course grade submitted",
        "reference-copied",
        "it is no notebook, for it is not JSON",
        "7 March 2026",
        f"{len(NAMES)} answers",
        "not written",
    ):
        assert words in text


def test_the_private_page_names_everybody(class_with_everything):
    text = render_private_page(tally_class(collect_class_work(class_with_everything.folder)), "vision", TODAY)
    outline = Page(text)
    assert "script" not in outline.tags
    who, remarks, whom_to_talk_to = len(NAMES) + 2, len(NAMES) + 1, len(NAMES)
    assert outline.tags.count("bdi") == who + remarks + whom_to_talk_to
    for name in ("Zoë Quist", "محمد علي", "张伟", "🦊fox", "&lt;script&gt;", " evil", "no utf 8"):
        assert name in text
    assert "not for the lecture" in text
    text.encode("utf-8")


def test_an_empty_class_has_a_page_that_says_so(class_folder):
    text = render_page(class_folder)
    assert "Nobody has handed in anything yet." in text
    assert "Nothing to report yet" in text
    assert "table" not in Page(text).tags
    assert "Nobody has handed in" in render_private_page(
        tally_class(collect_class_work(class_folder.folder)), "vision", TODAY
    )


def test_a_class_of_which_nothing_is_graded(class_folder):
    class_folder.hand_in("ann")
    text = render_page(class_folder)
    assert "1 notebook is not graded yet" in text
    assert "What to teach next" not in text
    Page(text)


def test_a_class_without_a_mistake(class_folder):
    class_folder.keep(class_folder.hand_in("ann"))
    text = render_page(class_folder)
    assert "No points were lost." in text
    assert "Nobody made a mistake that the course knows by name." in text
    Page(text)


def test_older_results_are_shown_and_said_to_be_older(class_folder):
    class_folder.keep(
        class_folder.hand_in("ann"),
        make_exercise_result("patchify", make_failed_check(misconception="column order"), max_score=80.0),
    )
    text = render_page(class_folder)
    assert "1 notebook was graded with older checks" in text
    assert "column order" in text


def test_questions_to_be_graded_by_hand(class_folder):
    work = collect_class_work(class_folder.folder)

    def render_with(book):
        return render_lecture_page(tally_class(replace(work, manual_grading=book)), "vision", TODAY)

    shown = render_with(ManualGrading((Question("01_patchify", "why-<b>", 9, 4),)))
    assert "4 written answers wait" in shown
    assert "why-&lt;b&gt;" in shown
    locked = render_with(ManualGrading(problem="/class/gradebook.db is locked"))
    assert "could not be read, so nobody can say what waits in it" in locked
    assert "ada" not in locked, "the page is shown in a lecture"


def test_the_same_class_gives_the_same_page(class_with_everything):
    assert render_page(class_with_everything) == render_page(class_with_everything)


def test_tenths():
    assert count_tenths([0.0, 0.05, 0.3, 0.7, 0.99, 1.0]) == [2, 0, 0, 1, 0, 0, 0, 1, 0, 2]
