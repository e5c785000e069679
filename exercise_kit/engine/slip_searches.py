"""What each slip of Python looks like in a student's lines: one search for each."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from exercise_kit.engine.verdict import BETWEEN, CheckResult
from exercise_kit.reasons import Reason

ALIKE = 0.8  # of difflib, from which on two names are the same one, misspelled
_LISTS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)
_NOT_GIVEN = "It does not compute with what it is given."
UNTOUCHED = (Reason.NOT_WRITTEN, Reason.TIME, Reason.ACCEPTED)  # failures that no slip explains
_ADDS = ("append", "insert", "extend")


@dataclass(frozen=True)
class Slip:
    """A slip: the ``claim``, told as broken, what was ``seen``, where to ``look``, and whether it is ``certain``.

    A certain one is wrong whatever else is, so it comes before a guess between several mistakes, or at two of them;
    one that is the ``cause`` comes before the name of what follows from it, too, where more than an error shows it.
    """

    claim: str
    seen: str
    look: str
    certain: bool = False
    cause: bool = False

    def explains(self, result: CheckResult) -> bool:
        """Say whether a failure may come from it: whether no known mistake, or no single one, explains that."""
        if self.cause:
            return result.reason not in UNTOUCHED
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


def _find_missing_self(definition: Definition) -> Slip | None:
    """A method that has forgotten ``self``."""
    written = definition.functions if definition.is_class else {}
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


def _find_part_not_assigned_to_self(definition: Definition) -> Slip | None:
    """A part that ``__init__`` makes under a name that ends with it."""
    written = definition.functions if definition.is_class else {}
    if "__init__" not in written:
        return None
    read, stored = (
        set().union(*(_collect_attributes(each, of) for each in written.values())) for of in (ast.Load, ast.Store)
    )
    begin = written["__init__"]
    for name in _iterate_names_assigned_from_calls(begin):
        if name in read and name not in stored and name not in definition.attributes:
            seen = f"`__init__` makes `{name}` and forgets it when it ends: there is no `self.{name}`"
            return Slip("What `__init__` makes is lost.", seen, "Where does a module keep its parts?")
    given_to_base = any(
        each.startswith("super().__init__(") and each[-2:] != "()" for each in _list_call_sources(begin)
    )
    for each in () if given_to_base else begin.args.args:
        if each.arg in read and each.arg not in stored and each.arg not in definition.attributes:
            seen = f"`__init__` is given `{each.arg}` and does not keep it: there is no `self.{each.arg}`"
            return Slip("What `__init__` is given is lost.", seen, "Where does a module keep what it is given?")
    return None


def _list_call_sources(node: ast.AST) -> list[str]:
    return [ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Call)]


def _iterate_names_assigned_from_calls(node: ast.FunctionDef) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
            yield from (target.id for target in each.targets if isinstance(target, ast.Name))


def _find_modules_in_plain_list(definition: Definition) -> Slip | None:
    """Modules in a list or dict of Python's, where torch does not look for them."""
    for node in definition.functions.values() if definition.is_class else ():
        for name in _find_lists_of_modules(node, definition.namespace):
            seen = f"`{name}` is a plain list or dict of Python's, and torch looks for modules in no such thing"
            look = "Which container of torch.nn is a list that torch looks into?"
            return Slip("torch does not see modules that it holds.", seen, look)
    return None


def _find_lists_of_modules(node: ast.FunctionDef, namespace: Mapping[str, Any]) -> list[str]:
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
    """Say whether a class of modules is called in an expression."""
    for each in ast.walk(value):
        if isinstance(each, ast.Call):
            first, *rest = ast.unparse(each.func).split(".")
            found = namespace.get(first)
            for name in rest:
                found = getattr(found, name, None)
            if inspect.isclass(found) and issubclass(found, nn.Module):
                return True
    return False


def _find_misspelled_forward(definition: Definition) -> Slip | None:
    """A module without ``forward`` that has a method of nearly that name."""
    written = definition.functions if definition.is_class else {}
    if "forward" in written or not (near := difflib.get_close_matches("forward", written, 1, ALIKE)):
        return None
    seen = f"there is no method `forward`; one is called `{near[0]}`"
    return Slip("No method has the name that torch calls.", seen, "Is its name spelled right?")


