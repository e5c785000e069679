"""A submission's cells as the lesson that is released now has them, where theirs were of an earlier release or type.

One key press (`y`, `m` or `r`) gives an answer's cell another type. It keeps its text and gets its type back, so that
it is read and graded; a note says so, for a person to look at.

A lesson that is released again has other cells than the one that students have: other points stand in its checks and
questions. What they left as they got it is taken for what it is now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from exercise_kit.reasons import FlagNote
from exercise_kit.submission.flags import CELL_TYPE
from exercise_kit.submission.notebook_file import SubmittedCell, SubmittedFile
from exercise_kit.submission.released import ReleasedCell, ReleasedLesson
from exercise_kit.submission.slice import find_begun_definitions, list_definitions, parse


def restore_released_types(file: SubmittedFile, lesson: ReleasedLesson) -> tuple[SubmittedFile, tuple[FlagNote, ...]]:
    """A notebook whose answers have the types of the lesson, and a note on each that had another.

    An answer stays as it is where another cell of the right type bears its mark or, of code, defines what is asked
    for: then the student has put the text aside.

    Args:
        file: a notebook as it was handed in.
        lesson: as it was released.
    """
    cells, notes = list(file.cells), []
    for released in lesson.cells:
        if not released.name or released.role not in ("exercise", "question"):
            continue
        its = [cell for cell in file.cells if _has_mark_of(cell, released)]
        has_its_type = any(cell.code if released.code else cell.markdown for cell in its)
        if not its or has_its_type or _is_answered_elsewhere(file.cells, released, lesson):
            continue
        found = its[-1]
        was = "code" if found.code else "markdown" if found.markdown else "raw text"
        cells[cells.index(found)] = replace(found, code=released.code, markdown=not released.code)
        words = f"{released.name}: its cell had been turned into {was}, and was read as it was released"
        notes.append(FlagNote(CELL_TYPE, released.name, words))
    return replace(file, cells=tuple(cells)), tuple(notes)


def update_to_released_versions(file: SubmittedFile, lesson: ReleasedLesson) -> SubmittedFile:
    """A notebook in which the cells of an earlier release are those of this one, as far as the student left them alone.

    Args:
        file: a notebook as it was handed in.
        lesson: as it is released now, with its earlier versions.
    """
    released = {cell.name: cell for cell in lesson.cells if cell.name and cell.earlier}
    return replace(file, cells=tuple(_update_cell(cell, released.get(cell.grade_id or "")) for cell in file.cells))


def _update_cell(cell: SubmittedCell, released: ReleasedCell | None) -> SubmittedCell:
    for checksum, source in released.earlier if released else ():
        assert released is not None, "it has earlier versions"
        if cell.source.strip() == source.strip():
            return replace(cell, source=released.source, checksum=cell.checksum and released.checksum)
        if cell.checksum and cell.checksum == checksum:
            return replace(cell, checksum=released.checksum)
    return cell


def _has_mark_of(cell: SubmittedCell, released: ReleasedCell) -> bool:
    """Say whether a cell bears a released one's mark or, where tools have removed that, its id."""
    if cell.grade_id is not None:
        return cell.grade_id == released.name
    return cell.id is not None and cell.id == released.id


def _is_answered_elsewhere(cells: Sequence[SubmittedCell], released: ReleasedCell, lesson: ReleasedLesson) -> bool:
    """Say whether another code cell, which the student wrote, answers an exercise."""
    objects = next((set(each.objects) for each in lesson.exercises if each.name == released.name), set())
    given = {cell.source.strip() for cell in lesson.cells}
    written = (cell.source for cell in cells if cell.code and cell.source.strip() not in given)
    return any(
        not objects.isdisjoint(list_definitions(parse(source)) | find_begun_definitions(source)) for source in written
    )
