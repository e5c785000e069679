"""One anonymous example of a mistake: a student's code, and beside it the message that the student read.

What a student names is kept when all of its words are the course's (its lessons, its checks, Python's and torch's
names) and none is part of a student's name; else it becomes "name1", "name2" ... Comments and docstrings go, and of
texts only those stay that the course could have written. The layout becomes one for all.
"""

from __future__ import annotations

import ast
import builtins
import copy
import hashlib
import keyword
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.verdict import CheckResult, Part
from exercise_kit.report.answers import GradedAnswer
from exercise_kit.report.collect import ClassWork
from exercise_kit.report.excerpt import MARK, MOST_LINES, canonicalize_line, find_differing_lines, shorten_lines
from exercise_kit.submission.answer_cells import find_answers
from exercise_kit.submission.notebook_file import Unreadable, parse_notebook_cells, parse_script_cells, read_bytes
from exercise_kit.submission.released import ReleasedLesson
from exercise_kit.submission.result_file import ResultFile

_LETTERS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_QUOTED = re.compile(r"`([^`]*)`")
_LIBRARIES = ("torch", "torch.nn", "torch.nn.functional", "torch.Tensor", "math", "einops", "numpy")
_MODULES = frozenset({"torch", "torchvision", "numpy", "einops", "matplotlib"}) | sys.stdlib_module_names
_SHORT = 2  # letters: i, b, qk tell nothing
_LONGEST_TEXT = 60
_LARGEST = 99_999  # a longer whole number may be a student's
_FIELDS = ("name", "id", "arg", "attr", "asname", "rest")  # of a node, where a name stands
_LISTS = ("names", "kwd_attrs")  # and where several do


class Unshowable(Exception):
    """Code that cannot be shown; the message says why."""


class Anonymizer:
    """Takes out what could tell who a student is.

    Args:
        names: all that is known of the students' names: ids, first and last names, addresses.
        texts: what the class was given to read: words in it tell nothing.
    """

    def __init__(self, names: Iterable[str], texts: Iterable[str] = ()) -> None:
        self._theirs = {word for name in names for word in _split_words(name) if not _is_short_word(word)}
        given = frozenset(word for text in texts for word in _split_words(text))
        self._ours = (collect_course_words() | given) - self._theirs
        whole = sorted(
            {name for name in names if not _is_short_word(name) and not (name.isalpha() and _is_course_text(name))},
            key=len,
        )
        self._whole = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in reversed(whole)) or r"(?!)")

    def is_harmless(self, text: str) -> bool:
        """Say whether all words of a text are the course's, and none is a student's."""
        return all(_is_short_word(word) or word in self._ours for word in _split_words(text)) and not any(
            len(digits) > len(str(_LARGEST)) for digits in re.findall(r"\d+", text)
        )

    def anonymize_text(self, text: str) -> str:
        """A message, without the pieces of a student's that are quoted in it and not harmless."""

        def keep_if_harmless(match: re.Match[str]) -> str:
            return match[0] if self.is_harmless(match[1]) else f"`{MARK}`"

        return self._whole.sub(MARK, _QUOTED.sub(keep_if_harmless, text))

    def anonymize_code(self, source: str, objects: Iterable[str], right_lines: Collection[str] = ()) -> str:
        """The definitions of ``objects`` in a cell, and what they use of it; of long code, what no right answer has.

        Args:
            source: of the cell.
            objects: the names that the exercise asks for.
            right_lines: of answers without the mistake, canonical; where there are none, helpers are left out.

        Raises:
            Unshowable: it is no Python, or it defines none of them.
        """
        try:
            requested = frozenset(objects)
            kept = _find_needed_statements(source, requested)
            lines = self._write_masked_lines(kept, requested)
            for helper in self._sort_helpers(kept, requested, right_lines) if len(lines) > MOST_LINES else ():
                kept = [_keep_first_line(each) if each is helper else each for each in kept]
                lines = self._write_masked_lines(kept, requested)
                if len(lines) <= MOST_LINES:
                    break
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise Unshowable("it is no Python") from None
        return "\n".join(shorten_lines(lines, right_lines))

    def list_canonical_lines(self, source: str, objects: Iterable[str]) -> frozenset[str]:
        """All lines of the definitions of ``objects`` and of what they use, canonical; none of what is no Python."""
        try:
            requested = frozenset(objects)
            return frozenset(
                map(canonicalize_line, self._write_masked_lines(_find_needed_statements(source, requested), requested))
            )
        except (SyntaxError, ValueError, RecursionError, MemoryError, Unshowable):
            return frozenset()

    def _sort_helpers(
        self, kept: list[ast.stmt], objects: frozenset[str], right_lines: Collection[str]
    ) -> list[ast.stmt]:
        """The helpers, first those without the mistake, then those that are farthest from what was asked for."""
        distances = _count_steps_to_objects(kept, objects)
        helpers = [each for each in kept if not _find_bound_names(each) & objects]
        return sorted(helpers, key=lambda each: self._rank_helper(each, distances[id(each)], right_lines))

    def _rank_helper(self, helper: ast.stmt, distance: int, right_lines: Collection[str]) -> tuple[bool, int, int]:
        lines = self._write_masked_lines([helper], frozenset())
        return bool(find_differing_lines(lines, right_lines)) if right_lines else False, -distance, -len(lines)

    def _write_masked_lines(self, kept: list[ast.stmt], objects: frozenset[str]) -> list[str]:
        module = ast.Module([copy.deepcopy(each) for each in kept], [])
        text = ast.unparse(ast.fix_missing_locations(_Masked(self, kept, objects).visit(module)))
        return re.sub(r"(^class .*:\n)\n", r"\1", text, flags=re.MULTILINE).splitlines()