def _find_return_in_loop(definition: Definition) -> Slip | None:
    """A loop that gathers something and ends in its first round, since `return` stands inside it."""
    for node in definition.functions.values():
        for loop in (each for each in ast.walk(node) if isinstance(each, ast.For)):
            last = loop.body[-1]
            if isinstance(last, ast.Return) and not loop.orelse and _accumulates(node, loop):
                line, head = ast.unparse(last), _write_loop_head(loop)
                seen = f"`{line}` stands inside the loop `for {head}`, which ends in its first round"
                look = "How far is `return` indented, and how often does that loop run?"
                return Slip("A loop ends in its first round.", seen, look, certain=True)
    return None


def _write_loop_head(loop: ast.For) -> str:
    return f"{ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"


def _accumulates(node: ast.FunctionDef, loop: ast.For) -> bool:
    """Say whether a loop goes on with what stood in a name before it, and leaves out no round by a test."""
    inside = [each for part in loop.body for each in ast.walk(part)]
    if any(isinstance(each, ast.Continue | ast.Break) for each in inside):
        return False
    added = {
        ast.unparse(each.func.value)
        for each in inside
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _ADDS
    }
    before = _collect_stored_names(
        each for each in ast.walk(node) if getattr(each, "lineno", loop.lineno) < loop.lineno
    )
    return bool((_collect_stored_names(inside) | added) & (before | {each.arg for each in node.args.args}))


def _collect_stored_names(nodes: Iterable[ast.AST]) -> set[str]:
    return {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _collect_loaded_names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def _collect_own_names(node: ast.AST) -> set[str]:
    """The names that a function binds itself: its arguments, and what it writes into."""
    return _collect_stored_names(ast.walk(node)) | {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}


def _find_power_before_division(definition: Definition) -> Slip | None:
    """``d**1/2``, where ``**`` binds first."""
    for node in definition.functions.values():
        for each in ast.walk(node):
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div) and _is_one_over_two(each):
                left, right = (ast.unparse(part).replace(" ** ", "**") for part in (each.left, each.right))
                seen = f"Python reads `{left}/{right}` as `({left}) / {right}`"
                look = "Which of the two binds first, `**` or `/`?"
                return Slip("A power is another one than was meant.", seen, look, certain=True)
    return None


def _is_one_over_two(division: ast.BinOp) -> bool:
    """Say whether what is divided by 2 ends in a power of 1 or -1."""
    power = division.left
    while isinstance(power, ast.BinOp) and not isinstance(power.op, ast.Pow):
        power = power.right
    return (
        ast.unparse(division.right) == "2" and isinstance(power, ast.BinOp) and ast.unparse(power.right) in ("1", "-1")
    )


def _find_unread_argument(definition: Definition) -> Slip | None:
    """A function that never reads one of its parameters, and reads a tensor of the notebook in its place."""
    if definition.is_class:
        return None
    for node in definition.functions.values():
        loaded, held = _collect_loaded_names(node), definition.namespace
        unread = [each.arg for each in node.args.args if each.arg not in loaded]
        others = sorted(loaded - _collect_own_names(node))
        tensors = [each for each in others if isinstance(held.get(each), Tensor)]
        if unread and tensors:
            seen = f"`{unread[0]}` is never read, and `{tensors[0]}`, a tensor of the notebook, is"
            look = "Which name has what the caller gives?"
            return Slip(_NOT_GIVEN, seen, look, certain=True)
        if numbers := [each for each in others if type(held.get(each)) is int]:
            seen = f"`{numbers[0]}` is a number of the notebook, {held[numbers[0]]}, whatever the caller gives"
            return Slip(_NOT_GIVEN, seen, "Which of the arguments tells that number?", certain=True)
    return None


def _find_dropped_result(definition: Definition) -> Slip | None:
    """A line that makes a tensor of another one, and gives it to nobody: ``x.permute(0, 2, 1)``."""
    for node in definition.functions.values():
        for each in ast.walk(node):
            call = each.value if isinstance(each, ast.Expr) else None
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and _MAKES_ANOTHER.fullmatch(call.func.attr)
            ):
                held = ast.unparse(call.func.value)
                seen = f"`{ast.unparse(call)}` makes a new tensor that gets no name, and `{held}` stays as it was"
                look = "Where is the result of that line kept?"
                return Slip("The result of a line is lost.", seen, look, cause=True)
    return None


def _find_local_instead_of_attribute(definition: Definition) -> Slip | None:
    """A method that writes into a name of its own what only ``self`` would keep: ``best = loss`` for ``self.best``."""
    written = definition.functions if definition.is_class and "__init__" in definition.functions else {}
    for name, node in written.items():
        local = _collect_stored_names(ast.walk(node)) - _collect_loaded_names(node)
        for each in sorted(local & (_collect_attributes(written["__init__"]) - _collect_attributes(node))):
            seen = f"`{name}` writes into `{each}`, a name that ends with the call, and `self.{each}` stays as it was"
            return Slip("What a method writes is lost.", seen, "Where does an object keep what it knows?", cause=True)
    return None


