"""The library's modules as text, and the right variants that a clone of the course keeps for its tests."""

from __future__ import annotations

import ast
import copy
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name

_KIT = __name__.partition(".")[0]
# what stands in every class, whatever its body
_IN_AN_EMPTY_CLASS = frozenset(vars(type("Empty", (), {})))


class NoSource(Exception):
    """An object has no source that could stand in a cell; the message says why."""


class Module:
    """The definitions and the imports at the top of a module of ours."""

    def __init__(self, name: str) -> None:
        self._tree = ast.parse(inspect.getsource(import_module(name)))
        self._statements: dict[str, ast.stmt] = {}
        self.import_lines: dict[str, str] = {}
        self.from_imports: dict[str, tuple[str, str]] = {}
        for statement in self._tree.body:
            for each in _list_defined_names(statement):
                self._statements[each] = statement
            self._record_imports(statement)

    def statement(self, name: str) -> ast.stmt | None:
        """The definition of a name, or None."""
        return self._statements.get(name)

    def find_lambda(self, function: FunctionType) -> ast.Lambda:
        """The expression that made a function, found by its line and by its code."""
        code = function.__code__
        lambdas = (node for node in ast.walk(self._tree) if isinstance(node, ast.Lambda))
        for node in lambdas:
            made = compile(ast.Expression(node), "", "eval").co_consts[0]
            if node.lineno == code.co_firstlineno and _make_code_key(made) == _make_code_key(code):
                return copy.deepcopy(node)
        raise NoSource(f"nobody can tell which lambda stands in line {code.co_firstlineno} of {function.__module__}")

    def modules(self) -> dict[str, str]:
        """Names that stand for modules of ours."""
        pairs = ((name, f"{origin}.{attribute}") for name, (origin, attribute) in self.from_imports.items())
        return {name: dotted for name, dotted in pairs if is_course_module(dotted) and dotted in sys.modules}

    def _record_imports(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                name = alias.asname or alias.name.partition(".")[0]
                self.import_lines[name] = ast.unparse(ast.Import([alias]))
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                name = alias.asname or alias.name
                self.import_lines[name] = ast.unparse(ast.ImportFrom(statement.module, [alias], 0))
                self.from_imports[name] = statement.module, alias.name


def is_top_level_definition(value: Any) -> bool:
    """Say whether a value is a function or class that stands at the top of a module of ours."""
    if (
        not isinstance(value, FunctionType | type)
        or not is_course_module(value.__module__)
        or "." in value.__qualname__
    ):
        return False
    return value.__name__ in vars(import_module(value.__module__)) and not is_lambda(value)


def _make_code_key(code: CodeType) -> tuple[object, ...]:
    """Return what tells two short functions of one line apart."""
    constants = tuple(_make_code_key(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.co_names, code.co_varnames, constants


def is_empty_subclass(value: Any) -> bool:
    """Say whether a value is a class of ours that inherits all that it has."""
    ours = isinstance(value, type) and is_course_module(value.__module__) and not is_top_level_definition(value)
    return ours and vars(value).keys() <= _IN_AN_EMPTY_CLASS


def is_lambda(value: object) -> bool:
    """Say whether it is a function without a name."""
    return isinstance(value, FunctionType) and value.__name__ == "<lambda>"


@cache
def read_module(name: str) -> Module:
    """The module of a name, read once."""
    return Module(name)


def is_course_module(module: str) -> bool:
    """Say whether a module is the course's own, or the kit's, so that what it holds is copied into cells."""
    return module.partition(".")[0] in (read_package_name(), _KIT, "tests")


def is_ours(module: str, root: str) -> bool:
    """Say whether what a decorator begins with belongs to the course."""
    known = read_module(module)
    if root in known.from_imports:
        return is_course_module(known.from_imports[root][0])
    return known.statement(root) is not None


def _list_defined_names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def load_right_variants() -> dict[str, tuple[tuple[Any, ...], ...]]:
    """Each exercise's right variants, as tuples of its objects; a wheel has none.

    A module that needs a package which is not installed here is left out.
    """
    exercises = [each for each in course().exercises.values() if each.checks]
    claims = dict.fromkeys(each.checks[0].function.__module__ for each in exercises)
    found: dict[str, tuple[tuple[Any, ...], ...]] = {}
    for name in claims:
        path = Path(str(sys.modules[name].__file__)).with_name("variants.py")
        module = _load_module(f"{name.rpartition('.')[0]}.variants", path) if path.exists() else None
        for exercise, variants in getattr(module, "RIGHT", {}).items():
            made = tuple(each if isinstance(each, tuple) else (each,) for each in variants)
            found[exercise] = found.get(exercise, ()) + made
    return found


def is_variant(value: Any) -> bool:
    """Say whether a function or class is written in a module of right variants."""
    return bool(value.__module__.endswith(".variants"))


def _load_module(name: str, path: Path) -> ModuleType | None:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError:
        del sys.modules[name]
        return None
    return module
