"""Build every lesson's two notebooks, the course's outline, the empty cells and what pages quote, or say what is stale.

The outline has the lessons' titles and points, and how long, how difficult and how important everything is. It goes
with the package, so that a student's own progress can be shown without the lessons' sources.
"""

from __future__ import annotations

import ast
import json
import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from nbformat import NotebookNode

from exercise_kit.authoring.addresses import fill_in_site_address, read_addresses
from exercise_kit.authoring.lesson import AuthoringError, Lesson, Problem, Role, read_lesson
from exercise_kit.authoring.lint import find_problems
from exercise_kit.authoring.minutes import Minutes, estimate_minutes, has_task
from exercise_kit.authoring.notebook import build_solution_notebook, build_student_notebook, encode_notebook
from exercise_kit.authoring.quoted import differ_only_in_counts, fill_marks_in_pages
from exercise_kit.authoring.route import LessonRoute, find_route_problems, read_route
from exercise_kit.authoring.route_text import add_route_to_lesson, make_hours_table, make_lessons_table
from exercise_kit.authoring.way_on import add_borrowing_hints, list_borrowable_names
from exercise_kit.conventions import STUBS
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.library import make_misconceptions_json
from exercise_kit.files import read_content, write_and_make_folder

SOURCES, STUDENT_FOLDER = Path("solutions"), Path("notebooks")
OUTLINE = Path("exercises") / "outline.json"
STUBS_FILE = Path("exercises") / STUBS
ADDRESSES = Path("exercises") / "addresses.json"


@dataclass(frozen=True)
class BuildReport:
    """What a build did or, with `check=True`, would do. Paths are relative to the repository's root.

    Args:
        written: notebooks that this build wrote.
        stale: notebooks that a build would write or remove; empty unless only checking.
        unchanged: notebooks that are as they should be.
        orphaned: notebooks without a source; a build leaves them for you to remove.
        removed: notebooks that this build removed from a class, which leaves these lessons out.
        counts: pages with an old count, which the next build writes; empty unless only checking.
    """

    written: tuple[Path, ...] = ()
    stale: tuple[Path, ...] = ()
    unchanged: tuple[Path, ...] = ()
    orphaned: tuple[Path, ...] = ()
    removed: tuple[Path, ...] = ()
    counts: tuple[Path, ...] = ()

    @property
    def fresh(self) -> bool:
        """Whether the notebooks on disk are now what the sources say."""
        return not (self.stale or self.orphaned)


def build(root: Path, check: bool = False, pages: bool = True) -> BuildReport:
    """Build `solutions/*.ipynb` and `notebooks/*.ipynb` from `solutions/*.py`.

    Nothing is written unless every lesson is in order, each file is replaced in one step, and building twice
    gives the same bytes.

    Args:
        root: the repository's root.
        check: write nothing, only list what is stale.
        pages: with what Markdown pages quote, which takes much longer.

    Raises:
        AuthoringError: a lesson breaks a rule; every problem is listed with its file and line.
    """
    wanted = build_files(root, pages)
    outdated = {path: content for path, content in wanted.items() if read_content(root / path) != content}
    counts = tuple(
        path for path, content in outdated.items() if differ_only_in_counts(path, read_content(root / path), content)
    )
    if not check:
        for path, content in outdated.items():
            write_and_make_folder(root / path, content)
    folders = (root / SOURCES, root / STUDENT_FOLDER)
    found = {path.relative_to(root) for folder in folders for path in folder.glob("*.ipynb")}
    return BuildReport(
        written=() if check else tuple(outdated),
        stale=tuple(path for path in outdated if path not in counts) if check else (),
        counts=counts if check else (),
        unchanged=tuple(path for path in wanted if path not in outdated),
        orphaned=tuple(sorted(found - set(wanted))),
    )


