"""What loops cost: patches and attention one at a time, as published notebooks cut and compute them, beside ours.

    python benchmarks/loops.py

The loops are written after the descriptions of those notebooks, not copied. Looped patches are ours to the last
number. Looped attention reads slices of the token and has no projection, so it is slower with less to compute.
Prints a table and writes results/loops.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from timing import Stopwatch, Work, compute_time_ratios, describe_machine, time_in_turns
from torch import Tensor, nn

from vit_course.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from vit_course.config import ViTConfig
from vit_course.patches import PatchEmbedding, patchify
from vit_course.vit import VisionTransformer

OURS = "ours"
RESULTS = Path(__file__).parent / "results" / "loops.json"


def patchify_in_loops(images: Tensor, patch_size: int) -> Tensor:
    """One image after the other, one patch after the other, each written into a tensor of zeros."""
    batch, channels, height, width = images.shape
    rows, columns = height // patch_size, width // patch_size
    patches = torch.zeros(batch, rows * columns, channels * patch_size**2)
    for index, image in enumerate(images):
        for row in range(rows):
            for column in range(columns):
                top, left = row * patch_size, column * patch_size
                patch = image[:, top : top + patch_size, left : left + patch_size]
                patches[index, row * columns + column] = patch.flatten()
    return patches


class AttentionInLoops(nn.Module):
    """One image after the other, one head after the other; every head reads its slice of the token by three
    small Linears of its own, and no projection follows.

    Shapes: (batch, tokens, embed_dim) → (batch, tokens, embed_dim).
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.head_dim = embed_dim // num_heads
        sizes = self.head_dim, self.head_dim
        self.query, self.key, self.value = (
            nn.ModuleList(nn.Linear(*sizes) for _ in range(num_heads)) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        images = []
        for tokens in x:
            heads = []
            for number, maps in enumerate(zip(self.query, self.key, self.value, strict=True)):
                part = tokens[:, number * self.head_dim : (number + 1) * self.head_dim]
                query, key, value = (linear(part) for linear in maps)
                weights = torch.softmax(query @ key.T / self.head_dim**0.5, dim=-1)
                heads.append(weights @ value)
            images.append(torch.hstack(heads))
        return torch.stack(images)


class AttentionHeadByHead(nn.Module):
    """A list of heads, each with three Linears that read the whole token; all images at a time; a projection.

    Shapes: (batch, tokens, embed_dim) → (batch, tokens, embed_dim).
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        sizes = embed_dim, embed_dim // num_heads
        self.heads = nn.ModuleList(nn.ModuleList(nn.Linear(*sizes) for _ in range(3)) for _ in range(num_heads))
        self.projection = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        outputs = [scaled_dot_product_attention(*(linear(x) for linear in head))[0] for head in self.heads]
        return self.projection(torch.cat(outputs, dim=-1))


class LoopedEmbedding(PatchEmbedding):
    """Our patch embedding of patches that loops cut."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config.in_channels, config.patch_size, config.embed_dim)

    def forward(self, images: Tensor) -> Tensor:
        return self.projection(patchify_in_loops(images, self.patch_size))


@dataclass(frozen=True)
class Size:
    """A published setting: ``batch`` square images of ``side`` pixels, and the model that reads them."""

    batch: int
    channels: int
    side: int
    patch_size: int
    embed_dim: int
    num_heads: int
    depth: int

    @property
    def config(self) -> ViTConfig:
        return ViTConfig(
            self.side,
            self.patch_size,
            self.channels,
            embed_dim=self.embed_dim,
            depth=self.depth,
            num_heads=self.num_heads,
            positions="sinusoidal",
        )

    def draw_images(self) -> Tensor:
        return torch.rand(self.batch, self.channels, self.side, self.side)


SIZES = {
    "MNIST, 7 x 7 patches, dim 8, 2 heads, 2 blocks": Size(128, 1, 28, 4, 8, 2, 2),
    "CIFAR-10, 8 x 8 patches, dim 16, 2 heads, 4 blocks": Size(128, 3, 32, 4, 16, 2, 4),
}


def make_patchify_works(size: Size) -> dict[str, Work]:
    """patchify, ours and in loops."""
    images = size.draw_images()
    ways = {OURS: patchify, "looped": patchify_in_loops}
    return {name: lambda cut=cut: cut(images, size.patch_size) for name, cut in ways.items()}


def make_attention_works(size: Size) -> dict[str, Work]:
    """A step of training through attention alone, ours and in loops."""
    x = torch.randn(size.batch, size.config.num_tokens, size.embed_dim, requires_grad=True)
    kinds = {OURS: MultiHeadSelfAttention, "looped": AttentionInLoops, "head by head": AttentionHeadByHead}
    modules = {name: kind(size.embed_dim, size.num_heads) for name, kind in kinds.items()}
    return {name: lambda module=module: module(x).sum().backward() for name, module in modules.items()}


def make_model_works(size: Size) -> dict[str, Work]:
    """Forward and backward of a whole model, ours and with both loops in it."""
    images, labels = size.draw_images(), torch.arange(size.batch) % size.config.num_classes
    looped = VisionTransformer(size.config)
    looped.patch_embedding = LoopedEmbedding(size.config)
    for block in looped.blocks:
        block.attention = AttentionInLoops(size.embed_dim, size.num_heads)
    models = {OURS: VisionTransformer(size.config), "looped": looped}
    return {
        name: lambda model=model: F.cross_entropy(model(images), labels).backward() for name, model in models.items()
    }


def measure_ratios(works: Mapping[str, Work], rounds: int, stopwatch: Stopwatch) -> dict[str, Any]:
    """Milliseconds of each way, and how many times our time it takes."""
    taken = time_in_turns(works, rounds, stopwatch)
    milliseconds = {name: round(1000 * median(each), 3) for name, each in taken.items()}
    return {"milliseconds": milliseconds, "times_ours": compute_time_ratios(taken, OURS)}


def format_table(report: Mapping[str, Any]) -> str:
    """The report as text."""
    lines = []
    for size, parts in report["sizes"].items():
        for what, measured in parts.items():
            lines.append(f"{size}: {what}, ours {measured['milliseconds'][OURS]} ms")
            for name, ratio in measured["times_ours"].items():
                spread = f"{ratio['low']:.1f} to {ratio['high']:.1f}"
                lines.append(
                    f"  {name:14}{measured['milliseconds'][name]:10} ms, {ratio['median']:.1f} times ({spread})"
                )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    stopwatch = Stopwatch("cpu", seconds=0.05)
    report: dict[str, Any] = {"benchmark": "loops", **describe_machine("cpu"), "rounds": arguments.rounds, "sizes": {}}
    for name, size in SIZES.items():
        report["sizes"][name] = {
            "patchify": measure_ratios(make_patchify_works(size), arguments.rounds, stopwatch),
            "attention, forward + backward": measure_ratios(make_attention_works(size), arguments.rounds, stopwatch),
            "whole model, forward + backward": measure_ratios(make_model_works(size), arguments.rounds, stopwatch),
        }
    print(format_table(report))
    arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
