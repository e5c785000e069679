"""Pytest opened inside this process: a folder of checks is collected once, and each can be run again and again."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import ConftestImportFailure, _prepareconfig
from _pytest.runner import runtestprotocol

from exercise_kit.engine.class_exercises import line_in, with_line
from exercise_kit.judge.fixtures import EVALUATION_CONTEXT, EvaluationContext

# what costs time, prints, or reaches into the process that runs us, which may be another pytest
_LEFT_OUT = (
    *("cacheprovider", "capture", "debugging", "doctest", "faulthandler", "junitxml", "legacypath", "logging"),
    *("pastebin", "setuponly", "setupplan", "subtests", "terminal", "threadexception", "unittest"),
    *("unraisableexception", "warnings"),
)
_FOREIGN_SETTINGS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DEBUG")


class HiddenChecksError(Exception):
    """The hidden checks cannot be used: the message says which file and line to mend.

    Attributes: ``file``, where it is about one.
    """

    def __init__(self, message: str, file: Path | None = None) -> None:
        super().__init__(message)
        self.file = file


class OpenPytest:
    """Pytest's configuration and session, kept open, with the items that it found in a folder.

    Args:
        folder: holds the checks and their ``conftest.py``.
        context: where the fixtures will look for the student.
        left_out: files that are not looked into.

    Raises:
        HiddenChecksError: when a file cannot be imported or a check cannot be run.
    """

    def __init__(self, folder: Path, context: EvaluationContext, left_out: Collection[Path] = ()) -> None:
        self._folder, self._left_out = folder, left_out
        self._problems: list[HiddenChecksError] = []
        self._errors: list[BaseException] = []
        with _own_surroundings(folder):
            self._config = self._configured()
            try:
                self._config.stash[EVALUATION_CONTEXT] = context
                self.items = self._collected()
            except BaseException:
                self.close()
                raise

    def run(self, item: pytest.Function) -> BaseException | None:
        """Run one check with its fixtures, all of them made anew; what it raised, None when it passed."""
        self._errors.clear()
        runtestprotocol(item, nextitem=None, log=False)
        return self._errors[0] if self._errors else None

    def close(self) -> None:
        """Undo what pytest has set up in this process."""
        self._config._ensure_unconfigure()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """Keep what was raised; a report in words would cost more than the check."""
        if call.excinfo:
            self._errors.append(call.excinfo.value)
        outcome = "failed" if call.excinfo else "passed"
        return pytest.TestReport(item.nodeid, item.location, {}, outcome, None, call.when)  # type: ignore[arg-type]

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any]) -> None:
        """Note why a file could not be collected."""
        if isinstance(node, pytest.Collector) and call.excinfo:
            error = call.excinfo.value
            wrapped = isinstance(error, pytest.Collector.CollectError)
            words = described_error(error.__cause__ or error if wrapped else error, self._folder, node.path)
            self._problems.append(HiddenChecksError(words, node.path))

    def _configured(self) -> pytest.Config:
        arguments = [str(self._folder), f"--rootdir={self._folder}", f"--confcutdir={self._folder}", "-c", os.devnull]
        arguments += ["--import-mode=importlib", "--assert=plain", "--strict-markers", "--disable-plugin-autoload"]
        arguments += [f"--ignore={path}" for path in self._left_out]
        for name in _LEFT_OUT:
            arguments += ["-p", f"no:{name}"]
        try:
            config = _prepareconfig(arguments, [self])
            config._do_configure()
        except ConftestImportFailure as failure:
            raise HiddenChecksError(described_error(failure.cause, self._folder)) from failure
        except pytest.UsageError as error:
            raise HiddenChecksError(f"{self._folder}: {error}") from None
        return config

    def _collected(self) -> list[pytest.Function]:
        session = pytest.Session.from_config(self._config)
        self._config.hook.pytest_sessionstart(session=session)
        items = [each for each in session.perform_collect() if isinstance(each, pytest.Function)]
        lacking = ((item, _lacking(item)) for item in items)
        problems = self._problems or [HiddenChecksError(words, item.path) for item, words in lacking if words]
        if problems:
            raise problems[0]
        return items


def _lacking(item: pytest.Function) -> str:
    """The fixture that a check asks for and nobody has, in words."""
    known = {"request", *item._fixtureinfo.name2fixturedefs, *getattr(item, "callspec", _NoCase).params}
    for name in item.fixturenames:
        if name not in known:
            return f"{place_of_item(item)}: there is no fixture called {name!r}"
    return ""


class _NoCase:
    params: dict[str, object] = {}  # noqa: RUF012  # never written to


def place_of_item(item: pytest.Item) -> str:
    """test_one_hot.py:12: test_each_label_is_a_row."""
    path, line, name = item.location
    return f"{path}:{(line or 0) + 1}: {name}"


def described_error(error: BaseException, folder: Path, file: Path | None = None) -> str:
    """An exception with the innermost line of a file of checks, as "test_one_hot.py:12: NameError: ...".

    Args:
        error: what was raised.
        folder: of the checks.
        file: what it is about where no line is known; None: the folder.
    """
    if isinstance(error, pytest.fail.Exception):  # our own fixtures say what is wrong in their own words
        place = line_in(error, folder)
        return f"{place[0].relative_to(folder)}:{place[1]}: {error}" if place else str(error)
    return with_line(error, folder, str(file.relative_to(folder) if file else folder))


@contextlib.contextmanager
def _own_surroundings(folder: Path) -> Iterator[None]:
    """No setting of a pytest around us leaks in, and no module of a check stays behind under the name it had here.

    A second folder may hold files of the same names, and so may the tests of the process that runs us.
    """
    settings = {name: os.environ.pop(name) for name in _FOREIGN_SETTINGS if name in os.environ}
    files = (path.relative_to(folder) for path in (*folder.rglob("test_*.py"), *folder.rglob("conftest.py")))
    names = {".".join(path.with_suffix("").parts) for path in files}
    others = {name: sys.modules.pop(name) for name in names & sys.modules.keys()}
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(others)
        os.environ.update(settings)