def _collect_attributes(node: ast.AST, context: type[ast.expr_context] = ast.Store) -> set[str]:
    """The attributes of ``self`` that are written, or read, in a method."""
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, context) and ast.unparse(each.value) == "self"
    }


def _find_layer_made_in_forward(definition: Definition) -> Slip | None:
    """A layer with weights that ``forward`` makes: new ones in every call, which nobody trains."""
    forward = definition.functions.get("forward") if definition.is_class else None
    kept = forward is not None and _collect_attributes(
        forward
    )  # what becomes a part there is made too late, and not in vain
    for each in ast.walk(forward) if forward and not kept else ():
        if isinstance(each, ast.Call) and (name := ast.unparse(each.func)).removeprefix("nn.") in _WITH_WEIGHTS:
            seen = f"`forward` makes a new `{name}` in every call, with weights that no call before has seen"
            return Slip(
                "A layer is made where it should be used.", seen, "Which method makes a module's parts?", cause=True
            )
    return None


def _find_list_kept_between_calls(definition: Definition) -> Slip | None:
    """A list that is the default of a parameter, and that each call adds to: ``def losses_of(loader, found=[])``."""
    for node in definition.functions.values():
        arguments, inside = [*node.args.posonlyargs, *node.args.args], list(ast.walk(node))
        grown = {
            each.func.value.id
            for each in inside
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _ADDS
            if isinstance(each.func.value, ast.Name)
        } | {each.target.id for each in inside if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)}
        defaults = zip(
            [*arguments[len(arguments) - len(node.args.defaults) :], *node.args.kwonlyargs],
            [*node.args.defaults, *node.args.kw_defaults],
            strict=True,
        )
        for argument, default in defaults:
            if isinstance(default, ast.List) and argument.arg in grown:
                written = f"{argument.arg}={ast.unparse(default)}"
                seen = f"the list of `{written}` in the `def` line is made once, and each call adds to the one before"
                look = "When does Python make what stands behind `=` in a `def` line?"
                return Slip("A call begins with what the call before has left.", seen, look, certain=True, cause=True)
    return None


def _find_init_argument_not_stored(definition: Definition) -> Slip | None:
    """A method that reads an argument of ``__init__`` by its bare name, and so finds one of the notebook, or none."""
    written = definition.functions if definition.is_class and "__init__" in definition.functions else {}
    arguments = {each.arg for each in written["__init__"].args.args} - {"self"} if written else set()
    for name, node in written.items():
        for each in (
            sorted(_collect_loaded_names(node) & arguments - _collect_own_names(node)) if name != "__init__" else ()
        ):
            seen = f"`{name}` reads `{each}`, a name of the notebook: what `__init__` was given under that name is gone"
            return Slip(
                "It does not compute with what it is given.",
                seen,
                "Where does a module keep what it is given?",
                cause=True,
            )
    return None


Search = Callable[[Definition], Slip | None]
_WITH_WEIGHTS = ("Linear", "LayerNorm", "Conv2d", "Embedding", "Parameter")
_MAKES_ANOTHER = re.compile(
    "permute|transpose|movedim|swapaxes|reshape|view|(un)?flatten|(un)?squeeze|expand|repeat(_interleave)?|softmax|mean|"
    "sqrt|exp|mul|div|masked_fill"
)
CAUSES: tuple[Search, ...] = (
    _find_dropped_result,
    _find_local_instead_of_attribute,
    _find_layer_made_in_forward,
    _find_init_argument_not_stored,
    _find_list_kept_between_calls,
)
CERTAIN: tuple[Search, ...] = (
    _find_return_in_loop,
    _find_power_before_division,
    _find_unread_argument,
    _find_list_kept_between_calls,
)
# what to search for, and the failures that it makes
SEARCHES: tuple[tuple[Search, tuple[Reason, ...]], ...] = (
    (_find_missing_self, (Reason.RAISED,)),
    (_find_part_not_assigned_to_self, (Reason.PARAMETERS, Reason.RAISED)),
    (_find_modules_in_plain_list, (Reason.PARAMETERS, Reason.DIFFERENT, Reason.RAISED)),
    (_find_misspelled_forward, (Reason.RAISED,)),
)
