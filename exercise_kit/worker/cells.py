"""A notebook's cells: compiled before the first of them runs, and then run by nothing that a cell could have changed.

IPython hands a cell's text to transformers, to a compiler and to callbacks, and a cell can put its own among them: the
page would show one text, and another would run. Here the text that the judge has read is compiled while no student's
code has run yet, and what runs later is that code. Whose code a function has can then be told by its identity.
"""

from __future__ import annotations
import __future__

import ast
import asyncio
import dis
import functools
import gc
import linecache
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from . import outputs, withheld
from .bounds import time_limit
from .outputs import Stream, read_error_message
from .real_types import is_a, namespace_of

_compile, _exec, _eval, _referents = compile, exec, eval, gc.get_referents  # as they are before any cell runs
_FUTURES = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_COROUTINE = 0x80  # of co_flags
_MOST_LOOKED_AT = 500  # objects that lead from an answer to its code
_LONGEST_NAME = 30
_MOST_CODES = 6
_code = FunctionType.__dict__["__code__"].__get__
_closure = FunctionType.__dict__["__closure__"].__get__
_defaults = FunctionType.__dict__["__defaults__"].__get__
_keyword_defaults = FunctionType.__dict__["__kwdefaults__"].__get__
_attributes = FunctionType.__dict__["__dict__"].__get__


