"""Pairs of submissions that are alike beyond what the task forces, by copydetect's winnowing.

It is information for a person, and never a score. Code that the lesson shows or that its model answers contain is taken
out first, and then code that many students of the class wrote alike: the task leads everybody to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any

from copydetect.utils import filter_code, get_token_coverage, hashed_kgrams, highlight_overlap

from exercise_kit.engine.class_exercises import set_class_in_use
from exercise_kit.files import write, write_and_make_folder
from exercise_kit.quoting import make_legible
from exercise_kit.report.page import load_templates
from exercise_kit.submission.find import FoundFile, find
from exercise_kit.submission.notebook_file import Unreadable
from exercise_kit.submission.parse import open_with_answers
from exercise_kit.submission.released import CONFIG, SUBMITTED, Lessons, ReleasedError, ReleasedLesson, is_class
from exercise_kit.submission.submission import NoSubmission

GRAM = 30  # characters of code in which every name is one letter: about two lines
WINDOW = 6
LEAST_ALIKE = 80  # characters, of the same kind
MANY = 0.2  # of a class; what more of them wrote alike is the task's doing
FEW = 4  # and so many at least, lest a small class's copyists explain each other
# listed are pairs of whom each wrote so much alike: of the 3364 pairs of invented students who never met (two classes
# of 60, lessons 01 and 02) one shares 0.86 of it, and no other 0.8
LEAST_SHARE = 0.9
# or so many characters that hardly anybody else wrote, which finds a copied part: of the same pairs at most 404
LEAST_PART = 500
HARDLY_ANY, FEWEST = 0.05, 3
MOST_PAIRS = 30


class SimilarityError(Exception):
    """There is nothing to compare; the message says why, and what to do."""


@dataclass(frozen=True)
class Text:
    """What a student wrote for a lesson: their answers, one below the other."""

    student: str
    lesson: str
    source: str


@dataclass(frozen=True)
class Pair:
    """Two students' answers: how many characters of each one's own are alike, as shares, and both with those marked.

    ``left`` and ``right`` are HTML, escaped but for the marks.
    """

    lesson: str
    students: tuple[str, str]
    alike: int
    shares: tuple[float, float]
    left: str
    right: str


def read_answer_texts(class_dir: Path, lesson: str | None = None) -> dict[str, tuple[ReleasedLesson, list[Text]]]:
    """Everybody's answers by lesson; what cannot be read or is as it was released is left out.

    Raises:
        SimilarityError: it is no class folder, has no such lesson, or nobody has handed in anything.
    """
    if not is_class(class_dir):
        raise SimilarityError(f"{class_dir} is no class folder: it has no {CONFIG}; name one made by new-class")
    set_class_in_use(class_dir)
    lessons = Lessons(class_dir)
    if lesson is not None and lesson not in lessons.names:
        raise SimilarityError(f"there is no lesson {lesson!r}; there are: {', '.join(lessons.names)}")
    found: dict[str, tuple[ReleasedLesson, list[Text]]] = {}
    handed_in = find([class_dir], lessons.names, class_dir) if (class_dir / SUBMITTED).is_dir() else []
    for each in handed_in:
        if lesson in (None, each.assignment) and (opened := _read_answer_text(each, lessons)):
            released, text = opened
            found.setdefault(released.name, (released, []))[1].append(text)
    if not found:
        raise SimilarityError(f"nobody has handed in an answer below {class_dir / SUBMITTED}")
    return found


def _read_answer_text(handed_in: FoundFile, lessons: Lessons) -> tuple[ReleasedLesson, Text] | None:
    try:
        opened = open_with_answers(handed_in, lessons)
    except (Unreadable, NoSubmission, ReleasedError):
        return None
    sources = dict.fromkeys(each.source for each in opened.answers if each.source and not each.untouched)
    source = "\n\n\n".join(filter(None, sources))
    if not source:
        return None
    return opened.lesson, Text(handed_in.student or handed_in.path.stem, opened.lesson.name, source + "\n")


def read_base_code(lesson: ReleasedLesson) -> str:
    """Return what everybody was given: the code of the lesson's cells, answers not yet written."""
    return "\n\n\n".join(cell.source for cell in lesson.cells if cell.code) + "\n"


