"""What a log comes to: best points, time without pauses, mistakes mended, and what comes next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from exercise_kit.cli.commands import progress as command
from exercise_kit.progress import log
from exercise_kit.progress.show import render_as_html
from exercise_kit.progress.summary import LessonProgress, Progress, progress, summarize_events
from tests.outline import POINTS
from vit_course.exercises.catalog import EXERCISES

LESSON = "01_patchify"


def make_event(t: float, exercise: str = "patchify", **facts: Any) -> dict[str, Any]:
    begun = {"v": 1, "t": t, "s": "a", "kind": "check", "lesson": EXERCISES[exercise].lesson, "exercise": exercise}
    return {**begun, "points": POINTS[LESSON]["patchify"], "share": 0.0, "state": "failed", "mistakes": [], **facts}


def make_passed_event(t: float, exercise: str = "patchify", **facts: Any) -> dict[str, Any]:
    return make_event(t, exercise, share=1.0, state="passed", **facts)


def summarize_lesson(*events: dict[str, Any], name: str = LESSON) -> LessonProgress:
    found = summarize_events(events, Path("nowhere"))
    return next(each for each in found.lessons if each.name == name)


def test_the_best_report_of_an_exercise_counts() -> None:
    found = summarize_lesson(make_event(1, share=0.25), make_passed_event(2), make_event(3, share=0.5))
    assert (found.earned, found.worth, found.done) == (
        POINTS[LESSON]["patchify"],
        sum(POINTS[LESSON].values()),
        ("patchify",),
    )
    assert found.to_do == ("unpatchify", "PatchEmbedding", "conv_from_linear", "fix_patchify")


def test_a_mistake_is_mended_when_its_exercise_passes_later() -> None:
    first = make_event(1, mistakes=["column order"]), make_event(2, mistakes=["column order", "no error"])
    elsewhere = make_event(3, "unpatchify", mistakes=["column order"])
    assert (summarize_lesson(*first, elsewhere).met, summarize_lesson(*first, elsewhere).mended) == (3, 0)
    found = summarize_lesson(*first, elsewhere, make_passed_event(4), make_event(5, mistakes=["a new one"]))
    assert (found.met, found.mended) == (4, 2)


def test_a_long_pause_is_no_time_spent() -> None:
    signs = [{"v": 1, "t": t, "s": "a", "kind": "active"} for t in (0, 60, 600, 600 + 86_400, 600 + 86_400 + 30)]
    assert summarize_lesson(*signs[:4], {**signs[4], "lesson": LESSON}).seconds == 630


def test_what_comes_before_a_kernel_s_first_check_belongs_to_its_lesson() -> None:
    guess = {"v": 1, "t": 1, "s": "b", "kind": "guess", "name": "rows", "guess": 1}
    result = {"v": 1, "t": 2, "s": "b", "kind": "result", "name": "rows", "result": 1, "right": True}
    found = summarize_lesson(
        make_event(0, "normalize_images"), guess, make_passed_event(3, s="b"), {**result, "s": "c"}
    )
    assert (found.guesses, found.right) == (1, 1)


def test_what_only_the_judge_can_measure_is_done() -> None:
    found = summarize_lesson(make_event(1, "vit_cifar", share=0.125, state="judged"), name="07_experiments")
    assert "vit_cifar" in found.done


def test_the_next_is_in_the_lesson_that_was_worked_on_last() -> None:
    assert summarize_events([], Path()).next == "Next: `normalize_images`, in 00_start."
    assert summarize_events([make_passed_event(1)], Path()).next == "Next: `unpatchify`, in 01_patchify."
    assert summarize_events([make_passed_event(1)], Path(), current_lesson=LESSON).next == "Next: `unpatchify`, here."


def make_events_of_all_done() -> list[dict[str, Any]]:
    return [make_passed_event(number, name, mistakes=["a"]) for number, name in enumerate(EXERCISES)]


def test_the_card_comes_at_the_end_with_one_s_own_numbers(tmp_path: Path) -> None:
    (tmp_path / "my_vit.py").write_text("# %% patchify\n# %% scratch\n# %% EncoderBlock\n")
    result = {"v": 1, "t": 99, "s": "a", "kind": "result", "name": "test-accuracy", "result": 61.25, "right": None}
    before = summarize_events(make_events_of_all_done()[:-1], tmp_path)
    found = summarize_events([*make_events_of_all_done(), result], tmp_path)
    assert not before.complete
    assert "<img" not in render_as_html(before)
    assert found.complete
    assert 'src="data:image/png;base64,' in render_as_html(found)
    words = {each.get_text() for each in found.card().axes[0].texts}
    assert "Your ViT: 1 of 6 parts are yours." in str(found)
    assert f"Mistakes the checks named: {len(EXERCISES)}, all repaired." in str(found)
    assert {"61.2 % right on test images, by a model of my own", "2 parts of my own kept in my_vit.py"} <= words
    assert f"{len(EXERCISES)} / {len(EXERCISES)}" in words  # mistakes mended


def test_it_shows_itself_as_a_table_and_as_text(tmp_path: Path) -> None:
    found = summarize_events([make_passed_event(1)], tmp_path, current_lesson=LESSON)
    page, text = found._repr_mimebundle_()["text/html"], str(found)
    assert page.count("<tr") == len(found.lessons) + 1
    assert 'aria-current="true"' in page
    assert '<div style="overflow-x:auto"><table' in page
    assert f"1 of {len(EXERCISES)} exercises done" in text
    assert "Your ViT: 0 of 6 parts are yours." in text
    assert "01_patchify" in text
    assert "\x1b" not in text


def test_who_gives_a_name_is_told_that_none_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert progress("01_patchify").lessons
    assert "Write `progress()`, with nothing in the brackets" in capsys.readouterr().out


def test_a_name_in_a_file_is_text_on_the_page() -> None:
    found = Progress((LessonProgress("<script>", '"><script>', to_do=("<b>",)),))
    assert "<script>" not in render_as_html(found)
    assert "<b>" not in render_as_html(found)


def run_refused(capsys: pytest.CaptureFixture[str], *arguments: Any, **options: Any) -> str:
    with pytest.raises(Exception, match=r"^1?$"):
        command(*arguments, **options)
    return " ".join(capsys.readouterr().err.split())


def test_the_command_says_what_it_cannot_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, of_teacher, empty = tmp_path / "file", tmp_path / "class", tmp_path / "empty"
    file.write_text("")
    of_teacher.mkdir()
    (of_teacher / "nbgrader_config.py").write_text("")
    empty.mkdir()
    assert "there is no folder" in run_refused(capsys, tmp_path / "nowhere")
    assert "is not a folder" in run_refused(capsys, file)
    assert "vit-course report" in run_refused(capsys, of_teacher)
    assert "vit-course report" in run_refused(capsys, of_teacher, delete=True)
    assert "No progress is kept" in run_refused(capsys, empty)
    (empty / log.FILE).write_text(json.dumps(make_passed_event(1)))
    assert "a .png or an .svg" in run_refused(capsys, empty, card=tmp_path / "card.txt")
    (empty / log.FILE).unlink()
    (empty / log.FILE).mkdir()
    assert "cannot be read" in run_refused(capsys, empty)


def test_the_command_finds_shows_draws_and_deletes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notebooks" / LESSON).mkdir(parents=True)
    kept = tmp_path / "notebooks" / log.FILE
    kept.write_text(f"{json.dumps(make_passed_event(1))}\nhalf a li")
    for folder in (tmp_path, tmp_path / "notebooks", tmp_path / "notebooks" / LESSON):
        command(folder)
        shown = capsys.readouterr().out
        assert f"1 of {len(EXERCISES)} exercises done" in shown
        assert "1 line of my_progress.jsonl cannot be read" in shown
    command(tmp_path, card=tmp_path / "card.svg")
    assert "<svg" in (tmp_path / "card.svg").read_text()
    assert kept.exists()
    command(tmp_path, delete=True)
    assert not kept.exists()
