"""A class of one lesson after nbgrader's commands: what its gradebook, its pages and its export say."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook


@dataclass(frozen=True)
class GradedClass:
    """A class folder, one of its lessons, what the commands said, and the gradebook's address where it is another."""

    folder: Path
    lesson: str
    log: str = ""
    database: str = ""

    @property
    def address(self) -> str:
        return self.database or f"sqlite:///{self.folder}/gradebook.db"

    def read_grades(self, student: str) -> dict[str, tuple[float | None, bool]]:
        """Cell → its points (None: not graded), and whether it waits for a person."""
        with Gradebook(self.address) as gradebook:
            grades = gradebook.find_submission_notebook(self.lesson, self.lesson, student).grades
            return {each.name: (each.auto_score, each.needs_manual_grade) for each in grades}

    def read_auto_scores(self, student: str) -> dict[str, float | None]:
        return {name: score for name, (score, _) in self.read_grades(student).items()}

    def read_max_scores(self) -> dict[str, float]:
        with Gradebook(self.address) as gradebook:
            return {cell.name: cell.max_score for cell in gradebook.find_notebook(self.lesson, self.lesson).grade_cells}

    def read_rows(self) -> list[tuple[object, ...]]:
        """All that the gradebook tells of points, penalties and comments."""
        found: list[tuple[object, ...]] = []
        with Gradebook(self.address) as gradebook:
            for submission in gradebook.assignment_submissions(self.lesson):
                for notebook in submission.notebooks:
                    found.append((submission.student_id, notebook.late_submission_penalty))
                    for grade in notebook.grades:
                        points = (grade.auto_score, grade.manual_score, grade.max_score, grade.needs_manual_grade)
                        found.append((submission.student_id, grade.name, *points))
                    found += [(submission.student_id, each.name, each.auto_comment) for each in notebook.comments]
        return sorted(found, key=repr)

    def read_notebook(self, student: str, step: str = "autograded") -> nbformat.NotebookNode:
        return nbformat.read(self.folder / step / student / self.lesson / f"{self.lesson}.ipynb", as_version=4)

    def read_feedback(self, student: str) -> str:
        """The page that the student gets."""
        return (self.folder / "feedback" / student / self.lesson / f"{self.lesson}.html").read_text(encoding="utf-8")

    def read_exported(self) -> dict[str, dict[str, str]]:
        """Student → the row of the lesson in the file that `nbgrader export` has written."""
        with (self.folder / "grades.csv").open(encoding="utf-8", newline="") as file:
            return {row["student_id"]: row for row in csv.DictReader(file) if row["assignment"] == self.lesson}

    def configure(self, *lines: str) -> None:
        """Add lines to the class's configuration."""
        with (self.folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
            config.write("".join(f"{line}\n" for line in lines))


def read_table(log: str) -> dict[str, str]:
    """Student → their row of the table at the end of nbgrader's log, in which they have no space."""
    lines = log.partition("the class in one table")[2].splitlines()
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.strip()}