def build_files(root: Path, pages: bool = True) -> dict[Path, bytes]:
    """Every notebook that the sources ask for, and the outline, by their paths relative to the root.

    Raises:
        AuthoringError: as for `build`.
    """
    addresses = read_addresses(root)
    lessons = [
        fill_in_site_address(read_lesson(root, path), addresses) for path in sorted((root / SOURCES).glob("*.py"))
    ]
    if not lessons:
        raise AuthoringError([Problem(SOURCES, "no lesson here; a lesson is a file solutions/NN_topic.py")])
    routes = read_route(root)
    problems = [problem for lesson in lessons for problem in find_problems(lesson, root)]
    problems += [
        each for lesson in lessons if lesson.name in routes for each in find_route_problems(lesson, routes[lesson.name])
    ]
    if problems := problems + _find_duplicate_exercises(lessons):
        raise AuthoringError(problems)
    minutes = {each.name: estimate_minutes(each, routes[each.name]) for each in lessons if each.name in routes}
    files: dict[Path, bytes] = {}
    stubs: dict[str, str] = {}
    lent = list_borrowable_names(root)
    for lesson in lessons:
        lesson = add_borrowing_hints(lesson, lent)
        if route := routes.get(lesson.name):
            lesson = add_route_to_lesson(lesson, route, minutes[lesson.name])
        solution = build_solution_notebook(lesson, root, addresses)
        student = build_student_notebook(solution)
        stubs |= _map_exercises_to_stubs(lesson, student)
        files[SOURCES / f"{lesson.name}.ipynb"] = encode_notebook(solution)
        files[STUDENT_FOLDER / f"{lesson.name}.ipynb"] = encode_notebook(student)
    if (root / read_package_name() / OUTLINE.parent).is_dir():
        facts = {
            each.name: _make_outline_entry(each, routes.get(each.name), minutes.get(each.name)) for each in lessons
        }
        files[read_package_name() / OUTLINE] = _encode_json(facts)
        files[read_package_name() / STUBS_FILE] = _encode_json(stubs)
        if addresses.site:
            files[read_package_name() / ADDRESSES] = _encode_json(asdict(addresses))
    return files | (fill_marks_in_pages(root, _collect_quotable_values(routes, minutes), addresses) if pages else {})


def _collect_quotable_values(
    routes: Mapping[str, LessonRoute], minutes: Mapping[str, Minutes]
) -> Mapping[str, Callable[[], str]]:
    """Return what any course's pages may quote, and what this one has beside it."""
    of_build = {
        "lessons": lambda: make_lessons_table(routes),
        "number of lessons": lambda: str(len(course().lessons)),
        "hours": lambda: make_hours_table(minutes),
        "all hours": lambda: f"{sum(each.total for each in minutes.values()) / 60:.0f}",
        "core hours": lambda: f"{sum(each.core for each in minutes.values()) / 60:.1f}",
        "known mistakes": lambda: f"{len(json.loads(make_misconceptions_json())):,}",
        "exercises": lambda: str(len(course().exercises)),
    }
    return ChainMap(of_build, dict(course().quoted))


def _find_duplicate_exercises(lessons: list[Lesson]) -> list[Problem]:
    """Exercises of the same name in two lessons: `check` knows an exercise by its name alone."""
    lesson_of: dict[str, Lesson] = {}
    problems = []
    for lesson in lessons:
        for cell in lesson.list_cells_of_role(Role.EXERCISE):
            first = lesson_of.setdefault(cell.name, lesson)
            if first is not lesson:
                message = f"exercise {cell.name!r} is also in {first.path}; rename one"
                problems.append(lesson.problem(message, cell))
    return problems


def _map_exercises_to_stubs(lesson: Lesson, student_notebook: NotebookNode) -> dict[str, str]:
    """The empty cells of a lesson's exercises, by name."""
    sources = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in student_notebook.cells}
    problems = []
    for cell in lesson.list_cells_of_role(Role.EXERCISE):
        try:
            ast.parse(sources[cell.name])
        except SyntaxError as error:
            message = f"without its answer the exercise is not valid Python ({error.msg}); move the markers"
            problems.append(lesson.problem(message, cell))
    if problems:
        raise AuthoringError(problems)
    return {cell.name: sources[cell.name] for cell in lesson.list_cells_of_role(Role.EXERCISE)}


def _encode_json(value: object) -> bytes:
    return f"{json.dumps(value, indent=1, ensure_ascii=False)}\n".encode()


def _make_outline_entry(lesson: Lesson, route: LessonRoute | None, minutes: Minutes | None) -> dict[str, object]:
    """Return what the outline says of a lesson; of one without a route the minutes are those of its own table."""
    first = lesson.cells[0].source
    title = first.partition("\n")[0].lstrip("# ")
    facts: dict[str, object] = {
        "title": re.sub(r"^\d\d\s*·\s*", "", title),
        "minutes": minutes.total if minutes else _sum_minutes_column(first),
        "points": {cell.name: cell.points for cell in lesson.list_cells_of_role(Role.CHECK)},
        "questions": {cell.name: cell.points for cell in lesson.list_cells_of_role(Role.QUESTION)},
    }
    if route is None or minutes is None:
        return facts
    tasks = {name: task for name, task in route.tasks.items() if has_task(lesson, name)}
    facts |= {"core": route.core, "core_minutes": minutes.core}
    return facts | {"tasks": {name: asdict(task) for name, task in tasks.items()}}


def _sum_minutes_column(text: str) -> int:
    """The sum of the column "minutes" of a lesson's table; of "1 to 10" the last number."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.split("\n") if line.startswith("|")]
    if not rows or "minutes" not in rows[0]:
        return 0
    column = rows[0].index("minutes")
    numbers = (re.findall(r"\d+", row[column]) for row in rows[1:] if len(row) > column)
    return sum(int(found[-1]) for found in numbers if found)
