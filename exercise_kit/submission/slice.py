"""Which cells have to run for grading: the student's, and of the lesson's own those whose names they use.

Most of a lesson's cells draw pictures. Grading is quick because it leaves them out, and an answer is the same without
them. Where code may look up names that cannot be read from it, all cells run.

A cell in IPython's own syntax is turned into calls, so that it has a syntax tree. IPython does the same with patterns
that a hostile cell can keep busy for hours, so here each line is looked at once. Where the two differ, a cell has no
tree, and counts as one that may do anything.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from exercise_kit.submission.submission import CellSource

# their bodies run among the notebook's variables, as if the first line were not there
TRANSPARENT = frozenset({"time", "capture", "prun"})
_ESCAPES = ("%", "!", "?")
_HEAD = re.compile(r"^(?:async )?(?:def|class) +(\w+)", re.MULTILINE)


def has_magics(source: str) -> bool:
    """Say whether any line of a cell may be IPython's own syntax."""
    return any(_convert_line_to_call(line) is not None for line in source.splitlines())


def replace_magics_with_calls(source: str) -> str:
    """A cell with its magics, shell commands and questions as calls on ``get_ipython()``; the rest as it was."""
    source = _dedent(source)
    first, _, body = source.partition("\n")
    if first.startswith("%%"):
        name, _, line = first[2:].strip().partition(" ")
        if name not in TRANSPARENT:
            return f"get_ipython().run_cell_magic({name!r}, {line!r}, {body!r})"
        return f"get_ipython().run_line_magic({name!r}, {line!r})\n{_replace_line_magics(body)}"
    return _replace_line_magics(source)


def _replace_line_magics(source: str) -> str:
    lines, quotation, brackets = [], "", 0
    for line in _join_continued_lines(source):
        call = (
            None if quotation or brackets else _convert_line_to_call(line)
        )  # within a text or brackets it is Python's
        lines.append(call or line)
        if call is None:
            quotation, brackets = _find_open_quotes_and_brackets(line, quotation, brackets)
    return "\n".join(lines)


_MARK = re.compile(r"""#.*|\'{3}|"{3}|\'(?:[^\'\\]|\\.)*\'?|"(?:[^"\\]|\\.)*"?|[(\[{]|[)\]}]""")


def _find_open_quotes_and_brackets(line: str, quotation: str, brackets: int) -> tuple[str, int]:
    """Which text of several lines is open at a line's end, by its three quotation marks, and how many brackets."""
    place = 0
    while place < len(line):
        if quotation:
            end = line.find(quotation, place)
            if end < 0:
                break
            place, quotation = end + 3, ""
            continue
        mark = _MARK.search(line, place)
        if mark is None:
            break
        place = mark.end()
        quotation = mark[0] if mark[0] in ("'''", '"""') else ""
        brackets = max(0, brackets + (mark[0] in "([{") - (mark[0] in ")]}"))
    return quotation, brackets


def _dedent(source: str) -> str:
    """A cell without the indentation of its first line, and without the prompts of code from a Python session."""
    lines = source.lstrip("\n").splitlines()
    first = lines[0] if lines else ""
    margin = first[: len(first) - len(first.lstrip())]
    lines = [line.removeprefix(margin) for line in lines]
    if first.lstrip().startswith(">>>"):
        lines = [line[4:] if line.startswith((">>>", "...")) else line for line in lines]
    return "\n".join(lines)


def _join_continued_lines(source: str) -> Iterator[str]:
    """The lines; one that is IPython's own goes on where it ends in a backslash."""
    begun: list[str] = []
    for line in source.splitlines():
        if begun or (line.endswith("\\") and _convert_line_to_call(line) is not None):
            begun.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                yield " ".join(begun)
                begun = []
        else:
            yield line
    if begun:
        yield " ".join(begun)


def _convert_line_to_call(line: str) -> str | None:
    """A line as a call, with its indentation and what it is assigned to; None: it is no line of IPython's."""
    bare = line.strip()
    indentation = line[: len(line) - len(line.lstrip())]
    if bare.startswith(_ESCAPES):
        return indentation + _write_ipython_call(bare)
    if bare.endswith("?") and "#" not in bare:
        return f"{indentation}get_ipython().run_line_magic('pinfo', {bare.rstrip('?')!r})"
    target, equals, value = bare.partition("=")
    if equals and target.strip() and value.lstrip().startswith(("!", "%")):
        return f"{indentation}{target}= {_write_ipython_call(value.strip(), kept=True)}"
    return None


