"""`parameter_groups`: which parameters are decayed.

The model knows the name of each of its parameters; nobody has to tell them apart by their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from exercise_kit.engine.compare import describe_kind, join_names
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
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
_HAS_BIAS = ("Linear", "Conv2d", "LayerNorm")

parameter_groups = Exercise("parameter_groups", LESSON, in_training=InTraining.HIDDEN)


def draw_vit_parts(probe: Probe) -> Parameters:
    """A Vision Transformer's parts, of drawn sizes and depth where they are not shown."""
    if not probe.is_secret:
        return VIT
    dim, patch, tokens, hidden, classes = probe.sizes(5, high=12)
    parts: dict[str, tuple[str, tuple[int, ...]]] = {
        "patch_embedding.projection": ("Linear", (3 * patch**2, dim)),
        "class_token": ("Parameter", (1, 1, dim)),
        "positions": ("Parameter", (1, tokens, dim)),
    }
    for block in range(probe.choice((1, 2, 3))):
        home = f"blocks.{block}"
        parts |= {f"{home}.norm1": ("LayerNorm", (dim,)), f"{home}.attention.qkv": ("Linear", (dim, 3 * dim))}
        parts |= {f"{home}.attention.projection": ("Linear", (dim, dim)), f"{home}.norm2": ("LayerNorm", (dim,))}
        parts |= {f"{home}.mlp.fc1": ("Linear", (dim, hidden)), f"{home}.mlp.fc2": ("Linear", (hidden, dim))}
    return parts | {"norm": ("LayerNorm", (dim,)), "head": ("Linear", (dim, classes))}


def _draw_hybrid_parts(probe: Probe) -> Parameters:
    """A model with convolutions, most of whose parts have numbers for names."""
    channels, kernel, dim, classes, rows = probe.sizes(5, high=8, shown=(3, 2, 8, 4, 5))
    return {
        "stem.0": ("Conv2d", (channels, dim, kernel)),
        "stem.1": ("LayerNorm", (dim,)),
        "stem.2": ("Conv2d", (dim, dim, kernel)),
        "norm": ("LayerNorm", (dim,)),
        "out.0": ("LayerNorm", (dim,)),
        "out.1": ("Linear", (dim, classes)),
        "out.2": ("Parameter", (rows, dim)),
        "out.3": ("Parameter", (dim,)),
        "out.weight_table": ("Parameter", (classes, rows)),
    }


def draw_weight_decay(probe: Probe, shown: float = 0.3) -> float:
    """A weight decay."""
    return probe.choice(range(20, 400), shown=round(1000 * shown)) / 1000


def list_parameter_names(parts: Parameters) -> list[str]:
    """The names of all parameters of a model of these parts."""
    names = []
    for part, (kind, _) in parts.items():
        names += [f"{part}.weight", f"{part}.bias"] if kind in _HAS_BIAS else [part]
    return names


def list_decayed_names(parts: Parameters) -> list[str]:
    """The names of those that are decayed."""
    return [f"{part}.weight" for part, (kind, _) in parts.items() if kind in ("Linear", "Conv2d")]


def _call_and_expect_groups(student: Student, parts: Parameters, weight_decay: float = 0.3, **fields: Any) -> Groups:
    """The groups as the fixture noted them; Failure when they are no two dicts with what an optimizer needs."""
    made_of = {name: [kind, list(sizes)] for name, (kind, sizes) in parts.items()}
    notes = student.run_fixture("groups", parts=made_of, weight_decay=weight_decay, **fields)
    student.forget()
    _expect_same_frozen_parameters(student, notes, fields.get("frozen", ()))
    found = notes["groups"]
    expected = "a list of two dicts, each with the keys `params` and `weight_decay`"
    kinds = [None if each is None else tuple(sorted({"params", "weight_decay"} & set(each["keys"]))) for each in found]
    if kinds != [("params", "weight_decay")] * 2 or notes["returned"] not in ("list", "tuple"):
        student.note(("odd", notes["returned"], tuple(kinds)))
        raise Failure(
            f"{student.name} gave {_describe_groups(notes['returned'], found)}", expected, _choose_look(kinds)
        )
    groups: Groups = found
    return groups


