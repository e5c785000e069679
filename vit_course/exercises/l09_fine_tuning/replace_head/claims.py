"""`replace_head`: a copy of a model with another head.

The new head's numbers are drawn by whoever makes it; each check is a fact that holds for all draws.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit.vision_transformer.claims import TALL_MODEL, WIDE_MODEL, list_parameter_shapes
from vit_course.exercises.l09_fine_tuning import LESSON
from vit_course.exercises.l09_fine_tuning.fine_tuning_groups.claims import format_names_as_code

FROZEN = ("positions", "blocks.0.mlp.fc1.weight")
OLD_HEAD = ("head.weight", "head.bias")

replace_head = Exercise("replace_head", LESSON, in_training=InTraining.HIDDEN)


def draw_config_and_num_classes(
    probe: Probe, shown: ViTConfig = WIDE_MODEL, num_classes: int = 7
) -> tuple[ViTConfig, int]:
    """A model and the number of classes of its new head, more or fewer than its own; in grading both are drawn."""
    if not probe.is_secret:
        return shown, num_classes
    old, embed_dim = probe.choice(range(4, 10)), 2 * probe.choice(range(4, 9))
    config = replace(probe.choice((WIDE_MODEL, TALL_MODEL)), embed_dim=embed_dim, num_heads=2, num_classes=old)
    return config, probe.choice(range(2, old) if num_classes < shown.num_classes else range(old + 1, old + 10))


def draw_model_fields(probe: Probe, config: ViTConfig, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """The fields of a fixture that make its model: random weights, and the config."""
    weights = {name: each.to(dtype) for name, each in probe.weights(list_parameter_shapes(config)).items()}
    return {"weights": weights, "config": config}


def call_and_read_notes(
    student: Student, probe: Probe, config: ViTConfig, num_classes: int, *judged: str, **fields: Any
) -> Any:
    """Return what the fixture noted of one call; Failure where no module came back."""
    named = draw_model_fields(probe, config, fields.pop("dtype", torch.float32))
    notes = student.run_fixture("rehead", "kind", *judged, num_classes=num_classes, **named, **fields)
    if notes["kind"] != "module":
        kind = str(notes["kind"]).replace("NoneType", "None")
        raise Failure(f"{student.name} gave {kind}", "a model", "What does your `return` line give back?")
    return notes | {"old": named["weights"]["head.weight"]}


def expect_right_head(student: Student, notes: Any, config: ViTConfig, num_classes: int) -> None:
    """Fail unless the head is an nn.Linear of the right sizes, with a bias."""
    head = notes["head"]
    facts = (head["kind"], tuple(head["sizes"]), bool(head["bias"].numel()))
    student.note(("head", *facts, tuple(head["says"])))
    if facts != ("Linear", (config.embed_dim, num_classes), True):
        sizes = f" of {head['sizes'][0]} to {head['sizes'][1]} numbers" if head["sizes"] else ""
        bias = "" if head["bias"].numel() or not head["sizes"] else ", without a bias"
        wanted = f"an nn.Linear of {config.embed_dim} to {num_classes} numbers, with a bias"
        look = "What does the head read, and what does it give?"
        raise Failure(f"the head is a {head['kind']}{sizes}{bias}", wanted, look)


@replace_head.check(guard=True, points=0.05, first="the_backbone_keeps_what_it_has_learned")
def the_head_has_the_new_sizes(student: Student, probe: Probe) -> None:
    """The head is an nn.Linear from embed_dim to num_classes, with a bias."""
    for shown in ((WIDE_MODEL, 7), (TALL_MODEL, 3)):
        config, num_classes = draw_config_and_num_classes(probe, *shown)
        expect_right_head(student, call_and_read_notes(student, probe, config, num_classes), config, num_classes)


@replace_head.check(needs=the_head_has_the_new_sizes, points=0.07)
def the_backbone_keeps_what_it_has_learned(student: Student, probe: Probe) -> None:
    """All parameters except the head's keep their numbers."""
    config, num_classes = draw_config_and_num_classes(probe)
    notes = call_and_read_notes(student, probe, config, num_classes, "missing", "other", "added")
    expect_right_head(student, notes, config, num_classes)
    look = "Where do the numbers of your copy come from?"
    if notes["missing"]:
        raise Failure(f"the copy has no parameter {format_names_as_code(notes['missing'])}", "all of the model's", look)
    if notes["other"]:
        raise Failure(
            f"{format_names_as_code(notes['other'])} have other numbers", "those of the model that was given", look
        )
    if notes["added"]:
        look = "What else did you put into the model?"
        raise Failure(
            f"the copy has parameters that are new: {format_names_as_code(notes['added'])}", "a new head alone", look
        )


@replace_head.check(
    needs=the_backbone_keeps_what_it_has_learned, points=0.35, first=the_backbone_keeps_what_it_has_learned
)
def the_head_starts_afresh(student: Student, probe: Probe) -> None:
    """The new head does not begin with rows of the old one, which stand for other classes."""
    config, _ = draw_config_and_num_classes(probe)
    for num_classes in (config.num_classes - 2, config.num_classes, config.num_classes + 3):
        notes = call_and_read_notes(student, probe, config, num_classes)
        new, old = notes["head"]["weight"].double(), notes["old"].double()
        known = [bool((old - row).abs().amax(dim=1).min() < 1e-6) for row in new]
        student.note(("old rows", tuple(known)))
        if any(known):
            seen = f"of {num_classes} rows of the new head {sum(known)} are rows of the old one"
            raise Failure(seen, "a head that starts afresh", "What did class 0 mean before, and what does it mean now?")


