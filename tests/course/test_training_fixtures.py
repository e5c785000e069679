"""Training fixtures note what is done with model, loader, optimizer and generators, and judge nothing."""

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.training_fixtures import chance, elsewhere, groups, loop

SIZES = (4, 3)


@pytest.fixture
def given_weights():
    generator = torch.Generator().manual_seed(0)
    weights = {
        "classifier.weight": torch.randn(5, 12, generator=generator),
        "classifier.bias": torch.randn(5, generator=generator),
        "dropout.keep": torch.tensor([0.0, 2.0]).repeat(6),
    }
    batches = [(torch.randn(size, 3, 2, 2, generator=generator), torch.arange(size) % 5) for size in SIZES]
    return {"weights": weights, "batches": batches}


def _train(model, loader, optimizer, device):
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images.to(device)), labels.to(device)).backward()
        optimizer.step()
    return "done"


def test_a_loop_is_noted_event_by_event(given_weights):
    notes = loop(_train, **given_weights, training=False, learning_rate=0.1)
    assert notes["returned"] == "done"
    assert notes["events"] == ["zero_grad", "forward", "backward", "step"] * 2
    assert notes["forwards"] == [(False, True, 4), (False, True, 3)]
    assert (notes["passes"], notes["training"], notes["recording"]) == (1, False, True)
    assert not torch.equal(notes["weights"]["classifier.weight"], given_weights["weights"]["classifier.weight"])
    assert notes["gradients"]["classifier.bias"].shape == (5,)


def test_a_model_whose_parts_differ_is_mixed(given_weights):
    def half(model, loader, device):
        model.dropout.eval()

    assert loop(half, **given_weights, training=True)["training"] == "mixed"


def test_the_caller_keeps_its_tensors(given_weights):
    def spoil(model, loader, device):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
            for images, labels in loader:
                images.zero_()
                labels.zero_()

    before = given_weights["weights"]["classifier.weight"].clone(), given_weights["batches"][0][0].clone()
    loop(spoil, **given_weights, training=True)
    assert torch.equal(given_weights["weights"]["classifier.weight"], before[0])
    assert torch.equal(given_weights["batches"][0][0], before[1])


def test_a_loop_that_moves_its_batches_is_let_go_at_its_first_number(given_weights):
    def measure(model, loader, device):
        images, labels = next(iter(loader))
        return F.cross_entropy(model(images.to(device)), labels.to(device)).item()

    assert elsewhere(_train, **given_weights, learning_rate=0.1) == {
        "images": ["meta"] * 2,
        "mixed": False,
        "read": False,
    }
    assert elsewhere(measure, **given_weights) == {"images": ["meta"], "mixed": False, "read": True}


def test_a_loop_that_never_runs_the_model_tells_nothing(given_weights):
    def breaks_off(model, loader, device):
        raise KeyError("mistake")

    def looks_first(model, loader, device):
        for images, _ in loader:
            assert images.to(device).isfinite().all()
            model(images.to(device))

    assert elsewhere(breaks_off, **given_weights) == {"images": [], "mixed": False, "read": False}
    assert elsewhere(looks_first, **given_weights) == {"images": [], "mixed": False, "read": True}


def test_groups_are_reported_by_name():
    parts = {"blocks.0.fc": ("Linear", (4, 3)), "blocks.0.norm": ("LayerNorm", (3,)), "token": ("Parameter", (1, 1, 3))}

    def sort(model, weight_decay):
        assert isinstance(model.get_submodule("blocks.0.fc"), nn.Linear)
        named = dict(model.named_parameters())
        foreign = nn.Parameter(torch.zeros(1))
        return [
            {"params": [named["blocks.0.fc.weight"], foreign], "weight_decay": weight_decay},
            {"params": (each for name, each in named.items() if "norm" in name), "lr": 1.0},
            "no group",
        ]

    notes = groups(sort, parts, 0.3)
    assert notes["returned"] == "list"
    first, second, third = notes["groups"]
    assert first["names"] == ["blocks.0.fc.weight", "? Parameter"]
    assert first["weight_decay"] == 0.3
    assert first["holder"] == "list"
    assert second["names"] == ["blocks.0.norm.weight", "blocks.0.norm.bias"]
    assert second["holder"] == "generator"
    assert second["keys"] == ["params", "lr"]
    assert second["weight_decay"] is None
    assert third is None
    assert notes["frozen"] == []


@pytest.mark.parametrize(
    ("draw", "touched"),
    [
        (lambda count: torch.randperm(count), ["torch"]),
        (lambda count: np.random.permutation(count), ["numpy"]),
        (lambda count: random.sample(range(count), count), ["random"]),
        (lambda count: torch.randperm(count, generator=torch.Generator().manual_seed(3)), []),
        (lambda count: np.random.default_rng(3).permutation(count), []),
    ],
)
def test_chance_is_noticed_and_put_back(draw, touched):
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    first, second = chance(draw, [9], global_seed=4), chance(draw, [9], global_seed=4)
    assert first["touched"] == touched
    assert list(first["returned"]) == list(second["returned"])
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == states[1:]


def test_arrays_and_ranges_can_be_sent():
    notes = chance(lambda: (np.arange(3), range(2), [1], torch.arange(2).int()), [])
    returned = notes["returned"]
    assert torch.equal(returned[0], torch.arange(3))
    assert returned[1:3] == ([0, 1], [1])
    assert notes["kinds"] == ["ndarray", "range", "list", "int32"], "what they were before"


def test_the_notes_of_a_fixture_go_on_record(given_weights):
    student = Student({"train": _train})
    notes = student.run_fixture("loop", "returned", **given_weights, training=True, learning_rate=0.1)
    assert notes["passes"] == 1
    assert student.record == [(("returned", "done"),)]
    student.run_fixture("loop", **given_weights, training=True, learning_rate=0.1)
    assert [name for name, _ in student.record[1]] == list(notes)


def test_an_exception_is_reported_with_what_was_given(given_weights):
    def train(model, loader, optimizer, device):
        raise KeyError("mistake")

    student = Student({"train": train})
    with pytest.raises(Failure, match="train raised KeyError") as failure:
        student.run_fixture("loop", **given_weights, training=True, learning_rate=0.1)
    assert failure.value.expected == "no error when called with a small model, 2 batches of images"
    assert student.record == [("raised", "KeyError")]


def test_gradients_switched_off_stay_with_the_student(given_weights):
    notes = Student({"spoil": lambda *_: torch.set_grad_enabled(False)}).run_fixture(
        "loop", **given_weights, training=True
    )
    assert notes["recording"] is False
    assert torch.is_grad_enabled()
