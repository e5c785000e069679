"""Every command of the instructors' guides, in order, as a reader types it; and what the guides say that it shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from nbgrader.apps.nbgraderapp import NbGraderApp
from typer.testing import CliRunner

from exercise_kit.nbgrader.class_folder import new_class
from tests.e2e.commands import ROOT, make_environment
from tests.e2e.guides import GUIDES, Block, read_blocks
from tests.machine import needs_sandbox
from tests.waiting import GIVE_UP
from vit_course.cli import app

# one class goes through them, as a reader takes it; elsewhere are the pages on JupyterHub (test_exchange.py), on the
# gradebook (test_gradebook.py) and on exercises of one's own (test_own_exercise.py)
IN_ORDER = (
    *("quickstart.md", "collecting.md", "validate.md", "term.md", "by_hand.md"),
    *("../grades.md", "../report.md", "sandbox_and_privacy.md"),
)
GUIDES_RUN = (*sorted(path.name for path in GUIDES.glob("*.md")), "../grades.md", "../report.md", "../gradebook.md")
# what the page says to fetch from Canvas, before its commands; and what these have written, after them
GRADEBOOK = """cat > gradebook.csv <<'END'
Student,ID,SIS User ID,SIS Login ID,Section
    Points Possible,,,,
"Lovelace, Ada",1815,,ada,First
"Bitdiddle, Ben",1900,,ben,First
END
"""
WRITTEN = (
    "Student,ID,SIS User ID,SIS Login ID,Section,00_start",
    '"Lovelace, Ada",1815,,ada,First,2',
    "First name,Last name,ID number,Email address,00_start,00_start (feedback)",
    "Ada,Lovelace,ada,ada@example.org,2,normalize_images 2 of 2",
)
AROUND = {"../grades.md": (Block(GRADEBOOK, "", ()), Block("cat canvas.csv moodle.csv\n", "", WRITTEN))}
AFTER = "@@ block {} @@"


def run_in_order(blocks: list[Block], here: Path) -> list[str]:
    """Run blocks in one shell that stops at the first failure, and give what each printed.

    The prologue: the environment is activated, the shell stands where a reader stands after `cd vit_course`, in a
    folder beside which the class will be made, and nothing can be reached by the network.
    """
    home = here / "home"
    home.mkdir()
    marked = [f"{block.commands}\necho '{AFTER.format(number)}'" for number, block in enumerate(blocks)]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "exec 2>&1\n" + "\n".join(marked)],
        cwd=here / "vit_course",
        env=make_environment(HOME=str(home), JUPYTER_CONFIG_DIR=str(home / ".jupyter")),
        capture_output=True,
        text=True,
        check=False,
        timeout=GIVE_UP,
    )
    outputs = re.split(AFTER.format(r"\d+") + "\n", done.stdout)
    assert done.returncode == 0, f"{blocks[len(outputs) - 1].commands}\n{outputs[-1]}"
    return outputs


@needs_sandbox
@pytest.mark.proof
def test_every_command_of_the_guides_works_and_shows_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "vit_course").mkdir()
    blocks: list[Block] = []
    for guide in IN_ORDER:
        first, last = AROUND.get(guide, (None, None))
        blocks += [block for block in (first, *read_blocks(guide), last) if block and block.is_run]
    for block, output in zip(blocks, run_in_order(blocks, tmp_path), strict=False):
        assert not block.find_unseen_lines(output), (
            f"{block.find_unseen_lines(output)}\nafter\n{block.commands}\nthere is\n{output}"
        )
        assert "Traceback" not in output
    kept = tmp_path / "kept" / "grades.csv"
    assert "ada" in kept.read_text()
    assert "ben" not in kept.read_text(), "who left is in no file"
    left = [path for path in (tmp_path / "my-class").rglob("*") if path.is_file()]
    assert left
    assert not [path for path in left if b"Lovelace" in path.read_bytes()], "a name is left after the term"


def test_every_guide_is_run() -> None:
    assert set(GUIDES_RUN) == {*IN_ORDER, "jupyterhub.md", "../gradebook.md"}
    for guide in GUIDES_RUN:
        assert any(block.is_run for block in read_blocks(guide)), guide


@pytest.mark.parametrize("guide", sorted(path.stem for path in GUIDES.glob("*.md")))
def test_every_guide_stands_in_the_list_of_the_site(guide: str) -> None:
    listed = (GUIDES.parent / "site" / "guides" / "index.md").read_text(encoding="utf-8").splitlines()
    assert f"instructors/{guide}" in listed, "Sphinx refuses to build a site with a page that no list names"


@pytest.mark.parametrize("guide", GUIDES_RUN)
def test_what_is_not_run_says_why_and_is_a_shell_s(guide: str) -> None:
    for block in read_blocks(guide):
        assert re.fullmatch(r"|not run in tests: .{10,}|as (root|teacher|ada|ben)", block.mark), block.mark
        subprocess.run(["bash", "-n", "-c", block.commands], check=True)


@pytest.mark.parametrize("guide", GUIDES_RUN)
def test_a_command_that_stands_in_a_sentence_exists_with_its_options(guide: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", (GUIDES / guide).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for program, name, rest in re.findall(r"`(vit-course|nbgrader) ([\w-]+)([^`]*)`", prose):
        if program == "nbgrader":
            assert name in NbGraderApp.subcommands, name
            continue
        result = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "300"})
        assert result.exit_code == 0, name
        assert all(option in result.output for option in re.findall(r"--[\w-]+", rest)), (name, rest)


def test_settings_that_the_guides_name_are_those_of_a_new_class(tmp_path: Path) -> None:
    config = (new_class(tmp_path / "class", ROOT).path / "nbgrader_config.py").read_text()
    said = "\n".join(path.read_text(encoding="utf-8") for path in GUIDES.glob("*.md"))
    for setting in set(re.findall(r"c\.LateSubmissionPlugin\.\w+", said)):
        assert f"{setting} = " in config, setting
