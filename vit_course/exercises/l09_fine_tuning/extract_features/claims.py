"""`extract_features`: what a model's head receives for every image, computed once.

The oracle is torch's own functions, on weights that are loaded by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import describe_kind, expect_equal, expect_tensor, format_dtype, join_names
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Undecided
from exercise_kit.quoting import quote_first_line
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit.vision_transformer.claims import (
    TALL_MODEL,
    WIDE_MODEL,
    apply_block,
    apply_layer_norm,
    embed_images,
    list_parameter_shapes,
)
from vit_course.exercises.l08_inside.predict_with_attention.claims import (
    APART,
    WHAT_STILL_RUNS,
    WHO_PUTS_BACK,
    describe_first_trace_left,
    expect_unchanged_modes,
)
from vit_course.exercises.l09_fine_tuning import LESSON

Batches = list[tuple[Tensor, Tensor]]
AXES = ("image", "feature")
FROZEN = ("blocks.0.norm1.weight", "head.bias")

extract_features = Exercise("extract_features", LESSON, in_training=InTraining.HIDDEN)


def compute_expected_features(weights: Mapping[str, Tensor], images: Tensor, config: ViTConfig) -> Tensor:
    """The oracle: the class token, or the mean of all, behind all blocks and the last norm, (batch, embed_dim)."""
    x = embed_images(weights, images, config)
    for number in range(config.depth):
        x = apply_block(weights, number, x, config)
    x = apply_layer_norm(weights, "norm", x, config)
    return x.mean(dim=1) if config.pooling == "mean" else x[:, 0]


def draw_config(probe: Probe, shown: ViTConfig | None = None) -> ViTConfig:
    """The one that is shown, or else a wide or a tall one; in grading one like it, of any width."""
    config = shown or probe.choice((WIDE_MODEL, TALL_MODEL), shown=WIDE_MODEL)
    return replace(config, embed_dim=2 * probe.choice(range(4, 9)), num_heads=2) if probe.is_secret else config


class _Call:
    """One call: the model's weights, the batches, what came back, and all else that the fixture has noted."""

    def __init__(
        self,
        student: Student,
        probe: Probe,
        *judged: str,
        shown: ViTConfig | None = None,
        sizes: Sequence[int] = (4, 4, 2),
        **fields: Any,
    ) -> None:
        self.config = config = draw_config(probe, shown)
        self.weights = probe.weights(list_parameter_shapes(config))
        self.batches: Batches = [
            (probe.normal(size, config.in_channels, config.height, config.width), probe.integers(size, high=9))
            for size in sizes
        ]
        named = {"weights": self.weights, "config": config, "batches": self.batches}
        self.notes: dict[str, Any] = student.run_fixture("featuring", "returned", *judged, **named, **fields)
        returned = self.notes["returned"]
        if not isinstance(returned, list | tuple) or len(returned) != 2:
            look = "What does your `return` line give back?"
            raise Failure(f"{student.name} gave {describe_kind(returned)}", "a pair: features, labels", look)
        self.features, self.labels = returned

    def expect_shapes(self) -> None:
        count = sum(len(labels) for _, labels in self.batches)
        expect_tensor(self.features, (count, self.config.embed_dim), "the first of the two, the features,")
        labels = expect_tensor(self.labels, (count,), "the second of the two, the labels,")
        if labels.dtype != torch.int64:
            look = "Whose labels are these: the loader's?"
            raise Failure(f"the labels are {format_dtype(labels.dtype)}", "int64, as the loader's are", look)

    def expect_right(self, context: str = "", look: str = "") -> None:
        """Fail in words unless both tensors hold the right numbers."""
        self.expect_shapes()
        images = torch.cat([images for images, _ in self.batches])
        wanted = compute_expected_features(self.weights, images, self.config)
        expect_equal(self.features, wanted, f"the features tensor{context}", AXES, look=look)
        labels = torch.cat([labels for _, labels in self.batches])
        expect_equal(self.labels, labels, f"the labels tensor{context}", ("image",))


