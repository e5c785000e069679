"""`predict_with_attention`: a prediction, and where the class token looked.

The oracle is torch's own functions, on weights that are loaded by name; the model itself is a SmallViT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor, join_names
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_no_device_mismatch
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import expect_pair_of_tensors, weights_of
from vit_course.exercises.l05_vit.vision_transformer.claims import (
    TALL_MODEL,
    WIDE_MODEL,
    apply_block,
    apply_layer_norm,
    embed_images,
    list_parameter_shapes,
    logits_of,
)
from vit_course.exercises.l08_inside import LESSON

Weights = Mapping[str, Tensor]
# 4 x 5 and 5 x 3 patches; two blocks at least, so that the first is not the last
WIDE, TALL = WIDE_MODEL, replace(TALL_MODEL, num_classes=8)
ONE_ROW, ONE_COLUMN = replace(WIDE, image_size=(2, 10)), replace(TALL, image_size=(15, 3))
MAP_AXES = ("row", "column")
APART = ("blocks.0",)
WHAT_STILL_RUNS = "Which lines of yours still run when the model raises?"
WHO_PUTS_BACK = "What did that part have before you wrote into it, and who puts that back?"


def compute_attention_of_block(weights: Weights, image: Tensor, config: ViTConfig, block: int) -> Tensor:
    """Attention weights (num_heads, tokens, tokens) of one block on image (channels, height, width)."""
    x = embed_images(weights, image[None], config)
    for number in range(block):
        x = apply_block(weights, number, x, config)
    name = f"blocks.{block}"
    qkv, bias = weights[f"{name}.attention.qkv.weight"], weights.get(f"{name}.attention.qkv.bias")
    heads = F.linear(apply_layer_norm(weights, f"{name}.norm1", x, config), qkv, bias).unflatten(
        -1, (3, config.num_heads, -1)
    )
    query, key, _ = heads.permute(2, 0, 3, 1, 4)
    return weights_of(query, key)[0]


def compute_expected_prediction(weights: Weights, config: ViTConfig, image: Tensor) -> tuple[Tensor, Tensor]:
    """The oracle: probabilities (num_classes,), and the map (rows, columns)."""
    probabilities = F.softmax(logits_of(weights, image[None], config)[0], dim=0)
    seen = compute_attention_of_block(weights, image, config, config.depth - 1)[:, 0].mean(0)
    return probabilities, F.normalize(seen[1:], p=1.0, dim=0).unflatten(0, config.grid_size)


def draw_config(probe: Probe, shown: ViTConfig) -> ViTConfig:
    """The one that is shown; in grading one of drawn sizes, its grid as wide or tall, or as much a row or a column."""
    if not probe.is_secret:
        return shown
    short, long = sorted(probe.sizes(2, low=2, high=5))
    short = 1 if 1 in shown.grid_size else short
    rows, columns = (short, long) if shown.width > shown.height else (long, short)
    patch_size, heads = probe.choice((2, 3)), probe.choice((2, 3))
    return ViTConfig(
        image_size=(rows * patch_size, columns * patch_size),
        patch_size=patch_size,
        in_channels=probe.choice((1, 2, 4, 5)),
        num_classes=probe.choice((6, 7, 8, 9)),
        embed_dim=heads * probe.choice((3, 4)),
        depth=probe.choice((2, 3)),
        num_heads=heads,
        mlp_ratio=2.0,
    )


predict_with_attention = Exercise("predict_with_attention", LESSON, in_training=InTraining.UNSEEN)


class _Prediction:
    """One question: a model like the one ``shown``, an image, the student's answer, and all that the fixture noted."""

    def __init__(
        self,
        student: Student,
        probe: Probe,
        shown: ViTConfig,
        *judged: str,
        training: bool = False,
        apart: Sequence[str] = (),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        config = draw_config(probe, shown)
        self.weights = {name: each.to(dtype) for name, each in probe.weights(list_parameter_shapes(config)).items()}
        self.image = probe.normal(config.in_channels, config.height, config.width, dtype=dtype)
        self.config = config
        fields = {"weights": self.weights, "config": config, "image": self.image, "training": training, "apart": apart}
        self.notes: dict[str, Any] = student.run_fixture("predict", "returned", *judged, **fields)
        answer = expect_pair_of_tensors(self.notes["returned"], student.name, "the probabilities", "the map")
        self.probabilities, self.map = answer

    def expect_shapes(self) -> None:
        expect_tensor(self.probabilities, (self.config.num_classes,), "the first tensor, the probabilities,")
        rows, columns = self.config.grid_size
        expect_tensor(self.map, (rows, columns), f"the second tensor, the map of {rows} rows and {columns} columns,")

    def expect_right(self, context: str = "", look: str = "") -> None:
        """Fail in words unless both tensors hold the right numbers."""
        self.expect_shapes()
        probabilities, seen = compute_expected_prediction(self.weights, self.config, self.image)
        expect_equal(self.probabilities, probabilities, f"the probabilities tensor{context}", ("class",), look=look)
        expect_equal(self.map, seen, f"the map{context}", MAP_AXES, look=look)


@predict_with_attention.check(guard=True)
def two_tensors_come_back(student: Student, probe: Probe) -> None:
    """It returns the probabilities (num_classes,) and the map (rows, columns), without a batch axis."""
    for shown in (WIDE, TALL):
        _Prediction(student, probe, shown).expect_shapes()


def expect_both_tensors_are_right(student: Student, probe: Probe) -> None:
    """The answer is right: what hidden checks ask first, where a model that is never run is left alone, too."""
    _Prediction(student, probe, WIDE).expect_right()


@predict_with_attention.check(needs=two_tensors_come_back, points=0.65)
def the_probabilities_are_the_models(student: Student, probe: Probe) -> None:
    """The probabilities are what the softmax makes of the model's logits."""

    def describe_numbers_beyond_0_to_1(found: Tensor, _: Tensor) -> tuple[str, str] | None:
        if found.min() < 0 or found.max() > 1:
            return f"they run from {found.min():.3g} to {found.max():.3g}", "numbers from 0 to 1 that sum to 1"
        return None

    look = "What does the model give, and what makes probabilities of it, along which axis?"
    for shown in (WIDE, TALL):
        answer = _Prediction(student, probe, shown)
        expected, _ = compute_expected_prediction(answer.weights, answer.config, answer.image)
        expect_equal(
            answer.probabilities, expected, "the probabilities tensor", ("class",), describe_numbers_beyond_0_to_1, look
        )


@predict_with_attention.check(needs=two_tensors_come_back)
def the_map_sums_to_one(student: Student, probe: Probe) -> None:
    """The map sums to one: it says how the attention to the patches, without the class token's own, is divided."""
    total = float(_Prediction(student, probe, WIDE).map.detach().sum())
    if abs(total - 1) > 1e-4:
        look = "The row of the class token sums to 1 with all its tokens. Which of them is not on the map?"
        raise Failure(f"the map sums to {total:.4g}", "1", look)


@predict_with_attention.check(needs=two_tensors_come_back, points=0.9)
def the_map_shows_where_the_class_token_looks(student: Student, probe: Probe) -> None:
    """The map is the class token's attention to the patches in the last block, the mean over the heads."""
    for shown in (WIDE, TALL, ONE_ROW, ONE_COLUMN):
        answer = _Prediction(student, probe, shown)
        _, seen = compute_expected_prediction(answer.weights, answer.config, answer.image)
        rows, columns = answer.config.grid_size
        look = "Which block, which row of the weights, which tokens of it, and in which order do patches stand?"
        expect_equal(answer.map, seen, f"the map of {rows} rows and {columns} columns", MAP_AXES, look=look)


@predict_with_attention.check(
    needs=(the_probabilities_are_the_models, the_map_shows_where_the_class_token_looks), points=0.75
)
def the_model_is_asked_in_evaluation_mode(student: Student, probe: Probe) -> None:
    """A model that comes in training mode is run in evaluation mode."""
    look = "This model has dropout. Which call turns it off, and do both of your questions come after it?"
    for training, apart, came in (
        (True, (), "a model that was training"),
        (True, APART, f"a model that was training, but for {APART[0]}"),
        (False, APART, f"a model of which {APART[0]} was training"),
    ):
        _Prediction(student, probe, WIDE, training=training, apart=apart).expect_right(f" of {came}", look)


@predict_with_attention.check(
    needs=two_tensors_come_back, guard=True, points=0.6, first=the_model_is_asked_in_evaluation_mode
)
def the_mode_is_put_back(student: Student, probe: Probe) -> None:
    """Afterward each module is in the mode that it had before, training or evaluation."""
    for training, mode, other in ((True, "training", "evaluation"), (False, "evaluation", "training")):
        answer = _Prediction(student, probe, WIDE, "modes", training=training)
        answer.expect_shapes()
        if answer.notes["modes"]:
            raise Failure(
                f"a model that came in {mode} mode is in {other} mode afterward: "
                f"{join_names(answer.notes['modes'], 2)}",
                f"{mode} mode, as before",
                "What do you know about the model's mode before you change it, and where do you keep it?",
            )
    for training in (True, False):
        answer = _Prediction(student, probe, WIDE, "modes", training=training, apart=APART)
        expect_unchanged_modes(answer.notes["modes"], training)


def expect_unchanged_modes(changed: Sequence[object], training: bool) -> None:
    """Fail when parts of a model of which ``APART`` came in another mode are ``changed``."""
    if changed:
        mode, other = ("training", "evaluation") if training else ("evaluation", "training")
        came = f"a model came in {mode} mode, and {APART[0]} of it in {other} mode; afterward other modes have"
        look = "How many modes does a model have: one, or one for each of its modules?"
        seen = f"{came} {join_names([str(each) for each in changed], 2)}"
        raise Failure(seen, "each module's own mode, as before", look)


@predict_with_attention.check(needs=two_tensors_come_back, guard=True, points=0.1, first=expect_both_tensors_are_right)
def no_gradient_is_kept(student: Student, probe: Probe) -> None:
    """No graph for a backward pass is kept."""
    answer = _Prediction(student, probe, WIDE, "gradients")
    kept = [name for name in ("probabilities", "map") if getattr(answer, name).requires_grad]
    student.note(("keeps a graph", tuple(kept)))
    if kept:
        look = "Every intermediate tensor stays in memory for it. What tells torch that no backward pass will come?"
        raise Failure(
            f"the {' and the '.join(kept)} still know how they were computed", "tensors without a graph", look
        )
    answer.expect_shapes()


@predict_with_attention.check(needs=two_tensors_come_back, guard=True, points=0.2, first=expect_both_tensors_are_right)
def the_model_is_left_as_it_was(student: Student, probe: Probe) -> None:
    """Nothing is left behind in model and image: no hook, no frozen or changed parameter, no other gradient."""
    judged = ("hooks", "replaced", "frozen", "changed", "gradients", "image_changed", "recording")
    answer = _Prediction(student, probe, WIDE, *judged)
    answer.expect_shapes()
    left: Sequence[tuple[str, str, str]] = (
        (
            "hooks",
            "a hook is left behind on {}, or somebody else's is gone",
            "What did the registration give you, and what can that do?",
        ),
        ("replaced", "another `forward` is left behind on {}", WHO_PUTS_BACK),
        (
            "frozen",
            "{} was frozen, or was freed",
            "How does one compute without gradients and leave a model alone?",
        ),
        ("changed", "the numbers in {} have changed", "Which line writes into the model?"),
        ("gradients", "{} has another gradient than before", "Which line clears gradients, or makes them?"),
    )
    for note, seen, look in left:
        if answer.notes[note]:
            raise Failure(seen.format(join_names(answer.notes[note], 2)), "the model as it came", look)
    if answer.notes["image_changed"]:
        raise Failure("the image has changed", "the image as it came", "Which line writes into the image?")
    if not answer.notes["recording"]:
        look = "Where does your no_grad end? It has a `with`."
        raise Failure("torch records no gradients any more after the call", "gradients recorded as before", look)


@predict_with_attention.check(
    needs=(the_mode_is_put_back, the_model_is_left_as_it_was),
    guard=True,
    points=0.25,
    first=expect_both_tensors_are_right,
)
def an_error_leaves_nothing_behind(student: Student, probe: Probe) -> None:
    """Even if the model raises an error, as for an image of another size, it is left as it was."""
    _Prediction(student, probe, WIDE).expect_shapes()
    config = draw_config(probe, WIDE)
    weights = probe.weights(list_parameter_shapes(config))
    image = probe.normal(config.in_channels, config.height + config.patch_size, config.width)
    notes = student.run_fixture("predict_stopped", weights=weights, config=config, image=image)
    traces = describe_first_trace_left(notes)
    student.note_instead(("left after an error", bool(traces)))
    if traces:
        seen = f"an image of another size stopped the model, and afterward {traces}"
        raise Failure(seen, "the model as it came, after an error too", WHAT_STILL_RUNS)


def describe_first_trace_left(notes: Mapping[str, Any]) -> str:
    """The first thing that a call which was stopped has left behind, as a clause; "" for nothing."""
    clauses = {
        "modes": "{} is in another mode",
        "hooks": "another hook is on {}",
        "replaced": "another `forward` is on {}",
        "frozen": "{} is frozen, or freed",
    }
    traces = [clause.format(str(notes[name][0])) for name, clause in clauses.items() if notes[name]]
    return (traces or ["" if notes["recording"] else "torch records no gradients any more"])[0]


@predict_with_attention.check(
    needs=the_map_shows_where_the_class_token_looks,
    worth=0.5,
    guard=True,
    points=0.2,
    first=expect_both_tensors_are_right,
)
def it_computes_where_the_model_is(student: Student, probe: Probe) -> None:
    """A model and an image on another device are used there."""
    _Prediction(student, probe, WIDE).expect_shapes()
    config = draw_config(probe, WIDE)
    weights = probe.weights(list_parameter_shapes(config))
    image = probe.normal(config.in_channels, config.height, config.width)
    notes = student.run_fixture("predict_elsewhere", weights=weights, config=config, image=image)
    expect_no_device_mismatch(student, notes | {"devices": []})  # a result for the eyes may well be on the CPU


@predict_with_attention.check(needs=the_map_shows_where_the_class_token_looks, guard=True, points=0.15)
def a_float64_model_answers_in_float64(student: Student, probe: Probe) -> None:
    """A float64 model gives float64 probabilities and a float64 map."""
    _Prediction(student, probe, TALL, dtype=torch.float64).expect_right(" of a float64 model")


predict_with_attention.example(
    """
>>> small = ViTConfig(image_size=(8, 12), patch_size=4, embed_dim=6, depth=2, num_heads=2, num_classes=5)
>>> probabilities, seen = predict_with_attention(VisionTransformer(small), torch.zeros(3, 8, 12))
>>> tuple(probabilities.shape), tuple(seen.shape)  # 2 rows and 3 columns of patches
((5,), (2, 3))
>>> round(probabilities.sum().item(), 4), round(seen.sum().item(), 4)
(1.0, 1.0)
""",
    points=0.2,
    first=expect_both_tensors_are_right,
)


read_mistakes(predict_with_attention, __name__)
