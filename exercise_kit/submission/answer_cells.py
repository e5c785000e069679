"""Which cells hold the answer to each exercise, and which other exercises' answers these call.

The called ones are kept with the model solutions that can take their places, so that the judge does not count an error
twice (:mod:`exercise_kit.judge.scoring`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from exercise_kit.engine.course import course
from exercise_kit.reasons import Reason
from exercise_kit.submission.notebook_file import SubmittedCell
from exercise_kit.submission.released import ReleasedExercise, ReleasedLesson
from exercise_kit.submission.result_file import ResultFile
from exercise_kit.submission.slice import (
    find_begun_definitions,
    has_dynamic_names,
    is_empty,
    list_definitions,
    list_imports,
    parse,
)
from exercise_kit.submission.submission import ExerciseAnswer, Part


def find_answer_parts(answer: ExerciseAnswer, lesson: ReleasedLesson) -> tuple[Part, ...]:
    """The parts of an answer, in the lesson's order, with those that their model solutions call.

    Only what stands earlier in the lesson can be one: of two answers that each undo the other, both would be right.
    A bug hunt asks for the same as the exercise that it came from, whose model solution would answer it. It is a part
    only of a class that inherits the layers and writes its own forward. What the exercise's rule names is no part: a
    test that needs no second norm would compare with the model's.

    Args:
        answer: as it was found in the submission.
        lesson: as it was released; a part without a model solution is left out.
    """
    if answer.source is None or answer.untouched:
        return ()
    names = [each.name for each in lesson.exercises]
    earlier = lesson.exercises[: names.index(answer.name)]
    rule = course().rules.get(answer.name)
    forbidden = rule.others if rule else ()
    exercises = {
        each.name: each.objects
        for each in earlier
        if each.name in lesson.model_answers and not set(forbidden) & set(each.objects)
    }
    twins = {name for name in exercises if course().exercises[name].checks is course().exercises[answer.name].checks}
    if not _overrides_forward(answer.source):
        exercises = {name: objects for name, objects in exercises.items() if name not in twins}
    found: set[str] = set()
    texts = [answer.source]
    while texts:
        used = _find_mentioned_names(texts.pop())
        new = {name for name, objects in exercises.items() if not used.isdisjoint(objects)} - found - {answer.name}
        found |= new
        texts += [lesson.model_answers[name] for name in new]
    models = {name: _remove_methods(lesson.model_answers[name], forbidden) for name in exercises if name in found}
    return tuple(Part(name, _prepend_needed_imports(source, lesson)) for name, source in models.items())


def _overrides_forward(source: str) -> bool:
    """Say whether a class in it has a forward of its own that does not hand the work on to the class above."""
    tree = parse(source)
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)) if tree else ()
    forwards = (node for each in classes for node in each.body if isinstance(node, ast.FunctionDef))
    return any(node.name == "forward" and "super" not in _find_mentioned_names(ast.unparse(node)) for node in forwards)


def _remove_methods(source: str, forbidden: Collection[str]) -> str:
    """A model solution without the methods that a rule names, as "Norm.forward"."""
    if not any("." in each for each in forbidden):
        return source
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body = [each for each in node.body if f"{node.name}.{getattr(each, 'name', '')}" not in forbidden]
    return ast.unparse(tree)


def _prepend_needed_imports(source: str, lesson: ReleasedLesson) -> str:
    """A model solution with the lesson's imports that it needs, so that it runs behind whatever a student changed."""
    used = _find_mentioned_names(source)
    lines = [
        ast.unparse(each) for cell in lesson.cells if cell.code for each in _iterate_used_imports(cell.source, used)
    ]
    return "\n".join([*dict.fromkeys(lines), source])


def _iterate_used_imports(source: str, used: frozenset[str]) -> Iterator[ast.stmt]:
    tree = parse(source)
    for statement in tree.body if tree else ():
        if isinstance(statement, ast.Import | ast.ImportFrom):
            bound = {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
            if not used.isdisjoint(bound):
                yield statement


def _find_mentioned_names(source: str) -> frozenset[str]:
    tree = parse(source)
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) if tree else frozenset()


