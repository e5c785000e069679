"""Everything that can be done to one node of a definition's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

# in words, and what does it to the node
Change = tuple[str, Callable[[], None]]

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
NOT_COMMUTATIVE = (ast.Sub, ast.Div, ast.MatMult, ast.FloorDiv, ast.Pow, ast.Mod)
# what a class needs to be a class of that kind, and what is read by tools alone
KEPT_DECORATORS = ("property", "overload", "dataclass", "dataclass(frozen=True)")
DELETED = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While)
LONGEST = 60


def iterate_changes(node: ast.AST) -> Iterator[Change]:
    """Yield what can be done to a node, in words, and what does it."""
    before = shorten_source(node) if isinstance(node, ast.expr) else ""
    for kind in (
        _change_operators,
        _change_conditions,
        _change_constants,
        _change_calls,
        _change_items,
        _change_statements,
        _change_wrappers,
    ):
        for after, apply in kind(node):
            yield (f"{before} -> {after}" if before else after), apply


def _change_operators(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        other = ARITHMETIC[type(node.op)]
        yield f"{type(node.op).__name__} to {other.__name__}", partial(setattr, node, "op", other())
    if isinstance(node, ast.BinOp):
        yield "left side alone", partial(_replace_node, node, node.left)
        yield "right side alone", partial(_replace_node, node, node.right)
        if isinstance(node.op, NOT_COMMUTATIVE):
            yield "sides swapped", partial(_swap_fields, node, "left", "right")
    elif isinstance(node, ast.UnaryOp):
        yield f"without {type(node.op).__name__}", partial(_replace_node, node, node.operand)


def _change_conditions(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield (
                    f"{type(operator).__name__} to {other.__name__}",
                    partial(node.ops.__setitem__, index, other()),
                )
    elif isinstance(node, ast.BoolOp):
        connective = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"to {connective.__name__}", partial(setattr, node, "op", connective())
        for index in range(len(node.values)):
            yield f"part {index} alone", partial(_replace_node, node, node.values[index])
    elif isinstance(node, ast.IfExp):
        yield "always the first", partial(_replace_node, node, node.body)
        yield "always the second", partial(_replace_node, node, node.orelse)
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "without the condition", node.ifs.clear


def _change_constants(node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.Constant):
        return
    value, others = node.value, list[Any]()
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, int):
        others = [value + 1, value - 1]
    elif isinstance(value, float):
        others = [value * 2, value + 1]
    elif isinstance(value, str):
        others = [f"{value}x"]
    for other in others:
        yield repr(other), partial(setattr, node, "value", other)


def _change_calls(node: ast.AST) -> Iterator[Change]:
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Attribute):
        owner = node.func.value
        yield f"without .{node.func.attr}(...)", partial(_replace_node, node, owner)
    for index in range(len(node.args) - 1):
        yield f"arguments {index} and {index + 1} swapped", partial(_swap_items, node.args, index)
    if node.args:
        yield "the first argument for the call", partial(_replace_node, node, node.args[0])
        yield "without the last argument", partial(_drop_item, node.args, -1)
    for index, keyword in enumerate(node.keywords):
        yield f"without {keyword.arg}=", partial(_drop_item, node.keywords, index)


def _change_items(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Tuple | ast.List | ast.Dict):
        items = node.values if isinstance(node, ast.Dict) else node.elts
        for index in range(len(items) - 1):
            yield f"items {index} and {index + 1} swapped", partial(_swap_items, items, index)
    elif isinstance(node, ast.Slice):
        for side in ("lower", "upper"):
            if getattr(node, side) is not None:
                yield f"without its {side} end", partial(setattr, node, side, None)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield "without the index", partial(_replace_node, node, node.value)


def _change_statements(node: ast.AST) -> Iterator[Change]:
    for field in ("body", "orelse", "finalbody"):
        body = getattr(node, field, None)
        if not isinstance(body, list):
            continue
        for index, statement in enumerate(body):
            if isinstance(statement, DELETED) and not is_message(statement) and _has_effect(statement):
                yield f"without {shorten_source(statement)}", partial(body.__setitem__, index, ast.Pass())
            if isinstance(statement, ast.If) and not statement.orelse:
                yield f"always what {shorten_source(statement)} guards", partial(_unpack_statement, body, index)


def _has_effect(statement: ast.stmt) -> bool:
    return not (isinstance(statement, ast.AnnAssign) and statement.value is None)


def _change_wrappers(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        for index, decorator in enumerate(node.decorator_list):
            if ast.unparse(decorator) not in KEPT_DECORATORS:
                yield f"without @{shorten_source(decorator)}", partial(_drop_item, node.decorator_list, index)
    for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
        if isinstance(body, list):
            for index, statement in enumerate(body):
                if isinstance(statement, ast.With):
                    yield f"without {shorten_source(statement)}", partial(_unpack_statement, body, index)


def _replace_node(node: ast.AST, other: ast.AST) -> None:
    """Turn a node into another one, where it stands."""
    fields = dict(vars(other))
    node.__class__ = type(other)
    vars(node).clear()
    vars(node).update(fields)


def _unpack_statement(body: list[ast.stmt], index: int) -> None:
    """Put what a statement holds in its place."""
    body[index : index + 1] = body[index].body  # type: ignore[attr-defined]


def _drop_item(items: list[Any], index: int) -> None:
    del items[index]


def _swap_fields(node: ast.AST, one: str, other: str) -> None:
    first, second = getattr(node, one), getattr(node, other)
    setattr(node, one, second)
    setattr(node, other, first)


def _swap_items(items: list[Any], index: int) -> None:
    items[index], items[index + 1] = items[index + 1], items[index]


def shorten_source(node: ast.AST) -> str:
    """The first line of a node's source, cut where it is long."""
    line = ast.unparse(node).splitlines()[0]
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def is_message(node: ast.AST) -> bool:
    """A docstring, an ellipsis, a text with numbers in it, an error and its message, or an overload."""
    if isinstance(node, ast.FunctionDef):
        return any(ast.unparse(each) == "overload" for each in node.decorator_list)
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.JoinedStr | ast.Raise)