def _expect_same_frozen_parameters(student: Student, notes: Mapping[str, Any], frozen: Sequence[str]) -> None:
    """Fail when the call has changed which parameters require a gradient."""
    changed = sorted({*notes["frozen"]} ^ {*frozen})
    if changed:
        student.note(("changed", tuple(changed)))
        now = "no longer requires a gradient" if changed[0] in notes["frozen"] else "requires a gradient now"
        look = "What are the groups for: to sort the parameters, or to change them?"
        raise Failure(f"after the call `{changed[0]}` {now}", "parameters as they were", look)


def _describe_groups(returned: str, groups: list[dict[str, Any] | None]) -> str:
    if returned not in ("list", "tuple"):
        return "None" if returned == "NoneType" else f"{'an' if returned[:1].lower() in 'aeiou' else 'a'} {returned}"
    for number, group in enumerate(groups):
        if group is None:
            return f"a {returned} of {len(groups)}, of which number {number} is no dict"
        if missing := [f"`{key}`" for key in ("params", "weight_decay") if key not in group["keys"]]:
            return f"a {returned} of {len(groups)} dicts, of which number {number} has no {' and no '.join(missing)}"
    return f"a {returned} of {len(groups)} group{'' if len(groups) == 1 else 's'}"


def _choose_look(kinds: list[tuple[str, ...] | None]) -> str:
    if ("params",) in kinds:
        return "Which weight decay has a group that names none? Look at AdamW's default."
    return "What does torch.optim's page say under “per-parameter options”?"


def call_and_read_decays(
    student: Student, parts: Parameters, weight_decay: float = 0.3, **fields: Any
) -> dict[str, list[Any]]:
    """For each parameter the weight decays that it gets, which go on record."""
    shared = {f"{name}.weight" for name in fields.get("tied", ())}  # it has the other part's name too
    decays: dict[str, list[Any]] = {name: [] for name in list_parameter_names(parts) if name not in shared}
    for group in _call_and_expect_groups(student, parts, weight_decay, **fields):
        for name in group["names"]:
            decays.setdefault(name, []).append(group["weight_decay"])
    student.note(tuple((name, tuple(sorted(map(format_number_or_kind, each)))) for name, each in decays.items()))
    return decays


def format_number_or_kind(value: object) -> str:
    """A number of a group as it is told, or of which kind it is."""
    return f"{float(value):g}" if isinstance(value, Real) else describe_kind(value)


def _expect_decayed_or_not(
    student: Student, parts: Parameters, decayed: bool, among: tuple[str, ...], described: str, look: str
) -> None:
    """Fail unless the parameters whose name ends like one ``among`` these are decayed, or are not."""
    decays = call_and_read_decays(student, parts)
    wrong = [
        name for name in decays if name.endswith(among) and any(bool(each) is not decayed for each in decays[name])
    ]
    if wrong:
        total = sum(name.endswith(among) for name in decays)
        count = f"{len(wrong)} of the {total} {described}" if len(wrong) < total else f"all {described}"
        are = "are not decayed" if decayed else "are decayed"
        expected = "a weight decay on every one of them" if decayed else "a weight decay of 0 for them"
        raise Failure(f"{count} {are}: {join_names([f'`{name}`' for name in wrong], 3)}", expected, look)


def expect_right_groups(student: Student, parts: Parameters, weight_decay: float) -> None:
    """Fail unless every parameter is in the group that it belongs to, once, and the groups decay as asked for."""
    decays = call_and_read_decays(student, parts, weight_decay)
    expect_only_own_parameters(decays)
    for name, found in decays.items():
        wanted = [weight_decay if name in list_decayed_names(parts) else 0.0]
        if found != wanted:
            got = f"the weight decay {', '.join(map(str, found))}" if found else "no group at all"
            look = "What tells a weight that multiplies tokens from all that is added or only scales?"
            raise Failure(f"`{name}` gets {got}, where {weight_decay} was asked for", f"{wanted[0]} for it", look)


def expect_vit_is_sorted(student: Student, probe: Probe) -> None:
    """Of a whole ViT every parameter is in its group."""
    expect_right_groups(student, draw_vit_parts(probe), draw_weight_decay(probe))


def expect_renamed_norm_is_spared(student: Student, probe: Probe) -> None:
    """A norm is told by what it is, and not by its name."""
    expect_right_groups(
        student, {"layer": ("Linear", probe.sizes(2)), "scale": ("LayerNorm", (5,))}, draw_weight_decay(probe)
    )


@parameter_groups.check(guard=True)
def it_gives_two_groups(student: Student, probe: Probe) -> None:
    """It gives two groups, each a dict with `params` and `weight_decay`."""
    _call_and_expect_groups(student, VIT)
    student.note("two groups")


