"""A teacher's own exercise, by the guide: every command and every file of it, and what an error in one costs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.commands import ROOT, make_environment
from tests.e2e.guides import Block
from tests.journeys.graded_class import GradedClass

pytestmark = pytest.mark.proof

GUIDE = ROOT / "docs" / "own_exercise.md"
FOLLOWED, _, IN_TROUBLE = GUIDE.read_text("utf-8").partition("\n## When something is wrong\n")
LESSON = "50_count_tokens"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$|^((?:    [^\s][^\n]*\n)+)", re.MULTILINE | re.DOTALL)


class Shell:
    """Runs commands as a person at a terminal does: ``cd`` goes on to the next one."""

    def __init__(self, home: Path) -> None:
        self.folder = home
        self._environment = make_environment(
            PYTHONPATH=str(ROOT),
            XDG_CONFIG_HOME=str(home / "config"),
            XDG_CACHE_HOME=str(home / "cache"),  # results are sealed with the secret in the other
            COLUMNS="200",
        )

    def run(self, command: str, status: int = 0, shows_code: bool = False) -> str:
        if command.startswith("cd "):
            self.folder = self.folder / command[3:]
            return ""
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == status, f"{command}\n{said}"
        assert shows_code or "Traceback" not in said
        return said


@pytest.fixture(scope="module")
def followed_guide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, dict[str, str]]:
    """The guide, followed to the word: a shell in its class folder, and what each command said."""
    clone = tmp_path_factory.mktemp("guide") / "clone"
    clone.mkdir()
    shell, said, output = Shell(clone), {}, ""
    for language, content, commands in _BLOCK.findall(FOLLOWED):
        if language == "diff":
            subprocess.run(["git", "apply", "-"], input=content, text=True, cwd=shell.folder, check=True)
        elif language == "toml":
            (shell.folder / "class.toml").write_text(content)
        elif language == "text":
            assert find_unseen(content, output) == []
        for command in commands.splitlines():
            said[command.strip()] = output = shell.run(command.strip())
    return shell, said


def find_unseen(text: str, output: str) -> list[str]:
    """The lines of a block of the guide that a command's output does not have."""
    return Block("", "", tuple(text.splitlines())).find_unseen_lines(output)


def test_the_skeleton_is_proven_as_it_is(followed_guide) -> None:
    _, said = followed_guide
    assert "count_tokens: the lesson's answer passes, and its 3 known mistakes are caught" in said["vit-course build"]
    assert "4 of 4" in said[f"vit-course grade source/{LESSON}"]


def test_grading_names_the_mistake_and_the_report_tells_of_it(followed_guide) -> None:
    shell, said = followed_guide
    graded = said["vit-course grade submitted"]
    assert re.search(rf"ada\s+{LESSON}\s+4 of 4", graded)
    assert re.search(rf"bob\s+{LESSON}\s+1 of 4\s+count_tokens: square image", graded)
    assert "square image" in (shell.folder / "report.html").read_text()
    by_nbgrader = GradedClass(shell.folder, LESSON)
    assert "square image" in by_nbgrader.read_feedback("bob")
    scores = [list(by_nbgrader.read_auto_scores(student).values()) for student in ("ada", "bob")]
    assert scores == [[4], [1]]


