"""A student's own parts from lesson to lesson: ``keep`` saves an answer that passed its check, ``own`` loads it.

The file lies beside the notebooks, or on Google Drive where that is mounted, and is the student's: plain Python, a
cell for each exercise. A part is used only after it has passed its check again, and never while the judge grades: there
the course's own parts replace it. A part that is saved again replaces the old one; the file from before is kept beside
it, as `my_vit.before.py`.
"""

from __future__ import annotations

import difflib
import hashlib
import linecache
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from exercise_kit.engine import own_folder
from exercise_kit.engine.arguments import (
    describe_unknown_exercise,
    find_exercise_ignoring_case,
    find_problem_with_objects,
    write_check_call,
)
from exercise_kit.engine.compare import describe_kind, join_names
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.notebook_or_script import hide_traceback
from exercise_kit.engine.part_source import CannotKeepError, collect_source
from exercise_kit.engine.run import can_keep_answer, get_last_passed_objects, make_report
from exercise_kit.engine.verdict import Report
from exercise_kit.files import write
from exercise_kit.quoting import quote_first_line

_HEADER = '''"""My own parts, each kept by `keep(...)` after it had passed its checks.

This file is yours: read it, change it, take it with you. A lesson checks each part again before it uses it, and
takes the course's own part where yours is missing or does not pass.
"""
'''
_HEADER_OF_CELL = re.compile(r"^(?=# %%)", re.MULTILINE)
_MOST_BYTES = 1 << 20


def keep(*names: str) -> None:
    """Put answers that have passed their checks into your file, for the lessons that follow; say what became of each.

    Args:
        names: of exercises, as "one_hot".
    """
    place = _find_own_file()
    kept = []
    for name in names:
        known = find_exercise_ignoring_case(name)
        try:
            if known is None:
                raise CannotKeepError(describe_unknown_exercise(name, function_name="keep"))
            if get_last_passed_objects(known) is None and f"# %% {known.name}\n" in (_read_student_file(place) or ""):
                print(
                    f"{known.name} stays in {place.name} as it is. To replace it, check yours first: "
                    f"{write_check_call(known)}."
                )
                continue
            _keep_answer(known, place)
            kept.append(f"`{known.name}`")
        except CannotKeepError as why:
            print(f"{name} is not kept. {why}")
    if kept:
        print(f"Kept in {_shorten_path(place)}: {join_names(kept)}. Later lessons begin with what is there.")
        if "google.colab" in sys.modules and own_folder.DRIVE not in place.parents:
            print("Colab deletes its files at the end of a session: mount your Drive and keep again, or download it.")


def own(*names: str) -> Any:
    """Your own parts out of your file, where they pass their checks, and the course's where not; it says which.

    Args:
        names: of functions or classes, as "one_hot".

    Returns:
        the part, or a tuple of the parts in the order of their names.

    Raises:
        AttributeError: the course has no part of that name; it shows as a sentence.
    """
    place = _find_own_file()
    theirs = import_module(read_package_name())
    if absent := [name for name in names if not (isinstance(name, str) and hasattr(theirs, name))]:
        raise hide_traceback(AttributeError(_describe_unknown_part(absent[0])))
    parts = {name: getattr(theirs, name) for name in names}
    mine, reasons = _select_passing_parts(place, names)
    _print_sources_of_parts(place, mine, [name for name in names if name not in mine], reasons)
    found = tuple({**parts, **mine}[name] for name in names)
    return found[0] if len(found) == 1 else found


def _describe_unknown_part(name: object) -> str:
    """Say to who asks for it that the course has no such part."""
    parts = sorted(_list_part_names())
    meant = getattr(name, "__name__", None)
    if not isinstance(name, str):
        usage = f'`own("{meant if meant in parts else parts[0]}")`'
        return f"The name of a part comes in quotes: {usage}. This is {describe_kind(name)}."
    near = difflib.get_close_matches(name.lower(), {each.lower(): each for each in parts}, n=1, cutoff=0.5)
    hint = [f'Did you mean `own("{each}")`?' for each in parts if each.lower() in near]
    there = " ".join(hint) or f"There are: {join_names(parts)}."
    return f"The course has no part called {quote_first_line(name, 60)}. {there}"