def export(texts_by_lesson: dict[str, tuple[ReleasedLesson, list[Text]]], folder: Path) -> int:
    """Write one file for each student, and one of what everybody was given, in a folder for each lesson.

    Raises:
        SimilarityError: the folder is in use.
        OSError: a file cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SimilarityError(f"{folder} exists and is not empty; name a new folder")
    for lesson, texts in texts_by_lesson.values():
        base_code = read_base_code(lesson).encode("utf-8", "backslashreplace")
        write_and_make_folder(folder / lesson.name / "basecode" / "basecode.py", base_code)
        for text in texts:
            source = text.source.encode("utf-8", "backslashreplace")  # not every character in a notebook is one
            write_and_make_folder(folder / lesson.name / "submissions" / f"{text.student}.py", source)
    return sum(len(texts) for _, texts in texts_by_lesson.values())


def find_similar_pairs(lesson: ReleasedLesson, texts: Sequence[Text]) -> list[Pair]:
    """The pairs that are alike beyond the task, most alike first.

    Args:
        lesson: as it was released, with its model answers where they are there.
        texts: everybody's answers to it.
    """
    given = _compute_gram_fingerprints(read_base_code(lesson)) | _compute_gram_fingerprints(
        "\n\n".join(lesson.model_answers.values())
    )
    parts = _compare_fingerprints(texts, given | _find_frequent_grams(texts, HARDLY_ANY, FEWEST))
    whole = _compare_fingerprints(texts, given | _find_frequent_grams(texts, MANY, FEW))
    found = {pair.students: pair for pair in parts if pair.alike >= LEAST_PART}
    found |= {pair.students: pair for pair in whole if min(pair.shares) >= LEAST_SHARE}
    return sorted(found.values(), key=lambda pair: (-max(pair.shares), -pair.alike, pair.students))[:MOST_PAIRS]


def _compare_fingerprints(texts: Sequence[Text], common: set[int]) -> list[Pair]:
    """All pairs with something alike beyond what is ``common``."""
    import copydetect

    prints = []
    for text in texts:
        made = copydetect.CodeFingerprint("answers.py", GRAM, WINDOW, fp=StringIO(text.source))
        made.hashes -= common  # its own way of doing this goes wrong where a text says something twice
        made.hash_idx = {each: places for each, places in made.hash_idx.items() if each in made.hashes}
        made.token_coverage = get_token_coverage(made.hash_idx, GRAM, len(made.filtered_code))
        prints.append(made)
    couples = combinations(zip(texts, prints, strict=True), 2)
    return [pair for one, two in couples if (pair := _compare_pair(*one, *two))]


def _compare_pair(first: Text, first_fingerprint: Any, second: Text, second_fingerprint: Any) -> Pair | None:
    import copydetect

    alike, shares, slices = copydetect.compare_files(first_fingerprint, second_fingerprint)
    if alike < LEAST_ALIKE:
        return None
    marked = [
        highlight_overlap(text.source, places, "<mark>", "</mark>", escape_html=True)[0]
        for text, places in zip((first, second), slices, strict=True)
    ]
    left, right = (float(share) for share in shares)
    return Pair(first.lesson, (first.student, second.student), int(alike), (left, right), *marked)


def _find_frequent_grams(texts: Sequence[Text], min_share: float, min_count: int) -> set[int]:
    """The grams that more than ``min_count`` students have, and more than ``min_share``, a share of the class."""
    counts = Counter(gram for text in texts for gram in _compute_gram_fingerprints(text.source))
    return {gram for gram, count in counts.items() if count > max(min_count, min_share * len(texts))}


def _compute_gram_fingerprints(source: str) -> set[int]:
    """The fingerprints of all places of a text, names made one letter."""
    code, _ = filter_code(source, "answers.py")
    return {int(each) for each in hashed_kgrams(code, GRAM)}


def write_similarity_page(class_dir: Path, out: Path, lesson: str | None = None, today: date | None = None) -> int:
    """Write the pairs of a class to one page for the instructor's eyes, and say how many there are.

    Raises:
        SimilarityError: as :func:`read_answer_texts` does.
        OSError: the page cannot be written.
    """
    lessons = [
        (released, texts, find_similar_pairs(released, texts))
        for released, texts in read_answer_texts(class_dir, lesson).values()
    ]
    values = {"lessons": lessons, "today": today or date.today(), "MOST_PAIRS": MOST_PAIRS}
    page = load_templates().get_template("similarity.html.jinja").render(title=class_dir.resolve().name, **values)
    write(out, make_legible(page).encode(), 0o600)
    return sum(len(found) for _, _, found in lessons)
