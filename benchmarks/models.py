"""Our ViT beside timm's, torchvision's, transformers' and vit-pytorch's: images per second, one run, in turns.

    python benchmarks/models.py                      # one thread of the CPU, float32
    python benchmarks/models.py --device cuda        # float32, bf16, and bf16 compiled

Forward alone (evaluation, no gradient) and forward with backward (training), at the same sizes. Each round gives
a ratio; the table shows medians and quartiles, and which share of the rate of a matrix product of the same
dtype our model reaches. Writes results/models_cpu.json or results/models_cuda.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from peers import OURS, build_models
from timing import Stopwatch, Work, compute_time_ratios, describe_machine, measure_matmul_rate, time_in_turns
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from vit_course.config import ViTConfig

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Size:
    """A model, and how many images at a time."""

    config: ViTConfig
    cpu_batch: int
    gpu_batch: int

    def choose_batch_size(self, device: str) -> int:
        return self.cpu_batch if device == "cpu" else self.gpu_batch


SIZES = {
    "ViT-Ti/16, 224 pixels": Size(ViTConfig(224, 16, embed_dim=192, depth=12, num_heads=3, num_classes=1000), 8, 512),
    "dim 192, depth 6, patch 4, 32 pixels": Size(ViTConfig(32, 4, embed_dim=192, depth=6, num_heads=3), 64, 2048),
}


@dataclass(frozen=True)
class Mode:
    """How the models run: the dtype of their products, and whether torch compiles them."""

    dtype: torch.dtype
    compiled: bool = False

    @property
    def name(self) -> str:
        return str(self.dtype).removeprefix("torch.") + (", compiled" if self.compiled else "")


MODES = {
    "cpu": [Mode(torch.float32)],
    "cuda": [Mode(torch.float32), Mode(torch.bfloat16), Mode(torch.bfloat16, compiled=True)],
}


def make_forward_work(model: Callable[[Tensor], Tensor], images: Tensor, dtype: torch.dtype) -> Work:
    """Logits for evaluation."""

    def run_forward() -> None:
        with torch.inference_mode(), _autocast(images, dtype):
            model(images)

    return run_forward


def make_backward_work(model: nn.Module, run: Callable[[Tensor], Tensor], images: Tensor, dtype: torch.dtype) -> Work:
    """Logits, loss and every gradient, as in a step of training."""
    labels = torch.arange(len(images), device=images.device) % 10

    def run_forward_and_backward() -> None:
        model.zero_grad(set_to_none=True)
        with _autocast(images, dtype):
            loss = F.cross_entropy(run(images), labels)
        loss.backward()

    return run_forward_and_backward


def _autocast(images: Tensor, dtype: torch.dtype) -> torch.autocast:
    return torch.autocast(images.device.type, dtype, enabled=dtype != torch.float32)


def count_flops(model: nn.Module, images: Tensor) -> dict[str, float]:
    """FLOP for one image, forward and forward with backward, as torch counts the matrix products."""
    one = images[:1]
    with sdpa_kernel(SDPBackend.MATH):  # whose two products the counter knows on every device
        with FlopCounterMode(display=False) as ahead:
            logits = model(one)
            there = ahead.get_total_flops()
            logits.sum().backward()
        return {"forward": there, "forward + backward": ahead.get_total_flops()}


def measure_models(size: Size, mode: Mode, device: str, rounds: int, seconds: float) -> dict[str, Any]:
    """One size in one mode: images per second and ratios, forward and forward with backward."""
    torch.manual_seed(0)
    config, batch = size.config, size.choose_batch_size(device)
    made, facts = build_models(config, device)
    images = torch.randn(batch, config.in_channels, config.height, config.width, device=device)
    counted = count_flops(made[OURS], images)
    stopwatch = Stopwatch(device, seconds)
    runs = {name: torch.compile(model) if mode.compiled else model for name, model in made.items()}
    for model in made.values():
        model.eval()  # nothing here has dropout, so it is the same arithmetic
    peak = measure_matmul_rate(device, mode.dtype, stopwatch)
    report: dict[str, Any] = {"batch": batch, "models": facts, "gemm_gflops": round(peak / 1e9, 1)}
    works = {
        "forward": {name: make_forward_work(run, images, mode.dtype) for name, run in runs.items()},
        "forward + backward": {
            name: make_backward_work(made[name], run, images, mode.dtype) for name, run in runs.items()
        },
    }
    for what, each in works.items():
        taken = time_in_turns(each, rounds, stopwatch)
        rate = {name: batch / median(seconds_each) for name, seconds_each in taken.items()}
        report[what] = {
            "images_per_second": {name: round(value, 1) for name, value in rate.items()},
            "seconds_over_ours": compute_time_ratios(taken, OURS),
            "share_of_gemm": round(counted[what] * rate[OURS] / peak, 3),
        }
    return report


def format_table(report: Mapping[str, Any]) -> str:
    """The report as text; a ratio above 1 says that the other took longer than ours."""
    lines = []
    for size, modes in report["sizes"].items():
        for mode, measured in modes.items():
            for what in ("forward", "forward + backward"):
                part = measured[what]
                lines.append(f"{size}, batch {measured['batch']}, {mode}, {what}")
                own = part["images_per_second"][OURS]
                lines.append(f"  {OURS:14}{own:9.1f} images/s   {part['share_of_gemm']:.0%} of a matrix product's rate")
                for name, ratio in part["seconds_over_ours"].items():
                    rate, spread = part["images_per_second"][name], f"{ratio['low']:.3f} to {ratio['high']:.3f}"
                    lines.append(f"  {name:14}{rate:9.1f} images/s   {ratio['median']:.3f} of our time ({spread})")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(MODES), default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.3, help="how long one reading should take")
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    report: dict[str, Any] = {"benchmark": "models", **describe_machine(arguments.device), "rounds": arguments.rounds}
    report["sizes"] = {
        name: {
            mode.name: measure_models(size, mode, arguments.device, arguments.rounds, arguments.seconds)
            for mode in MODES[arguments.device]
        }
        for name, size in SIZES.items()
    }
    print(format_table(report))
    output = arguments.output or RESULTS / f"models_{arguments.device}.json"
    output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
