"""A class of 2,000, all lessons mixed: does the cost grow by a straight line, and what does stock nbgrader take?

    python benchmarks/scale.py --students 2000

Makes a class folder in which every invented student hands in one lesson, the lessons in turn (right answers, known
mistakes, crashes, attacks and unwritten exercises, as `vit-course simulate` draws them). Grades all of it fresh with a
job on every core and notes the clock and the memory on the way, grades it again from what is kept, and writes the class
report. Then stock nbgrader's own step executes, in a kernel, the notebook of each lesson that earned most (it has no
sandbox, so attacks stay where they are). A core's throughput on these notebooks is compared lesson by lesson and over
all of them. Writes results/scale.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import nbformat
import psutil
from nbgrader.preprocessors import Execute
from timing import describe_machine

from exercise_kit.batch.batch import Grader
from exercise_kit.batch.job import GradingSettings
from exercise_kit.batch.locations import find_place
from exercise_kit.judge.result import Result
from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.simulate.modules import load_right_variants
from exercise_kit.simulate.profiles import draw_names, draw_profiles
from exercise_kit.simulate.simulate import choose_lessons
from exercise_kit.simulate.submissions import SimulatedLesson, make_seeded_random
from exercise_kit.submission.find import find
from exercise_kit.submission.released import Lessons

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "scale.json"
SEED, STOCK_SECONDS = 1, 1200  # a cell's limit under stock nbgrader
MARKS = (20, 50, 100, 200, 500, 1000, 2000)


def make_handed_in_class(folder: Path, students: int) -> list[Path]:
    """Make a class in which each student hands in one lesson; the folders of the submissions, in a mixed order."""
    new_class(folder, ROOT)
    variants = load_right_variants()
    lessons = [SimulatedLesson(name, folder, ROOT, variants, SEED, 0) for name in choose_lessons(ROOT, ())]
    sorts = draw_profiles(students, make_seeded_random(SEED, "sorts"))
    paths = []
    for number, (student, sort) in enumerate(
        zip(draw_names(students, make_seeded_random(SEED, "names")), sorts, strict=True)
    ):
        lesson = lessons[number % len(lessons)]
        lesson.write(folder / "submitted", lesson.draw_submission(student, sort))
        paths.append(folder / "submitted" / student / lesson.name)
    make_seeded_random(SEED, "order").shuffle(paths)
    return paths


class Watch:
    """Notes the clock, and the memory (proportional set size) of all processes below this, while a class is graded."""

    def __init__(self) -> None:
        self.peak = 0.0
        self.done: list[tuple[float, float]] = []
        self._over, self._start = threading.Event(), time.perf_counter()
        self._thread = threading.Thread(target=self._watch_memory)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def count_done_submission(self, _: object) -> None:
        """One more submission is done."""
        self.done.append((time.perf_counter() - self._start, self.peak))
        if len(self.done) in MARKS:
            print(f"{len(self.done)} graded in {self.done[-1][0]:.0f} s, {self.peak:.0f} MB at most", flush=True)

    def _watch_memory(self) -> None:
        while not self._over.wait(2.0):
            held = sum(map(_read_memory, psutil.Process().children(recursive=True)))
            self.peak = max(self.peak, held / 2**20)


def _read_memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


def grade_fresh(folder: Path, paths: Sequence[Path], jobs: int) -> tuple[dict[str, Any], list[Result]]:
    """Grade everything fresh; of the first n what the clock and the memory said, and seconds a core."""
    with Grader(find_place(folder), GradingSettings(fresh=True), jobs) as grader, Watch() as watch:
        found = find(paths, Lessons(folder).names, folder)
        results = [each.result for each in grader.run(found, watch.count_done_submission) if each.result]
    course = [
        {"submissions": n, "seconds": round(watch.done[n - 1][0], 1), "peak_megabytes": round(watch.done[n - 1][1])}
        for n in sorted({*(mark for mark in MARKS if mark < len(found)), len(found)})
    ]
    wall, _ = watch.done[-1]
    return {
        "jobs": jobs,
        "submissions": len(results),
        "graded": sum(each.status == "graded" for each in results),
        "course": course,
        "core_seconds_each": round(wall * jobs / len(results), 3),
    }, results


def grade_again(folder: Path, paths: Sequence[Path], jobs: int) -> dict[str, Any]:
    """Grade again what is kept."""
    start = time.perf_counter()
    with Grader(find_place(folder), jobs=jobs) as grader:
        done = list(grader.run(find(paths, Lessons(folder).names, folder)))
    return {"seconds": round(time.perf_counter() - start, 1), "from_cache": sum(each.from_cache for each in done)}


def time_report(folder: Path) -> float:
    """Seconds of `vit-course report`, started as a command."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "vit_course", "report", "."]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return round(time.perf_counter() - start, 1)


def time_stock_nbgrader(path: Path) -> float:
    """Seconds of stock nbgrader's own step: every cell in a fresh kernel, trainings at their small budget."""
    os.environ["VIT_COURSE_BUDGET"] = "small"
    notebook, start = nbformat.read(path, as_version=4), time.perf_counter()
    Execute(timeout=STOCK_SECONDS).preprocess(notebook, {"metadata": {"path": str(path.parent)}})
    seconds = time.perf_counter() - start
    print(f"{path.stem} took stock nbgrader {seconds:.0f} s", flush=True)
    return seconds


def choose_best_submissions(results: Sequence[Result]) -> dict[str, Result]:
    """Of each lesson the first submission that earned most, and that nothing is flagged of."""
    best: dict[str, Result] = {}
    for each in results:
        lesson = each.assignment or ""
        if not each.flags and (lesson not in best or each.score > best[lesson].score):
            best[lesson] = each
    return best


def compare_with_stock(
    results: Sequence[Result], stock_seconds: dict[str, float], core_seconds: float
) -> list[dict[str, Any]]:
    """Of each lesson, seconds of a core: ours (shares of the run's whole time) and stock's for the same notebook."""
    clocks: dict[str, list[float]] = defaultdict(list)
    for each in results:
        clocks[each.assignment or ""].append(each.seconds)
    overhead = core_seconds / mean(each.seconds for each in results)
    rows = []
    for lesson, same in sorted(choose_best_submissions(results).items()):
        ours, theirs = same.seconds * overhead, stock_seconds[lesson]
        row = {"lesson": lesson, "all_submissions": round(mean(clocks[lesson]) * overhead, 3)}
        rows.append(row | {"the_same": round(ours, 3), "stock": round(theirs, 1), "times": round(theirs / ours)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vit-course-") as home:
        folder = Path(home) / "class"
        paths = make_handed_in_class(folder, arguments.students)
        grading, results = grade_fresh(folder, paths, arguments.jobs)
        again, report = grade_again(folder, paths, arguments.jobs), time_report(folder)
        stock_seconds = {
            lesson: time_stock_nbgrader(Path(each.path))
            for lesson, each in sorted(choose_best_submissions(results).items())
        }
    lessons = compare_with_stock(results, stock_seconds, grading["core_seconds_each"])
    in_all = {column: mean(each[column] for each in lessons) for column in ("stock", "the_same", "all_submissions")}
    text = json.dumps(
        {
            **describe_machine("cpu"),
            "grading": grading,
            "again_from_what_is_kept": again,
            "report_seconds": report,
            "core_seconds_by_lesson": lessons,
            "stock_over_ours": {
                "the_same_notebooks": round(in_all["stock"] / in_all["the_same"]),
                "all_submissions": round(in_all["stock"] / in_all["all_submissions"]),
                "median_lesson": median(each["times"] for each in lessons),
            },
        },
        indent=1,
    )
    print(text)
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
