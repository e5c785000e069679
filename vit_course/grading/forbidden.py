"""Functions that an exercise asks not to call, and where an answer's syntax tree calls one.

The worker's stand-ins catch at run time what cannot be read off the code; both tell the student the same sentence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from vit_course.grading.needed import parse, used_globals
from vit_course.grading.submission import CellSource

ATTENTION = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch._C._nn.scaled_dot_product_attention",
    "torch.ops.aten.scaled_dot_product_attention",
    "torch.ops.aten._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_attention_math",
    "torch.nn.functional.multi_head_attention_forward",
    "torch._native_multi_head_attention",
    "torch.nn.MultiheadAttention",
)
LAYERS = (
    "torch.nn.MultiheadAttention",
    "torch.nn.TransformerEncoderLayer",
    "torch.nn.TransformerEncoder",
    "torch.nn.Transformer",
    "torch.nn.TransformerDecoderLayer",
    "torch._transformer_encoder_layer_fwd",
    "torchvision.models.vision_transformer.EncoderBlock",
    "torchvision.models.vision_transformer.Encoder",
)
NORMS = (
    "torch.nn.LayerNorm",
    "torch.nn.functional.layer_norm",
    "torch.layer_norm",
    "torch.native_layer_norm",
    "torch.ops.aten.layer_norm",
    "torch.ops.aten.native_layer_norm",
    "torch.nn.GroupNorm",
    "torch.nn.functional.group_norm",
    "torch.group_norm",
)
MODELS = (
    "torchvision.models.VisionTransformer",
    "torchvision.models.vision_transformer.VisionTransformer",
    "torchvision.models.get_model",
    *(f"torchvision.models.vit_{size}" for size in ("b_16", "b_32", "l_16", "l_32", "h_14")),
    "timm.create_model",
    "timm.models.VisionTransformer",
    "timm.models.vision_transformer.VisionTransformer",
    "transformers.ViTModel",
    "transformers.ViTForImageClassification",
    "transformers.AutoModel",
)


def _why(names: Iterable[str], sentence: str) -> dict[str, str]:
    return dict.fromkeys(names, sentence)


_NO_ATTENTION = "This exercise asks you to write attention yourself, so torch's own may not be called in it."
_NO_TWIN = "This exercise asks for a test that needs no second attention to compare with, so torch's may not be called."
_NO_NORM = "This exercise asks you to write layer_norm yourself, so torch's own normalisations may not be called in it."
_NO_LAYER = "This exercise asks you to build the block yourself, so no ready-made attention or layer may be in it."
_NO_MODEL = "This exercise asks you to build the model yourself, so no ready-made Vision Transformer may be in it."

# exercise -> {dotted name: the sentence that says why}
FORBIDDEN: Mapping[str, Mapping[str, str]] = {
    "scaled_dot_product_attention": _why(ATTENTION, _NO_ATTENTION),
    "MultiHeadSelfAttention": _why((*ATTENTION, *LAYERS), _NO_ATTENTION),
    "is_attention": _why(ATTENTION, _NO_TWIN),
    "layer_norm": _why(NORMS, _NO_NORM),
    # not the functions of attention: the course's own MultiHeadSelfAttention, which is allowed, calls one
    "EncoderBlock": _why(LAYERS, _NO_LAYER),
    "fix_block": _why(LAYERS, _NO_LAYER),
    "VisionTransformer": _why((*LAYERS, *MODELS), _NO_MODEL),
    "fix_vit": _why((*LAYERS, *MODELS), _NO_MODEL),
    "count_parameters": _why(MODELS, "This exercise asks for arithmetic, so no model may be built in it."),
}
GETTERS = frozenset({"getattr", "attrgetter", "methodcaller", "import_module", "__import__", "eval", "exec"})


def forbidden_call(exercise: str, objects: Iterable[str], cells: Sequence[CellSource]) -> str | None:
    """A sentence on a forbidden function that an answer uses, or that what it calls uses; None: there is none.

    Args:
        exercise: its name.
        objects: the names that a student defines in it.
        cells: the cells that run.
    """
    names = FORBIDDEN.get(exercise, {})
    if not names:
        return None
    statements = [statement for cell in cells if (tree := parse(cell.source)) for statement in tree.body]
    aliases = dict(chain.from_iterable(map(_imports, statements)))
    for statement in _reached(statements, frozenset(objects)):
        aliases |= dict(_imports(statement))
        for used in _used(statement, aliases):
            for name, why in names.items():
                if used == name or (used.startswith("'") and used.strip("'") in (name, name.rpartition(".")[2])):
                    return f"{name} is used. {why}"
    return None


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The dotted name for each name that imports bind anywhere in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _reached(statements: Sequence[ast.stmt], objects: frozenset[str]) -> list[ast.stmt]:
    """The statements that bind the answer's names, and those that bind names that these use, and so on."""
    binds = [frozenset(_binds(statement)) for statement in statements]
    reached: set[int] = set()
    wanted = objects
    while more := {index for index, names in enumerate(binds) if index not in reached and names & wanted}:
        reached |= more
        wanted = wanted.union(*(used_globals(ast.Module([statements[index]], [])) or () for index in more))
    return [statements[index] for index in sorted(reached)]


def _binds(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield from (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _used(tree: ast.AST, aliases: Mapping[str, str]) -> Iterator[str]:
    """Dotted names that a tree uses; in quotes, the texts by which it gets something by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            if dotted := _dotted(node, aliases):
                yield dotted
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _is_getter(node.func):
            texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
            yield from (f"'{text}'" for text in texts if isinstance(text, str))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield f"'{node.slice.value!s}'"


def _is_getter(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return name in GETTERS


def _dotted(node: ast.expr, aliases: Mapping[str, str]) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in aliases:
        return ".".join([aliases[node.id], *reversed(parts)])
    if isinstance(node, ast.Call) and _is_getter(node.func) and node.args and isinstance(node.args[0], ast.Constant):
        return ".".join([str(node.args[0].value), *reversed(parts)])  # __import__("torch").nn
    return None
