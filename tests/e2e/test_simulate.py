"""A simulated class before the real judge: grading must find the truth, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from vit_course.grading.simulating.simulate import read_truth, simulate
from vit_course.grading.worker.survey import available

pytestmark = [
    pytest.mark.xdist_group("grade"),  # two cores do not grade two classes at a time
    pytest.mark.skipif(not available().enough, reason="this machine has no sandbox: see `vit-course doctor`"),
]
ROOT = Path(__file__).parents[2]
LESSONS = ("00_start", "01_patchify")
PROGRAM = (
    "import typer; from vit_course.grading.simulate_command import simulate;"
    "app = typer.Typer(); app.command()(simulate); app()"
)


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(folder), "--check", "--jobs", "2"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_simulated_class_is_graded_to_its_truth(tmp_path):
    folder = simulate(tmp_path / "a class", ROOT, 12, 4, LESSONS).path
    truth = read_truth(folder)
    kinds = Counter(each["kind"] for entry in truth["submissions"] for each in entry["exercises"])
    assert kinds.keys() >= {"right", "misconception", "unwritten", "hostile"}, kinds
    done = check(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The grades of 24 submissions are what they have to be" in done.stdout

    entry = truth["submissions"][3]
    entry["exercises"][0]["score"] += 1
    (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    other = check(folder)
    assert other.returncode == 1
    assert f"{entry['student']}, {entry['lesson']}: {entry['exercises'][0]['name']}" in other.stdout
    assert "1 difference between the grades of 24 submissions and their truth." in other.stderr
