"""`parameter_groups`: which parameters are decayed.

The model knows the name of each of its parameters; nobody has to tell them apart by their numbers. The known
mistakes go through the model's parts and deal their tensors out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from torch import Tensor, nn

from exercise_kit.engine.compare import kind_of, listed
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training import LESSON

Parameters = Mapping[str, tuple[str, tuple[int, ...]]]
Groups = list[dict[str, Any]]
VIT: Parameters = {
    "patch_embedding.projection": ("Linear", (12, 8)),
    "class_token": ("Parameter", (1, 1, 8)),
    "positions": ("Parameter", (1, 5, 8)),
    "blocks.0.norm1": ("LayerNorm", (8,)),
    "blocks.0.attention.qkv": ("Linear", (8, 24)),
    "blocks.0.attention.projection": ("Linear", (8, 8)),
    "blocks.0.norm2": ("LayerNorm", (8,)),
    "blocks.0.mlp.fc1": ("Linear", (8, 32)),
    "blocks.0.mlp.fc2": ("Linear", (32, 8)),
    "norm": ("LayerNorm", (8,)),
    "head": ("Linear", (8, 5)),
}
HYBRID: Parameters = {
    "stem.0": ("Conv2d", (3, 6, 2)),
    "stem.1": ("LayerNorm", (6,)),
    "stem.2": ("Conv2d", (6, 8, 3)),
    "norm": ("LayerNorm", (8,)),
    "out.0": ("LayerNorm", (8,)),
    "out.1": ("Linear", (8, 4)),
    "out.2": ("Parameter", (5, 4)),
    "out.3": ("Parameter", (4,)),
    "out.weight_table": ("Parameter", (4, 3)),
}
TIED: Parameters = {"body.0": ("Linear", (6, 6)), "body.1": ("LayerNorm", (6,)), "body.2": ("Linear", (6, 6))}
HAS_BIAS = ("Linear", "Conv2d", "LayerNorm")

parameter_groups = Exercise("parameter_groups", LESSON, in_training=InTraining.HIDDEN)


def names_in(parts: Parameters) -> list[str]:
    """The names of all parameters of a model of these parts."""
    names = []
    for part, (kind, _) in parts.items():
        names += [f"{part}.weight", f"{part}.bias"] if kind in HAS_BIAS else [part]
    return names


def matrices_in(parts: Parameters) -> list[str]:
    """The names of those that are decayed."""
    return [f"{part}.weight" for part, (kind, _) in parts.items() if kind in ("Linear", "Conv2d")]


def _groups(student: Student, parts: Parameters = VIT, weight_decay: float = 0.3, **fields: Any) -> Groups:
    """The groups as the fixture noted them; Failure when they are no two dicts with what an optimiser needs."""
    made_of = {name: [kind, list(sizes)] for name, (kind, sizes) in parts.items()}
    notes = student.run_fixture("groups", parts=made_of, weight_decay=weight_decay, **fields)
    del student.record[-1]
    expect_as_frozen(student, notes, fields.get("frozen", ()))
    found = notes["groups"]
    expected = "a list of two dicts, each with the keys `params` and `weight_decay`"
    kinds = [None if each is None else tuple(sorted({"params", "weight_decay"} & set(each["keys"]))) for each in found]
    if kinds != [("params", "weight_decay")] * 2 or notes["returned"] not in ("list", "tuple"):
        student.record.append(("odd", notes["returned"], tuple(kinds)))
        raise Failure(f"{student.name} gave {_groups_text(notes['returned'], found)}", expected, _look(kinds))
    groups: Groups = found
    return groups


def expect_as_frozen(student: Student, notes: Mapping[str, Any], frozen: Sequence[str]) -> None:
    """Fail when the call has changed which parameters require a gradient."""
    changed = sorted({*notes["frozen"]} ^ {*frozen})
    if changed:
        student.record.append(("changed", tuple(changed)))
        now = "no longer requires a gradient" if changed[0] in notes["frozen"] else "requires a gradient now"
        look = "What are the groups for: to sort the parameters, or to change them?"
        raise Failure(f"after the call `{changed[0]}` {now}", "parameters as they were", look)


def _groups_text(returned: str, groups: list[dict[str, Any] | None]) -> str:
    if returned not in ("list", "tuple"):
        return "None" if returned == "NoneType" else f"{'an' if returned[:1].lower() in 'aeiou' else 'a'} {returned}"
    for number, group in enumerate(groups):
        if group is None:
            return f"a {returned} of {len(groups)}, of which number {number} is no dict"
        if missing := [f"`{key}`" for key in ("params", "weight_decay") if key not in group["keys"]]:
            return f"a {returned} of {len(groups)} dicts, of which number {number} has no {' and no '.join(missing)}"
    return f"a {returned} of {len(groups)} group{'' if len(groups) == 1 else 's'}"


def _look(kinds: list[tuple[str, ...] | None]) -> str:
    if ("params",) in kinds:
        return "Which weight decay has a group that names none? Look at AdamW's default."
    return "What does torch.optim's page say under “per-parameter options”?"


def _decays(
    student: Student, parts: Parameters = VIT, weight_decay: float = 0.3, **fields: Any
) -> dict[str, list[Any]]:
    """For each parameter the weight decays that it gets, which go on record."""
    shared = {f"{name}.weight" for name in fields.get("tied", ())}  # it has the other part's name too
    decays: dict[str, list[Any]] = {name: [] for name in names_in(parts) if name not in shared}
    for group in _groups(student, parts, weight_decay, **fields):
        for name in group["names"]:
            decays.setdefault(name, []).append(group["weight_decay"])
    student.record.append(tuple((name, tuple(sorted(map(figure, each)))) for name, each in decays.items()))
    return decays


def figure(value: object) -> str:
    """A number of a group as it is told, or of which kind it is."""
    return f"{float(value):g}" if isinstance(value, Real) else kind_of(value)


def _expect(
    student: Student, parts: Parameters, decayed: bool, among: tuple[str, ...], described: str, look: str, **fields: Any
) -> None:
    """Fail unless the parameters whose name ends like one ``among`` these are decayed, or are not."""
    decays = _decays(student, parts, **fields)
    wrong = [
        name for name in decays if name.endswith(among) and any(bool(each) is not decayed for each in decays[name])
    ]
    if wrong:
        total = sum(name.endswith(among) for name in decays)
        count = f"{len(wrong)} of the {total} {described}" if len(wrong) < total else f"all {described}"
        are = "are not decayed" if decayed else "are decayed"
        expected = "a weight decay on every one of them" if decayed else "a weight decay of 0 for them"
        raise Failure(f"{count} {are}: {listed([f'`{name}`' for name in wrong], 3)}", expected, look)


@parameter_groups.check(guard=True)
def it_gives_two_groups(student: Student, probe: Probe) -> None:
    """It gives two groups, each a dict with `params` and `weight_decay`."""
    _groups(student)
    student.record.append("two groups")


@parameter_groups.check(needs=it_gives_two_groups, guard=True)
def the_params_are_lists(student: Student, probe: Probe) -> None:
    """The params of each group are a list, which can be read more than once."""
    holders = [str(group["holder"]) for group in _groups(student)]
    odd = [holder for holder in holders if holder not in ("list", "tuple")]
    student.record.append(("odd holders", tuple("runs dry" if each in _ONCE else each for each in odd)))
    if odd:
        look = "What is left of a generator after one loop over it?"
        raise Failure(f"a group's params are a {odd[0]}", "a list", look if odd[0] in _ONCE else "")


_ONCE = ("generator", "filter", "map")


@parameter_groups.check(needs=it_gives_two_groups)
def every_parameter_is_in_one_group(student: Student, probe: Probe) -> None:
    """Every parameter of the model is in exactly one of the groups."""
    decays = _decays(student)
    expect_its_own(decays)
    missing, twice = (
        [f"`{name}`" for name, each in decays.items() if wrong(len(each))] for wrong in (_is_none, _is_many)
    )
    if missing:
        look = "Which parameters belong to no layer, but to the model itself?"
        raise Failure(f"{listed(missing, 3)} {_are(missing)} in no group", "an optimizer that moves them too", look)
    if twice:
        look = "Are your two conditions each other's opposite?"
        raise Failure(f"{listed(twice, 3)} {_are(twice)} in more than one place", "one group for each parameter", look)


def expect_its_own(decays: dict[str, list[Any]]) -> None:
    """Fail when the groups hold anything but the model's own parameters, and take that out of ``decays``."""
    foreign = {name[2:]: len(decays.pop(name)) for name in [*decays] if name.startswith("?")}
    if foreign:
        kind, count = next(iter(foreign.items()))
        seen = f"the groups hold {count} thing{'' if count == 1 else 's'} of type {kind} that the model does not own"
        look = "What does named_parameters() give: names, parameters, or pairs of both?"
        if kind in ("Tensor", "Parameter"):
            look = "What does an optimizer move that was given copies?"
        raise Failure(seen, "the model's own parameters, as they are", look)


