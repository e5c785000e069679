"""What is left of a run that SIGKILL, Ctrl-C or a full disk ended, and what becomes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its runs, and checks signals and limits of Unix")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = Path(__file__).with_name("killed_runs.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path_factory.mktemp("runs"))],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("where", ["steps", "writing", "frugal"])
@pytest.mark.proof
def test_a_killed_run_goes_on_to_the_same_weights_bit_for_bit(where: str, results: dict[str, Any]) -> None:
    assert all(end == {"signal": signal.SIGKILL} for end in results[where]["died"])
    assert results[where]["then"] == results["whole"]


def test_ctrl_c_ends_with_the_best_weights(results: dict[str, Any]) -> None:
    stopped = results["interrupted"]
    assert stopped["epochs"] == [1, 2]
    assert stopped["losses"] == results["whole"]["losses"][:2]
    assert stopped["weights"] == stopped["best"] != results["whole"]["weights"]


def test_an_interrupted_run_goes_on_too(results: dict[str, Any]) -> None:
    assert results["interrupted, then"] == results["whole"]


def test_ctrl_c_keeps_every_whole_epoch(results: dict[str, Any]) -> None:
    assert results["kept"] == 2
    assert results["kept, then"] == results["whole"]


def test_a_full_disk_is_reported_and_leaves_the_old_checkpoint_whole(results: dict[str, Any]) -> None:
    result = results["no room"]
    assert "cannot write" in result["message"]
    assert "File too large. Make room there, or choose another folder" in result["message"]
    assert "the file that was there before is whole" in result["message"]
    assert result["whole"]
    assert result["files"] == ["best.safetensors", "config.json", "last.safetensors", "metrics.jsonl"]
