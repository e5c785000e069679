"""``vit-course doctor``: findings with verdicts, remedies, and an exit code that says whether grading is safe."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from exercise_kit.cli import doctor as module
from exercise_kit.cli.doctor import Finding, doctor, inspect_machine, try_grading_on_device
from exercise_kit.worker.capabilities import SandboxCapabilities
from tests.machine import needs_sandbox
from tests.outline import POINTS

NO_PROTECTIONS = SandboxCapabilities(
    0, False, False, dict.fromkeys(("landlock", "seccomp", "namespaces"), "Grade on Linux")
)
ALL_PROTECTIONS = SandboxCapabilities(7, True, True, {})


GRADED = Finding("Grading one answer", "fine", "2 of 2 points")


@pytest.fixture(autouse=True)
def skip_grading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is graded, which takes seconds, but where a test is about that."""
    if "try_grading_on_device" not in request.function.__code__.co_names:
        monkeypatch.setattr(module, "try_grading_on_device", lambda device: GRADED)


def inspect_by_subject(hidden: Path) -> dict[str, Finding]:
    return {finding.subject: finding for finding in inspect_machine(hidden)[0]}


def run_doctor(hidden: Path) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(doctor)
    result = CliRunner().invoke(app, ["--hidden", str(hidden)])
    return result.exit_code, result.output


def test_everything_that_is_not_fine_has_advice(tmp_path: Path) -> None:
    findings = inspect_by_subject(tmp_path)
    assert findings["Python and PyTorch"].verdict == "fine"
    assert {finding.verdict for finding in findings.values()} <= {"fine", "weaker", "missing"}
    assert all(finding.advice for finding in findings.values() if finding.verdict != "fine")
    assert all(finding.seen for finding in findings.values())


def test_hidden_checks_are_counted(tmp_path: Path) -> None:
    (tmp_path / "test_patchify.py").touch()
    assert ", and 1 file of your own in " in inspect_by_subject(tmp_path)["Hidden checks"].seen
    assert inspect_by_subject(tmp_path / "none")["Hidden checks"].verdict == "missing"


def test_a_program_beside_python_but_not_on_path_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "alembic").touch()
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    found = inspect_by_subject(tmp_path)
    assert found["alembic"].verdict == "missing"
    assert found["alembic"].advice == f'export PATH="{tmp_path}:$PATH"'
    assert "pip install" in found["nbgrader"].advice


def test_without_the_needed_protections_it_exits_1_and_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "probe_capabilities", lambda: NO_PROTECTIONS)
    code, text = run_doctor(tmp_path)
    assert code == 1
    assert text.count("Grade on Linux") == 3
    assert "--no-sandbox" in text
    assert "missing Sandbox: files (Landlock)" in text
    assert "weaker  Sandbox: namespaces" in text


def test_with_them_it_exits_0_and_says_so_without_colors_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "probe_capabilities", lambda: ALL_PROTECTIONS)
    code, text = run_doctor(tmp_path)
    assert code == 0
    assert "Grading can run in the sandbox." in text
    assert "\x1b" not in text


def test_little_memory_and_a_full_disk_are_weaker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "MEMORY_WANTED", 1 << 60)
    monkeypatch.setattr(module, "DISK_WANTED", 1 << 60)
    found = inspect_by_subject(tmp_path)
    assert found["Memory"].verdict == found["Disk for temporary files"].verdict == "weaker"


def test_where_no_gpu_is_seen_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    found = try_grading_on_device("cuda")
    assert found.verdict == "missing"
    assert "sees no NVIDIA GPU" in found.seen
    assert "--device cpu" in found.advice
    assert try_grading_on_device("cuda", tmp_path).verdict == "weaker"  # no clone, so no model answer


@needs_sandbox
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_one_answer_is_graded_whatever_files_are_hidden_from_others(umask: int) -> None:
    """As root a worker is another user, and every folder on its way has to be open to it."""
    before = os.umask(umask)
    try:
        found = try_grading_on_device("cpu")
    finally:
        os.umask(before)
    points = sum(POINTS["00_start"].values())
    assert (found.verdict, found.advice) == ("fine", ""), found
    assert re.fullmatch(rf"{points:g} of {points:g} points for 00_start.ipynb, in [0-9.]+ s", found.seen)


def test_where_one_answer_cannot_be_graded_it_exits_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "probe_capabilities", lambda: ALL_PROTECTIONS)
    broken = Finding("Grading one answer", "missing", "a worker did not start", "Mend it")
    monkeypatch.setattr(module, "try_grading_on_device", lambda device: broken)
    code, text = run_doctor(tmp_path)
    assert code == 1
    assert "a worker did not start" in text
    assert "Grading cannot run in the sandbox here" in text


def test_a_gpu_is_tried_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried = Finding("Grading on the GPU", "fine", "2 of 2 points")
    monkeypatch.setattr(module, "probe_capabilities", lambda: ALL_PROTECTIONS)
    monkeypatch.setattr(module, "_has_cuda", lambda: True)
    monkeypatch.setattr(module, "try_grading_on_device", lambda device: tried if device == "cuda" else GRADED)
    assert inspect_by_subject(tmp_path)["Grading on the GPU"] == tried
