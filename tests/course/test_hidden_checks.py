"""The proof of the hidden checks: right variants pass them, misconceptions fail and are named, nothing is given away.

For one exercise: ``pytest tests/course/test_hidden_checks.py --all -k patchify``. All of it runs in this process; that
the sandboxed worker gives the same verdicts is another test's matter.
"""

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from exercise_kit import engine
from exercise_kit.engine.cause_groups import split_into_cause_groups_and_passed
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.rendering import render_text
from exercise_kit.engine.run import make_report
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Verdict
from exercise_kit.hidden_checks import checks as hidden
from exercise_kit.hidden_checks.checks import make_reference_student
from exercise_kit.judge.graded_report import make_graded_report
from exercise_kit.judge.scoring import compute_fraction, score_checks
from tests.course.test_checks import (
    EACH_EXERCISE,
    FIRST_SCREEN,
    choose_mistakes,
    find_owner_of_checks,
    right_variants_of,
)
from tests.course.unlisted_answers import UNLISTED
from tests.our_hidden_checks import hidden_checks
from tests.outline import POINTS
from vit_course.exercises.catalog import EXERCISES
from vit_course.staff.references import REFERENCE

ROOT = Path(__file__).parents[2]
KEYS = (b"one submission", b"another one")


@cache
def run_hidden_checks(exercise, objects, key):
    """Return what every hidden check of an exercise finds about an answer."""
    names = EXERCISES[exercise].objects
    return tuple(hidden_checks().run(exercise, lambda: Student(dict(zip(names, objects, strict=True))), key))


def make_observer(exercise, key):
    """Ask what a misconception does in a check, as ``Replays`` in grading would find it, but once for all tests."""

    def observe(wrong, name):
        outcome = next(each for each in run_hidden_checks(exercise, wrong.objects, key) if each.check.name == name)
        return outcome.result.verdict == Verdict.FAIL, outcome.record

    return observe


def summarize_outcomes(outcomes):
    """Everything that was found, to be read when a test fails."""
    return "\n".join(f"{each.check.name}: {each.result.verdict} {each.result.message}\n{each.log}" for each in outcomes)


@EACH_EXERCISE
def test_a_right_variant_passes(exercise):
    for objects, key in product(right_variants_of(exercise), KEYS):
        outcomes = run_hidden_checks(exercise, objects, key)
        # a right answer may look at numbers, which another device than the CPU does not have here
        undecided = {each.result.seen for each in outcomes if each.result.verdict == Verdict.UNDECIDED}
        assert all("GPU could show" in words for words in undecided), summarize_outcomes(outcomes)
        assert compute_fraction(exercise, outcomes) == 1, summarize_outcomes(outcomes)


@EACH_EXERCISE
@pytest.mark.proof
def test_a_misconception_fails_and_is_named(exercise):
    problems = [problem_with(exercise, wrong, key) for wrong in choose_mistakes(EXERCISES[exercise]) for key in KEYS]
    assert not any(problems), "\n\n".join(filter(None, problems))


def problem_with(exercise, wrong, key):
    """Why a known mistake is not graded as it has to be; None where it fails and is named."""
    outcomes = run_hidden_checks(exercise, wrong.objects, key)
    if not any(each.result.verdict == Verdict.FAIL for each in outcomes) or compute_fraction(exercise, outcomes) == 1:
        return f"every check passes {wrong.name}"
    if any(each.log for each in outcomes):
        return f"a check breaks with {wrong.name}\n{summarize_outcomes(outcomes)}"
    results = name_failures(EXERCISES[exercise], outcomes, make_observer(exercise, key))
    named = {cause.name for each in results for cause in each.result.causes}
    return None if wrong.name in named else f"{wrong.name}: named {named or 'nothing'}\n{summarize_outcomes(outcomes)}"


def list_first_causes(report):
    """The names of the mistakes with which a report begins."""
    (first, *_), _ = split_into_cause_groups_and_passed(report.results)
    return list(first.first.pages())


@EACH_EXERCISE
@pytest.mark.proof
def test_grading_tells_of_a_misconception_what_check_tells(exercise):
    known = EXERCISES[exercise]
    for wrong in choose_mistakes(known):
        outcomes = name_failures(
            known, run_hidden_checks(exercise, wrong.objects, KEYS[0]), make_observer(exercise, KEYS[0])
        )
        graded = make_graded_report(score_checks(exercise, 10.0, outcomes))
        (first, *_), _ = split_into_cause_groups_and_passed(graded.results)
        (of_check, *_), _ = split_into_cause_groups_and_passed(make_report(known, wrong.objects).results)
        if len(list_first_causes(graded)) == 1:  # a check that tells two apart may be asked behind one that fails
            assert first.first.parts()["Likely cause"] == of_check.first.parts()["Likely cause"], render_text(graded)
        assert of_check.first.misconception in list_first_causes(graded), render_text(graded)
        failed = {each.name for each in graded.results if each.verdict == "fail"}  # the others wait, or pass there
        assert first.first.name == f"test_{of_check.first.name}" or f"test_{of_check.first.name}" not in failed
        alone = replace(graded, results=(first.first, *first.same, *first.waiting))
        assert len(render_text(alone).splitlines()) - len(alone.map_pages_to_read()) <= FIRST_SCREEN, render_text(
            graded
        )


