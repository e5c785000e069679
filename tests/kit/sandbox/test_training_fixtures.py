"""Training fixtures run in a worker as they do here, and the worker's notes are not believed."""

import contextlib

import pytest

from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from exercise_kit.sandbox.package_view import get_or_build_view
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.sandbox.reply import WorkerStopped
from exercise_kit.submission.submission import CellSource
from tests.answers import write_answer_cell
from tests.our_hidden_checks import hidden_checks
from vit_course.exercises.catalog import EXERCISES

MISTAKES = {
    "train_one_epoch": "gradients never cleared",
    "evaluate": "the accuracy in a tensor",
    "parameter_groups": "nothing decayed",
    "split_indices": "arrays for tensors",
    "EarlyStopping": "one too late",
    "attention_rollout": "written into the weights",
}
RAISES = """
def predict_with_attention(model, image):
    model.eval()
    return model(image[None])[0].softmax(-1), undefined
"""


@pytest.fixture
def make_worker(warm_sandbox):
    """Makes a worker that has run a source, with a lesson's view."""
    with contextlib.ExitStack() as stack:

        def start_worker(source, lesson="06_training"):
            worker = stack.enter_context(warm_sandbox.worker(get_or_build_view(lesson)))
            assert all(not run.error for run in worker.run([CellSource(0, source)]))
            return worker

        yield start_worker


@pytest.mark.parametrize("exercise", [*MISTAKES, "predict_with_attention"])
def test_a_worker_s_verdicts_are_those_of_this_process(exercise, make_worker):
    source = write_answer_cell(exercise, MISTAKES[exercise]) if exercise in MISTAKES else RAISES
    names = EXERCISES[exercise].objects
    namespace = {"__name__": "__main__"}
    exec(source, namespace)
    far = make_worker(source, EXERCISES[exercise].lesson)
    for check in hidden_checks().exercises()[exercise]:
        near = Student({name: namespace[name] for name in names})
        here, there = (
            hidden_checks().evaluate(exercise, check, student, b"key").result
            for student in (near, RemoteStudent(far, names))
        )
        assert there.verdict == here.verdict, (check.name, here.message, there.message)
        assert there.seen.partition(", at ")[0] == here.seen.partition(", at ")[0]
    assert not far.lost


def test_a_fixture_of_a_later_lesson_is_not_there(make_worker):
    student = RemoteStudent(make_worker("def f(model, image): return 1"), ["f"])
    with pytest.raises(Failure, match="KeyError"):
        student.run_fixture("rollout", inputs=[[]])


FORGE = """
import sys
def f(*inputs):
    frame = sys._getframe()
    while type(frame.f_locals.get("self")).__name__ != "RequestServer":
        frame = frame.f_back
    server = frame.f_locals["self"]
    server._wire.send({"number": server._number, "reply": {"dict": [["result", %s]]}}, [])
"""


@pytest.mark.parametrize("result", ["[1, 2]", "7", '"text"', '{"other": "dict", "text": "{}"}', '{"tensor": 9}'])
def test_notes_that_are_none_end_the_asking(make_worker, result):
    far = make_worker(FORGE % result)
    with pytest.raises(WorkerStopped):
        RemoteStudent(far, ["f"]).run_fixture("stopping", patience=1, losses=[1.0])


@pytest.mark.parametrize("notes", ['{"dict": []}', '{"dict": [["answers", null]]}', '{"dict": [["answers", [1, 2]]]}'])
def test_forged_notes_fail_a_check_and_break_nothing(make_worker, notes):
    student = RemoteStudent(make_worker(FORGE % notes), ["f"])
    check = hidden_checks().exercises()["EarlyStopping"][0]
    outcome = hidden_checks().evaluate("EarlyStopping", check, student, b"key")
    assert outcome.result.verdict == "fail", outcome.result
