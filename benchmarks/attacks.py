"""The attack table: what each hostile submission deserves, what the judge gives it, and what stock nbgrader does.

    python benchmarks/attacks.py             # the judge alone
    python benchmarks/attacks.py --stock     # beside it stock nbgrader, which runs the notebook with your rights

Stock nbgrader is asked about the forgeries alone: they change nothing outside their kernel. The others would do
to this machine what they say. Prints a table and writes results/attacks.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the corpus is part of the tests

from exercise_kit.judge.judge import Judge  # noqa: E402
from exercise_kit.judge.result import Result  # noqa: E402
from exercise_kit.nbgrader.class_folder import new_class  # noqa: E402
from exercise_kit.sandbox.limits import Limits  # noqa: E402
from exercise_kit.submission.find import find  # noqa: E402
from exercise_kit.submission.parse import read  # noqa: E402
from exercise_kit.submission.released import Lessons  # noqa: E402
from tests.e2e.attacks.corpus import KINDS, hand_in  # noqa: E402

LESSON = "01_patchify"
RESULTS = Path(__file__).parent / "results" / "attacks.json"


def run_nbgrader(folder: Path, *command: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}
    subprocess.run([sys.executable, "-m", "nbgrader", *command], cwd=folder, env=environment, capture_output=True)


def grade_by_judge(folder: Path, paths: dict[str, Path]) -> dict[str, Result]:
    lessons = Lessons(folder)
    limits = Limits(cell_seconds=2.0, call_seconds=2.0, total_seconds=20.0)
    with Judge(folder / "hidden", os.urandom(32), limits) as judge:
        return {
            name: judge.grade(read(each, lessons))
            for name, path in paths.items()
            for each in find([path], lessons.names)
        }


def grade_by_stock_nbgrader(folder: Path, students: dict[str, str]) -> dict[str, float | None]:
    """Scores as nbgrader gives them by itself, with the public checks in the notebook; None: it graded nothing."""
    config = folder / "nbgrader_config.py"
    course = [line for line in config.read_text("utf-8").splitlines() if "c.CourseDirectory" in line]
    config.write_text("\n".join(["import os", "c = get_config()", *course]) + "\n", encoding="utf-8")
    run_nbgrader(folder, "autograde", LESSON)
    scores = {}
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        known = {student.id for student in gradebook.students}
        for name, student in students.items():
            notebook = gradebook.find_submission_notebook(LESSON, LESSON, student) if student in known else None
            grades = {grade.name: grade.auto_score for grade in notebook.grades} if notebook else {}
            scores[name] = grades.get("check-patchify")
    return scores


def read_stock_scores(report: dict[str, Any]) -> dict[str, float | None]:
    """Return what stock nbgrader gave when it was last run."""
    return {row["attack"]: row["stock_nbgrader"] for row in report["attacks"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stock", action="store_true", help="also ask stock nbgrader about the forgeries")
    options = parser.parse_args()
    attacks = {each.name: (kind, each) for kind, corpus in KINDS.items() for each in corpus}
    run_by_stock = [each for each in KINDS["forgeries"] if each.lesson == LESSON]
    stock = {} if options.stock or not RESULTS.exists() else read_stock_scores(json.loads(RESULTS.read_text("utf-8")))
    with tempfile.TemporaryDirectory(prefix="vit-course-") as home:
        folder = new_class(Path(home) / "judged", ROOT).path
        run_nbgrader(folder, "generate_assignment", LESSON)
        paths = {name: hand_in(folder, f"a{index}", each) for index, (name, (_, each)) in enumerate(attacks.items())}
        results = grade_by_judge(folder, paths)
        if options.stock:
            plain = new_class(Path(home) / "stock", ROOT).path
            run_nbgrader(plain, "generate_assignment", LESSON)
            students = {each.name: f"a{index}" for index, each in enumerate(run_by_stock)}
            for each in run_by_stock:
                hand_in(plain, students[each.name], each)
            stock = grade_by_stock_nbgrader(plain, students)
    rows = [
        {
            "kind": kind,
            "attack": name,
            "honest": each.honest,
            "judge": results[name].score,
            "flags": list(results[name].flags),
            "seconds": round(results[name].seconds, 2),
            "stock_nbgrader": stock.get(name, "not run"),
        }
        for name, (kind, each) in attacks.items()
    ]
    print_table(rows)
    report = {"date": datetime.now(UTC).date().isoformat(), "lesson": LESSON, "attacks": rows}
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def print_table(rows: list[dict[str, object]]) -> None:
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=150).print(table)
    undeserved = sum(row["judge"] != row["honest"] for row in rows)
    print(f"{len(rows)} attacks, {undeserved} with a score that was not deserved")


if __name__ == "__main__":
    main()
