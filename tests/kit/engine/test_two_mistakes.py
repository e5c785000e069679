"""Two mistakes at once: built from single ones, named where no single one explains, and never by a guess."""

import random
from pathlib import Path

import pytest
import torch

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.mistakes import add_mistakes
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.program import read_program
from exercise_kit.engine.report_lines import make_report_lines
from exercise_kit.engine.run import check, explain_unrecognized_pair_of_mistakes, run_checks
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Layout, declare_pairs, list_pairs
from exercise_kit.judge.replays import Replays, find_commonest_misconception
from tests.our_hidden_checks import hidden_checks
from vit_course.exercises.catalog import EXERCISES

ROOT = Path(__file__).parents[3]
# the bug hunts share the pairs of the exercise that they come from
OWN = [each for each in EXERCISES.values() if list_pairs(each) and not each.name.startswith("fix_")]


def iterate_sampled_pairs():
    drawn = random.Random(5)
    for exercise in OWN:
        for pair in drawn.sample(list_pairs(exercise), 2):
            yield pytest.param(exercise, pair, id=f"{exercise.name}-{pair.name}")


def find_pair(exercise, first, second):
    return next(
        pair for pair in list_pairs(EXERCISES[exercise]) if (pair.first.name, pair.second.name) == (first, second)
    )


@pytest.mark.proof
@pytest.mark.parametrize(("exercise", "pair"), list(iterate_sampled_pairs()))
def test_a_pair_fails_and_is_reported_as_one_of_its_own(exercise, pair):
    """By its name, or by a name that gives the same: of one of the two, where that hides the other, or of another."""
    report = check(exercise.name, *pair.objects, points=10)
    message = explain_unrecognized_pair_of_mistakes(exercise, pair)
    assert not report.passed, message
    if pair.name in report.misconceptions:
        assert report.as_dict()["misconception"] == pair.name
    else:
        assert message


COMMON = [
    ("patchify", "column order", "channels last inside a token"),
    ("unpatchify", "patches placed column by column", "channels read last"),
    ("split_heads", "reshaped where transposed", "merged without transpose"),
    ("PatchEmbedding", "embedding in column order", "activation after the projection"),
    ("conv_from_linear", "kernels transposed", "bias left random"),
    ("normalize_images", "multiplied by std", "a mean for every column"),
    ("sinusoidal_positions", "halves concatenated", "counted from 1"),
    ("sinusoidal_positions", "sine and cosine swapped", "base e for 10000"),
    ("sinusoidal_positions_2d", "column in the first half", "half of a longer table"),
    ("add_class_token", "class token last", "positions multiplied"),
    ("resize_positions", "bilinear for bicubic", "class token put back last"),
    ("scaled_dot_product_attention", "scaling forgotten", "softmax over the queries"),
    ("scaled_dot_product_attention", "scaling forgotten", "weights before output"),
    ("scaled_dot_product_attention", "divided by head dim without the root", "causal mask"),
    ("MultiHeadSelfAttention", "root of embed dim", "heads merged by view"),
    ("MultiHeadSelfAttention", "heads not scaled", "residual inside"),
    ("layer_norm", "divided by one less", "statistics over the tokens"),
    ("layer_norm", "bias added before the weight", "eps outside the root"),
    ("Mlp", "activation after the last layer", "relu for gelu"),
    ("EncoderBlock", "residual from the normed stream", "ratio fixed at four"),
    ("VisionTransformer", "mean of all tokens", "positions never added"),
    ("count_parameters", "positions forgotten", "biases forgotten"),
    ("load_torchvision", "kernels on their side", "norms swapped"),
    ("train_one_epoch", "gradients never cleared", "softmax before the loss"),
    ("evaluate", "evaluation never switched on", "accuracy in percent"),
    ("evaluate", "mean of batch means", "mean of batch accuracies"),
    ("warmup_cosine", "the first update wasted", "a line down"),
    ("parameter_groups", "sorted by axes alone", "a decay written into the code"),
    ("EarlyStopping", "one too late", "compared with the last"),
    ("attention_rollout", "identity forgotten", "strongest head only"),
    ("mean_attention_distance", "rows plus columns", "query patches summed"),
    ("predict_with_attention", "softmax forgotten", "first head only"),
]

# of layer_norm the claim about eps waits for right numbers, and what still fails fits "std plus eps" as well; of the
# model it is not among the sixty likeliest pairs, which are all that is tried
UNNAMED_BY_CHECK = [("layer_norm", "divided by one less", "statistics over the tokens")]
UNNAMED_BY_GRADING = [("VisionTransformer", "mean of all tokens", "positions never added")]


@pytest.mark.proof
@pytest.mark.parametrize(("exercise", "first", "second"), [each for each in COMMON if each not in UNNAMED_BY_CHECK])
def test_a_common_pair_is_named_by_public_checks(exercise, first, second):
    pair = find_pair(exercise, first, second)
    assert explain_unrecognized_pair_of_mistakes(EXERCISES[exercise], pair) == ""
    report = check(exercise, *pair.objects, points=10)
    assert report.misconceptions == (f"{first}, and {second}",)
    message = str(report)
    assert "Two mistakes at once." in " ".join(message.split())


@pytest.mark.proof
@pytest.mark.parametrize(("exercise", "first", "second"), [each for each in COMMON if each not in UNNAMED_BY_GRADING])
def test_a_common_pair_is_named_by_hidden_checks(exercise, first, second):
    pair, key = find_pair(exercise, first, second), b"a class"
    names = EXERCISES[exercise].objects
    outcomes = list(hidden_checks().run(exercise, lambda: Student(dict(zip(names, pair.objects, strict=True))), key))
    named = name_failures(EXERCISES[exercise], outcomes, Replays(hidden_checks(), exercise, key))
    assert find_commonest_misconception(named) == pair.name


