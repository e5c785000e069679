"""A class's gradebook in a file and on a server: the same points, and no fault of either costs what was graded."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from nbgrader.api import Gradebook
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.e2e.browser import serve_jupyter_lab
from tests.e2e.button import click_button
from tests.e2e.commands import ROOT, run_nbgrader, start_nbgrader
from tests.e2e.guides import Block, read_blocks
from tests.e2e.postgres import ACCOUNT, BINARIES, Server, needs_postgres
from tests.e2e.test_nbgrader_agrees import LESSON, shorten_lesson
from tests.journeys import graded_class as journeys
from tests.waiting import GIVE_UP
from vit_course.cli import app
from vit_course.demo import STRIPS

pytestmark = pytest.mark.proof
STUDENTS = 12
KINDS = ("right", "strips", "half", "empty")
QUESTION = "patches-or-pixels"
ROSTER = "id,first,last,email\n" + "".join(f"right-{n},Ada,Of {n},ada{n}@example.org\n" for n in range(3))
PATIENCE = 1  # seconds
FEW = ("half-0", "right-1", "right-2", "strips-0")
# in the class folder: what happens after the second student
FAULT = """
import os, sqlite3, subprocess
from pathlib import Path

graded = 0


def after(**_):
    global graded, held
    graded += 1
    if graded == 2:
        {fault}
"""


class GradedClass(journeys.GradedClass):
    """A class, in a file or in a database, with what the grader keeps of it."""

    def list_kept_results(self) -> dict[str, int]:
        """Return what the grader keeps, and when it was written."""
        kept = (self.folder / ".vit_course" / "results").rglob("*.json")
        return {path.name: path.stat().st_mtime_ns for path in kept}

    def export_grades(self) -> str:
        run_nbgrader(self.folder, "export")
        return (self.folder / "grades.csv").read_text("utf-8")


@pytest.fixture(scope="module")
def released_class(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class that has handed in, with a gradebook in which nobody is graded."""
    folder = new_class(tmp_path_factory.mktemp("gradebook") / "class", ROOT).path
    shorten_lesson(folder)
    run_nbgrader(folder, "generate_assignment", LESSON)
    right = read_model_answers(folder, LESSON)
    answers = {
        "right": right,
        "strips": right | {"patchify": STRIPS},
        "half": {"patchify": right["patchify"]},
        "empty": {},
    }
    written = write_submissions(
        folder, LESSON, {f"{KINDS[n % 4]}-{n // 4}": answers[KINDS[n % 4]] for n in range(STUDENTS)}
    )
    written["right-2"].write_text("<html>no notebook</html>")
    changed = written["right-1"].read_text("utf-8").replace('check(\\"unpatchify\\"', 'chek(\\"unpatchify\\"')
    written["right-1"].write_text(changed, "utf-8")
    (folder / "roster.csv").write_text(ROSTER)
    shutil.copyfile(folder / "gradebook.db", folder.parent / "backup.db")
    return folder


@pytest.fixture(scope="module")
def graded_class(released_class: Path) -> GradedClass:
    """The same, graded into its file by nbgrader's command."""
    run_nbgrader(released_class, "autograde", LESSON)
    return GradedClass(released_class, LESSON)


@pytest.fixture
def ungraded_class(graded_class: GradedClass, tmp_path: Path) -> GradedClass:
    """The class of another teacher: what the judge found is kept, and nbgrader has graded nobody."""
    return copy_ungraded(graded_class, tmp_path / "class")


@pytest.fixture
def copied_class(graded_class: GradedClass, tmp_path: Path) -> GradedClass:
    """The graded class, for people who grade by hand."""
    return GradedClass(shutil.copytree(graded_class.folder, tmp_path / "class"), LESSON)


@pytest.fixture
def small_ungraded_class(graded_class: GradedClass, tmp_path: Path) -> GradedClass:
    """A part of it, for the faults."""
    return copy_few_ungraded(graded_class, tmp_path / "class")


def copy_few_ungraded(graded: GradedClass, folder: Path) -> GradedClass:
    course = copy_ungraded(graded, folder)
    for path in (folder / "submitted").iterdir():
        if path.name not in FEW:
            shutil.rmtree(path)
    return course


