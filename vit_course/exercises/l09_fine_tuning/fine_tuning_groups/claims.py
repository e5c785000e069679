"""`fine_tuning_groups`: the backbone with one learning rate, the head with another.

The model knows the name of each of its parameters; nobody has to tell them apart by their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exercise_kit.engine.compare import join_names
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training.parameter_groups.claims import (
    VIT,
    Parameters,
    format_number_or_kind,
    list_parameter_names,
)
from vit_course.exercises.l09_fine_tuning import LESSON

Groups = list[dict[str, Any]]
RATES = (1e-4, 3e-3)
# names with "head" in them that are not the head's
MANY_HEADS: Parameters = {
    "patch_embedding.projection": ("Linear", (12, 8)),
    "positions": ("Parameter", (1, 5, 8)),
    "blocks.0.multi_head.qkv": ("Linear", (8, 24)),
    "blocks.0.heads": ("Linear", (8, 8)),
    "ahead": ("LayerNorm", (8,)),
    "head": ("Linear", (8, 5)),
}
# a head of several layers that stands first, and others that look like it
HEAD_FIRST: Parameters = {
    "head.0": ("LayerNorm", (8,)),
    "head.1": ("Linear", (8, 5)),
    "headline": ("Linear", (8, 5)),
    "positions": ("Parameter", (1, 5, 8)),
    "blocks.0.head": ("Linear", (8, 5)),
    "norm": ("LayerNorm", (8,)),
}
FROZEN = ("patch_embedding.projection.weight", "positions", "head.bias")

fine_tuning_groups = Exercise("fine_tuning_groups", LESSON, in_training=InTraining.HIDDEN)


def draw_deeper_model(probe: Probe, parts: Parameters) -> Parameters:
    """The model that is shown; in grading the same one with a few blocks more."""
    copies = range(probe.choice((2, 3, 4), shown=1))
    copied = {
        name.replace(".0", f".{number}", 1): made
        for number in copies
        for name, made in parts.items()
        if name.startswith("blocks.0.")
    }
    return {**parts, **copied}


def draw_two_rates(probe: Probe, shown: tuple[float, float] = RATES) -> tuple[float, float]:
    """The backbone's and the head's rate as shown; in grading two others of which the same one is the larger."""
    low = probe.choice(range(1, 10)) / 10_000
    drawn = low, low * probe.choice(range(3, 10))
    return shown if not probe.is_secret else drawn if shown[0] < shown[1] else drawn[::-1]


def call_and_expect_groups(
    student: Student, parts: Parameters, rates: tuple[float, float] = RATES, **fields: Any
) -> Groups:
    """The groups as the fixture noted them; Failure when they are no two dicts with what an optimizer needs."""
    made_of = {name: [kind, list(sizes)] for name, (kind, sizes) in parts.items()}
    notes = student.run_fixture("rates", parts=made_of, backbone_lr=rates[0], head_lr=rates[1], **fields)
    student.forget()
    changed = sorted({*map(str, notes["frozen"])} ^ {*fields.get("frozen", ())} - {*map(str, notes["lost"])})
    found = notes["groups"]
    keys = [None if each is None else tuple(sorted({"params", "lr"} & set(each["keys"]))) for each in found]
    is_pair = keys == [("lr", "params")] * 2 and notes["returned"] in ("list", "tuple")
    lost = sorted(map(str, notes["lost"]))
    if lost or changed or not is_pair:
        student.note(("odd", notes["returned"], tuple(keys), tuple(changed), tuple(lost)))
    if lost:
        look = "What are the groups for: to deal the parameters out, or to take the model apart?"
        raise Failure(f"after the call the model has no {format_names_as_code(lost)}", "the model as it was", look)
    if changed:
        look = "What are the groups for: to deal the parameters out, or to change them?"
        raise Failure(f"the call changed whether `{changed[0]}` learns", "parameters as they were", look)
    if not is_pair:
        kind = f"a {notes['returned']} of {len(found)}" if found else str(notes["returned"]).replace("NoneType", "None")
        wanted = "a list of two dicts, each with the keys `params` and `lr`"
        look = "What does torch.optim's page say under “per-parameter options”?"
        raise Failure(f"{student.name} gave {kind}, with keys {_format_keys(found)}", wanted, look)
    groups: Groups = found
    return groups


def _format_keys(found: Sequence[dict[str, Any] | None]) -> str:
    return join_names([" and ".join(each["keys"]) if each else "none" for each in found] or ["none"])


def call_and_read_rates(
    student: Student, parts: Parameters, rates: tuple[float, float] = RATES, **fields: Any
) -> dict[str, Any]:
    """For each parameter the learning rates that it gets, which go on record."""
    found: dict[str, list[Any]] = {name: [] for name in list_parameter_names(parts)}
    for group in call_and_expect_groups(student, parts, rates, **fields):
        for name in group["names"]:
            found.setdefault(str(name), []).append(group["lr"])
    student.note(tuple((name, tuple(sorted(map(format_number_or_kind, each)))) for name, each in found.items()))
    return found


def format_names_as_code(names: Sequence[str]) -> str:
    """The first names, as code."""
    return join_names([f"`{name}`" for name in names], 3)


@fine_tuning_groups.check(guard=True, points=0.1, first="the_head_has_its_own_rate")
def it_gives_two_groups(student: Student, probe: Probe) -> None:
    """It gives two groups, each a dict with `params`, a list, and `lr`."""
    holders = [str(group["holder"]) for group in call_and_expect_groups(student, draw_deeper_model(probe, VIT))]
    once = [holder for holder in holders if holder not in ("list", "tuple")]
    student.note(("holders", bool(once)))
    if once:
        look = "What is left of a generator after one loop over it?"
        raise Failure(f"a group's params are a {once[0]}", "a list", look)


@fine_tuning_groups.check(needs=it_gives_two_groups, points=0.1, first="the_head_has_its_own_rate")
def every_parameter_is_in_one_group(student: Student, probe: Probe) -> None:
    """Every parameter of the model is in exactly one of the groups."""
    expect_each_parameter_once(student, draw_deeper_model(probe, VIT))


def expect_each_parameter_once(
    student: Student, parts: Parameters, rates: tuple[float, float] = RATES, **fields: Any
) -> dict[str, Any]:
    """The rates of all parameters; Failure unless the groups hold the model's own, each of them once."""
    found = call_and_read_rates(student, parts, rates, **fields)
    foreign = [name[2:] for name in found if name.startswith("?")]
    if foreign:
        look = (
            "What does named_parameters() give: names, parameters, or pairs of both? And what does an optimizer move?"
        )
        raise Failure(f"the groups hold a {foreign[0]} that is no parameter of the model", "its parameters", look)
    missing, twice = (
        [name for name, each in found.items() if wrong(len(each))] for wrong in (_is_zero, _is_more_than_one)
    )
    if missing:
        look = "Which parameters belong to no layer, but to the model itself?"
        raise Failure(f"in no group: {format_names_as_code(missing)}", "an optimizer that moves all of them", look)
    if twice:
        look = "Is a parameter of the head a parameter of the model, too?"
        raise Failure(f"in more than one place: {format_names_as_code(twice)}", "one group for each parameter", look)
    return found


