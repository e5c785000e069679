"""What lesson 10 quotes: six changes to the ViT of 2020, each on its own and all at once, from three seeds.

    python benchmarks/modern.py --data cifar10.npz

Model, images and training are those of lesson 07's experiments. First every change where nothing asks for it; then
three of them where the trouble is that they were made for: a high learning rate, many blocks, few images. The rate was
chosen for four blocks, so the many are trained at other rates too, from one seed. Takes three quarters of an hour on
two idle cores; a run that was stopped goes on where it was. Prints a table and writes results/modern.json.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from arms import (
    Log,
    collect_conditions,
    format_row,
    load_train_and_validation,
    make_parser,
    schedule_learning_rates,
    train_for,
)
from lesson_cifar import (
    BASE,
    BATCH,
    FEW,
    LEARNING_RATE,
    SEEDS,
    WEIGHT_DECAY,
)
from torch import Tensor, nn
from torch.optim import AdamW

from vit_course.attention import MultiHeadSelfAttention, merge_heads, split_heads
from vit_course.config import ViTConfig
from vit_course.data import Batches
from vit_course.modern import DropPath, LayerScale, QKNormAttention, add_registers, rotary_2d
from vit_course.training import parameter_groups
from vit_course.vit import VisionTransformer

NUM_REGISTERS, FIRST_SCALE, DROPPED = 4, 0.1, 0.2
HIGH_RATE, DEPTH = 1e-2, 16
RESULTS = Path(__file__).parent / "results" / "modern.json"


@dataclass(frozen=True)
class Arm:
    """One way to train: the change, the model that it is made to, and what that learns from."""

    change: str = ""
    config: ViTConfig = BASE
    learning_rate: float = LEARNING_RATE
    num_train: int = 10_000
    epochs: int = 6


DEEP, FAST = Arm(config=replace(BASE, depth=DEPTH)), Arm(learning_rate=HIGH_RATE)
SCARCE = Arm(num_train=FEW.num_train, epochs=FEW.epochs)
ARMS = {
    "plain": Arm(),
    "registers": Arm("registers"),
    "LayerScale": Arm("LayerScale"),
    "DropPath": Arm("DropPath"),
    "QK-norm": Arm("QK-norm"),
    "rotary positions": Arm("rotary", replace(BASE, positions="none")),
    "RMSNorm": Arm("RMSNorm"),
    "all of them": Arm("all"),
    "high rate": FAST,
    "high rate, QK-norm": replace(FAST, change="QK-norm"),
    "sixteen blocks": DEEP,
    "sixteen blocks, LayerScale": replace(DEEP, change="LayerScale"),
    "few images": SCARCE,
    "few images, DropPath": replace(SCARCE, change="DropPath"),
    "sixteen blocks at 0.001": replace(DEEP, learning_rate=1e-3),
    "sixteen blocks at 0.001, LayerScale": replace(DEEP, learning_rate=1e-3, change="LayerScale"),
    "sixteen blocks at 0.0005": replace(DEEP, learning_rate=5e-4),
    "sixteen blocks at 0.004": replace(DEEP, learning_rate=4e-3),
}
TRIED = [name for name in ARMS if " at " in name]  # rates, from the first seed alone
# each arm beside the one that lacks its change
BASELINES = {name: name.split(", ")[0] if ", " in name else "plain" for name in ARMS}


class WithRegisters(nn.Module):
    """Blocks that see registers between the class token and the patches."""

    def __init__(self, blocks: nn.Module, embed_dim: int) -> None:
        super().__init__()
        self.blocks = blocks
        self.registers = nn.Parameter(0.02 * torch.randn(1, NUM_REGISTERS, embed_dim))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.blocks(add_registers(tokens, self.registers))


class ModernAttention(QKNormAttention):
    """Queries and keys normalized, then turned by the place of their patch."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config.embed_dim, config.num_heads)
        self.grid_size = config.grid_size

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (split_heads(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1))
        query, key = rotary_2d(self.query_norm(query), self.key_norm(key), self.grid_size)
        return self.projection(merge_heads(F.scaled_dot_product_attention(query, key, value)))


