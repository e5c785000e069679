"""How far a trained ViT looks, block by block: for the figure receptive_growth.

    python benchmarks/attention_distance.py --weights best.safetensors --data cifar10.npz

Takes a weights file of a run (`vit-course train cpu-coffee` writes one) and some test images; writes the mean
attention distance of every head, and how far the mixing of tokens has come after each block (rollout), to
results/attention_distance.json. Nothing is trained.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vit_course.config import ViTConfig
from vit_course.data import Batches, load_npz
from vit_course.interpret import attention_rollout, mean_attention_distance, patch_weights, record
from vit_course.training import evaluate
from vit_course.training.checkpoints import load_model
from vit_course.vit import VisionTransformer

RESULTS = Path(__file__).parent / "results" / "attention_distance.json"


def compute_attention_weights(model: VisionTransformer, images: Tensor) -> list[Tensor]:
    """The weights of every block, (images, num_heads, tokens, tokens) each."""
    with torch.inference_mode():
        stages = record(model, images)
    return [stages[f"blocks.{number}.attention.weights"] for number in range(model.config.depth)]


def find_center_patch(config: ViTConfig) -> int:
    """The number of the patch right below and beside the middle of the image."""
    rows, columns = config.grid_size
    return rows // 2 * columns + columns // 2


def trace_flow_to(patch: int, weights: list[Tensor], config: ViTConfig) -> list[list[float]]:
    """Trace what a patch's token is a mixture of after each block: shares of patches, row by row, mean over images."""
    shares = []
    for depth in range(1, len(weights) + 1):
        rollout = attention_rollout(weights[:depth])[:, None]  # (images, 1, tokens, tokens)
        row = patch_weights(rollout, config.grid_size)[:, 0, patch].mean(dim=0)  # (num_patches,)
        shares.append([round(share, 5) for share in (row / row.sum()).tolist()])
    return shares


def compute_distance_of_even_attention(config: ViTConfig) -> float:
    """Attention distance in pixels of a head that looks at all patches alike."""
    even = torch.full((1, 1, config.num_patches, config.num_patches), 1 / config.num_patches)
    return float(mean_attention_distance(even, config.grid_size, config.patch_size))


def describe_run(weights: Path) -> dict[str, Any]:
    """Which recipe the weights are of, and how many epochs it had come when they were read; empty for a lone file."""
    recipe, metrics = weights.with_name("recipe.json"), weights.with_name("metrics.jsonl")
    if not recipe.exists() or not metrics.exists():
        return {}
    return json.loads(recipe.read_text()) | {"epochs": len(metrics.read_text().splitlines())}


def measure_distances(model: VisionTransformer, images: Tensor) -> dict[str, Any]:
    """All that the figure draws."""
    config = model.config
    weights = compute_attention_weights(model, images)
    distances = [mean_attention_distance(layer, config.grid_size, config.patch_size) for layer in weights]
    patch = find_center_patch(config)
    return {
        "distances": [[round(head, 2) for head in layer.tolist()] for layer in distances],
        "everywhere_alike": round(compute_distance_of_even_attention(config), 2),
        "patch": patch,
        "flow": trace_flow_to(patch, weights, config),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True, help="a .safetensors file that save_model wrote")
    parser.add_argument("--data", type=Path, required=True, help="cifar10.npz")
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    saved = load_model(arguments.weights)
    test = replace(load_npz(arguments.data, "test").subset(slice(arguments.images)), mean=saved.mean, std=saved.std)
    model = saved.model
    (images, _), *_ = Batches(test, len(test))
    report = {
        "benchmark": "attention_distance",
        "date": datetime.now(UTC).date().isoformat(),
        "images": len(test),
        "run": describe_run(arguments.weights),
        "accuracy": evaluate(model, Batches(test, 250), "cpu")[1],
        "model": asdict(saved.config),
        **measure_distances(model, images),
    }
    arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for number, layer in enumerate(report["distances"], start=1):
        print(f"block {number}: heads look {', '.join(f'{head:.1f}' for head in layer)} pixels far")
    print(f"a head that looks everywhere alike: {report['everywhere_alike']:.1f}")


if __name__ == "__main__":
    main()