class Cells:
    """The compiled cells of one notebook.

    Args:
        shell: the cells' own, by which they show what they show.
    """

    def __init__(self, shell: Any) -> None:
        self._shell, self._variables, self._show = shell, shell.user_ns, shell.displayhook
        self._statements: dict[int, list[CodeType | SyntaxError]] = {}
        self._sources: dict[int, str] = {}
        self._places: dict[int, tuple[CodeType, str]] = {}
        self._futures = 0
        self._place, self._passed = 0, False
        self._not_made: dict[str, str] = {}  # the names that statements which were passed over make → why
        self._loop: asyncio.AbstractEventLoop | None = None

    def compile(self, index: int, source: str, readable: bool) -> None:
        """Compile a cell; an error in its syntax is raised when it is run.

        Args:
            index: of the cell.
            source: Python, as the judge has read it.
            readable: whether the judge could read it; what it could not is not run.
        """
        name, self._sources[index] = outputs.make_cell_name(index), source
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        try:
            body = ast.parse(source, name).body
            if not readable:
                raise SyntaxError("this cell cannot be read")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._statements[index] = [_convert_to_syntax_error(error)]
            return
        shown = body[-1] if body and isinstance(body[-1], ast.Expr) else None
        self._statements[index] = [self._compile_statement(each, index, name, each is shown) for each in body]

    def _compile_statement(self, statement: ast.stmt, index: int, name: str, shown: bool) -> CodeType | SyntaxError:
        """A statement's code, by itself: what stands before an error runs, as in a notebook."""
        tree, mode = (ast.Interactive([statement]), "single") if shown else (ast.Module([statement], []), "exec")
        flags = self._futures | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        try:
            code: CodeType = _compile(tree, name, mode, flags, True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return _convert_to_syntax_error(error)
        self._futures |= code.co_flags & _FUTURES
        for each in _walk_code_objects(code):
            self._places[id(each)] = each, f"{index}:{each.co_firstlineno}:{each.co_name[:_LONGEST_NAME]}"
        return code

    def run(self, index: int, limit: float, until: int | None = None) -> dict[str, Any]:
        """Run one cell, for ``limit`` seconds at most: {"outputs": [...], "seconds": ..., "at": ..., "passed": ...}.

        Args:
            index: of the cell.
            limit: in seconds.
            until: the place of a statement. Those before it have run where nothing is withheld: one that breaks off
                here, once something was refused, is passed over, so that what the next ones define is there.

        Returns:
            What it shows, "at" which statement it broke off, and whether one was "passed" over.
        """
        buffer = self._shell.output_buffer
        streams = Stream(buffer, "stdout"), Stream(buffer, "stderr")
        before, started = (sys.stdout, sys.stderr), time.monotonic()
        (sys.stdout, sys.stderr), sys.displayhook = streams, self._show
        for stream in streams:
            stream.listening = True
        try:
            self._shell.begin_cell(self._sources[index])
            self._place, self._passed = 0, False
            with time_limit(limit):
                self._run_statements(self._statements[index], until)
                outputs.show_open_figures(buffer)
        except BaseException as error:  # of a student's code, which may raise anything, or the end of its time
            buffer.add_error(*outputs.describe_error_for_feedback(error))
        try:
            self._shell.end_cell()
        finally:
            for stream in streams:
                stream.listening = False
            sys.stdout, sys.stderr = before
        seconds = time.monotonic() - started
        return {"outputs": buffer.outputs, "seconds": seconds, "at": self._place, "passed": self._passed}

    def _run_statements(self, statements: list[CodeType | SyntaxError], until: int | None) -> None:
        for place, each in enumerate(statements):
            self._place = place
            try:
                self._run_statement(each)
            except Exception as error:
                if until is None or place >= until or not withheld.has_refused():
                    raise
                self._passed = True
                if isinstance(each, CodeType):
                    self._not_made |= dict.fromkeys(_list_assigned_names(each), self._explain_skipped_failure(error))

    def _explain_skipped_failure(self, error: Exception) -> str:
        name = (error.name or "") if type(error) is NameError else ""
        return self._not_made.get(name) or read_error_message(error)

    def explain_missing_name(self, error: BaseException) -> str:
        """Why a name is missing that a statement makes which was passed over; empty for any other error."""
        name = (error.name or "") if type(error) is NameError else ""
        why = self._not_made.get(name) if name not in self._variables else ""
        return f"`{name}` was not made where this is graded: {why}" if why else ""

    def _run_statement(self, statement: CodeType | SyntaxError) -> None:
        if not isinstance(statement, CodeType):
            raise statement
        if not statement.co_flags & _COROUTINE:
            _exec(statement, self._variables)
            return
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(_eval(statement, self._variables))

    def find_code_objects(self, names: Sequence[str]) -> list[CodeType]:
        """The code of what cells define under these names, and of what stands in it."""
        within = tuple(f"{each}." for each in names)
        return [code for code, _ in self._places.values() if f"{code.co_qualname}.".startswith(within)]

    def list_code_places(self, name: str, inspected_object: object) -> Iterator[str]:
        """Whose code it is that answers: a line ``name place place``, outermost first; of a class one for each method.

        A place is a cell, a line and the name of what is defined there, "3:12:one_hot"; there is none of code that no
        cell shows.
        """
        if not is_a(inspected_object, type):
            yield " ".join((name, *self._find_code_places(inspected_object)))
            return
        for member, value in namespace_of(inspected_object).items():
            if isinstance(member, str) and is_a(value, FunctionType, staticmethod, classmethod, property):
                yield " ".join((f"{name}.{member[:_LONGEST_NAME]}", *self._find_code_places(value)))

    def _find_code_places(self, inspected_object: object) -> list[str]:
        """The places of the cells' code that a function, or an object that wraps it, leads to, the nearest first."""
        found: dict[str, None] = {}
        seen, waiting = {id(self._variables), id(self._shell)}, deque([inspected_object])
        while waiting and len(seen) < _MOST_LOOKED_AT and len(found) < _MOST_CODES:
            each = waiting.popleft()
            if id(each) in seen or is_a(each, type, ModuleType, str):
                continue
            seen.add(id(each))
            if type(each) is FunctionType and (place := self._places.get(id(_code(each)))):
                found[place[1]] = None
            waiting += _list_held_objects(each)
        return list(found)


def _convert_to_syntax_error(error: BaseException) -> SyntaxError:
    return error if isinstance(error, SyntaxError) else SyntaxError(f"this cell cannot be compiled: {error}")


def _list_assigned_names(statement: CodeType) -> list[str]:
    return [each.argval for each in dis.get_instructions(statement) if each.opname == "STORE_NAME"]


def _walk_code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _walk_code_objects(each)


def _list_held_objects(inspected_object: object) -> list[Any]:
    """Return what an object holds itself; of a function not the variables of its module."""
    if type(inspected_object) is FunctionType:
        held = [
            _closure(inspected_object),
            _attributes(inspected_object),
            _defaults(inspected_object),
            _keyword_defaults(inspected_object),
        ]
        return [each for each in held if each]
    if type(inspected_object) is MethodType:
        return [inspected_object.__func__, inspected_object.__self__]
    return _referents(inspected_object)
