"""What a machine with a GPU and no network needs to run benchmarks/on_gpu.py: put together here, read there.

The tree, the packages that such a machine lacks, a class of simulated students, and CIFAR-10, pixel for pixel: 110 MB
in numbered folders of at most 45 MB, which is what travels at a time beside the tree. There all go into one folder.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

MOST_BYTES = 45_000_000
ROOT = Path(__file__).resolve().parents[1]
LACKING = ("ipython", "torchinfo", "vit-pytorch", "einops")
# what the machine has; what these need is there as well
THERE = (
    "torch",
    "torchvision",
    "numpy",
    "matplotlib",
    "safetensors",
    "scikit-learn",
    "tqdm",
    "rich",
    "typer",
    "pytest",
)
LEFT_OUT = ("figures/", "docs/", "benchmarks/results/recipes/")
SHEET = 40  # images along each side of a sheet


def make_pack(folder: Path, dataset: str, data: Path | None, students: int, lessons: Sequence[str] = ()) -> int:
    """Write the pack; its size in bytes.

    Args:
        folder: made anew.
        dataset: name of a data set, see `vit_course.data.load_dataset`.
        data: where it is.
        students, lessons: of the simulated class; no lesson stands for all.

    Raises:
        SystemExit: when a file of it is too large to travel.
    """
    from vit_course.data import load_dataset

    folder.mkdir(parents=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tarfile.open(folder / "tree.tar.gz", "w:gz") as packed:
        for name in filter(None, tracked.split("\0")):
            if not name.startswith(LEFT_OUT):
                packed.add(ROOT / name, f"tree/{name}")
        for name in list_required_packages(LACKING):
            add_package(packed, name)
        add_simulated_class(packed, folder / "class", students, lessons)
    train, test = load_dataset(dataset, data)
    facts = {"name": dataset, "classes": train.classes}
    for split, images in (("train", train), ("test", test)):
        facts[split] = images.labels.tolist()
        write_image_sheets(folder / split, images.images.permute(0, 2, 3, 1).numpy())
    (folder / "data.json").write_text(json.dumps(facts))
    return divide_into_parts(folder)


def divide_into_parts(folder: Path) -> int:
    """Move all files into numbered folders that can travel each by itself; how many bytes there are in all."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    sizes = {each: each.stat().st_size for each in files}
    part, room = 0, 0
    for each in files:
        if sizes[each] > MOST_BYTES:
            raise SystemExit(f"{each} has {sizes[each] / 1e6:.1f} MB, and {MOST_BYTES / 1e6:.0f} MB travel at a time")
        if sizes[each] > room:
            part, room = part + 1, MOST_BYTES
        room -= sizes[each]
        (folder / str(part)).mkdir(exist_ok=True)
        each.rename(folder / str(part) / each.name)
    for emptied in ("train", "test"):
        (folder / emptied).rmdir()
    return sum(sizes.values())


def list_required_packages(names: tuple[str, ...]) -> list[str]:
    """The installed packages of these names and all that they need, but for what is there and for compiled ones."""
    found: list[str] = []
    left = list(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found or name in THERE:
            continue
        try:
            needs = importlib.metadata.requires(name) or []
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system
        if any(str(each).endswith(".so") for each in files):
            continue
        found.append(name)
        left += [each[0] for need in needs if "extra ==" not in need and (each := re.match(r"[\w.-]+", need))]
    return sorted(found)


def add_package(packed: tarfile.TarFile, name: str) -> None:
    """Add a package's modules and its metadata."""
    for each in importlib.metadata.files(name) or []:
        if each.parts[0] != ".." and each.suffix != ".pyc" and "jedi/third_party" not in str(each):
            packed.add(each.locate(), f"site/{each}")


def add_simulated_class(packed: tarfile.TarFile, folder: Path, students: int, lessons: Sequence[str]) -> None:
    """Simulate a class, and add what its students handed in beside the truth."""
    command = [sys.executable, "-m", "vit_course", "simulate", str(folder), "--students", str(students), "--seed", "1"]
    command += [part for lesson in lessons for part in ("--lesson", lesson)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    packed.add(folder / "submitted", "class/submitted")
    packed.add(folder / "truth.json", "class/truth.json")
    shutil.rmtree(folder)


def write_image_sheets(folder: Path, images: np.ndarray) -> None:
    """Images (count, height, width, 3) uint8 side by side on sheets, as WebP without loss: nothing else is smaller."""
    folder.mkdir()
    count, height, width, _ = images.shape
    for number, first in enumerate(range(0, count, SHEET * SHEET)):
        part = images[first : first + SHEET * SHEET]
        whole = np.zeros((SHEET * SHEET, height, width, 3), np.uint8)
        whole[: len(part)] = part
        sheet = whole.reshape(SHEET, SHEET, height, width, 3).swapaxes(1, 2).reshape(SHEET * height, SHEET * width, 3)
        Image.fromarray(sheet).save(folder / f"{folder.name}-{number:03}.webp", lossless=True, quality=100, method=4)


def read_image_sheets(paths: Sequence[Path], count: int) -> np.ndarray:
    """Return what `write_image_sheets` wrote: (count, height, width, 3) uint8."""
    parts = []
    for path in paths:
        sheet = np.asarray(Image.open(path).convert("RGB"))
        height, width = (length // SHEET for length in sheet.shape[:2])
        tiles = sheet.reshape(SHEET, height, SHEET, width, 3).swapaxes(1, 2)
        parts.append(tiles.reshape(SHEET * SHEET, height, width, 3))
    return np.concatenate(parts)[:count]


def unpack(pack: Path, folder: Path) -> None:
    """Lay out a pack: tree/, site/, class/ and the images as an .npz that `vit-course train --data` reads."""
    with tarfile.open(pack / "tree.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    facts = json.loads((pack / "data.json").read_text())
    arrays = {"classes": np.array(facts["classes"])}
    for split in ("train", "test"):
        labels = np.array(facts[split], np.int64)
        images = read_image_sheets(sorted(pack.glob(f"{split}-*.webp")), len(labels))
        arrays |= {f"{split}_images": images, f"{split}_labels": labels}
    np.savez(folder / f"{facts['name']}.npz", **arrays)
