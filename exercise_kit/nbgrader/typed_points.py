"""Points that a person gives in formgrader, as its server takes them: nbgrader's keeps whatever text it is sent."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from typing import Any

from nbgrader.api import MissingEntry

_HANDLERS = "nbgrader.server_extensions.formgrader.apihandlers"
_NUMBER = re.compile(r"-?(\d+([.,]\d+)?|[.,]\d+)", re.ASCII)


class PointsError(Exception):
    """What was sent are no points; the message says why."""


def parse_points(value: object, maximum: float = math.inf) -> float | None:
    """Points out of what was sent: a number, or a text in which a comma is a decimal sign; None: there are none.

    Args:
        value: from JSON.
        maximum: how many there can be.

    Raises:
        PointsError: it is no number, below 0 or above ``maximum``.
    """
    if value is None or value == "":
        return None
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    number = float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if not math.isfinite(number):
        raise PointsError(f"{text[:40]} is no number; type it like 0.5 or 0,5")
    if not 0 <= number <= maximum:
        raise PointsError(f"{text[:40]} is below 0" if number < 0 else f"{text[:40]} is above {maximum:g}")
    return number


def install_points_validation() -> None:
    """Make formgrader's server refuse what are no points, where it runs in this process; twice is as once."""
    handlers = sys.modules.get(_HANDLERS)
    if handlers and handlers.GradeHandler.put.__module__ != __name__:
        handlers.GradeHandler.put = _wrap_put(handlers.GradeHandler.put)


def _wrap_put(original: Callable[..., Any]) -> Callable[..., Any]:
    from tornado.web import authenticated

    def put(self: Any, grade_id: str) -> Any:
        sent = self.get_json_body() or {}
        try:
            most = self.gradebook.find_grade_by_id(grade_id).max_score
            sent["manual_score"] = parse_points(sent.get("manual_score"), most)
            sent["extra_credit"] = parse_points(sent.get("extra_credit"))
        except PointsError as error:
            self.set_status(400)
            return self.finish(str(error))
        except MissingEntry:
            pass  # nbgrader says so
        self.request.body = json.dumps(sent).encode()
        return original(self, grade_id)

    checked = authenticated(put)
    checked.__module__ = __name__
    return checked