def _is_none(count: int) -> bool:
    return count == 0


def _is_many(count: int) -> bool:
    return count > 1


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


@parameter_groups.check(needs=it_gives_two_groups)
def the_decay_is_the_one_asked_for(student: Student, probe: Probe) -> None:
    """One group has the weight decay that is asked for, and the other has 0."""
    for weight_decay in (0.3, 0.07):
        found = [figure(group["weight_decay"]) for group in _groups(student, VIT, weight_decay)]
        student.record.append(("decays", tuple(sorted(found))))
        if sorted(found) != ["0", figure(weight_decay)]:
            decays_found = " and ".join(found)
            look = "Where does the argument weight_decay go?"
            raise Failure(
                f"for weight_decay={weight_decay} the groups have {decays_found}", f"{weight_decay} and 0.0", look
            )


@parameter_groups.check(needs=the_decay_is_the_one_asked_for)
def the_decayed_group_comes_first(student: Student, probe: Probe) -> None:
    """The group with the weight decay comes first, the one without it second."""
    first = figure(_groups(student)[0]["weight_decay"])
    student.record.append(("first", first))
    if first == "0":
        raise Failure("the first group has a weight decay of 0", "the decayed one", "Which group is named first?")


@parameter_groups.check(needs=it_gives_two_groups)
def a_frozen_parameter_has_its_group_too(student: Student, probe: Probe) -> None:
    """A frozen parameter is in a group as well, since it may be trained again later."""
    frozen = ["patch_embedding.projection.weight", "patch_embedding.projection.bias", "positions"]
    missing = [f"`{name}`" for name, each in _decays(student, frozen=frozen).items() if name in frozen and not each]
    if missing:
        look = "Does the exercise say anything of requires_grad?"
        raise Failure(f"{listed(missing)}, which is frozen, is in no group", "every parameter in one of them", look)


