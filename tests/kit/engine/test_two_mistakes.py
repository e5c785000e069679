"""Two mistakes at once: built from single ones, named where no single one explains, and never by a guess."""

import random
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.diagnosis import observed
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.probes import quiet
from exercise_kit.engine.records import same_record
from exercise_kit.engine.run import check, run_checks, unrecognized_pair
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import _DECLARED, Layout, Parts, declare, pairs_of
from exercise_kit.judge.name_mistakes import Replays, commonest, name_failures
from tests.our_hidden_checks import hidden_checks
from vit_course.exercises.catalog import EXERCISES

ROOT = Path(__file__).parents[3]
# the bug hunts share the pairs of the exercise that they come from
OWN = [each for each in EXERCISES.values() if pairs_of(each) and not each.name.startswith("fix_")]


def seeded_sample():
    drawn = random.Random(5)
    for exercise in OWN:
        for pair in drawn.sample(pairs_of(exercise), 2):
            yield pytest.param(exercise, pair, id=f"{exercise.name}-{pair.name}")


def pair_called(exercise, first, second):
    return next(
        pair for pair in pairs_of(EXERCISES[exercise]) if (pair.first.name, pair.second.name) == (first, second)
    )


def settings():
    for library, source in _DECLARED:
        exercise = next(each for each in EXERCISES.values() if each.misconceptions is library)
        if isinstance(source, Parts):
            yield pytest.param(exercise, source, id=exercise.name)


@pytest.mark.parametrize(("exercise", "parts"), list(settings()))
@pytest.mark.proof
def test_a_setting_alone_is_its_misconception(exercise, parts):
    """It may lack less: a misconception may accept what it should refuse."""
    by_function = {wrong.objects[wrong.place]: wrong for wrong in exercise.misconceptions}
    assert parts.settings.keys() <= by_function.keys()
    for function, setting in parts.settings.items():
        wrong = by_function[function]
        alone = Misconception(wrong.cause, (partial(parts.make, **setting),))
        with quiet():
            for each in exercise.checks:
                fails, record = observed(alone, exercise.objects, each)
                wrong_fails, wrong_record = observed(wrong, exercise.objects, each)
                assert fails <= wrong_fails, f"{wrong.name} in {each.name}"
                assert fails != wrong_fails or same_record(record, wrong_record), f"{wrong.name} in {each.name}"


@pytest.mark.proof
@pytest.mark.parametrize(("exercise", "pair"), list(seeded_sample()))
def test_a_pair_fails_and_is_reported_as_one_of_its_own(exercise, pair):
    """By its name, or by a name that gives the same: of one of the two, where that hides the other, or of another."""
    report = check(exercise.name, *pair.objects, points=10)
    message = unrecognized_pair(exercise, pair)
    assert not report.passed, message
    if pair.name in report.misconceptions:
        assert report.as_dict()["misconception"] == pair.name
    else:
        assert message