def test_students_get_the_public_part_and_no_answer(followed_guide, tmp_path: Path) -> None:
    shell, _ = followed_guide
    students = shell.folder.parent / "vit-students"
    wheel = next(students.glob("vit_course-*+class.*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "vit_course/class_exercises/count_tokens.py" in names
    assert not [name for name in names if name.endswith("test_count_tokens.py") or "staff" in name or LESSON in name]
    answer = "return (height // patch_size) * (width // patch_size)"
    notebook = (students / "notebooks" / f"{LESSON}.ipynb").read_text()
    assert answer not in notebook
    assert 'check(\\"count_tokens\\", count_tokens, points=4)' in notebook
    with zipfile.ZipFile(wheel) as packed:
        assert not [name for name in names if answer.encode() in packed.read(name)]
        packed.extractall(tmp_path)
    code = (
        "import sys; sys.path.insert(0, '.'); from vit_course import check\n"
        "print(check('count_tokens', lambda height, width, patch_size: (height // patch_size) ** 2))"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "*square image*" in done.stdout, done.stdout + done.stderr


def test_a_rehearsal_gets_the_grades_that_it_has_to(followed_guide) -> None:
    _, said = followed_guide
    assert "The grades of 4 submissions are what they have to be" in said["vit-course simulate ../rehearsal --check"]


def test_our_lessons_are_as_the_class_wants_them(followed_guide) -> None:
    shell, said = followed_guide
    assert "patchify_again" in said["vit-course build"]
    whole = r"patchify_again: (\d+) of \1 checks pass, (\S+) of \2 points"
    assert re.search(whole, said["vit-course grade source/51_patchify_again"])
    graded = shell.run("vit-course grade source/01_patchify")
    assert re.search(r"^patchify: .*, 5 of 5 points", graded, re.MULTILINE)


def test_a_lesson_that_the_class_leaves_out_is_neither_released_nor_simulated(followed_guide) -> None:
    shell, said = followed_guide
    assert "removed source/10_modern/10_modern.ipynb: class.toml leaves it out" in said["vit-course build"]
    assert not (shell.folder / "source" / "10_modern").exists()
    shell.run("vit-course release ../vit-later")
    released = {path.stem: path.read_text() for path in (shell.folder.parent / "vit-later" / "notebooks").iterdir()}
    assert {"07_experiments", LESSON} <= released.keys(), "the core, and what the class has added"
    assert released.keys().isdisjoint({"09_fine_tuning", "10_modern"})
    assert 'check(\\"patchify\\", patchify, points=5)' in released["01_patchify"]
    shell.run("vit-course simulate ../wanted --students 1 --lesson 01_patchify")
    assert "are what they have to be" in shell.run("vit-course simulate ../wanted --check")
    assert not (shell.folder.parent / "wanted" / "source" / "10_modern").exists()


@pytest.fixture
def breakable_class(followed_guide) -> Shell:
    """The class, whose files a test may break; afterward they are whole again."""
    shell, _ = followed_guide
    kept = {name: (shell.folder / name).with_name(f".kept-{name}") for name in ("exercises", "lessons", "hidden")}
    for name, copy in kept.items():
        shutil.copytree(shell.folder / name, copy)
    (shell.folder / "submitted" / "ada" / "01_patchify").mkdir(exist_ok=True)
    shutil.copy(shell.folder / "source/01_patchify/01_patchify.ipynb", shell.folder / "submitted/ada/01_patchify/")
    yield shell
    for name, copy in kept.items():
        shutil.rmtree(shell.folder / name)
        copy.rename(shell.folder / name)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "hidden/test_count_tokens.py",
            lambda _: "def test_it(student)\n",
            "hidden/test_count_tokens.py:1: SyntaxError",
        ),
        (
            "exercises/count_tokens.py",
            lambda text: f"{text}\n\nnothing\n",
            r"exercises/count_tokens.py:\d+: NameError: name 'nothing'",
        ),
        (
            f"lessons/{LESSON}.py",
            lambda text: text.replace("def count_tokens(", "def counted("),
            f"lessons/{LESSON}.py defines no count_tokens",
        ),
    ],
    ids=["hidden", "public", "answer"],
)
def test_an_error_in_it_costs_nobody_a_point_and_the_rest_is_graded(
    breakable_class: Shell, file: str, change: Callable[[str], str], message: str
) -> None:
    path = breakable_class.folder / file
    path.write_text(change(path.read_text() if path.is_file() else ""))
    said = breakable_class.run("vit-course grade submitted --json graded.json", status=1)
    graded = {
        (each["student"], each["assignment"]): each
        for each in json.loads((breakable_class.folder / "graded.json").read_text())["submissions"]
    }
    assert graded["ada", "01_patchify"]["score"] == graded["ada", "01_patchify"]["max_score"]
    assert graded["ada", LESSON]["status"] == "graded"
    assert re.search(message, graded["ada", LESSON]["reason"]), graded["ada", LESSON]["reason"]
    assert re.search(message, said)


@pytest.mark.parametrize("by", ["import nowhere\n", "nowhere("], ids=["imported", "run"])
def test_nbgrader_lets_a_broken_exercise_wait_for_a_person(breakable_class: Shell, by: str) -> None:
    file = breakable_class.folder / "exercises" / "count_tokens.py"
    whole = file.read_text()
    file.write_text(whole.replace("probe.sizes(", by) if by == "nowhere(" else f"{whole}{by}")
    said = breakable_class.run(f"nbgrader autograde {LESSON} --force", shows_code=True)
    assert re.search(r"exercises/count_tokens.py.*\d+", said)
    graded = GradedClass(breakable_class.folder, LESSON)
    assert [list(graded.read_grades(student).values()) for student in ("ada", "bob")] == [[(None, True)]] * 2
    waits = re.search(r"0 graded, 0 not graded, 0 missing, 2 wait for (exercises/count_tokens.py:\d+)\n", said)
    assert waits, said
    assert re.search(r"ada\s+– of 4", said)
    again = breakable_class.run("vit-course grade submitted", status=1, shows_code=True)
    ((_, text, _),) = _BLOCK.findall(IN_TROUBLE)
    assert find_unseen(re.sub(r"exercises/\S+", waits[1], text), again) == []
    breakable_class.run(f"nbgrader generate_feedback {LESSON} --force")
    assert "count_tokens: not graded yet, – of 4 points" in graded.read_feedback("ada")
    file.write_text(whole)
    assert re.search(r"bob\s+1 of 4", breakable_class.run(f"nbgrader autograde {LESSON}")), "without --force"


def test_an_error_in_a_hidden_file_of_the_course_stops_its_exercises_alone(breakable_class: Shell) -> None:
    (breakable_class.folder / "hidden" / "test_unpatchify.py").write_text("def test_it(student)\n")
    said = breakable_class.run("vit-course grade submitted --json graded.json", status=1)
    assert re.search(r"ada\s+01_patchify\s+13 of 13, – of 5 ", said)
    assert re.search(r"2 of 3 graded, 1 waits for hidden/test_unpatchify.py:\d+\n", said)
    (unpatchify,) = (
        exercise
        for each in json.loads((breakable_class.folder / "graded.json").read_text())["submissions"]
        for exercise in each["exercises"]
        if exercise["name"] == "unpatchify"
    )
    assert (unpatchify["score"], unpatchify["checks"]) == (0.0, [])


def test_a_folder_that_is_handed_in_as_a_class_is_not_taken_for_one(followed_guide, tmp_path: Path) -> None:
    shell, _ = followed_guide
    there = Shell(tmp_path)
    for name in ("hidden", "exercises", "submitted/eve/01_patchify"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "nbgrader_config.py").write_text("")
    for name in ("hidden/test_patchify.py", "hidden/conftest.py", "exercises/patchify_again.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    shutil.copy(shell.folder / "source/01_patchify/01_patchify.ipynb", tmp_path / "submitted/eve/01_patchify")
    said = there.run("vit-course grade .", status=2)
    assert "looks like a class folder" in said
    assert "--class" in said
    assert not (tmp_path / "ran").exists()