@parameter_groups.check(needs=it_gives_two_groups)
def a_shared_weight_is_there_once(student: Student, probe: Probe) -> None:
    """A weight that two layers share is one parameter, and stands in a group once."""
    found = _decays(student, TIED, tied={"body.2": "body.0"})["body.0.weight"]
    if len(found) > 1:
        look = "Which of torch's ways through a model meets a shared parameter twice?"
        raise Failure(f"a weight that two layers share is listed {len(found)} times", "once", look)


@parameter_groups.check(needs=it_gives_two_groups)
def the_weights_of_linears_are_decayed(student: Student, probe: Probe) -> None:
    """The weight of every Linear is decayed."""
    matrices = tuple(matrices_in(VIT))
    look = "What do the parameters have in common that multiply tokens?"
    _expect(student, VIT, True, matrices, "weights of Linears", look)


@parameter_groups.check(needs=it_gives_two_groups)
def norms_and_biases_are_left_alone(student: Student, probe: Probe) -> None:
    """Biases, and scale and shift of every norm, are not decayed."""
    look = "How many axes has the weight of a LayerNorm, and how many that of a Linear?"
    among = (".bias", "norm.weight", "norm1.weight", "norm2.weight")
    _expect(student, VIT, False, among, "biases and norms' weights", look)


@parameter_groups.check(needs=it_gives_two_groups)
def class_token_and_positions_are_left_alone(student: Student, probe: Probe) -> None:
    """Class token and positions are not decayed, though they have more than one axis."""
    look = "What tells a table of positions from the weight of a Linear: its axes, or its name?"
    _expect(student, VIT, False, ("class_token", "positions"), "tables of the model's own", look)


