"""The course's own route: the core fits ten hours, every exercise has its place, and progress shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from exercise_kit.engine.course import course
from exercise_kit.engine.release_settings import ReleaseSettings, Route
from exercise_kit.progress import summary as summarizing
from exercise_kit.progress.show import render_as_html, render_as_text
from exercise_kit.progress.summary import summarize_events

ROOT = Path(__file__).parents[2]
OUTLINE = json.loads((ROOT / "vit_course" / "exercises" / "outline.json").read_bytes())
CORE = [name for name, facts in OUTLINE.items() if facts["core"]]


def test_the_core_is_the_client_s_six_topics_and_the_start_and_fits_ten_hours():
    assert CORE == ["00_start", "01_patchify", "02_positions", "03_attention", "04_block", "05_vit", "07_experiments"]
    assert sum(facts["core_minutes"] for facts in OUTLINE.values()) <= 600


@pytest.mark.parametrize("lesson", OUTLINE)
def test_every_exercise_has_minutes_a_difficulty_and_an_importance(lesson):
    tasks = OUTLINE[lesson]["tasks"]
    named = {*OUTLINE[lesson]["points"], *OUTLINE[lesson]["questions"]}
    assert {name for name in tasks if " " not in name} == named
    assert sum(each["minutes"] for each in tasks.values()) < OUTLINE[lesson]["minutes"]


def test_what_later_exercises_of_the_core_call_may_not_be_skipped():
    built_upon = {"patchify", "PatchEmbedding", "add_class_token", "scaled_dot_product_attention", "split_heads"}
    built_upon |= {"MultiHeadSelfAttention", "Mlp", "EncoderBlock", "VisionTransformer"}
    skipped = {name for facts in OUTLINE.values() for name, task in facts["tasks"].items() if task["skip"]}
    assert built_upon & skipped == set()


def make_passed_event(name, lesson):
    return {
        **{"v": 1, "t": 1.0, "s": "one", "kind": "check", "lesson": lesson, "exercise": name},
        **{"points": 2, "share": 1.0, "state": "passed", "mistakes": []},
    }


def test_progress_counts_the_core_and_marks_its_lessons(tmp_path):
    found = summarize_events(
        [make_passed_event("patchify", "01_patchify"), make_passed_event("mixup", "07_experiments")], tmp_path
    )
    count = sum(len(each.list_core_exercises((*each.done, *each.to_do))) for each in found.lessons)
    assert f"2 of {len(course().exercises)} exercises done (1 of {count} of the core)" in render_as_text(found)
    first, other = (len(OUTLINE[name]["points"]) for name in ("01_patchify", "06_training"))
    assert re.search(rf"^01_patchify · core +1 of {first}", render_as_text(found), re.MULTILINE)
    assert re.search(rf"^06_training +0 of {other}", render_as_text(found), re.MULTILINE)
    assert "01_patchify · core" in render_as_html(found)


def test_progress_says_that_what_comes_next_may_be_skipped(tmp_path):
    names = ("patchify", "unpatchify", "PatchEmbedding")
    found = summarize_events([make_passed_event(name, "01_patchify") for name in names], tmp_path)
    assert found.next == "Next: `conv_from_linear`, in 01_patchify. It may be skipped."


def test_of_a_release_of_the_core_progress_shows_its_lessons(tmp_path, monkeypatch):
    monkeypatch.setattr(summarizing, "read_release_settings", lambda: ReleaseSettings(Route.CORE))
    assert [each.name for each in summarize_events([], tmp_path).lessons] == CORE
    known = [make_passed_event("split_indices", "06_training")]
    assert "06_training" in [each.name for each in summarize_events(known, tmp_path).lessons]
