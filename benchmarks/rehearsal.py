"""A class of sixty through three lessons, with all that goes wrong in a term: is every grade the true one at the end?

    python benchmarks/rehearsal.py --students 60

Makes a class whose true scores are known, as `vit-course simulate` does, and grades it with nbgrader's commands. Each
`autograde` is killed at moments that nobody chose, by hang-up, TERM and KILL, and started again. Then some students
hand in again under the old timestamp, the points of an exercise change after the release, the written answers get
points by hand, and work that is late pays for it. At the end `vit-course export` and the feedback pages are compared
with what this script knows by itself. Writes results/rehearsal.json; exit status 1 where anything differs.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from timing import describe_machine

from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from exercise_kit.simulate.simulate import read_truth

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "rehearsal.json"
LESSONS = ("00_start", "02_positions", "04_block")
CHANGED = {"normalize_images": 4, "add_class_token": 2, "Mlp": 7}  # exercise → its points after the release
SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL)
PER_DAY = 0.2
CONFIG = f'\nc.LateSubmissionPlugin.penalty_method = "by_day"\nc.LateSubmissionPlugin.penalty_per_day = {PER_DAY}\n'


@dataclass
class Earned:
    """What one student has earned in one lesson: shares by exercise, points by hand, and seconds late."""

    shares: dict[str, float]
    worth: dict[str, float]
    questions: dict[str, float]
    seconds_late: float
    by_hand: dict[str, float] = field(default_factory=dict)

    def make_row(self) -> dict[str, float]:
        """The columns of the exported table."""
        automatic = sum(share * self.worth[name] for name, share in self.shares.items())
        by_hand = sum(self.by_hand.values())
        days = math.ceil(self.seconds_late / 86400) if self.seconds_late > 0 else 0
        penalty = (automatic + by_hand) * min(1.0, days * PER_DAY)
        return {
            "automatic": automatic,
            "by_hand": by_hand,
            "late_penalty": penalty,
            "score": automatic + by_hand - penalty,
            "max_score": sum(self.worth.values()) + sum(self.questions.values()),
            "not_graded_yet": 0.0,
        }


Truth = dict[tuple[str, str], Earned]


def read_true_grades(folder: Path) -> Truth:
    """Return what `vit-course simulate` knows: (student, lesson) → what is true."""
    made = read_truth(folder)
    due = {lesson: datetime.fromisoformat(moment.removesuffix(" UTC")) for lesson, moment in made["due"].items()}
    found = {}
    for each in made["submissions"]:
        handed_in = datetime.fromisoformat(each["handed_in"].removesuffix(" UTC"))
        found[each["student"], each["lesson"]] = Earned(
            {exercise["name"]: exercise["score"] / exercise["max_score"] for exercise in each["exercises"]},
            {exercise["name"]: exercise["max_score"] for exercise in each["exercises"]},
            {question["name"]: question["points"] for question in each["questions"]},
            (handed_in - due[each["lesson"]]).total_seconds(),
        )
    return found


class Term:
    """A class folder, and what is done in it; ``log`` has a line for each thing that was done to it."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.folder, self.draw = folder, draw
        self.log: list[str] = []
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder.parent / "cache")}

    def start_command(self, *command: str) -> subprocess.Popen[str]:
        """A command in the class folder; what it says goes into one pipe."""
        words = [sys.executable, "-m", *command]
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(words, cwd=self.folder, env=self._environment, **options)

    def run_command(self, *command: str) -> str:
        """Return what a command says that has to succeed."""
        process = self.start_command(*command)
        said, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{said}")
        return said

    def autograde(self, lesson: str, kills: int, longest: float) -> None:
        """Grade a lesson, killed some times at moments up to ``longest`` seconds after its start; then to its end."""
        for number in range(kills):
            by, after = SIGNALS[number % len(SIGNALS)], self.draw.uniform(4.0, longest)
            process = self.start_command("nbgrader", "autograde", lesson)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=after)
            if process.poll() is None:
                process.send_signal(by)
                process.communicate()
                self.log.append(f"autograde {lesson}: {by.name} after {after:.1f} s")
        said = self.run_command("nbgrader", "autograde", lesson)
        again = said.count("its grading was interrupted: graded again")
        self.log.append(f"autograde {lesson}: to its end; {again} that had been begun were graded again")

    def hand_in_again(self, lesson: str, truth: Truth, share: float) -> None:
        """Some hand in the lesson's own answers, or nothing but the released lesson, with the old timestamp."""
        students = sorted(student for student, where in truth if where == lesson)
        right = read_model_answers(self.folder, lesson)
        for student in self.draw.sample(students, math.ceil(share * len(students))):
            better, true = self.draw.random() < 0.7, truth[student, lesson]
            written = {name: right[name] for name in true.shares} if better else {}
            stamp = self.folder / "submitted" / student / lesson / "timestamp.txt"
            before = stamp.read_bytes()
            write_submissions(self.folder, lesson, {student: written})
            stamp.write_bytes(before)
            true.shares = dict.fromkeys(true.shares, float(better))
            self.log.append(f"{student} hands {lesson} in again, {'right' if better else 'untouched'}")

    def change_points(self, truth: Truth) -> None:
        """Points change after everybody was graded."""
        lines = [f"{name} = {points}" for name, points in CHANGED.items()]
        (self.folder / "class.toml").write_text("\n".join(["[points]", *lines, ""]), "utf-8")
        self.run_command("vit_course", "build")
        for true in truth.values():
            true.worth = {name: float(CHANGED.get(name, points)) for name, points in true.worth.items()}
        for lesson in dict.fromkeys(lesson for _, lesson in truth):
            self.run_command("nbgrader", "generate_assignment", lesson, "--force")

    def grade_by_hand(self, truth: Truth) -> None:
        """Whatever formgrader lists gets points, as its page saves them."""
        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            for (student, lesson), true in truth.items():
                for grade in gradebook.find_submission_notebook(lesson, lesson, student).grades:
                    if grade.needs_manual_grade and grade.name in true.questions:
                        points = self.draw.randrange(int(2 * true.questions[grade.name]) + 1) / 2
                        grade.manual_score, grade.needs_manual_grade = points, False
                        true.by_hand[grade.name] = points
            gradebook.db.commit()


