"""What a person should look at: signs in a submission that never change its score."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from exercise_kit.submission.notebook_file import HandedInCell
from exercise_kit.submission.released import ReleasedLesson

TEST_EDITED = "test-cell-edited"
TEST_DELETED = "test-cell-deleted"
COPIED = "reference-copied"
FORBIDDEN_FUNCTION = "forbidden-function"
POSSIBLE_BYPASS = "possible-bypass"
TIMEOUT = "timeout"
STOPPED = "sandbox-stopped"
NOT_SANDBOXED = "not-sandboxed"
WEAKER_SANDBOX = "weaker-sandbox"
SAME_FILE = "same-file"
CHECK_FILES = "check-files"


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


def test_cell_flags(cells: Sequence[HandedInCell], lesson: ReleasedLesson) -> tuple[str, ...]:
    """Whether check cells were edited or deleted, against the released lesson.

    A check cell of another version of the lesson, by nbgrader's checksum, is no edited one.
    """
    flags = []
    sources = {cell.source.strip() for cell in cells}
    checks = lesson.by_name("check")
    for name, released in checks.items():
        copies = [cell for cell in cells if cell.grade_id == name]
        if not copies and released.source.strip() not in sources:
            flags.append(TEST_DELETED)
        for cell in copies:
            same_version = cell.checksum in (None, released.checksum)
            if same_version and (cell.source.strip() != released.source.strip() or not cell.code):
                flags.append(TEST_EDITED)
    return tuple(sorted(set(flags)))