def find_answers(
    cells: Sequence[SubmittedCell],
    lesson: ReleasedLesson,
    exercise_names: Collection[str] | None,
    all_requested: bool,
    find_file: Callable[[str], ResultFile],
) -> tuple[tuple[ExerciseAnswer, ...], frozenset[int]]:
    """The answers, in the lesson's order, and the indexes of cells that must not run beside them.

    A cell answers an exercise when it bears its mark, or when the student wrote it and it defines what the exercise
    asks for. Where there are several, what was left as released does not count, and then the last one does.

    Args:
        cells: all cells of the submission.
        lesson: as it was released.
        exercise_names: names of the exercises that are graded; None: all.
        all_requested: whether an exercise without an answer is a problem, or is left out.
        find_file: finds the file of a name that an exercise asks for.
    """
    given = {cell.source.strip() for cell in lesson.cells if cell.role in ("plain", "locked", "check")}
    checks = lesson.find_cells_by_role("check")
    written = [
        cell
        for cell in cells
        if cell.code and cell.grade_id not in checks and cell.source.strip() not in given and not is_empty(cell.source)
    ]
    answers, aside = [], set[int]()
    for exercise in lesson.exercises:
        if exercise.file:
            if exercise_names is None or exercise.name in exercise_names:
                file = find_file(exercise.file)
                reason = Reason.NO_FILE if file.problem else None
                if all_requested or not reason:
                    answer = ExerciseAnswer(exercise.name, exercise.points, problem=file.problem, reason=reason)
                    answers.append(replace(answer, file=file, kind=file.problem or ""))
            continue
        marked = [cell for cell in cells if cell.grade_id == exercise.name]
        candidates = list(_iterate_candidate_cells(written, marked, exercise))
        stubs = [cell for cell in candidates if cell.source.strip() == exercise.stub.strip()]
        if len(stubs) < len(candidates):
            aside |= {cell.index for cell in stubs}
            candidates = [cell for cell in candidates if cell not in stubs]
        if exercise_names is None or exercise.name in exercise_names:
            answer = _make_answer_of_candidates(exercise, candidates, marked)
            if answer.source is not None or all_requested:
                answers.append(answer)
    return tuple(answers), frozenset(aside)


def _iterate_candidate_cells(
    written: Sequence[SubmittedCell], marked: Sequence[SubmittedCell], exercise: ReleasedExercise
) -> Iterator[SubmittedCell]:
    """Cells that define what the exercise asks for, and marked cells whose definitions cannot be read.

    Where every such cell is as it was released, a cell with a syntax error counts as the answer if it begins the
    definition.
    """
    found = list(_iterate_defining_cells(written, marked, exercise))
    yield from found
    if all(cell.source.strip() == exercise.stub.strip() for cell in found):
        yield from (cell for cell in written if not find_begun_definitions(cell.source).isdisjoint(exercise.objects))


def _iterate_defining_cells(
    written: Sequence[SubmittedCell], marked: Sequence[SubmittedCell], exercise: ReleasedExercise
) -> Iterator[SubmittedCell]:
    for cell in written:
        tree = parse(cell.source)
        defined = list_definitions(tree) | (list_imports(tree) if cell in marked else frozenset())
        unclear = cell in marked and (tree is None or has_dynamic_names(cell.source))
        if unclear or not defined.isdisjoint(exercise.objects):
            yield cell


def _make_answer_of_candidates(
    exercise: ReleasedExercise, candidates: Sequence[SubmittedCell], marked: Sequence[SubmittedCell]
) -> ExerciseAnswer:
    base = ExerciseAnswer(exercise.name, exercise.points)
    if not candidates:
        return _explain_missing_answer(base, exercise, marked)
    problem = reason = None
    for name in exercise.objects:
        defining = {cell.source.strip() for cell in candidates if name in list_definitions(parse(cell.source))}
        if len(defining) > 1:
            problem = f"there are {len(defining)} answers for {exercise.name}; the last one counts"
            reason = Reason.SEVERAL_ANSWERS
    untouched = all(cell.source.strip() == exercise.stub.strip() for cell in candidates)
    source = "\n\n".join(dict.fromkeys(cell.source for cell in candidates)) if not problem else candidates[-1].source
    return ExerciseAnswer(base.name, base.max_score, source, candidates[-1].index, problem, reason, untouched)


def _explain_missing_answer(
    base: ExerciseAnswer, exercise: ReleasedExercise, marked: Sequence[SubmittedCell]
) -> ExerciseAnswer:
    if not marked:
        what, reason = "is missing", Reason.NO_CELL
    elif any(not cell.code for cell in marked):
        what, reason = "is no code cell any more", Reason.NO_CODE
    elif all(is_empty(cell.source) for cell in marked):
        what, reason = "is empty", Reason.EMPTY_CELL
    else:
        what, reason = f"does not define {' and '.join(exercise.objects)}", Reason.NOT_DEFINED
    cell = marked[-1].index if marked else None
    kind = "its cell does not define the answer" if reason is Reason.NOT_DEFINED else f"its cell {what}"
    return replace(base, cell=cell, problem=f"the cell of {exercise.name} {what}", reason=reason, kind=kind)