def _keep_first_line(statement: ast.stmt) -> ast.stmt:
    """A helper's first line alone, where code has to be shorten."""
    outline = copy.deepcopy(statement)
    if isinstance(outline, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        outline.body = [ast.Expr(ast.Name(MARK, ast.Load()))]
    return outline


def _split_words(text: str) -> list[str]:
    """The words in names and sentences: "numPatches_h" → num, patches, h."""
    runs = _LETTERS.findall(text)
    return [word.casefold() for run in runs for word in (_CAMEL.findall(run) if run.isascii() else [run])]


def _is_course_text(text: str) -> bool:
    """Say whether all words of a text are the course's, whatever students are called."""
    return all(_is_short_word(word) or word in collect_course_words() for word in _split_words(text))


def _is_short_word(word: str) -> bool:
    return len(word) <= _SHORT and word.isascii()


@lru_cache(maxsize=1)
def collect_course_words() -> frozenset[str]:
    """All words of the course's own code, and of the names that Python and torch have."""
    folder = Path(str(files(read_package_name())))
    patterns = ("*.py", "exercises/**/*.py", "training/**/*.py")
    texts = [path.read_text("utf-8") for pattern in patterns for path in folder.glob(pattern)]
    names = [*dir(builtins), *keyword.kwlist, "self", "cls"]
    for library in _LIBRARIES:
        module, _, member = library.partition(".")
        try:
            found = import_module(library) if member != "Tensor" else getattr(import_module(module), member)
        except ImportError:
            continue
        names += dir(found)
    return frozenset(word for text in (*texts, *names) for word in _split_words(text))


def _find_needed_statements(source: str, objects: frozenset[str]) -> list[ast.stmt]:
    kept = _select_needed_statements(ast.parse(source), set(objects))
    if not kept:
        raise Unshowable("the cell defines nothing of what was asked for")
    return kept


def _select_needed_statements(tree: ast.Module, wanted_names: set[str]) -> list[ast.stmt]:
    """The statements that bind ``wanted_names``, and those that bind what they use, in order; no imports."""
    kept: set[int] = set()
    statements = [each for each in tree.body if not isinstance(each, ast.Import | ast.ImportFrom)]
    while True:
        new = {
            index
            for index, each in enumerate(statements)
            if index not in kept and wanted_names & _find_bound_names(each)
        }
        if not new:
            return [statements[index] for index in sorted(kept)]
        kept |= new
        used = (node for index in new for node in ast.walk(statements[index]))
        wanted_names |= {node.id for node in used if isinstance(node, ast.Name)}


def _count_steps_to_objects(kept: list[ast.stmt], objects: frozenset[str]) -> dict[int, int]:
    """Return how many steps each statement, by its identity, is away from ``objects``: who uses whom."""
    found: dict[int, int] = {}
    wanted, distance = set(objects), 0
    while new := [each for each in kept if id(each) not in found and _find_bound_names(each) & wanted]:
        found |= {id(each): distance for each in new}
        wanted |= {node.id for each in new for node in ast.walk(each) if isinstance(node, ast.Name)}
        distance += 1
    return found


def _find_bound_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    nodes = ast.walk(statement) if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) else ()
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


