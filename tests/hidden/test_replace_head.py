"""Hidden checks of ``replace_head``. Which numbers the new head begins with is chance; how they are spread is not."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_one_device
from exercise_kit.engine.verdict import Failure
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l09_fine_tuning.replace_head import claims

RIGHT = claims.the_backbone_keeps_what_it_has_learned  # and has a head of the right sizes
test_the_head_has_the_new_sizes = as_hidden(claims.the_head_has_the_new_sizes, RIGHT, replace_head=0.05)
test_the_backbone_keeps_what_it_has_learned = as_hidden(RIGHT, replace_head=0.07)
test_the_head_starts_afresh = as_hidden(claims.the_head_starts_afresh, RIGHT, replace_head=0.45)
test_the_given_model_is_left_alone = as_hidden(claims.the_given_model_is_left_alone, RIGHT, replace_head=0.2)
# the course replaces the head of one model again and again, and trains each copy
test_the_two_share_no_memory = as_hidden(claims.the_two_share_no_memory, RIGHT, replace_head=1.34)
test_what_learns_goes_on_learning = as_hidden(claims.what_learns_goes_on_learning, RIGHT, replace_head=1.34)
test_the_head_has_the_models_dtype = as_hidden(claims.the_head_has_the_models_dtype, RIGHT, replace_head=0.05)


@pytest.mark.exercise("replace_head", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and another model gets its head."""
    ask_first(RIGHT, student, probe)
    expect_example(student)


@pytest.mark.exercise("replace_head", points=0.35)
def test_the_head_starts_as_pytorch_starts_one(student, probe):
    """The new head's numbers are as PyTorch starts those of a Linear: evenly spread up to 1 / √embed_dim."""
    ask_first(RIGHT, student, probe)
    config, _ = claims.a_case(probe)
    head = claims.notes_of(student, probe, config, 128)["head"]
    bound = config.embed_dim**-0.5
    # 1280 numbers and more, or 128: evenly spread from -bound to bound, half of them are within half of it
    for name, least in (("weight", 0.4), ("bias", 0.25)):
        numbers = head[name].double().abs() / bound
        share, most = float((numbers < 0.5).double().mean()), float(numbers.max())
        as_usual = least < share < 1 - least and most <= 1 + 1e-6
        student.record.append((name, as_usual, most == 0))
        if not as_usual:
            what = "is all zeros" if most == 0 else f"goes up to {most * bound:.3g}, {share:.0%} below {bound / 2:.3g}"
            wanted = f"as a new nn.Linear has them: evenly spread from {-bound:.3g} to {bound:.3g}"
            look = "What does nn.Linear do with its numbers, and who touches them after it?"
            raise Failure(f"the {name} of the new head {what}", wanted, look)


@pytest.mark.exercise("replace_head", points=0.05)
def test_the_copy_is_of_the_models_class_and_device(student, probe):
    """What comes back is a model of the same class, whose new head has a bias even where the old one had none, and is
    where the model is."""
    ask_first(RIGHT, student, probe)
    config, num_classes = claims.a_case(probe)
    notes = claims.notes_of(student, probe, config, num_classes, "same class", bias=False)
    if not notes["same class"]:
        look = "What does copy.deepcopy give for an object of a class?"
        raise Failure("what comes back is of another class than the model", "a model of the same class", look)
    claims.expect_head(student, notes, config, num_classes)
    fields = claims.fields_of(probe, config)
    expect_one_device(student, student.run_fixture("rehead_elsewhere", num_classes=num_classes, **fields))