@parameter_groups.check(needs=the_weights_of_linears_are_decayed)
def other_models_are_sorted_by_the_same_rule(student: Student, probe: Probe) -> None:
    """The same rule holds in a model with convolutions, and with parts that have only numbers for names."""
    look = "Does your rule know a convolution when it sees one, and a norm that is not called so?"
    _expect(student, HYBRID, True, tuple(matrices_in(HYBRID)), "weights of convolutions and Linears", look)
    among = (".bias", "stem.1.weight", "norm.weight", "out.0.weight", "out.2", "out.3", "weight_table")
    _expect(student, HYBRID, False, among, "biases, norms' weights and parameters of no layer", look)


parameter_groups.example("""
>>> layers = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
>>> [(len(group["params"]), group["weight_decay"]) for group in parameter_groups(layers, 0.05)]
[(1, 0.05), (3, 0.0)]
""")


DECAYED = "06_training, What weight decay should not touch"


_NAMES = re.compile("norm|bias|class_token|positions")
_MULTIPLIES = (nn.Linear, nn.Conv2d)


def _dealt(model: nn.Module, weight_decay: float, belongs: Callable[[nn.Module, str, Tensor], bool]) -> Groups:
    """Two groups: the tensors that ``belongs(part, name in the part, tensor)`` chooses, and the others."""
    piles: tuple[list[Tensor], list[Tensor]] = ([], [])
    for part, name, tensor in _tensors(model):
        piles[not belongs(part, name, tensor)].append(tensor)
    return [{"params": piles[0], "weight_decay": weight_decay}, {"params": piles[1], "weight_decay": 0.0}]