def copy_ungraded(graded: GradedClass, folder: Path) -> GradedClass:
    shutil.copytree(graded.folder, folder, ignore=shutil.ignore_patterns("autograded", "feedback", "grades.csv"))
    shutil.copyfile(graded.folder.parent / "backup.db", folder / "gradebook.db")
    return GradedClass(folder, LESSON)


@pytest.fixture(scope="module")
def database_server() -> Iterator[Server]:
    # pytest's own folders are closed to the server's account, and too long for a socket's name
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    running = Server(folder)
    yield running
    running.stop()
    shutil.rmtree(folder)


def move_to_database(ungraded: GradedClass, server: Server, name: str) -> GradedClass:
    """The class released anew, into a database."""
    address = server.create_database(name)
    (ungraded.folder / "gradebook.db").unlink()
    ungraded.configure(f'c.CourseDirectory.db_url = "{address}"')
    run_nbgrader(ungraded.folder, "generate_assignment", LESSON, "--force")
    return GradedClass(ungraded.folder, LESSON, database=address)


@needs_postgres
def test_the_same_class_into_both(
    graded_class: GradedClass, ungraded_class: GradedClass, database_server: Server
) -> None:
    other = move_to_database(ungraded_class, database_server, "both")
    run_nbgrader(other.folder, "autograde", LESSON)
    assert other.read_rows() == graded_class.read_rows()
    assert len({row[0] for row in other.read_rows()}) == STUDENTS
    assert "test-cell-edited" in other.export_grades()
    assert other.export_grades() == graded_class.export_grades()
    said = [list_outputs_of_commands(each.folder) for each in (graded_class, other)]
    assert said[0] == said[1]
    assert not (other.folder / "gradebook.db").exists()


def list_outputs_of_commands(folder: Path) -> tuple[str, str]:
    """Return what our commands say that read or write a gradebook, and the page's line on written answers."""
    roster = CliRunner().invoke(app, ["roster", str(folder / "roster.csv"), "--class", str(folder)])
    assert roster.exit_code == 0, roster.output
    report = CliRunner().invoke(app, ["report", str(folder)])
    assert report.exit_code == 0, report.output
    waiting = re.search(
        r"\d+ written answers? waits? for a person|All written answers", (folder / "report.html").read_text()
    )
    assert waiting, "the report has read the gradebook"
    return roster.output, waiting[0]


class Formgrader:
    """formgrader's own programming interface, as its pages use it."""

    def __init__(self, address: str) -> None:
        self.address = f"{address}/formgrader"
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        self.request("/gradebook")

    def request(self, path: str, **changes: object) -> tuple[int, str]:
        """The status and the text; with ``changes``, of a PUT."""
        request = urllib.request.Request(self.address + path, method="PUT" if changes else "GET")
        if changes:
            request.data = json.dumps(changes).encode()
            request.add_header("X-XSRFToken", next(each.value or "" for each in self._cookies if "xsrf" in each.name))
        try:
            with self._opener.open(request, timeout=GIVE_UP) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def find_grade_id(course: GradedClass, student: str = "half-0", question: str = QUESTION) -> str:
    with Gradebook(course.address) as gradebook:
        return str(gradebook.find_grade(question, LESSON, LESSON, student).id)


def assert_usable(course: GradedClass, settings: Path, break_it: Callable[[], Callable[[], None]], words: str) -> None:
    """formgrader while the class is graded; then without its gradebook, and with it again."""
    with serve_jupyter_lab(course.folder, settings) as address:
        pages = Formgrader(address)
        which = f"/api/grade/{find_grade_id(course)}"
        log, answers = course.folder / "log", list[tuple[int, str]]()
        with start_nbgrader(course.folder, log, "autograde", LESSON, "--force") as run:
            while run.poll() is None:
                answers.append(pages.request(f"/api/submissions/{LESSON}"))
                answers.append(pages.request(which, manual_score=round(1 + 0.01 * (len(answers) % 100), 2)))
                time.sleep(0.05)
        said = log.read_text("utf-8")
        assert run.returncode == 0, said
        assert f"{STUDENTS - 1} graded, 1 not graded" in said
        assert {status for status, _ in answers} == {200}, [each for each in answers if each[0] != 200][:1]
        assert len(answers) > 10
        last = json.loads(answers[-1][1])["manual_score"]
        assert json.loads(pages.request(which)[1])["manual_score"] == last
        mend = break_it()
        status, page = pages.request(which)
        assert (status, words in page) == (503, True), (status, page)
        mend()
        status, page = pages.request(which)
        assert (status, json.loads(page)["manual_score"]) == (200, last)


