"""Where the gradebook is, and a sentence for whatever is the matter with it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from nbgrader.api import Base, Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import Connection, create_engine, text
from typer.testing import CliRunner, Result

from exercise_kit.__main__ import app
from exercise_kit.nbgrader import gradebook
from exercise_kit.nbgrader.fault_messages import install_fault_messages
from exercise_kit.nbgrader.gradebook import (
    Fault,
    GradebookError,
    find_gradebook_file,
    make_engine,
    read_gradebook_address,
    refuse_new_gradebook,
)

SERVER = "postgresql+psycopg://teacher:secret@127.0.0.1:9/class"
INSERT = "INSERT INTO student VALUES ('ada', NULL, NULL, NULL, NULL)"
# SQLAlchemy's, of nbgrader's own code
pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")


def write_config(folder: Path, *lines: str) -> Path:
    (folder / "nbgrader_config.py").write_text("\n".join(["c = get_config()", *lines]))
    return folder


@pytest.fixture
def empty_gradebook(tmp_path: Path) -> Path:
    """A gradebook without anybody in it."""
    path = tmp_path / "gradebook.db"
    Base.metadata.create_all(create_engine(f"sqlite:///{path}"))  # or nbgrader calls alembic for its version
    return path


def find_fault(address: str, statement: str = INSERT, first: Callable[[Connection], object] = bool) -> GradebookError:
    """Return what is raised by a statement, or before it; ``first`` is done when the gradebook is open."""

    def execute_statement() -> None:
        with refuse_new_gradebook(), make_engine(address).connect() as connection:
            first(connection)
            connection.execute(text(statement))
            connection.commit()

    with pytest.raises(GradebookError) as caught:
        execute_statement()
    return caught.value


@pytest.mark.parametrize(
    ("lines", "address"),
    [
        ([], "sqlite:///{folder}/gradebook.db"),
        ([f'c.CourseDirectory.db_url = "{SERVER}"'], SERVER),
        (['c.CourseDirectory.db_url = "sqlite:///a.db"', "c.CourseDirectory.db_url = 'sqlite:///b.db'"], "sqlite:///{folder}/b.db"),
        (['c.CourseDirectory.db_url = "sqlite:////elsewhere/b.db"'], "sqlite:////elsewhere/b.db"),
    ],
)  # fmt: skip
def test_the_address_is_the_configuration_s(tmp_path: Path, lines: list[str], address: str) -> None:
    assert read_gradebook_address(write_config(tmp_path, *lines)) == address.format(folder=tmp_path)
    assert (find_gradebook_file(address) is None) == (address == SERVER)


def test_a_configuration_is_read_and_not_run(tmp_path: Path) -> None:
    write_config(tmp_path, f"open('{tmp_path}/ran', 'w')", 'import os; c.CourseDirectory.db_url = os.environ["BOOK"]')
    with pytest.raises(GradebookError, match="computes, and this command runs no configuration"):
        read_gradebook_address(tmp_path)
    write_config(tmp_path, "if True")
    with pytest.raises(GradebookError, match="no address that can be read"):
        read_gradebook_address(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_locked_file(empty_gradebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradebook, "PATIENCE", 0.01)
    with closing(sqlite3.connect(empty_gradebook)) as other:
        other.execute("BEGIN IMMEDIATE")
        error = find_fault(f"sqlite:///{empty_gradebook}")
    assert error.fault == Fault.LOCKED
    assert str(error).startswith(f"the gradebook {empty_gradebook} is locked: another program")


def test_a_short_lock_is_waited_for(empty_gradebook: Path) -> None:
    holding = f"import sqlite3, time; c = sqlite3.connect({str(empty_gradebook)!r}, isolation_level=None); "
    holding += "c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); time.sleep(0.5)"
    with subprocess.Popen([sys.executable, "-c", holding], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with Gradebook(f"sqlite:///{empty_gradebook}") as waiting:
            waiting.add_student("ada")
        assert other.wait() == 0


def test_a_file_that_was_deleted_is_not_made_again(empty_gradebook: Path) -> None:
    empty_gradebook.unlink()
    assert find_fault(f"sqlite:///{empty_gradebook}").fault == Fault.GONE
    assert not empty_gradebook.exists()
    empty_gradebook.touch()
    assert find_fault(f"sqlite:///{empty_gradebook}").fault == Fault.GONE
    assert empty_gradebook.stat().st_size == 0


def test_a_file_that_is_deleted_while_it_is_open(empty_gradebook: Path) -> None:
    def delete_gradebook(connection: Connection) -> None:
        connection.execute(text("SELECT * FROM student"))
        empty_gradebook.unlink()

    assert find_fault(f"sqlite:///{empty_gradebook}", first=delete_gradebook).fault == Fault.GONE


@pytest.mark.parametrize("size", [0, 3000])
def test_a_damaged_file(empty_gradebook: Path, size: int) -> None:
    """Garbage from the first byte on, or the rest cut off."""
    whole = empty_gradebook.read_bytes()
    empty_gradebook.write_bytes(whole[:size] + (b"" if size else os.urandom(5000)))
    error = find_fault(f"sqlite:///{empty_gradebook}", "SELECT * FROM student")
    assert error.fault == Fault.DAMAGED
    assert "put its backup in its place" in str(error)


@pytest.mark.parametrize(
    ("before", "statement", "fault", "words"),
    [
        # for root too, who may write to any file
        ("PRAGMA query_only = 1", INSERT, Fault.READ_ONLY, "make it and its folder writable"),
        ("PRAGMA max_page_count = 1", INSERT.replace("ada", "a" * 1_000_000), Fault.FULL, "free some space"),
        (
            "ALTER TABLE student DROP COLUMN lms_user_id",
            "SELECT lms_user_id FROM student",
            Fault.OTHER_VERSION,
            "back it up, then run 'nbgrader db upgrade'",
        ),
    ],
    ids=["read-only", "a full disk", "of an older nbgrader"],
)
def test_a_file_that_refuses_what_is_asked_of_it(
    empty_gradebook: Path, before: str, statement: str, fault: Fault, words: str
) -> None:
    error = find_fault(f"sqlite:///{empty_gradebook}", statement, lambda opened: opened.execute(text(before)))
    assert error.fault == fault
    assert words in str(error)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(GradebookError, match=r"cannot be opened \(unable to open database file\)"):
        make_engine(f"sqlite:///{tmp_path}/none/gradebook.db").connect()


def test_a_server_that_does_not_answer_is_named_without_the_password() -> None:
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    error = find_fault(SERVER)
    assert error.fault == Fault.UNREACHABLE
    assert "postgresql+psycopg://teacher:***@127.0.0.1:9/class does not answer (" in str(error)
    assert "Connection refused" in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgres://teacher@h/class", "no address that can be read"),
        ("gradebook.db", "no address that can be read"),
        ("sqlserver://h/class", "no address that can be read"),
        ("mysql+pymysql://h/class", "no address that can be read"),
        ("postgresql+pg8000://h/class", "needs a driver that is not installed .No module named 'pg8000'"),
    ],
)
def test_an_address_that_is_none(address: str, words: str) -> None:
    with pytest.raises(GradebookError, match=words):
        make_engine(address)


def import_roster(folder: Path) -> Result:
    (folder / "roster.csv").write_text("id,first,last,email\nada,Ada,Lovelace,ada@example.org\n")
    return CliRunner().invoke(app, ["roster", str(folder / "roster.csv"), "--class", str(folder)])


def test_a_missing_driver_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    done = import_roster(write_config(tmp_path, f'c.CourseDirectory.db_url = "{SERVER}"'))
    assert done.exit_code == 1
    assert "needs a driver that is not installed" in done.output
    assert 'pip install "vit-course[postgres]"' in done.output
    assert "secret" not in done.output


def test_a_roster_makes_no_new_gradebook_where_one_was_lost(tmp_path: Path) -> None:
    (tmp_path / "release" / "01_patchify").mkdir(parents=True)
    (tmp_path / "release" / "01_patchify" / "01_patchify.ipynb").write_text("{}")
    done = import_roster(write_config(tmp_path))
    assert f"the gradebook {tmp_path}/gradebook.db is gone" in done.output
    assert not (tmp_path / "gradebook.db").exists()


def test_nbgrader_names_a_missing_driver_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for home, name in ((NbGrader, "start"), (BaseConverter, "convert_notebooks"), (NbGraderAPI, "gradebook")):
        monkeypatch.setattr(home, name, home.__dict__[name])
    install_fault_messages()
    start = NbGrader.start
    install_fault_messages()
    assert NbGrader.start is start, "a configuration is read twice"
    command = NbGrader(coursedir=CourseDirectory(db_url="postgresql+pg8000://teacher:secret@h/class"))
    said: list[str] = []
    monkeypatch.setattr(command.log, "error", lambda message, *values: said.append(message % values))
    with pytest.raises(SystemExit):
        command.start()
    assert said[0].startswith("the gradebook postgresql+pg8000://teacher:***@h/class needs a driver")
    assert 'pip install "vit-course[postgres]"' in said[0]
