"""``check`` of an answer that calls another one: whose mistake it is, and that nothing of the student's changes."""

import pytest

from exercise_kit.engine import check
from tests.answers import read_empty_cell, write_answer_cell

LINEAR = """
import torch
from torch import nn

class PatchEmbedding(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim, bias={bias})

    def forward(self, images):
        return self.projection(patchify(images, self.patch_size))
"""
STRIPS, UNWRITTEN = write_answer_cell("patchify", "strips not squares"), read_empty_cell("patchify")


def run_cells(*sources):
    names = {"__name__": "__main__"}
    for source in sources:
        exec(source, names)
    return names


@pytest.mark.parametrize("part", [STRIPS, UNWRITTEN])
def test_a_right_answer_passes_and_the_part_is_named(part):
    names = run_cells(part, LINEAR.format(bias=True))
    own = names["patchify"]
    report = check("PatchEmbedding", names["PatchEmbedding"], points=5)
    assert report.passed
    assert report.score == 5
    assert "calls your `patchify`, which is not right" in report.note
    assert report.note.split(".")[0] in str(report)
    assert report.as_dict()["problem"] == report.note
    assert names["patchify"] is own


def test_a_wrong_answer_with_a_wrong_part_is_still_wrong():
    names = run_cells(STRIPS, LINEAR.format(bias=False))
    assert check("PatchEmbedding", names["PatchEmbedding"], points=5).score < 5


@pytest.mark.parametrize("bias", [True, False])
def test_with_a_right_part_there_is_no_note(bias):
    names = run_cells("from vit_course.patches import patchify", LINEAR.format(bias=bias))
    report = check("PatchEmbedding", names["PatchEmbedding"])
    assert report.passed is bias
    assert report.note is None


def test_a_bug_hunt_is_not_answered_by_the_reference():
    names = run_cells(STRIPS, "def fix_patchify(images, patch_size):\n    return patchify(images, patch_size)\n")
    assert not check("fix_patchify", names["fix_patchify"]).passed