def test_formgrader_is_usable_with_a_file(ungraded_class: GradedClass, tmp_path: Path) -> None:
    run_nbgrader(ungraded_class.folder, "autograde", LESSON)
    file = ungraded_class.folder / "gradebook.db"

    def lose_gradebook() -> Callable[[], None]:
        file.rename(tmp_path / "away.db")
        return lambda: shutil.move(tmp_path / "away.db", file) and None

    assert_usable(ungraded_class, tmp_path / "settings", lose_gradebook, f"the gradebook {file} is gone")


@needs_postgres
def test_formgrader_is_usable_with_a_server(
    ungraded_class: GradedClass, database_server: Server, tmp_path: Path
) -> None:
    course = move_to_database(ungraded_class, database_server, "formgrader")
    run_nbgrader(course.folder, "autograde", LESSON)

    def lose_gradebook() -> Callable[[], None]:
        database_server.stop()
        return database_server.start

    assert_usable(course, tmp_path / "settings", lose_gradebook, "does not answer")


class OpenPage:
    """What formgrader's script keeps of an answer since its page was opened, and sends back whole when one types."""

    def __init__(self, pages: Formgrader, address: str) -> None:
        self._pages, self._address = pages, address
        self._kept = json.loads(pages.request(address)[1])

    def type_fields(self, **changes: object) -> None:
        status, answer = self._pages.request(self._address, **(self._kept | changes))
        assert status == 200, answer
        self._kept = json.loads(answer)


def test_several_graders_have_what_the_page_says(copied_class: GradedClass, tmp_path: Path) -> None:
    """The four rows of docs/instructors/term.md in order; Ina and Jon have opened each page before anybody types."""
    with Gradebook(copied_class.address) as gradebook:
        comment = f"/api/comment/{gradebook.find_comment(QUESTION, LESSON, LESSON, 'half-0').id}"
    answer, other = (f"/api/grade/{find_grade_id(copied_class, student)}" for student in ("half-0", "half-1"))
    second = f"/api/grade/{find_grade_id(copied_class, question='check-patchify')}"
    with serve_jupyter_lab(copied_class.folder, tmp_path / "settings") as address:
        pages = Formgrader(address)

        def read_fields(which: str, *fields: str) -> list[object]:
            found = json.loads(pages.request(which)[1])
            return [found[field] for field in fields]

        ina, jon = ({each: OpenPage(pages, each) for each in (answer, other, second, comment)} for _ in range(2))
        ina[answer].type_fields(manual_score=1.0)
        jon[other].type_fields(manual_score=2.0)
        jon[second].type_fields(manual_score=3.0)
        assert [read_fields(each, "manual_score") for each in (answer, other, second)] == [[1.0], [2.0], [3.0]]
        jon[comment].type_fields(manual_comment="Jon's")
        assert (read_fields(answer, "manual_score"), read_fields(comment, "manual_comment")) == ([1.0], ["Jon's"])
        jon[answer].type_fields(manual_score=1.5)
        ina[comment].type_fields(manual_comment="Ina's")
        assert (read_fields(answer, "manual_score"), read_fields(comment, "manual_comment")) == ([1.5], ["Ina's"])
        ina[other].type_fields(extra_credit=0.5)
        assert read_fields(other, "manual_score", "extra_credit") == [None, 0.5]
        jon[other].type_fields(manual_score=2.0)
        assert read_fields(other, "manual_score", "extra_credit") == [2.0, None]


