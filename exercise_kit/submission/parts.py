"""Parts: the other exercises' answers that an answer calls, each with the model solution that can take its place.

So an error is not paid twice: where an answer fails, the judge evaluates it again with the model solutions of its
parts (:mod:`exercise_kit.judge.carried`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exercise_kit.engine.course import course
from exercise_kit.submission.needed import parse
from exercise_kit.submission.released import ReleasedLesson
from exercise_kit.submission.submission import ExerciseAnswer, Part


def parts_of(answer: ExerciseAnswer, lesson: ReleasedLesson) -> tuple[Part, ...]:
    """The parts of an answer, in the lesson's order, with those that their model solutions call.

    Only what stands earlier in the lesson can be one: of two answers that each undo the other, both would be right.
    A bug hunt asks for the same as the exercise that it came from, whose model solution would answer it. It is a part
    only of a class that inherits the layers and writes its own forward.

    Args:
        answer: as it was found in the submission.
        lesson: as it was released; a part without a model solution is left out.
    """
    if answer.source is None or answer.untouched:
        return ()
    names = [each.name for each in lesson.exercises]
    earlier = lesson.exercises[: names.index(answer.name)]
    exercises = {each.name: each.objects for each in earlier if each.name in lesson.model_answers}
    twins = {name for name in exercises if course().exercises[name].checks is course().exercises[answer.name].checks}
    if not _overrides_forward(answer.source):
        exercises = {name: objects for name, objects in exercises.items() if name not in twins}
    found: set[str] = set()
    texts = [answer.source]
    while texts:
        used = _names(texts.pop())
        new = {name for name, objects in exercises.items() if not used.isdisjoint(objects)} - found - {answer.name}
        found |= new
        texts += [lesson.model_answers[name] for name in new]
    return tuple(Part(name, _complete(lesson.model_answers[name], lesson)) for name in exercises if name in found)


def _overrides_forward(source: str) -> bool:
    """Whether a class in it has a forward of its own that does not hand the work on to the class above."""
    tree = parse(source)
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)) if tree else ()
    forwards = (node for each in classes for node in each.body if isinstance(node, ast.FunctionDef))
    return any(node.name == "forward" and "super" not in _names(ast.unparse(node)) for node in forwards)


def _complete(source: str, lesson: ReleasedLesson) -> str:
    """A model solution with the lesson's imports that it needs, so that it runs behind whatever a student changed."""
    used = _names(source)
    lines = [ast.unparse(each) for cell in lesson.cells if cell.code for each in _imports(cell.source, used)]
    return "\n".join([*dict.fromkeys(lines), source])


def _imports(source: str, used: frozenset[str]) -> Iterator[ast.stmt]:
    tree = parse(source)
    for statement in tree.body if tree else ():
        if isinstance(statement, ast.Import | ast.ImportFrom):
            bound = {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
            if not used.isdisjoint(bound):
                yield statement


def _names(source: str) -> frozenset[str]:
    tree = parse(source)
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) if tree else frozenset()