COMMON = [
    ("patchify", "column order", "channels last inside a token"),
    ("patchify", "column order", "float32 whatever the input"),
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


@pytest.mark.proof
@pytest.mark.parametrize(("exercise", "first", "second"), COMMON)
def test_a_common_pair_is_named_by_public_checks(exercise, first, second):
    pair = pair_called(exercise, first, second)
    assert unrecognized_pair(EXERCISES[exercise], pair) == ""
    report = check(exercise, *pair.objects, points=10)
    assert report.misconceptions == (f"{first}, and {second}",)
    message = str(report)
    assert "Two mistakes at once." in " ".join(message.split())


@pytest.mark.proof
@pytest.mark.parametrize(("exercise", "first", "second"), COMMON)
def test_a_common_pair_is_named_by_hidden_checks(exercise, first, second):
    pair, key = pair_called(exercise, first, second), b"a class"
    names = EXERCISES[exercise].objects
    outcomes = list(hidden_checks().run(exercise, lambda: Student(dict(zip(names, pair.objects, strict=True))), key))
    named = name_failures(exercise, outcomes, Replays(hidden_checks(), exercise, key))
    assert commonest(named) == pair.name


def test_an_answer_that_is_no_pair_is_not_named_so():
    def other(images, patch_size):
        return torch.nn.functional.unfold(images, patch_size, stride=patch_size).transpose(1, 2).flip(2)

    def nearly(images, patch_size):
        return (
            pair_called("patchify", "column order", "channels last inside a token").objects[0](images, patch_size) + 1
        )

    for wrong in (other, nearly):
        assert check("patchify", wrong).misconceptions == ()


def test_a_single_mistake_keeps_its_own_name():
    for exercise in (EXERCISES["patchify"], EXERCISES["Mlp"], EXERCISES["scaled_dot_product_attention"]):
        for wrong in exercise.misconceptions:
            named = check(exercise.name, *wrong.objects).misconceptions
            assert wrong.name in named
            assert not any(", and " in name for name in named)


def tripled_and_shifted():
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

    @exercise.misconception("Three?", "00_start, Scale")
    def tripled(x):
        """Tripled."""
        return made(x, up=3)

    @exercise.misconception("Negative?", "00_start, Scale")
    def negative_ones_too(x):
        """Negative numbers double too."""
        return made(x, down=2)

    @exercise.misconception("Nothing?", "00_start, Scale")
    def shifted_by_nothing(x):
        """Nothing is added."""
        return made(x)

    def made(x, up=2, down=1, shift=0):
        return torch.where(x > 0, up * x, down * x) + shift

    declare(
        exercise, Parts(made, {tripled: {"up": 3}, negative_ones_too: {"down": 2}, shifted_by_nothing: {"shift": 0}})
    )
    return exercise


def test_two_failures_that_two_mistakes_explain_apart_are_one_pair():
    exercise = tripled_and_shifted()
    results = run_checks(exercise, {"scale": lambda x: torch.where(x > 0, 3 * x, 2 * x)})
    assert [each.misconception for each in results] == ["tripled, and negative ones too"] * 2
    assert results[0].causes[0].explanation == "Two mistakes at once. Tripled. Negative numbers double too."
    assert results[0].parts()["Where to look"].startswith("Three?")
    assert results[1].parts()["Likely cause"] == "*tripled, and negative ones too*, as above."


def test_a_failure_that_a_single_mistake_explains_is_no_pair():
    exercise = tripled_and_shifted()
    results = run_checks(exercise, {"scale": lambda x: torch.where(x > 0, 3 * x, x)})
    assert [each.misconception for each in results] == ["tripled", None]
    results = run_checks(exercise, {"scale": lambda x: torch.where(x > 0, 3 * x, 5 * x)})
    assert [each.misconception for each in results] == ["tripled", None]


def test_a_pair_that_is_none_is_reported_with_its_reason():
    exercise = tripled_and_shifted()
    reasons = {pair.name: unrecognized_pair(exercise, pair) for pair in pairs_of(exercise)}
    assert reasons["tripled, and negative ones too"] == ""
    assert reasons["tripled, and shifted by nothing"].endswith("looks like tripled")
    exercise.checks = exercise.checks[1:]
    message = unrecognized_pair(exercise, next(pair for pair in pairs_of(exercise) if "nothing" in pair.name))
    assert message == "every public check of scale passes tripled, and shifted by nothing"


def test_classes_that_override_the_same_method_need_one_that_hands_on():
    class _Base(nn.Module):
        def forward(self, x):
            return x

    exercise = Exercise("Twice", "00_start", is_class=True)

    @exercise.misconception("Plus?", "00_start, Scale")
    class PlusOne(_Base):
        """Plus one."""

        def forward(self, x):
            return super().forward(x) + 1

    @exercise.misconception("Times?", "00_start, Scale")
    class TimesTwo(_Base):
        """Times two."""

        def forward(self, x):
            return 2 * super().forward(x)

    @exercise.misconception("Seven?", "00_start, Scale")
    class Seven(_Base):
        """Seven."""

        def forward(self, x):
            return 7

    results = {(pair.name, pair.objects[0]()(1)) for pair in pairs_of(exercise)}
    assert results == {
        ("plus one, and times two", 3),
        ("plus one, and times two", 4),
        ("plus one, and seven", 8),
        ("times two, and seven", 14),
    }


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

    declare(exercise, Layout(lambda x: x.clone(), (torch.empty(2, 3),)))
    x = torch.tensor([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])
    found = [(pair.name, pair.objects[0](x).tolist()) for pair in pairs_of(exercise)]
    assert ("rows reversed, and on its side", x.flip(0).T.tolist()) in found
    assert ("rows reversed, and rounded", x.flip(0).int().tolist()) in found
    assert ("on its side, and rounded", x.T.int().tolist()) in found
