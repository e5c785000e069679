"""What a person should look at: signs in a submission that never change its score."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from exercise_kit.conventions import make_check_grade_id
from exercise_kit.reasons import FlagNote
from exercise_kit.submission.notebook_file import SubmittedCell
from exercise_kit.submission.released import ReleasedLesson

TEST_EDITED = "test-cell-edited"
TEST_DELETED = "test-cell-deleted"
COPIED = "reference-copied"
FORBIDDEN_FUNCTION = "forbidden-function"
POSSIBLE_BYPASS = "possible-bypass"
OTHER_CODE = "other-code"
TIMEOUT = "timeout"
STOPPED = "sandbox-stopped"
NOT_SANDBOXED = "not-sandboxed"
WEAKER_SANDBOX = "weaker-sandbox"
SAME_FILE = "same-file"
CHECK_FILES = "check-files"
CELL_TYPE = "cell-type-changed"

MEANINGS = {
    TEST_EDITED: "a check cell was changed (the judge uses its own, so no points were won)",
    TEST_DELETED: "a check cell was deleted (the judge uses its own, so no points were lost)",
    COPIED: "an answer is the course's own code, apart from names and layout",
    FORBIDDEN_FUNCTION: "an answer calls what the exercise asks to write",
    POSSIBLE_BYPASS: "code uses what no answer needs, or names what its exercise does not allow",
    OTHER_CODE: "what ran is not the answer that its cell shows",
    TIMEOUT: "the code took too long and was stopped",
    STOPPED: "the sandbox stopped the code: too much memory, or a forbidden system call",
    SAME_FILE: "a trained model is, byte for byte, another student's: a copy, or one seed on machines alike",
    CELL_TYPE: "an answer's cell was turned into another type (its text was kept, and the type set back)",
    CHECK_FILES: "a class's own files (configuration, checks, results) were handed in; none of them was used",
    WEAKER_SANDBOX: "graded in a weaker sandbox (this machine refuses namespaces)",
    NOT_SANDBOXED: "graded without a sandbox (--no-sandbox)",
}


_SAID_IN_THE_REASON = frozenset({POSSIBLE_BYPASS, FORBIDDEN_FUNCTION, TIMEOUT, STOPPED})


def explain_flags(notes: Iterable[FlagNote]) -> list[str]:
    """Return what was seen behind those flags about which a submission's reason says nothing."""
    return [each.words for each in notes if each.flag not in _SAID_IN_THE_REASON]


def flag_same_file(handed_in: Sequence[tuple[str, Collection[str]]]) -> list[bool]:
    """Of each submission, whether a file handed in beside it is, byte for byte, one of another student's.

    Args:
        handed_in: for each submission whose it is, and the digests of those files.
    """
    owners: dict[str, set[str]] = {}
    for who, digests in handed_in:
        for digest in digests:
            owners.setdefault(digest, set()).add(who)
    return [any(len(owners[digest]) > 1 for digest in digests) for _, digests in handed_in]


def find_changed_check_cells(cells: Sequence[SubmittedCell], lesson: ReleasedLesson) -> Iterator[FlagNote]:
    """Which exercises' check cells were edited or deleted, against the released lesson.

    A check cell of another version of the lesson, by nbgrader's checksum, is no edited one.
    """
    exercises = {make_check_grade_id(each.name): each.name for each in lesson.exercises}
    sources = {cell.source.strip() for cell in cells}
    checks = lesson.find_cells_by_role("check")
    for name, released in checks.items():
        exercise = exercises.get(name, name)
        copies = [cell for cell in cells if cell.grade_id == name]
        if not copies and released.source.strip() not in sources:
            yield FlagNote(TEST_DELETED, exercise, f"{exercise}: its check cell is not there any more")
        for cell in copies:
            same_version = cell.checksum in (None, released.checksum)
            if same_version and (cell.source.strip() != released.source.strip() or not cell.code):
                yield FlagNote(TEST_EDITED, exercise, f"{exercise}: its check cell was changed")
