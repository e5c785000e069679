"""The judge's functions that a student may call: right answers, and bounds on size, number and time."""

import sys

import pytest
import torch

from exercise_kit.sandbox.callbacks import CallbackBudget, CallbackService
from exercise_kit.worker.wire import WireError
from vit_course.exercises.l03_attention.is_attention.right_suspects import attend_by_fused_kernel


def answer_callback(*shapes, service=None, gradients=False, **budget):
    service = service or CallbackService([attend_by_fused_kernel], CallbackBudget(**budget))
    inputs = tuple(torch.ones(shape) for shape in shapes)
    return service.answer({"callback": 0, "inputs": inputs, "options": {}, "gradients": gradients})


@pytest.mark.parametrize("shape", [(5, 4), (2, 8, 197, 64), (3, 1, 1, 1)], ids=str)
def test_what_a_test_needs_is_answered(shape):
    output, weights = answer_callback(shape, shape, shape)["result"]
    assert output.shape == shape
    assert weights.shape == (*shape[:-1], shape[-2])


def test_an_answer_waits_for_no_import(monkeypatch):
    # torch.broadcast_shapes imports it, and sympy with it: 2 s of processor time in each judge
    monkeypatch.setitem(sys.modules, "torch.fx.experimental.symbolic_shapes", None)
    assert "result" in answer_callback((2, 5, 4), (2, 5, 4), (2, 5, 4))


def test_inputs_that_do_not_fit_together_are_the_functions_to_refuse():
    raised = answer_callback((2, 5, 4), (3, 7, 4), (3, 7, 6))["raised"]
    assert raised == {"kinds": ["RuntimeError"], "words": "these inputs do not fit together"}


TOO_LARGE = {
    "scores": [(1025, 1), (1025, 1), (1025, 1)],
    "an output of many queries": [(1024, 1, 1024, 1), (1024, 1, 1, 1), (1, 1, 1, 1024)],
    "an output by broadcasting": [(1 << 19, 1, 1), (1 << 19, 1, 1), (1, 1, 1 << 19)],
    "values": [(1, 1), (1, 1), (1, 1 << 21)],
    "products": [(1000, 1000), (1000, 1000), (1000, 1000)],
    "numbers that are none": [(0, 1 << 20), (0, 1 << 20), (0, 1 << 21)],
}


@pytest.mark.parametrize("shapes", TOO_LARGE.values(), ids=TOO_LARGE)
def test_too_large_is_not_computed(shapes, monkeypatch):
    service = CallbackService([lambda *_: pytest.fail("it was computed")])
    raised = answer_callback(*shapes, service=service)["raised"]
    assert raised["kinds"] == ["ValueError"]
    assert "too large to ask about here" in raised["words"]


def test_graphs_are_kept_within_bounds():
    service = CallbackService([attend_by_fused_kernel])
    shape = (512, 64)
    numbers = [answer_callback(shape, shape, shape, service=service, gradients=True)["call"] for _ in range(20)]
    kept = [number for number in numbers if number >= 0]
    assert 0 < len(kept) < 10
    assert numbers[-1] == -1


@pytest.mark.parametrize("budget", [{"questions": 3}, {"numbers": 3 * 60}, {"seconds": -1.0}], ids=str)
def test_there_is_an_end_to_questions(budget):
    service = CallbackService([attend_by_fused_kernel], CallbackBudget(**budget))
    said = ["raised" in answer_callback((5, 4), (5, 4), (5, 4), service=service) for _ in range(4)]
    assert said[-1]
    assert said[0] == (budget == {"seconds": -1.0})


def test_the_time_of_an_answer_counts():
    budget = CallbackBudget(seconds=0.0)
    with budget.count_processor_time():
        sum(range(1000))
    assert "raised" in answer_callback(
        (5, 4), (5, 4), (5, 4), service=CallbackService([attend_by_fused_kernel], budget)
    )


def test_no_question_is_no_answer():
    with pytest.raises(WireError):
        CallbackService([]).answer(["callback"])