def _write_ipython_call(escaped: str, kept: bool = False) -> str:
    if escaped.startswith("!"):
        return f"get_ipython().{'getoutput' if kept else 'system'}({escaped.lstrip('!')!r})"
    if escaped.startswith("?"):
        return f"get_ipython().run_line_magic('pinfo', {escaped.lstrip('?')!r})"
    name, _, rest = escaped.lstrip("%").strip().partition(" ")
    return f"get_ipython().run_line_magic({name!r}, {rest!r})"


# names by which code reaches variables without naming them
LOOKUPS = frozenset(
    {"eval", "exec", "compile", "globals", "locals", "vars", "dir", "__import__", "importlib", "sys", "inspect", "gc"}
    | {"builtins", "__builtins__", "runpy", "pickle", "In", "Out", "_", "__", "___", "_i", "_ih", "_oh", "_dh"}
)
HARMLESS_MAGICS = frozenset({"matplotlib", "config", "pip", "conda", "load_ext", "autoreload", "precision"})
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
MAGIC_CALLS = frozenset({"run_line_magic", "run_cell_magic", "magic", "run_cell", "ev", "ex"})


@dataclass(frozen=True)
class Runnable:
    """A code cell that may run: its index, its source, and whether the student wrote or changed it."""

    index: int
    source: str
    students: bool


@dataclass(frozen=True)
class _Names:
    uses: frozenset[str]
    binds: frozenset[str]
    changes: frozenset[str]
    imports: frozenset[str]
    looks_up: bool


def select_required_cells(cells: Sequence[Runnable]) -> tuple[CellSource, ...]:
    """The cells to run, in order: all of the student's, and those of the others that define or change what they use.

    Of a cell of the lesson's own, which often ends in a picture, only the statements that are needed run.
    """
    pieces = [piece for cell in cells for piece in _split_cell(cell)]
    names = [_analyze_names(piece.source) for piece in pieces]
    chosen = {place for place, piece in enumerate(pieces) if piece.students}
    if any(names[place].looks_up for place in chosen):
        return tuple(CellSource(cell.index, cell.source) for cell in cells)
    # torch.manual_seed(0) changes no variable of the notebook
    modules = frozenset().union(*(each.imports for each in names))
    offers = [each.binds | each.imports | (each.changes - modules) for each in names]
    while True:
        used = frozenset().union(*(names[place].uses for place in chosen))
        more = {place for place in range(len(pieces)) if place not in chosen and offers[place] & used}
        if not more:
            return _join_pieces_by_cell([pieces[place] for place in sorted(chosen)])
        chosen |= more


