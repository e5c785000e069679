"""`fine_tuning_groups`: the backbone with one learning rate, the head with another.

The model knows the name of each of its parameters; nobody has to tell them apart by their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import listed
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training.parameter_groups import VIT, Parameters, figure, names_in
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
FROZEN = ("patch_embedding.projection.weight", "positions", "head.bias")

fine_tuning_groups = Exercise("fine_tuning_groups", LESSON, in_training=InTraining.HIDDEN)


def groups_of(student: Student, parts: Parameters, rates: tuple[float, float] = RATES, **fields: Any) -> Groups:
    """The groups as the fixture noted them; Failure when they are no two dicts with what an optimizer needs."""
    made_of = {name: [kind, list(sizes)] for name, (kind, sizes) in parts.items()}
    notes = student.run_fixture("rates", parts=made_of, backbone_lr=rates[0], head_lr=rates[1], **fields)
    del student.record[-1]
    changed = sorted({*map(str, notes["frozen"])} ^ {*fields.get("frozen", ())})
    found = notes["groups"]
    keys = [None if each is None else tuple(sorted({"params", "lr"} & set(each["keys"]))) for each in found]
    is_pair = keys == [("lr", "params")] * 2 and notes["returned"] in ("list", "tuple")
    if changed or not is_pair:
        student.record.append(("odd", notes["returned"], tuple(keys), tuple(changed)))
    if changed:
        look = "What are the groups for: to deal the parameters out, or to change them?"
        raise Failure(f"the call changed whether `{changed[0]}` learns", "parameters as they were", look)
    if not is_pair:
        kind = f"a {notes['returned']} of {len(found)}" if found else str(notes["returned"]).replace("NoneType", "None")
        wanted = "a list of two dicts, each with the keys `params` and `lr`"
        look = "What does torch.optim's page say under “per-parameter options”?"
        raise Failure(f"{student.name} gave {kind}, with keys {_keys(found)}", wanted, look)
    groups: Groups = found
    return groups


def _keys(found: Sequence[dict[str, Any] | None]) -> str:
    return listed([" and ".join(each["keys"]) if each else "none" for each in found] or ["none"])


def rates_of(student: Student, parts: Parameters, rates: tuple[float, float] = RATES, **fields: Any) -> dict[str, Any]:
    """For each parameter the learning rates that it gets, which go on record."""
    found: dict[str, list[Any]] = {name: [] for name in names_in(parts)}
    for group in groups_of(student, parts, rates, **fields):
        for name in group["names"]:
            found.setdefault(str(name), []).append(group["lr"])
    student.record.append(tuple((name, tuple(sorted(map(figure, each)))) for name, each in found.items()))
    return found


def in_code(names: Sequence[str]) -> str:
    """The first names, as code."""
    return listed([f"`{name}`" for name in names], 3)


@fine_tuning_groups.check(guard=True)
def it_gives_two_groups(student: Student, probe: Probe) -> None:
    """It gives two groups, each a dict with `params`, a list, and `lr`."""
    expect_two_groups(student, VIT)


def expect_two_groups(student: Student, parts: Parameters) -> None:
    """Fail unless there are two dicts whose params can be looked at more than once."""
    holders = [str(group["holder"]) for group in groups_of(student, parts)]
    once = [holder for holder in holders if holder not in ("list", "tuple")]
    student.record.append(("holders", bool(once)))
    if once:
        look = "What is left of a generator after one loop over it?"
        raise Failure(f"a group's params are a {once[0]}", "a list", look)


@fine_tuning_groups.check(needs=it_gives_two_groups)
def every_parameter_is_in_one_group(student: Student, probe: Probe) -> None:
    """Every parameter of the model is in exactly one of the groups."""
    expect_each_once(student, VIT)


def expect_each_once(student: Student, parts: Parameters, **fields: Any) -> None:
    """Fail unless the groups hold the model's own parameters, each of them once."""
    found = rates_of(student, parts, **fields)
    foreign = [name[2:] for name in found if name.startswith("?")]
    if foreign:
        look = (
            "What does named_parameters() give: names, parameters, or pairs of both? And what does an optimizer move?"
        )
        raise Failure(f"the groups hold a {foreign[0]} that is no parameter of the model", "its parameters", look)
    missing, twice = ([name for name, each in found.items() if wrong(len(each))] for wrong in (_none, _many))
    if missing:
        look = "Which parameters belong to no layer, but to the model itself?"
        raise Failure(f"in no group: {in_code(missing)}", "an optimizer that moves all of them", look)
    if twice:
        look = "Is a parameter of the head a parameter of the model, too?"
        raise Failure(f"in more than one place: {in_code(twice)}", "one group for each parameter", look)


