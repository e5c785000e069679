"""Hidden checks of ``parameter_groups``: which parameters of a model of drawn parts get which weight decay."""

import pytest

from exercise_kit.engine.compare import listed
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training.parameter_groups.claims import (
    HAS_BIAS,
    expect_as_frozen,
    expect_its_own,
    matrices_in,
    names_in,
)

KEYS = {"params", "weight_decay"}


def _vit(probe):
    """A Vision Transformer's parts, of drawn sizes and depth."""
    dim, patch, tokens, hidden, classes = probe.sizes(5, high=12)
    parts = {
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


def _numbered(probe):
    """A model with convolutions, whose parts have numbers for names."""
    channels, kernel, dim, classes, rows = probe.sizes(5, high=8)
    return {
        "stem.0": ("Conv2d", (channels, dim, kernel)),
        "stem.1": ("LayerNorm", (dim,)),
        "stem.2": ("Conv2d", (dim, dim, kernel)),
        "body.0": ("LayerNorm", (dim,)),
        "body.1": ("Linear", (dim, classes)),
        "body.2": ("Parameter", (rows, dim)),
        "body.3": ("Parameter", (dim,)),
        "body.weight_table": ("Parameter", (classes, rows)),
    }


def _groups(student, parts, weight_decay, **fields):
    """Two groups with what an optimiser needs; Failure where there are none such."""
    made_of = {name: [kind, list(sizes)] for name, (kind, sizes) in parts.items()}
    notes = student.run_fixture("groups", "groups", parts=made_of, weight_decay=weight_decay, **fields)
    expect_as_frozen(student, notes, fields.get("frozen", ()))
    groups = notes["groups"]
    right = isinstance(groups, list) and len(groups) == 2
    if not right or not all(isinstance(each, dict) and set(each["keys"]) >= KEYS for each in groups):
        look = "What does torch.optim's page say under “per-parameter options”?"
        wanted = "a list of two dicts with `params` and `weight_decay`"
        raise Failure(
            f"{student.name} gave a {notes['returned']} of {len(groups)} groups, not as they should be", wanted, look
        )
    return groups


def _expect(student, parts, weight_decay, look, **fields):
    """Fail unless every parameter is in the group that it belongs to, once, and the groups decay as asked for."""
    groups = _groups(student, parts, weight_decay, **fields)
    shared = {f"{name}.weight" for name in fields.get("tied", ())}  # it has the other part's name too
    decays = {name: [] for name in names_in(parts) if name not in shared}
    for group in groups:
        for name in group["names"]:
            decays.setdefault(str(name), []).append(group["weight_decay"])
    expect_its_own(decays)
    matrices = set(matrices_in(parts))
    for name, found in decays.items():
        wanted = [weight_decay if name in matrices else 0.0]
        if found != wanted:
            got = f"the weight decay {listed([str(each) for each in found])}" if found else "no group at all"
            raise Failure(f"`{name}` gets {got}, where {weight_decay} was asked for", f"{wanted[0]} for it", look)
    return groups


def _decay(probe):
    return round(float(probe.uniform(1, low=0.02, high=0.4)), 3)


@pytest.mark.exercise("parameter_groups", points=0.5)
def test_a_vision_transformer_is_sorted(student, probe):
    """Of a Vision Transformer the weights of Linears decay; biases, norms, class token and positions do not."""
    look = "What tells a weight that multiplies tokens from all that is added or only scales: axes, or name, or both?"
    _expect(student, _vit(probe), _decay(probe), look)


@pytest.mark.exercise("parameter_groups", points=0.2)
def test_other_models_are_sorted_too(student, probe):
    """Weights of convolutions are decayed as well, and norms are recognized whatever their names are."""
    _expect(student, _numbered(probe), _decay(probe), "Does your rule know a norm that is not called so?")


@pytest.mark.exercise("parameter_groups", points=0.2)
def test_any_weight_decay_is_passed_on(student, probe):
    """Whatever weight decay is asked for, the matrices get it and all else gets 0."""
    parts = {"layer": ("Linear", probe.sizes(2)), "scale": ("LayerNorm", probe.sizes(1))}
    for weight_decay in (_decay(probe), 1.0):
        _expect(student, parts, weight_decay, "Where does the argument weight_decay go?")


@pytest.mark.exercise("parameter_groups", points=0.2)
def test_the_groups_can_be_read_twice(student, probe):
    """The parameters are sorted correctly, and the params of each group are a list, which can be read again."""
    groups = _expect(student, _vit(probe), _decay(probe), "Which parameters are where?")
    holders = [str(group["holder"]) for group in groups]
    if odd := [each for each in holders if each not in ("list", "tuple")]:
        look = "What is left of a generator after one loop over it?"
        raise Failure(f"the params of a group are a {odd[0]}", "a list", look)


@pytest.mark.exercise("parameter_groups", points=0.2)
def test_a_model_of_one_kind(student, probe):
    """If all parameters of a model belong to one group, the other group is there, too, and is empty."""
    parts = {f"part.{number}": ("LayerNorm", (size,)) for number, size in enumerate(probe.sizes(2))}
    assert all(kind in HAS_BIAS for kind, _ in parts.values())
    parts["bias"] = ("Parameter", probe.sizes(1))
    _expect(student, parts, _decay(probe), "What becomes of a group without a parameter?")


@pytest.mark.exercise("parameter_groups", points=0.2)
def test_the_decayed_group_comes_first(student, probe):
    """The parameters are sorted correctly, and the decayed group comes first, as asked for."""
    groups = _expect(student, _vit(probe), _decay(probe), "Which parameters are where?")
    if not groups[0]["weight_decay"]:
        look = "Which group is named first?"
        raise Failure("the first group has a weight decay of 0", "the decayed one first", look)


@pytest.mark.exercise("parameter_groups", points=0.2)
def test_frozen_parameters_have_a_group_too(student, probe):
    """Frozen parameters are sorted like any others, and stay frozen."""
    parts = _vit(probe)
    frozen = [name for name in names_in(parts) if name.startswith("patch_embedding")]
    frozen.append(probe.choice(("positions", "class_token", "head.weight")))
    _expect(student, parts, _decay(probe), "Does the exercise say anything of requires_grad?", frozen=frozen)


@pytest.mark.exercise("parameter_groups", points=0.2)
def test_a_shared_weight_is_there_once(student, probe):
    """A weight that two layers share is one parameter: it is decayed, and stands in its group once."""
    dim, hidden = probe.sizes(2)
    parts = {"body.0": ("Linear", (dim, dim)), "body.1": ("LayerNorm", (dim,)), "body.2": ("Linear", (dim, hidden))}
    parts["body.3"] = ("Linear", (dim, dim))
    look = "Which of torch's ways through a model meets a shared parameter twice?"
    _expect(student, parts, _decay(probe), look, tied={"body.3": "body.0"})


@pytest.mark.exercise("parameter_groups", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect(student, {"layer": ("Linear", probe.sizes(2))}, _decay(probe), "Which group is which?")
    expect_example(student)