def _tensors(model: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    met: set[int] = set()
    for part in model.modules():
        for name, tensor in part.named_parameters(recurse=False):
            if id(tensor) not in met:
                yield part, name, tensor
            met.add(id(tensor))


def _multiplies(part: nn.Module, name: str, _: Tensor) -> bool:
    return isinstance(part, _MULTIPLIES) and name == "weight"


@parameter_groups.misconception("What does decay do to the scale of a norm, which should stay near 1?", DECAYED)
def everything_decayed(model: nn.Module, weight_decay: float) -> Groups:
    """Every parameter is decayed, norms, biases and positions too."""
    return _dealt(model, weight_decay, lambda *_: True)


@parameter_groups.misconception("Which of your two lists has anything in it?", DECAYED)
def nothing_decayed(model: nn.Module, weight_decay: float) -> Groups:
    """No parameter is decayed: the first group is empty."""
    return _dealt(model, weight_decay, lambda *_: False)


@parameter_groups.misconception("Which group should get weight_decay, and which one 0?", DECAYED)
def the_wrong_group_decayed(model: nn.Module, weight_decay: float) -> Groups:
    """The two weight decays are swapped, so the matrices are not decayed, and everything else is."""
    return _dealt(model, weight_decay, lambda *given: not _multiplies(*given))


@parameter_groups.misconception("Which tensors of the model have several axes and multiply nothing?", DECAYED)
def sorted_by_axes_alone(model: nn.Module, weight_decay: float) -> Groups:
    """Everything with two axes or more is decayed, also the class token and the positions, which have three."""
    return _dealt(model, weight_decay, lambda part, name, tensor: tensor.ndim > 1)


@parameter_groups.misconception("What is the scale of a LayerNorm called?", DECAYED)
def sorted_by_the_name_weight_alone(model: nn.Module, weight_decay: float) -> Groups:
    """Every parameter called weight is decayed, so the scale of every norm is decayed, too."""
    return _dealt(model, weight_decay, lambda part, name, tensor: name == "weight")


@parameter_groups.misconception("Is a bias the only thing that should not be decayed?", DECAYED)
def only_biases_spared(model: nn.Module, weight_decay: float) -> Groups:
    """Only biases are spared; the scales of the norms, the class token and the positions are decayed."""
    return _dealt(model, weight_decay, lambda part, name, tensor: name != "bias")


@parameter_groups.misconception("What has a position in common with a bias?", DECAYED)
def only_norms_and_biases_spared(model: nn.Module, weight_decay: float) -> Groups:
    """Norms and biases are spared, but class token and positions are decayed."""
    return _dealt(model, weight_decay, lambda part, name, tensor: name != "bias" and not isinstance(part, nn.LayerNorm))


@parameter_groups.misconception("Would your rule recognize a norm that is called `stem.1`?", DECAYED)
def norms_known_by_their_name(model: nn.Module, weight_decay: float) -> Groups:
    """A norm is recognized by the letters `norm` in its name, so norms with other names are missed."""
    named = {id(part) for name, part in model.named_modules() if "norm" in name}
    return _dealt(model, weight_decay, lambda part, name, _: name == "weight" and id(part) not in named)


@parameter_groups.misconception("Would your list of names work for a model that somebody else has written?", DECAYED)
def spared_by_a_list_of_names(model: nn.Module, weight_decay: float) -> Groups:
    """A list of this model's names says what is not decayed, so in another model norms and tables are decayed."""
    spared = {id(each) for name, each in model.named_parameters() if _NAMES.search(name)}
    return _dealt(model, weight_decay, lambda part, name, tensor: id(tensor) not in spared)


@parameter_groups.misconception("Which layers multiply, apart from Linears?", DECAYED)
def convolutions_forgotten(model: nn.Module, weight_decay: float) -> Groups:
    """Only the weights of Linears are decayed, and those of convolutions are not."""
    return _dealt(model, weight_decay, lambda part, name, _: isinstance(part, nn.Linear) and name == "weight")


@parameter_groups.misconception("How many axes has the weight of a convolution?", DECAYED)
def matrices_of_two_axes_alone(model: nn.Module, weight_decay: float) -> Groups:
    """Only parameters with exactly two axes are decayed, so the weights of convolutions are not."""
    return _dealt(model, weight_decay, lambda part, name, tensor: tensor.ndim == 2)


@parameter_groups.misconception("Which weight decay does AdamW take for a group that names none?", DECAYED)
def no_decay_named_for_the_second_group(model: nn.Module, weight_decay: float) -> Groups:
    """The second group names no weight decay, so it gets the optimizer's default, which for AdamW is not 0."""
    groups = _dealt(model, weight_decay, _multiplies)
    del groups[1]["weight_decay"]
    return groups


@parameter_groups.misconception("Where does the argument weight_decay go?", DECAYED)
def a_decay_written_into_the_code(model: nn.Module, weight_decay: float) -> Groups:
    """The weight decay is a fixed number in the code, and the argument weight_decay is not used."""
    return _dealt(model, 0.05, _multiplies)


@parameter_groups.misconception("Which tensors belong to the model itself, and to no layer in it?", DECAYED)
def layers_alone(model: nn.Module, weight_decay: float) -> Groups:
    """Only the layers' weights and biases are in a group; class token and positions are in no group and never learn."""
    groups = _dealt(model, weight_decay, _multiplies)
    own = {id(tensor) for tensor in model.parameters(recurse=False)}
    groups[1]["params"] = [tensor for tensor in groups[1]["params"] if id(tensor) not in own]
    return groups


@parameter_groups.misconception(
    "Which parameters are in the second group, besides those that belong there?", DECAYED, InTraining.STOPS
)
def matrices_in_both_groups(model: nn.Module, weight_decay: float) -> Groups:
    """The second group holds all parameters, and the first some of them again, which an optimizer refuses."""
    groups = _dealt(model, weight_decay, _multiplies)
    return [groups[0], groups[1] | {"params": list(model.parameters())}]


@parameter_groups.misconception("What is left of a generator after one loop over it?", DECAYED, InTraining.UNSEEN)
def params_that_run_dry(model: nn.Module, weight_decay: float) -> Groups:
    """The params are generators, which are empty once they have been counted or printed."""
    return [
        group | {"params": (each for each in group["params"])} for group in _dealt(model, weight_decay, _multiplies)
    ]


@parameter_groups.misconception("What does an optimizer move: names, or tensors?", DECAYED, InTraining.STOPS)
def names_for_parameters(model: nn.Module, weight_decay: float) -> Groups:
    """The groups hold the parameters' names, and an optimizer needs the parameters."""
    return _in_names(model, _dealt(model, weight_decay, _multiplies))


def _in_names(model: nn.Module, groups: Iterable[dict[str, Any]]) -> Groups:
    names = {id(tensor): name for name, tensor in model.named_parameters()}
    return [group | {"params": [names[id(tensor)] for tensor in group["params"]]} for group in groups]


@parameter_groups.misconception("What does an optimizer move that was given copies?", DECAYED, InTraining.STUCK)
def copies_of_the_parameters(model: nn.Module, weight_decay: float) -> Groups:
    """The groups hold copies of the parameters, so an optimizer moves the copies and the model learns nothing."""
    groups = _dealt(model, weight_decay, _multiplies)
    return [group | {"params": [nn.Parameter(each.detach().clone()) for each in group["params"]]} for group in groups]


@parameter_groups.misconception("Which group is named first?", DECAYED, InTraining.UNSEEN)
def the_spared_group_first(model: nn.Module, weight_decay: float) -> Groups:
    """The groups are right, but they come in the wrong order: the decayed one was asked for first."""
    return _dealt(model, weight_decay, _multiplies)[::-1]


@parameter_groups.misconception("Does the exercise say anything of requires_grad?", DECAYED, InTraining.UNSEEN)
def frozen_ones_left_out(model: nn.Module, weight_decay: float) -> Groups:
    """Frozen parameters are in no group, so they will not learn when they are trained again later."""
    groups = _dealt(model, weight_decay, _multiplies)
    return [group | {"params": [each for each in group["params"] if each.requires_grad]} for group in groups]


@parameter_groups.misconception("How often do you meet a tensor that two layers share?", DECAYED, InTraining.UNSEEN)
def shared_weights_listed_twice(model: nn.Module, weight_decay: float) -> Groups:
    """A weight that two layers share is listed once for each of them, and an optimizer moves it twice."""
    chosen = {id(each) for each in _dealt(model, weight_decay, _multiplies)[0]["params"]}
    every = [tensor for _, tensor in model.named_parameters(remove_duplicate=False)]
    piles = [each for each in every if id(each) in chosen], [each for each in every if id(each) not in chosen]
    return [{"params": piles[0], "weight_decay": weight_decay}, {"params": piles[1], "weight_decay": 0.0}]


@parameter_groups.misconception("Where in the name of a Linear's weight does the word weight stand?", DECAYED)
def weight_anywhere_in_the_name(model: nn.Module, weight_decay: float) -> Groups:
    """Any tensor with two axes and `weight` anywhere in its name is decayed, even a table called `weight_table`."""
    return _dealt(model, weight_decay, lambda part, name, tensor: tensor.ndim > 1 and "weight" in name)


@parameter_groups.misconception("How many groups does the exercise ask for?", DECAYED)
def a_single_group(model: nn.Module, weight_decay: float) -> Groups:
    """Only the group that is decayed is given, and all other parameters are never trained."""
    return _dealt(model, weight_decay, _multiplies)[:1]


Rule = Callable[[nn.Module, float], Groups]


def _grouped(
    model: nn.Module,
    weight_decay: float,
    *,
    rule: Rule = lambda model, weight_decay: _dealt(model, weight_decay, _multiplies),
    amount: Callable[[float], float] = float,
    postprocess: Callable[[nn.Module, Groups], Any] = lambda model, groups: groups,
) -> Any:
    return postprocess(model, rule(model, amount(weight_decay)))


def _unnamed(model: nn.Module, groups: Groups) -> Groups:
    return [groups[0], {"params": groups[1]["params"]}]


def _running_dry(model: nn.Module, groups: Groups) -> Groups:
    return [group | {"params": (each for each in group["params"])} for group in groups]


_RULES = (
    everything_decayed,
    nothing_decayed,
    the_wrong_group_decayed,
    sorted_by_axes_alone,
    sorted_by_the_name_weight_alone,
    only_biases_spared,
    only_norms_and_biases_spared,
    norms_known_by_their_name,
    spared_by_a_list_of_names,
    convolutions_forgotten,
    matrices_of_two_axes_alone,
    layers_alone,
    matrices_in_both_groups,
)

declare(
    parameter_groups,
    Parts(
        _grouped,
        {
            **{each: {"rule": each} for each in _RULES},
            a_decay_written_into_the_code: {"amount": lambda weight_decay: 0.05},
            no_decay_named_for_the_second_group: {"postprocess": _unnamed},
            params_that_run_dry: {"postprocess": _running_dry},
            names_for_parameters: {"postprocess": _in_names},
            a_single_group: {"postprocess": lambda model, groups: groups[:1]},
        },
        quick=True,
    ),
)