@extract_features.check(guard=True, points=0.5, first="the_features_are_what_the_head_reads")
def every_image_has_a_row(student: Student, probe: Probe) -> None:
    """It gives a row of embed_dim numbers for every image, and its label, a short last batch included."""
    for sizes in ((4, 4, 2), (3,), (1,)):
        _Call(student, probe, sizes=sizes).expect_shapes()


@extract_features.check(needs=every_image_has_a_row, points=1.55)
def the_features_are_what_the_head_reads(student: Student, probe: Probe) -> None:
    """The features are what the head reads: after all blocks and the last norm, however the model pools."""
    look = "Which tensor goes into `model.head`? Which steps of forward are still to come when you take yours?"
    for shown in (WIDE_MODEL, TALL_MODEL):
        _Call(student, probe, shown=shown).expect_right("", look)
    by_mean = replace(WIDE_MODEL, pooling="mean")
    _Call(student, probe, shown=by_mean).expect_right(" of a model that pools by the mean of its tokens", look)


@extract_features.check(needs=the_features_are_what_the_head_reads, points=1.4)
def the_model_is_asked_in_evaluation_mode(student: Student, probe: Probe) -> None:
    """A model that comes in training mode is run in evaluation mode."""
    look = "This model has dropout. Which call turns it off?"
    _Call(student, probe, training=True).expect_right(" of a model that was training", look)


@extract_features.check(
    needs=every_image_has_a_row, guard=True, points=0.65, first=the_model_is_asked_in_evaluation_mode
)
def the_mode_is_put_back(student: Student, probe: Probe) -> None:
    """Afterward each module is in the mode that it had before."""
    for training, mode in ((True, "training"), (False, "evaluation")):
        call = _Call(student, probe, "modes", training=training)
        call.expect_shapes()
        if call.notes["modes"]:
            seen = f"a model that came in {mode} mode is not in it afterward: {join_names(call.notes['modes'], 2)}"
            raise Failure(seen, f"{mode} mode, as before", "Where do you keep the mode before you change it?")
    for training in (True, False):
        call = _Call(student, probe, "modes", training=training, apart=APART)
        expect_unchanged_modes(call.notes["modes"], training)


@extract_features.check(needs=every_image_has_a_row, guard=True, points=0.4, first=the_features_are_what_the_head_reads)
def no_graph_is_kept(student: Student, probe: Probe) -> None:
    """The features have no graph, so nothing is kept in memory for a backward pass."""
    call = _Call(student, probe, "graph")
    call.expect_shapes()
    if call.notes["graph"]:
        look = "All that the model computed for every image stays in memory. What tells torch that no backward comes?"
        raise Failure("the features still know how they were computed", "tensors without a graph", look)


@extract_features.check(needs=every_image_has_a_row, guard=True, points=0.5, first=the_features_are_what_the_head_reads)
def the_model_is_left_as_it_was(student: Student, probe: Probe) -> None:
    """The model has its old head and no hook, and what was frozen is frozen; torch records gradients as before."""
    judged = ("hooks", "replaced", "head", "frozen", "gradients", "recording")
    call = _Call(student, probe, *judged, frozen=FROZEN)
    call.expect_shapes()
    notes = call.notes
    frozen = sorted({*map(str, notes["frozen"])} ^ {*FROZEN})
    left = (
        (notes["hooks"] is True, "a hook is left behind", "What did the registration give you, and what can that do?"),
        (notes["replaced"] is True, "a part has another `forward`", WHO_PUTS_BACK),
        (not notes["head"], "the model has another head than before", "What did you put in its place, and until when?"),
        (bool(frozen), f"{', '.join(frozen)}: frozen or freed", "Does taking features need a change to what learns?"),
        (bool(notes["gradients"]), "parameters have a gradient now", "Who called backward?"),
        (not notes["recording"], "torch records no gradients any more", "Where does your no_grad end?"),
    )
    for is_wrong, seen, look in left:
        if is_wrong:
            raise Failure(f"after the call {seen}", "everything as it was", look)


