"""What nbgrader's process loads of ours, and what it asks the judge for ahead of time."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest

from exercise_kit.nbgrader.nbgrader_judge import GraderCache


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            "from exercise_kit.nbgrader import nbgrader_judge, feedback; "
            "from exercise_kit.judge import graded_report as reports; reports.course().site",
            id="feedback",
        ),
        pytest.param(
            "from exercise_kit.nbgrader import autograde, submission_exporter as exporter; "
            "lessons = exporter.Lessons(None); file = lessons.clone / 'solutions' / '01_patchify.ipynb'; "
            "assert len(exporter.build_marked_notebook(exporter.FoundFile(file), lessons).cells) > 50",
            id="autograde",
        ),
    ],
)
def test_nbgrader_s_process_does_without_torch(code: str) -> None:
    """Torch takes seconds and half a gigabyte, of formgrader's server and of whoever grades a class."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print('torch' in sys.modules)"], capture_output=True, text=True
    )
    assert done.stdout.strip() == "False", done.stderr


class Asked(list[str]):
    """A grader that notes what it is asked."""

    def submit(self, path: Path) -> Future[str]:
        self.append(path.name)
        future: Future[str] = Future()
        future.set_result(path.name)
        return future


def test_what_is_under_way_is_not_asked_for_twice_until_it_changes(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    for each in folders:
        each.mkdir()
    asked = Asked()
    cache = GraderCache(asked)
    assert [cache.find_result(each, folders) for each in (folders[0], folders[1], folders[0])] == ["a", "b", "a"]
    assert asked == ["a", "b", "c", "a", "b"], "b was taken, c is under way"
    (folders[2] / "late.ipynb").touch()
    assert cache.find_result(folders[2], []) == "c"
    assert asked[5:] == ["c"]
