"""The commonest accidents: what is wrong at the root leads, and no check says more than it tested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from exercise_kit.engine import check
from exercise_kit.engine.first_cause import put_first_causes_in_front
from exercise_kit.engine.rendering import render_html, render_text
from exercise_kit.engine.run import run_checks
from exercise_kit.engine.verdict import CheckResult, Report, Verdict
from exercise_kit.reasons import Reason
from tests.answers import find_known_mistake
from tests.kit.engine.patchify_student import change_patchify_result
from vit_course.exercises.catalog import EXERCISES
from vit_course.patches import patchify

KIND, DTYPE = (
    "It returns another kind of object than the exercise asks for.",
    "Its numbers have another dtype than the exercise asks for.",
)
RAISES = "It raises an error."


def raise_no_gpu(tokens: Tensor) -> Tensor:
    raise RuntimeError("Found no NVIDIA driver on your system.")


@pytest.mark.parametrize(
    ("answer", "claim", "seen", "look"),
    [
        (change_patchify_result(lambda tokens: None), KIND, "is None", "Does every path end in a `return`?"),
        (
            change_patchify_result(lambda tokens: tokens.detach().numpy()),
            KIND,
            "is a NumPy array",
            "into a NumPy array",
        ),
        (change_patchify_result(list), KIND, "is a list of 3 elements", "What stands behind `return`"),
        (change_patchify_result(Tensor.double), DTYPE, "has dtype float64", "which dtype does it give it?"),
        (change_patchify_result(raise_no_gpu), RAISES, "Found no NVIDIA driver", "Does this machine have a GPU?"),
    ],
)
def test_the_first_cause_leads_and_the_rest_folds_under_it(
    answer: Callable[..., Any], claim: str, seen: str, look: str
) -> None:
    report = check("patchify", answer, points=8)
    lead = report.results[0]
    assert (lead.verdict, lead.claim) == (Verdict.FAIL, claim)
    assert seen in lead.seen
    assert look in lead.look
    others = [each.claim for each in report.results[1:] if each.verdict == Verdict.FAIL]
    # these two tested what they claim: an error of the right kind, and other dtypes
    assert all(each.startswith(("A height or a width", "Integer, half and double")) for each in others), others
    assert "checks wait until this one passes." in render_text(report)
    assert "Inside a token the order is" not in render_text(report)
    assert "<details" in render_html(report)


@pytest.mark.parametrize("change", [list, Tensor.double, Tensor.long, raise_no_gpu, lambda tokens: None])
def test_points_are_what_they_were(change: Callable[[Tensor], Any]) -> None:
    results = run_checks(EXERCISES["patchify"], {"patchify": change_patchify_result(change)})
    assert Report("patchify", put_first_causes_in_front(results), 8).score == Report("patchify", results, 8).score


def test_a_branch_that_returns_nothing_is_that_checks_own_failure() -> None:
    def forgets_one_image(images: Tensor, patch_size: int) -> Tensor | None:
        return patchify(images, patch_size) if images.shape[0] != 4 else None

    failed = [each for each in check("patchify", forgets_one_image).results if each.verdict == Verdict.FAIL]
    assert [each.name for each in failed] == ["tall_and_wide_images_are_right"]
    assert "is None" in failed[0].seen


def test_another_mistake_keeps_its_name_beside_the_first_cause() -> None:
    (columns,) = find_known_mistake("patchify", "column order").objects
    report = check("patchify", lambda images, patch_size: columns(images, patch_size).double())
    assert report.results[0].claim == DTYPE
    order = next(each for each in report.results if each.name == "tokens_run_row_by_row")
    assert (order.verdict, "starts with the pixel of" in order.seen) == (Verdict.FAIL, True)


def make_failure(name: str, **fields: Any) -> CheckResult:
    return CheckResult(name, f"{name}.", Verdict.FAIL, "f raised", **fields)


def test_other_errors_do_not_fold_under_the_first() -> None:
    first, again = (make_failure(name, reason=Reason.RAISED, stumbled_over="KeyError") for name in ("a", "b"))
    other = make_failure("c", reason=Reason.RAISED, stumbled_over="ValueError")
    lead, *rest = put_first_causes_in_front([first, again, other])
    assert lead.leads
    assert [each.verdict for each in rest] == [Verdict.UNDECIDED, Verdict.UNDECIDED, Verdict.FAIL]
    assert {each.waits_for for each in rest[:2]} == {lead.name}


def test_an_error_that_few_checks_meet_is_their_own() -> None:
    def wants_a_tensor(images: Tensor, mean: Any, std: Any) -> Tensor:
        mean, std = (each[:, None, None].to(images) for each in (mean, std))
        return (images - mean) / std

    report = check("normalize_images", wants_a_tensor)
    assert not any(each.leads for each in report.results)
    assert "lists_and_tuples_will_do" in {each.name for each in report.results if each.verdict == Verdict.FAIL}


def test_two_causes_that_both_return_lead_each_with_its_own() -> None:
    reasons = (Reason.KIND, Reason.KIND, Reason.RAISED, Reason.RAISED, Reason.RAISED)
    results = [make_failure(str(place), reason=reason) for place, reason in enumerate(reasons)]
    text = render_text(Report("double", put_first_causes_in_front(results)))
    assert [line.split()[1] for line in text.splitlines() if "until this one passes" in line] == ["2", "3"]


def test_a_tensor_elsewhere_is_reported_as_that() -> None:
    report = check("patchify", change_patchify_result(lambda tokens: torch.empty_like(tokens, device="meta")))
    assert "Inside a token" not in render_text(report)
    assert "device" in report.results[0].seen