def test_an_answer_that_is_no_pair_is_not_named_so():
    def other(images, patch_size):
        return torch.nn.functional.unfold(images, patch_size, stride=patch_size).transpose(1, 2).flip(2)

    def nearly(images, patch_size):
        return find_pair("patchify", "column order", "channels last inside a token").objects[0](images, patch_size) + 1

    for wrong in (other, nearly):
        assert check("patchify", wrong).misconceptions == ()


def test_a_single_mistake_keeps_its_own_name():
    for exercise in (EXERCISES["patchify"], EXERCISES["Mlp"], EXERCISES["scaled_dot_product_attention"]):
        for wrong in exercise.misconceptions:
            named = check(exercise.name, *wrong.objects).misconceptions
            assert wrong.name in named
            assert not any(", and " in name for name in named)


SCALE = """
import torch


def scale(x):
    shift = 0
    # bug "shifted by nothing": shift = 0.0
    up = 2 * x
    # bug "tripled": up = 3 * x
    down = x
    # bug "negative ones too": down = 2 * x
    # bug "mirrored": down = -x
    return torch.where(x > 0, up, down) + shift
    # bug "sizes alone": return (torch.where(x > 0, up, down) + shift).abs()
"""
SCALE_MISTAKES = {
    name: {"explanation": explanation, "question": question, "section": "Scale"}
    for name, explanation, question in (
        ("tripled", "Tripled.", "Three?"),
        ("negative ones too", "Negative numbers double too.", "Negative?"),
        ("shifted by nothing", "Nothing is added.", "Nothing?"),
        ("mirrored", "Negative numbers change their sign.", "Sign?"),
        ("sizes alone", "Every number loses its sign.", "Size?"),
    )
}


def make_scale_exercise():
    """``scale(x)`` should give 2 * x for positive numbers, and leave negative ones alone."""
    exercise = Exercise("scale", "00_start")

    @exercise.check
    def positive_numbers_double(student, probe):
        """Positive numbers double."""
        x = probe.uniform(2, 3, low=1, high=2)
        expect_equal(student(x), 2 * x, "scale")

    @exercise.check
    def negative_numbers_stay(student, probe):
        """Negative numbers stay."""
        x = -probe.uniform(2, 3, low=1, high=2)
        expect_equal(student(x), x, "scale")

    add_mistakes(exercise, read_program(SCALE, "scale_program", "program.py"), SCALE_MISTAKES, "mistakes.toml")
    return exercise


def test_two_failures_that_two_mistakes_explain_apart_are_one_pair():
    exercise = make_scale_exercise()
    results = run_checks(exercise, {"scale": lambda x: torch.where(x > 0, 3 * x, 2 * x)})
    assert [each.misconception for each in results] == ["tripled, and negative ones too"] * 2
    assert results[0].causes[0].explanation == "Two mistakes at once. Tripled. Negative numbers double too."
    assert results[0].parts()["Where to look"].startswith("Three?")
    assert (
        make_report_lines(results, {}, [])[1].parts()["Likely cause"] == "*tripled, and negative ones too*, as above."
    )


def test_a_failure_that_a_single_mistake_explains_is_no_pair():
    exercise = make_scale_exercise()
    results = run_checks(exercise, {"scale": lambda x: torch.where(x > 0, 3 * x, x)})
    assert [each.misconception for each in results] == ["tripled", None]
    results = run_checks(exercise, {"scale": lambda x: torch.where(x > 0, 3 * x, 5 * x)})
    assert [each.misconception for each in results] == ["tripled", None]


def test_a_pair_that_is_none_is_reported_with_its_reason():
    exercise = make_scale_exercise()
    reasons = {pair.name: explain_unrecognized_pair_of_mistakes(exercise, pair) for pair in list_pairs(exercise)}
    assert reasons["tripled, and negative ones too"] == ""
    assert reasons["tripled, and shifted by nothing"].endswith("looks like tripled")
    exercise.checks = exercise.checks[1:]
    message = explain_unrecognized_pair_of_mistakes(
        exercise, next(pair for pair in list_pairs(exercise) if "nothing" in pair.name)
    )
    assert message == "every public check of scale passes tripled, and shifted by nothing"


def test_edits_of_one_line_are_no_pair():
    names = {pair.name for pair in list_pairs(make_scale_exercise())}
    assert "tripled, and negative ones too" in names
    assert "negative ones too, and mirrored" not in names


def test_pairs_that_are_alike_here_are_not_named():
    """With "tripled" either gives the same: of two names of pairs at least one would be false."""
    found = run_checks(make_scale_exercise(), {"scale": lambda x: torch.where(x > 0, 3 * x, -x)})
    assert [[cause.name for cause in each.causes] for each in found] == [["tripled"], ["mirrored", "sizes alone"]]


def test_layouts_are_composed_without_a_word_of_code():
    exercise = Exercise("turn", "00_start")

    @exercise.misconception("Rows?", "00_start, Scale")
    def rows_reversed(x):
        """Rows reversed."""
        return x.flip(0)

    @exercise.misconception("Side?", "00_start, Scale")
    def on_its_side(x):
        """On its side."""
        return x.T

    @exercise.misconception("Float?", "00_start, Scale")
    def rounded(x):
        """Rounded."""
        return x.int()

    declare_pairs(exercise, Layout(lambda x: x.clone(), (torch.empty(2, 3),)))
    x = torch.tensor([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])
    found = [(pair.name, pair.objects[0](x).tolist()) for pair in list_pairs(exercise)]
    assert ("rows reversed, and on its side", x.flip(0).T.tolist()) in found
    assert ("rows reversed, and rounded", x.flip(0).int().tolist()) in found
    assert ("on its side, and rounded", x.T.int().tolist()) in found