def _none(count: int) -> bool:
    return count == 0


def _many(count: int) -> bool:
    return count > 1


@fine_tuning_groups.check(needs=every_parameter_is_in_one_group)
def the_head_has_its_own_rate(student: Student, probe: Probe) -> None:
    """The head's parameters get head_lr, and all others backbone_lr."""
    for rates in (RATES, (0.5, 0.02)):
        expect_rates(student, VIT, rates)


def expect_rates(student: Student, parts: Parameters, rates: tuple[float, float], **fields: Any) -> None:
    """Fail unless every parameter has the rate of its part."""
    found = rates_of(student, parts, rates, **fields)
    for name, each in found.items():
        wanted = rates[1] if name.startswith("head.") else rates[0]
        if [figure(rate) for rate in each] != [figure(wanted)]:
            seen = f"`{name}` has the rate {listed([figure(rate) for rate in each]) or 'of no group'}"
            raise Failure(seen, figure(wanted), "Which parameters are the head's, and which rate is theirs?")


@fine_tuning_groups.check(needs=it_gives_two_groups)
def the_backbone_comes_first(student: Student, probe: Probe) -> None:
    """The backbone is the first group, the head the second."""
    expect_order(student, VIT)


def expect_order(student: Student, parts: Parameters) -> None:
    """Fail when the head's parameters are in the first group."""
    first = [str(name) for name in groups_of(student, parts)[0]["names"]]
    holds_head, holds_others = "head.weight" in first, "positions" in first
    student.record.append(("first", holds_head, holds_others))
    if holds_head or not holds_others:
        raise Failure("the first group is not the backbone", "the backbone, then the head", "Which is named first?")


@fine_tuning_groups.check(needs=the_head_has_its_own_rate)
def other_names_with_head_are_backbone(student: Student, probe: Probe) -> None:
    """Parameters whose names merely contain the word head belong to the backbone."""
    expect_rates(student, MANY_HEADS, RATES)


@fine_tuning_groups.check(needs=every_parameter_is_in_one_group)
def frozen_parameters_have_their_group(student: Student, probe: Probe) -> None:
    """A frozen parameter is in its group as well, since it may be trained again later."""
    expect_each_once(student, VIT, frozen=FROZEN)


fine_tuning_groups.example("""
>>> model = nn.Sequential()
>>> model.body, model.head = nn.Linear(3, 4), nn.Linear(4, 2)
>>> [(len(group["params"]), group["lr"]) for group in fine_tuning_groups(model, 0.1, 0.5)]
[(2, 0.1), (2, 0.5)]
""")


TWO = "09_fine_tuning, Two learning rates"


def _dealt(model: nn.Module, backbone_lr: float, head_lr: float, belongs: Any) -> Groups:
    """The parameters for which ``belongs(name)`` says that they are the head's, behind all others."""
    piles: tuple[list[Tensor], list[Tensor]] = ([], [])
    for name, parameter in model.named_parameters():
        piles[bool(belongs(name))].append(parameter)
    return [{"params": piles[0], "lr": backbone_lr}, {"params": piles[1], "lr": head_lr}]


def _of_the_head(name: str) -> bool:
    return name.partition(".")[0] == "head"