@parameter_groups.check(needs=it_gives_two_groups, guard=True, points=0.15, first=expect_vit_is_sorted)
def the_params_are_lists(student: Student, probe: Probe) -> None:
    """The params of each group are a list, which can be read more than once."""
    holders = [str(group["holder"]) for group in _call_and_expect_groups(student, draw_vit_parts(probe))]
    odd = [holder for holder in holders if holder not in ("list", "tuple")]
    student.note(("odd holders", tuple("runs dry" if each in _ONCE else each for each in odd)))
    if odd:
        look = "What is left of a generator after one loop over it?"
        raise Failure(f"a group's params are a {odd[0]}", "a list", look if odd[0] in _ONCE else "")


_ONCE = ("generator", "filter", "map")


@parameter_groups.check(needs=it_gives_two_groups, points=0.1)
def every_parameter_is_in_one_group(student: Student, probe: Probe) -> None:
    """Every parameter of the model is in exactly one of the groups."""
    _expect_each_once(call_and_read_decays(student, draw_vit_parts(probe)))


def _expect_each_once(decays: dict[str, list[Any]]) -> None:
    expect_only_own_parameters(decays)
    missing, twice = (
        [f"`{name}`" for name, each in decays.items() if wrong(len(each))] for wrong in (_is_zero, _is_more_than_one)
    )
    if missing:
        look = "Which parameters belong to no layer, but to the model itself?"
        raise Failure(
            f"{join_names(missing, 3)} {_choose_is_or_are(missing)} in no group",
            "an optimizer that moves them too",
            look,
        )
    if twice:
        look = "Are your two conditions each other's opposite?"
        raise Failure(
            f"{join_names(twice, 3)} {_choose_is_or_are(twice)} in more than one place",
            "one group for each parameter",
            look,
        )


def expect_only_own_parameters(decays: dict[str, list[Any]]) -> None:
    """Fail when the groups hold anything but the model's own parameters, and take that out of ``decays``."""
    foreign = {name[2:]: len(decays.pop(name)) for name in [*decays] if name.startswith("?")}
    if foreign:
        kind, count = next(iter(foreign.items()))
        seen = f"the groups hold {count} thing{'' if count == 1 else 's'} of type {kind} that the model does not own"
        look = "What does named_parameters() give: names, parameters, or pairs of both?"
        if kind in ("Tensor", "Parameter"):
            look = "What does an optimizer move that was given copies?"
        raise Failure(seen, "the model's own parameters, as they are", look)


def _is_zero(count: int) -> bool:
    return count == 0


def _is_more_than_one(count: int) -> bool:
    return count > 1


def _choose_is_or_are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


@parameter_groups.check(needs=it_gives_two_groups, points=0.2, first=expect_renamed_norm_is_spared)
def the_decay_is_the_one_asked_for(student: Student, probe: Probe) -> None:
    """One group has the weight decay that is asked for, and the other has 0."""
    for weight_decay in (draw_weight_decay(probe), draw_weight_decay(probe, 0.07), 1.0, 0.0):
        found = [
            format_number_or_kind(group["weight_decay"])
            for group in _call_and_expect_groups(student, draw_vit_parts(probe), weight_decay)
        ]
        student.note(("decays", tuple(sorted(found))))
        if sorted(found) != ["0", format_number_or_kind(weight_decay)]:
            decays_found = " and ".join(found)
            look = "Where does the argument weight_decay go?"
            raise Failure(
                f"for weight_decay={weight_decay} the groups have {decays_found}", f"{weight_decay} and 0.0", look
            )


@parameter_groups.check(needs=the_decay_is_the_one_asked_for, points=0.15, first=expect_vit_is_sorted)
def the_decayed_group_comes_first(student: Student, probe: Probe) -> None:
    """The group with the weight decay comes first, the one without it second."""
    first = format_number_or_kind(_call_and_expect_groups(student, draw_vit_parts(probe))[0]["weight_decay"])
    student.note(("first", first))
    if first == "0":
        raise Failure("the first group has a weight decay of 0", "the decayed one", "Which group is named first?")


