"""Naming a submission's mistake by replaying it: which, how often asked, and what when nothing fits."""

import pytest
import torch

from exercise_kit.engine import name_failures as name_failures_module
from exercise_kit.engine.diagnosis import Compared, find_causes
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.student import Student
from exercise_kit.hidden_checks.checks import HiddenChecks, gather_right_objects
from exercise_kit.judge.replays import Replays, find_commonest_misconception
from vit_course.exercises.catalog import EXERCISES

KEY = b"a submission"
SOURCE = '''
import pytest
from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.verdict import Failure

pytestmark = pytest.mark.exercise("patchify", points=1)

def test_wide_images(student, reference, probe):
    """Wide."""
    images = probe.images(2, 3, 4, 6)
    expect_equal(student(images, 2), reference.patchify(images, 2), "patchify")

def test_tall_images(student, reference, probe):
    """Tall."""
    images = probe.images(2, 3, 9, 6)
    expect_equal(student(images, 3), reference.patchify(images, 3), "patchify")

def test_input(student, reference, probe):
    """Input."""
    images = probe.images(1, 2, 4, 4)
    expect_equal(student(images, 2), reference.patchify(images, 2), "patchify")
    if student.changed_inputs:
        raise Failure("changed")
'''


@pytest.fixture(scope="module")
def hidden_checks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hidden")
    (folder / "test_patchify.py").write_text(SOURCE)
    checks = HiddenChecks(folder)
    checks._checks = {"patchify": tuple(each for each in checks.exercises()["patchify"] if each.file.parent == folder)}
    return checks


def run_and_name(checks, function, observe=None):
    outcomes = list(checks.run("patchify", lambda: Student({"patchify": function}), KEY))
    return name_failures(EXERCISES["patchify"], outcomes, observe or Replays(checks, "patchify", KEY))


def list_misconceptions(outcomes):
    return [each.result.misconception for each in outcomes]


def channels_last(images, patch_size):
    """The same numbers as the misconception's, otherwise computed."""
    batch, channels, _, _ = images.shape
    tokens = gather_right_objects().patchify(images, patch_size).reshape(batch, -1, channels, patch_size**2)
    return tokens.transpose(2, 3).reshape(batch, -1, channels * patch_size**2)


def test_a_mistake_is_named_by_what_it_gives(hidden_checks):
    outcomes = run_and_name(hidden_checks, channels_last)
    assert list_misconceptions(outcomes) == ["channels last inside a token"] * 3
    assert find_commonest_misconception(outcomes) == "channels last inside a token"


def test_a_right_answer_has_no_mistake(hidden_checks):
    outcomes = run_and_name(hidden_checks, gather_right_objects().patchify)
    assert list_misconceptions(outcomes) == [None] * 3
    assert find_commonest_misconception(outcomes) is None


def test_two_mistakes_are_both_named(hidden_checks):
    def both(images, patch_size):
        if len(images) == 2:
            return channels_last(images, patch_size)
        tokens = gather_right_objects().patchify(images, patch_size)
        images.zero_()
        return tokens

    outcomes = run_and_name(hidden_checks, both)
    assert list_misconceptions(outcomes) == [*["channels last inside a token"] * 2, "input changed in place"]
    assert find_commonest_misconception(outcomes) == "channels last inside a token"


def test_a_mistake_of_nobody_has_no_name(hidden_checks):
    outcomes = run_and_name(
        hidden_checks, lambda images, patch_size: gather_right_objects().patchify(images, patch_size) + 1
    )
    assert list_misconceptions(outcomes) == [None] * 3
    assert all(each.result.verdict == "fail" for each in outcomes)


def test_what_is_not_written_is_no_mistake(hidden_checks):
    def unwritten(images, patch_size):
        raise NotImplementedError

    assert list_misconceptions(run_and_name(hidden_checks, unwritten)) == [None] * 3


@pytest.mark.parametrize("most", [0, 5])
def test_few_are_evaluated(hidden_checks, monkeypatch, most):
    replayed = []

    def observe(wrong, name):
        replayed.append((wrong.name, name))
        return False, []

    monkeypatch.setattr(name_failures_module, "MOST_REPLAYS", most)
    assert list_misconceptions(run_and_name(hidden_checks, channels_last, observe)) == [None] * 3
    assert len(set(replayed)) == most


@pytest.fixture
def without_pairs(monkeypatch):
    """No two mistakes at once are looked for."""
    monkeypatch.setattr(
        name_failures_module, "find_causes_in_pairs", lambda exercise, records, failed, found, *_: found
    )
    return monkeypatch


@pytest.mark.parametrize(
    ("most", "evaluated"), [(1, {"test_wide_images"}), (2, {"test_wide_images", "test_tall_images"})]
)
def test_nobody_is_evaluated_about_more_than_a_few_riddles(hidden_checks, without_pairs, most, evaluated):
    replayed = set()

    def observe(wrong, name):
        replayed.add(name)
        return False, []

    without_pairs.setattr(name_failures_module, "MOST_UNEXPLAINED", most)
    run_and_name(hidden_checks, channels_last, observe)
    assert replayed == evaluated


@pytest.mark.usefixtures("without_pairs")
def test_a_mistake_that_most_failures_contradict_is_not_evaluated_at_the_rest(hidden_checks):
    replayed = set()

    def observe(wrong, name):
        replayed.add(name)
        return True, ["something else"]

    run_and_name(hidden_checks, channels_last, observe)
    assert replayed == {"test_wide_images", "test_tall_images"}, "two of three speak against it"


@pytest.mark.parametrize(("fails_too", "evaluated"), [(False, 4), (True, 3)])
def test_what_the_student_passes_is_looked_at_until_it_is_decided(fails_too, evaluated):
    replayed = []

    def observe(wrong, name):
        replayed.append(name)
        return name == "failed" or fails_too, ["given"]

    wrong = EXERCISES["patchify"].misconceptions[0]
    records = {name: ["given"] for name in ("failed", "passed", "passed too", "passed as well")}
    causes = find_causes([wrong], records, {"failed"}, "failed", Compared(records, observe))
    assert bool(causes) != fails_too
    assert len(replayed) == evaluated


def test_a_misconception_is_evaluated_a_check_once(hidden_checks, monkeypatch):
    calls = []
    evaluate = HiddenChecks.evaluate
    monkeypatch.setattr(HiddenChecks, "evaluate", lambda *inputs: calls.append(inputs[2].name) or evaluate(*inputs))
    replays = Replays(hidden_checks, "patchify", KEY)
    wrong = EXERCISES["patchify"].mistake("column order")
    first, again = (replays(wrong, "test_wide_images") for _ in range(2))
    assert first[1] is again[1]
    assert calls == ["test_wide_images"]
    fails, record = first
    assert fails
    assert isinstance(record[0][1], torch.Tensor)
