"""Hidden checks of ``train_one_epoch``, and of ``fix_training``, which mends a broken one."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l06_training.train_one_epoch import claims

STEPS, MEAN = claims.an_epoch_makes_a_step_for_every_batch, claims.the_mean_is_over_images
test_an_epoch_makes_a_step_for_every_batch = as_hidden(STEPS, train_one_epoch=1, fix_training=0.75)
test_a_batch_makes_one_step = as_hidden(claims.a_batch_makes_one_step, train_one_epoch=0.5, fix_training=0.5)
test_it_switches_training_on = as_hidden(claims.it_switches_training_on, STEPS, train_one_epoch=0.25, fix_training=0.25)
test_the_mean_is_over_images = as_hidden(MEAN, train_one_epoch=1.1, fix_training=0.875)
test_the_loss_is_noted_on_the_way = as_hidden(claims.the_loss_is_noted_on_the_way, train_one_epoch=0.25)
test_every_batch_is_used_once = as_hidden(
    claims.every_batch_is_used_once, STEPS, train_one_epoch=0.25, fix_training=0.25
)
test_the_number_is_a_plain_float = as_hidden(
    claims.the_number_is_a_plain_float, MEAN, train_one_epoch=0.25, fix_training=0.125
)
test_batches_go_to_the_device = as_hidden(
    claims.batches_go_to_the_device, STEPS, train_one_epoch=0.15, fix_training=0.125
)


@pytest.mark.exercise("train_one_epoch", points=0.25)
@pytest.mark.exercise("fix_training", points=0.125)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(MEAN, student, probe)
    expect_example(student)
