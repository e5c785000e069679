"""Hidden checks of ``fine_tuning_groups``: its claims, of models of other sizes, and of other rates."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l09_fine_tuning.fine_tuning_groups import claims

RATES = claims.the_head_has_its_own_rate
test_it_gives_two_groups = as_hidden(claims.it_gives_two_groups, RATES, fine_tuning_groups=0.1)
test_every_parameter_is_in_one_group = as_hidden(claims.every_parameter_is_in_one_group, RATES, fine_tuning_groups=0.1)
test_frozen_parameters_have_their_group = as_hidden(
    claims.frozen_parameters_have_their_group, RATES, fine_tuning_groups=0.3
)
test_the_head_has_its_own_rate = as_hidden(RATES, fine_tuning_groups=0.27)
test_the_backbone_comes_first = as_hidden(claims.the_backbone_comes_first, RATES, fine_tuning_groups=0.77)
test_other_names_with_head_are_backbone = as_hidden(claims.other_names_with_head_are_backbone, fine_tuning_groups=0.2)
test_the_head_is_what_the_model_calls_head = as_hidden(
    claims.the_head_is_what_the_model_calls_head, fine_tuning_groups=1.01
)


@pytest.mark.exercise("fine_tuning_groups", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other models are dealt out too."""
    ask_first(RATES, student, probe)
    expect_example(student)
