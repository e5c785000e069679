"""The grader's right answers: what they refuse in which words, and a student that is made of one."""

import pytest
import torch

from exercise_kit.hidden_checks.checks import gather_right_objects, make_reference_student
from vit_course.staff.references import REFERENCE


def test_normalize_images_counts_the_statistics():
    with pytest.raises(ValueError, match="3 channels, but there are 1 means"):
        gather_right_objects().normalize_images(torch.zeros(1, 3, 2, 2), [0.5], [0.5])
    with pytest.raises(ValueError, match="3 channels, but there are 2 standard deviations"):
        gather_right_objects().normalize_images(torch.zeros(1, 3, 2, 2), [0.5] * 3, [0.5] * 2)


def test_a_student_with_the_right_answer():
    split, merge = REFERENCE["split_heads"]
    student, x = make_reference_student("split_heads"), torch.randn(2, 3, 8)
    assert torch.equal(student(x, 4), split(x, 4))
    assert torch.equal(student.call("merge_heads", split(x, 4)), merge(split(x, 4)))
    with pytest.raises(KeyError):
        make_reference_student("no_such_exercise")
