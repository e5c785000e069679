"""A student's kernel without a kernel: what is noted goes into a folder of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from exercise_kit.progress import log


@pytest.fixture
def kernel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a fresh kernel."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(log.SWITCH, raising=False)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr(log, "is_in_notebook_kernel", lambda: True)
    monkeypatch.setattr(log, "_note_cell_runs", lambda: None)
    restart_kernel(monkeypatch, "first")
    return tmp_path


def restart_kernel(monkeypatch: pytest.MonkeyPatch, session: str) -> None:
    """Forget what a kernel keeps in its memory."""
    monkeypatch.setattr(log, "_session", session)
    monkeypatch.setattr(log, "_in_memory", [])
    monkeypatch.setattr(log, "_reported", set())
    monkeypatch.setattr(log, "_mended", set())