def survive_fault(
    course: GradedClass, graded: GradedClass, fault: str, mend: Callable[[], object] = lambda: None
) -> str:
    """Return what `nbgrader autograde` says when a fault comes after its second student.

    When it is mended, the same command makes the same gradebook as without a fault, and nothing is graded twice.
    """
    kept, config = course.list_kept_results(), course.folder / "nbgrader_config.py"
    before = config.read_text("utf-8")
    (course.folder / "fault.py").write_text(FAULT.format(fault=fault))
    course.configure('c.Autograde.post_convert_hook = "fault.after"')
    log = run_nbgrader(course.folder, "autograde", LESSON, status=1)
    mend()
    config.write_text(before, "utf-8")
    for never in ("Traceback", "sqlalche.me", "recently upgraded"):
        assert never not in log, log
    errors = [line for line in log.splitlines() if "| ERROR]" in line and "NOT GRADED" not in line]
    assert len(errors) == 1, log
    assert errors[0].endswith("what was graded is kept, and the same command goes on from there")
    run_nbgrader(course.folder, "autograde", LESSON)
    assert course.read_rows() == [row for row in graded.read_rows() if row[0] in FEW]
    assert course.list_kept_results() == kept
    assert len(list((course.folder / "autograded").glob(f"*/{LESSON}/{LESSON}.ipynb"))) == len(FEW)
    return errors[0].partition("] ")[2]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("os.remove('gradebook.db')", "is gone, or an empty one is in its place: put its backup back"),
        ("os.truncate('gradebook.db', 0)", "is gone, or an empty one is in its place: put its backup back"),
        ("os.truncate('gradebook.db', 9000)", "is damaged (database disk image is malformed)"),
        ("Path('gradebook.db').write_bytes(os.urandom(50_000))", "is damaged (file is not a database)"),
    ],
)
def test_nothing_is_lost_with_a_file_that_vanishes_in_mid_run(
    small_ungraded_class: GradedClass, graded_class: GradedClass, fault: str, words: str
) -> None:
    """Whose backup is from before, or does not exist: those who were graded since then are written into it too."""

    def mend() -> None:
        if "damaged" in words:
            log = run_nbgrader(small_ungraded_class.folder, "generate_assignment", LESSON, "--force", status=1)
            assert words in log
            assert "Traceback" not in log
        if "remove" in fault:
            run_nbgrader(small_ungraded_class.folder, "generate_assignment", LESSON, "--force")
        else:
            shutil.copyfile(graded_class.folder.parent / "backup.db", small_ungraded_class.folder / "gradebook.db")

    said = survive_fault(small_ungraded_class, graded_class, fault, mend)
    assert said.startswith(f"the gradebook {small_ungraded_class.folder}/gradebook.db {words}")


def test_a_file_locked_for_longer_than_we_wait(small_ungraded_class: GradedClass, graded_class: GradedClass) -> None:
    small_ungraded_class.configure(f'c.CourseDirectory.db_url = "{small_ungraded_class.address}?timeout={PATIENCE}"')
    lock = "held = sqlite3.connect('gradebook.db', isolation_level=None); held.execute('BEGIN IMMEDIATE')"
    said = survive_fault(small_ungraded_class, graded_class, lock)
    assert said.startswith(f"the gradebook {small_ungraded_class.folder}/gradebook.db is locked: another program")


def downgrade_gradebook(address: str) -> None:
    """Make of a gradebook one of the revision before nbgrader's newest, which added courses."""
    engine = create_engine(address)
    with engine.begin() as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("assignment") as assignment:
            assignment.drop_column("course_id")
        operations.drop_table("course")
        newest = connection.execute(text("UPDATE alembic_version SET version_num = '282d30a0218e'"))
        assert newest.rowcount == 1
    engine.dispose()


def test_a_file_of_an_older_nbgrader_is_as_it_was_after_the_command_that_is_advised(
    small_ungraded_class: GradedClass, graded_class: GradedClass
) -> None:
    file = small_ungraded_class.folder / "gradebook.db"
    shutil.copyfile(graded_class.folder / "gradebook.db", file)
    downgrade_gradebook(small_ungraded_class.address)
    for command in (("autograde", LESSON), ("export",)):
        log = run_nbgrader(small_ungraded_class.folder, *command, status=1)
        assert f"the gradebook {file} was made by another nbgrader (no such column: assignment.course_id)" in log
        assert "back it up, then run 'nbgrader db upgrade'" in log
        assert "Traceback" not in log
    run_nbgrader(small_ungraded_class.folder, "db", "upgrade")
    assert small_ungraded_class.read_rows() == graded_class.read_rows()
    run_nbgrader(small_ungraded_class.folder, "autograde", LESSON)
    assert small_ungraded_class.read_rows() == graded_class.read_rows()
    assert len(small_ungraded_class.export_grades().splitlines()) == 1 + STUDENTS


