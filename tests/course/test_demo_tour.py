"""What the demo prints of a graded class."""

from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from exercise_kit.judge.result import ExerciseResult
from exercise_kit.nbgrader.demo_class import Graded
from vit_course import check, demo
from vit_course.demo import STRIPS, _make_points_table, run_demo


@pytest.fixture
def console():
    return Console(width=80, record=True, file=StringIO())


@pytest.fixture
def report_with_mistake():
    scope = {"torch": torch}
    exec(STRIPS, scope)
    report = check("patchify", scope["patchify"], points=8).as_dict()
    unwritten = ExerciseResult("unpatchify", 0.0, 5.0, problem="unpatchify is not written yet. " * 4)
    exercises = (("patchify", 4.5714, 8.0), ("a_long_name_of_an_exercise", 0.0, 5.0))
    reports = ExerciseResult.from_dict(report), unwritten
    return Graded("cleo", "a plain reshape", 4.5714, 13.0, exercises, reports, Path("cleo.html"))


def test_the_table_of_a_class_fits_a_terminal(console, report_with_mistake):
    console.print(_make_points_table([report_with_mistake] * 4))
    lines = console.export_text().splitlines()
    assert [line.split()[0] for line in lines] == ["points", "patchify", "a_long_name_of_an_exercise", "all"]
    assert lines[1].count("4.57 of 8") == lines[3].count("4.57 of 13") == 4
    assert "…" not in "".join(lines)


def test_each_part_says_first_how_long_it_takes(tmp_path, console, report_with_mistake, monkeypatch):
    said = {}

    def replace_part(name, result):
        def record_last_line(*_, **__):
            said[name] = console.export_text(clear=False).splitlines()[-1]
            return result

        monkeypatch.setattr(demo, name, record_last_line)

    replace_part("build", SimpleNamespace(written=[], unchanged=[]))
    replace_part("new_class", SimpleNamespace(path=tmp_path))
    replace_part("grade_demo_class", [report_with_mistake])
    replace_part("train_demo", demo.DemoResult(0.5, 60.0, 100, 9, tmp_path, tmp_path))
    run_demo(tmp_path / "demo", tmp_path, console)
    del said["new_class"]  # with "grade_demo_class" one part
    assert [name for name, line in said.items() if not line.startswith("This takes ")] == []
    text = " ".join(console.export_text().split())
    assert "strips not squares" in text
    assert "50.0% of the validation drawings are named rightly by a ViT of 9 parameters, which was shown 100" in text
    assert "in 60 seconds. A faster machine" in text
