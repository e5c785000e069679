"""`nbgrader autograde` killed at every step: the same command grades what was begun, as if nobody had killed it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.e2e.commands import ROOT, make_environment, run_nbgrader, start_nbgrader
from tests.journeys.graded_class import GradedClass
from tests.machine import needs_sandbox
from tests.waiting import GIVE_UP, wait_until

pytestmark = [pytest.mark.proof, needs_sandbox]

LESSON = "00_start"
STUDENT = "ada"
INTERRUPTED = "its grading was interrupted: graded again"
# in the class folder: this process dies at a step of the first student's grading, or in the middle of one
KILLER = """
import os
from importlib import import_module

from nbconvert.writers import FilesWriter


def die(*_, **__):
    {wait}
    os.kill(os.getpid(), {signal})


def half(build_directory, text):
    path = os.path.join(build_directory, "{lesson}.ipynb")
    with open(path, "w") as file:
        file.write(text[: len(text) // 2])
    die()


def install():
    if "{step}" == "half a page":
        before, seen = FilesWriter.write, []

        def write(self, output, resources, **options):
            seen.append(1)
            return half(self.build_directory, output) if len(seen) == 2 else before(self, output, resources, **options)

        FilesWriter.write = write
        return
    module, owner, method = "{place}".split(":")
    owner = getattr(import_module(module), owner)
    before = getattr(owner, method)

    def step(*arguments, **options):
        if "{moment}" == "after":
            before(*arguments, **options)
        die()

    setattr(owner, method, step)
"""
AUTOGRADE = "exercise_kit.nbgrader.autograde:JudgedAutograde"
# step → what the process dies before or after, and whether a page was begun and not finished
STEPS = {
    "nothing written": (f"before {AUTOGRADE}:init_assignment", False),
    "in the gradebook": ("after nbgrader.converters.autograde:Autograde:init_assignment", True),
    "a page to be judged": ("after nbconvert.writers:FilesWriter:write", True),
    "a result": ("after exercise_kit.nbgrader.nbgrader_judge:GraderCache:find_result", True),
    "a page filled in": ("after exercise_kit.nbgrader.nbgrader_judge:JudgeNotebook:preprocess", True),
    "one point of many": ("after exercise_kit.nbgrader.nbgrader_judge:SaveGrades:_add_score", True),
    "points": ("after nbgrader.preprocessors:SaveAutoGrades:preprocess", True),
    "late penalty": ("after nbgrader.preprocessors:AssignLatePenalties:preprocess", True),
    "half a page": ("after none:none:none", True),
    "a page": (f"before {AUTOGRADE}:set_permissions", False),
    "the last step": (f"after {AUTOGRADE}:run_post_convert_hook", False),
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class HandedIn:
    """A class in which nobody is graded, and what its gradebook says when nobody kills the grader."""

    folder: Path
    rows: list[tuple[object, ...]]


@pytest.fixture(scope="module")
def submitted_class(tmp_path_factory: pytest.TempPathFactory) -> HandedIn:
    folder = new_class(tmp_path_factory.mktemp("interrupted") / "class", ROOT).path
    run_nbgrader(folder, "generate_assignment", LESSON)
    right = read_model_answers(folder, LESSON)
    write_submissions(folder, LESSON, {STUDENT: right, "ben": {}})
    (folder / "submitted" / STUDENT / LESSON / "timestamp.txt").write_text("2030-02-01 08:00 UTC")
    run_nbgrader(folder, "db", "assignment", "add", LESSON, "--duedate=2030-01-31 23:59 UTC")
    GradedClass(folder, LESSON).configure('c.LateSubmissionPlugin.penalty_method = "by_day"')
    whole = shutil.copytree(folder, folder.with_name("whole"))
    run_nbgrader(whole, "autograde", LESSON)
    shutil.copytree(whole / ".vit_course", folder / ".vit_course", dirs_exist_ok=True)  # so that most need no judge
    return HandedIn(folder, GradedClass(whole, LESSON).read_rows())


def copy_class(handed_in: HandedIn, folder: Path) -> Path:
    return shutil.copytree(handed_in.folder, folder)


def start_autograde_and_die(folder: Path, step: str, by: signal.Signals, wait: str = "pass") -> subprocess.Popen[bytes]:
    """`nbgrader autograde` that kills itself at a step."""
    moment, _, place = STEPS[step][0].partition(" ")
    values = {"step": step, "moment": moment, "place": place, "signal": int(by), "lesson": LESSON, "wait": wait}
    (folder / "killer.py").write_text(KILLER.format(**values))
    program = "import sys, killer; killer.install(); from nbgrader.apps.nbgraderapp import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "autograde", LESSON]
    with (folder / "killed.log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, env=make_environment(), stdout=log, stderr=log)


def assert_as_if_never_killed(folder: Path, handed_in: HandedIn, log: str) -> None:
    assert "2 graded, 0 not graded, 0 missing" in log
    graded = GradedClass(folder, LESSON)
    assert graded.read_rows() == handed_in.rows
    assert "vit_course_place" not in str(graded.read_notebook(STUDENT))


@pytest.mark.parametrize(
    ("step", "by"), [(step, SIGNALS[number % len(SIGNALS)]) for number, step in enumerate(STEPS)], ids=[*STEPS]
)
def test_what_was_begun_and_not_finished_is_graded_again(
    submitted_class: HandedIn, tmp_path: Path, step: str, by: signal.Signals
) -> None:
    folder = copy_class(submitted_class, tmp_path / "class")
    if step == "a result":
        shutil.rmtree(folder / ".vit_course" / "results")
    killed = start_autograde_and_die(folder, step, by).wait(GIVE_UP)
    assert killed == -by, (folder / "killed.log").read_text("utf-8")
    log = run_nbgrader(folder, "autograde", LESSON)
    table = log.partition("the class in one table")[2]
    assert (INTERRUPTED in table) == STEPS[step][1], log
    assert_as_if_never_killed(folder, submitted_class, log)
    if step == "points":
        assert INTERRUPTED not in run_nbgrader(folder, "autograde", LESSON), "once is enough"


def test_what_another_terminal_began_is_graded_when_that_dies(submitted_class: HandedIn, tmp_path: Path) -> None:
    """The second waits for the first, which dies in the middle of a student, and goes on with that student."""
    folder, stop = copy_class(submitted_class, tmp_path / "class"), tmp_path / "stop"
    wait = f"import time\n    while not os.path.exists({str(stop)!r}):\n        time.sleep(0.05)"
    first = start_autograde_and_die(folder, "a page to be judged", signal.SIGKILL, wait)
    page = folder / "autograded" / STUDENT / LESSON / f"{LESSON}.ipynb"
    wait_until(page.exists)
    log = folder / "second.log"
    second = start_nbgrader(folder, log, "autograde", LESSON)
    wait_until(lambda: "take turns" in log.read_text("utf-8") or second.poll() is not None)
    stop.touch()
    assert first.wait(GIVE_UP) == -signal.SIGKILL
    assert second.wait(GIVE_UP) == 0
    said = log.read_text("utf-8")
    assert "take turns" in said
    assert INTERRUPTED in said.partition("the class in one table")[2]
    assert_as_if_never_killed(folder, submitted_class, said)
