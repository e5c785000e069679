"""Why a check or an exercise did not pass, as data that the checks, the judge and the reports share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a check or an exercise did not pass. Sentences are made of it for each reader; no code reads a sentence."""

    # of a check that failed
    DIFFERENT = "different"
    SHAPE = "shape"
    CHANGED = "changed"
    RAISED = "raised"
    ACCEPTED = "accepted"
    PARAMETERS = "parameters"
    KIND = "kind"
    DTYPE = "dtype"
    DEVICE = "device"
    TIME = "time"
    NOT_WRITTEN = "not-written"
    SLIP = "slip"
    # of a check that could not decide
    UNDECIDABLE = "undecidable"
    WAITS_FOR_CHECK = "waits-for-check"
    WAITS_FOR_JUDGE = "waits-for-judge"
    # of a whole exercise
    PARTLY_WRITTEN = "partly-written"
    NO_CELL = "no-cell"
    EMPTY_CELL = "empty-cell"
    NO_CODE = "no-code"
    NOT_DEFINED = "not-defined"
    NO_FILE = "no-file"
    NOT_RUN = "not-run"
    FORBIDDEN = "forbidden"
    NOTHING_DECIDED = "nothing-decided"
    OUR_ERROR = "our-error"
    WAITS_FOR_PERSON = "waits-for-person"
    LOOK_AGAIN = "look-again"  # a person gave points for other work
    SEVERAL_ANSWERS = "several-answers"
    REMARK = "remark"  # nothing is wrong: there is something to say


NOT_GRADED = frozenset({Reason.OUR_ERROR, Reason.NOTHING_DECIDED, Reason.WAITS_FOR_PERSON, Reason.LOOK_AGAIN})
"""Of exercises that wait for whoever wrote their checks, or grades by hand: no fault of the student's."""
NOTHING_WRITTEN = frozenset({Reason.NOT_WRITTEN, Reason.PARTLY_WRITTEN, Reason.NO_CELL, Reason.EMPTY_CELL})
"""Of exercises that nobody has done."""


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_LIST = re.compile(r"\[[^\]]*\]|\((?:#, ?)*#,?\)")
_QUOTED = re.compile(r"`[^`]*`")


def find_failure_kind(seen: str) -> str:
    """The kind of a failure, by which others are grouped with it: what was seen, without numbers, shapes and code."""
    return _LIST.sub("(…)", _NUMBER.sub("#", _QUOTED.sub("…", seen)))


@dataclass(frozen=True)
class FlagNote:
    """What raised a flag, where that is one exercise: the ``flag``, the ``exercise``, and a clause on what was seen."""

    flag: str
    exercise: str
    words: str
