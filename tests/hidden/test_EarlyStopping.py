"""Hidden checks of ``EarlyStopping``: stories of losses, drawn, of which the reference tells when they end.

Every story both goes on and stops, so that whoever always says the same is wrong in each.
"""

import math

import pytest

from exercise_kit.engine.compare import kind_of
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure

NAN = math.nan


def _losses(probe, *steps):
    """Losses that follow the story: each step is a factor on the best loss so far, below 1 for progress."""
    best, losses = float(probe.uniform(1, low=2.0, high=60.0)), []
    for step in steps:
        losses.append(best if step is None else NAN if math.isnan(step) else best * step)
        best = min([best, *(each for each in losses[-1:] if not math.isnan(each))])
    return [round(each, 4) for each in losses]


def _expect(student, reference, patience, losses, look, *judged, beside=()):
    """Fail unless step says what the reference says, be it in True and False or not; what was noted.

    ``beside``: what a second one gets in turn with the first.
    """
    notes = student.run_fixture("stopping", "answers", *judged, patience=patience, losses=losses, beside=list(beside))
    right = Student({"reference": reference.EarlyStopping}).run_fixture("stopping", patience=patience, losses=losses)
    assert {True, False} <= set(right["answers"]), "a story that shows nothing"
    for place, (here, there) in enumerate(zip(notes["answers"], right["answers"], strict=True)):
        if bool(here) is not there:
            so_far = ", ".join(f"{each:.8g}" for each in losses[: place + 1])
            said, wanted = ("stop", "go on") if here else ("go on", "stop")
            raise Failure(f"with patience {patience}, after the losses {so_far} step says {said}", wanted, look)
    return notes, right


@pytest.mark.exercise("EarlyStopping", points=0.2)
def test_it_stops_when_patience_is_over(student, reference, probe):
    """It goes on while losses fall, and says stop at the loss number `patience` in a row that is no better."""
    for patience in probe.sizes(2, low=2, high=5):
        falling, rising = [0.9] * probe.choice((2, 3, 4)), [1.1] * patience
        losses = _losses(probe, *falling, *rising)
        _expect(student, reference, patience, losses, "At which count is it enough?")
    _expect(student, reference, 1, _losses(probe, 0.8, 0.9, 1.2), "What is a patience of 1?")


@pytest.mark.exercise("EarlyStopping", points=0.2)
def test_a_better_loss_starts_the_count_anew(student, reference, probe):
    """Only losses in a row count: a new best one starts the count anew, and after a stop too."""
    (patience,) = probe.sizes(1, low=2, high=4)
    bad = [1.2] * (patience - 1)
    losses = _losses(probe, 1.0, *bad, 0.9, *bad, 0.8, *bad, 1.3, 1.1, 0.7)
    _expect(student, reference, patience, losses, "What happens to the count at a new best loss?")


@pytest.mark.exercise("EarlyStopping", points=0.25)
def test_losses_are_compared_with_the_best(student, reference, probe):
    """A loss has to be below the best so far: being below the last, or as low as the best, is no progress."""
    (patience,) = probe.sizes(1, low=3, high=5)
    slowly = [1.9 - 0.1 * number for number in range(patience)]
    _expect(student, reference, patience, _losses(probe, 0.9, 0.8, *slowly), "Which of the losses do you keep?")
    _expect(student, reference, patience, _losses(probe, 0.9, *[None] * patience), "What do equal losses say?")


@pytest.mark.exercise("EarlyStopping", points=0.25)
def test_nan_is_no_progress(student, reference, probe):
    """A loss that is NaN is no progress and never the best, at the beginning too."""
    (patience,) = probe.sizes(1, low=2, high=4)
    look = "What do `<` and `>=` say when one of the two numbers is NaN?"
    _expect(student, reference, patience, _losses(probe, 0.9, *[NAN] * patience, 0.8), look)
    losses = _losses(probe, 0.9, 0.8, 0.7, *[1.1] * patience)
    for bad in (1, patience):  # the last of so many in a row says stop, and a number then starts the count anew
        _expect(student, reference, patience, [NAN] * bad + losses, look)


@pytest.mark.exercise("EarlyStopping", points=0.25)
def test_best_is_kept(student, reference, probe):
    """It stops at the right times and keeps in `best` the lowest loss so far, which is infinite before the first."""
    (patience,) = probe.sizes(1, low=2, high=3)
    losses = _losses(probe, 1.0, 0.9, 1.1, 0.8, *[1.2] * patience, 0.7)
    notes, right = _expect(student, reference, patience, losses, "When do you write into `self.best`?", "best")
    for number, (here, there) in enumerate(zip(notes["best"], right["best"], strict=True)):
        if isinstance(here, str) or here is None or float(here) != there:
            when = f"after {number} losses" if number else "before the first loss"
            raise Failure(f"{when} `best` is {here}", f"{there:g}", "When do you write into `self.best`?")


@pytest.mark.exercise("EarlyStopping", points=0.2)
def test_no_patience_is_refused(student, reference, probe):
    """It works with a patience of 1, and a patience below 1 raises a ValueError that names its value."""
    _expect(student, reference, 1, _losses(probe, 0.9, 1.1, 1.2, 0.5), "What is a patience of 1?")
    for patience in (0, -int(2 + probe.integers(1, high=9))):
        expect_value_error(student, (patience,), [patience], f"patience={patience}")


@pytest.mark.exercise("EarlyStopping", points=0.2)
def test_the_smallest_progress_counts(student, reference, probe):
    """A loss that is lower by only a tiny bit is a new best, and it goes on as long as there are new ones."""
    (patience,) = probe.sizes(1, low=2, high=3)
    first = float(probe.uniform(1, low=0.3, high=2.0))
    falling = [first * (1 - 1e-6 * number) for number in range(patience + 3)]
    look = "By how much must a loss be lower, as the exercise has it?"
    _expect(student, reference, patience, falling + [falling[-1]] * patience, look)


@pytest.mark.exercise("EarlyStopping", points=0.2)
def test_each_has_a_memory_of_its_own(student, reference, probe):
    """Two objects used side by side, one on falling and one on rising losses, do not disturb each other."""
    (patience,) = probe.sizes(1, low=2, high=3)
    look = "Where is each number kept: in self, or in something that both have in common?"
    falling = _losses(probe, *[0.9] * (patience + 2))
    rising = [falling[-1] / 4 * (1.1 + 0.1 * number) for number in range(len(falling))]
    stalled = [falling[-1]] * patience
    _expect(student, reference, patience, falling + stalled, look, beside=rising)
    _expect(student, reference, patience, rising, look, beside=[each / 100 for each in falling])


@pytest.mark.exercise("EarlyStopping", points=0.15)
def test_step_gives_a_bool(student, reference, probe):
    """It stops at the right time, and step gives True or False each time."""
    notes, _ = _expect(student, reference, 2, _losses(probe, 0.9, 0.8, 1.2, 1.1, 0.7), "When is it time to stop?")
    for answer in notes["answers"]:
        if type(answer).__name__ not in ("bool", "bool_") and getattr(answer, "ndim", None) != 0:
            look = "Does every path of `step` end in a `return`, and which comparison gives what it returns?"
            raise Failure(f"step gave {kind_of(answer)}", "True or False", look)


@pytest.mark.exercise("EarlyStopping", points=0.1)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect(student, reference, 1, _losses(probe, 0.9, 0.8, 1.1), "At which count is it enough?")
    expect_example(student)
