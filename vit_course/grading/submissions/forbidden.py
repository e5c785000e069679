"""Functions that an exercise asks not to call, and where an answer's syntax tree calls one or finds a way round.

The worker's stand-ins catch at run time what cannot be read off the code; both tell the student the same sentence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from vit_course.grading.submissions.doors import door_in, invisible_binding_in
from vit_course.grading.submissions.reach import (
    DEFINED,
    called,
    defined_after_import,
    dotted_name,
    import_names,
    outermost_names,
    reached,
    statements_of,
    used_imports,
)
from vit_course.grading.submissions.submission import CellSource

# torch.ops.aten.*: operators, which the worker watches however they are called
ATTENTION = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch._C._nn.scaled_dot_product_attention",
    "torch._scaled_dot_product_attention_math",
    "torch.nn.functional.multi_head_attention_forward",
    "torch._native_multi_head_attention",
    "torch.nn.MultiheadAttention",
    "torch.nn.attention.flex_attention.flex_attention",
    *(
        f"torch.ops.aten.{operator}"
        for operator in (
            *("scaled_dot_product_attention", "_scaled_dot_product_attention_math", "_native_multi_head_attention"),
            *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention"),
            *("_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention"),
            *("_scaled_dot_product_fused_attention_overrideable", "_safe_softmax"),
        )
    ),
)
LAYERS = (
    "torch.nn.functional.multi_head_attention_forward",
    "torch._native_multi_head_attention",
    "torch.nn.MultiheadAttention",
    "torch.nn.TransformerEncoderLayer",
    "torch.nn.TransformerEncoder",
    "torch.nn.Transformer",
    "torch.nn.TransformerDecoderLayer",
    "torch._transformer_encoder_layer_fwd",
    "torchvision.models.vision_transformer.EncoderBlock",
    "torchvision.models.vision_transformer.Encoder",
)
_NORM_FUNCTIONS = ("layer_norm", "group_norm", "instance_norm", "batch_norm", "rms_norm")
NORMS = (
    *(f"torch.nn.functional.{norm}" for norm in _NORM_FUNCTIONS),
    *(f"torch.{norm}" for norm in (*_NORM_FUNCTIONS, "native_layer_norm", "native_group_norm", "native_batch_norm")),
    *(f"torch.nn.{norm}" for norm in ("LayerNorm", "GroupNorm", "RMSNorm", "SyncBatchNorm")),
    *(f"torch.nn.{lazy}{kind}Norm{size}d" for lazy in ("", "Lazy") for kind in ("Batch", "Instance") for size in "123"),
    *(f"torch.ops.aten.{norm}" for norm in ("native_layer_norm", "native_group_norm", "native_batch_norm")),
    *(f"torch.ops.aten.{norm}" for norm in ("_native_batch_norm_legit", "_fused_rms_norm", "_batch_norm_with_update")),
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
GETTERS = frozenset({"getattr", "attrgetter", "methodcaller", "import_module", "__import__"})
_ROUND = "{door} is used. That is a way round what this exercise forbids, and no answer to it needs one. {why}"


def forbidden_call(exercise: str, objects: Iterable[str], cells: Sequence[CellSource]) -> str | None:
    """A sentence on what an answer, or what it calls, uses and may not: a forbidden function, or a way round to one.

    Args:
        exercise: its name.
        objects: the names that a student defines in it.
        cells: the cells that run.
    """
    rules = FORBIDDEN.get(exercise)
    if not rules:
        return None
    try:
        return _told(rules, frozenset(objects), statements_of(cells))
    except RecursionError:
        return "Its code is nested too deeply to be read."


def _told(rules: Mapping[str, str], objects: frozenset[str], statements: Sequence[ast.stmt]) -> str | None:
    names = import_names(statements)
    last = {name.rpartition(".")[2]: name for name in reversed(list(rules))}
    for module in {_star(statement) for statement in statements} - {None}:
        names = {name: f"{module}.{name}" for name in last} | names
    found, wanted = reached(statements, objects, names)
    own = {name: place for name, place in defined_after_import(statements).items() if name in names}
    for place, statement in found:
        hidden = {name for name, at in own.items() if at <= place or isinstance(statement, DEFINED)}
        seen = {name: dotted for name, dotted in names.items() if name not in hidden} if hidden else names
        for used in (*_used(statement, seen), *used_imports(statement, wanted - own.keys())):
            if name := _rule(used, rules, last):
                return f"{name} is used. {rules[name]}"
        if door := door_in(statement, seen, wanted - own.keys()):
            return _ROUND.format(door=door, why=next(iter(rules.values())))
    doors = (invisible_binding_in(statement) for statement in statements)
    return next((_ROUND.format(door=door, why=next(iter(rules.values()))) for door in doors if door), None)


def _rule(used: str, rules: Mapping[str, str], last: Mapping[str, str]) -> str | None:
    """The rule that what is used falls under: by its name, or by the last part of it where a library holds it."""
    if used in rules:
        return used
    parts = used.split(".")[1:] if _is_package(used) else ()
    return next((last[part] for part in parts if part in last), None)


def _is_package(used: str) -> bool:
    """Whether it is fetched from a library, or by its name from nobody knows where."""
    return used.partition(".")[0] in ("", "torch", "torchvision", "timm", "transformers")


def _star(statement: ast.stmt) -> str | None:
    is_star = isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names)
    module = statement.module if isinstance(statement, ast.ImportFrom) and is_star else None
    return module if module and _is_package(module) else None


def _used(statement: ast.stmt, names: Mapping[str, str]) -> Iterator[str]:
    """Dotted names that a statement uses; with a dot in front, the texts by which it gets something by name."""
    for node in outermost_names(statement):
        if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)) and (
            dotted := dotted_name(node, names)
        ):
            yield dotted
        if isinstance(node, ast.Call) and called(node.func) in GETTERS:
            texts = (part.value for part in node.args if isinstance(part, ast.Constant))
            yield from (f".{text}" for text in texts if isinstance(text, str))
