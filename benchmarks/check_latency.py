"""How long a student waits for `check`: the first one in a fresh kernel, and one after the other.

    python benchmarks/check_latency.py

The first check of each lesson is timed in a process of its own, which has imported torch and `check` before, as the
setup cell does. Then every exercise is checked in one process; the median of a few rounds counts. All of this for right
answers, and for one known mistake each: most first checks fail, and then the mistake's name is searched for. Seconds by
the clock, and of the processor, which other work on the machine disturbs less. Machines differ by a factor of two from
day to day, so what we want is a share of what every student waits for before: `import torch`, in the same run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from timing import describe_machine

from exercise_kit.engine import check
from exercise_kit.engine.course import course

FIRST, WARM = 1.0, 0.2  # of the time of `import torch`, that we want to stay under: one fresh check, 95 % of the others
RESULTS = Path(__file__).parent / "results" / "check_latency.json"
ANSWERS = ("right", "wrong")  # the model solution, and the first known mistake, whose name is then searched for


def list_timed_exercises() -> list[str]:
    """Those that are timed; a bug hunt has the checks of another exercise once more."""
    known = course().exercises.items()
    return [name for name, each in known if not each.file and each.misconceptions and not name.startswith("fix_")]


def time_check(exercise: str, answer: str) -> tuple[float, float]:
    """Seconds by the clock and of the processor for a check."""
    right, mistakes = course().references()[exercise], course().exercises[exercise].misconceptions
    objects = right if answer == "right" else mistakes[0].objects
    clock, processor = time.perf_counter(), time.process_time()
    report = check(exercise, *objects)
    seconds = time.perf_counter() - clock, time.process_time() - processor
    assert report.passed == (answer == "right"), str(report)
    return seconds


def time_check_in_fresh_process(exercise: str, answer: str) -> tuple[float, float]:
    """The same in a fresh process."""
    program = [sys.executable, __file__, "--only", exercise, answer]
    clock, processor = json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
    return clock, processor


def time_import_of_torch() -> float:
    """Seconds by the clock for a fresh process to import torch, the median of five."""
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        seconds.append(time.perf_counter() - started)
    return median(seconds)


def compute_95th_percentile(seconds: list[float]) -> float:
    return quantiles(seconds, n=20, method="inclusive")[-1]


def measure_latencies(rounds: int) -> dict[str, Any]:
    wanted = {"first": FIRST, "warm_95": WARM}
    times = {answer: time_all_checks(answer, rounds) for answer in ANSWERS}
    return {"machine": describe_machine("cpu"), "import_torch": time_import_of_torch(), "wanted": wanted, **times}


def time_all_checks(answer: str, rounds: int) -> dict[str, Any]:
    names = list_timed_exercises()
    lessons = {course().exercises[name].lesson: name for name in reversed(names)}
    first = {name: time_check_in_fresh_process(name, answer) for name in sorted(lessons.values(), key=names.index)}
    for name in names:
        time_check(name, answer)
    every = {name: [time_check(name, answer) for _ in range(rounds)] for name in names}
    warm = {name: tuple(median(column) for column in zip(*some, strict=True)) for name, some in every.items()}
    return {
        "first_slowest": [max(each[way] for each in first.values()) for way in (0, 1)],
        "warm_95": [compute_95th_percentile([each[way] for each in warm.values()]) for way in (0, 1)],
        "first": first,
        "warm": warm,
    }


def round_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: round_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [round_numbers(each) for each in value]
    return round(value, 3) if isinstance(value, float) else value


def print_latencies(answer: str, found: dict[str, Any]) -> None:
    for name, (clock, processor) in found["first"].items():
        print(f"{answer}, first  {name:32} {clock:6.2f} s, {processor:6.2f} s of the processor")
    for name, (clock, processor) in sorted(found["warm"].items(), key=lambda each: -each[1][1])[:8]:
        print(f"{answer}, warm   {name:32} {clock:6.3f} s, {processor:6.3f} s of the processor")
    print("{}, first, slowest: {:.2f} s, {:.2f} s of the processor".format(answer, *found["first_slowest"]))
    print("{}, warm, 95th percentile: {:.3f} s, {:.3f} s of the processor".format(answer, *found["warm_95"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        clock, processor = time.perf_counter(), time.process_time()
        # with the import of all exercises, and of the right answers, which students do not have
        time_check(*arguments.only)
        print(json.dumps((time.perf_counter() - clock, time.process_time() - processor)))
        return
    found = round_numbers(measure_latencies(arguments.rounds))
    for answer in ANSWERS:
        print_latencies(answer, found[answer])
    arguments.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
