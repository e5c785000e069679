"""What the names of a notebook stand for, and which of its statements an answer reaches, read from the code alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from exercise_kit.engine.course_named import read_package_name
from exercise_kit.submission.slice import find_used_globals, parse
from exercise_kit.submission.submission import CellSource

DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
PATCHED = frozenset(
    {"torch", "torchvision", "numpy", "math", "functools", "operator"}
    | {"builtins", "contextlib", "copy", "inspect", "json", "os", "random", "select", "socket", "time", "types"}
)
MOST_NAMES = 20_000  # of a notebook's top level; the longest lesson has 150


def list_statements(cells: Sequence[CellSource]) -> list[ast.stmt]:
    """Every statement at a top level, also behind a magic (``%%time``) and in a text that is executed."""
    return list(chain.from_iterable(_parse_statements(cell.source, 3) for cell in cells))


def resolve_imported_names(trees: Iterable[ast.AST]) -> dict[str, str]:
    """The dotted name behind each name that an import, or an assignment like ``layers = torch.nn``, binds in trees."""
    names: dict[str, str] = {}
    shorter: list[tuple[str, ast.expr]] = []
    for node in chain.from_iterable(map(ast.walk, trees)):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            dotted = prefix + alias.name
            name = alias.asname or (alias.name if prefix else alias.name.partition(".")[0])
            dotted = dotted if prefix or alias.asname else name
            if not (_is_torch(names.get(name)) and not _is_torch(dotted)):  # torch's, if a function imports another
                names[name] = dotted
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
            shorter += [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
    for name, value in shorter:
        if name not in names and is_torch_module(module := resolve_dotted_name(value, names)):
            names[name] = str(module)
    return names


def _is_torch(dotted: str | None) -> bool:
    return dotted is not None and dotted.partition(".")[0] in ("torch", "torchvision")


def is_torch_module(dotted: str | None) -> bool:
    """Say whether a dotted name is one of torch's modules that code calls by a name of its own."""
    return dotted in ("torch", "torch.nn", "torch.nn.functional", "torch.nn.modules", "torchvision")