@extract_features.check(
    needs=(the_mode_is_put_back, the_model_is_left_as_it_was),
    guard=True,
    points=0.25,
    first=the_features_are_what_the_head_reads,
)
def an_error_leaves_nothing_behind(student: Student, probe: Probe) -> None:
    """Even if the model raises an error at a batch, as for images of another size, it is left as it was."""
    _Call(student, probe).expect_shapes()
    config = draw_config(probe)
    heights = (config.height, config.height + config.patch_size)
    batches = [
        (probe.normal(3, config.in_channels, height, config.width), probe.integers(3, high=9)) for height in heights
    ]
    weights = probe.weights(list_parameter_shapes(config))
    notes = student.run_fixture("featuring_stopped", weights=weights, config=config, batches=batches)
    traces = describe_first_trace_left(notes) or ("" if notes["head"] else "the model has another head")
    student.note_instead(("left after an error", bool(traces)))
    if traces:
        seen = f"a batch of images of another size stopped the model, and afterward {traces}"
        raise Failure(seen, "the model as it came, after an error too", WHAT_STILL_RUNS)


@extract_features.check(
    needs=every_image_has_a_row, worth=0.5, guard=True, points=0.25, first=the_features_are_what_the_head_reads
)
def the_loader_is_gone_through_once(student: Student, probe: Probe) -> None:
    """The loader is read only once: it may shuffle, and then a second pass has another order."""
    call = _Call(student, probe, "passes")
    call.expect_shapes()
    if call.notes["passes"] != 1:
        look = "Could the labels come along with the images?"
        raise Failure(f"the loader was gone through {call.notes['passes']} times", "once", look)


@extract_features.check(
    needs=the_features_are_what_the_head_reads,
    worth=0.5,
    guard=True,
    points=0.25,
    first=the_features_are_what_the_head_reads,
)
def features_of_another_device_come_to_the_cpu(student: Student, probe: Probe) -> None:
    """Images go to the device of the model, and features and labels come back on the CPU."""
    call = _Call(student, probe)
    call.expect_shapes()
    named = {"weights": call.weights, "config": call.config, "batches": call.batches}
    notes = student.run_fixture("featuring_elsewhere", **named)
    mixed, elsewhere = notes["mixed"] is True, any(each != "cpu" for each in notes["devices"])
    student.note_instead(("devices", mixed, elsewhere))
    if mixed:
        look = "Where is the model, and where are the images that you give it?"
        raise Failure("with the model on another device, a tensor on the CPU got in the way", "images there", look)
    if notes["raised"] and notes["read"] is not True:
        seen = f"with the model on another device, it raised {quote_first_line(notes['raised'])}"
        raise Failure(seen, "the same as on the CPU", "Which line asks on which device the model is?")
    if notes["raised"]:
        raise Undecided("only a GPU could show whether it works there")
    if elsewhere:
        look = "Where would the features of 50,000 images take up memory?"
        raise Failure("of a model on another device, what came back is there too", "tensors on the CPU", look)


extract_features.example(
    """
>>> model = VisionTransformer(ViTConfig(image_size=8, patch_size=4, embed_dim=6, depth=1, num_heads=2))
>>> batches = [(torch.rand(2, 3, 8, 8), torch.tensor([7, 1])), (torch.rand(1, 3, 8, 8), torch.tensor([4]))]
>>> features, labels = extract_features(model, batches, "cpu")
>>> tuple(features.shape), labels.tolist()
((3, 6), [7, 1, 4])
""",
    points=0.25,
    first=the_features_are_what_the_head_reads,
)


read_mistakes(extract_features, __name__)