class _Masked(ast.NodeTransformer):
    """Renames what a student named, and takes texts out."""

    def __init__(self, anonymizer: Anonymizer, kept: list[ast.stmt], objects: frozenset[str]) -> None:
        self._anonymizer = anonymizer
        nodes = [node for statement in kept for node in ast.walk(statement)]
        made_up = {name for node in nodes for name in _list_introduced_names(node)} - objects
        mentioned = dict.fromkeys(name for node in nodes for name in _list_names(node) if name not in objects)
        odd = (name for name in mentioned if not self._is_harmless_name(name, name in made_up))
        self._names = {name: f"name{count}" for count, name in enumerate(odd, 1)}

    def _is_harmless_name(self, name: str, is_introduced: bool) -> bool:
        if name == MARK:
            return True
        if is_introduced:
            return self._anonymizer.is_harmless(name)
        return _is_course_text(name)  # "max" is torch's, even where a student is called Max

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in _FIELDS:
            value = getattr(node, field, None)
            if isinstance(value, str):
                setattr(node, field, self._names.get(value, value))
        for field in _LISTS:
            values = getattr(node, field, None)
            if values and isinstance(values[0], str):
                setattr(node, field, [self._names.get(value, value) for value in values])
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_irrelevant(each)] or [ast.Pass()]  # type: ignore[attr-defined]
        return super().generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            short = len(node.value) <= _LONGEST_TEXT and self._anonymizer.is_harmless(node.value)
            return node if short else ast.Constant(MARK)
        if isinstance(node.value, bytes):
            return ast.Constant(MARK)
        if isinstance(node.value, int | float) and abs(node.value) > _LARGEST and _is_identifying_number(node.value):
            return ast.Name("number", ast.Load())
        return node


def _is_identifying_number(number: float) -> bool:
    """Say whether a large number is more than a one with zeros: -1e9 masks scores, 20231234 may be a student."""
    return f"{abs(number):.0f}".rstrip("0") not in ("1", "inf")


def _list_names(node: ast.AST) -> Iterator[str]:
    """The names that a node mentions."""
    for field in _FIELDS:
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield value
    for field in _LISTS:
        yield from (value for value in getattr(node, field, ()) if isinstance(value, str))


def _list_introduced_names(node: ast.AST) -> Iterator[str]:
    """The names that a node makes up."""
    if not isinstance(node, ast.keyword) and not isinstance(getattr(node, "ctx", None), ast.Load):
        yield from _list_names(node)


def _is_irrelevant(statement: ast.stmt) -> bool:
    """Say whether a statement does nothing to the answer (a docstring, a print), or imports an unknown module."""
    match statement:
        case ast.Expr(ast.Constant()) | ast.Expr(ast.Call(ast.Name("print"))):
            return True
        case ast.Import(names):
            return not all(_is_known_module(alias.name) for alias in names)
        case ast.ImportFrom(module):
            return not _is_known_module(module or "")
    return False


def _is_known_module(module: str) -> bool:
    return module.partition(".")[0] in {*_MODULES, read_package_name()} and _is_course_text(module)


MOST_READ = 8  # answers of which one is shown
MOST_OTHERS = 12  # answers without its mistake that it is compared with
LEAST_LINES = 3  # of an example that teaches: "return True" does not


@dataclass(frozen=True)
class Example:
    """An answer: its ``exercise``, its ``code`` ("" where it cannot be shown), and the message's parts by label."""

    exercise: str
    code: str
    message: Mapping[str, str]