def resolve_dotted_name(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """``torch.nn.functional.gelu`` for ``F.gelu``, whatever the import calls it; None: it begins with no import."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call) and (got := _find_looked_up_attribute(node)):
            parts += reversed(got[1].split("."))
            node = got[0]
        else:
            break
    if isinstance(node, ast.Name) and node.id in names:
        parts.append(names[node.id])
    elif isinstance(node, ast.Call) and find_called_name(node.func) in ("__import__", "import_module") and node.args:
        parts.append(read_constant_text(node.args[0]) or "?")
    else:
        return None
    dotted = ".".join(reversed(parts))
    cut = dotted.rfind(".torch.")  # F.torch.nn is torch.nn
    return dotted[cut + 1 :] if cut >= 0 else "torch" if dotted.endswith(".torch") else dotted


def _find_looked_up_attribute(call: ast.Call) -> tuple[ast.expr, str] | None:
    """``getattr(thing, "name")`` and ``thing.__dict__["name"]``'s like: the thing and the name."""
    if find_called_name(call.func) == "getattr" and len(call.args) > 1 and (text := read_constant_text(call.args[1])):
        return call.args[0], text
    return None


def find_called_name(function: ast.expr) -> str | None:
    """The last part of the name of what is called."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def read_constant_text(node: ast.expr) -> str | None:
    """The text that an expression of constants makes: ``"lay" + "er"``; None: nobody can read it off."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = read_constant_text(node.left), read_constant_text(node.right)
        return None if left is None or right is None else left + right
    return None


def find_reachable_statements(
    statements: Sequence[ast.stmt], objects: Iterable[str], names: Mapping[str, str]
) -> tuple[list[tuple[int, ast.stmt]], set[str]]:
    """The statements that an answer reaches, in order, each with its place, and all the names that they use.

    Args:
        statements: of the notebook's top level.
        objects: the names that the answer defines.
        names: see :func:`resolve_imported_names`.
    """
    binding: dict[str, list[int]] = defaultdict(list)
    for index, statement in enumerate(statements):
        for name in find_bound_names(statement, names):
            binding[name].append(index)
    own = {name: [each for each in binding[name] if isinstance(statements[each], DEFINED)] for name in objects}
    wanted = set(objects)
    found: set[int] = {index for index, each in enumerate(statements) if _changes_package(each, names)}
    todo = [name for index in found for name in find_statement_globals(statements[index])] + list(wanted)
    wanted.update(todo)
    while todo and len(wanted) < MOST_NAMES:
        name = todo.pop()
        for index in binding.pop(name, ()):
            imported_before = own.get(name) and index < own[name][-1] and _is_import(statements[index])
            if index not in found and not imported_before:
                found.add(index)
                more = find_statement_globals(statements[index]) - wanted
                wanted |= more
                todo += more
    return [(index, statements[index]) for index in sorted(found)], wanted


@lru_cache(maxsize=4096)
def find_statement_globals(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement, or a function that it defines, looks up at the notebook's top level."""
    used = find_used_globals(ast.Module([statement], []))
    if used is None:  # nobody can tell: too deep, or no statement by itself
        return frozenset(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
    return used


def find_bound_names(statement: ast.stmt, names: Mapping[str, str]) -> Iterator[str]:
    """The names that a statement binds, and those whose objects it changes; of imports' only the former."""
    if isinstance(statement, DEFINED):
        yield statement.name
        for node in ast.walk(statement):
            if isinstance(node, ast.Global):
                yield from node.names
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (*DEFINED, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif (changed := _find_root_name(_find_changed_object(node))) and changed not in names:
            yield changed


def _find_changed_object(node: ast.AST) -> ast.expr | None:
    """Return what ``x.a = 1``, ``x[0] = 1``, ``x.append(1)`` and ``setattr(x, "a", 1)`` change."""
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        return node.value
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if find_called_name(call.func) in ("setattr", "__setattr__") and call.args:
            return call.args[0]
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    return None


def _find_root_name(node: ast.expr | None) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _changes_package(statement: ast.stmt, names: Mapping[str, str]) -> bool:
    """Say whether it changes a package: any answer may find there what it put there."""
    if isinstance(statement, DEFINED):
        return False
    for node in ast.walk(statement):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and find_called_name(call.func) not in ("setattr", "__setattr__"):
            continue  # torch.manual_seed(0)
        target = _find_changed_object(node)
        dotted = (resolve_dotted_name(target, names) or "") if target is not None else ""
        if dotted.partition(".")[0] in {*PATCHED, read_package_name()} and not dotted.startswith("torch.backends"):
            return True
    return False


def find_last_own_definitions(statements: Sequence[ast.stmt]) -> dict[str, int]:
    """Where the notebook defines a name by itself, and does not import it again behind that: its last place."""
    own: dict[str, int] = {}
    for place, statement in enumerate(statements):
        if isinstance(statement, DEFINED):
            own[statement.name] = place
        elif _is_import(statement):
            for name in find_bound_names(statement, {}):
                own.pop(name, None)
    return own


def find_used_imports(statement: ast.stmt, used_names: Collection[str]) -> Iterator[str]:
    """Yield what imports bind to a new name: at the top level where the answer uses the name, in functions anyway."""
    for node in ast.walk(statement):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if isinstance(node, ast.Import) and not alias.asname and node is statement:
                continue  # `import torch.jit` binds torch
            if node is not statement or (alias.asname or alias.name) in used_names:
                yield f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name


def walk_outermost_names(statement: ast.stmt) -> Iterator[ast.expr]:
    """Names, attributes and calls that are not the front part of an attribute: of ``a.b.c`` the whole."""
    inner = {id(node.value) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.Attribute | ast.Call) and id(node) not in inner:
            yield node


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _parse_statements(source: str, depth: int) -> Iterator[ast.stmt]:
    """The statements of a cell; those within its magics and executed texts, ``depth`` texts deep, behind them."""
    text = source.lstrip()
    while text.startswith("%%"):
        text = text.partition("\n")[2].lstrip()
    tree = parse(text)
    if tree is None:
        return
    yield from tree.body
    for node in ast.walk(tree) if depth else ():
        if isinstance(node, ast.Call) and node.args and _executes_code(node):
            inner = read_constant_text(node.args[-1])
            yield from _parse_statements(inner, depth - 1) if inner else ()


def _executes_code(call: ast.Call) -> bool:
    return find_called_name(call.func) in (
        "exec",
        "eval",
        "run_line_magic",
        "run_cell_magic",
        "run_cell",
        "ex",
        "ev",
        "magic",
    )
