from __future__ import annotations

from pathlib import Path

import pytest

from vit_course.data import DatasetError, MissingDatasetError, channel_statistics, is_class_folder, load_folder
from vit_course.data.folder import find_images


def test_images_and_labels_are_those_of_the_files(pets_folder: Path) -> None:
    train, test = load_folder(pets_folder)
    assert (train.classes, test.classes) == (("cat", "dog"), ("cat", "dog"))
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 0, 0, 1, 1], [0, 1])
    assert train.images.shape == (5, 3, 8, 8)
    red = train.images[:, 0, 0, 0].tolist()
    assert red == pytest.approx([0, 20, 40, 60, 80], abs=2)  # two are JPEG files
    assert (train.mean, train.std) == (test.mean, test.std) == channel_statistics(train.images)
    assert (train.name, test.name) == ("pets", "pets")


def test_torchvision_reads_the_same(pets_folder: Path) -> None:
    from torchvision.datasets import ImageFolder

    theirs = ImageFolder(pets_folder / "train")
    found = find_images(pets_folder)
    assert [(Path(path), label) for path, label in theirs.samples] == list(
        zip(found.train.paths, found.train.labels, strict=True)
    )
    assert tuple(theirs.classes) == found.classes


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_a_validation_folder_stands_in_for_test(pets_folder: Path, name: str) -> None:
    (pets_folder / "test").rename(pets_folder / name)
    assert len(load_folder(pets_folder)[1]) == 2


def test_the_test_folder_comes_before_validation(pets_folder: Path, save_picture) -> None:
    save_picture(pets_folder / "val/cat/a.png")
    assert len(load_folder(pets_folder)[1]) == 2


def test_without_train_and_test_a_fifth_is_held_back_aloud(
    tmp_path: Path, save_picture, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(20):
        save_picture(tmp_path / "all" / ("cat" if number < 12 else "dog") / f"{number}.png", (number, 0, 0))
    train, test = load_folder(tmp_path / "all")
    assert (len(train), len(test)) == (16, 4)
    red = [*train.images[:, 0, 0, 0].tolist(), *test.images[:, 0, 0, 0].tolist()]
    assert sorted(red) == list(range(20))
    assert load_folder(tmp_path / "all")[1].images[:, 0, 0, 0].tolist() == test.images[:, 0, 0, 0].tolist()
    assert "a fifth of its images, always the same, is held back to test on" in capsys.readouterr().out


def test_files_deeper_down_belong_to_the_class(pets_folder: Path, save_picture) -> None:
    save_picture(pets_folder / "train/dog/more/z.png")
    assert load_folder(pets_folder)[0].labels.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "place", ["train/.ipynb_checkpoints/a.png", "train/__MACOSX/a.png", "train/cat/._a.png", "train/cat/notes.txt"]
)
def test_what_the_computer_left_there_is_passed_over(pets_folder: Path, place: str) -> None:
    (pets_folder / place).parent.mkdir(exist_ok=True)
    (pets_folder / place).write_bytes(b"no image")
    assert len(load_folder(pets_folder)[0]) == 5


class TestWhatIsWrong:
    def test_classes_in_one_split_only(self, pets_folder: Path, save_picture) -> None:
        save_picture(pets_folder / "train/owl/a.png")
        save_picture(pets_folder / "train/emu/a.png")
        save_picture(pets_folder / "test/bee/a.png")
        with pytest.raises(DatasetError, match="only train/ has emu, owl, and only test/ has bee"):
            load_folder(pets_folder)

    def test_many_of_them_are_not_all_named(self, pets_folder: Path, save_picture) -> None:
        for letter in "efghi":
            save_picture(pets_folder / "train" / letter / "a.png")
        with pytest.raises(DatasetError, match="only train/ has e, f, g and 2 more, and only test/ has none"):
            load_folder(pets_folder)

    def test_a_class_without_images(self, pets_folder: Path) -> None:
        for split in ("train", "test"):
            (pets_folder / split / "owl").mkdir()
        with pytest.raises(DatasetError, match=r"train: there is no image in owl; put some in \(\.png, .*or delete"):
            load_folder(pets_folder)

    @pytest.mark.parametrize("name", ["test", "val"])
    def test_images_that_lie_in_no_class(self, tmp_path: Path, save_picture, name: str) -> None:
        for place in ("train/a.png", "train/b.png", f"{name}/a.png"):
            save_picture(tmp_path / "flat" / place)
        expected = rf"train/ and {name}/ hold no class folders: .* flat/train/<class>/ and flat/{name}/<class>/"
        with pytest.raises(DatasetError, match=expected) as caught:
            load_folder(tmp_path / "flat")
        assert not isinstance(caught.value, MissingDatasetError)  # no other set must take its place

    def test_no_test_folder(self, pets_folder: Path) -> None:
        (pets_folder / "test").rename(pets_folder / "probe")
        with pytest.raises(DatasetError, match=r"holds train/, but no test/ \(or val/, valid/, validation/\)"):
            load_folder(pets_folder)

    def test_no_class_folders(self, tmp_path: Path) -> None:
        for root in (tmp_path, tmp_path / "none"):
            with pytest.raises(MissingDatasetError, match=r"no class folders in .*expected image files in .*/train/"):
                load_folder(root)

    def test_too_few_to_hold_some_back(self, tmp_path: Path, save_picture) -> None:
        save_picture(tmp_path / "cat/a.png")
        with pytest.raises(DatasetError, match="holds 1 images: too few"):
            load_folder(tmp_path)


def test_what_is_a_class_folder(pets_folder: Path, tmp_path: Path) -> None:
    assert is_class_folder(pets_folder)
    assert is_class_folder(pets_folder / "train")
    assert not is_class_folder(pets_folder / "train" / "cat")
    assert not is_class_folder(tmp_path)
    assert not is_class_folder(tmp_path / "none")
    assert not is_class_folder(pets_folder / "train" / "cat" / "a.png")