@EACH_EXERCISE
@pytest.mark.proof
def test_every_check_is_failed_by_a_misconception(exercise):
    first = find_owner_of_checks(EXERCISES[exercise]).name
    if first != exercise:  # then they are that exercise's, which are failed there
        functions = [{each.function for each in hidden_checks().exercises()[name]} for name in (exercise, first)]
        assert functions[0] <= functions[1]
        return
    failed = {
        each.check.name
        for wrong in EXERCISES[exercise].misconceptions
        for each in run_hidden_checks(exercise, wrong.objects, KEYS[0])
        if each.result.verdict == Verdict.FAIL
    }
    # what no known mistake fails has a wrong answer of its own, which tests/course/test_unlisted_answers.py asks
    failed |= {check for name, check, _ in UNLISTED if name == exercise}
    names = {each.name for each in hidden_checks().exercises()[exercise]}
    assert failed == names, f"no misconception fails {names - failed}"


@EACH_EXERCISE
def test_every_check_reads_as_a_claim(exercise):
    for each in hidden_checks().exercises()[exercise]:
        assert each.function.__doc__, f"{each.name} lacks the sentence that a student reads"
        assert each.claim.endswith("."), each.claim


@EACH_EXERCISE
def test_every_check_draws_afresh(exercise, monkeypatch):
    """Somebody who has read the hidden checks does not know which sizes and numbers will come."""
    made = []

    class Watched(hidden.Probe):
        def __init__(self, seed):
            super().__init__(seed)
            made.append((self._generator, self._generator.get_state()))

    monkeypatch.setattr(hidden, "Probe", Watched)
    for check in (each for each in hidden_checks().exercises()[exercise] if each.worth):
        made.clear()
        hidden_checks().evaluate(exercise, check, make_reference_student(exercise), KEYS[0])
        assert any(not torch.equal(generator.get_state(), before) for generator, before in made), check.name


def fill_with_zeros(value):
    """The same shapes and kinds, and nothing in them."""
    if isinstance(value, Tensor):
        return torch.zeros_like(value)
    if isinstance(value, tuple):
        return tuple(fill_with_zeros(each) for each in value)
    if isinstance(value, nn.Module):
        for parameter in value.parameters():
            nn.init.zeros_(parameter)
        return value
    return type(value)()


# what trains the model that it is given cannot be asked for a shape without doing the work
TRAINS = {"train_one_epoch": 0.0, "fix_training": 0.0}


def make_worthless_answers(right):
    """Answers that have the right shape, or none at all, and were computed by nobody."""

    def zeros(*inputs):
        return TRAINS[right.__name__] if right.__name__ in TRAINS else fill_with_zeros(right(*inputs))

    def ones(*inputs):
        value = zeros(*inputs)
        return torch.ones_like(value) if isinstance(value, Tensor) else True

    def first_input(*inputs):
        return inputs[0]

    def nothing(*_):
        return None

    def refuses(*inputs):
        raise ValueError(f"{inputs}")

    def unwritten(*_):
        raise NotImplementedError

    return [zeros, ones, first_input, nothing, refuses, unwritten]


def make_worthless_stoppers(_):
    """Classes that keep a story's losses and say the same to all of them, or nothing."""

    class Refuses:
        def __init__(self, patience):
            raise ValueError(f"{patience}")

    class Unwritten:
        def __init__(self, patience):
            raise NotImplementedError

    class Empty:
        def __init__(self, patience):
            pass

    def make_stopper_that_says(answer):
        class Says(Empty):
            best, bad_epochs = float("inf"), 0

            def step(self, validation_loss):
                self.best = min(self.best, validation_loss)
                return answer

        return Says

    return [Refuses, Unwritten, Empty, *map(make_stopper_that_says, (True, False, None, 0))]


def make_worthless_classes(right):
    class Zeros(right):
        def forward(self, *inputs, **options):
            return fill_with_zeros(super().forward(*inputs, **options))

    class Input(right):
        def forward(self, x, *_, **options):
            return x

    class Refuses(right):
        def forward(self, *inputs, **options):
            raise ValueError(f"{inputs}")

    class RefusesToBeBuilt(right):
        def __init__(self, *arguments, **options):
            raise ValueError(f"{arguments}")

    class Unwritten(right):
        def forward(self, *_, **options):
            raise NotImplementedError

    class Empty(nn.Module):
        def __init__(self, *_, **options):
            super().__init__()

    return [Zeros, Input, Refuses, RefusesToBeBuilt, Unwritten, Empty]


@EACH_EXERCISE
@pytest.mark.proof
def test_a_worthless_answer_earns_nothing(exercise):
    """A shape, a refusal of everything, an input given back: none of it is worth a point."""
    right = REFERENCE[exercise]
    kind = make_worthless_classes if EXERCISES[exercise].is_class else make_worthless_answers
    kind = make_worthless_stoppers if exercise == "EarlyStopping" else kind
    for objects in zip(*map(kind, right), strict=True):
        outcomes = run_hidden_checks(exercise, objects, KEYS[0])
        assert compute_fraction(exercise, outcomes) == 0, f"{objects[0].__name__}\n{summarize_outcomes(outcomes)}"
        report = engine.check(exercise, *objects)
        assert report.fraction == 0, f"{objects[0].__name__}\n{report}"


def test_every_exercise_of_the_lessons_has_checks_that_give_points():
    """How many points it has stands in the lesson; the claims' points are shares of them."""
    shares = {name: sum(each.worth for each in checks) for name, checks in hidden_checks().exercises().items()}
    with_points = {name for points in POINTS.values() for name in points}
    assert shares.keys() == with_points == EXERCISES.keys() == REFERENCE.keys()
    assert all(shares.values()), shares