@replace_head.check(
    needs=the_head_has_the_new_sizes, worth=0.5, points=0.25, first=the_backbone_keeps_what_it_has_learned
)
def the_head_starts_as_pytorch_starts_one(student: Student, probe: Probe) -> None:
    """The new head's numbers are as PyTorch starts those of a Linear: evenly spread up to 1 / √embed_dim."""
    config, _ = draw_config_and_num_classes(probe)
    head = call_and_read_notes(student, probe, config, 128)["head"]
    bound = config.embed_dim**-0.5
    # 1280 numbers and more, or 128: evenly spread from -bound to bound, half of them are within half of it
    for name, least in (("weight", 0.4), ("bias", 0.25)):
        numbers = head[name].double().abs() / bound
        share, most = float((numbers < 0.5).double().mean()), float(numbers.max())
        as_usual = least < share < 1 - least and most <= 1 + 1e-6
        student.note((name, as_usual, most == 0))
        if not as_usual:
            what = "is all zeros" if most == 0 else f"goes up to {most * bound:.3g}, {share:.0%} below {bound / 2:.3g}"
            wanted = f"as a new nn.Linear has them: evenly spread from {-bound:.3g} to {bound:.3g}"
            look = "What does nn.Linear do with its numbers, and who touches them after it?"
            raise Failure(f"the {name} of the new head {what}", wanted, look)


@replace_head.check(
    needs=the_head_has_the_new_sizes, guard=True, points=1.24, first=the_backbone_keeps_what_it_has_learned
)
def the_given_model_is_left_alone(student: Student, probe: Probe) -> None:
    """The given model is the same as before: its head, its numbers, its mode, and what is frozen in it."""
    for training in (False, True):
        notes = call_and_read_notes(
            student, probe, *draw_config_and_num_classes(probe), "itself", "changed", training=training, frozen=FROZEN
        )
        if notes["itself"] or notes["changed"]:
            seen = (
                "what comes back is the model itself"
                if notes["itself"]
                else f"changed: {format_names_as_code(notes['changed'])}"
            )
            look = "Somebody still needs the old model. Which function of Python copies an object with all its parts?"
            raise Failure(f"in the model that was given, {seen}" if not notes["itself"] else seen, "a copy", look)


@replace_head.check(
    needs=the_head_has_the_new_sizes, guard=True, points=1.34, first=the_backbone_keeps_what_it_has_learned
)
def the_two_share_no_memory(student: Student, probe: Probe) -> None:
    """The copy's parameters are its own: training the copy changes nothing in the given model."""
    notes = call_and_read_notes(student, probe, *draw_config_and_num_classes(probe))
    student.note(("shared", tuple(map(str, notes["shared"]))))
    if notes["shared"]:
        look = "What happens to the old model when the new one is trained?"
        raise Failure(
            f"copy and model share {format_names_as_code(notes['shared'])}", "parameters of the copy's own", look
        )


def both_share_their_parts(student: Student, probe: Probe) -> bool:
    """Say whether the parameters of the copy are the model's."""
    return bool(call_and_read_notes(student, probe, *draw_config_and_num_classes(probe))["shared"])


@replace_head.check(
    needs=the_head_has_the_new_sizes, worth=0.5, guard=True, points=0.5, first=the_backbone_keeps_what_it_has_learned
)
def what_learns_goes_on_learning(student: Student, probe: Probe) -> None:
    """What is frozen in the model is frozen in the copy, and all else learns, even a new head for a frozen one."""
    for frozen in ((), FROZEN, OLD_HEAD):
        found = sorted(
            call_and_read_notes(student, probe, *draw_config_and_num_classes(probe), frozen=frozen)["frozen"]
        )
        student.note(("frozen", tuple(found)))
        if wrong := sorted({*found} ^ ({*frozen} - {*OLD_HEAD})):
            seen = "are frozen in the copy" if wrong[0] in found else "learn in the copy"
            look = "Who decides what is frozen: this function, or who trains the model?"
            raise Failure(f"{format_names_as_code(wrong)} {seen}", "frozen what was frozen before", look)


@replace_head.check(
    needs=the_head_has_the_new_sizes, worth=0.5, guard=True, points=0.05, first=the_backbone_keeps_what_it_has_learned
)
def the_head_has_the_models_dtype(student: Student, probe: Probe) -> None:
    """The new head has the dtype of the old one, so a float64 model still runs."""
    notes = call_and_read_notes(student, probe, *draw_config_and_num_classes(probe, TALL_MODEL, 3), dtype=torch.float64)
    student.note(("dtype", notes["head"]["dtype"]))
    if notes["head"]["dtype"] != "float64":
        look = "Which dtype and which device has the old head's weight?"
        raise Failure(f"in a float64 model the new head is {notes['head']['dtype']}", "float64", look)


replace_head.example(
    """
>>> model = VisionTransformer(ViTConfig(image_size=8, patch_size=4, embed_dim=6, depth=1, num_heads=2))
>>> other = replace_head(model, 3)
>>> model.head.out_features, other.head.out_features
(10, 3)
>>> torch.equal(model.positions, other.positions)
True
""",
    points=0.1,
    first=the_backbone_keeps_what_it_has_learned,
)


read_mistakes(replace_head, __name__)
