"""Public checks of lesson 07: a prediction, and where the class token looked.

The oracle is torch's own functions, on weights that are loaded by name; the model itself is a SmallViT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor, listed
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_one_device
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.checks.attention import both_tensors, weights_of
from vit_course.exercises.checks.vit import (
    TALL_MODEL,
    WIDE_MODEL,
    after_block,
    embedded,
    logits_of,
    normed,
    parameter_shapes,
)

LESSON = "07_inside"
Weights = Mapping[str, Tensor]
# 4 x 5 and 5 x 3 patches; two blocks at least, so that the first is not the last
WIDE, TALL = WIDE_MODEL, replace(TALL_MODEL, num_classes=8)
MAP_AXES = ("row", "column")


def attention_of(weights: Weights, image: Tensor, config: ViTConfig, block: int) -> Tensor:
    """Attention weights (num_heads, tokens, tokens) of one block on image (channels, height, width)."""
    x = embedded(weights, image[None], config)
    for number in range(block):
        x = after_block(weights, number, x, config)
    name = f"blocks.{block}"
    qkv, bias = weights[f"{name}.attention.qkv.weight"], weights.get(f"{name}.attention.qkv.bias")
    heads = F.linear(normed(weights, f"{name}.norm1", x, config), qkv, bias).unflatten(-1, (3, config.num_heads, -1))
    query, key, _ = heads.permute(2, 0, 3, 1, 4)
    return weights_of(query, key)[0]


def right_prediction(weights: Weights, config: ViTConfig, image: Tensor) -> tuple[Tensor, Tensor]:
    """The oracle: probabilities (num_classes,), and the map (rows, columns)."""
    probabilities = F.softmax(logits_of(weights, image[None], config)[0], dim=0)
    seen = attention_of(weights, image, config, config.depth - 1)[:, 0].mean(0)
    return probabilities, F.normalize(seen[1:], p=1.0, dim=0).unflatten(0, config.grid_size)


predict_with_attention = Exercise("predict_with_attention", LESSON, in_training=InTraining.UNSEEN)


class _Asked:
    """One question: a model, an image, the student's answer, and all else that the practice has noted."""

    def __init__(
        self,
        student: Student,
        probe: Probe,
        config: ViTConfig,
        *judged: str,
        training: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.weights = {name: each.to(dtype) for name, each in probe.weights(parameter_shapes(config)).items()}
        self.image = probe.normal(config.in_channels, config.height, config.width, dtype=dtype)
        self.config = config
        fields = {"weights": self.weights, "config": config, "image": self.image, "training": training}
        self.notes: dict[str, Any] = student.practise("predict", "returned", *judged, **fields)
        answer = both_tensors(self.notes["returned"], student.name, "the probabilities", "the map")
        self.probabilities, self.map = answer

    def expect_shapes(self) -> None:
        expect_tensor(self.probabilities, (self.config.num_classes,), "the first tensor, the probabilities,")
        rows, columns = self.config.grid_size
        expect_tensor(self.map, (rows, columns), f"the second tensor, the map of {rows} rows and {columns} columns,")

    def expect_right(self, told: str, look: str = "") -> None:
        """Fail in words unless both tensors hold the right numbers."""
        self.expect_shapes()
        probabilities, seen = right_prediction(self.weights, self.config, self.image)
        expect_equal(self.probabilities, probabilities, f"the probabilities tensor{told}", ("class",), look=look)
        expect_equal(self.map, seen, f"the map{told}", MAP_AXES, look=look)


@predict_with_attention.check
def two_tensors_come_back(student: Student, probe: Probe) -> None:
    """It returns the probabilities (num_classes,) and the map (rows, columns), without a batch axis."""
    for config in (WIDE, TALL):
        _Asked(student, probe, config).expect_shapes()


@predict_with_attention.check(needs=two_tensors_come_back)
def the_probabilities_are_the_models(student: Student, probe: Probe) -> None:
    """The probabilities are what the softmax makes of the model's logits."""
    asked = _Asked(student, probe, WIDE)
    expected, _ = right_prediction(asked.weights, WIDE, asked.image)

    def describe(found: Tensor, _: Tensor) -> tuple[str, str] | None:
        if found.min() < 0 or found.max() > 1:
            return f"they run from {found.min():.3g} to {found.max():.3g}", "numbers from 0 to 1 that sum to 1"
        return None

    look = "What does the model give, and what makes probabilities of it, along which axis?"
    expect_equal(asked.probabilities, expected, "the probabilities tensor", ("class",), describe, look)


@predict_with_attention.check(needs=two_tensors_come_back)
def the_map_sums_to_one(student: Student, probe: Probe) -> None:
    """The map sums to one: of what went to patches at all, it says how it was shared out."""
    total = float(_Asked(student, probe, WIDE).map.detach().sum())
    if abs(total - 1) > 1e-4:
        look = "The row of the class token sums to 1 with all its tokens. Which of them is not on the map?"
        raise Failure(f"the map sums to {total:.4g}", "1", look)


@predict_with_attention.check(needs=two_tensors_come_back)
def the_map_shows_where_the_class_token_looks(student: Student, probe: Probe) -> None:
    """The map is the class token's attention to the patches in the last block, the mean over the heads."""
    for config in (WIDE, TALL):
        asked = _Asked(student, probe, config)
        _, seen = right_prediction(asked.weights, config, asked.image)
        rows, columns = config.grid_size
        look = "Which block, which row of the weights, which tokens of it, and in which order do patches stand?"
        expect_equal(asked.map, seen, f"the map of {rows} rows and {columns} columns", MAP_AXES, look=look)


@predict_with_attention.check(needs=two_tensors_come_back)
def the_model_is_asked_in_evaluation_mode(student: Student, probe: Probe) -> None:
    """A model that comes in training mode is asked in evaluation mode."""
    look = "This model has dropout. Which call turns it off, and do both of your questions come after it?"
    _Asked(student, probe, WIDE, training=True).expect_right(" of a model that was training", look)


@predict_with_attention.check(needs=two_tensors_come_back)
def the_mode_is_put_back(student: Student, probe: Probe) -> None:
    """Afterwards the model is in the mode in which it came, be it training or evaluation."""
    for training, mode, other in ((True, "training", "evaluation"), (False, "evaluation", "training")):
        asked = _Asked(student, probe, WIDE, "modes", training=training)
        asked.expect_shapes()
        if asked.notes["modes"]:
            raise Failure(
                f"a model that came in {mode} mode is in {other} mode afterwards: {listed(asked.notes['modes'], 2)}",
                f"{mode} mode, as before",
                "What do you know about the model's mode before you change it, and where do you keep it?",
            )


@predict_with_attention.check(needs=two_tensors_come_back)
def no_gradient_is_kept(student: Student, probe: Probe) -> None:
    """Nothing keeps the graph of a backward pass that nobody will ask for."""
    asked = _Asked(student, probe, WIDE, "gradients")
    kept = [name for name in ("probabilities", "map") if getattr(asked, name).requires_grad]
    student.record.append(("keeps a graph", tuple(kept)))
    if kept:
        look = "Every intermediate tensor stays in memory for it. What tells torch that no backward pass will come?"
        raise Failure(
            f"the {' and the '.join(kept)} still know how they were computed", "tensors without a graph", look
        )
    asked.expect_shapes()


@predict_with_attention.check(needs=two_tensors_come_back)
def the_model_is_left_as_it_was(student: Student, probe: Probe) -> None:
    """Nothing of yours stays behind in the model: no hook, no frozen or changed parameter, no other gradient."""
    asked = _Asked(student, probe, WIDE, "hooks", "frozen", "changed", "gradients", "recording")
    asked.expect_shapes()
    left: Sequence[tuple[str, str, str]] = (
        (
            "hooks",
            "a hook is left behind on {}, or somebody else's is gone",
            "What did the registration give you, and what can that do?",
        ),
        (
            "frozen",
            "{} was frozen, or was freed",
            "How does one compute without gradients and leave a model alone?",
        ),
        ("changed", "the numbers in {} have changed", "Which line writes into the model?"),
        ("gradients", "{} has another gradient than before", "Which line clears gradients, or makes them?"),
    )
    for note, seen, look in left:
        if asked.notes[note]:
            raise Failure(seen.format(listed(asked.notes[note], 2)), "the model as it came", look)
    if not asked.notes["recording"]:
        look = "Where does your no_grad end? It has a `with`."
        raise Failure("torch records no gradients any more after the call", "gradients recorded as before", look)


@predict_with_attention.check(needs=two_tensors_come_back, worth=0.5)
def it_computes_where_the_model_is(student: Student, probe: Probe) -> None:
    """A model and an image on another device are asked there."""
    _Asked(student, probe, WIDE).expect_shapes()
    weights = probe.weights(parameter_shapes(WIDE))
    image = probe.normal(WIDE.in_channels, WIDE.height, WIDE.width)
    notes = student.practise("predict_elsewhere", weights=weights, config=WIDE, image=image)
    expect_one_device(student, notes | {"devices": []})  # a result for the eyes may well be on the CPU


@predict_with_attention.check(needs=the_map_shows_where_the_class_token_looks)
def a_float64_model_answers_in_float64(student: Student, probe: Probe) -> None:
    """A float64 model gives float64 probabilities and a float64 map."""
    _Asked(student, probe, TALL, dtype=torch.float64).expect_right(" of a float64 model")


predict_with_attention.example("""
>>> small = ViTConfig(image_size=(8, 12), patch_size=4, embed_dim=6, depth=2, num_heads=2, num_classes=5)
>>> probabilities, seen = predict_with_attention(VisionTransformer(small), torch.zeros(3, 8, 12))
>>> tuple(probabilities.shape), tuple(seen.shape)  # 2 rows and 3 columns of patches
((5,), (2, 3))
>>> round(probabilities.sum().item(), 4), round(seen.sum().item(), 4)
(1.0, 1.0)
""")
