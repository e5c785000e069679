"""What nbgrader's commands and formgrader's pages say of a gradebook that cannot be used, in place of a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from html import escape
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters.base import BaseConverter

from exercise_kit.nbgrader.gradebook import GradebookError, engine_of, existing, is_released, watch

PAGES = "nbgrader.server_extensions.formgrader.base"
_GRADEBOOK = "nbgrader_gradebook"  # in the server's settings: formgrader's own
Method = Callable[..., Any]


def install_faults() -> None:
    """Put them in place; a configuration is read twice, and the second time changes nothing."""
    watch()
    _replace(NbGrader, "start", _start)
    _replace(BaseConverter, "convert_notebooks", _convert_notebooks)
    _replace_gradebook(NbGraderAPI)
    if PAGES in sys.modules:
        handler = sys.modules[PAGES].BaseHandler
        _replace_gradebook(handler)
        _replace(handler, "on_finish", _on_finish)
        _replace(handler, "write_error", _write_error)


def _replace(home: type, name: str, make: Callable[[Method], Method]) -> None:
    before = getattr(home, name)
    if getattr(before, "__module__", None) != __name__:
        after = wraps(before)(make(before))
        after.__module__ = __name__
        setattr(home, name, after)


def _replace_gradebook(home: Any) -> None:
    """formgrader would show an empty class where the gradebook of one was lost, and make the file anew."""
    before = home.__dict__["gradebook"]
    if before.fget.__module__ != __name__:

        def gradebook(self: Any) -> Any:
            with existing(is_released(Path(self.coursedir.root))):
                return before.fget(self)

        home.gradebook = property(gradebook)


def _start(before: Method) -> Method:
    def start(self: Any) -> None:
        try:
            if self.coursedir is not None:
                engine_of(self.coursedir.db_url)
            before(self)
        except GradebookError as error:
            self.fail("%s", error)

    return start


def _convert_notebooks(before: Method) -> Method:
    """nbgrader would log a traceback for each student: so the gradebook is tried before the first."""

    def convert_notebooks(self: Any) -> None:
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id):
            pass
        before(self)

    return convert_notebooks


def _on_finish(before: Method) -> Method:
    """Close formgrader's gradebook with each request, which nbgrader keeps open for as long as the server runs.

    It would go on with a file that was deleted, and write a person's points into that; a server that was started
    again it would never find.
    """

    def on_finish(self: Any) -> None:
        gradebook, self.settings[_GRADEBOOK] = self.settings.get(_GRADEBOOK), None
        if gradebook is not None:
            gradebook.close()
        before(self)

    return on_finish


def _write_error(before: Method) -> Method:
    def write_error(self: Any, status_code: int, **about: Any) -> None:
        error = about.get("exc_info", (None, None, None))[1]
        if not isinstance(error, GradebookError):
            return before(self, status_code, **about)
        self.set_status(503)
        self.finish(f"<h1>Nothing was saved</h1><p>{escape(str(error))}</p>")

    return write_error
