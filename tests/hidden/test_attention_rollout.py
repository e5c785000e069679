"""Hidden checks of ``attention_rollout``: each compares tables of drawn layers with those of the reference."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_device_of_input, expect_result_of_its_own
from exercise_kit.engine.verdict import Failure

AXES = ("image", "output token", "input token")


def _layers(probe, depth, images=None, dtype=torch.float32):
    """Attention weights of several layers, rows that sum to 1 and are far from even."""
    batch, heads, tokens = probe.sizes(3, high=7)
    size = (images or batch, heads, tokens, tokens)
    return [probe.normal(*size, scale=2.0).softmax(-1).to(dtype) for _ in range(depth)]


def _expect(student, reference, layers, case, look):
    expect_equal(student(layers), reference.attention_rollout(layers), f"attention_rollout of {case}", AXES, look=look)


@pytest.mark.exercise("attention_rollout", points=0.5)
def test_one_layer_is_half_the_token_itself(student, reference, probe):
    """In one layer a token is half itself and half the mean of what its heads look at."""
    look = "Take one layer with two tokens and a pencil. Which number is the first to differ?"
    _expect(student, reference, _layers(probe, 1), "one layer", look)


@pytest.mark.exercise("attention_rollout", points=0.75)
def test_later_layers_mix_what_earlier_ones_mixed(student, reference, probe):
    """A later layer mixes what the earlier ones have mixed, however many there are."""
    look = "A row asks what an output token is made of. Of which tensor must the last layer's rows pick rows?"
    for depth in probe.sizes(2, high=5):
        _expect(student, reference, _layers(probe, depth), f"{depth} layers", look)


@pytest.mark.exercise("attention_rollout", points=0.25)
def test_it_computes_where_the_weights_are(student, reference, probe):
    """The table is right, and lies on the device of the weights."""
    layers = _layers(probe, 2)
    _expect(student, reference, layers, "two layers", "Which layer comes first?")
    expect_device_of_input(student, layers)


@pytest.mark.exercise("attention_rollout", points=0.5)
def test_it_follows_device_and_dtype(student, reference, probe, device):
    """float64 weights give a float64 table, and float16 ones a float16 table, on their device."""
    for dtype in (torch.float64, torch.float16):
        layers = [layer.to(device) for layer in _layers(probe, 2, dtype=dtype)]
        _expect(student, reference, layers, "two layers of another dtype", "Which line makes a tensor, of which dtype?")


@pytest.mark.exercise("attention_rollout", points=0.25)
def test_images_do_not_meet(student, reference, probe):
    """Every image gets a table of its own: one alone the same as among others."""
    layers = _layers(probe, 3)
    look = "Over which axis does each of your sums run?"
    _expect(student, reference, layers, "several images", look)
    _expect(student, reference, [layer[1:2] for layer in layers], "one of these images", look)


@pytest.mark.exercise("attention_rollout", points=0.25)
def test_the_weights_are_left_alone(student, reference, probe):
    """The table is right, no later call changes it, and the weights that go in are not changed."""
    layers = _layers(probe, 3)
    notes = student.run_fixture("rollout", inputs=[layers])
    expect_equal(notes["returned"], reference.attention_rollout(layers), "attention_rollout of three layers", AXES)
    changed = [number for number, each in enumerate(notes["layers"]) if not torch.equal(each, layers[number])]
    if changed:
        look = "Which operation works in place?"
        raise Failure(
            f"attention_rollout changed the weights of layer {changed[0]}", "the same numbers as before", look
        )
    if notes["kept"] != len(layers):
        seen = f"of {len(layers)} layers in the list {notes['kept']} are left"
        raise Failure(seen, "the list as it was", "Which method of a list takes something out of it?")
    expect_result_of_its_own(student, (layers,), (_layers(probe, 3),))


@pytest.mark.exercise("attention_rollout", points=0.25)
def test_no_layer_at_all_is_refused(student, reference, probe):
    """Layers give the right table, and an empty list of them a ValueError."""
    _expect(student, reference, _layers(probe, 2), "two layers", "Which layer comes first?")
    error = student.error_of([])
    if error is None or not error.is_a("ValueError"):
        did = "accepted" if error is None else f"raised {error} on"
        raise Failure(f"attention_rollout {did} an empty list", "a ValueError", "What do you test before you compute?")


@pytest.mark.exercise("attention_rollout", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect(student, reference, _layers(probe, 2), "two layers", "Which layer comes first?")
    expect_example(student)