BROKEN = """
from nbgrader.preprocessors import NbGraderPreprocessor


class Broken(NbGraderPreprocessor):
    def preprocess(self, notebook, resources):
        raise RuntimeError("it broke")
"""


def expect_message(course: GradedClass, button: str, lesson: str, words: str, **settings: str) -> None:
    """A click that cannot be done: formgrader shows its log alone, and in that a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "answers.json"
        (answer,) = click_button(course.folder, button, lesson, ["half-0"], target, **settings).values()
    assert not answer["success"]
    assert "error" not in answer, answer
    assert words in answer["log"]
    assert "Traceback" not in answer["log"]


def test_a_click_that_cannot_be_done_is_a_sentence_and_no_traceback(
    small_ungraded_class: GradedClass, tmp_path: Path
) -> None:
    file = small_ungraded_class.folder / "gradebook.db"
    (small_ungraded_class.folder / "submitted" / "half-0" / "00_start").mkdir()
    expect_message(
        small_ungraded_class,
        "autograde",
        "00_start",
        "00_start has not been released; first: nbgrader generate_assignment",
    )
    run_nbgrader(small_ungraded_class.folder, "autograde", LESSON)
    lock = sqlite3.connect(file, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    patience = {"db_url": f"{small_ungraded_class.address}?timeout={PATIENCE}"}
    for button in ("autograde", "generate_feedback"):
        expect_message(small_ungraded_class, button, LESSON, "is locked: another program has been writing", **patience)
    lock.close()
    kept = file.rename(tmp_path / "kept.db")
    for button in ("autograde", "generate_feedback"):
        expect_message(
            small_ungraded_class, button, LESSON, f"the gradebook {file} is gone, or an empty one is in its place"
        )
    kept.rename(file)
    (small_ungraded_class.folder / "broken.py").write_text(BROKEN)
    small_ungraded_class.configure('c.Autograde.autograde_preprocessors = ["broken.Broken"]')
    expect_message(small_ungraded_class, "autograde", LESSON, "NOT GRADED: the grader failed (RuntimeError: it broke)")


@pytest.fixture
def class_on_small_disk(graded_class: GradedClass) -> Iterator[GradedClass]:
    """The class on a disk of its own."""
    mount = Path(tempfile.mkdtemp(prefix="disk-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(mount)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        mount.rmdir()
        pytest.skip("no right to mount a small disk")
    yield copy_few_ungraded(graded_class, mount / "class")
    subprocess.run(["umount", str(mount)], check=True)
    mount.rmdir()


FILL = """
        with open('filling', 'wb', buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
"""


def test_nothing_is_lost_on_a_disk_that_fills_in_mid_run(
    class_on_small_disk: GradedClass, graded_class: GradedClass
) -> None:
    filling = class_on_small_disk.folder / "filling"
    said = survive_fault(class_on_small_disk, graded_class, FILL.strip(), filling.unlink)
    assert str(class_on_small_disk.folder) in said
    assert "its disk is full: free some space" in said or "No space left on device; see to the disk" in said


def fill_disk(folder: Path) -> Path:
    filling = folder / "filling"
    with filling.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return filling


def test_a_full_disk_when_grades_are_exported(class_on_small_disk: GradedClass) -> None:
    run_nbgrader(class_on_small_disk.folder, "autograde", LESSON)
    before = class_on_small_disk.export_grades()
    filling = fill_disk(class_on_small_disk.folder)
    log = run_nbgrader(class_on_small_disk.folder, "export", status=1)
    file = class_on_small_disk.folder / "grades.csv"
    assert f"nothing more can be written to {file}: No space left on device; see to the disk" in log
    assert "Traceback" not in log
    assert file.read_text("utf-8") == before
    filling.unlink()
    assert class_on_small_disk.export_grades() == before


def test_a_full_disk_when_feedback_is_made(class_on_small_disk: GradedClass) -> None:
    run_nbgrader(class_on_small_disk.folder, "autograde", LESSON)
    filling = fill_disk(class_on_small_disk.folder)
    log = run_nbgrader(class_on_small_disk.folder, "generate_feedback", LESSON, status=1)
    full = "No space left on device; see to the disk"
    assert full in log or "its disk is full: free some space" in log
    assert "Traceback" not in log
    fill_disk(class_on_small_disk.folder)  # what was half written has gone again
    expect_message(class_on_small_disk, "generate_feedback", LESSON, " space")
    filling.unlink()
    run_nbgrader(class_on_small_disk.folder, "autograde", LESSON)
    run_nbgrader(class_on_small_disk.folder, "generate_feedback", LESSON)
    assert len(list(class_on_small_disk.folder.glob(f"feedback/*/{LESSON}/{LESSON}.html"))) == len(FEW)


def test_nothing_is_lost_on_a_disk_that_turns_read_only_in_mid_run(
    class_on_small_disk: GradedClass, graded_class: GradedClass
) -> None:
    disk = class_on_small_disk.folder.parent
    writable = ["mount", "-o", "remount,rw", str(disk)]
    fault = f"subprocess.run(['mount', '-o', 'remount,ro', {str(disk)!r}], check=True)"
    said = survive_fault(class_on_small_disk, graded_class, fault, lambda: subprocess.run(writable, check=True))
    assert str(class_on_small_disk.folder) in said
    assert "cannot be written to (" in said or "Read-only file system; see to the disk" in said


@needs_postgres
def test_nothing_is_lost_when_the_database_server_is_killed_in_mid_run(
    small_ungraded_class: GradedClass, graded_class: GradedClass, database_server: Server
) -> None:
    course = move_to_database(small_ungraded_class, database_server, "killed")
    fault = f"subprocess.run({database_server.stop_command}, check=True, cwd='/')"
    said = survive_fault(course, graded_class, fault, database_server.start)
    assert (
        f"the gradebook postgresql+psycopg://postgres@/killed?host={database_server.folder} does not answer (" in said
    )
    assert "start its server, or mend its address in nbgrader_config.py" in said


@needs_postgres
def test_a_server_s_table_locked_for_longer_than_we_wait(
    small_ungraded_class: GradedClass, graded_class: GradedClass, database_server: Server
) -> None:
    course = move_to_database(small_ungraded_class, database_server, "locked")
    course.configure(f'c.CourseDirectory.db_url = "{course.address}&options=-c%20lock_timeout%3D{PATIENCE}s"')
    lock = f"import psycopg; held = psycopg.connect('host={database_server.folder} user=postgres dbname=locked')"
    said = survive_fault(course, graded_class, f"{lock}; held.execute('LOCK TABLE grade IN EXCLUSIVE MODE')")
    assert "is locked: another program" in said


def run_block(block: Block, server: Server, folder: Path) -> None:
    """A block of the page, by root, who may be anybody on the server, or by the teacher in the class folder."""
    is_root = block.mark == "as root"
    commands = block.commands if os.getuid() == 0 else block.commands.replace(f"runuser -u {ACCOUNT} -- ", "")
    path = os.pathsep.join([str(Path(sys.executable).parent), str(BINARIES), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PGUSER": ACCOUNT if is_root else "teacher"}
    where = server.folder if is_root else folder
    subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=where, env=environment, check=True)


@needs_postgres
def test_the_page_s_commands_move_a_class_and_bring_a_backup_back(
    copied_class: GradedClass, database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/gradebook.md from top to end, with points that a person gave, which no grader can make again."""
    page = (ROOT / "docs" / "gradebook.md").read_text("utf-8")
    setting, program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.setenv("PGHOST", str(database_server.folder))
    monkeypatch.setenv("PGUSER", "teacher")
    with Gradebook(copied_class.address) as gradebook:
        gradebook.find_grade(QUESTION, LESSON, LESSON, "half-1").manual_score = 1.5
        gradebook.db.commit()
    rows, grades = copied_class.read_rows(), copied_class.export_grades()
    assert any("half-1" in row and 1.5 in row for row in rows)
    (copied_class.folder / "move.py").write_text(program)
    for block in read_blocks("../gradebook.md"):
        if block.is_run:
            run_block(block, database_server, copied_class.folder)
    copied_class.configure(setting)
    moved = GradedClass(copied_class.folder, LESSON, database="postgresql+psycopg:///vit_class")
    backup = GradedClass(copied_class.folder, LESSON, database=f"sqlite:///{copied_class.folder}/gradebook-backup.db")
    assert backup.read_rows() == rows
    (copied_class.folder / "gradebook.db").unlink()
    assert moved.read_rows() == rows
    assert moved.export_grades() == grades
