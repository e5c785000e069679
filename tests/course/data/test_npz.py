from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from vit_course.data import DatasetError, load_npz


def write_npz(path: Path, **changes: object) -> Path:
    rng = np.random.default_rng(0)
    arrays = {
        "train_images": rng.integers(0, 256, (7, 4, 5, 3), dtype=np.uint8),
        "train_labels": np.arange(7, dtype=np.uint8) % 2,
        "classes": np.array(["cat", "dog"]),
    }
    np.savez(path, **{name: array for name, array in (arrays | changes).items() if array is not None})
    return path


def test_images_become_channels_first(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "pets.npz")
    dataset = load_npz(path)
    with np.load(path) as arrays:
        assert dataset.images[2, :, 3, 1].tolist() == arrays["train_images"][2, 3, 1].tolist()
    assert dataset.labels.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert (dataset.name, dataset.classes) == ("pets", ("cat", "dog"))


def test_gray_images_get_one_channel(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "gray.npz", train_images=np.zeros((7, 4, 5), dtype=np.uint8))
    assert load_npz(path).images.shape == (7, 1, 4, 5)


def test_a_missing_file_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.npz: expected an \.npz with test_images"):
        load_npz(tmp_path / "none.npz", "test")


@pytest.mark.parametrize("keep", [0, 10, 300, -30])
def test_a_damaged_file_says_so(tmp_path: Path, keep: int) -> None:
    path = write_npz(tmp_path / "cut.npz")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DatasetError, match=r"cut\.npz is damaged or no \.npz file"):
        load_npz(path)


def test_a_flipped_byte_is_seen(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "flipped.npz")
    content = bytearray(path.read_bytes())
    content[250] ^= 255  # inside the pixels
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="is damaged"):
        load_npz(path)


def test_damage_anywhere_in_a_compressed_file_is_reported(tmp_path: Path) -> None:
    """Or it hits a byte that nobody reads: then the arrays are what they were."""
    with np.load(write_npz(tmp_path / "plain.npz")) as arrays:
        np.savez_compressed(tmp_path / "small.npz", **arrays)
    whole = load_npz(tmp_path / "small.npz")
    content, refused = (tmp_path / "small.npz").read_bytes(), 0
    for place in range(0, len(content), 5):
        changed = bytearray(content)
        changed[place] ^= 255
        (tmp_path / "small.npz").write_bytes(changed)
        try:
            dataset = load_npz(tmp_path / "small.npz")
        except DatasetError:
            refused += 1
        else:
            assert dataset.images.equal(whole.images)
            assert dataset.labels.equal(whole.labels)
    assert refused > len(content) // 10


def test_too_little_memory_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "load", Mock(side_effect=MemoryError("Unable to allocate 1 TiB")))
    with pytest.raises(MemoryError, match="1 TiB"):
        load_npz(write_npz(tmp_path / "large.npz"))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "pickle.npz", classes=np.array([{}, {}], dtype=object))
    with pytest.raises(DatasetError, match="holds Python objects, which are not read"):
        load_npz(path)
    path.write_bytes(b"\x80\x04N.")
    with pytest.raises(DatasetError, match=r"no \.npz file; make or download it again"):
        load_npz(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train_labels": np.arange(7) % 2 + 0.5}, "train_labels must be whole numbers.* float64"),
        ({"train_labels": np.full(7, np.nan)}, "train_labels must be whole numbers"),
        ({"train_labels": np.array(["cat"] * 7)}, "train_labels must be whole numbers.* <U3"),
        ({"classes": np.array("cat")}, "classes must be a list of names"),
        ({"classes": None}, "lacks classes; it holds train_images, train_labels"),
        ({"train_images": np.zeros((7, 3, 8, 8), dtype=np.uint8)}, r"channels seem to come first.*\(N, H, W, C\)"),
        ({"train_images": np.zeros((7, 4, 5, 3))}, "train_images must be uint8"),
        ({"train_images": np.zeros((7, 4), dtype=np.uint8)}, "train_images must be uint8"),
        ({"train_labels": np.zeros(6, dtype=np.uint8)}, r"odd\.npz: labels must be .*one per image"),
    ],
)
def test_arrays_of_another_kind_are_refused(tmp_path: Path, changes: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        load_npz(write_npz(tmp_path / "odd.npz", **changes))


def test_an_empty_archive_says_so(tmp_path: Path) -> None:
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(DatasetError, match="it holds no array"):
        load_npz(tmp_path / "empty.npz")
