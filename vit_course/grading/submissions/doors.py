"""Ways round a rule, read off the code: where something can be fetched that its own name does not show.

In a student's own process no wall is final, so the judge reads. What stands here no exercise needs; the answers that
have to pass are tested in ``tests/unit/grading/submissions/test_doors.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain

from vit_course.grading.submissions.reach import (
    DEFINED,
    called,
    dotted_name,
    globals_of,
    is_module,
    outermost_names,
    text_of,
    used_imports,
)

# parts of torch, wherever in it a name finds them
TORCH = frozenset(
    {"ops", "jit", "overrides", "fx", "onnx", "ao", "nn.attention", "nn.quantized", "nn.quantizable", "nn.intrinsic"}
    | {"nn.qat", "utils.cpp_extension", "functional.boolean_dispatch", "quantization", "compiler", "serialization"}
)
TORCH_ITSELF = frozenset({"compile", "library", "export", "package", "hub", "load"})
_CHECKS = frozenset({"_assert", "_check"})
MODULES = frozenset(
    {"gc", "inspect", "ctypes", "sys", "importlib", "builtins", "pickle", "marshal", "types", "runpy", "imp", "code"}
    | {"codeop", "pkgutil", "dis", "copyreg", "shelve", "pdb", "bdb", "trace", "timeit", "cProfile", "profile", "pydoc"}
    | {"zipimport", "tracemalloc", "faulthandler", "unittest", "doctest", "cffi", "dill", "cloudpickle", "joblib"}
    | {"_ctypes", "_thread", "_imp", "_testcapi", "multiprocessing", "subprocess", "IPython", "__main__"}
)
# those that other modules import, and so hold
_INSIDE_OTHERS = MODULES - {"types", "code", "trace", "profile", "dis", "imp"}
READY_MADE = frozenset(
    {"timm", "transformers", "xformers", "flash_attn", "diffusers", "jax", "flax", "keras", "tensorflow", "fairseq"}
)
ATTRIBUTES = frozenset(
    {"_C", "_VF", "_VariableFunctions", "aten", "CompilationUnit", "_jit_get_operation", "flex_attention", "_getframe"}
    | {"__closure__", "__globals__", "__code__", "__wrapped__", "__self__", "__func__", "__defaults__", "__dict__"}
    | {"__kwdefaults__", "__builtins__", "__loader__", "__spec__", "__getattribute__", "__getattr__", "__subclasses__"}
    | {"__torch_function__", "__torch_dispatch__", "__reduce__", "__reduce_ex__", "cell_contents", "get_referrers"}
    | {"f_back", "f_globals", "f_locals", "f_builtins", "tb_frame", "tb_next", "gi_frame", "cr_frame", "ag_frame"}
    | {"user_ns", "get_field", "__traceback__"}
)
BUILTINS = frozenset({"eval", "exec", "compile", "__import__", "globals", "__builtins__", "__loader__", "__spec__"})
_BY_NAME = frozenset({"getattr", "attrgetter", "methodcaller"})  # setattr fetches nothing
_OF_THE_NOTEBOOK = frozenset({"exec", "eval", "__builtins__"})
_VARIABLES = ("globals(", "locals(", "vars(", "builtins", "sys.modules", "__builtins__")
_CHANGES = frozenset({"update", "setdefault", "__setitem__"})
_INVISIBLE = frozenset({"_getframe", "get_referrers", "user_ns", "f_globals", "f_locals", "__builtins__"})


def door_in(statement: ast.stmt, names: Mapping[str, str], wanted: Collection[str]) -> str | None:
    """The first way round in a statement that an answer reaches, as the student wrote it; None: there is none.

    Args:
        statement: of the notebook's top level.
        names: see :func:`vit_course.grading.submissions.reach.import_names`.
        wanted: the names that the answer uses.
    """
    if read := sorted(globals_of(statement) & BUILTINS):
        return read[0]
    reading = _Reading(statement, names)
    finders = chain(
        map(_door_of, used_imports(statement, wanted)),
        map(reading.of_name, outermost_names(statement)),
        map(reading.of_node, ast.walk(statement)),
    )
    return next((found for found in finders if found), None)


class _Reading:
    """What is known of one statement while its parts are looked at."""

    def __init__(self, statement: ast.stmt, names: Mapping[str, str]) -> None:
        nodes = list(ast.walk(statement))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        self.names = names
        self.defines = isinstance(statement, DEFINED)
        self.texts = _texts(statement)
        self.bound = frozenset(_bound(nodes))
        self.functions = {id(node.func): node for node in calls}
        defaults = [node.args for node in nodes if isinstance(node, ast.FunctionDef | ast.Lambda)]
        self.defaults = {id(each) for one in defaults for each in (*one.defaults, *one.kw_defaults)}
        of_classes = {id(part) for node in nodes if isinstance(node, ast.ClassDef) for part in node.body}
        assigned = [node for node in nodes if isinstance(node, ast.Assign) and id(node) not in of_classes]
        self.named = {id(node.value) for node in assigned if all(isinstance(one, ast.Name) for one in node.targets)}
        looked_into = [node for node in calls if called(node.func) in ("getattr", "hasattr")]
        self.named |= {id(node.args[0]) for node in looked_into if node.args}

    def of_name(self, node: ast.expr) -> str | None:
        """A way round in a whole dotted name."""
        dotted = dotted_name(node, self.names)
        return _door_of(dotted) or self._unread(node, dotted) or self._handed_round(node, dotted)

    def of_node(self, node: ast.AST) -> str | None:
        """A way round in any part of the tree."""
        if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            is_own = isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr == "__dict__"
            return None if is_own else node.attr
        if isinstance(node, ast.MatchClass):
            return next((name for name in node.kwd_attrs if name in ATTRIBUTES), None)
        return self._own_variables(node) if isinstance(node, ast.Call) else None

    def _unread(self, node: ast.expr, dotted: str | None) -> str | None:
        """``getattr`` and the like, where the name that they fetch cannot be read off the code."""
        name = (dotted or called(node) or "").rpartition(".")[2]
        if name not in _BY_NAME or (isinstance(node, ast.Name) and name in self.bound):
            return None
        if isinstance(node, ast.Attribute) and not dotted:
            return None
        call = self.functions.get(id(node))
        takes_a_thing = name == "getattr"
        if call is None or len(call.args) <= takes_a_thing:
            return name
        base, wanted = call.args[0], call.args[takes_a_thing]
        if (text := text_of(wanted)) is not None:
            return next((part for part in text.split(".") if part in ATTRIBUTES), None)
        if isinstance(wanted, ast.Name) and self.texts.get(wanted.id):
            return None
        owner = base.id if takes_a_thing and isinstance(base, ast.Name) else ""
        is_own = owner == "self" or (owner in self.bound and _is_modest(wanted))
        return None if is_own else f"{name} with a name that is computed"

    def _own_variables(self, call: ast.Call) -> str | None:
        """``vars`` of anything but ``self``; ``locals`` and ``vars()`` at the top level, where they are globals."""
        if not isinstance(call.func, ast.Name) or call.func.id not in ("vars", "locals"):
            return None
        if call.args:
            is_self = isinstance(call.args[0], ast.Name) and call.args[0].id == "self"
            return None if is_self or call.func.id == "locals" else "vars"
        return None if self.defines else call.func.id

    def _handed_round(self, node: ast.expr, dotted: str | None) -> str | None:
        """A module that stands alone is handed on, and then nobody can read what is fetched from it."""
        if not is_module(dotted) or id(node) in self.named:
            return None
        is_local = isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or node.id in self.bound)
        return None if is_local and id(node) not in self.defaults else f"{ast.unparse(node)} as a value"


def invisible_binding_in(statement: ast.stmt) -> str | None:
    """A way by which a statement that the answer does not reach could bind its names unseen; None: there is none."""
    if isinstance(statement, (*DEFINED, ast.Import, ast.ImportFrom)):
        star = isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names)
        root = (statement.module or "").partition(".")[0] if isinstance(statement, ast.ImportFrom) else ""
        return f"from {root} import *" if star and root in MODULES else None
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OF_THE_NOTEBOOK:
            if not node.args or text_of(node.args[0]) is None:
                return node.func.id
        elif isinstance(node, ast.Attribute) and node.attr in _INVISIBLE:
            return node.attr
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            if _is_of_the_notebook(node.value):
                return ast.unparse(node.value)
        elif isinstance(node, ast.Call) and called(node.func) in _CHANGES and _is_of_the_notebook(node.func):
            return ast.unparse(node.func)
    return None


def _is_of_the_notebook(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute) and node.attr in _CHANGES:
        node = node.value
    return ast.unparse(node).startswith(_VARIABLES)


def _door_of(dotted: str | None) -> str | None:
    """The part of a dotted name that leads astray."""
    if not dotted:
        return None
    root, *parts = dotted.split(".")
    if root in MODULES or root in READY_MADE:
        return root
    for place, part in enumerate(parts):
        so_far = ".".join([root, *parts[: place + 1]])
        if part in ATTRIBUTES or part.removeprefix("_") in _INSIDE_OTHERS:
            return so_far
        if root == "torch" and (part in TORCH or f"{parts[place - 1]}.{part}" in TORCH):
            return so_far
        if root == "torch" and place == 0 and part in TORCH_ITSELF:
            return so_far
        if root == "torch" and part.startswith("_") and not part.startswith("__") and part not in _CHECKS:
            return so_far
    return None if root in ("torch", "vit_course", "?") or _is_installed(root) else root


@lru_cache(maxsize=256)
def _is_installed(root: str) -> bool:
    try:
        return find_spec(root) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _is_modest(name: ast.expr) -> bool:
    """``field.name`` of a dataclass, ``f"layer{index}"``."""
    if isinstance(name, ast.JoinedStr) and name.values:
        first = text_of(name.values[0])
        return bool(first) and not str(first).startswith("_")
    return isinstance(name, ast.Attribute) and name.attr == "name"


def _texts(statement: ast.stmt) -> dict[str, bool]:
    """Names that hold only texts that stand in the statement: ``for name in ("height", "width")``."""
    texts: dict[str, bool] = {}
    stored = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    read = {id(target) for target, is_text in _pairs(statement) if is_text}
    for node in stored:
        texts[node.id] = texts.get(node.id, True) and id(node) in read
    return texts | {node.arg: False for node in ast.walk(statement) if isinstance(node, ast.arg)}


def _pairs(statement: ast.stmt) -> Iterator[tuple[ast.expr, bool]]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield node.targets[0], _is_plain(node.value)
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Tuple | ast.List | ast.Set):
            rows = node.iter.elts
            if isinstance(node.target, ast.Name):
                yield node.target, all(map(_is_plain, rows))
            elif isinstance(node.target, ast.Tuple):
                for place, target in enumerate(node.target.elts):
                    cells = [row.elts[place] for row in rows if isinstance(row, ast.Tuple) and len(row.elts) > place]
                    yield target, len(cells) == len(rows) and all(map(_is_plain, cells))


def _is_plain(node: ast.expr) -> bool:
    """A text that is no door and no part of one."""
    text = text_of(node)
    return text is not None and not text.startswith("_") and not set(text.split(".")) & _TOLD


_TOLD = ATTRIBUTES | TORCH | TORCH_ITSELF


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
