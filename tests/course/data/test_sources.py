from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from vit_course.data import DatasetError, MissingDatasetError, channel_statistics, holds_dataset, load_dataset
from vit_course.data.sources import data_folder


def write_npz(path: Path, test_size: int = 6) -> Path:
    rng = np.random.default_rng(0)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        train_images=rng.integers(0, 256, (9, 6, 6, 3), dtype=np.uint8),
        train_labels=np.arange(9) % 2,
        test_images=rng.integers(0, 100, (4, test_size, test_size, 3), dtype=np.uint8),
        test_labels=np.arange(4) % 2,
        classes=np.array(["npz", "other"]),
    )
    return path


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test looks into this computer's own data."""
    monkeypatch.setenv("VIT_COURSE_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


class TestEmbedded:
    @pytest.mark.parametrize(("name", "counts"), [("shapes", (10_000, 2_000)), ("digits", (1_500, 297))])
    def test_it_needs_no_file_and_tests_on_other_images(self, name: str, counts: tuple[int, int]) -> None:
        train, test = load_dataset(name)
        assert (len(train), len(test)) == counts
        assert (train.mean, train.std) == (test.mean, test.std) == channel_statistics(train.images)
        assert set(test.labels.tolist()) == set(range(10))
        assert not {each.numpy().tobytes() for each in train.images} & {each.numpy().tobytes() for each in test.images}


class TestWhereItLooks:
    def test_an_npz_in_the_root_comes_first(self, download_mirror: Path, tmp_path: Path, pets_folder: Path) -> None:
        load_dataset("cifar10", tmp_path)
        pets_folder.rename(tmp_path / "cifar10")
        write_npz(tmp_path / "cifar10.npz")
        train, test = load_dataset("cifar10", tmp_path)
        assert (train.classes[0], len(train), len(test)) == ("npz", 9, 4)
        assert (test.mean, test.std) == (train.mean, train.std) == channel_statistics(train.images)

    def test_torchvision_s_files_come_before_class_folders(
        self, download_mirror: Path, tmp_path: Path, pets_folder: Path
    ) -> None:
        load_dataset("cifar10", tmp_path)
        pets_folder.rename(tmp_path / "cifar10")
        assert len(load_dataset("cifar10", tmp_path)[0]) == 12

    def test_class_folders_come_before_a_download(
        self, download_mirror: Path, tmp_path: Path, pets_folder: Path
    ) -> None:
        pets_folder.rename(tmp_path / "cifar10")
        assert load_dataset("cifar10", tmp_path)[0].classes == ("cat", "dog")

    def test_the_root_may_be_the_file_or_the_folder(self, tmp_path: Path, pets_folder: Path) -> None:
        assert load_dataset("cifar10", write_npz(tmp_path / "mine.npz"))[0].name == "mine"
        assert load_dataset("cifar10", pets_folder)[0].name == "pets"

    def test_a_path_stands_for_itself(self, tmp_path: Path, pets_folder: Path) -> None:
        assert load_dataset(write_npz(tmp_path / "mine.npz"))[0].name == "mine"
        assert load_dataset(str(pets_folder))[0].classes == ("cat", "dog")

    def test_an_own_set_has_a_name_in_the_root(self, tmp_path: Path, pets_folder: Path) -> None:
        write_npz(tmp_path / "mine.npz")
        assert load_dataset("mine", tmp_path)[0].classes == ("npz", "other")
        assert load_dataset("pets", tmp_path)[0].classes == ("cat", "dog")

    def test_a_bare_name_is_looked_for_in_the_root_first(
        self, tmp_path: Path, pets_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write_npz(tmp_path / "root" / "pets.npz")
        assert load_dataset("pets", tmp_path / "root")[0].classes == ("npz", "other")
        assert load_dataset("./pets", tmp_path / "root")[0].classes == ("cat", "dog")
        assert load_dataset(pets_folder, tmp_path / "root")[0].classes == ("cat", "dog")

    def test_a_folder_of_pictures_is_not_taken_for_a_published_set(self, tmp_path: Path, break_downloads: None) -> None:
        holiday = tmp_path / "root" / "holiday"
        holiday.mkdir(parents=True)
        (holiday / "beach.png").write_bytes(b"")
        with pytest.raises(MissingDatasetError, match="CIFAR10 is not in"):
            load_dataset("cifar10", tmp_path / "root")

    def test_the_environment_names_the_root(self, empty_cache: Path) -> None:
        write_npz(empty_cache / "cifar10.npz")
        assert load_dataset("cifar10")[0].classes[0] == "npz"

    def test_without_it_the_root_is_in_the_user_s_cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("VIT_COURSE_DATA")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        in_home = tmp_path / ".cache" / "vit_course"
        assert data_folder() == in_home
        assert data_folder("~/data") == tmp_path / "data"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
        assert data_folder() == tmp_path / "elsewhere" / "vit_course"
        in_home.mkdir(parents=True)
        assert data_folder() == in_home, "sets may lie there"

    def test_what_is_held_can_be_evaluated(self, download_mirror: Path, tmp_path: Path, pets_folder: Path) -> None:
        root = tmp_path / "root"
        root.mkdir()
        assert not holds_dataset("cifar10", root)
        assert holds_dataset("shapes", root)
        assert holds_dataset("pets", tmp_path)
        write_npz(root / "mnist.npz")
        assert holds_dataset("mnist", root)
        load_dataset("cifar10", root)
        assert holds_dataset("cifar10", root)
        assert not holds_dataset("cifar100", root)


class TestWhatIsWrong:
    def test_an_unknown_name_lists_the_known_ones(self) -> None:
        with pytest.raises(DatasetError, match=r"'cifar11' is no data set that we know \(mnist, .*shapes\)") as caught:
            load_dataset("cifar11", otherwise="shapes")
        assert not isinstance(caught.value, MissingDatasetError)

    def test_a_path_without_anything_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(MissingDatasetError, match=r"There is no data set at .*pets\.npz"):
            load_dataset(tmp_path / "pets.npz")

    def test_two_sizes_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DatasetError, match=r"train with are \(3, 6, 6\), those to test with \(3, 7, 7\)"):
            load_dataset(write_npz(tmp_path / "two.npz", test_size=7))


class TestOtherwise:
    def test_a_set_that_cannot_be_had_is_replaced_aloud(
        self, break_downloads: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        train, _ = load_dataset("cifar10", otherwise="digits")
        assert train.name == "digits"
        said = " ".join(capsys.readouterr().out.split())
        assert "CIFAR10 is not in" in said
        assert said.endswith("Going on with the embedded set 'digits' instead.")

    def test_a_set_that_is_there_is_not(self, empty_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write_npz(empty_cache / "cifar10.npz")
        assert load_dataset("cifar10", otherwise="shapes")[0].name == "cifar10"
        assert capsys.readouterr().out == ""

    def test_a_damaged_one_is_an_error(self, empty_cache: Path) -> None:
        path = write_npz(empty_cache / "cifar10.npz")
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(DatasetError, match="is damaged"):
            load_dataset("cifar10", otherwise="shapes")

    def test_only_an_embedded_set_can_stand_in(self) -> None:
        with pytest.raises(ValueError, match=r"otherwise must be one of digits, shapes.* not 'mnist'"):
            load_dataset("shapes", otherwise="mnist")


def test_class_folders_can_be_scaled(pets_folder: Path) -> None:
    train, _ = load_dataset(pets_folder, image_size=4)
    assert train.images.shape == (5, 3, 4, 4)
    assert train.images.dtype == torch.uint8
