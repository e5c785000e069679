"""An answer whose numbers alone are wrong, in a way that has no name: which claims fail with it, and which stand."""

import functools
import inspect

import pytest
import torch

from exercise_kit.engine.expect import RANDOM
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.run import run_checks
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Verdict
from exercise_kit.judge.replays import Replays
from exercise_kit.judge.scoring import score_checks
from tests.course.test_hidden_checks import fill_with_zeros
from tests.our_hidden_checks import hidden_checks
from vit_course.exercises.catalog import EXERCISES
from vit_course.staff.references import REFERENCE

KEY = b"one submission"


def bend(value):
    if isinstance(value, tuple):
        return tuple(map(bend, value))
    return value + 0.37 * torch.sin(3 * value) + 0.11 if value.is_floating_point() else value + 1


def alter_model_answer(exercise, alter):
    """The model answer of an exercise, of which ``alter`` changes what every call gives."""

    def wrap_answer(right):
        if inspect.isclass(right):
            changed = {"forward": lambda self, *inputs, **options: alter(right.forward(self, *inputs, **options))}
            return type(right.__name__, (right,), changed)
        return functools.wraps(right)(lambda *inputs, **options: alter(right(*inputs, **options)))

    return dict(zip(EXERCISES[exercise].objects, map(wrap_answer, REFERENCE[exercise]), strict=True))


def grade_objects(exercise, objects, checks=None):
    """Return what grading finds, one outcome for each check."""
    checks = hidden_checks().exercises()[exercise] if checks is None else checks
    return [hidden_checks().evaluate(exercise, each, Student(objects), KEY) for each in checks]


# exercise → claims that hold, or that nobody can decide, where the numbers are wrong
NOT_FALSE = {
    "PatchEmbedding": {"every_parameter_learns", "it_follows_its_dtype", "training_and_evaluation_are_alike"},
    "MultiHeadSelfAttention": {"every_parameter_learns", "qkv_has_a_bias_unless_told", "it_follows_its_dtype"},
    "scaled_dot_product_attention": {"the_inputs_are_left_alone", "the_dtype_is_kept"},
    "Mlp": {"every_layer_learns", "the_gelu_is_the_exact_one"},
    "layer_norm": {"eps_is_added_to_the_variance", "what_goes_in_stays_as_it_is"},
    "EncoderBlock": {"every_parameter_learns", "both_norms_have_an_eps_of_1e_6", "it_follows_its_dtype"},
    "VisionTransformer": {"every_parameter_learns", "it_follows_its_dtype", "nothing_is_dropped_unasked"},
    "QKNormAttention": {"large_tokens_do_not_sharpen_it", "the_tokens_are_left_alone"},
}


@pytest.mark.parametrize("exercise", NOT_FALSE)
def test_no_claim_is_told_false_for_the_numbers_of_another(exercise):
    objects = alter_model_answer(exercise, bend)
    told = {each.name: each.verdict for each in run_checks(EXERCISES[exercise], objects)}
    told |= {each.name: each.verdict for each in score_checks(exercise, 10.0, grade_objects(exercise, objects)).checks}
    assert Verdict.FAIL in told.values()
    names = {name for name in told if name.removeprefix("test_") in NOT_FALSE[exercise]}
    assert {name.removeprefix("test_") for name in names} == NOT_FALSE[exercise]
    assert not {name for name in names if told[name] == Verdict.FAIL}


def test_a_gradient_and_a_dtype_earn_their_points_beside_wrong_numbers():
    found = {
        each.check.name: each.result.verdict
        for each in grade_objects("PatchEmbedding", alter_model_answer("PatchEmbedding", bend))
    }
    earned = {name.removeprefix("test_") for name, verdict in found.items() if verdict == Verdict.PASS}
    assert earned == {"its_parameters_are_one_linear", "every_parameter_learns", "it_follows_its_dtype"}


REFUSE = (
    *("normalize_images", "patchify", "fix_patchify", "sinusoidal_positions", "sinusoidal_positions_2d"),
    *("add_class_token", "resize_positions", "split_heads", "MultiHeadSelfAttention", "attention_rollout"),
    *("mean_attention_distance", "rotary_2d", "QKNormAttention"),
)


def refuse_value(value):
    raise ValueError(f"{value}")


@pytest.mark.parametrize("exercise", REFUSE)
@pytest.mark.parametrize(("alter", "verdict"), [(bend, "pass"), (fill_with_zeros, "fail"), (refuse_value, "fail")])
def test_a_refusal_counts_beside_wrong_numbers_and_with_no_stub(exercise, alter, verdict):
    refusals = [each for each in hidden_checks().exercises()[exercise] if "refused" in each.name]
    assert refusals
    assert all(each.worth for each in refusals)
    for found in grade_objects(exercise, alter_model_answer(exercise, alter), refusals):
        assert found.result.verdict == verdict, found.result.message


def name_failures_of(exercise, objects, asked):
    """Return what grading finds about some objects, with names that hold of those that are ``asked`` once more."""
    replays, again = Replays(hidden_checks(), exercise, KEY), lambda: Student(asked)
    return name_failures(EXERCISES[exercise], grade_objects(exercise, objects), replays, again)


def test_grading_tells_numbers_that_chance_has_made():
    objects = alter_model_answer("layer_norm", lambda value: value + 0.1 * torch.randn(value.shape))
    assert RANDOM[0] in [each.result.seen for each in name_failures_of("layer_norm", objects, objects)]


def test_a_name_in_grading_holds_of_the_student():
    exercise = "replace_head"
    wrong = next(each for each in EXERCISES[exercise].misconceptions if each.holds)
    made, right = (
        dict(zip(EXERCISES[exercise].objects, each, strict=True)) for each in (wrong.objects, REFERENCE[exercise])
    )
    told = [{each.result.misconception for each in name_failures_of(exercise, made, asked)} for asked in (made, right)]
    assert [wrong.name in each for each in told] == [True, False]
