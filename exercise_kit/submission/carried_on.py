"""A cell that goes on where a statement of it is refused: what the next statements define is there all the same."""

from __future__ import annotations

import ast

from exercise_kit.submission.slice import as_python, parse

_KEPT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_GUARD = "with __import__('contextlib').suppress(Exception): "


def carried_on(source: str) -> str:
    """A cell in which no top-level statement but a definition or an import ends it by raising; the same line numbers.

    Where what an exercise forbids is not there, a cell that compares with it breaks off, and what stands behind would
    be missing. Definitions keep their text, which TorchScript reads. A cell that is no Python stays as it is.
    """
    tree = parse(source)
    lines = as_python(source).splitlines()
    if tree is None or ast.dump(tree) != ast.dump(parse("\n".join(lines)) or ast.Module([], [])):
        return source
    places = [(each.lineno, each.end_lineno or each.lineno) for each in tree.body]
    for number, statement in enumerate(tree.body):
        first, last = places[number]
        is_alone = all(end < first or last < start for at, (start, end) in enumerate(places) if at != number)
        if is_alone and not isinstance(statement, _KEPT) and not _defines(statement) and _calls(statement):
            lines[first - 1 : last] = [_guarded(statement), *[""] * (last - first)]
    return "\n".join(lines)


def _defines(statement: ast.stmt) -> bool:
    return any(isinstance(node, _KEPT) for node in ast.walk(statement))


def _calls(statement: ast.stmt) -> bool:
    """Whether it may run an operator; what only binds names and numbers is left as it is."""
    return any(isinstance(node, ast.Call | ast.BinOp | ast.Attribute) for node in ast.walk(statement))


def _guarded(statement: ast.stmt) -> str:
    text = ast.unparse(statement)
    return _GUARD + (f"exec({text!r})" if "\n" in text else text)