@dataclass(frozen=True)
class _File:
    """The text of a file of parts: what stands in front, and its cells with their headers, all to the letter."""

    front: str
    cells: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> _File:
        front, *cells = _HEADER_OF_CELL.split(text)
        return cls(front, tuple(cells))

    def replace_cell(self, exercise: Exercise, cell: str, imports: list[str]) -> _File:
        """The same with another cell for an exercise, in its place or at the end, and the imports that are missing."""
        missing = sorted(line for line in set(imports) if line not in self.front.split("\n"))
        front = "\n".join([self.front.rstrip("\n"), *([""] if "import " not in self.front else []), *missing])
        header = f"# %% {exercise.name}\n"
        written = f"{header}{cell}\n\n\n"
        cells = tuple(written if each.startswith(header) else each for each in self.cells)
        ends = [] if written in cells else [written]
        return _File(f"{front}\n\n\n" if missing else self.front, (*cells, *ends))

    def text(self) -> str:
        parts = [each if each.endswith("\n") else f"{each}\n" for each in (self.front, *self.cells)]
        return "".join(parts).rstrip("\n") + "\n"

    def holds(self, other: _File) -> bool:
        """Say whether nothing of another one is missing here."""
        return {each.strip() for each in other.cells} <= {each.strip() for each in self.cells}


def _keep_answer(exercise: Exercise, place: Path) -> None:
    """Write one answer, with the other parts that it calls, after it has passed its check from there too."""
    objects = get_last_passed_objects(exercise)
    if objects is None:
        raise CannotKeepError(f"It has to pass its check first: {write_check_call(exercise)}.")
    if all(_is_defined_in(each, place) for each in objects.values()):
        return
    before = _File.read(_read_student_file(place) or _HEADER)
    file = _add_part(before, exercise, objects, place)
    report = _check_module(exercise, _make_module(file.text(), place))
    if not _passes_with_own_parts(report):
        raise CannotKeepError(
            f"On its own, outside of this notebook, it is not right. {_explain_failed_report(report)}"
        )
    try:
        if not file.holds(before):
            write(place.with_suffix(".before.py"), before.text().encode())
        write(place, file.text().encode())
    except OSError as error:
        advice = "Open the notebook in a folder of yours, or, on Colab, mount your Drive."
        raise CannotKeepError(f"{place} cannot be written: {error.strerror or error}. {advice}") from None


def _add_part(file: _File, exercise: Exercise, objects: Mapping[str, object], place: Path) -> _File:
    """The file with an answer, and before it with the student's other parts that it calls."""
    found = collect_source(objects, _list_part_names() - set(objects), place.stem)
    imports = list(found.imports)
    for name, value in found.calls.items():
        if _belongs_to_course(value):
            imports.append(f"from {read_package_name()} import {name}")
        elif (other := course().find_exercise_of(name)) and not _is_defined_in(value, place):
            file = _add_part(file, other, _get_passed_objects(other), place)
    return file.replace_cell(exercise, "\n\n\n".join(found.definitions), imports)


def _get_passed_objects(exercise: Exercise) -> dict[str, object]:
    held = get_last_passed_objects(exercise)
    if held is None:
        raise CannotKeepError(
            f"It calls your `{exercise.name}`, which has to pass its check first: {write_check_call(exercise)}."
        )
    return dict(held)


def _select_passing_parts(place: Path, names: tuple[str, ...]) -> tuple[dict[str, object], list[str]]:
    """Those of the names that the student's file holds and that pass, and why not of the others."""
    try:
        text = _read_student_file(place)
        module = _make_module(text, place) if text else None
    except CannotKeepError as why:
        return {}, [str(why)]
    mine: dict[str, object] = {}
    reasons: list[str] = []
    exercises = {each.name: each for each in filter(None, map(course().find_exercise_of, names))}
    for exercise in exercises.values():
        held = [getattr(module, name, None) for name in exercise.objects]
        if module is None or None in held or any(map(_belongs_to_course, held)):  # a kept part may import the course's
            continue
        report = _check_module_once(exercise, module)
        if _passes_with_own_parts(report):
            mine |= {name: getattr(module, name) for name in exercise.objects if name in names}
        else:
            hint = f'`import {place.stem}`, then `check("{exercise.name}", {_write_dotted_name(exercise, place)})`'
            reasons.append(
                f"`{exercise.name}` in {place.name} is not used. {_explain_failed_report(report)} See {hint}."
            )
    return mine, reasons


