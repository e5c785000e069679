"""A right answer is told how fast it is beside the course's own part: loops are named, and it counts for nothing.

No test asserts a time: what is asserted are counts of calls and bytes, which are the same on every machine.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import replace
from types import FunctionType

import pytest
import torch

import vit_course
from exercise_kit.engine import pace as timing
from exercise_kit.engine.course import course
from exercise_kit.engine.lent import load_right_parts
from exercise_kit.engine.pace import describe_pace
from exercise_kit.engine.rendering import render_html
from vit_course import check


def over_images(images, patch_size):
    return torch.cat([vit_course.patchify(each[None], patch_size) for each in images])


def over_patches(images, patch_size):
    batch, _, height, width = images.shape
    for side in (height, width):
        if side % patch_size:
            raise ValueError(f"{side} is not divisible by {patch_size}")
    tokens = [
        images[:, :, row : row + patch_size, column : column + patch_size].reshape(batch, -1)
        for row in range(0, height, patch_size)
        for column in range(0, width, patch_size)
    ]
    return torch.stack(tokens, dim=1)


def split_and_copy(x, num_heads):
    return vit_course.split_heads(x, num_heads).contiguous()


def describe_pace_of_answer(name, answer):
    """The line on an answer to a function's exercise."""
    return describe_pace(course().exercises[name], (answer,))


@pytest.fixture
def slow_clock(monkeypatch):
    """Every answer takes 38 times as long, whatever the clock of this machine says."""
    monkeypatch.setattr(timing, "_measure_ratio", lambda answer, reference: 38.4)


@pytest.mark.parametrize(
    ("answer", "loop"), [(over_images, "images"), (over_patches, "rows of patches")], ids=["images", "patches"]
)
def test_a_loop_is_named(slow_clock, answer, loop):
    line = describe_pace_of_answer("patchify", answer)
    assert line.startswith(f"Right; 38 times the time of the course's own: a loop over {loop}, with ")
    assert re.search(r"Measured with \d+ images, \d rows of patches\.$", line)  # fewer on a busy machine


@pytest.mark.parametrize("name", ["patchify", "VisionTransformer"], ids=["without a loop", "as the course's own"])
def test_no_loop_is_named_that_the_course_s_own_part_has_too(slow_clock, name):
    assert ": a loop" not in describe_pace_of_answer(name, getattr(vit_course, name))


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        (0.04, "25 times as fast as"),
        (0.5, "2.0 times as fast as"),
        (0.9, "as fast as"),
        (1.4, "as fast as"),
        (1.6, "1.6 times the time of"),
    ],
)
def test_what_is_faster_is_said_so(monkeypatch, ratio, says):
    monkeypatch.setattr(timing, "_measure_ratio", lambda answer, reference: ratio)
    line = describe_pace_of_answer("patchify", vit_course.patchify)
    assert line.startswith(f"Right; {says} the course's own, with as much memory.")


def test_memory_is_told_beside_the_course_s_own():
    assert ", with less memory." in describe_pace_of_answer("patchify", lambda images, patch_size: images)
    assert ", with as much memory." in describe_pace_of_answer("patchify", vit_course.patchify)
    assert ", with 2.0 times its memory." in describe_pace_of_answer("patchify", over_images)
    assert ", with a copy where none is needed." in describe_pace_of_answer("split_heads", split_and_copy)


def test_attention_written_out_is_measured_by_attention_written_out(slow_clock):
    """What the exercise forbids, and the course's own calls, is no measure."""

    class MultiHeadSelfAttention(vit_course.MultiHeadSelfAttention):
        def forward(self, x):
            return super().forward(x, return_weights=True)[0]

    assert ", with as much memory." in describe_pace_of_answer("MultiHeadSelfAttention", MultiHeadSelfAttention)


def test_why_it_is_told_stands_where_something_is_slow_or_large(monkeypatch):
    monkeypatch.setattr(timing, "_measure_ratio", lambda answer, reference: 1.0)
    why = "No points hang on this: it tells where a loop or a copy is left."
    assert why not in describe_pace_of_answer("patchify", vit_course.patchify)
    assert why in describe_pace_of_answer("patchify", over_images)
    assert why in describe_pace_of_answer("split_heads", split_and_copy)


@pytest.mark.parametrize("name", list(course().paces))
def test_every_size_fits_the_course_s_own_part(name):
    objects = tuple(load_right_parts(course().exercises[name]).values())
    assert objects
    assert course().paces[name].arguments is None or inspect.isclass(objects[0])
    assert describe_pace(course().exercises[name], objects).startswith("Right; ")


def test_the_line_stands_in_the_report_and_counts_for_nothing(slow_clock):
    patchify = FunctionType(over_images.__code__, globals(), "patchify")
    report = check("patchify", patchify, points=8)
    assert report.score == 8
    assert "38 times the time" in str(report)
    assert "38 times the time" in render_html(report)
    assert replace(report, pace=None).as_dict() == report.as_dict()


def test_a_wrong_answer_gets_no_such_line():
    def patchify(images, patch_size):
        return images

    assert check("patchify", patchify).pace is None


def test_what_this_size_brings_up_costs_nothing():
    def patchify(images, patch_size):
        if len(images) == 16:
            raise MemoryError
        return vit_course.patchify(images, patch_size)

    report = check("patchify", patchify, points=8)
    assert (report.score, report.pace) == (8, None)


def test_chance_goes_on_as_if_nothing_had_been_measured():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    describe_pace_of_answer("PatchEmbedding", vit_course.PatchEmbedding)
    assert torch.equal(before, torch.random.get_rng_state())


def test_measuring_does_not_import_torchs_compiler():
    program = """
import sys, vit_course
print(vit_course.check("patchify", vit_course.patchify).pace, "torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert re.search(r"^Right; .* False$", done.stdout, re.MULTILINE), done.stdout + done.stderr