def find_differences(term: Term, truth: Truth) -> Iterator[str]:
    """Where the exported table or a feedback page says something else than what is true."""
    term.run_command("vit_course", "export", ".", "--to", "csv", "--out", "term.csv")
    with (term.folder / "term.csv").open(encoding="utf-8", newline="") as file:
        rows = {(row["student_id"], row["lesson"]): row for row in csv.DictReader(file)}
    yield from (f"{who}: nobody of the class" for who in rows.keys() - truth.keys())
    for (student, lesson), true in truth.items():
        row, wanted = rows.get((student, lesson), {}), true.make_row()
        for column, number in wanted.items():
            said = row.get(column) or "nothing"
            if said == "nothing" or abs(float(said) - number) > 2e-3:
                yield f"{student}, {lesson}: {column} is {said}, and should be {number:g}"
        page = term.folder / "feedback" / student / lesson / f"{lesson}.html"
        shown = re.search(r"\(Score: ([\d.]+) / ([\d.]+)\)", page.read_text("utf-8")) if page.exists() else None
        if not shown or abs(float(shown[1]) - wanted["score"]) > 6e-3:
            yield f"{student}, {lesson}: the page says {shown and shown[1]}, and should say {wanted['score']:g}"


def rehearse(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The whole term; what is written down of it."""
    start, draw = time.monotonic(), random.Random(arguments.seed)
    lessons = [word for lesson in LESSONS for word in ("--lesson", lesson)]
    term = Term(folder, draw)
    making = ["simulate", str(folder), "--students", str(arguments.students), "--seed", str(arguments.seed), *lessons]
    subprocess.run([sys.executable, "-m", "vit_course", *making, "--root", str(ROOT)], check=True, cwd=folder.parent)
    truth, due = read_true_grades(folder), read_truth(folder)["due"]
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(CONFIG)
    for lesson in LESSONS:
        term.run_command("nbgrader", "db", "assignment", "add", lesson, f"--duedate={due[lesson]}")
        term.run_command("nbgrader", "generate_assignment", lesson)
        term.autograde(lesson, arguments.kills, arguments.longest)
    for lesson in LESSONS:
        term.hand_in_again(lesson, truth, 0.2)
    term.change_points(truth)
    for lesson in LESSONS:
        term.autograde(lesson, arguments.kills, arguments.longest)
    term.grade_by_hand(truth)
    for lesson in LESSONS:  # late work pays for points by hand, too
        term.autograde(lesson, 0, 0.0)
        term.run_command("nbgrader", "generate_feedback", lesson)
    found = list(find_differences(term, truth))
    seconds = round(time.monotonic() - start)
    head = {"students": arguments.students, "seed": arguments.seed, "lessons": LESSONS, "seconds": seconds}
    late = sum(true.seconds_late > 0 for true in truth.values())
    counts = {"grades": len(truth), "late": late, "by_hand": sum(len(true.by_hand) for true in truth.values())}
    return {**head, "machine": describe_machine("cpu"), **counts, "done": term.log, "differences": found}


def main() -> int:
    """Rehearse, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=3, help="how often each autograde is killed")
    parser.add_argument("--longest", type=float, default=90.0, help="seconds after which it is killed at the latest")
    parser.add_argument("--folder", type=Path, help="where the class is made, and stays")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = rehearse((arguments.folder or Path(place) / "class").resolve(), arguments)
    RESULTS.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found['differences'])} differences in {found['grades']} grades after {found['seconds']} s")
    print(*found["differences"][:40], sep="\n")
    return 1 if found["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
