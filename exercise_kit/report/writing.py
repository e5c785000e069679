"""Make the report: from a class folder to a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from exercise_kit.files import write
from exercise_kit.report.gathering import gather
from exercise_kit.report.page import lecture_page, private_page
from exercise_kit.report.tally import tally
from exercise_kit.report.words import sentences
from exercise_kit.report.work import ClassWork, ReportError

REPORT = "report.html"


@dataclass(frozen=True)
class Written:
    """A report that was written: where, the private page's place if there is one, and its first sentences."""

    page: Path
    names: Path | None
    sentences: tuple[str, ...]
    work: ClassWork


def write_report(
    path: Path, out: Path | None = None, lesson: str | None = None, names: Path | None = None, today: date | None = None
) -> Written:
    """Write the report on a class.

    Args:
        path: a class folder, or a JSON file of ``vit-course grade``.
        out: the page's file; else report.html in the class folder, or beside the JSON file.
        lesson: the only one; None: all.
        names: where a second page goes that tells who is who; None: nowhere.
        today: the date on the page.

    Raises:
        ReportError: there is nothing to report on, or a page would fall on what it must not.
        OSError: a page cannot be written; nothing half-written is left.
    """
    work = gather(path, lesson)
    out = out or ((path if work.folder else path.parent) / REPORT)
    for place in filter(None, (out, names)):
        if place.is_dir():
            raise ReportError(f"{place} is a folder; name a file")
    if names and names.absolute() == out.absolute():
        raise ReportError(f"the page of names would be the lecture's page, {out}; name another file")
    if path.is_file() and path.resolve() in {place.resolve() for place in (out, names) if place}:
        raise ReportError(f"the page would take the place of {path}; name another file")
    title, day, found = work.name if lesson is None else f"{work.name}, {lesson}", today or date.today(), tally(work)
    pages = {out: lecture_page(found, title, day)}
    if names:
        pages[names] = private_page(found, title, day)
    for place, text in pages.items():
        write(place, text.encode(), 0o600 if place == names else None)
    return Written(out, names, tuple(sentences(found)), work)
