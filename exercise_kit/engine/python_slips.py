"""Slips of Python, named as such: a word that is missing or left over, which no check of numbers should be about.

They are read off the student's own lines, and reported only where a check has failed in the way that the slip makes it
fail, and no known mistake explains it; a slip that the lines alone prove comes before the name of a mistake. ``check``
finds the lines of the objects that it is given, grading has a cell's text; lines that cannot be found (of code that was
typed into ``exec``) tell nothing.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from exercise_kit.engine.course import course
from exercise_kit.engine.errors import LIBRARIES, OURS
from exercise_kit.engine.verdict import BETWEEN, CheckResult, Verdict
from exercise_kit.reasons import Reason

_ALIKE = 0.8  # of difflib, from which on two names are the same one, misspelled
_LISTS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)
_ADDS = ("append", "insert", "extend")


@dataclass(frozen=True)
class Slip:
    """A slip: the ``claim``, told as broken, what was ``seen``, where to ``look``, and whether it is ``certain``.

    A certain one is wrong whatever else is, so it comes before a guess between several mistakes, or at two of them;
    one that is the ``cause`` comes before the name of what follows from it, too, but not before an error's own line.
    """

    claim: str
    seen: str
    look: str
    certain: bool = False
    cause: bool = False

    def explains(self, result: CheckResult) -> bool:
        """Whether a failure may come from it: whether no known mistake, or no single one, explains that."""
        if self.cause:
            return result.reason != Reason.RAISED
        if self.certain:
            return result.misconception is None or BETWEEN in result.misconception
        return not result.causes


@dataclass(frozen=True)
class Definition:
    """What a student wrote for one object of an exercise.

    Attributes:
        functions: a function itself, or the methods of a class, by name.
        is_class: whether it is a class.
        namespace: what its names mean; for the search for classes of modules.
        attributes: the names that the class has itself or from its base.
    """

    functions: Mapping[str, ast.FunctionDef]
    is_class: bool
    namespace: Mapping[str, Any]
    attributes: Collection[str] = ()


def definitions_of(objects: Sequence[object]) -> list[Definition]:
    """The definitions of objects of this process, as far as their lines can be found."""
    found = []
    for each in objects:
        written = _written(each)
        namespace = next((function.__globals__ for _, function in written.values()), {})
        nodes = {name: node for name, (node, _) in written.items()}
        found.append(Definition(nodes, inspect.isclass(each), namespace, dir(each)))
    return found


def definitions_in(source: str, names: Sequence[str]) -> list[Definition]:
    """The definitions of these names in a student's text, of which nothing is run; none where it cannot be parsed."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return []
    known = {
        each: nn.Module for exercise in course().exercises.values() if exercise.is_class for each in exercise.objects
    }
    namespace = {**vars(nn), "nn": nn, "torch": torch, **known}
    nodes = {each.name: each for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    return [_definition(nodes[name], namespace) for name in names if name in nodes]


def _definition(node: ast.FunctionDef | ast.ClassDef, namespace: Mapping[str, Any]) -> Definition:
    if isinstance(node, ast.FunctionDef):
        return Definition({node.name: node}, False, namespace)
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    assigned = {
        each.id
        for part in node.body
        for each in ast.walk(part)
        if isinstance(each, ast.Name) and part not in methods.values()
    }
    return Definition(methods, True, namespace, {*dir(nn.Module), *methods, *assigned})


def slip_in(definitions: Sequence[Definition], results: Sequence[CheckResult]) -> Slip | None:
    """The slip that makes checks fail, the first of several; None where there is none.

    Args:
        definitions: what the student wrote.
        results: of the checks, failures with the mistakes that explain them.
    """
    failed = [each for each in results if each.verdict == Verdict.FAIL and each.reason not in _UNTOUCHED]
    unnamed = {each.reason for each in failed if not each.causes}
    guessed = any(each.misconception is None or BETWEEN in each.misconception for each in failed)
    searches = [
        *(_CAUSES if any(each.reason != Reason.RAISED for each in failed) else ()),
        *(_CERTAIN if guessed else ()),
    ]
    searches += [search for search, of in _SEARCHES if not unnamed.isdisjoint(of)]
    return next((slip for search in searches for each in definitions if (slip := search(each))), None)


def line_left_over(definitions: Sequence[Definition]) -> str:
    """A sentence where ``raise NotImplementedError`` of the stub stands above an answer; "" elsewhere."""
    for each in definitions:
        for name, node in each.functions.items():
            if _is_stub(node) and len(_statements(node)) > 1:
                return (
                    f"`{name}` still begins with the stub's `raise NotImplementedError`, so no line below it runs. "
                    "Delete that line, run the cell, and check again."
                )
    return ""


def renamed(name: str, given: object) -> str:
    """A sentence where the stub called ``name`` stands beside an answer of nearly that name; "" elsewhere.

    The other one has the same parameters, and its name is that of no exercise.
    """
    function = next((each for _, each in _written(given).values()), None)
    if function is None:
        return ""
    known = {each for exercise in course().exercises.values() for each in exercise.objects}
    values = (
        (key, each) for key, each in function.__globals__.items() if key not in known and type(each) is type(given)
    )
    others = [key for key, each in values if _parameters(each) == _parameters(given) and _is_answer(each)]
    near = [each for each in others if re.search(rf"(^|_){name}(_|$)", each)]
    near += difflib.get_close_matches(name, others, 1, _ALIKE)
    if not near:
        return ""
    return (
        f"The `{name}` that was checked is the empty one, and there is a `{near[0]}`. Is that yours? Call it `{name}`."
    )


def _parameters(value: Any) -> list[str] | None:
    """The names of the parameters; None of what does not tell, as an exception's class without a method of its own."""
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return None


def _is_answer(value: object) -> bool:
    written = _written(value)
    return bool(written) and not any(_is_stub(node) for node, _ in written.values())


def _written(value: object) -> Mapping[str, tuple[ast.FunctionDef, FunctionType]]:
    """The functions that a student wrote, by name: a function itself, or the methods of a class; with their lines."""
    held = vars(value).values() if inspect.isclass(value) else (value,)
    found = {}
    for each in held:
        function = inspect.unwrap(each) if callable(each) else None
        if isinstance(function, FunctionType) and (node := _node_of(function)):
            found[function.__name__] = node, function
    return found


def _node_of(function: FunctionType) -> ast.FunctionDef | None:
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    if file.startswith((*OURS, *LIBRARIES)):
        return None
    lines = ["\n" if each.lstrip()[:1] in "%!" else each for each in linecache.getlines(file)]
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    nodes = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == function.__name__)
    return next((each for each in nodes if line in (each.lineno, *(one.lineno for one in each.decorator_list))), None)