@fine_tuning_groups.misconception("Which part has learned already, and should move little?", TWO, InTraining.WORSE)
def rates_swapped(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """The head gets the backbone's rate and the backbone the head's."""
    return _dealt(model, head_lr, backbone_lr, _of_the_head)


@fine_tuning_groups.misconception("Where does the argument head_lr go?", TWO)
def one_rate_for_all(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """Both groups have the backbone's rate."""
    return _dealt(model, backbone_lr, backbone_lr, _of_the_head)


@fine_tuning_groups.misconception("Which group is named first in the exercise?", TWO)
def the_head_first(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """The head is the first group and the backbone the second."""
    return _dealt(model, backbone_lr, head_lr, _of_the_head)[::-1]


@fine_tuning_groups.misconception("Is a parameter of the head a parameter of the model?", TWO, InTraining.STOPS)
def the_head_in_both_groups(model: Any, backbone_lr: float, head_lr: float) -> Groups:
    """The first group holds every parameter of the model, the head's too, and an optimizer refuses that."""
    everything = _dealt(model, backbone_lr, head_lr, lambda _: False)[0]["params"]
    return [{"params": everything, "lr": backbone_lr}, {"params": [*model.head.parameters()], "lr": head_lr}]


@fine_tuning_groups.misconception("Which other names have the word head in them?", TWO)
def every_name_with_head_in_it(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """Every parameter with "head" anywhere in its name goes into the head's group, even one of attention's heads."""
    return _dealt(model, backbone_lr, head_lr, lambda name: "head" in name)


@fine_tuning_groups.misconception("Which parameters are the head's, and how does your code find them?", TWO)
def the_last_part_of_the_model(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """Only the last parameter is taken for the head, whatever it is."""
    last = [name for name, _ in model.named_parameters()][-1:]
    return _dealt(model, backbone_lr, head_lr, lambda name: name in last)


@fine_tuning_groups.misconception("Which parameters belong to no layer, but to the model itself?", TWO)
def class_token_and_positions_forgotten(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """Only the parameters of layers are collected, and those of the model itself are left out."""
    groups = _dealt(model, backbone_lr, head_lr, _of_the_head)
    own = {id(each) for each in model.parameters(recurse=False)}
    groups[0]["params"] = [each for each in groups[0]["params"] if id(each) not in own]
    return groups


@fine_tuning_groups.misconception("Which parts of the backbone are no blocks?", TWO)
def the_blocks_alone(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """The first group holds the blocks, and patch embedding, last norm and tokens are in no group."""
    groups = _dealt(model, backbone_lr, head_lr, _of_the_head)
    blocks = {id(each) for name, each in model.named_parameters() if name.startswith("blocks.")}
    groups[0]["params"] = [each for each in groups[0]["params"] if id(each) in blocks]
    return groups


@fine_tuning_groups.misconception("Does the exercise say anything of requires_grad?", TWO)
def frozen_parameters_left_out(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """Frozen parameters are in no group, so they will not learn when they are trained again later."""
    groups = _dealt(model, backbone_lr, head_lr, _of_the_head)
    for group in groups:
        group["params"] = [each for each in group["params"] if each.requires_grad]
    return groups


@fine_tuning_groups.misconception("Which key has the learning rate in torch.optim?", TWO, InTraining.WORSE)
def the_rate_under_another_key(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """The rate stands under the key learning_rate, which no optimizer of torch reads."""
    groups = _dealt(model, backbone_lr, head_lr, _of_the_head)
    return [{"params": each["params"], "learning_rate": each["lr"]} for each in groups]


@fine_tuning_groups.misconception("What is left of a generator after one loop over it?", TWO, InTraining.WORSE)
def generators_for_lists(model: nn.Module, backbone_lr: float, head_lr: float) -> list[Mapping[str, Any]]:
    """The params are generators, which are empty once they have been read."""
    groups = _dealt(model, backbone_lr, head_lr, _of_the_head)
    return [{"params": (each for each in group["params"]), "lr": group["lr"]} for group in groups]


@fine_tuning_groups.misconception("What does an optimizer move that was given copies?", TWO, InTraining.STUCK)
def copies_of_the_parameters(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """The groups hold copies, so the optimizer moves these and the model stays as it is."""
    groups = _dealt(model, backbone_lr, head_lr, _of_the_head)
    return [{"params": [torch.clone(each) for each in group["params"]], "lr": group["lr"]} for group in groups]


@fine_tuning_groups.misconception("Does the exercise ask for a frozen backbone?", TWO)
def the_backbone_frozen(model: nn.Module, backbone_lr: float, head_lr: float) -> Groups:
    """The function freezes the backbone, which makes its learning rate meaningless."""
    groups = _dealt(model, backbone_lr, head_lr, _of_the_head)
    for each in groups[0]["params"]:
        each.requires_grad_(False)
    return groups


@fine_tuning_groups.misconception("How many groups does the exercise ask for?", TWO, InTraining.STOPS)
def one_dict_for_both(model: nn.Module, backbone_lr: float, head_lr: float) -> dict[str, Any]:
    """One dict comes back, with a key for each part, and no optimizer accepts it."""
    groups = _dealt(model, backbone_lr, head_lr, _of_the_head)
    return {"backbone": groups[0], "head": groups[1]}
