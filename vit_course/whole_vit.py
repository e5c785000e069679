"""The whole small ViT that grows from lesson to lesson: each part is the student's once it is kept, until then ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vit_course.config import ViTConfig
from vit_course.initialisation import initialise
from vit_course.vit import VisionTransformer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["learn_drawings", "your_vit"]

NAME = "Your ViT"
SMALL = ViTConfig(patch_size=8, embed_dim=64, depth=2, num_heads=4)


def your_vit() -> nn.Module:
    """A ViT for 32 x 32 drawings, of your own parts where they are kept and pass; it says which these are.

    Shapes: (batch, 3, 32, 32) → logits (batch, 10).
    """
    from exercise_kit.engine import own
    from vit_course.course import COURSE

    names = COURSE.assembled[NAME]
    parts = dict(zip(names, own(*names), strict=True))
    mine = {name for name, part in parts.items() if part.__module__.partition(".")[0] != "vit_course"}
    print(f"{NAME}: {len(mine)} of {len(names)} parts are yours.")
    torch.manual_seed(0)
    model = parts["VisionTransformer"](SMALL) if "VisionTransformer" in mine else _Assembled(parts, mine)
    model.config = SMALL
    initialise(model)
    return model


def learn_drawings(model: nn.Module) -> Figure:
    """Train a model on 6,000 drawings of ten shapes, say how often it is right on 1,000 new ones, and show eight.

    Args:
        model: (batch, 3, 32, 32) → logits (batch, 10).
    """
    from vit_course.data import shapes, train_validation_split
    from vit_course.plots import show_images
    from vit_course.training import TrainingSettings, fit

    train, new = train_validation_split(shapes(7000), 1000)
    # a rehearsal: everything runs, little is learned
    epochs = 1 if os.environ.get("VIT_COURSE_BUDGET") == "small" else 5
    history = fit(model, train, new, TrainingSettings(epochs, 64, learning_rate=2e-3, muon_learning_rate=0.02))
    print(f"right on {history.validation_accuracy[-1]:.1%} of 1,000 drawings that it has not seen")
    with torch.inference_mode():
        answers = model.cpu().eval()(new.normalize(new.images[:8])).argmax(dim=1)
    return show_images(new.images[:8], titles=[new.classes[each] for each in answers])


class _Assembled(VisionTransformer):
    """The course's ViT with other parts in the places of its own."""

    def __init__(self, parts: Mapping[str, Any], mine: set[str]) -> None:
        super().__init__(SMALL)
        self._add_class_token = parts["add_class_token"]
        self.patch_embedding = parts["PatchEmbedding"](SMALL.in_channels, SMALL.patch_size, SMALL.embed_dim)
        for place, block in enumerate(self.blocks):
            if "EncoderBlock" in mine:  # it has a student's attention and MLP in it, where they are kept
                self.blocks[place] = parts["EncoderBlock"](SMALL.embed_dim, SMALL.num_heads)
                continue
            block.attention = parts["MultiHeadSelfAttention"](SMALL.embed_dim, SMALL.num_heads)
            block.mlp = parts["Mlp"](SMALL.embed_dim, SMALL.hidden_dim)

    def _embed(self, patches: Tensor) -> Tensor:
        embedded: Tensor = self._add_class_token(patches, self.class_token, self.positions)
        return embedded