def _split_cell(cell: Runnable) -> list[Runnable]:
    """A cell of the lesson's own statement by statement; any other whole."""
    try:
        statements = [] if cell.students else ast.parse(cell.source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        statements = []
    begins = [min((each.lineno, *(mark.lineno for mark in getattr(each, "decorator_list", ())))) for each in statements]
    if not begins or len(set(begins)) < len(begins):  # two on one line
        return [cell]
    lines, ends = cell.source.splitlines(), [begin - 1 for begin in begins[1:]] + [None]
    return [
        Runnable(cell.index, "\n".join(lines[begin - 1 : end]), False) for begin, end in zip(begins, ends, strict=True)
    ]


def _join_pieces_by_cell(pieces: Iterable[Runnable]) -> tuple[CellSource, ...]:
    sources: dict[int, list[str]] = {}
    for piece in pieces:
        sources.setdefault(piece.index, []).append(piece.source)
    return tuple(CellSource(index, "\n".join(parts)) for index, parts in sources.items())


def parse(source: str) -> ast.Module | None:
    """A cell's syntax tree, its magics turned into calls; None: it is no Python. Not to be changed."""
    return _parse_python_or_magics(source)[1]


def convert_to_python(source: str) -> str | None:
    """The Python that is read, and that is run: a cell with its magics turned into calls; None: it is no Python."""
    return _parse_python_or_magics(source)[0]


@lru_cache(maxsize=2048)
def _parse_python_or_magics(source: str) -> tuple[str, ast.Module] | tuple[None, None]:
    for text in (source, replace_magics_with_calls(source)):
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            return text, ast.parse(text)
    return None, None


def list_definitions(tree: ast.Module | None) -> frozenset[str]:
    """The names that a cell defines by itself, also under ``if`` or ``try``: functions, classes, assignments.

    What it imports is not counted.
    """
    defined = set()
    for statement in _walk_statements(tree.body if tree else []):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(statement.name)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            defined |= set(_find_bound_names(ast.walk(statement)))
        elif isinstance(part := getattr(statement, "test", getattr(statement, "value", None)), ast.AST):
            defined |= {node.target.id for node in ast.walk(part) if isinstance(node, ast.NamedExpr)}
    return frozenset(defined)


def find_begun_definitions(source: str) -> frozenset[str]:
    """The functions and classes that a cell begins to define whose syntax is wrong; none where it is right."""
    return frozenset(_HEAD.findall(source)) if parse(source) is None else frozenset()


def has_dynamic_names(source: str) -> bool:
    """Say whether a cell may read or define names that it does not show, by ``globals()`` or a magic, say."""
    return _analyze_names(source).looks_up


def list_imports(tree: ast.AST | None) -> frozenset[str]:
    """The names that a cell imports, anywhere in it."""
    return frozenset(_find_imported_names(tree)) if tree else frozenset()


def is_empty(source: str) -> bool:
    """Say whether a cell holds nothing but blank lines and comments."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in source.splitlines())


def find_used_globals(tree: ast.Module) -> frozenset[str] | None:
    """The names that code looks up among the notebook's variables, in any of its scopes; None: nobody can tell.

    What a cell binds by itself before it reads it is not counted, but in functions, which may run much later.
    """
    try:
        return frozenset(
            (*_find_names_read_first(tree), *_find_used_names(symtable.symtable(ast.unparse(tree), "<cell>", "exec")))
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=2048)
def _analyze_names(source: str) -> _Names:
    nothing: frozenset[str] = frozenset()
    tree = parse(source)
    if tree is None:  # what cannot run neither uses nor binds; the student reads its error
        return _Names(nothing, nothing, nothing, nothing, looks_up=has_magics(source))
    uses = find_used_globals(tree)
    if uses is None:
        return _Names(nothing, nothing, nothing, nothing, looks_up=True)
    looks_up = bool(uses & LOOKUPS) or any(map(_is_dynamic_lookup, ast.walk(tree)))
    changes = frozenset(_find_changed_names(tree))
    return _Names(uses, frozenset(_find_bound_names(ast.walk(tree))), changes, list_imports(tree), looks_up)


def _walk_statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a cell, and those within them that run when the cell does."""
    waiting = list(body)
    while waiting:
        statement = waiting.pop()
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                inner = getattr(statement, part, [])
                waiting += inner if isinstance(inner, list) else []


def _find_names_read_first(tree: ast.Module) -> Iterator[str]:
    bound: set[str] = set()
    for statement in tree.body:
        nodes = list(_walk_outside_functions(statement))
        for node in nodes:
            name = node.target if isinstance(node, ast.AugAssign) else node  # += reads first
            if not isinstance(name, ast.Name) or name.id in bound:
                continue
            if name is not node or isinstance(name.ctx, ast.Load):
                yield name.id
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Assign):
            bound |= list_imports(statement) | set(_find_bound_names(nodes))


def _walk_outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when a cell does: functions' bodies are left out, their decorators and defaults are not."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body = node.body if isinstance(node.body, list) else [node.body]
            if child in body:
                continue
        yield from _walk_outside_functions(child)


def _find_used_names(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        anywhere = table.get_type() == "class"  # there a name may be read before it is bound
        if (
            table.get_type() != "module" and symbol.is_referenced() and (anywhere or symbol.is_global())
        ) or symbol.is_declared_global():
            yield symbol.get_name()
    for child in table.get_children():
        yield from _find_used_names(child)


def _is_dynamic_lookup(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return any(alias.name == "*" for alias in node.names) or node.module == "__main__"
    if isinstance(node, ast.Import):
        return any(alias.name == "__main__" for alias in node.names)
    if isinstance(node, ast.Attribute):
        return node.attr in ("__globals__", "__dict__", "f_globals", "f_locals", "f_back", "__closure__", "user_ns")
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "get_ipython":
            return False  # judged by what is called on it
        return _is_opaque_magic(node)
    return isinstance(node, ast.Name) and node.id == "get_ipython" and isinstance(node.ctx, ast.Store)


def _is_opaque_magic(call: ast.Call) -> bool:
    """Say whether ``get_ipython().run_line_magic("time", ...)``, say, may run code that stands in a string."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in MAGIC_CALLS:
        return False
    name = call.args[0] if call.args else None
    return not (call.func.attr == "run_line_magic" and isinstance(name, ast.Constant) and name.value in HARMLESS_MAGICS)


def _find_bound_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif name := getattr(node, "name", None) if isinstance(node, NAMED) else None:
            yield name


def _find_imported_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)


def _find_changed_names(tree: ast.Module) -> Iterator[str]:
    """Names of objects that a cell may change: by an item, by an attribute, or by a method whose result is not used."""
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        target: ast.expr | None = None
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            target = node.value.func if isinstance(node.value.func, ast.Attribute) else None
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and target.id not in parameters:
            yield target.id
