"""What the plain roads share: lessons, what is handed in, commands, and one line for each thing that is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exercise_kit.engine.probes import Probe
from vit_course.exercises.l07_experiments import model_accuracy

ROOT = Path(__file__).parents[2]
WEIGHTS = "vit_cifar.safetensors"  # what lesson 07 asks for beside the notebook
NOTHING_DONE = {"not-written", "no-file"}


def write_weights_file(folder: Path) -> None:
    """Write a model for lesson 07 that is right on every image of :func:`write_data_folder`."""
    content, _ = model_accuracy.vit_cifar()
    assert isinstance(content, bytes)
    (folder / WEIGHTS).write_bytes(content)


def write_data_folder(folder: Path) -> Path:
    """Write a small `cifar10.npz`, for lesson 07 to be measured with; give its folder."""
    folder.mkdir()
    images = model_accuracy.label_by_reference(model_accuracy.draw_colored_squares(Probe(3), 400))
    pixels, labels = images.images.permute(0, 2, 3, 1).numpy(), images.labels.numpy()
    np.savez(folder / "cifar10.npz", test_images=pixels, test_labels=labels, classes=np.array(images.classes))
    return folder


def run_python(command: list[object], folder: Path, data: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python command as a user does, with caches and settings of its own.

    Args:
        command: what follows ``python``.
        folder: where it is run; its caches lie beside it.
        data: the folder with the test images.
    """
    scripts = str(Path(sys.executable).parent)  # nbgrader calls alembic by its bare name
    homes = {f"XDG_{kind}_HOME": str(folder.parent / kind.lower()) for kind in ("CONFIG", "CACHE")}
    environment = {
        **os.environ,
        **homes,
        "VIT_COURSE_DATA": str(data),
        "PATH": os.pathsep.join([scripts, os.environ["PATH"]]),
    }
    words = [sys.executable, *map(str, command)]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def iterate_wrong_points(road: str, entry: Mapping[str, Any], worth: Mapping[str, float]) -> Iterator[str]:
    """A line for each exercise of a graded submission that has other points than these."""
    where = f"{road}: {entry['assignment'] or entry['path']}"
    if entry["status"] != "graded":
        yield f"{where}: {entry['status']}: {entry['reason']}"
        return
    found = {each["name"]: each for each in entry["exercises"]}
    for name in sorted(worth.keys() - found.keys()):
        yield f"{where}: {name}: it is not in the result"
    for name, points in worth.items():
        if name in found and found[name]["score"] != points:
            why = found[name]["problem"] or next(
                (each["message"] for each in found[name]["checks"] if each["message"]), ""
            )
            yield f"{where}: {name}: {found[name]['score']:g} points, not {points:g}: {why} {entry['reason'] or ''}"


def fail_with_lines(lines: Iterable[str]) -> None:
    """Fail with these lines, and nothing else to read, where there is any."""
    if found := list(lines):
        pytest.fail("\n".join(found), pytrace=False)
