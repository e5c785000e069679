"""What answers may call, in the exercises of the course that ask their students to write something themselves."""

from __future__ import annotations

from dataclasses import replace

from exercise_kit.engine.call_rules import Rule

_MODULES = ("patches", "attention", "encoder", "vit", "pretrained", "interpret", "modern")
# what calls a forbidden function from there hides it; the rest of the course that a submission finds holds no answer
_ANSWERS = tuple(f"vit_course.{each}." for each in _MODULES)
_ATTENTION = ("torch.nn.functional.scaled_dot_product_attention",)
_ATTENTION_OPERATORS = ("scaled_dot_product", "_scaled_dot_product", "_safe_softmax", "_flash", "_efficient")
_NORMS = (
    *(f"torch.nn.modules.{file}." for file in ("normalization", "batchnorm", "instancenorm")),
    *(f"torch.nn.functional.{norm}_norm" for norm in ("layer", "rms", "group", "batch", "instance", "local_response")),
)
_NORM_OPERATORS = (
    *("layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm", "native_", "_fused_rms", "_batch_norm"),
    *("_native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"),
)
_PARTS = (
    *(f"timm.layers.{module}." for module in ("weight_init", "drop", "helpers")),
    "torchvision.ops.stochastic_depth.",
    "torchvision.utils._log_api_usage_once",
)
# what computes it, in the names of torch's operators, functions and classes: it is not there while the answer is graded
_ANY_NORM = (
    "(layer|rms|group|batch|instance|response)_norm|^(native_norm|_normalize)$|CrossMap|(?i:transformer_?(en|de)coder)"
)
_ANY_ATTENTION = "(?i)attention|scaled_dot|s(dpa?|fdp)(_|$)|transformer_?(en|de)coder"
_ANY_LAYER = "(?i)multi_?head|transform_bias|transformer"
_ANY_ROTATION = "(?i)rotary"
_ANY_TENSOR = "^_?(new_)?(empty|zeros|ones|full|rand|arange|range|eye|linspace|logspace|scalar_tensor|tri[lu]_indices)"


def _explain_forbidden_call(what: str, but: str) -> str:
    return f"This exercise asks you to {what} yourself, so no ready-made {but} may be called in it."


_MIX = Rule(
    _explain_forbidden_call("write attention", "attention"),
    names=_NORMS,
    operators=_NORM_OPERATORS,
    withheld=_ANY_ATTENTION,
)
_TEST = "This exercise asks for a test that needs no second {} to compare with, so none may be called in it."
_BLOCK = Rule(
    _explain_forbidden_call("build the block", "attention or layer"),
    names=(*_NORMS, *_ATTENTION, *_PARTS),
    operators=(*_NORM_OPERATORS, *_ATTENTION_OPERATORS),
    withheld=_ANY_LAYER,
)
_ROTATIONS = "This exercise asks for a test that needs no second rotation to compare with, so none may be called in it."
_MODEL = replace(_BLOCK, why=_explain_forbidden_call("build the model", "Transformer"))
_RULES = {
    "fix_patchify": Rule(
        "This exercise asks for a repaired program, so no ready-made patchify may be called in it.",
        parts=False,
        others=("patchify",),
    ),
    "scaled_dot_product_attention": _MIX,
    "MultiHeadSelfAttention": _MIX,
    "is_attention": Rule(
        _TEST.format("attention"),
        parts=False,
        names=_NORMS,
        operators=_NORM_OPERATORS,
        others=("scaled_dot_product_attention", "MultiHeadSelfAttention"),
        withheld=_ANY_ATTENTION,
    ),
    "layer_norm": Rule(_explain_forbidden_call("write layer_norm", "norm"), parts=False, withheld=_ANY_NORM),
    "is_layer_norm": Rule(_TEST.format("layer norm"), parts=False, others=("layer_norm",), withheld=_ANY_NORM),
    "EncoderBlock": _BLOCK,
    "fix_block": replace(
        _BLOCK,
        why=f"{_BLOCK.why} Nor may the forward of your own EncoderBlock: the repair is asked for.",
        others=("EncoderBlock.forward",),
    ),
    "VisionTransformer": _MODEL,
    "fix_vit": replace(
        _MODEL,
        why=f"{_MODEL.why} Nor may the forward of your own VisionTransformer: the repair is asked for.",
        others=("VisionTransformer.forward",),
    ),
    "fix_training": Rule(
        "This exercise asks for a repaired program, so your train_one_epoch may not be called in it.",
        libraries=True,
        others=("train_one_epoch",),
    ),
    "count_parameters": Rule(
        "This exercise asks for arithmetic: no tensor and no module may be made in it.",
        tensors=False,
        parts=False,
        withheld=_ANY_TENSOR,
    ),
    "is_rotary": replace(_BLOCK, why=_ROTATIONS, parts=False, others=("rotary_2d",), withheld=_ANY_ROTATION),
}

RULES = {
    name: replace(rule, answers=_ANSWERS, names=(*rule.names, "vit_course.", "exercise_kit."))
    for name, rule in _RULES.items()
}
