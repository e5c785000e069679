"""The wrong models of benchmarks/broken_vit.py: built as meant, and sorted out as they deserve."""

import pytest
import torch
from broken_vit import CLASSICS, CONFIG
from distinguishable import make_random_model, sort_out_distinguishable, trace_first_step
from wrong_models import PLACES, iterate_wrong_models

from vit_course.exercises.catalog import EXERCISES

MODELS = {model.key: model for model in iterate_wrong_models()}


@pytest.fixture(scope="module")
def right_model():
    return make_random_model(CONFIG)


def find_reasons(*keys):
    return sort_out_distinguishable([MODELS[key] for key in keys], CONFIG)[1]


def test_every_misconception_of_a_placed_exercise_has_a_model_of_its_own():
    names = {
        f"{name}: {wrong.name}" for name in PLACES if name in EXERCISES for wrong in EXERCISES[name].misconceptions
    }
    assert names <= set(MODELS)


def test_the_classics_are_models_that_training_can_tell_apart():
    worth, reasons = sort_out_distinguishable([MODELS[key] for key in CLASSICS], CONFIG)
    assert {model.key for model in worth} == set(CLASSICS)
    assert not reasons


@pytest.mark.proof
def test_no_model_stops_for_want_of_a_forward():
    """A misconception that the library keeps as an empty shell needs an entry in benchmarks/stand_ins.py."""
    _, reasons = sort_out_distinguishable(list(MODELS.values()), CONFIG)
    shells = ("NotImplementedError", "AttributeError", "KeyError")
    assert not {key: why for key, why in reasons.items() if any(shell in why for shell in shells)}


def test_the_right_model_stays_as_it_was(right_model):
    before = {name: tensor.clone() for name, tensor in right_model.state_dict().items()}
    for key in ("PatchEmbedding: reshaped where transposed", "EncoderBlock: post norm", "layer_norm: eps left out"):
        MODELS[key].build(right_model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in right_model.state_dict().items())


@pytest.mark.parametrize(
    "key",
    [
        "MultiHeadSelfAttention: softmax down the queries",
        "EncoderBlock: mlp before attention",
        "VisionTransformer: last token pooled",
        "Mlp: silu for gelu",
        "layer_norm: mean left in",
        "add_class_token: class token last",
    ],
)
def test_a_wrong_model_starts_from_the_right_weights(right_model, key):
    numbers = right_model.state_dict()
    wrong = MODELS[key].build(right_model)
    assert dict(wrong.named_parameters()).keys() == dict(right_model.named_parameters()).keys()
    assert all(torch.equal(tensor, numbers[name]) for name, tensor in wrong.named_parameters())


@pytest.mark.parametrize(
    "key",
    [
        "patchify: grid from one side",
        "PatchEmbedding: convolution for the linear",
        "MultiHeadSelfAttention: output in float32",
        "scaled_dot_product_attention: scores returned as weights",
        "VisionTransformer: mlp ratio ignored",
    ],
)
def test_what_training_cannot_see_is_the_right_model(key):
    assert find_reasons(key) == {key: "same logits and gradients as the right model"}


@pytest.mark.parametrize(
    "key",
    [
        "Mlp: the tanh form",
        "EncoderBlock: the eps of torch",
        "VisionTransformer: final eps left at the default",
        "VisionTransformer: class token cut from the graph",
        "MultiHeadSelfAttention: weights without gradient",
    ],
)
def test_small_differences_and_cut_gradients_are_seen(key):
    assert not find_reasons(key)


def test_one_slip_of_a_function_and_of_a_part_is_trained_once():
    function, part = "patchify: column order", "PatchEmbedding: embedding in column order"
    assert find_reasons(part, function) == {function: f"same logits and gradients as {part}"}


def test_a_model_that_stops_says_why():
    why = find_reasons("VisionTransformer: every token classified")["VisionTransformer: every token classified"]
    assert why.startswith("stops with RuntimeError")


def test_attention_over_the_batch_and_a_causal_mask_leave_the_class_token_alone_alike(right_model):
    over_the_batch, causal = (
        trace_first_step(MODELS[f"MultiHeadSelfAttention: {name}"].build(right_model), CONFIG)
        for name in ("attention over the batch", "causal heads")
    )
    assert over_the_batch.equals(causal)
    torch.testing.assert_close(causal.logits, causal.logits[:1].expand_as(causal.logits))