def _statements(node: ast.FunctionDef) -> list[ast.stmt]:
    """Its statements without the docstring."""
    return [each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]


def _is_stub(node: ast.FunctionDef) -> bool:
    first = next(iter(_statements(node)), None)
    return isinstance(first, ast.Raise) and "NotImplementedError" in ast.unparse(first)


def _without_self(given: Definition) -> Slip | None:
    """A method that has forgotten ``self``."""
    written = given.functions if given.is_class else {}
    firsts = {name: next((each.arg for each in node.args.args), "") for name, node in written.items()}
    for name, node in written.items():
        says_self = "self" in firsts.values() or "self" in {
            each.id for each in ast.walk(node) if isinstance(each, ast.Name)
        }
        if node.decorator_list or node.args.vararg or firsts[name] == "self" or not says_self:
            continue
        look = "What does Python hand to a method before everything that stands in the brackets of the call?"
        seen = (
            f"the `def` line of `{name}` has no `self`: `{ast.unparse(node.args) or 'nothing'}` stands in its brackets"
        )
        return Slip("A method lacks `self`, its first parameter.", seen, look)
    return None


def _kept_in_a_local_name(given: Definition) -> Slip | None:
    """A part that ``__init__`` makes under a name that ends with it."""
    written = given.functions if given.is_class else {}
    if "__init__" not in written:
        return None
    read, stored = (set().union(*(_attributes(each, of) for each in written.values())) for of in (ast.Load, ast.Store))
    for name in _made_locally(written["__init__"]):
        if name in read and name not in stored and name not in given.attributes:
            seen = f"`__init__` makes `{name}` and forgets it when it ends: there is no `self.{name}`"
            return Slip("What `__init__` makes is lost.", seen, "Where does a module keep its parts?")
    return None


