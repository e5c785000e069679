"""The judge beside stock nbgrader, on one class: seconds and memory for a submission, a class killed and resumed.

    python benchmarks/grading.py --students 200

Makes a class folder, hands lesson 01 in for invented students (right answers, known slips, unwritten exercises, each
drawn by a seed), and grades it: with the judge on one core, with a job on every core, killed half-way and resumed, by
`nbgrader autograde` with the judge, and a few of them as stock nbgrader does, by executing the notebook in a kernel.
Prints a table and writes results/grading.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import nbformat
import psutil
from nbgrader.preprocessors import Execute

from exercise_kit.batch.batch import Grader
from exercise_kit.batch.job import GradingSettings
from exercise_kit.batch.locations import find_place
from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions

ROOT = Path(__file__).parents[1]
LESSON = "01_patchify"
RESULTS = Path(__file__).parent / "results" / "grading.json"
# a slip is a line of the model answer written otherwise
SLIPS = {
    "patchify": [
        (".permute(0, 2, 4, 1, 3, 5)", ".permute(0, 4, 2, 1, 3, 5)"),
        (".permute(0, 2, 4, 1, 3, 5)", ".permute(0, 2, 4, 3, 5, 1)"),
        (".permute(0, 2, 4, 1, 3, 5)", ".permute(0, 2, 4, 1, 5, 3)"),
        ("if side % patch_size:", "if False:"),
        ("rows, columns = height // patch_size, width // patch_size", "rows = columns = height // patch_size"),
    ],
    "unpatchify": [(".permute(0, 3, 1, 4, 2, 5)", ".permute(0, 3, 2, 4, 1, 5)"), ("-1, height", "3, height")],
    "PatchEmbedding": [("return self.projection(", "return self.projection(2 * "), ("self.projection = ", "self.p = ")],
    "conv_from_linear": [("stride=patch_size, ", ""), ("bias=has_bias", "bias=True")],
    "fix_patchify": [("(channel * height + row) * width", "(channel * width + row) * width")],
}


def draw_student_answers(right: dict[str, str], rng: random.Random) -> dict[str, str]:
    """Draw what one student handed in: of each exercise two thirds right, a quarter with a slip, the rest unwritten."""
    written = {}
    for name, source in right.items():
        drawn = rng.random()
        if drawn < 0.67 or name not in SLIPS:
            written[name] = source
        elif drawn < 0.92:
            old, new = rng.choice(SLIPS[name])
            if old not in source:
                raise ValueError(f"the model answer of {name} no longer holds {old!r}")
            written[name] = source.replace(old, new)
    return written


def make_class(folder: Path, students: int) -> list[Path]:
    new_class(folder, ROOT)
    run_nbgrader(folder, "generate_assignment", LESSON)
    right, rng = read_model_answers(folder, LESSON), random.Random(0)
    answers = {f"student-{number:03}": draw_student_answers(right, rng) for number in range(students)}
    for student, written in answers.items():  # the same work of two students would be graded once
        written["patches-or-pixels"] += f"\n\n{student}"
    return list(write_submissions(folder, LESSON, answers).values())


def run_nbgrader(folder: Path, *command: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}
    subprocess.run(
        [sys.executable, "-m", "nbgrader", *command], cwd=folder, env=environment, check=True, capture_output=True
    )


class PeakMemory:
    """The most memory that this process and those below it held together (proportional set size), in megabytes."""

    def __enter__(self) -> PeakMemory:
        self.peak, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch_memory)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch_memory(self) -> None:
        own = psutil.Process()
        while not self._over.wait(0.1):
            total = 0
            for process in own.children(recursive=True):
                try:
                    total += process.memory_full_info().pss
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    continue
            self.peak = max(self.peak, total / 2**20)


def time_work(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds, peak megabytes of the processes started, and what ``work`` gave."""
    with PeakMemory() as memory:
        start = time.perf_counter()
        made = work()
        seconds = time.perf_counter() - start
    return seconds, memory.peak, made


