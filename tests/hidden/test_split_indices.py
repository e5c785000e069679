"""Hidden checks of ``split_indices``. Many splits are right; what is checked holds for all of them.

Where the parts themselves are chance, only facts about them go on record.
"""

from itertools import pairwise

import pytest

from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training.split_indices.claims import expect_all_chosen, expect_int64_tensors, split


def _case(probe):
    """num_samples, num_validation, seed: so many that chance gives no run of neighbors."""
    return (
        int(40 + probe.integers(1, high=40)),
        int(12 + probe.integers(1, high=12)),
        int(probe.integers(1, high=10_000)),
    )


def _expect_whole(student, case, global_seed=0):
    """The two parts of a split; Failure unless every index is in one of them once, as many as asked for."""
    num_samples, num_validation, seed = case
    train, validation = split(student, case, global_seed)
    both, outside = set(train) & set(validation), {*train, *validation} - set(range(num_samples))
    sizes = (len(train), len(validation))
    student.record.append((sizes, bool(both), bool(outside), len(set(train)), len(set(validation))))
    called = f"split_indices({num_samples}, {num_validation}, {seed})"
    if sizes != (num_samples - num_validation, num_validation):
        wanted = f"{num_samples - num_validation} and {num_validation}"
        raise Failure(
            f"{called} gave {sizes[0]} train and {sizes[1]} validation indices", wanted, "Which part is which?"
        )
    wrong = f"{len(both)} in both parts" if both else f"{len(outside)} outside" if outside else ""
    if wrong or len({*train, *validation}) != num_samples:
        look = "Are the two parts cut from one order of all images?"
        raise Failure(f"{called} gave {wrong or 'some twice'}", f"0 to {num_samples - 1}, each once", look)
    return train, validation


@pytest.mark.exercise("split_indices", points=0.25)
def test_any_image_may_be_chosen(student, probe):
    """The parts are right, and any image may validate, and any may train: it depends on the seed."""
    _expect_whole(student, _case(probe))
    (num_samples,) = probe.sizes(1, low=5, high=8)
    first = int(probe.integers(1, high=10_000))
    expect_all_chosen(student, num_samples, range(first, first + 60))


@pytest.mark.exercise("split_indices", points=0.5)
def test_every_image_is_in_one_part(student, probe):
    """The second part has num_validation indices, the first all others: from 0 on, each once."""
    for _ in range(3):
        _expect_whole(student, _case(probe))


@pytest.mark.exercise("split_indices", points=0.25)
def test_the_parts_are_int64_tensors(student, probe):
    """The parts hold the right indices, as two int64 tensors."""
    case = _case(probe)
    _expect_whole(student, case)
    expect_int64_tensors(student, case)


@pytest.mark.exercise("split_indices", points=0.25)
def test_chance_chooses(student, probe):
    """Chance chooses the validation images: they are no run of neighbors, and not at regular distances."""
    for _ in range(2):
        case = _case(probe)
        chosen = sorted(_expect_whole(student, case)[1])
        steps = {later - former for former, later in pairwise(chosen)}
        student.record.append(("steps", sorted(steps)[0] if len(steps) == 1 else None, chosen[0] == 0))
        if len(steps) == 1:
            seen = f"the validation images of {case[0]} are number {chosen[0]} to {chosen[-1]}, {steps.pop()} apart"
            raise Failure(seen, "a random choice", "What if the data set is sorted by class?")


@pytest.mark.exercise("split_indices", points=0.5)
def test_the_seed_decides(student, probe):
    """The same seed gives the same split, whatever was drawn before; other seeds give others."""
    num_samples, num_validation, seed = _case(probe)
    case = (num_samples, num_validation, seed)
    first, other, again = (_expect_whole(student, case, moment) for moment in (3, 4, 3))
    student.record.append(("again", first == other, first == again))
    look = "Where does the seed enter your code, and which generator draws?"
    if first != other or first != again:
        raise Failure("the same call gave another split the second time", "the same split", look)
    others = {frozenset(_expect_whole(student, (num_samples, num_validation, seed + n))[1]) for n in range(4)}
    student.record.append(("others", len(others)))
    if len(others) < 4:
        raise Failure(f"four seeds gave {len(others)} different splits", "four", look)


@pytest.mark.exercise("split_indices", points=0.5)
def test_nobody_elses_chance_is_touched(student, probe):
    """The split is right, and the global random generators are where they were before it."""
    case = _case(probe)
    _expect_whole(student, case)
    touched = student.run_fixture("chance", "touched", inputs=list(case), global_seed=case[2] + 1)["touched"]
    if touched:
        look = "Which object could hold the seed, so that nobody else draws from it?"
        raise Failure(f"the call moved the global generator of {touched[0]}", "a generator of its own", look)


@pytest.mark.exercise("split_indices", points=0.5)
def test_an_empty_part_is_refused(student, probe):
    """Splits that leave a part empty raise a ValueError with the value of num_validation; the smallest are made."""
    num_samples, most, seed = _case(probe)
    for num_validation in (1, num_samples - 1):
        _expect_whole(student, (num_samples, num_validation, seed))
    accepted: dict[str, Failure] = {}
    for kind, num_validation in (("none", 0), ("all", num_samples), ("more", num_samples + most), ("negative", -most)):
        described = f"num_validation={num_validation} of num_samples={num_samples}"
        try:
            expect_value_error(student, (num_samples, num_validation, seed), [num_validation], described)
        except Failure as failure:
            accepted[kind] = failure
    # which split it was is chance
    student.record[:] = [each[:1] if isinstance(each, tuple) else each for each in student.record]
    student.record.append(("not refused", *accepted))
    if accepted:
        raise next(iter(accepted.values()))


@pytest.mark.exercise("split_indices", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_whole(student, _case(probe))
    expect_example(student)
