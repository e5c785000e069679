"""What passes between the parts of a Vision Transformer, observed by hooks: no model is written for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

Stages = dict[str, Tensor]


def record(model: nn.Module, images: Tensor) -> Stages:
    """Run a Vision Transformer and keep every stage on the way, by name, in the order of the computation.

    - "patch_embedding", (batch, num_patches, embed_dim);
    - "class_token", with the class token in front, and "embedding", with the positions, after dropout;
    - for each block "blocks.0.attention.weights", (batch, num_heads, tokens, tokens), before dropout; what the two
      branches add, "blocks.0.attention" and "blocks.0.mlp"; and "blocks.0.output";
    - "norm"; "pooled", (batch, embed_dim); and "logits", (batch, num_classes).

    Where no shape is given it is (batch, tokens, embed_dim). The model runs in the mode that it is in, with or without
    gradients as the caller has them. Hooks observe it and are gone afterward; the attention computes its weights, as
    it does for ``return_weights=True``.

    Args:
        model: a :class:`~vit_course.vit.VisionTransformer`, or a model whose parts have the same names.
        images: (batch, channels, height, width), normalized.

    Raises:
        ValueError: the model refuses the images.
    """
    parts: Any = model
    stages: Stages = {}

    def prepend_class_token(module: nn.Module, inputs: Any, patches: Tensor) -> None:
        class_tokens = [] if parts.class_token is None else [parts.class_token.expand(len(patches), -1, -1)]
        stages["class_token"] = torch.cat([*class_tokens, patches], dim=1)

    with ExitStack() as hooks:
        for hook in (_make_output_recorder(stages, "patch_embedding"), prepend_class_token):
            hooks.enter_context(parts.patch_embedding.register_forward_hook(hook))
        first = parts.blocks[0] if len(parts.blocks) else parts.norm
        hooks.enter_context(first.register_forward_pre_hook(_make_input_recorder(stages, "embedding")))
        for number, block in enumerate(parts.blocks):
            name = f"blocks.{number}"
            hooks.enter_context(block.attention.register_forward_pre_hook(_request_attention_weights, with_kwargs=True))
            hooks.enter_context(
                block.attention.register_forward_hook(_make_weights_recorder(stages, f"{name}.attention"))
            )
            hooks.enter_context(block.mlp.register_forward_hook(_make_output_recorder(stages, f"{name}.mlp")))
            hooks.enter_context(block.register_forward_hook(_make_output_recorder(stages, f"{name}.output")))
        hooks.enter_context(parts.norm.register_forward_hook(_make_output_recorder(stages, "norm")))
        hooks.enter_context(parts.head.register_forward_pre_hook(_make_input_recorder(stages, "pooled")))
        stages["logits"] = model(images)
    return stages


def _make_input_recorder(stages: Stages, name: str) -> Callable[[nn.Module, Any], None]:
    def record_input(module: nn.Module, inputs: Any) -> None:
        stages[name] = inputs[0]

    return record_input


def _make_output_recorder(stages: Stages, name: str) -> Callable[[nn.Module, Any, Any], None]:
    def record_output(module: nn.Module, inputs: Any, output: Tensor) -> None:
        stages[name] = output

    return record_output


def _make_weights_recorder(stages: Stages, name: str) -> Callable[[nn.Module, Any, Any], Tensor]:
    """A hook on an attention that gives its weights, too: it keeps them, and hands on the output alone."""

    def record_weights(module: nn.Module, inputs: Any, result: tuple[Tensor, Tensor]) -> Tensor:
        output, stages[f"{name}.weights"] = result
        stages[name] = output
        return output

    return record_weights


def _request_attention_weights(module: nn.Module, inputs: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return inputs, {**options, "return_weights": True}
