"""``pytest tests/hidden``: each graded check as a test, by pytest's public interface. ``conftest.py`` imports this.

Without ``--submission`` the reference answers, in this process. With it the judge grades the file as ``vit-course
grade`` does, in its sandbox; each test tells one of its verdicts, and the points stand at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest
import torch

from exercise_kit.engine.class_exercises import get_class_files_in_use, set_default_class
from exercise_kit.engine.exercise import Check
from exercise_kit.engine.verdict import Verdict
from exercise_kit.hidden_checks import HiddenChecksError
from exercise_kit.hidden_checks.checks import HiddenChecks, make_reference_student
from exercise_kit.judge.judge import Judge
from exercise_kit.judge.result import Result
from exercise_kit.sandbox.devices import list_missing_protections, resolve_device
from exercise_kit.sandbox.limits import Limits
from exercise_kit.submission.find import find
from exercise_kit.submission.parse import read
from exercise_kit.submission.released import Lessons, find_current_class
from exercise_kit.submission.submission import Submission


class _Shared:
    """What the tests of a session share."""

    def __init__(self, config: pytest.Config) -> None:
        handed_in = config.getoption("submission", None)
        set_default_class(lambda: find_current_class([Path(handed_in)] if handed_in else ()))
        self.seed = str(config.getoption("probe_seed", "0")).encode()
        self.device = config.getoption("device", None)
        self.limits = Limits().on(resolve_device(self.device or "cpu") if handed_in else "cpu")
        self.submission = _read_submission(Path(handed_in), self.limits.device) if handed_in else None
        self._known: dict[tuple[Path, str], HiddenChecks] = {}

    def checks(self, folder: Path, device: str = "cpu") -> HiddenChecks:
        """The checks that grade, with those in a folder."""
        if (folder, device) not in self._known:
            self._known[folder, device] = HiddenChecks(folder, device=device)
        return self._known[folder, device]

    @cached_property
    def result(self) -> Result:
        """Of the submission."""
        assert self.submission
        with Judge(next(iter(self._known))[0], self.seed, self.limits) as judge:
            return judge.grade(self.submission)

    def choose_devices(self, check: Check) -> tuple[str, ...]:
        """Where a check is asked of the reference."""
        if self.device:
            return (self.device,)
        return ("cpu", "cuda") if torch.cuda.is_available() and check.names_device else ("cpu",)


_SHARED: pytest.StashKey[_Shared] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest tests/hidden --submission FILE --device cuda --probe-seed 7``: of whom, where, on which numbers."""
    parser.addoption("--probe-seed", default="0", help="what the graded checks' sizes and numbers are drawn from")
    parser.addoption("--device", help="where the answers compute: cpu, cuda or cuda:1")


def pytest_configure(config: pytest.Config) -> None:
    """Read the submission."""
    try:
        config.stash[_SHARED] = _Shared(config)
    except (ValueError, OSError) as error:
        raise pytest.UsageError(f"--submission: {error}") from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The checks of the course and of the class, found at the ``conftest.py`` that imports this."""
    return _Checks.from_parent(parent, path=file_path) if file_path.name == "conftest.py" else None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The checks in a file of a teacher's own."""
    return _Checks.from_parent(parent, path=module_path) if module_path.name != "conftest.py" else None


class _Checks(pytest.File):
    """The checks that stand in one file; at ``conftest.py`` those in the exercises' own files."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each check of each exercise."""
        try:
            checks = self.config.stash[_SHARED].checks(self.path.parent)
        except HiddenChecksError as error:
            raise self.CollectError(str(error)) from None
        if problems := [each for each in checks.problems.values() if f"/{self.path.name}:" in each]:
            raise self.CollectError("\n".join(dict.fromkeys(problems)))
        is_own = self.path.name != "conftest.py"
        for exercise, asked in checks.exercises().items():
            for check in asked:
                if check.file == self.path if is_own else check.file.parent != self.path.parent:
                    name = f"{exercise}: {check.name.removeprefix('test_')}"
                    yield _Asked.from_parent(self, name=name, exercise=exercise, check=check)


class _Asked(pytest.Item):
    """A check, asked of the reference, or of the submission by the judge."""

    def __init__(self, *, exercise: str, check: Check, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]  # pytest's own
        self.exercise, self.check = exercise, check

    def runtest(self) -> None:
        """Fail or skip with what the student reads."""
        shared = self.config.stash[_SHARED]
        if shared.submission:
            self._fail_or_skip_by_verdict(*_find_verdict(shared.result, self.exercise, self.check.name))
            return
        for device in shared.choose_devices(self.check):
            checks = shared.checks(self.path.parent, device)
            outcome = checks.evaluate(self.exercise, self.check, make_reference_student(self.exercise), shared.seed)
            if outcome.broke:
                pytest.fail("\n".join(filter(None, (outcome.broke, outcome.log))), pytrace=False)
            self._fail_or_skip_by_verdict(
                outcome.result.verdict, "\n".join(filter(None, (outcome.result.message, outcome.log)))
            )

    def _fail_or_skip_by_verdict(self, verdict: str, message: str) -> None:
        if verdict == Verdict.FAIL:
            pytest.fail(message, pytrace=False)
        if verdict == Verdict.UNDECIDED:
            pytest.skip(message)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it stands."""
        return self.check.file, self.check.line - 1, self.name


def _find_verdict(result: Result, exercise: str, check: str) -> tuple[str, str]:
    graded = next((each for each in result.exercises if each.name == exercise), None)
    if result.status != "graded":
        return Verdict.FAIL, f"the submission was not graded: {result.reason}"
    if graded is None:
        return Verdict.UNDECIDED, f"the submission is not evaluated on {exercise}"
    found = next((each for each in graded.checks if each.name == check), None)
    if found is None:
        return Verdict.UNDECIDED if graded.waits else Verdict.FAIL, graded.problem or ""
    return found.verdict, found.message or graded.problem or ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The points of the submission, exercise by exercise."""
    shared = config.stash.get(_SHARED, None)
    if shared is None or "result" not in vars(shared):
        return
    terminalreporter.section("points")
    for each in shared.result.exercises:
        terminalreporter.write_line(f"{each.name}: {each.points} points")
    terminalreporter.write_line(f"in all {shared.result.points} points")


def _read_submission(path: Path, device: str) -> Submission:
    if list_missing_protections(device):
        raise ValueError("this machine has no sandbox for a student's code; 'vit-course doctor' says what is missing")
    lessons = Lessons(get_class_files_in_use().folder)
    handed_in = find([path], lessons.names)
    if len(handed_in) != 1:
        raise ValueError(f"{path} is not one submission: name a notebook, or a .py file with an exercise's names")
    submission = read(handed_in[0], lessons)
    if submission.rejected or not submission.exercises:
        raise ValueError(f"{path} cannot be evaluated: {submission.reason or 'it holds no exercise of the course'}")
    return submission