@parameter_groups.check(needs=it_gives_two_groups, points=0.2, first=expect_vit_is_sorted)
def a_frozen_parameter_has_its_group_too(student: Student, probe: Probe) -> None:
    """A frozen parameter is in a group as well, since it may be trained again later."""
    parts, look = draw_vit_parts(probe), "Which parameters does the exercise leave out: those that are frozen?"
    other = probe.choice(("positions", "class_token", "head.weight"), shown="positions")
    frozen = ["patch_embedding.projection.weight", "patch_embedding.projection.bias", other]
    decays = call_and_read_decays(student, parts, frozen=frozen)
    if missing := [f"`{name}`" for name in frozen if not decays[name]]:
        seen = f"of the frozen parameters, no group has {join_names(missing)}"
        raise Failure(seen, "every parameter in one of them", look)
    if moved := [name for name, each in call_and_read_decays(student, parts).items() if decays.get(name) != each]:
        raise Failure(f"`{moved[0]}` changes its group when some parameters are frozen", "the same two groups", look)


@parameter_groups.check(needs=it_gives_two_groups, points=0.2, first=expect_renamed_norm_is_spared)
def a_shared_weight_is_there_once(student: Student, probe: Probe) -> None:
    """A weight that two layers share is one parameter, and stands in a group once."""
    dim, hidden = probe.sizes(2, shown=(6, 4))
    layers: Parameters = {
        "body.0": ("Linear", (dim, dim)),
        "body.1": ("LayerNorm", (dim,)),
        "body.2": ("Linear", (dim, hidden)),
        "body.3": ("Linear", (dim, dim)),
    }
    decays = call_and_read_decays(student, layers, tied={"body.3": "body.0"})
    look = "Which of torch's ways through a model meets a shared parameter twice?"
    if len(found := decays["body.0.weight"]) > 1:
        raise Failure(f"a weight that two layers share is listed {len(found)} times", "once", look)
    alone = call_and_read_decays(student, layers)
    if moved := [name for name, each in decays.items() if alone.get(name) != each]:
        raise Failure(f"`{moved[0]}` changes its group when two layers share a weight", "the same two groups", look)


@parameter_groups.check(needs=it_gives_two_groups, points=0.15)
def the_weights_of_linears_are_decayed(student: Student, probe: Probe) -> None:
    """The weight of every Linear is decayed."""
    parts = draw_vit_parts(probe)
    look = "What do the parameters have in common that multiply tokens?"
    _expect_decayed_or_not(student, parts, True, tuple(list_decayed_names(parts)), "weights of Linears", look)


@parameter_groups.check(needs=it_gives_two_groups, points=0.15, first=expect_vit_is_sorted)
def norms_and_biases_are_left_alone(student: Student, probe: Probe) -> None:
    """Biases, and scale and shift of every norm, are not decayed."""
    look = "How many axes has the weight of a LayerNorm, and how many that of a Linear?"
    among = (".bias", "norm.weight", "norm1.weight", "norm2.weight")
    _expect_decayed_or_not(student, draw_vit_parts(probe), False, among, "biases and norms' weights", look)


@parameter_groups.check(needs=it_gives_two_groups, points=0.1, first=expect_vit_is_sorted)
def class_token_and_positions_are_left_alone(student: Student, probe: Probe) -> None:
    """Class token and positions are not decayed, though they have more than one axis."""
    look = "What tells a table of positions from the weight of a Linear: its axes, or its name?"
    _expect_decayed_or_not(
        student, draw_vit_parts(probe), False, ("class_token", "positions"), "tables of the model's own", look
    )


@parameter_groups.check(needs=the_weights_of_linears_are_decayed, points=0.3)
def other_models_are_sorted_by_the_same_rule(student: Student, probe: Probe) -> None:
    """The same rule holds in a model with convolutions, and with parts that have only numbers for names."""
    look = "Does your rule know a convolution when it sees one, and a norm that is not called so?"
    parts = _draw_hybrid_parts(probe)
    _expect_decayed_or_not(
        student, parts, True, tuple(list_decayed_names(parts)), "weights of convolutions and Linears", look
    )
    among = (".bias", "stem.1.weight", "norm.weight", "out.0.weight", "out.2", "out.3", "weight_table")
    _expect_decayed_or_not(student, parts, False, among, "biases, norms' weights and parameters of no layer", look)
    _expect_each_once(call_and_read_decays(student, parts))


parameter_groups.example("""
>>> layers = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
>>> [(len(group["params"]), group["weight_decay"]) for group in parameter_groups(layers, 0.05)]
[(1, 0.05), (3, 0.0)]
""")


read_mistakes(parameter_groups, __name__)
declare_pairs(parameter_groups, Edits(quick=True))
