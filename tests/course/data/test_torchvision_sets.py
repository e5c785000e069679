from __future__ import annotations

import gzip
import socket
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from vit_course.data import DatasetError, MissingDatasetError, load_dataset
from vit_course.data.torchvision_sets import PUBLISHED, has_any_file, is_complete, load_torchvision_dataset

REAL = Path(__file__).parents[4] / "shared" / "data" / "mnist.tar.xz"


def move_archives(name: str, mirror: Path, root: Path, end: int | None = None) -> None:
    """Put a set's packed files where torchvision looks for them, each up to this byte; the mirror has none then."""
    place = root if "cifar" in name else root / PUBLISHED[name].title / "raw"
    place.mkdir(parents=True, exist_ok=True)
    for path in mirror.glob("*.gz"):
        (place / path.name).write_bytes(path.read_bytes()[:end])
        path.unlink()


@pytest.mark.parametrize("name", PUBLISHED)
class TestDownload:
    def test_it_lies_in_place_as_torchvision_reads_it_and_nothing_else(
        self, name: str, download_mirror: Path, tmp_path: Path
    ) -> None:
        from torchvision import datasets

        root = tmp_path / "new" / "root"
        train, test = load_torchvision_dataset(name, root)
        assert len([path for path in root.rglob("*") if path.is_file()]) == 4
        assert len(list(root.iterdir())) == 1
        published = getattr(datasets, PUBLISHED[name].title)(root, train=False)
        assert (len(train), len(test)) == (12, len(published))
        pixels = torch.as_tensor(published.data)
        assert torch.equal(test.images.permute(0, 2, 3, 1).reshape(pixels.shape), pixels)
        assert test.labels.tolist() == list(published.targets)
        assert train.name == name

    def test_the_second_time_needs_no_mirror(self, name: str, download_mirror: Path, tmp_path: Path) -> None:
        first, _ = load_torchvision_dataset(name, tmp_path)
        for path in download_mirror.glob("*.gz"):
            path.unlink()
        assert torch.equal(load_torchvision_dataset(name, tmp_path)[0].images, first.images)

    def test_archives_that_lie_there_are_unpacked(self, name: str, download_mirror: Path, tmp_path: Path) -> None:
        move_archives(name, download_mirror, tmp_path)
        assert len(load_torchvision_dataset(name, tmp_path)[0]) == 12

    def test_no_network_says_what_to_do_and_leaves_nothing(
        self, name: str, break_downloads: None, tmp_path: Path
    ) -> None:
        with pytest.raises(MissingDatasetError, match=rf"{PUBLISHED[name].title} is not in .*internet.*or {name}\.npz"):
            load_torchvision_dataset(name, tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_download_with_another_checksum_is_no_set(self, name: str, download_mirror: Path, tmp_path: Path) -> None:
        for path in download_mirror.glob("*.gz"):
            path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(MissingDatasetError, match="corrupted"):
            load_torchvision_dataset(name, tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_an_archive_downloaded_by_half_is_named(self, name: str, download_mirror: Path, tmp_path: Path) -> None:
        move_archives(name, download_mirror, tmp_path, -20)
        with pytest.raises(DatasetError, match=r"\.gz was downloaded by half.*Delete it and try again") as caught:
            load_torchvision_dataset(name, tmp_path)
        assert not isinstance(caught.value, MissingDatasetError)

    @pytest.mark.parametrize("cut", [slice(0, -3), slice(0, 0), slice(0, 5)])
    def test_a_damaged_file_is_named(self, name: str, cut: slice, download_mirror: Path, tmp_path: Path) -> None:
        load_torchvision_dataset(name, tmp_path)
        path = next(path for path in tmp_path.rglob("*") if path.is_file())
        path.write_bytes(path.read_bytes()[cut])
        with pytest.raises(DatasetError, match=f"{path} is damaged.*Delete the folder"):
            load_torchvision_dataset(name, tmp_path)
        assert has_any_file(name, tmp_path)

    def test_a_missing_file_is_fetched(self, name: str, download_mirror: Path, tmp_path: Path) -> None:
        load_torchvision_dataset(name, tmp_path)
        next(path for path in tmp_path.rglob("*") if path.is_file()).unlink()
        assert not is_complete(name, tmp_path)
        load_torchvision_dataset(name, tmp_path)
        assert is_complete(name, tmp_path)


def test_an_interrupted_download_leaves_nothing(
    download_mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt_download(self: object) -> None:
        (Path(self.root) / "half").write_bytes(b"x")  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr("torchvision.datasets.CIFAR10.download", interrupt_download)
    with pytest.raises(KeyboardInterrupt):
        load_torchvision_dataset("cifar10", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")])
def test_a_folder_that_takes_nothing_asks_for_another(
    error: OSError, download_mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchvision.datasets.CIFAR10.download", Mock(side_effect=error))
    with pytest.raises(MissingDatasetError, match=rf"{error.strerror}\. Name a folder with room to write by --data"):
        load_torchvision_dataset("cifar10", tmp_path)


def test_a_root_that_is_a_file_is_refused(download_mirror: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingDatasetError, match="File exists"):
        load_torchvision_dataset("cifar10", tmp_path / "file")


def test_a_download_gives_up_on_silence_and_draws_no_bar_here(
    download_mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torchvision.datasets import CIFAR10

    seen = []
    real = CIFAR10.download

    def record_timeout(self: CIFAR10) -> None:
        seen.append(socket.getdefaulttimeout())
        real(self)

    monkeypatch.setattr("torchvision.datasets.CIFAR10.download", record_timeout)
    load_torchvision_dataset("cifar10", tmp_path)
    assert seen == [30]
    assert socket.getdefaulttimeout() is None
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out == f"Downloading CIFAR10 into {tmp_path}.\n"


def test_a_file_of_another_format_is_no_mnist(download_mirror: Path, tmp_path: Path) -> None:
    load_torchvision_dataset("mnist", tmp_path)
    path = tmp_path / "MNIST/raw/t10k-labels-idx1-ubyte"
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DatasetError, match="t10k-labels-idx1-ubyte is damaged"):
        load_torchvision_dataset("mnist", tmp_path)


@pytest.mark.skipif(not REAL.is_file(), reason="the real MNIST is not beside this checkout")
def test_the_real_mnist(tmp_path: Path) -> None:
    import tarfile

    with tarfile.open(REAL) as archive:
        archive.extractall(tmp_path, filter="data")
    train, test = load_dataset("mnist", tmp_path)
    assert (train.images.shape, test.images.shape) == ((60000, 1, 28, 28), (10000, 1, 28, 28))
    assert train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert train.classes == tuple("0123456789")
    assert (train.mean, train.std) == ((pytest.approx(0.1307, abs=5e-5),), (pytest.approx(0.3081, abs=5e-5),))
    assert (test.mean, test.std) == (train.mean, train.std)
