"""Make vit_course/weights/vit_cifar10.safetensors from a run of the recipe cpu-course, and measure it.

    python benchmarks/trained_model.py runs/cpu-course-seed0 --data cifar10.npz

Writes the weights as float16 with the classes and statistics that the run's file has. Prints size, SHA-256 (for
vit_course/trained.py) and accuracy on the test images.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import replace
from pathlib import Path

from vit_course.data import Batches, load_npz
from vit_course.trained import WEIGHTS
from vit_course.training import evaluate, load_model, save_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the run's folder, which holds best.safetensors")
    parser.add_argument("--data", type=Path, required=True, help="cifar10.npz")
    parser.add_argument("--output", type=Path, default=WEIGHTS)
    arguments = parser.parse_args()
    saved = load_model(arguments.run / "best.safetensors")
    test = replace(load_npz(arguments.data, "test"), mean=saved.mean, std=saved.std)
    full = evaluate(saved.model, Batches(test, 500), "cpu")[1]
    arguments.output.parent.mkdir(exist_ok=True)
    save_model(arguments.output, saved.model.half(), replace(test, name=saved.dataset_name))
    half = evaluate(load_model(arguments.output).model, Batches(test, 500), "cpu")[1]
    digest = hashlib.sha256(arguments.output.read_bytes()).hexdigest()
    print(f"{sum(each.numel() for each in saved.model.parameters()):,} parameters")
    print(f"{arguments.output}: {arguments.output.stat().st_size:,} bytes, SHA-256 {digest}")
    print(f"test images right: {full:.2%}, with the weights of the file {half:.2%}")


if __name__ == "__main__":
    main()
