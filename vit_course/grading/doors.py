"""Ways round a rule, read off the code: where something can be fetched that its own name does not show.

In a student's own process no wall is final, so the judge reads. What stands here no exercise needs; the answers that
have to pass are tested in ``tests/unit/grading/test_doors.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from vit_course.grading.reach import called, dotted_name, globals_of, is_module, text_of

TORCH = (
    *("ops", "jit", "compile", "library", "overrides", "fx", "export", "package", "hub", "onnx", "ao", "load"),
    *(
        "nn.attention",
        "nn.quantized",
        "nn.quantizable",
        "nn.intrinsic",
        "nn.qat",
        "utils.cpp_extension",
        "serialization",
    ),
    *("nn.Module.__subclasses__", "nn.functional.boolean_dispatch", "quantization", "compiler", "cuda.graphs"),
)
MODULES = frozenset(
    {"gc", "inspect", "ctypes", "sys", "importlib", "builtins", "pickle", "marshal", "types", "runpy", "imp", "code"}
    | {"codeop", "pkgutil", "dis", "copyreg", "shelve", "pdb", "bdb", "trace", "timeit", "cProfile", "profile", "pydoc"}
    | {"zipimport", "tracemalloc", "faulthandler", "unittest", "doctest", "cffi", "dill", "cloudpickle", "joblib"}
    | {"_ctypes", "_thread", "_imp", "_testcapi", "multiprocessing", "subprocess", "IPython", "__main__"}
)
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


def door_in(statement: ast.stmt, names: Mapping[str, str]) -> str | None:
    """The first way round in a statement that an answer reaches, as the student wrote it; None: there is none.

    Args:
        statement: of the notebook's top level.
        names: see :func:`vit_course.grading.reach.import_names`.
    """
    if read := sorted(globals_of(statement) & BUILTINS):
        return read[0]
    texts = _texts(statement)
    bound = _bound(statement)
    inner = {id(node.value) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    inner |= {id(node.args[0]) for node in ast.walk(statement) if _looks_into(node)}  # type: ignore[attr-defined]
    functions = {id(node.func): node for node in ast.walk(statement) if isinstance(node, ast.Call)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Name):
            found = _named(node, names, statement) or _unread(node, functions, texts, bound)
            if not found and id(node) not in inner and is_module(dotted_name(node, names)):
                found = _handed_round(node, statement, bound)
        elif isinstance(node, ast.Call):
            found = _door_of(dotted_name(node, names)) or _own_variables(node, statement)
        else:
            found = None
        if found:
            return found
    return None


def invisible_binding_in(statement: ast.stmt, names: Mapping[str, str]) -> str | None:
    """A way by which a statement that the answer does not reach could bind its names unseen; None: there is none."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
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


def _named(node: ast.Attribute | ast.Name, names: Mapping[str, str], statement: ast.stmt) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
        is_own = isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr == "__dict__"
        return None if is_own else _door_of(dotted_name(node, names)) or node.attr
    return _door_of(dotted_name(node, names))


def _door_of(dotted: str | None) -> str | None:
    """The part of a dotted name that leads astray."""
    if not dotted:
        return None
    root, *parts = dotted.split(".")
    if root in MODULES:
        return root
    if root == "torch":
        for door in TORCH:
            if f"{dotted}.".startswith(f"torch.{door}."):
                return f"torch.{door}"
        for place, part in enumerate(parts):
            private = part.startswith("_") and part not in ("_assert", "_check", "__version__", "__name__", "__init__")
            if private or part in ATTRIBUTES or part in MODULES - {"types", "code"}:
                return ".".join(["torch", *parts[: place + 1]])
    if root in READY_MADE:
        return root
    return None if root in ("torch", "vit_course", "?") or _is_installed(root) else root


def _looks_into(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node.func) in ("getattr", "hasattr") and bool(node.args)


def _is_installed(root: str) -> bool:
    try:
        return find_spec(root) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _unread(
    node: ast.expr, functions: Mapping[int, ast.Call], texts: Mapping[str, bool], bound: frozenset[str]
) -> str | None:
    """``getattr`` and the like, where the name that they fetch cannot be read off the code."""
    name = called(node)
    if name not in _BY_NAME or (isinstance(node, ast.Name) and name in bound):
        return None
    if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name):
        return None
    call = functions.get(id(node))
    if call is None:
        return name
    takes_a_thing = name not in ("attrgetter", "methodcaller")
    if len(call.args) <= takes_a_thing:
        return name
    base, wanted = call.args[0], call.args[takes_a_thing]
    if (text := text_of(wanted)) is not None:
        return next((part for part in text.split(".") if part in ATTRIBUTES), None)
    if isinstance(wanted, ast.Name) and texts.get(wanted.id):
        return None
    if (
        takes_a_thing
        and isinstance(base, ast.Name)
        and (base.id == "self" or (base.id in bound and _is_modest(wanted)))
    ):
        return None
    return f"{name} with a name that is computed"


def _is_modest(name: ast.expr) -> bool:
    """``field.name`` of a dataclass, ``f"layer{index}"``."""
    if isinstance(name, ast.JoinedStr) and name.values:
        first = text_of(name.values[0])
        return bool(first) and not str(first).startswith("_")
    return isinstance(name, ast.Attribute) and name.attr == "name"


def _own_variables(call: ast.Call, statement: ast.stmt) -> str | None:
    """``vars`` of anything but ``self``; ``locals`` and ``vars()`` at the top level, where they are globals."""
    if not isinstance(call.func, ast.Name) or call.func.id not in ("vars", "locals"):
        return None
    if call.args:
        is_self = isinstance(call.args[0], ast.Name) and call.args[0].id == "self"
        return None if is_self or call.func.id == "locals" else "vars"
    return None if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else call.func.id


def _handed_round(node: ast.expr, statement: ast.stmt, bound: frozenset[str]) -> str | None:
    """A module that stands alone is handed on, and then nobody can read what is fetched from it."""
    if isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or node.id in bound):
        defaults = [each.args for each in ast.walk(statement) if isinstance(each, ast.FunctionDef | ast.Lambda)]
        if not any(node is each for one in defaults for each in (*one.defaults, *one.kw_defaults)):
            return None
    if any(isinstance(each, ast.Assign) and each.value is node for each in ast.walk(statement)):
        return None
    return f"{ast.unparse(node)} as a value"


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


_TOLD = ATTRIBUTES | {"ops", "jit", "library", "overrides"}


def _bound(statement: ast.stmt) -> frozenset[str]:
    stored = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(stored | {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)})
