"""Lesson 08: its cells take any picture and any pooling, and its numbers are right."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from exercise_kit.authoring.lesson import Role, read_lesson
from tests.course.test_quoted_numbers import read_note
from vit_course.config import ViTConfig
from vit_course.data import photo, shapes
from vit_course.data.decoding import own_picture
from vit_course.interpret import attention_rollout, mean_attention_distance, predict_with_attention
from vit_course.plots import show_position_similarity
from vit_course.plots_attention import show_maps
from vit_course.recipes import RECIPES
from vit_course.recording import record
from vit_course.vit import VisionTransformer

ROOT = Path(__file__).parents[2]
CELLS = read_lesson(ROOT, ROOT / "solutions" / "08_inside.py").cells
TEXT = " ".join(word for cell in CELLS for word in cell.source.split())
CODE = [cell.source for cell in CELLS if cell.role is Role.CODE]


def find_code_cell(words: str) -> str:
    (source,) = [each for each in CODE if words in each]
    return source


def run_picture_cells(pooling: str) -> dict[str, Any]:
    """Return what the picture's cells find, with a model that has learned nothing."""
    config = ViTConfig(image_size=32, patch_size=8, embed_dim=12, depth=2, num_heads=3, pooling=pooling)
    drawings = shapes(10)
    return {
        "F": F,
        "torch": torch,
        "config": config,
        "model": VisionTransformer(config),
        "pictures": drawings,
        "classes": drawings.classes,
        "own_picture": own_picture,
        "photo": photo,
        "predict_with_attention": predict_with_attention,
        "reveal": lambda *_, **__: None,
        "record": record,
        "show_maps": show_maps,
        "show_position_similarity": show_position_similarity,
        "number": 3,
    }


def save_blank_picture(path: Path) -> str:
    Image.new("RGBA", (90, 30)).save(path)
    return str(path)


@pytest.mark.parametrize("given", ["a doodle", "no picture", "nothing"])
def test_the_picture_cell_takes_what_a_student_has(given, tmp_path, capsys):
    (tmp_path / "b.png").write_text("no picture")
    path = {"a doodle": save_blank_picture(tmp_path / "a.png"), "no picture": str(tmp_path / "b.png"), "nothing": ""}[
        given
    ]
    names = run_picture_cells("class_token")
    exec(find_code_cell('path = ""').replace('path = ""', f"path = {path!r}"), names)
    assert names["mine"].shape == ((3, 30, 30) if given == "a doodle" else (3, 512, 512))
    assert names["seen"].shape == (4, 4)
    first, *shares = capsys.readouterr().out.splitlines()[-4 if given == "no picture" else -3 :]
    assert ("cannot be read" in first) is (given == "no picture")
    assert len(shares) == (3 if given == "no picture" else 2)


@pytest.mark.parametrize("pooling", ["class_token", "mean"])
def test_it_is_shown_to_a_model_of_one_s_own_too_whatever_its_pooling(pooling, tmp_path, capsys):
    names = run_picture_cells(pooling) | {
        "path": save_blank_picture(tmp_path / "a.png"),
        "show_every_head": lambda *_: SimpleNamespace(),
    }
    names["attention_rollout"] = attention_rollout
    for words in ("def look(", "def taken(", "def shrunk("):
        start = find_code_cell(words).index(words)
        exec(find_code_cell(words)[start:].split("\n\n")[0], names)
    for words in ("# your picture from above", "explore_attention(mine", "a model without positions has nothing"):
        exec(find_code_cell(words), names)
    assert names["mine"].min() == 255
    assert names["figure"] is not None
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_change_for_a_mean_of_tokens_is_right():
    assert "`vit-course recipes` lists ways to train;" in TEXT
    (line,) = [line for cell in CELLS for line in cell.source.splitlines() if line.startswith("seen = weights[0].mean")]
    weights = torch.rand(1, 3, 6, 6).softmax(dim=-1)
    names: dict[str, Any] = {"weights": weights, "rows": 2, "columns": 3}
    exec(line, names)
    assert torch.allclose(names["seen"], sum(weights[0, head, row] for head in range(3) for row in range(6)) / 18)
    ours = [recipe for name, recipe in RECIPES.items() if not name.startswith("seed-")]
    pooled = [recipe.config.pooling for recipe in ours]
    assert pooled.count("mean") > len(pooled) / 2
    assert RECIPES["cpu-coffee"].config.pooling == "mean"


def test_the_distances_of_the_second_question_are_right():
    places = torch.cartesian_prod(torch.arange(8), torch.arange(8)).double()
    rim = ((places == 0) | (places == 7)).any(dim=1).double()
    farthest = torch.cdist(places, places).argmax(dim=1)
    heads = {
        "alike": torch.full((64, 64), 1 / 64),
        "rim": (rim / rim.sum()).expand(64, 64),
        "far": torch.eye(64)[farthest],
        "middle": torch.eye(64)[36].expand(64, 64),
    }
    found = {name: mean_attention_distance(head.double()[None, None], (8, 8), 4).item() for name, head in heads.items()}
    assert f"patches of the grid, {found['alike']:.2f} pixels" in TEXT
    assert f"the patches of the rim give {found['rim']:.2f}" in TEXT
    assert f"patch 36 alone, right beside the middle, lies below, at {found['middle']:.1f}" in TEXT
    assert f"The most is {found['far']:.2f}" in TEXT
    assert f"middle of the picture, the distance would be only {found['middle']:.1f} pixels" in TEXT


def test_the_time_of_the_model_from_between_is_that_of_its_run():
    log = json.loads((ROOT / "benchmarks/results/recipes/seed-c-cifar10-mended-1.json").read_text())
    assert f"{log['seconds'] / 60:.0f} minutes of training" in read_note("near_and_far")