def _is_zero(count: int) -> bool:
    return count == 0


def _is_more_than_one(count: int) -> bool:
    return count > 1


@fine_tuning_groups.check(needs=every_parameter_is_in_one_group, points=0.27)
def the_head_has_its_own_rate(student: Student, probe: Probe) -> None:
    """The head's parameters get head_lr, and all others backbone_lr."""
    for shown in (RATES, (0.5, 0.02)):
        expect_right_rates(student, draw_deeper_model(probe, VIT), draw_two_rates(probe, shown))
    expect_right_rates(student, VIT, (0.0, 0.02))  # a backbone that stands still


def expect_right_rates(student: Student, parts: Parameters, rates: tuple[float, float]) -> None:
    """Fail unless every parameter has the rate of its part."""
    found = call_and_read_rates(student, parts, rates)
    for name, each in found.items():
        wanted = rates[1] if name.startswith("head.") else rates[0]
        if [format_number_or_kind(rate) for rate in each] != [format_number_or_kind(wanted)]:
            seen = (
                f"`{name}` has the rate {join_names([format_number_or_kind(rate) for rate in each]) or 'of no group'}"
            )
            raise Failure(
                seen, format_number_or_kind(wanted), "Which parameters are the head's, and which rate is theirs?"
            )


@fine_tuning_groups.check(needs=it_gives_two_groups, points=0.77, first=the_head_has_its_own_rate)
def the_backbone_comes_first(student: Student, probe: Probe) -> None:
    """The backbone is the first group, the head the second."""
    first = [str(name) for name in call_and_expect_groups(student, draw_deeper_model(probe, VIT))[0]["names"]]
    holds_head, holds_others = "head.weight" in first, "positions" in first
    student.note(("first", holds_head, holds_others))
    if holds_head or not holds_others:
        raise Failure("the first group is not the backbone", "the backbone, then the head", "Which is named first?")


@fine_tuning_groups.check(needs=the_head_has_its_own_rate, points=0.2)
def other_names_with_head_are_backbone(student: Student, probe: Probe) -> None:
    """Parameters whose names merely contain the word head belong to the backbone."""
    expect_right_rates(student, draw_deeper_model(probe, MANY_HEADS), draw_two_rates(probe))


@fine_tuning_groups.check(needs=the_head_has_its_own_rate, points=1.01)
def the_head_is_what_the_model_calls_head(student: Student, probe: Probe) -> None:
    """The head is the model's own part `head`, even where it has several layers, or stands first."""
    expect_right_rates(student, draw_deeper_model(probe, HEAD_FIRST), draw_two_rates(probe))


@fine_tuning_groups.check(needs=every_parameter_is_in_one_group, points=0.3, first=the_head_has_its_own_rate)
def frozen_parameters_have_their_group(student: Student, probe: Probe) -> None:
    """A frozen parameter is in its group as well, since it may be trained again later."""
    rates = draw_two_rates(probe)
    frozen, free = (
        expect_each_parameter_once(student, VIT, rates, frozen=FROZEN),
        call_and_read_rates(student, VIT, rates),
    )
    if moved := [name for name in FROZEN if frozen[name] != free[name]]:
        seen = f"`{moved[0]}` gets another rate where it is frozen"
        raise Failure(
            seen, "the same group for it, frozen or not", "What is frozen now may learn later: in which group?"
        )


fine_tuning_groups.example(
    """
>>> model = nn.Sequential()
>>> model.body, model.head = nn.Linear(3, 4), nn.Linear(4, 2)
>>> [(len(group["params"]), group["lr"]) for group in fine_tuning_groups(model, 0.1, 0.5)]
[(2, 0.1), (2, 0.5)]
""",
    points=0.25,
    first=the_head_has_its_own_rate,
)


read_mistakes(fine_tuning_groups, __name__)
