"""The lessons of one class: its own, and the course's with other points, another order or fewer exercises.

In the class folder, ``lessons/NN_topic.py`` is a lesson of the class's own, or replaces the course's lesson of that
name. ``class.toml`` changes the course's lessons without a copy::

    leave_out = ["one_hot", "09_labels"]   # exercises, questions or whole lessons
    route = "core"                         # release the core's lessons alone
    borrow = false                         # students may not borrow the course's parts

    [points]
    moving_average = 5

    [order]
    00_numbers = ["Standardize", "moving_average"]   # the sections ("## ") that hold them change places
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exercise_kit.authoring.build import OUTLINE, SOURCES, STUBS_FILE, STUDENT_FOLDER, BuildReport, build_files
from exercise_kit.authoring.lesson import HEADER, MARKER, AuthoringError, Problem
from exercise_kit.authoring.route import FILE as ROUTE
from exercise_kit.engine.class_exercises import EXERCISES, LESSONS, PACKAGE, PACKED
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.release_settings import ReleaseSettings, Route
from exercise_kit.files import read_content, write_and_make_folder
from exercise_kit.nbgrader.class_folder import OF_CLASS

SETTINGS = "class.toml"
_BUILT = ".built.json"  # in lessons/: the digests of the notebooks that the last build wrote; "" where it removed one
_ROLE = re.compile(r"""\b(exercise|check|question)=["']([^"']+)["']""")
_POINTS = re.compile(r"\bpoints=[0-9.]+")
_MODULE = '"""The exercises of this class: their public checks, and the mistakes that these know by name."""\n'


@dataclass(frozen=True)
class Settings:
    """What ``class.toml`` says."""

    leave_out: tuple[str, ...] = ()
    points: Mapping[str, float] | None = None
    order: Mapping[str, Sequence[str]] | None = None
    release: ReleaseSettings = field(default_factory=ReleaseSettings)


def read_settings(class_dir: Path) -> Settings:
    """The settings of a class; without a file, none.

    Raises:
        AuthoringError: the file cannot be read, or says something else than it can.
    """
    try:
        found = tomllib.loads((class_dir / SETTINGS).read_text("utf-8"))
    except FileNotFoundError:
        return Settings()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AuthoringError([Problem(Path(SETTINGS), f"cannot be read: {error}")]) from None
    leave_out, points, order = found.pop("leave_out", []), found.pop("points", {}), found.pop("order", {})
    route, borrow = found.pop("route", "all"), found.pop("borrow", True)
    problems = [f"it has no {key!r}; there are leave_out, route, borrow, [points] and [order]" for key in found]
    if route not in [*Route]:
        problems.append('route is "core" or "all"')
    if not isinstance(borrow, bool):
        problems.append("borrow is true or false")
    if not _is_list_of_strings(leave_out):
        problems.append('leave_out is a list of names, as ["count_tokens"]')
    if not isinstance(points, dict) or not all(_is_positive_number(each) for each in points.values()):
        problems.append("[points] gives a number above 0 for each name, as count_tokens = 5")
    if not isinstance(order, dict) or not all(_is_list_of_strings(each) for each in order.values()):
        problems.append('[order] gives a list of exercises for a lesson, as 05_topic = ["count_tokens"]')
    if problems:
        raise AuthoringError([Problem(Path(SETTINGS), each) for each in problems])
    return Settings(tuple(leave_out), points, order, ReleaseSettings(Route(route), borrow))


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_positive_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


@contextmanager
def build_class_root(class_dir: Path, root: Path) -> Iterator[Path]:
    """A folder like a clone of the course, with the lessons, notebooks and hidden checks as a class has them.

    Args:
        class_dir: the class folder.
        root: a clone, whose lessons are built.

    Raises:
        AuthoringError: a lesson, an exercise or the settings have an error; all are listed, with file and line.
    """
    lessons = read_lesson_sources(class_dir, root)
    changed = {
        name: text for name, text in lessons.items() if text != _read_text_if_exists(root / SOURCES / f"{name}.py")
    }
    problems = [*_find_exercise_problems(lessons), *_find_file_problems(class_dir)]
    with tempfile.TemporaryDirectory(prefix="vit-course-class-") as temporary:
        merged = Path(temporary)
        for name, text in changed.items():
            write_and_make_folder(merged / SOURCES / f"{name}.py", text.encode())
        _link_figures(merged, class_dir, root)
        shutil.copyfile(root / "pyproject.toml", merged / "pyproject.toml")
        (merged / read_package_name() / OUTLINE.parent).mkdir(parents=True)
        if (route := read_content(root / read_package_name() / ROUTE)) is not None:
            write_and_make_folder(merged / read_package_name() / ROUTE, route)
        try:
            built = build_files(merged) if changed else {}
        except AuthoringError as error:
            problems += [_point_problem_to_class_file(each, class_dir) for each in error.problems]
        if problems:
            raise AuthoringError(problems)
        _fill_class_root(merged, class_dir, root, built, lessons)
        yield merged


def read_lesson_sources(class_dir: Path, root: Path) -> dict[str, str]:
    """Every lesson of a class by name, as its source; the settings are in it.

    Raises:
        AuthoringError: the settings cannot be read, or name what there is not.
    """
    settings = read_settings(class_dir)
    paths = _find_source_files(class_dir, root)
    texts = {name: _read_text_if_exists(paths[name]) or "" for name in sorted(paths)}
    named = {name for text in texts.values() for _, name in _ROLE.findall(text)}
    wrong = [each for each in (*settings.leave_out, *(settings.points or {})) if each not in named | texts.keys()]
    problems = [Problem(Path(SETTINGS), f"there is no exercise, question or lesson called {each!r}") for each in wrong]
    for lesson, names in (settings.order or {}).items():
        if lesson not in texts:
            problems.append(Problem(Path(SETTINGS), f"[order]: there is no lesson called {lesson!r}"))
        else:
            texts[lesson], words = _reorder_sections(texts[lesson], names)
            problems += [Problem(Path(SETTINGS), f"[order], {lesson}: {words}")] if words else []
    if problems:
        raise AuthoringError(problems)
    kept = {name: text for name, text in texts.items() if name not in settings.leave_out}
    return {name: _apply_settings(text, settings) for name, text in kept.items()}


def _find_source_files(class_dir: Path, root: Path) -> dict[str, Path]:
    """The source of every lesson by name, of those that are left out too."""
    return {path.stem: path for folder in (root / SOURCES, class_dir / LESSONS) for path in sorted(folder.glob("*.py"))}


def _apply_settings(text: str, settings: Settings) -> str:
    """A lesson without what is left out, and with other points."""
    head, cells = _split_into_cells(text)
    left = set(settings.leave_out)
    found = []
    for cell in cells:
        header, _, body = cell.partition("\n")
        role = _ROLE.search(header)
        if role and role[2] in left:
            if role[1] != "exercise":
                continue
            cell = f"# %%\n{MARKER.sub('', body)}"  # it is shown with its answer, for what follows is built on it
        elif role and role[1] != "exercise" and role[2] in (settings.points or {}):
            worth = f"points={(settings.points or {})[role[2]]:g}"
            cell = f"{_POINTS.sub(worth, header)}\n{body}"
        found.append(cell)
    text = head + "".join(found)
    for name in left:
        text = re.sub(rf"^# (#+) [^\n]*?: `{name}`", rf"# \1 Given: `{name}`", text, flags=re.MULTILINE)
    return text


def _split_into_cells(text: str) -> tuple[str, list[str]]:
    """A source's head, and its cells with their headers."""
    lines = text.splitlines(keepends=True)
    begins = [number for number, line in enumerate(lines) if HEADER.match(line)]
    ends = [*begins[1:], len(lines)]
    cells = ["".join(lines[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    return "".join(lines[: begins[0]] if begins else lines), cells


def _reorder_sections(text: str, names: Sequence[str]) -> tuple[str, str]:
    """A lesson with the sections that hold these exercises put into this order, and why that cannot be done, or ""."""
    head, cells = _split_into_cells(text)
    sections: list[list[str]] = [[]]
    for cell in cells:
        if re.search(r"^# ## ", cell, re.MULTILINE):
            sections.append([])
        sections[-1].append(cell)
    places = []
    for name in names:
        roles = (("exercise", name), ("question", name))
        found = [at for at, each in enumerate(sections) if any(one in _ROLE.findall("".join(each)) for one in roles)]
        if not found:
            return text, f"there is no exercise or question called {name!r} in it"
        places.append(found[0])
    if len(set(places)) < len(places):
        shared = [name for name, place in zip(names, places, strict=True) if places.count(place) > 1]
        return text, f"{' and '.join(shared)} stand in one section; edit lessons/ to part them"
    moved = dict(zip(sorted(places), [sections[place] for place in places], strict=True))
    return head + "".join(cell for at, each in enumerate(sections) for cell in moved.get(at, each)), ""


def _find_exercise_problems(lessons: Mapping[str, str]) -> Iterator[Problem]:
    """Checks of exercises that there are not, and exercises that two lessons ask for."""
    places: dict[str, str] = {}
    for lesson, text in lessons.items():
        for number, line in enumerate(text.splitlines(), 1):
            role = _ROLE.search(line) if HEADER.match(line) else None
            if not role or role[1] != "exercise":
                continue
            where = Path(LESSONS, f"{lesson}.py")
            if role[2] not in course().exercises:
                advice = f"write {EXERCISES}/{role[2]}.py, or mend the name"
                yield Problem(where, f"there is no exercise called {role[2]!r}; {advice}", number)
            elif places.setdefault(role[2], lesson) != lesson:
                yield Problem(where, f"exercise {role[2]!r} is also in {places[role[2]]}; rename one", number)


def _find_file_problems(class_dir: Path) -> Iterator[Problem]:
    """Yield what is wrong with the files of the class's own exercises, and with where they are asked for."""
    own = course().own
    if own is None:
        return
    for words in own.problems.values():
        place, _, message = words.partition(": ")
        yield Problem(Path(place), message)
    lessons = own.map_exercises_to_lessons()
    for name, exercise in own.exercises.items():
        where = Path(EXERCISES, f"{name}.py")
        if exercise.problem:
            continue
        if name not in lessons:
            yield Problem(where, f'no file in {LESSONS}/ has a cell with exercise="{name}"')
        elif lessons[name] != exercise.lesson:
            yield Problem(where, f"its lesson is {exercise.lesson!r}, and {LESSONS}/{lessons[name]}.py asks for it")


def _point_problem_to_class_file(problem: Problem, class_dir: Path) -> Problem:
    own = class_dir / LESSONS / problem.path.name
    place = Path(LESSONS, problem.path.name) if own.is_file() else Path(SETTINGS)
    return replace(problem, path=place)


def _link_figures(merged_root: Path, class_dir: Path, root: Path) -> None:
    """Links to the figures of the course, and to those of the class beside its lessons."""
    (merged_root / "figures").mkdir()
    for folder in (class_dir / "figures", root / "figures"):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not (merged_root / "figures" / path.name).exists():
                (merged_root / "figures" / path.name).symlink_to(path.resolve())


def _fill_class_root(
    merged_root: Path, class_dir: Path, root: Path, built: Mapping[Path, bytes], lessons: Mapping[str, str]
) -> None:
    for path, content in built.items():
        write_and_make_folder(merged_root / path, content)
    for folder in (SOURCES, STUDENT_FOLDER):
        for name in lessons:
            path = folder / f"{name}.ipynb"
            if path not in built:
                write_and_make_folder(merged_root / path, (root / path).read_bytes())
    shutil.copytree(
        class_dir / "hidden", merged_root / "tests" / "hidden", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in (EXERCISES, LESSONS):
        if (class_dir / name).is_dir():
            target = merged_root / OF_CLASS / name
            shutil.copytree(class_dir / name, target, ignore=shutil.ignore_patterns("__pycache__"))
    if (class_dir / SETTINGS).is_file():
        write_and_make_folder(merged_root / OF_CLASS / SETTINGS, (class_dir / SETTINGS).read_bytes())
    digests = {
        path.stem: hashlib.sha256(content).hexdigest() for path, content in built.items() if path.parent == SOURCES
    }
    digests |= dict.fromkeys(sorted(_find_source_files(class_dir, root).keys() - lessons.keys()), "")
    write_and_make_folder(merged_root / OF_CLASS / LESSONS / _BUILT, _encode_json(digests))
    for table in (OUTLINE, STUBS_FILE):
        path = read_package_name() / table
        facts = [json.loads(each) for each in (read_content(root / path), built.get(path)) if each]
        whole = {name: each for one in facts for name, each in one.items() if table == STUBS_FILE or name in lessons}
        write_and_make_folder(merged_root / path, _encode_json({name: whole[name] for name in sorted(whole)}))


def build_class(class_dir: Path, root: Path, check: bool = False) -> BuildReport:
    """Build the lessons in which a class differs from the course, as ``source/NN_topic/NN_topic.ipynb``.

    Of a lesson that is left out the notebook goes, so that nobody releases it; it comes back when that is over.

    Args:
        class_dir: the class folder.
        root: a clone of the course.
        check: write nothing, only list what is stale.

    Raises:
        AuthoringError: as for :func:`build_class_root`; or somebody has changed a notebook that would be replaced or
            removed.
    """
    with build_class_root(class_dir, root) as merged:
        ours = json.loads((merged / OF_CLASS / LESSONS / _BUILT).read_bytes())
        before = json.loads(read_content(class_dir / LESSONS / _BUILT) or b"{}")
        wanted: dict[Path, bytes | None] = {}
        for name in sorted({*ours, *before}):
            content = read_content(merged / SOURCES / f"{name}.ipynb")
            if content is not None or name in ours:  # else its source is gone
                wanted[Path("source", name, f"{name}.ipynb")] = content
        stale = tuple(path for path, content in wanted.items() if read_content(class_dir / path) != content)
        unchanged = tuple(path for path in wanted if path not in stale)
        if check:
            return BuildReport(stale=stale, unchanged=unchanged)
        _refuse_overwriting_edited_notebooks(stale, class_dir, root, before)
        for path in stale:
            _write_or_delete_notebook(class_dir / path, wanted[path])
        if ours != before:
            write_and_make_folder(class_dir / LESSONS / _BUILT, _encode_json(ours))
        removed = tuple(path for path in stale if wanted[path] is None)
        written = tuple(path for path in stale if path not in removed)
        return BuildReport(written=written, unchanged=unchanged, removed=removed)


def _write_or_delete_notebook(notebook: Path, content: bytes | None) -> None:
    if content is not None:
        write_and_make_folder(notebook, content)
        return
    notebook.unlink()
    with suppress(OSError):  # somebody keeps more there
        notebook.parent.rmdir()


def _refuse_overwriting_edited_notebooks(
    stale: Sequence[Path], class_dir: Path, root: Path, known_digests: Mapping[str, str]
) -> None:
    problems = []
    for path in stale:
        there = read_content(class_dir / path)
        from_course = read_content(root / SOURCES / path.name)
        if there is None or there == from_course:
            continue
        if hashlib.sha256(there).hexdigest() != known_digests.get(path.stem):
            advice = f"make the change in {LESSONS}/{path.stem}.py, move the notebook away, and build again"
            problems.append(Problem(path, f"somebody has changed it, so it is left as it is; {advice}"))
    if problems:
        raise AuthoringError(problems)


def copy_packages_for_wheel(merged_root: Path, root: Path, paths: Sequence[Path]) -> None:
    """Put the course's packages into a class's root, and the class's exercises into the course's, for a wheel.

    The version of the wheel names them, so that pip replaces the wheel of another release by this one. The skeletons of
    new exercises stay here: an author may have kept one's answer.
    """
    for path in paths:
        if not (merged_root / path).exists() and not path.name.startswith("new_exercise_"):
            write_and_make_folder(merged_root / path, (root / path).read_bytes())
    own = merged_root / OF_CLASS / EXERCISES
    found = {path.name: path.read_bytes() for path in sorted(own.glob("*.py"))} if own.is_dir() else {}
    found |= _pack_class_answers()
    for name, content in found.items():
        write_and_make_folder(merged_root / read_package_name() / PACKAGE / name, content)
    if found:
        write_and_make_folder(merged_root / read_package_name() / PACKAGE / "__init__.py", _MODULE.encode())
        label = hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:8]
        settings = (merged_root / "pyproject.toml").read_text("utf-8")
        numbered = re.sub(
            r'^(version = "[^"+]+)(?:\+[^"]*)?"', rf'\1+class.{label}"', settings, count=1, flags=re.MULTILINE
        )
        write_and_make_folder(merged_root / "pyproject.toml", numbered.encode())


def _pack_class_answers() -> dict[str, bytes]:
    """By the names of their files the answers of the class's own exercises, from which known mistakes are made."""
    from exercise_kit.engine.own_exercise import pack_answer_with_lesson  # with torch

    if (own := course().own) is None:
        return {}
    packed = {
        f"{name}{PACKED}": pack_answer_with_lesson(own.folder / f"{name}.py", each)
        for name, each in own.exercises.items()
    }
    return {name: content for name, content in packed.items() if content}


def _read_text_if_exists(path: Path) -> str | None:
    content = read_content(path)
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text ({error.reason} at byte {error.start})"
        raise AuthoringError([Problem(Path(path.parent.name, path.name), message)]) from None


def _encode_json(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"
