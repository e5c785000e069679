"""The whole ViT of lesson 00, and how each core lesson ends with it."""

from __future__ import annotations

import ast

import pytest
import torch
from torch import nn

import vit_course
from exercise_kit.authoring.lesson import Cell, Role, read_lesson
from tests.course.test_quoted_numbers import ROOT
from vit_course import VisionTransformer, whole_vit

ENDS = ("00_start", "01_patchify", "02_positions", "03_attention", "04_block", "05_vit")


def list_experiment_cells(lesson: str) -> list[Cell]:
    cells = read_lesson(ROOT, ROOT / "solutions" / f"{lesson}.py").cells
    return [each for each in cells if each.role is Role.CODE and "experiment" in each.tags]


def test_the_program_of_lesson_00_is_the_model_in_thirty_lines():
    (definition,) = (
        each for each in ast.parse(list_experiment_cells("00_start")[-1].source).body if isinstance(each, ast.ClassDef)
    )
    assert definition.end_lineno - definition.lineno < 30
    names = {"torch": torch, "nn": nn, **{name: getattr(vit_course, name) for name in vit_course.__all__}}
    exec(ast.unparse(definition), names)
    first, ours = names["FirstViT"](), VisionTransformer(whole_vit.SMALL)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.1)
    first.load_state_dict(ours.state_dict())
    images = torch.randn(2, 3, 32, 32)
    assert torch.allclose(first(images), ours(images), atol=1e-3)  # eps is torch's there, the paper's here
    assert first(images).std() > 0.1


@pytest.mark.parametrize("lesson", ENDS)
def test_each_core_lesson_to_the_whole_model_ends_by_running_it(lesson):
    last = ast.unparse(ast.parse(list_experiment_cells(lesson)[-1].source).body[-1])
    assert last == ("learn_drawings(FirstViT())" if lesson == "00_start" else "learn_drawings(your_vit())")


def test_it_learns_the_drawings_and_shows_what_it_answers(monkeypatch, capsys):
    monkeypatch.setenv("VIT_COURSE_BUDGET", "small")
    figure = whole_vit.learn_drawings(whole_vit.your_vit())
    said = capsys.readouterr().out
    assert "Your ViT: 0 of 6 parts are yours." in said
    assert "of 1,000 drawings that it has not seen" in said
    assert len([axes for axes in figure.axes if axes.get_title()]) == 8