def measure_judge(folder: Path, paths: list[Path], jobs: int) -> dict[str, Any]:
    with Grader(find_place(folder), GradingSettings(fresh=True), jobs) as grader:
        list(grader.grade(paths[:jobs]))  # the processes start, torch is imported
        seconds, peak, results = time_work(lambda: list(grader.grade(paths)))
    each = [result.seconds for result in results]
    return {
        "jobs": jobs,
        "submissions": len(results),
        "wall_seconds": round(seconds, 2),
        "median_ms": round(1000 * median(each), 1),
        "p95_ms": round(1000 * quantiles(each, n=20)[-1], 1),
        "peak_megabytes": round(peak),
        "scores": [result.score for result in results],
    }


def time_stock_nbgrader(paths: list[Path]) -> dict[str, Any]:
    """Stock nbgrader's own step for the same notebooks: execute every cell in a fresh kernel."""

    def execute_all_notebooks() -> list[float]:
        each = []
        for path in paths:
            notebook, start = nbformat.read(path, as_version=4), time.perf_counter()
            Execute(timeout=60).preprocess(notebook, {"metadata": {"path": str(path.parent)}})
            each.append(time.perf_counter() - start)
        return each

    _, peak, each = time_work(execute_all_notebooks)
    return {"submissions": len(each), "median_ms": round(1000 * median(each)), "peak_megabytes": round(peak)}


def kill_and_resume_grading(folder: Path, students: int) -> dict[str, Any]:
    """Grade, SIGKILL everything half-way, resume: how many were kept, and how many graded twice."""
    kept = folder / ".vit_course" / "results"
    for path in kept.rglob("*.json"):
        path.unlink()
    command = [sys.executable, "-m", "vit_course", "grade", "submitted", "--jobs", "2", "--json", "-", "--resume"]
    first = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
    while len(list(kept.rglob("*.json"))) < students // 2:
        time.sleep(0.02)
        if first.poll() is not None:
            raise RuntimeError("grading ended before it could be killed")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    done = {path: path.stat().st_mtime_ns for path in kept.rglob("*.json")}
    start = time.perf_counter()
    second = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    twice = sum(path.stat().st_mtime_ns != written for path, written in done.items())
    scores = [each["score"] for each in json.loads(second.stdout)["submissions"]]
    return {"kept": len(done), "graded_twice": twice, "wall_seconds": round(seconds, 2), "scores": scores}


def measure_autograde(folder: Path, fresh: bool) -> dict[str, Any]:
    if fresh:
        for path in (folder / ".vit_course" / "results").rglob("*.json"):
            path.unlink()
    seconds, peak, _ = time_work(lambda: run_nbgrader(folder, "autograde", LESSON, "--force"))
    return {"fresh": fresh, "wall_seconds": round(seconds, 1), "peak_megabytes": round(peak)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--stock", type=int, default=5, help="how many stock nbgrader executes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vit-course-") as home:
        folder = Path(home) / "class"
        paths = make_class(folder, arguments.students)
        one, many = measure_judge(folder, paths, 1), measure_judge(folder, paths, os.cpu_count() or 1)
        resumed = kill_and_resume_grading(folder, arguments.students)
        report: dict[str, Any] = {
            "date": datetime.now(UTC).date().isoformat(),
            "cores": os.cpu_count(),
            "lesson": LESSON,
            "judge": one,
            "judge_on_every_core": many,
            "killed_and_resumed": resumed,
            "nbgrader_autograde": [measure_autograde(folder, fresh=True), measure_autograde(folder, fresh=False)],
            "stock_nbgrader": time_stock_nbgrader(paths[: arguments.stock]),
        }
    scores = [part.pop("scores") for part in (one, many, resumed)]
    report["same_scores_three_times"] = scores[0] == scores[1] == scores[2]
    report["stock_over_judge"] = round(report["stock_nbgrader"]["median_ms"] / one["median_ms"], 1)
    text = json.dumps(report, indent=2)
    print(text)
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
