"""A broken ViT still learns: the right model and eight wrong ones, trained alike on CIFAR-10.

    python benchmarks/broken_vit.py --data cifar10.npz

Every model of a seed starts from the same weights and sees the same batches; a wrong one differs in a line
or two of its forward pass. Prints a table and writes results/broken_vit.json, which
figures/broken_vit.py draws; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean

import torch
from torch import Tensor, nn

from vit_course.attention import MultiHeadSelfAttention, merge_heads, split_heads
from vit_course.config import ViTConfig
from vit_course.data import ImageDataset, load_npz
from vit_course.patches import PatchEmbedding
from vit_course.training import TrainingSettings, evaluate, fit
from vit_course.vit import VisionTransformer

CONFIG = ViTConfig(image_size=32, patch_size=8, embed_dim=64, depth=4, num_heads=4)
NUM_TRAIN, NUM_TEST = 30_000, 5_000
RESULTS = Path(__file__).parent / "results" / "broken_vit.json"


class WrongAttention(MultiHeadSelfAttention):
    """The right attention, in steps that a wrong one overrides."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
        weights = self.softmax(query @ key.transpose(-2, -1) * self.scale(query))
        return self.projection(merge_heads(weights @ value))

    def split(self, x: Tensor) -> Tensor:
        return split_heads(x, self.num_heads)

    def scale(self, query: Tensor) -> float:
        return query.shape[-1] ** -0.5

    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(dim=-1)


class HeadsByView(WrongAttention):
    def split(self, x: Tensor) -> Tensor:
        batch, tokens, embed_dim = x.shape
        return x.reshape(batch, self.num_heads, tokens, embed_dim // self.num_heads)


class Unscaled(WrongAttention):
    def scale(self, query: Tensor) -> float:
        return 1.0


class SoftmaxOverQueries(WrongAttention):
    def softmax(self, scores: Tensor) -> Tensor:
        return scores.softmax(dim=-2)


class NoProjection(WrongAttention):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
        return merge_heads(self.softmax(query @ key.transpose(-2, -1) * self.scale(query)) @ value)


class OverTheBatch(WrongAttention):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


class ReshapedPatches(PatchEmbedding):
    def forward(self, images: Tensor) -> Tensor:
        tokens = super().forward(images)
        channels_first = tokens.transpose(1, 2).contiguous()  # (batch, embed_dim, tokens), as a convolution gives
        return channels_first.reshape(tokens.shape)


class ColumnsFirst(PatchEmbedding):
    def forward(self, images: Tensor) -> Tensor:
        tokens = super().forward(images)
        rows = images.shape[2] // self.patch_size
        return tokens.unflatten(1, (rows, -1)).transpose(1, 2).flatten(1, 2)


class SoftmaxInTheModel(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images).softmax(dim=-1)


def with_attention(kind: type[WrongAttention]) -> Callable[[VisionTransformer], nn.Module]:
    def change(model: VisionTransformer) -> nn.Module:
        for block in model.blocks:
            wrong = kind(CONFIG.embed_dim, CONFIG.num_heads)
            wrong.load_state_dict(block.attention.state_dict())
            block.attention = wrong
        return model

    return change


def with_patches(kind: type[PatchEmbedding]) -> Callable[[VisionTransformer], nn.Module]:
    def change(model: VisionTransformer) -> nn.Module:
        wrong = kind(CONFIG.in_channels, CONFIG.patch_size, CONFIG.embed_dim)
        wrong.load_state_dict(model.patch_embedding.state_dict())
        model.patch_embedding = wrong
        return model

    return change


VARIANTS: dict[str, Callable[[VisionTransformer], nn.Module]] = {
    "right": lambda model: model,
    "heads split by view": with_attention(HeadsByView),
    "patches reshaped, not transposed": with_patches(ReshapedPatches),
    "no scaling": with_attention(Unscaled),
    "no output projection": with_attention(NoProjection),
    "tokens column by column": with_patches(ColumnsFirst),
    "softmax over queries": with_attention(SoftmaxOverQueries),
    "softmax before the loss": SoftmaxInTheModel,
    "attention over the batch": with_attention(OverTheBatch),
}


@dataclass
class Row:
    """One variant: for each seed, test accuracy (0 to 1) and seconds of training and measuring by the clock."""

    name: str
    seeds: list[int] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def train_variant(row: Row, train: ImageDataset, test: ImageDataset, settings: TrainingSettings) -> None:
    """Train one variant from one seed, and add what came out to its row."""
    torch.manual_seed(settings.seed)
    model = VARIANTS[row.name](VisionTransformer(CONFIG))
    started = time.perf_counter()
    fit(model, train, test, settings)
    row.seconds.append(round(time.perf_counter() - started, 1))
    row.accuracies.append(evaluate(model, test)[1])
    row.seeds.append(settings.seed)


def conditions(train: ImageDataset, test: ImageDataset, settings: TrainingSettings) -> dict[str, object]:
    """All that accuracies depend on, but the seed; as JSON gives it back."""
    known = {
        "benchmark": "broken_vit",
        "device": f"{settings.device}, {torch.get_num_threads()} thread(s)",
        "torch": torch.__version__,
        "data": {"name": train.name, "train_images": len(train), "test_images": len(test)},
        "model": asdict(CONFIG),
        "settings": {name: value for name, value in asdict(settings).items() if name != "seed"},
    }
    return json.loads(json.dumps(known))


def load(path: Path, known: dict[str, object]) -> list[Row]:
    """The rows of an earlier run under the same conditions, which is gone on with; or empty rows."""
    rows = {name: Row(name) for name in VARIANTS}
    if path.exists():
        result = json.loads(path.read_text())
        if known.items() <= result.items():
            rows |= {row["name"]: Row(**row) for row in result["rows"]}
    return list(rows.values())


def save(path: Path, known: dict[str, object], rows: list[Row]) -> None:
    """Write everything that is needed to quote the table, or to make it again."""
    result = known | {"date": datetime.now(UTC).date().isoformat(), "rows": [asdict(row) for row in rows]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


def table(rows: list[Row]) -> str:
    """The rows as text: mean accuracy over seeds, then each seed's."""
    width = max(len(row.name) for row in rows)
    lines = [f"{'model':{width}}   mean   each seed, % of the test images right"]
    for row in rows:
        each = "  ".join(f"{accuracy:5.1%}" for accuracy in row.accuracies)
        lines.append(f"{row.name:{width}}  {mean(row.accuracies):5.1%}   {each}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="cifar10.npz")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds the right model is trained from")
    parser.add_argument("--wrong-seeds", type=int, default=3, help="how many each wrong one is trained from")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train = load_npz(arguments.data, "train").subset(slice(NUM_TRAIN))
    test = load_npz(arguments.data, "test").subset(slice(NUM_TEST)).with_statistics_of(train)
    settings = TrainingSettings(arguments.epochs, device=arguments.device)
    known = conditions(train, test, settings)
    rows = load(arguments.output, known)
    for seed in range(arguments.seeds):
        for row in rows:
            if seed in row.seeds or (seed >= arguments.wrong_seeds and row.name != "right"):
                continue
            train_variant(row, train, test, replace(settings, seed=seed))
            save(arguments.output, known, rows)
            print(f"seed {seed}  {row.name}: {row.accuracies[-1]:.1%} in {row.seconds[-1]:.0f} s", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
