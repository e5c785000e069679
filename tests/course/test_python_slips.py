"""Python slips, named as such: what is read off a student's lines, and when it is not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from torch import Tensor, nn

from exercise_kit.engine import check
from exercise_kit.engine.rendering import render_text
from exercise_kit.engine.verdict import Report, Verdict
from exercise_kit.reasons import Reason
from tests.course.told_answers import edit_right_program
from vit_course.patches import patchify as right

SELF, STAYS, SEES, NAMES = (
    "A method lacks `self`, its first parameter.",
    "What `__init__` makes is lost.",
    "torch does not see modules that it holds.",
    "No method has the name that torch calls.",
)


def check_without_points(exercise: str, answer: Any) -> Report:
    report = check(exercise, answer, points=3)
    assert report.score == 0
    return report


@pytest.mark.parametrize(
    ("exercise", "old", "new", "claim", "seen"),
    [
        ("PatchEmbedding", "self.projection = ", "projection = ", STAYS, "`__init__` makes `projection`"),
        ("PatchEmbedding", "def forward(self, ", "def forward(", SELF, "`forward` has no `self`"),
        ("PatchEmbedding", "def forward", "def forwrad", NAMES, "one is called `forwrad`"),
        ("VisionTransformer", "nn.ModuleList(blocks)", "blocks", SEES, "`self.blocks` is a plain list"),
    ],
)
def test_a_slip_leads_and_every_failure_without_a_name_waits_for_it(
    exercise: str, old: str, new: str, claim: str, seen: str
) -> None:
    (answer,) = edit_right_program(exercise, lambda text: text.replace(old, new))
    report = check_without_points(exercise, answer)
    lead = report.results[0]
    assert (lead.claim, lead.reason, lead.leads) == (claim, Reason.SLIP, True)
    assert seen in lead.seen
    assert lead.look
    assert [each.name for each in report.results if each.verdict == Verdict.FAIL] == [lead.name]
    assert len(render_text(report).splitlines()) <= 8


def test_a_line_left_over_is_not_called_unwritten() -> None:
    def patchify(images: Tensor, patch_size: int) -> Tensor:
        """Cut images."""
        raise NotImplementedError("write me")
        return right(images, patch_size)

    report = check_without_points("patchify", patchify)
    assert "still begins with the stub's `raise NotImplementedError`" in str(report.problem)
    assert "not written yet" not in str(report)
    (embedding,) = edit_right_program(
        "PatchEmbedding", lambda text: re.sub(r"(def forward.*\n)", r"\1        raise NotImplementedError\n", text)
    )
    assert "`forward` still begins" in str(check_without_points("PatchEmbedding", embedding))


def unpatchify(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    raise NotImplementedError


def my_unpatchify(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    return patches


def test_an_answer_under_another_name_is_found() -> None:
    assert "there is a `my_unpatchify`. Is that yours? Call it `unpatchify`." in str(
        check_without_points("unpatchify", unpatchify).problem
    )


def unpatchify_all(patches: Tensor) -> Tensor:
    """A helper of nearly that name, which takes something else."""
    return patches


class Honest(nn.Module):
    """Wrong, and no slip: the part has another name, and a list holds numbers."""

    def __init__(self, in_channels: int, patch_size: int, embed_dim: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        scale, seen = float(patch_size), set()
        seen.add(patch_size)
        self.sizes = [in_channels, patch_size, embed_dim]
        self.linear, self.scale = nn.Linear(in_channels * patch_size**2, embed_dim), scale

    def forward(self, images: Tensor) -> Tensor:
        return self.linear(right(images, self.patch_size)) * self.scale


def test_a_wrong_answer_without_a_slip_gets_none() -> None:
    assert not any(each.reason == Reason.SLIP for each in check("PatchEmbedding", Honest).results)


def test_a_message_about_the_wrong_number_is_not_asked_about_f_strings() -> None:
    def always_three(images: Tensor, patch_size: int) -> Tensor:
        if images.shape[2] % 3 or images.shape[3] % 3:
            raise ValueError(f"{images.shape[2]} x {images.shape[3]} images are not divisible by 3")
        return right(images, patch_size)

    failed = next(each for each in check("patchify", always_three).results if each.name.startswith("sizes_that"))
    assert re.match(r"That message says 3 and \d+, and not 4\. Where", failed.look)


def test_an_error_of_python_s_own_is_no_message_of_the_answer() -> None:
    def without_a_batch(images: Tensor, patch_size: int) -> Tensor:
        _, _height, _width = images.shape
        return right(images, patch_size)

    report = check("patchify", without_a_batch)
    assert [each.claim for each in report.results if each.verdict == Verdict.FAIL] == ["It raises an error."]
    assert "f-string" not in str(report)
    assert "has no name on that line" in str(report)


def test_numbers_that_share_a_place_in_memory_are_named_so() -> None:
    class Expanded(nn.Module):
        def __init__(self, embed_dim: int, initial: float) -> None:
            super().__init__()
            self.gamma = nn.Parameter(nn.Parameter(Tensor([initial])).detach().expand(embed_dim))

        def forward(self, branch: Tensor) -> Tensor:
            return branch * self.gamma

    report = check("LayerScale", Expanded)
    assert "share one place in memory" in report.results[0].seen
    assert "`expand`" in report.results[0].look
    assert "cannot be compared" not in str(report)
