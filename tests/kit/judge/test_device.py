"""A student's code on another device: inputs go there, results come back, and what stays on the CPU is noticed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from exercise_kit.judge.judge import Judge
from exercise_kit.sandbox.devices import DeviceError, resolve_device
from exercise_kit.sandbox.limits import Limits
from exercise_kit.sandbox.warm_process import WarmProcess
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.parse import read
from exercise_kit.submission.submission import CellSource
from tests.answers import write_answer_cell
from tests.machine import CAPABILITIES

ROOT = Path(__file__).parents[3]
FAKE_GPU = CellSource(-1, Path(__file__).with_name("fake_gpu.py").read_text("utf-8"))
ON_THE_CPU = f"""
{write_answer_cell("patchify").replace("def patchify(", "def right(")}

def patchify(images, patch_size):
    return right(images, patch_size)LAST
"""


def grade_answers(judge, lessons, lesson, *exercises, answer=None):
    """Return what becomes of the model answers to some exercises, the fake GPU beside them."""
    submission = read(FoundFile(ROOT / "solutions" / f"{lesson}.ipynb"), lessons).keep_exercises(set(exercises))
    cells = (FAKE_GPU, *submission.cells)
    if answer:
        place = next(each.cell for each in submission.exercises)
        cells = tuple(replace(each, source=answer) if each.index == place else each for each in cells)
    return judge.grade(replace(submission, cells=cells))


@pytest.fixture(scope="module")
def judge_with_fake_gpu():
    sandboxed = CAPABILITIES.is_sufficient
    limits = Limits().on("privateuseone:0")
    with Judge(ROOT / "tests" / "hidden", b"secret", limits, sandboxed=sandboxed) as judge:
        yield judge


@pytest.mark.parametrize(
    ("lesson", "exercises"),
    [
        ("01_patchify", ("patchify", "PatchEmbedding")),  # a function, a module, their gradients
        ("02_positions", ("sinusoidal_positions", "add_class_token")),  # without a tensor to tell the device
        ("03_attention", ("is_attention",)),  # functions of the judge's
        ("06_training", ("train_one_epoch", "split_indices")),  # a loop with a model and a loader
    ],
)
@pytest.mark.proof
def test_right_answers_are_right_on_another_device(judge_with_fake_gpu, lessons, lesson, exercises):
    result = grade_answers(judge_with_fake_gpu, lessons, lesson, *exercises)
    failed = [(each.name, check.message) for each in result.exercises for check in each.checks if check.message]
    assert not failed
    assert result.score == result.max_score > 0


def test_the_device_is_started_once_for_a_submission(judge_with_fake_gpu, lessons, monkeypatch):
    """A GPU's context costs seconds, and no fork inherits one: one worker for all exercises of a right notebook."""
    forks, fork = [], WarmProcess.fork
    monkeypatch.setattr(WarmProcess, "fork", lambda self, *asked: forks.append(1) or fork(self, *asked))
    result = grade_answers(judge_with_fake_gpu, lessons, "02_positions", "sinusoidal_positions", "add_class_token")
    assert result.score == result.max_score > 0
    assert len(forks) == 1


def test_a_worker_that_cannot_start_its_device_says_why(lessons):
    limits = Limits().on("cuda:63")
    with Judge(ROOT / "tests" / "hidden", b"secret", limits, sandboxed=CAPABILITIES.is_sufficient) as judge:
        result = grade_answers(judge, lessons, "01_patchify", "patchify")
    assert re.fullmatch(r"the grader failed: .*a worker did not start: \w+: .*(CUDA|NVIDIA|device).*", result.reason)


def test_on_a_gpu_the_start_and_the_first_calls_may_be_slow():
    cpu, gpu = Limits(), Limits().on("cuda:0")
    assert cpu.on("cpu") == cpu
    assert gpu.start_seconds > 60 > cpu.start_seconds
    for name in ("cell_seconds", "call_seconds", "total_seconds"):
        assert getattr(gpu, name) > getattr(cpu, name)
    assert gpu.memory_bytes == cpu.memory_bytes


def test_an_answer_that_stays_on_the_cpu_is_wrong_there(judge_with_fake_gpu, lessons):
    there, stays, meets = (
        grade_answers(judge_with_fake_gpu, lessons, "01_patchify", "patchify", answer=ON_THE_CPU.replace("LAST", last))
        for last in ("", ".cpu()", " + torch.zeros(images.shape[1] * patch_size**2)")
    )
    assert there.score == there.max_score
    assert stays.score < there.score / 2
    assert "on the device cpu" in stays.exercises[0].checks[0].message
    assert meets.score < there.score / 2
    assert "on the same device" in meets.exercises[0].checks[0].message


def test_a_device_is_named_in_full(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [resolve_device(name) for name in ("cpu", "cuda", "cuda:0", "cuda:1")] == [
        "cpu",
        "cuda:0",
        "cuda:0",
        "cuda:1",
    ]
    assert resolve_device("cuda:7", here=False) == "cuda:7"


@pytest.mark.parametrize(
    ("name", "gpus", "words"),
    [
        ("mps", 0, "no float64"),
        ("cuda", 0, "no NVIDIA GPU"),
        ("cuda:1", 1, "there is no cuda:1 on this machine; it has one GPU, cuda:0"),
        ("cuda:4", 2, "it has 2 GPUs, cuda:0 to cuda:1"),
        ("gpu", 1, "'gpu' is no device to grade on; name one of: cpu, cuda"),
        ("cuda:-1", 1, "no device"),
        ("", 1, "no device"),
    ],
)
def test_a_device_that_cannot_be_had_is_refused_in_a_sentence(monkeypatch, name, gpus, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(gpus))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(DeviceError, match=words):
        resolve_device(name)