def _made_locally(node: ast.FunctionDef) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
            yield from (target.id for target in each.targets if isinstance(target, ast.Name))


def _plain_list(given: Definition) -> Slip | None:
    """Modules in a list or dict of Python's, where torch does not look for them."""
    for node in given.functions.values() if given.is_class else ():
        for name in _lists_of_modules(node, given.namespace):
            seen = f"`{name}` is a plain list or dict of Python's, and torch looks for modules in no such thing"
            look = "Which container of torch.nn is a list that torch looks into?"
            return Slip("torch does not see modules that it holds.", seen, look)
    return None


def _lists_of_modules(node: ast.FunctionDef, namespace: Mapping[str, Any]) -> list[str]:
    """The attributes of ``self``, as "self.blocks", that a method makes lists of modules."""
    assigned = [each for each in ast.walk(node) if isinstance(each, ast.Assign)]
    added = {
        ast.unparse(each.func.value)
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _ADDS
        if any(_makes_a_module(one, namespace) for one in each.args)
    }
    lists = {
        ast.unparse(target)
        for each in assigned
        for target in each.targets
        if isinstance(each.value, _LISTS) and (_makes_a_module(each.value, namespace) or ast.unparse(target) in added)
    }
    lists |= {ast.unparse(each.targets[0]) for each in assigned if ast.unparse(each.value) in lists}
    return sorted(each for each in lists if each.startswith("self."))


def _makes_a_module(value: ast.expr, namespace: Mapping[str, Any]) -> bool:
    """Whether a class of modules is called in an expression."""
    for each in ast.walk(value):
        if isinstance(each, ast.Call):
            first, *rest = ast.unparse(each.func).split(".")
            found = namespace.get(first)
            for name in rest:
                found = getattr(found, name, None)
            if inspect.isclass(found) and issubclass(found, nn.Module):
                return True
    return False


def _forward_misspelled(given: Definition) -> Slip | None:
    """A module without ``forward`` that has a method of nearly that name."""
    written = given.functions if given.is_class else {}
    if "forward" in written or not (near := difflib.get_close_matches("forward", written, 1, _ALIKE)):
        return None
    seen = f"there is no method `forward`; one is called `{near[0]}`"
    return Slip("No method has the name that torch calls.", seen, "Is its name spelled right?")


def _returns_in_a_loop(given: Definition) -> Slip | None:
    """A loop that gathers something and ends in its first round, since `return` stands inside it."""
    for node in given.functions.values():
        for loop in (each for each in ast.walk(node) if isinstance(each, ast.For)):
            last = loop.body[-1]
            if isinstance(last, ast.Return) and not loop.orelse and _gathers(node, loop):
                seen = (
                    f"`{ast.unparse(last)}` stands inside the loop `for {_head(loop)}`, which ends in its first round"
                )
                look = "How far is `return` indented, and how often does that loop run?"
                return Slip("A loop ends in its first round.", seen, look, certain=True)
    return None


def _head(loop: ast.For) -> str:
    return f"{ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"


def _gathers(node: ast.FunctionDef, loop: ast.For) -> bool:
    """Whether a loop goes on with what stood in a name before it, and leaves out no round by a test."""
    inside = [each for part in loop.body for each in ast.walk(part)]
    if any(isinstance(each, ast.Continue | ast.Break) for each in inside):
        return False
    added = {
        ast.unparse(each.func.value)
        for each in inside
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _ADDS
    }
    before = _stored(each for each in ast.walk(node) if getattr(each, "lineno", loop.lineno) < loop.lineno)
    return bool((_stored(inside) | added) & (before | {each.arg for each in node.args.args}))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    return {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _power_before_division(given: Definition) -> Slip | None:
    """``d**1/2``, where ``**`` binds first."""
    for node in given.functions.values():
        for each in ast.walk(node):
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div) and _is_one_over_two(each):
                left, right = (ast.unparse(part).replace(" ** ", "**") for part in (each.left, each.right))
                seen = f"Python reads `{left}/{right}` as `({left}) / {right}`"
                look = "Which of the two binds first, `**` or `/`?"
                return Slip("A power is another one than was meant.", seen, look, certain=True)
    return None


