"""The machine that looks for second mistakes: what it counts as one, and what it does not."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

import pytest
import torch
from torch import Tensor

from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Misconception
from exercise_kit.engine.verdict import Cause
from tests.our_hidden_checks import hidden_checks
from tests.proof.second_mistakes import (
    KINDS,
    MOST_KEPT,
    Finding,
    find_kind_of_failure,
    iterate_findings,
    list_distinct_exercises,
    main,
    read_listed_reasons,
)
from vit_course.patches import patchify

RIGHT = torch.arange(6.0).reshape(2, 3)
REFUSED, GIVEN = ("raised", "ValueError"), ("returned", RIGHT)


@pytest.mark.parametrize(
    ("record", "right", "kind"),
    [
        ([("returned", RIGHT + 1)], [GIVEN], ""),
        ([("returned", RIGHT[0])], [GIVEN], ""),
        ([("raised", "TypeError: no")], [GIVEN], ""),
        ([GIVEN], [REFUSED], "error"),
        ([("raised", "TypeError: no")], [REFUSED], "error"),
        ([REFUSED, ("numbers named", (True, False))], [REFUSED, ("numbers named", (True, True))], "error"),
        ([("returned", RIGHT.double())], [GIVEN], "dtype"),
        ([("returned", RIGHT.double() + 1)], [GIVEN], ""),
        ([GIVEN, ("changed inputs", ("(2, 3)",))], [GIVEN, ("changed inputs", ())], "input"),
        ([GIVEN, ("on the CPU", True)], [GIVEN, ("on the CPU", False)], "device"),
        ([GIVEN, ("gradients", (RIGHT,))], [GIVEN, ("gradients", (RIGHT + 1,))], "gradient"),
        ([GIVEN, ("gradients", (None,))], [GIVEN, ("gradients", (RIGHT,))], "gradient"),
        ([("returned", RIGHT.flip(0)), ("gradients", (RIGHT,))], [GIVEN, ("gradients", (RIGHT + 1,))], ""),
    ],
)
def test_the_kind_is_found_where_the_check_ended(record: list[object], right: list[object], kind: str) -> None:
    assert find_kind_of_failure(record, right) == kind


def test_a_mistake_beside_another_is_found_and_points_are_counted() -> None:
    exercise = course().exercises["patchify"]

    def refused_in_silence(images: Tensor, patch_size: int) -> Tensor:
        height = images.shape[2] // patch_size * patch_size
        width = images.shape[3] // patch_size * patch_size
        return patchify(images[..., :height, :width], patch_size)

    def both(images: Tensor, patch_size: int) -> Tensor:
        return refused_in_silence(images, patch_size).flip(1)

    def one(images: Tensor, patch_size: int) -> Tensor:
        return patchify(images, patch_size).flip(1)

    def find_finding(wrong) -> Finding:  # type: ignore[no-untyped-def]
        cause = Cause("last token first", "The tokens run from the last one to the first.", "Why?", "01_a, B")
        (found,) = iterate_findings(exercise, [Misconception(cause, (wrong,))])
        return found

    assert find_finding(one).unexplained_failures == {}
    assert find_finding(both).unexplained_failures.keys() == {"error"}
    assert "sizes_that_do_not_fit_are_refused" in find_finding(both).unexplained_failures["error"]
    little = find_finding(refused_in_silence)
    assert little.unexplained_failures.keys() == {"error"}
    assert little.kept > MOST_KEPT
    assert little.find_reasons_for_little_cost({("error",): "why"}) == [("error",)] * 2
    assert little.find_reasons_for_little_cost({("dtype",): "why"}) is None
    assert find_finding(one).find_reasons_for_little_cost({("error",): "why"}) is None


def test_every_listed_reason_is_about_a_known_mistake_or_a_hidden_check() -> None:
    known = {(name, each.name) for name, exercise in course().exercises.items() for each in exercise.misconceptions}
    beyond, points = read_listed_reasons()
    assert all(key[:2] in known and key[2] in KINDS and reason for key, reason in beyond.items())
    for (first, *name), reason in points.items():
        assert reason
        places = [each for each in course().exercises.values() if fnmatch(each.name, first)]
        names = [check.name for each in places for check in hidden_checks().exercises()[each.name]]
        names += [wrong.name for each in places for wrong in each.misconceptions]
        assert matches_any(names, name[0]) if name else first in KINDS


def matches_any(names: Sequence[str], pattern: str) -> bool:
    return any(fnmatch(each, pattern) for each in names)


@pytest.mark.proof
@pytest.mark.parametrize("exercise", [each.name for each in list_distinct_exercises()])
def test_a_known_mistake_is_one_mistake_and_costs_a_third_or_has_a_reason(
    exercise: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([exercise, "--points"]) == 0, capsys.readouterr().out
