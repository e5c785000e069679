"""Training fixtures run in a worker as they do here, and the worker's notes are not believed."""

import contextlib
import textwrap
from pathlib import Path

import pytest

from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from exercise_kit.hidden_checks.checks import HiddenChecks
from exercise_kit.sandbox.package_view import provide_view
from exercise_kit.sandbox.remote_backend import RemoteStudent
from exercise_kit.sandbox.reply import WorkerStopped
from exercise_kit.submission.submission import CellSource
from vit_course.exercises.catalog import EXERCISES

SOURCES = {
    "train_one_epoch": """
        import torch.nn.functional as F
        def train_one_epoch(model, loader, optimizer, device):
            total, count = 0.0, 0
            for images, labels in loader:
                loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                total, count = total + loss.item(), count + 1
            return total / count
    """,
    "evaluate": """
        import torch
        def evaluate(model, loader, device):
            model.eval()
            right = sum((model(images).argmax(1) == labels).sum() for images, labels in loader)
            return torch.tensor(0.5), right / len(loader.dataset)
    """,
    "parameter_groups": """
        def parameter_groups(model, weight_decay):
            named = list(model.named_parameters())
            wide = [each for _, each in named if each.ndim > 1]
            return [{"params": wide, "weight_decay": weight_decay}, {"params": [], "weight_decay": 0.0}]
    """,
    "split_indices": """
        import numpy as np
        def split_indices(num_samples, num_validation, seed):
            order = np.random.default_rng(seed).permutation(num_samples)
            return order[num_validation:], list(order[:num_validation])
    """,
    "EarlyStopping": """
        class EarlyStopping:
            def __init__(self, patience):
                self.patience, self.best, self.bad = patience, float("inf"), 0
            def step(self, loss):
                self.bad = 0 if loss < self.best else self.bad + 1
                self.best = min(self.best, loss)
                return self.bad > self.patience
    """,
    "predict_with_attention": """
        def predict_with_attention(model, image):
            model.eval()
            return model(image[None])[0].softmax(-1), undefined
    """,
    "attention_rollout": """
        def attention_rollout(weights):
            rollout = weights.pop(0).mean(1)
            for layer in weights:
                rollout = layer.mean(1) @ rollout
            return rollout
    """,
}


@pytest.fixture(scope="module")
def hidden():
    return HiddenChecks(Path(__file__).parents[2] / "hidden")


@pytest.fixture(scope="module")
def sandbox(warm_sandbox):
    return warm_sandbox


@pytest.fixture
def worker(sandbox):
    """Makes a worker that has run a source, with a lesson's view."""
    with contextlib.ExitStack() as stack:

        def make(source, lesson="06_training"):
            worker = stack.enter_context(sandbox.worker(provide_view(lesson)))
            assert all(not run.error for run in worker.run([CellSource(0, textwrap.dedent(source))]))
            return worker

        yield make


@pytest.mark.parametrize("exercise", SOURCES)
def test_a_worker_s_verdicts_are_those_of_this_process(exercise, hidden, worker):
    source, names = textwrap.dedent(SOURCES[exercise]), EXERCISES[exercise].objects
    namespace = {"__name__": "__main__"}
    exec(source, namespace)
    far = worker(source, EXERCISES[exercise].lesson)
    for check in hidden.exercises()[exercise]:
        here = hidden.evaluate(exercise, check, Student({name: namespace[name] for name in names}), b"key").result
        there = hidden.evaluate(exercise, check, RemoteStudent(far, names), b"key").result
        assert there.verdict == here.verdict, (check.name, here.message, there.message)
        assert there.seen.partition(", at ")[0] == here.seen.partition(", at ")[0]
    assert not far.lost


def test_a_fixture_of_a_later_lesson_is_not_there(worker):
    student = RemoteStudent(worker("def f(model, image): return 1"), ["f"])
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
def test_notes_that_are_none_end_the_asking(worker, result):
    far = worker(FORGE % result)
    with pytest.raises(WorkerStopped):
        RemoteStudent(far, ["f"]).run_fixture("stopping", patience=1, losses=[1.0])


@pytest.mark.parametrize("notes", ['{"dict": []}', '{"dict": [["answers", null]]}', '{"dict": [["answers", [1, 2]]]}'])
def test_forged_notes_fail_a_check_and_break_nothing(worker, hidden, notes):
    far = worker(FORGE % notes)
    far_names = RemoteStudent(far, ["f"])
    check = hidden.exercises()["EarlyStopping"][0]
    outcome = hidden.evaluate("EarlyStopping", check, far_names, b"key")
    assert outcome.result.verdict == "fail", outcome.result
