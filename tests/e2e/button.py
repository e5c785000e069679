"""formgrader's buttons without a browser: what its server calls for a click, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.commands import ROOT, make_environment

_CLICKS = """
import json, sys
from nbgrader.apps import NbGraderAPI
from nbgrader.apps.baseapp import NbGrader

app = NbGrader()
app.load_config_file()
method, lesson, students, settings, target = json.loads(sys.argv[1])
app.config.CourseDirectory.update(settings)
api = NbGraderAPI(config=app.config)
answers = {student: getattr(api, method)(lesson, student) for student in students}
with open(target, "w") as file:
    json.dump(answers, file)
"""


def click_button(
    folder: Path, button: str, lesson: str, students: Sequence[str], target: Path, **settings: str
) -> dict[str, dict[str, Any]]:
    """Return what the page gets for each student: ``success``, the ``log``, and an ``error`` that it shows as such.

    Args:
        folder: of the class.
        button: ``autograde`` or ``generate_feedback``.
        lesson: that the page is about.
        students: who is clicked, one after the other.
        target: a file for the answers.
        settings: of nbgrader's ``CourseDirectory``, other than the class has them.
    """
    what = json.dumps([button, lesson, students, settings, str(target)])
    command = [sys.executable, "-c", _CLICKS, what]
    environment = make_environment(PYTHONPATH=str(ROOT))
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: dict[str, dict[str, Any]] = json.loads(target.read_bytes())
    return answers
