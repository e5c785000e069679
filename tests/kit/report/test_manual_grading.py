"""nbgrader's gradebook, read as it is on the disk."""

import sqlite3
from contextlib import closing

import pytest
from nbgrader.api import Base, BaseCell, Grade, Gradebook
from sqlalchemy import create_engine

from exercise_kit.report.manual_grading import ByHand, Question, read_gradebook

LESSON = "01_patchify"
# SQLAlchemy's, of nbgrader's own code
pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")


@pytest.fixture
def folder_with_gradebook(tmp_path):
    """The class folder, with a gradebook in it."""
    path = tmp_path / "gradebook.db"
    Base.metadata.create_all(create_engine(f"sqlite:///{path}"))  # or nbgrader calls alembic for its version
    with Gradebook(f"sqlite:///{path}") as book:
        book.add_assignment(LESSON)
        book.add_notebook(LESSON, LESSON)
        book.add_grade_cell("why", LESSON, LESSON, max_score=2, cell_type="markdown")
        book.add_grade_cell("check-patchify", LESSON, LESSON, max_score=8, cell_type="code")
        for student in ("zoe", "ben"):
            book.add_student(student, first_name="Zoë", last_name=f"<b>{student}")
            book.add_submission(LESSON, student)
        for grade in book.db.query(Grade).join(BaseCell, Grade.cell_id == BaseCell.id).all():
            grade.needs_manual_grade = grade.cell.name == "why" and grade.notebook.student.id == "zoe"
        book.db.commit()
    return tmp_path


def test_questions_and_names(folder_with_gradebook):
    found = read_gradebook(folder_with_gradebook)
    assert found.questions == (Question(LESSON, "why", 2, 1),)
    assert (found.waiting, found.problem) == (1, None)
    assert set(found.names) == {"zoe", "ben", "Zoë", "<b>zoe", "<b>ben"}
    assert read_gradebook(folder_with_gradebook, "03_attention").questions == ()


def test_what_has_points_does_not_wait_and_what_a_person_gave_is_known(folder_with_gradebook):
    with Gradebook(f"sqlite:///{folder_with_gradebook}/gradebook.db") as gradebook:
        for student, why, check in (("zoe", 0.5, None), ("ben", 1.5, 6.0)):
            grade = gradebook.find_grade("why", LESSON, LESSON, student)
            grade.manual_score, grade.needs_manual_grade = why, True
            code = gradebook.find_grade("check-patchify", LESSON, LESSON, student)
            code.auto_score, code.manual_score = 0.0, check
        gradebook.db.commit()
    found = read_gradebook(folder_with_gradebook)
    assert found.questions == (Question(LESSON, "why", 2, 0, 2),)
    assert (found.waiting, found.again) == (0, 2)
    assert found.by_hand == {("zoe", LESSON): ByHand(0.5, 2, None, 8), ("ben", LESSON): ByHand(7.5, 10, 6.0, 8)}


def test_no_gradebook(tmp_path):
    assert read_gradebook(tmp_path) is None
    assert not list(tmp_path.iterdir()), "none is made"


def test_what_is_no_gradebook(tmp_path):
    path = tmp_path / "gradebook.db"
    path.write_text("no database at all, and long enough to be looked at" * 100)
    assert f"{path} is damaged (file is not a database)" in read_gradebook(tmp_path).problem


def test_a_gradebook_of_another_version(folder_with_gradebook):
    with closing(sqlite3.connect(folder_with_gradebook / "gradebook.db")) as database:
        database.execute("ALTER TABLE grade RENAME COLUMN needs_manual_grade TO waits")
        database.commit()
    problem = read_gradebook(folder_with_gradebook).problem
    assert "was made by another nbgrader (no such column" in problem
    assert "nbgrader db upgrade" in problem
