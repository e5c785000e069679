"""What each choice of `cpu-coffee` is worth: CIFAR-10 on one core of a CPU, about as many of its seconds for each.

    python benchmarks/cpu_race.py RACER ... --seeds 0 1 --data DIR    # no racer: all of them, which takes a night
    python benchmarks/cpu_race.py --table

A racer is the recipe, started at random and half as long, with one choice changed and as many epochs as fit into the
same seconds. It is judged by the 5,000 images held back; the test images are not looked at. Libraries' models train
with AdamW as is usual, through the same `fit`. On another machine the recipe races first, and `--slower` says how many
times as long it took: table and figure have the first machine's seconds. A run writes results/cpu_race/RACER-SEED.json,
and is not run again where that is; all of them make results/cpu_race.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import unittest.mock
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import scipy.stats
import torch
from peers import PEERS
from torch import nn

from vit_course.config import ViTConfig
from vit_course.data import Augmentation, Batches, ImageDataset
from vit_course.patches import patchify, unpatchify
from vit_course.recipes import RECIPES
from vit_course.recipes.images import load_images, split_validation
from vit_course.training import TrainingSettings, feeding, fit
from vit_course.training.growing import resize_positions_for

RESULTS = Path(__file__).parent / "results" / "cpu_race"
RECIPE = replace(RECIPES["cpu-coffee"], mimetic=False, whitened=False)  # as it was when the race began
HALF = replace(RECIPE.settings, epochs=8)
# what examples of these libraries train small ViTs with
USUAL = TrainingSettings(
    epochs=3,
    learning_rate=1e-3,
    label_smoothing=0.1,
    augmentation=Augmentation(max_shift=4, flip=True),
)


@dataclass(frozen=True)
class Racer:
    """A model and how it is trained; `says` stands in the table, and what `make` takes counts in the seconds."""

    says: str
    settings: TrainingSettings
    config: ViTConfig = RECIPE.config
    make: Callable[[ViTConfig, ImageDataset], nn.Module] = RECIPE.build
    batches: type[Batches] = Batches


def _make_racer(says: str, config: dict[str, Any] | None = None, **settings: Any) -> Racer:
    return Racer(says, replace(HALF, **settings), replace(RECIPE.config, **(config or {})))


def drop_half_of_tokens(model: nn.Module, steps: int) -> nn.Module:
    """Let so many training steps see a random half of each image's tokens, as Fast Language-Image Pre-training does."""
    left = iter(range(steps))

    def keep_random_half(blocks: nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor | None:
        (tokens,) = inputs  # (batch, tokens, embed_dim)
        if not blocks.training or next(left, None) is None:
            return None
        kept = torch.rand(tokens.shape[:2]).argsort(dim=1)[:, : tokens.shape[1] // 2, None]
        return tokens.gather(1, kept.expand(-1, -1, tokens.shape[2]))

    model.get_submodule("blocks").register_forward_pre_hook(keep_random_half)
    return model


class EachTwice(Batches):
    """Training batches of half as many images, each in it twice, changed in two ways; Hoffer et al. 2019, section 3."""

    def choices(self, generator: torch.Generator) -> Iterator[tuple[torch.Tensor, ...]]:
        """Half of the images in each pass, which has as many batches as before."""
        whole = super().choices(generator)
        return ((each[: len(each) // 2].repeat(2),) for (each,) in whole) if self.shuffle else whole


def learn_from_large_patches(config: ViTConfig, train: ImageDataset, epochs: int) -> nn.Module:
    """Train so long with patches twice as wide, and hand the weights on to a model with the smaller ones.

    The embedding of a small patch is that of the patch made twice as wide, as FlexiViT resizes it (Beyer et al. 2022).
    """
    coarse = RECIPE.build(replace(config, patch_size=2 * config.patch_size), train)
    fine = RECIPE.build(config, train)
    settings = replace(HALF, epochs=epochs, growth=(), seed=torch.initial_seed())
    fit(coarse, train, train.subset(slice(1000)), settings, progress=False)
    size, channels = config.patch_size, config.in_channels
    pixels = torch.eye(channels * size**2)[:, None]  # small patches with one pixel lit each
    lit = unpatchify(pixels, size, (size, size))
    large = patchify(nn.functional.interpolate(lit, scale_factor=2.0, mode="bilinear"), 2 * size)[:, 0]
    weights = coarse.state_dict()
    weights["patch_embedding.projection.weight"] = weights["patch_embedding.projection.weight"] @ large.T
    weights["positions"] = resize_positions_for(fine, weights["positions"], coarse)
    fine.load_state_dict(weights)
    return fine


RACERS = {
    "recipe": _make_racer("started at random, 8 epochs"),
    "before": _make_racer(
        "as `cpu-coffee` was before: also float32, images whole and not shifted",
        growth=(),
        precision="fp32",
        augmentation=Augmentation(flip=True),
        epochs=4,
    ),
    "equal": _make_racer("started at random, as many seconds as that", epochs=11),
    "whole": _make_racer("whole images from the start", growth=(), epochs=4),
    "dropped": Racer(
        "half of the tokens dropped at random until the last fifth, images whole",
        replace(HALF, growth=(), epochs=7),
        make=lambda config, train: drop_half_of_tokens(
            RECIPE.build(config), round(0.8 * 7 * len(train) / HALF.batch_size)
        ),
    ),
    "class-token": _make_racer("a class token in the place of the mean", {"pooling": "class_token"}),
    "unshifted": _make_racer("images flipped, but not shifted", augmentation=Augmentation(flip=True)),
    "erased": _make_racer("a square of 8 pixels erased as well", augmentation=replace(HALF.augmentation, erase=8)),
    "adamw": _make_racer("AdamW alone, at a smaller rate", muon_learning_rate=None, learning_rate=2e-3),
    "unsmoothed": _make_racer("no label smoothing", label_smoothing=0.0),
    "average": _make_racer("a moving average of the weights", ema_decay=0.998),
    "half-rates": _make_racer(
        "half of each learning rate",
        learning_rate=HALF.learning_rate / 2,
        muon_learning_rate=(HALF.muon_learning_rate or 0) / 2,
    ),
    "repeated": replace(_make_racer("each image twice in a batch"), batches=EachTwice),
    "batch-128": _make_racer(
        "128 images a step, at larger rates", batch_size=128, learning_rate=5e-3, muon_learning_rate=0.01
    ),
    "wide": _make_racer("128 numbers a token", {"embed_dim": 128}, epochs=6),
    "deep": _make_racer("six blocks", {"depth": 6}, epochs=5),
    "shallow": _make_racer("three blocks", {"depth": 3}, epochs=11),
    "patch-8": _make_racer("patches of 8 x 8 pixels, images whole", {"patch_size": 8}, growth=(), epochs=15),
    "shrinking-patches": Racer(
        "patches of 8 x 8 pixels first, then of 4 x 4, images whole",
        replace(HALF, growth=(), epochs=3),
        make=lambda config, train: learn_from_large_patches(config, train, epochs=5),
    ),
    "mimetic": Racer("attention and positions start as if trained", HALF, make=replace(RECIPE, mimetic=True).build),
    "whitened": Racer(
        "so, and the embedding whitens patches: `cpu-coffee` as it is",
        HALF,
        make=replace(RECIPE, mimetic=True, whitened=True).build,
    ),
    "timm": Racer("timm's ViT, AdamW, float32", USUAL, make=lambda config, _: PEERS["timm"].make(config)),
    "transformers": Racer(
        "transformers' ViT, AdamW, float32", USUAL, make=lambda config, _: PEERS["transformers"].make(config)
    ),
}


def train_racer(racer: Racer, seed: int, data: Path | None, slower: float = 1.0) -> dict[str, Any]:
    """Train once, and give what a table and a figure need of it."""
    torch.set_num_threads(1)
    whole, _ = load_images(RECIPE.dataset, data)
    train, validation = split_validation(RECIPE, whole)
    torch.manual_seed(seed)
    began = time.process_time()
    model = racer.make(racer.config, train)
    making = time.process_time() - began
    with unittest.mock.patch.object(feeding, "Batches", racer.batches):
        history = fit(model, train, validation, replace(racer.settings, seed=seed), progress=False)
    return {
        "racer": racer.says,
        "seed": seed,
        "parameters": sum(each.numel() for each in model.parameters()),
        "torch": torch.__version__,
        "slower": slower,
        "cpu_seconds_of_making": round(making, 1),
        "cpu_seconds": [round(each, 1) for each in history.cpu_seconds],
        "validation_accuracy": [round(each, 4) for each in history.validation_accuracy],
    }


def read_races() -> dict[str, list[dict[str, Any]]]:
    """The logs of each racer, by its name."""
    logs = {name: sorted(RESULTS.glob(f"{name}-[0-9]*.json")) for name in RACERS}
    return {name: [json.loads(path.read_text(encoding="utf-8")) for path in paths] for name, paths in logs.items()}


def compare_with_recipe(races: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Set each racer beside the recipe: how far apart they end, and half the 95 % interval of that.

    The interval takes one standard deviation for all, pooled over the seeds of each racer: few have more than two.
    """
    reached = {name: [log["validation_accuracy"][-1] for log in logs] for name, logs in races.items() if logs}
    freedom = sum(len(each) - 1 for each in reached.values())
    squares = sum((value - statistics.mean(each)) ** 2 for each in reached.values() for value in each)
    spread = float(scipy.stats.t.ppf(0.975, freedom)) * (squares / freedom) ** 0.5
    base = reached["recipe"]
    return [
        {
            "racer": RACERS[name].says,
            "seeds": len(each),
            "on_slower_machine": all(log.get("slower", 1) > 1 for log in races[name]),
            "epochs": len(races[name][0]["cpu_seconds"]),
            "cpu_seconds": round(statistics.mean(map(_sum_seconds, races[name]))),
            "accuracy": round(statistics.mean(each), 4),
            "difference": round(statistics.mean(each) - statistics.mean(base), 4),
            "half_interval": round(spread * (1 / len(each) + 1 / len(base)) ** 0.5, 4),
        }
        for name, each in reached.items()
    ]


def _sum_seconds(log: dict[str, Any]) -> float:
    return float((sum(log["cpu_seconds"]) + log.get("cpu_seconds_of_making", 0)) / log.get("slower", 1))


def write_table(parser: argparse.ArgumentParser) -> None:
    races = read_races()
    if not races["recipe"] or all(len(logs) < 2 for logs in races.values()):
        parser.error("a table takes runs of the recipe, and one racer with two seeds")
    rows = compare_with_recipe(races)
    RESULTS.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print(
            f"{row['racer']:56} {row['seeds']} seeds {row['cpu_seconds']:5} s  {row['accuracy']:.2%}  "
            f"{100 * row['difference']:+.1f} ± {100 * row['half_interval']:.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("racers", nargs="*", help=", ".join(RACERS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--data", type=Path, help="where CIFAR-10 is; by default it is downloaded")
    parser.add_argument("--slower", type=float, default=1.0, help="times as long as on the first machine; 1")
    parser.add_argument("--table", action="store_true", help="train nothing, compare what there is")
    options = parser.parse_args()
    if unknown := [name for name in options.racers if name not in RACERS]:
        parser.error(f"there is no racer {', '.join(unknown)}; there are {', '.join(RACERS)}")
    for name in [] if options.table else options.racers or RACERS:
        for seed in options.seeds:
            path = RESULTS / f"{name}-{seed}.json"
            if not path.exists():
                log = train_racer(RACERS[name], seed, options.data, options.slower)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(log, indent=1) + "\n", encoding="utf-8")
    if options.table:
        write_table(parser)


if __name__ == "__main__":
    main()