def _is_one_over_two(division: ast.BinOp) -> bool:
    """Whether what is divided by 2 ends in a power of 1 or -1."""
    power = division.left
    while isinstance(power, ast.BinOp) and not isinstance(power.op, ast.Pow):
        power = power.right
    return (
        ast.unparse(division.right) == "2" and isinstance(power, ast.BinOp) and ast.unparse(power.right) in ("1", "-1")
    )


def _other_than_its_argument(given: Definition) -> Slip | None:
    """A function that never reads one of its parameters, and reads a tensor of the notebook in its place."""
    if given.is_class:
        return None
    for node in given.functions.values():
        loaded = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        unread = [each.arg for each in node.args.args if each.arg not in loaded]
        held = given.namespace
        tensors = sorted(
            each for each in loaded if isinstance(held.get(each), Tensor) and each not in _stored(ast.walk(node))
        )
        if unread and tensors:
            seen = f"`{unread[0]}` is never read, and `{tensors[0]}`, a tensor of the notebook, is"
            look = "Which name has what the caller gives?"
            return Slip("It does not compute with what it is given.", seen, look, certain=True)
    return None


def _result_dropped(given: Definition) -> Slip | None:
    """A line that makes a tensor of another one, and gives it to nobody: ``x.permute(0, 2, 1)``."""
    for node in given.functions.values():
        for each in ast.walk(node):
            call = each.value if isinstance(each, ast.Expr) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _MAKES_ANOTHER:
                held = ast.unparse(call.func.value)
                seen = f"`{ast.unparse(call)}` makes a new tensor that gets no name, and `{held}` stays as it was"
                look = "Where is the result of that line kept?"
                return Slip("The result of a line is lost.", seen, look, cause=True)
    return None


def _local_for_an_attribute(given: Definition) -> Slip | None:
    """A method that writes into a name of its own what only ``self`` would keep: ``best = loss`` for ``self.best``."""
    written = given.functions if given.is_class and "__init__" in given.functions else {}
    for name, node in written.items():
        local = _stored(ast.walk(node)) - {
            each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
        }
        for each in sorted(local & (_attributes(written["__init__"]) - _attributes(node))):
            seen = f"`{name}` writes into `{each}`, a name that ends with the call, and `self.{each}` stays as it was"
            return Slip("What a method writes is lost.", seen, "Where does an object keep what it knows?", cause=True)
    return None


def _attributes(node: ast.AST, context: type[ast.expr_context] = ast.Store) -> set[str]:
    """The attributes of ``self`` that are written, or read, in a method."""
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, context) and ast.unparse(each.value) == "self"
    }


Search = Callable[[Definition], Slip | None]
_MAKES_ANOTHER = frozenset(
    "permute transpose movedim swapaxes reshape view flatten unflatten squeeze unsqueeze expand repeat "
    "repeat_interleave softmax mean sqrt exp add sub mul div masked_fill".split()
)
_CAUSES: tuple[Search, ...] = (_result_dropped, _local_for_an_attribute)
_CERTAIN: tuple[Search, ...] = (_returns_in_a_loop, _power_before_division, _other_than_its_argument)
_UNTOUCHED = (Reason.NOT_WRITTEN, Reason.TIME, Reason.ACCEPTED)
# what to search for, and the failures that it makes
_SEARCHES: tuple[tuple[Search, tuple[Reason, ...]], ...] = (
    (_without_self, (Reason.RAISED,)),
    (_kept_in_a_local_name, (Reason.PARAMETERS, Reason.RAISED)),
    (_plain_list, (Reason.PARAMETERS, Reason.DIFFERENT, Reason.RAISED)),
    (_forward_misspelled, (Reason.RAISED,)),
)
