"""Hidden checks of ``EarlyStopping``: stories of losses, drawn, each of which both goes on and stops."""

from functools import wraps

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l06_training.early_stopping import claims

WAITS = claims.it_waits_exactly_as_long_as_its_patience


def and_it_waits(claim):
    """A claim, and then one that whoever always says the same does not pass."""

    @wraps(claim)
    def both(student, probe):
        claim(student, probe)
        WAITS(student, probe)

    return both


test_it_waits_exactly_as_long_as_its_patience = as_hidden(WAITS, EarlyStopping=0.15)
test_a_better_loss_starts_the_count_anew = as_hidden(claims.a_better_loss_starts_the_count_anew, EarlyStopping=0.3)
test_losses_are_compared_with_the_best = as_hidden(claims.losses_are_compared_with_the_best, EarlyStopping=0.1)
test_an_equal_loss_is_no_progress = as_hidden(claims.an_equal_loss_is_no_progress, EarlyStopping=0.2)
test_the_smallest_progress_counts = as_hidden(claims.the_smallest_progress_counts, EarlyStopping=0.2)
test_each_has_a_memory_of_its_own = as_hidden(claims.each_has_a_memory_of_its_own, EarlyStopping=0.2)
test_nan_is_no_progress = as_hidden(claims.nan_is_no_progress, EarlyStopping=0.2)
test_it_says_so_again_when_asked_again = as_hidden(claims.it_says_so_again_when_asked_again, EarlyStopping=0.2)
test_best_is_the_lowest_loss_so_far = as_hidden(and_it_waits(claims.best_is_the_lowest_loss_so_far), EarlyStopping=0.15)
test_no_patience_is_refused = as_hidden(and_it_waits(claims.no_patience_is_refused), EarlyStopping=0.1)
test_step_gives_a_bool = as_hidden(and_it_waits(claims.step_gives_a_bool), EarlyStopping=0.1)


@pytest.mark.exercise("EarlyStopping", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(WAITS, student, probe)
    expect_example(student)
