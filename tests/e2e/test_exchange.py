"""The page on JupyterHub, by real accounts: a lesson through nbgrader's exchange and back, and who may read what."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.accounts import ROOT, Accounts, needs_root, open_accounts
from tests.e2e.guides import Block, read_blocks
from tests.journeys.graded_class import GradedClass
from tests.machine import needs_sandbox

pytestmark = [needs_root, needs_sandbox, pytest.mark.proof]
LESSON = "00_start"
GUIDE = "jupyterhub.md"


@dataclass(frozen=True)
class HubClass:
    """A class after a lesson went there and back, and what each block of the page printed."""

    accounts: Accounts
    printed: list[str]

    @property
    def exchange(self) -> Path:
        return self.accounts.base / "srv" / "nbgrader" / "exchange"

    @property
    def folder(self) -> Path:
        return self.accounts.find_home("teacher") / "class"

    def read_feedback(self, role: str) -> str:
        (found,) = (self.accounts.find_home(role) / LESSON / "feedback").glob(f"*/{LESSON}.html")
        return found.read_text(encoding="utf-8")


def adapt_block(made: Accounts, block: Block) -> tuple[str, str]:
    """Who types a block, and the block with this test's folders for the machine's."""
    commands = block.commands.replace("/srv/", f"{made.base}/srv/").replace("/etc/", f"{made.base}/etc/")
    return block.mark.removeprefix("as "), commands


def save_model_answer(made: Accounts, role: str) -> None:
    """Do what a student does between fetching and submitting: the model answer, saved as their own."""
    model = json.loads((ROOT / "solutions" / f"{LESSON}.ipynb").read_bytes())
    path = made.find_home(role) / LESSON / f"{LESSON}.ipynb"
    path.write_text(json.dumps(model), encoding="utf-8")


@pytest.fixture(scope="module")
def hub() -> Iterator[HubClass]:
    with open_accounts(["teacher", "ada", "ben"]) as made:
        blocks = [block for block in read_blocks(GUIDE) if block.mark.startswith("as ")]
        printed = []
        for block in blocks:
            role, commands = adapt_block(made, block)
            if "submit" in commands:
                save_model_answer(made, "ada")
                made.run("ben", f"nbgrader fetch_assignment {LESSON}; nbgrader submit {LESSON}")
            if "collect" in commands:  # cleo's came by mail
                mailed = made.find_home("teacher") / "class" / "submitted" / "cleo" / LESSON
                made.run("teacher", f"mkdir -p {mailed}; cp class/release/{LESSON}/{LESSON}.ipynb {mailed}")
            printed.append(made.run(role, commands))
        made.run("ben", f"nbgrader fetch_feedback {LESSON}")
        yield HubClass(made, printed)


def test_everybody_has_their_points(hub: HubClass) -> None:
    hub.accounts.run("teacher", "cd class; nbgrader export")
    exported = GradedClass(hub.folder, LESSON).read_exported()
    rows = {student: float(row["score"]) for student, row in exported.items()}
    ada, ben = (hub.accounts.names[role] for role in ("ada", "ben"))
    assert rows.keys() == {ada, ben, "cleo"}
    assert rows[ada] > rows[ben] == rows["cleo"] == 0


def test_feedback_comes_back_to_its_student_alone(hub: HubClass) -> None:
    assert hub.printed[-1].strip().endswith(f"{LESSON}.html")
    assert "checks pass" in hub.read_feedback("ada")
    assert "is not written yet" in hub.read_feedback("ben")
    pages = list((hub.exchange / "vit_course" / "feedback").iterdir())
    assert len(pages) == 2
    said = hub.accounts.run("ben", f"ls {hub.exchange}/vit_course/feedback", None)
    assert "Permission denied" in said
    assert not any(page.name in said for page in pages)


def test_work_that_came_by_mail_stops_nobody_s_feedback(hub: HubClass) -> None:
    grading = hub.printed[-2]
    assert "cleo: not released, for it was not handed in by 'nbgrader submit'" in grading
    assert "Traceback" not in grading


def test_neither_answers_nor_hidden_checks_lie_in_the_exchange(hub: HubClass) -> None:
    outbound = hub.exchange / "vit_course" / "outbound"
    assert [path.name for path in outbound.rglob("*") if path.is_file()] == [f"{LESSON}.ipynb"]
    released = (outbound / LESSON / f"{LESSON}.ipynb").read_bytes()
    assert released.rstrip() == (ROOT / "notebooks" / f"{LESSON}.ipynb").read_bytes().rstrip()


@pytest.mark.parametrize(
    "place",
    [
        "class",
        "class/hidden",
        f"class/source/{LESSON}/{LESSON}.ipynb",
        "class/gradebook.db",
        "class/.vit_course/secret",
    ],
)
def test_a_student_reads_nothing_of_the_class_folder(hub: HubClass, place: str) -> None:
    path = hub.accounts.find_home("teacher") / place
    assert path.exists()
    assert "Permission denied" in hub.accounts.run("ada", f"stat {path}", None)


def test_a_student_neither_sees_nor_moves_what_others_hand_in(hub: HubClass) -> None:
    inbound = hub.exchange / "vit_course" / "inbound"
    assert len(list(inbound.iterdir())) == 2
    assert "Permission denied" in hub.accounts.run("ben", f"ls {inbound}", None)
    moved = hub.accounts.run("ben", f"mv {hub.exchange}/vit_course {hub.exchange}/mine", None)
    assert "Operation not permitted" in moved


def test_a_student_s_account_runs_a_check(hub: HubClass) -> None:
    program = "from vit_course import check, patchify; print(check('patchify', patchify))"
    assert "checks pass" in hub.accounts.run("ada", f'python -c "{program}"')


@pytest.fixture(scope="module")
def closed_commands(hub: HubClass) -> Path:
    """A folder of commands that run a copy of the clone, whose answers the page takes from all but the teacher."""
    clone, commands = hub.accounts.base / "srv" / "vit_course", hub.accounts.base / "closed"
    for name in ("exercise_kit", "vit_course", "solutions", "notebooks", "figures", "tests/hidden"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", clone)
    (lines,) = [block for block in read_blocks(GUIDE) if "chmod -R go=" in block.commands]
    _, typed_lines = adapt_block(hub.accounts, lines)
    hub.accounts.run("root", typed_lines.replace("chown -R teacher ", f"chown -R {hub.accounts.names['teacher']} "))
    shutil.copytree(hub.accounts.base / "bin", commands)
    for script in commands.iterdir():
        script.write_text(script.read_text().replace(f"PYTHONPATH={ROOT}:", f"PYTHONPATH={clone}:"))
    return commands


@pytest.mark.parametrize(
    ("role", "command", "status", "words"),
    [
        ("ada", "vit-course doctor", 0, "missing Hidden checks"),
        ("ada", "vit-course doctor", 0, "this account may not read"),
        ("ada", "vit-course new-class mine", 1, "this account may not read"),
        ("ada", "vit-course simulate mine", 1, "this account may not read"),
        ("ada", "vit-course build", 1, "this account may not read"),
        ("ada", "python -c \"from vit_course import check; print(check('one_hot', 3))\"", 0, "one_hot"),
        ("teacher", "vit-course doctor", 0, "fine    Hidden checks"),
        ("teacher", "vit-course new-class closed", 0, "Next (the folder's README.md says more)"),
    ],
)
def test_on_a_clone_that_is_closed_each_command_works_or_says_so(
    hub: HubClass, closed_commands: Path, role: str, command: str, status: int, words: str
) -> None:
    said = hub.accounts.run(role, f"PATH={closed_commands}:$PATH; {command}", status)
    assert words in said
    assert "Traceback" not in said


def test_who_submits_again_is_graded_again_and_a_secret_that_is_none_stops_nobody(hub: HubClass) -> None:
    """Ada writes what she likes beside her notebook; nbgrader would read it when it releases everybody's pages."""
    save_model_answer(hub.accounts, "ben")
    for role in ("ada", "ben"):
        hub.accounts.run(role, f"nbgrader submit {LESSON}")
    newest = max((hub.exchange / "vit_course" / "inbound").glob(f"{hub.accounts.names['ada']}+*"))
    (newest / "submission_secret.txt").write_bytes(b"\xff\xfe" * 10)
    (grading,) = [block for block in read_blocks(GUIDE) if "collect" in block.commands]
    log = hub.accounts.run(*adapt_block(hub.accounts, grading))
    assert log.count("Updating submission") == 2
    assert "is not nbgrader's, and is set aside" in log
    assert f"{hub.accounts.names['ada']}: not released" in log
    assert "Traceback" not in log
    hub.accounts.run("ben", f"nbgrader fetch_feedback {LESSON}")
    first, second = sorted((hub.accounts.find_home("ben") / LESSON / "feedback").iterdir())
    pages = [(folder / f"{LESSON}.html").read_text(encoding="utf-8") for folder in (first, second)]
    assert ["is not written yet" in page for page in pages] == [True, False]


def test_the_page_s_folders_are_there_and_its_settings_are_python() -> None:
    text = (ROOT / "docs" / "instructors" / GUIDE).read_text(encoding="utf-8")
    for part in text.split("```python\n")[1:]:
        compile(part.partition("```")[0], GUIDE, "exec")
    for name in ("solutions", "tests", "vit_course/staff"):
        assert f"/srv/vit_course/{name}" in text
        assert stat.S_ISDIR((ROOT / name).stat().st_mode)
