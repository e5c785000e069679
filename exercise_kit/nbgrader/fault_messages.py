"""What nbgrader's commands and formgrader's pages say in place of a traceback: of a gradebook, and of a full disk.

And what their logs hold of names that students gave: nothing that a terminal would act upon.
"""

from __future__ import annotations

import errno
import logging
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from html import escape
from pathlib import Path
from typing import Any

import nbgrader.apps.api
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import BaseConverter, NbGraderException

from exercise_kit.nbgrader.gradebook import (
    GradebookError,
    has_released_lesson,
    install_connection_listeners,
    make_engine,
    refuse_new_gradebook,
)
from exercise_kit.quoting import make_legible

PAGES = "nbgrader.server_extensions.formgrader.base"
_GRADEBOOK = "nbgrader_gradebook"  # in the server's settings: formgrader's own
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # whatever is written next meets them too
Method = Callable[..., Any]


def describe_fault(error: BaseException | None, root: str) -> str:
    """Say what a gradebook or the disk has against a command, which works below ``root`` if the error has no place."""
    if not isinstance(error, OSError):
        return str(error)
    place = error.filename if isinstance(error.filename, str) else root
    if error.errno in DISK_ERRORS:
        return f"nothing more can be written to {place}: {error.strerror}; see to the disk"
    return f"{place}: {error.strerror or error}"


def install_fault_messages() -> None:
    """Put them in place; a configuration is read twice, and the second time changes nothing."""
    install_connection_listeners()
    _replace_method(NbGrader, "start", _wrap_start)
    _replace_method(BaseConverter, "convert_notebooks", _wrap_convert_notebooks)
    _replace_method(nbgrader.apps.api, "capture_log", _wrap_capture_log)
    _make_formgrader_reopen_gradebook(NbGraderAPI)
    if PAGES in sys.modules:
        handler = sys.modules[PAGES].BaseHandler
        _make_formgrader_reopen_gradebook(handler)
        _replace_method(handler, "on_finish", _wrap_on_finish)
        _replace_method(handler, "write_error", _wrap_write_error)


def _replace_method(owner: Any, name: str, wrap: Callable[[Method], Method]) -> None:
    before = getattr(owner, name)
    if getattr(before, "__module__", None) != __name__:
        after = wraps(before)(wrap(before))
        after.__module__ = __name__
        setattr(owner, name, after)


def _make_formgrader_reopen_gradebook(owner: Any) -> None:
    """formgrader would show an empty class where the gradebook of one was lost, and make the file anew."""
    before = owner.__dict__["gradebook"]
    if before.fget.__module__ != __name__:

        def gradebook(self: Any) -> Any:
            with refuse_new_gradebook(has_released_lesson(Path(self.coursedir.root))):
                return before.fget(self)

        owner.gradebook = property(gradebook)


class LegibleLog(logging.Filter):
    """Takes out of a line of the log what could disturb a terminal: nbgrader prints names of files as they are."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; it always passes."""
        record.msg, record.args = make_legible(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = make_legible("".join(traceback.format_exception(*record.exc_info)).rstrip())
        return True


_legible_log = LegibleLog()


def _wrap_start(original: Method) -> Method:
    def start(self: Any) -> None:
        self.log.addFilter(_legible_log)  # once, however often it is added
        try:
            if self.coursedir is not None:
                make_engine(self.coursedir.db_url)
            original(self)
        except (GradebookError, OSError) as error:
            self.log.debug("how it failed", exc_info=error)
            self.fail("%s", describe_fault(error, self.coursedir.root if self.coursedir else str(Path.cwd())))

    return start


def _wrap_capture_log(original: Method) -> Method:
    """formgrader shows a traceback in a panel below the log; what a sentence in the log says needs none."""

    def capture_log(app: Any, *more: Any) -> Any:
        start, said = app.start, False

        def start_and_log_fault() -> None:
            nonlocal said
            try:
                start()
            except (NbGraderException, GradebookError, OSError) as error:
                said = True
                if not isinstance(error, NbGraderException):  # that one is in the log
                    app.log.error("%s", describe_fault(error, app.coursedir.root))
                raise

        app.start = start_and_log_fault
        result = original(app, *more)
        if said:
            del result["error"]
        return result

    return capture_log


class _Stop(KeyboardInterrupt):
    """Ends nbgrader's loop over students, and removes what is half written.

    Of another error it would log a traceback, and go on to the next student, who meets the same.
    """


_STEPS = ("init_destination", "init_assignment", "convert_single_notebook", "set_permissions")


def _wrap_convert_notebooks(original: Method) -> Method:
    """nbgrader would log a traceback for each student: so the gradebook is tried before the first."""

    def convert_notebooks(self: Any) -> None:
        needed = isinstance(self, GenerateFeedback)  # which would make an empty one where it was lost
        with refuse_new_gradebook(needed), Gradebook(self.coursedir.db_url, self.coursedir.course_id):
            pass
        for name in _STEPS:
            setattr(self, name, _wrap_to_stop_on_fault(getattr(self, name)))
        try:
            original(self)
        except (_Stop, OSError) as stopped:
            words = describe_fault(stopped.__cause__ or stopped, self.coursedir.root)
            self.log.error("%s", words)
            raise NbGraderException(words) from None

    return convert_notebooks


def _wrap_to_stop_on_fault(step: Method) -> Method:
    def run_or_stop(*arguments: Any) -> Any:
        try:
            return step(*arguments)
        except (OSError, GradebookError) as error:
            if isinstance(error, OSError) and error.errno not in DISK_ERRORS:
                raise
            raise _Stop from error

    return run_or_stop


def _wrap_on_finish(original: Method) -> Method:
    """Close formgrader's gradebook with each request, which nbgrader keeps open for as long as the server runs.

    It would go on with a file that was deleted, and write a person's points into that; a server that was started
    again it would never find.
    """

    def on_finish(self: Any) -> None:
        gradebook, self.settings[_GRADEBOOK] = self.settings.get(_GRADEBOOK), None
        if gradebook is not None:
            gradebook.close()
        original(self)

    return on_finish


def _wrap_write_error(original: Method) -> Method:
    def write_error(self: Any, status_code: int, **about: Any) -> None:
        error = about.get("exc_info", (None, None, None))[1]
        if not isinstance(error, GradebookError):
            return original(self, status_code, **about)
        self.set_status(503)
        self.finish(f"<h1>Nothing was saved</h1><p>{escape(str(error))}</p>")

    return write_error