class RotaryAttention(MultiHeadSelfAttention):
    """Attention whose queries and keys are turned by the place of their patch."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config.embed_dim, config.num_heads)
        self.grid_size = config.grid_size

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        query, key, value = (split_heads(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1))
        query, key = rotary_2d(query, key, self.grid_size)
        return self.projection(merge_heads(F.scaled_dot_product_attention(query, key, value)))


def copy_weights(old: nn.Module, new: nn.Module) -> nn.Module:
    """The new attention, with the first weights of the old one."""
    new.load_state_dict(old.state_dict(), strict=False)
    return new


def build_modern_vit(arm: Arm, seed: int) -> nn.Module:
    """A fresh model with the arm's change."""
    torch.manual_seed(seed)
    config = arm.config
    model = VisionTransformer(config)
    dim, heads = config.embed_dim, config.num_heads
    parts: Any = model
    for number, block in enumerate(parts.blocks):
        if arm.change == "QK-norm":
            block.attention = copy_weights(block.attention, QKNormAttention(dim, heads))
        if arm.change == "rotary":
            block.attention = copy_weights(block.attention, RotaryAttention(config))
        if arm.change == "all":
            block.attention = copy_weights(block.attention, ModernAttention(config))
        if arm.change in ("RMSNorm", "all"):
            block.norm1, block.norm2 = nn.RMSNorm(dim, eps=1e-6), nn.RMSNorm(dim, eps=1e-6)
        for name in ("attention", "mlp"):
            if arm.change in ("LayerScale", "all"):
                setattr(block, name, nn.Sequential(getattr(block, name), LayerScale(dim, FIRST_SCALE)))
            if arm.change in ("DropPath", "all"):
                probability = DROPPED * number / (config.depth - 1)  # none in the first block
                setattr(block, name, nn.Sequential(getattr(block, name), DropPath(probability)))
    if arm.change in ("RMSNorm", "all"):
        parts.norm = nn.RMSNorm(dim, eps=1e-6)
    if arm.change in ("registers", "all"):
        parts.blocks = WithRegisters(parts.blocks, dim)
    return model


def run_arm(name: str, seed: int, data: Path) -> dict[str, list[float]]:
    """Train one arm, alone in its process: losses and accuracy in [0, 1] after each epoch, and seconds in all."""
    torch.set_num_threads(1)
    arm, (train, validation) = ARMS[name], load_train_and_validation(data)
    model = build_modern_vit(arm, seed)
    optimizer = AdamW(parameter_groups(model, WEIGHT_DECAY), lr=arm.learning_rate)
    loader = Batches(train.subset(slice(arm.num_train)), BATCH, shuffle=True, seed=seed)
    schedule_learning_rates(optimizer, arm.epochs * len(loader))
    return train_for(arm.epochs, model, optimizer, loader, validation)


def describe_conditions() -> dict[str, Any]:
    """All that the numbers depend on."""
    return collect_conditions(
        "modern",
        training={"batch_size": BATCH, "weight_decay": WEIGHT_DECAY, "registers": NUM_REGISTERS}
        | {"first_scale": FIRST_SCALE, "dropped": DROPPED},
        arms={name: asdict(arm) for name, arm in ARMS.items()},
    )


def format_table(result: dict[str, Any]) -> str:
    """Accuracy on validation images at the end for each seed, and the difference that the change makes."""
    last = {
        name: [100 * run["validation_accuracy"][-1] for run in runs.values()]
        for name, runs in result["results"].items()
    }
    return "\n".join(
        format_row(name, each, None if BASELINES[name] == name else last[BASELINES[name]])
        for name, each in last.items()
    )


def main() -> None:
    parser = make_parser(__doc__, RESULTS)
    parser.add_argument("--workers", type=int, default=2, help="how many arms are trained at a time")
    arguments = parser.parse_args()
    log = Log(arguments.output, describe_conditions(), ARMS)
    planned = [(name, seed) for seed in SEEDS for name in ARMS if name not in TRIED or seed == SEEDS[0]]
    each = {("results", name, str(seed)): (name, seed) for name, seed in planned}
    log.measure_missing(each, partial(run_arm, data=arguments.data), arguments.workers)
    print(format_table(log.found))


if __name__ == "__main__":
    main()