def _print_sources_of_parts(
    place: Path, own_parts: Mapping[str, object], course_parts: list[str], reasons: list[str]
) -> None:
    for reason in reasons:
        print(reason)
    if own_parts:
        print(f"Your own, from {_shorten_path(place)}: {join_names([f'`{name}`' for name in own_parts])}.")
    if course_parts:
        print(f"The course's: {join_names([f'`{name}`' for name in course_parts])}.")


_reports: dict[tuple[str, str], Report] = {}


def _check_module_once(exercise: Exercise, module: ModuleType) -> Report:
    """The check of an exercise on a module, asked once for each state of the file."""
    key = exercise.name, str(vars(module)["__digest__"])
    if key not in _reports:
        _reports[key] = _check_module(exercise, module)
    return _reports[key]


def _check_module(exercise: Exercise, module: ModuleType) -> Report:
    objects = tuple(getattr(module, name, None) for name in exercise.objects)
    problem = find_problem_with_objects(exercise, objects)
    return Report(exercise.name, problem=problem) if problem else make_report(exercise, objects)


def _passes_with_own_parts(report: Report) -> bool:
    """Say whether a part and those that it calls are right: a check passes it with the course's in their place."""
    return report.passed and report.note is None


def _explain_failed_report(report: Report) -> str:
    if report.problem or report.note:
        return str(report.problem or report.note)
    failed = next((each for each in report.results if each.verdict != "pass"), None)
    return f'This check does not pass: "{failed.claim}"' if failed else "Nothing in it could be checked."


def _write_dotted_name(exercise: Exercise, place: Path) -> str:
    return ", ".join(f"{place.stem}.{name}" for name in exercise.objects)


def _make_module(text: str, place: Path) -> ModuleType:
    """The file as a module, under its name.

    Raises:
        CannotKeepError: it is not Python, or stops; the sentence names the line.
    """
    advice = f"Repair {place.name}, or move it away: until then the course's parts are used, and nothing is kept."
    digest = hashlib.sha256(text.encode()).hexdigest()
    if (known := sys.modules.get(place.stem)) and getattr(known, "__digest__", None) == digest:
        return known
    module = ModuleType(place.stem)
    vars(module).update(__file__=str(place), __digest__=digest)
    linecache.cache[str(place)] = (len(text), None, text.splitlines(True), str(place))
    try:
        exec(compile(text, str(place), "exec"), vars(module))
    except SyntaxError as error:
        raise CannotKeepError(f"{place.name} is not Python in line {error.lineno}: {error.msg}. {advice}") from None
    except Exception as error:
        line = _describe_error_line(error, place)
        raise CannotKeepError(f"{place.name} stops{line} with {type(error).__name__}: {error}. {advice}") from None
    sys.modules[place.stem] = module
    return module


def _describe_error_line(error: Exception, place: Path) -> str:
    numbers = [number for file, number in _iterate_frames(error) if file == str(place)]
    return f" in line {numbers[-1]}" if numbers else ""


def _iterate_frames(error: Exception) -> Iterator[tuple[str, int]]:
    trace = error.__traceback__
    while trace:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


def _read_student_file(place: Path) -> str | None:
    """The text of the student's file, None where there is none.

    Raises:
        CannotKeepError: it cannot be read.
    """
    try:
        if place.stat().st_size > _MOST_BYTES:
            raise CannotKeepError(f"{place.name} is larger than a megabyte: move it away.")
        return place.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CannotKeepError(f"{place.name} cannot be read: {error}.") from None


def _find_own_file() -> Path:
    return own_folder.find_own_folder() / course().own_parts


def _shorten_path(place: Path) -> str:
    return str(place) if own_folder.DRIVE in place.parents else place.name


def _list_part_names() -> set[str]:
    """The names of all objects that students write and the course has, too."""
    return {name for each in course().exercises.values() for name in each.objects if can_keep_answer(each)}


def _belongs_to_course(value: object) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == read_package_name()


def _is_defined_in(value: object, place: Path) -> bool:
    return getattr(value, "__module__", None) == place.stem
