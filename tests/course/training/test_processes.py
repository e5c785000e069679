from __future__ import annotations

import importlib.util
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from vit_course.training.hardware import Processes, find_device, is_main_process, start_processes

SCRIPT = Path(__file__).with_name("shared_run.py")
needs_accelerate = pytest.mark.skipif(
    importlib.util.find_spec("accelerate") is None, reason="several processes need accelerate"
)


@pytest.fixture(scope="module")
def result_of_one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("alone") / "result.json"
    threads = torch.get_num_threads()
    try:
        runpy.run_path(str(SCRIPT))["train"](file)
    finally:
        torch.set_num_threads(threads)
    return json.loads(file.read_text())


@pytest.fixture(scope="module")
def result_of_two_processes(run_in_two_processes) -> dict[str, Any]:
    folder, done = run_in_two_processes(lambda folder: [SCRIPT, folder / "result.json"])
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    return json.loads((folder / "result.json").read_text()) | {"folder": folder / "result.run"}


@needs_accelerate
@pytest.mark.proof
class TestTwoProcesses:
    @pytest.mark.parametrize("name", ["train_loss", "validation_loss", "train_accuracy", "validation_top5", "weights"])
    def test_they_compute_what_one_does(
        self, name: str, result_of_one_process: dict[str, Any], result_of_two_processes: dict[str, Any]
    ) -> None:
        # sums in another order, which Muon's bfloat16 lifts above the rounding of float32
        assert result_of_two_processes[name] == pytest.approx(result_of_one_process[name], rel=1e-4, abs=1e-4)

    def test_they_write_one_run(self, result_of_two_processes: dict[str, Any]) -> None:
        assert len((result_of_two_processes["folder"] / "metrics.jsonl").read_text().splitlines()) == 3
        names = {each.name for each in result_of_two_processes["folder"].iterdir()}
        assert names == {"config.json", "metrics.jsonl", "best.safetensors", "last.safetensors"}

    @pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are read from Linux's /proc")
    def test_no_thread_of_the_group_outlives_it(self, result_of_two_processes: dict[str, Any]) -> None:
        """One that does may abort Python's end: "terminate called without an active exception"."""
        threads = result_of_two_processes["folder"].with_suffix(".threads").read_text()
        assert threads
        assert "gloo" not in threads

    def test_a_second_training_in_the_same_processes_works(self, result_of_two_processes: dict[str, Any]) -> None:
        assert len(result_of_two_processes["again"]) == 3


def test_alone_there_is_nothing_to_wait_for() -> None:
    processes = start_processes("cpu")
    assert processes == Processes(torch.device("cpu"))
    assert processes.is_main
    assert processes.sum_over_processes(torch.ones(2)).tolist() == [1, 1]
    processes.wait_for_all()


def test_several_without_accelerate_are_reported_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ImportError, match=r'pip install "vit-course\[train\]"'):
        start_processes("cpu")


@pytest.mark.parametrize(("rank", "is_main"), [(None, True), ("0", True), ("1", False)])
def test_the_first_process_is_the_main_one(rank: str | None, is_main: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    assert is_main_process() is is_main


@pytest.mark.parametrize("name", ["mps", "meta", "banana", "cuda:x", ""])
def test_another_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f'device must be "cpu", "cuda" or "auto", not {name!r}'):
        find_device(name)


@pytest.mark.parametrize(("there", "chosen"), [(True, "cuda"), (False, "cpu")])
def test_auto_takes_cuda_where_it_is(there: bool, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert find_device("auto").type == chosen