class Examples:
    """Chooses and reads examples.

    Args:
        work: the class's.
        anonymizer: takes names out.
    """

    def __init__(self, work: ClassWork, anonymizer: Anonymizer) -> None:
        self._work = work
        self._lessons = {each.name: each.released for each in work.lessons}
        self._anonymizer = anonymizer
        self._lines: dict[tuple[Path, str], frozenset[str]] = {}

    def of(self, answers: Iterable[GradedAnswer], fits: Callable[[GradedAnswer], bool] = lambda _: True) -> Example:
        """The example of one of the answers, of which there is at least one: of a few that fit, what teaches most.

        That is whole code before shorten code, then the fewest lines that no answer without the mistake has: it
        stands out. Which few are looked at is decided by a digest of the file's path: not the first of the alphabet.
        """
        answers = list(answers)
        mistaken = {each.work.path for each in answers}
        chosen = sorted([each for each in answers if fits(each)] or answers, key=_hash_path)[:MOST_READ]
        others = {each.result.name: self._collect_lines_of_others(each, mistaken) for each in chosen}
        shown = [(each, self._read_anonymized_code(each, others[each.result.name])) for each in chosen]
        written = [(each, code) for each, code in shown if code]
        best, code = (
            min(written, key=lambda each: _rank_example_code(each[1], others[each[0].result.name]))
            if written
            else shown[0]
        )
        return Example(best.result.name, code, self.message(best.check))

    def message(self, check: CheckResult | None) -> dict[str, str]:
        """The message that a student read, by label; what was expected is left out."""
        if check is None:
            return {}
        # what was expected may tell what only grading asks, and is never on the page
        return {
            part: self._anonymizer.anonymize_text(text) for part, text in check.parts().items() if part != Part.EXPECTED
        }

    def _read_anonymized_code(self, answer: GradedAnswer, right_lines: Collection[str]) -> str:
        lesson = self._lessons.get(answer.work.lesson or "")
        if lesson is None:
            return ""
        try:
            source = _read_source(answer.work.path, answer.result.name, lesson)
            return self._anonymizer.anonymize_code(
                source, _find_exercise_objects(lesson, answer.result.name), right_lines
            )
        except (Unshowable, Unreadable):
            return ""

    def _collect_lines_of_others(self, answer: GradedAnswer, mistaken: Collection[Path]) -> frozenset[str]:
        """The lines of answers to the same exercise without the mistake: the model answer, right ones, others."""
        name, lesson = answer.result.name, self._lessons.get(answer.work.lesson or "")
        if lesson is None:
            return frozenset()
        model = self._anonymizer.list_canonical_lines(
            lesson.model_answers.get(name, ""), _find_exercise_objects(lesson, name)
        )
        works = [each for each in self._work.handed_in if each.lesson == lesson.name and each.path not in mistaken]
        works.sort(key=lambda each: not each.earns_full_points(name))
        return model.union(*(self._read_canonical_lines(each.path, name, lesson) for each in works[:MOST_OTHERS]))

    def _read_canonical_lines(self, path: Path, exercise: str, lesson: ReleasedLesson) -> frozenset[str]:
        if (path, exercise) not in self._lines:
            try:
                source = _read_source(path, exercise, lesson)
            except Unreadable:
                source = ""
            self._lines[path, exercise] = self._anonymizer.list_canonical_lines(
                source, _find_exercise_objects(lesson, exercise)
            )
        return self._lines[path, exercise]


def _rank_example_code(code: str, right_lines: Collection[str]) -> tuple[bool, bool, int, int, str]:
    """The lower, the more an example teaches."""
    lines = code.splitlines()
    own = len(find_differing_lines(lines, right_lines))
    teaches = len(lines) >= LEAST_LINES and own > 0
    return not teaches, any(line.strip(" #").startswith(MARK) for line in lines), own, len(code), code


def _find_exercise_objects(lesson: ReleasedLesson, exercise: str) -> tuple[str, ...]:
    return next((each.objects for each in lesson.exercises if each.name == exercise), ())


def _hash_path(answer: GradedAnswer) -> str:
    return hashlib.sha256(str(answer.work.path).encode("utf-8", "surrogateescape")).hexdigest()


def _read_source(path: Path, exercise: str, lesson: ReleasedLesson) -> str:
    """The source of the cell that holds an answer; "" where there is none, or only a file."""
    content = read_bytes(path)
    file = parse_script_cells(content) if path.suffix.lower() == ".py" else parse_notebook_cells(content)
    found, _ = find_answers(file.cells, lesson, (exercise,), False, lambda name: ResultFile(name, "", "", " "))
    return (found[0].source or "") if found else ""
