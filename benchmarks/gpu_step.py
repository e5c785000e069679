"""One step of `gpu-minute` on a GPU: by Python and as one CUDA graph; and RandAugment of a batch in a graph.

    python benchmarks/gpu_step.py OUT.json [cuda]

Shapes stand in for CIFAR-10: a step takes as long with any image.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from vit_course.data import shapes
from vit_course.data.randaugment import randaugment
from vit_course.recipes import RECIPES
from vit_course.training.feeding import make_feed
from vit_course.training.graph import Replayed, make_recorder
from vit_course.training.hardware import Processes
from vit_course.training.trainer import Trainer

REPEATS = 50


def measure_milliseconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Of one repeat, everything queued waited for, once what is recorded has been."""

    def wait_for_gpu() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(5):
        work()
    wait_for_gpu()
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    wait_for_gpu()
    return round((time.perf_counter() - started) / repeats * 1e3, 3)


def main() -> None:
    output, device, tiny = Path(sys.argv[1]), torch.device(sys.argv[2]), "tiny" in sys.argv
    processes, recipe = Processes(device), RECIPES["gpu-minute"]
    batch, repeats = (8, 2) if tiny else (recipe.settings.batch_size, REPEATS)
    settings = replace(recipe.settings, batch_size=batch, device=device.type, compile=device.type == "cuda")
    images = shapes(batch, image_size=32)
    torch.manual_seed(0)
    config = replace(recipe.config, depth=1) if tiny else recipe.config
    trainer = Trainer(recipe.build(config), make_feed(images, images, settings, processes), settings, processes, None)
    trainer.network.train()
    if trainer.fusible is not None:
        trainer.fusible.compile_or_leave(processes, trainer._compile_every_batch_size)
    chosen = torch.arange(batch, device=device)

    def make_training_step(run: Callable[..., torch.Tensor]) -> Callable[[], None]:
        def take_training_step() -> None:
            trainer.updates.begin_step()
            run(batch, chosen)

        return take_training_step

    found = {"device": torch.cuda.get_device_name() if device.type == "cuda" else "CPU", "torch": torch.__version__}
    found["step of gpu-minute by Python"] = measure_milliseconds(
        make_training_step(trainer._take_training_step), device, repeats
    )
    found["step of gpu-minute as a graph"] = measure_milliseconds(make_training_step(trainer.learn), device, repeats)
    pixels = images.to(device).images
    recorder = make_recorder(processes)
    draws = torch.Generator(device) if recorder is None else recorder.draws

    def augment_images(size: int, pixels: torch.Tensor) -> torch.Tensor:
        return randaugment(pixels, draws)

    augment = augment_images if recorder is None else Replayed(augment_images, recorder)
    found["RandAugment in the graph"] = measure_milliseconds(lambda: augment(batch, pixels), device, repeats)
    output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
