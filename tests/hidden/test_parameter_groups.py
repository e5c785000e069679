"""Hidden checks of ``parameter_groups``: which parameters of a model of drawn parts get which weight decay."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.verdict import Failure
from exercise_kit.judge.claims import as_hidden
from vit_course.exercises.l06_training.parameter_groups import claims


def _expect_sorted(student, parts, weight_decay):
    """Fail unless every parameter is in the group that it belongs to, once, and the groups decay as asked for."""
    decays = claims.decays_of(student, parts, weight_decay)
    claims.expect_its_own(decays)
    for name, found in decays.items():
        wanted = [weight_decay if name in claims.matrices_in(parts) else 0.0]
        if found != wanted:
            got = f"the weight decay {', '.join(map(str, found))}" if found else "no group at all"
            look = "What tells a weight that multiplies tokens from all that is added or only scales?"
            raise Failure(f"`{name}` gets {got}, where {weight_decay} was asked for", f"{wanted[0]} for it", look)


def a_vit_is_sorted(student, probe):
    _expect_sorted(student, claims.a_vit(probe), claims.a_decay(probe))


def a_norm_of_another_name_is_spared(student, probe):
    _expect_sorted(student, {"layer": ("Linear", probe.sizes(2)), "scale": ("LayerNorm", (5,))}, claims.a_decay(probe))


test_every_parameter_is_in_one_group = as_hidden(claims.every_parameter_is_in_one_group, parameter_groups=0.1)
test_the_weights_of_linears_are_decayed = as_hidden(claims.the_weights_of_linears_are_decayed, parameter_groups=0.15)
test_norms_and_biases_are_left_alone = as_hidden(
    claims.norms_and_biases_are_left_alone, a_vit_is_sorted, parameter_groups=0.15
)
test_class_token_and_positions_are_left_alone = as_hidden(
    claims.class_token_and_positions_are_left_alone, a_vit_is_sorted, parameter_groups=0.1
)
test_other_models_are_sorted_by_the_same_rule = as_hidden(
    claims.other_models_are_sorted_by_the_same_rule, parameter_groups=0.3
)
test_the_decay_is_the_one_asked_for = as_hidden(
    claims.the_decay_is_the_one_asked_for, a_norm_of_another_name_is_spared, parameter_groups=0.2
)
test_the_params_are_lists = as_hidden(claims.the_params_are_lists, a_vit_is_sorted, parameter_groups=0.15)
test_the_decayed_group_comes_first = as_hidden(
    claims.the_decayed_group_comes_first, a_vit_is_sorted, parameter_groups=0.15
)
test_a_frozen_parameter_has_its_group_too = as_hidden(
    claims.a_frozen_parameter_has_its_group_too, a_vit_is_sorted, parameter_groups=0.2
)
test_a_shared_weight_is_there_once = as_hidden(
    claims.a_shared_weight_is_there_once, a_norm_of_another_name_is_spared, parameter_groups=0.2
)


@pytest.mark.exercise("parameter_groups", points=0.2)
def test_a_model_of_one_kind(student, probe):
    """If all parameters of a model belong to one group, the other group is there, too, and is empty."""
    parts = {f"part.{number}": ("LayerNorm", (size,)) for number, size in enumerate(probe.sizes(2))}
    _expect_sorted(student, parts | {"bias": ("Parameter", probe.sizes(1))}, claims.a_decay(probe))


@pytest.mark.exercise("parameter_groups", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_sorted(student, {"layer": ("Linear", probe.sizes(2))}, claims.a_decay(probe))
    expect_example(student)
