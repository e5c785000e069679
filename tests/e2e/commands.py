"""Commands as a person types them: each in a process of its own, and nothing can be reached by the network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import GIVE_UP

ROOT = Path(__file__).parents[2]
_IN_TURN = ROOT / "tests" / "journeys" / "nbgrader_commands.py"


def make_environment(**more: str) -> dict[str, str]:
    """As in an activated environment, in which nbgrader, alembic and vit-course are found by their bare names."""
    offline = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "PIP_NO_INDEX": "1"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, **offline, "PATH": path, **more}


def make_command(*arguments: object) -> list[str]:
    """`vit-course` with these words."""
    return [sys.executable, "-m", "vit_course", *map(str, arguments)]


def run_vit_course(*arguments: object, cwd: Path, status: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    """Run one of the course's commands in a folder; fail with all that it says on another exit status.

    Args:
        arguments: the words of the command.
        cwd: the folder.
        status: the exit status that is asserted.
        more: variables of its environment.
    """
    command, environment = make_command(*arguments), make_environment(**more)
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=GIVE_UP
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def run_nbgrader(folder: Path, *command: str, status: int = 0) -> str:
    """Run one of nbgrader's commands as an instructor does and give its log; fail with it on another exit status."""
    return _run_and_give_log(folder, ["nbgrader", *command], status)


def run_nbgrader_in_turn(folder: Path, *commands: list[str]) -> str:
    """Run several one after the other in one process, which imports torch once, and give what all have said."""
    return _run_and_give_log(folder, [sys.executable, str(_IN_TURN), json.dumps(commands)], 0)


def _run_and_give_log(folder: Path, words: list[str], status: int) -> str:
    done = subprocess.run(
        words, cwd=folder, env=make_environment(), capture_output=True, text=True, check=False, timeout=GIVE_UP
    )
    log = f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, log
    return log


def start_nbgrader(folder: Path, log: Path, *command: str) -> subprocess.Popen[bytes]:
    """Start one of nbgrader's commands, whose log goes into a file."""
    with log.open("wb") as stream:
        return subprocess.Popen(
            ["nbgrader", *command], cwd=folder, env=make_environment(), stdout=stream, stderr=stream
        )
