"""What only grading asks of ``split_heads``."""

from __future__ import annotations

import torch

from exercise_kit.engine.examples import expect_docstring_example
from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l03_attention.split_heads import claims


@claims.split_heads.check(graded_only=True, points=0.25)
def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The examples in both docstrings give the results that they show, and other numbers give the right results too."""
    x, num_heads = claims.draw_tokens_and_num_heads(probe)
    claims.expect_right_split(student, x, num_heads)
    claims.expect_right_merge(student, claims.heads_of(x, num_heads))
    expect_docstring_example(student)


@claims.split_heads.check(graded_only=True, points=0.25)
def they_work_where_their_inputs_lie(student: Student, probe: Probe, device: torch.device) -> None:
    """The results lie on the device of the inputs, those are left as they were, and no later call changes a result."""
    x, num_heads = claims.draw_tokens_and_num_heads(probe)
    x = x.to(device)
    claims.expect_right_split(student, x, num_heads)
    claims.expect_right_merge(student, claims.heads_of(x, num_heads))
    expect_inputs_unchanged(student)
    expect_independent_results(student, (x, num_heads), (x + 1, num_heads))
