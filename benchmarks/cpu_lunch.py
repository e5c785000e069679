"""What `cpu-lunch` could be: other sizes and rates, in about its seconds of a CPU, or on a GPU for their accuracy.

    python benchmarks/cpu_lunch.py wide slower --seeds 0 1 2 --data DIR                 # hours of one core each
    python benchmarks/cpu_lunch.py wide --seeds 0 --data DIR --device cuda              # a minute or so

A run writes results/cpu_lunch/NAME-SEED.json, on a GPU NAME-SEED-cuda.json, and is not run again where that is. One
that was stopped goes on. A GPU computes as a CPU does, in bfloat16 from end to end, and each step is a CUDA graph.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from vit_course.recipes import RECIPES, Recipe
from vit_course.recipes.result import write_result
from vit_course.recipes.run import RunOptions, train_recipe
from vit_course.training import trainer
from vit_course.training.hardware import InBfloat16

RESULTS = Path(__file__).parent / "results" / "cpu_lunch"


def make_variant(epochs: int, config: Mapping[str, Any] | None = None, **settings: Any) -> Recipe:
    """`cpu-lunch` with other choices."""
    lunch = RECIPES["cpu-lunch"]
    return replace(
        lunch,
        config=replace(lunch.config, **(config or {})),
        settings=replace(lunch.settings, epochs=epochs, **settings),
    )


FASTER = {"learning_rate": 4e-3, "muon_learning_rate": 0.007}  # the rates of cpu-coffee, whose runs are short
CLASS_TOKEN = {"pooling": "class_token"}
# 39 epochs of 128 numbers a token take as long as 59 of 96, whose step took 0.66 times as long in float32 with AVX2
VARIANTS = {
    "faster": make_variant(59, **FASTER),
    "slower": make_variant(59, learning_rate=2e-3, muon_learning_rate=0.0035),
    "class-token": make_variant(58, CLASS_TOKEN),
    "class-token-faster": make_variant(66, CLASS_TOKEN, **FASTER),
    "wide": make_variant(39, {"embed_dim": 128}),
    "wide-class-token-faster": make_variant(38, {"embed_dim": 128, **CLASS_TOKEN}, **FASTER),
    "deep": make_variant(41, {"depth": 6}),
    "heads-3": make_variant(59, {"num_heads": 3}),
    "unsmoothed": make_variant(59, label_smoothing=0.0),
    "average": make_variant(59, ema_decay=0.999),
}


def compute_on_gpu_as_on_cpu() -> None:
    """Let every training of this process use bfloat16 from end to end, and graphs of steps that nobody compiles."""
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    trainer.wrap_in_precision = lambda model, precision, device: InBfloat16(model)
    trainer.autocast = lambda precision, device: contextlib.nullcontext()


def train_variant(name: str, seed: int, data: Path | None, device: str, runs: Path) -> None:
    """Train once, unless there is a log."""
    on_gpu = device != "cpu"
    log = RESULTS / f"{name}-{seed}{'-cuda' if on_gpu else ''}.json"
    if log.exists():
        return
    recipe = VARIANTS[name]
    recipe = replace(recipe, settings=replace(recipe.settings, compile=on_gpu))
    folder = runs / log.stem
    result = train_recipe(recipe, RunOptions(folder, data, seed, device=device, resume=folder.exists(), progress=False))
    if result is not None:
        write_result(log, result)
        print(f"{log.stem}: {result.test['top1']:.2%} of the test images, {result.cpu_seconds} CPU seconds", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+", choices=VARIANTS, metavar="VARIANT", help=", ".join(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--data", type=Path, help="where CIFAR-10 is; by default it is downloaded")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--runs", type=Path, default=Path(tempfile.gettempdir()) / "vit_course_lunches")
    parser.add_argument("--threads", type=int, default=1, help="1, so that seconds are those of one core")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.device == "cuda":
        compute_on_gpu_as_on_cpu()
    for name in options.variants:
        for seed in options.seeds:
            train_variant(name, seed, options.data, options.device, options.runs)


if __name__ == "__main__":
    main()
