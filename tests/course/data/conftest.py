"""Small stand-ins for the published sets: torchvision's own code fetches, checks and reads them from files."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vit_course.data import ImageDataset
from vit_course.data.torchvision_sets import PUBLISHED

COUNTS = {"train": 12, "t10k": 5}


def make_generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_numbered_dataset(count: int = 23) -> ImageDataset:
    """Every image is filled with its own number, which is its label too."""
    images = torch.arange(count, dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 4, 4)
    return ImageDataset(images.contiguous(), torch.arange(count), tuple(map(str, range(count))), "numbered")


def compute_md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def encode_idx(array: np.ndarray) -> bytes:
    """The MNIST file format: two zeros, 8 for uint8, the number of axes, their lengths, the bytes."""
    lengths = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return bytes([0, 0, 8, array.ndim]) + lengths + array.astype(np.uint8).tobytes()


def write_mnist(folder: Path) -> list[tuple[str, str]]:
    """Four packed files with their checksums, as torchvision lists them."""
    rng = np.random.default_rng(0)
    resources = []
    for split, count in COUNTS.items():
        arrays = {"images-idx3": rng.integers(0, 256, (count, 28, 28)), "labels-idx1": np.arange(count) % 10}
        for kind, array in arrays.items():
            path = folder / f"{split}-{kind}-ubyte.gz"
            path.write_bytes(gzip.compress(encode_idx(array)))
            resources.append((path.name, compute_md5(path)))
    return resources


def write_cifar(folder: Path, base: str, archive: str, label_key: str, name_key: str) -> dict[str, str]:
    """An archive of pickled batches; returns the checksum of each file, and of the archive under its name."""
    rng = np.random.default_rng(1)
    inside = folder / base
    inside.mkdir()
    for name, count in (("first", 7), ("second", 5), ("last", 4)):
        batch = {"data": rng.integers(0, 256, (count, 3072), dtype=np.uint8), label_key: [i % 3 for i in range(count)]}
        (inside / name).write_bytes(pickle.dumps(batch))
    (inside / "meta").write_bytes(pickle.dumps({name_key: ["cat", "dog", "owl"]}))
    with tarfile.open(folder / archive, "w:gz") as packed:
        packed.add(inside, base)
    return {path.name: compute_md5(path) for path in (*inside.iterdir(), folder / archive)}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *message: object) -> None:
        pass


@pytest.fixture
def served_folder(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address under which this computer serves it."""
    folder = tmp_path.with_name(f"{tmp_path.name}-mirror")
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def download_mirror(served_folder: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which torchvision downloads tiny sets with right checksums, in place of the internet's."""
    from torchvision import datasets

    folder, address = served_folder
    resources = write_mnist(folder)
    for published in (getattr(datasets, each.title) for each in PUBLISHED.values()):
        if issubclass(published, datasets.MNIST):
            monkeypatch.setattr(published, "mirrors", [address])
            monkeypatch.setattr(published, "resources", resources)
            continue
        label_key = "fine_labels" if published is datasets.CIFAR100 else "labels"
        base, archive, name_key = published.base_folder, published.filename, published.meta["key"]
        sums = write_cifar(folder, base, archive, label_key, name_key)
        monkeypatch.setattr(published, "url", f"{address}{archive}")
        monkeypatch.setattr(published, "tgz_md5", sums[archive])
        monkeypatch.setattr(published, "train_list", [[name, sums[name]] for name in ("first", "second")])
        monkeypatch.setattr(published, "test_list", [["last", sums["last"]]])
        monkeypatch.setattr(published, "meta", {"filename": "meta", "key": name_key, "md5": sums["meta"]})
    return folder


@pytest.fixture
def break_downloads(download_mirror: Path) -> None:
    """Nothing can be downloaded."""
    for path in download_mirror.glob("*.gz"):
        path.unlink()


SavePicture = Callable[..., Path]


@pytest.fixture
def save_picture() -> SavePicture:
    """Write an image file of one color, making its folders."""

    def save(path: Path, color: object = (10, 20, 30), size: tuple[int, int] = (8, 8), mode: str = "RGB") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode, (size[1], size[0]), color).save(path)  # PIL says (width, height)
        return path

    return save


@pytest.fixture
def pets_folder(tmp_path: Path, save_picture: SavePicture) -> Path:
    """Class folders: 3 cats and 2 dogs to train with, 1 and 1 to test with; the red value numbers them."""
    root = tmp_path / "pets"
    to_train = ("train/cat/a.png", "train/cat/b.JPG", "train/cat/c.png", "train/dog/a.png", "train/dog/b.jpeg")
    for number, place in enumerate((*to_train, "test/cat/x.png", "test/dog/x.png")):
        save_picture(root / place, (20 * number, 100, 200))
    return root
