from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vit_course.data import DatasetError
from vit_course.data.decoding import fit_to_square, read_image, read_images


def test_pixels_stand_where_the_file_has_them(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")
    assert (image.dtype, image.shape) == (torch.uint8, (3, 5, 7))
    assert torch.equal(image, torch.from_numpy(pixels).permute(2, 0, 1))


def test_grey_images_have_one_channel(tmp_path: Path, save_picture) -> None:
    paths = [save_picture(tmp_path / f"{n}.png", n, mode="L") for n in (3, 9)]
    assert read_images(paths).shape == (2, 1, 8, 8)


def test_a_grey_image_among_coloured_ones_gets_three(tmp_path: Path, save_picture) -> None:
    paths = [save_picture(tmp_path / "a.png", 7, mode="L"), save_picture(tmp_path / "b.png", (1, 2, 3))]
    images = read_images(paths)
    assert images[:, :, 0, 0].tolist() == [[7, 7, 7], [1, 2, 3]]


def test_transparency_and_palettes_become_colours(tmp_path: Path, save_picture) -> None:
    save_picture(tmp_path / "a.png", (1, 2, 3, 0), mode="RGBA")
    save_picture(tmp_path / "b.png", 5, mode="P")
    assert read_images([tmp_path / "a.png", tmp_path / "b.png"]).shape == (2, 3, 8, 8)
    assert read_image(tmp_path / "a.png")[:, 0, 0].tolist() == [1, 2, 3]


def test_a_photograph_is_turned_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (6, 4))
    exif = image.getexif()
    exif[0x0112] = 6  # held upright: a quarter turn
    image.save(tmp_path / "a.jpg", exif=exif)
    assert read_image(tmp_path / "a.jpg").shape == (3, 6, 4)


class TestFit:
    def test_the_middle_square_is_scaled(self) -> None:
        image = torch.zeros(3, 20, 40, dtype=torch.uint8)
        image[:, :, 10:30] = 200
        fitted = fit_to_square(image, 10)
        assert (fitted.dtype, fitted.shape) == (torch.uint8, (3, 10, 10))
        assert (fitted[:, :, 1:-1] == 200).all()

    def test_the_right_size_stays_as_it_is(self) -> None:
        image = torch.randint(0, 256, (1, 9, 9), dtype=torch.uint8)
        assert torch.equal(fit_to_square(image, 9), image)

    def test_sizes_may_differ_then(self, tmp_path: Path, save_picture) -> None:
        paths = [save_picture(tmp_path / f"{n}.png", size=(n, 2 * n)) for n in (5, 100)]
        assert read_images(paths, image_size=12).shape == (2, 3, 12, 12)


class TestWhatIsWrong:
    def test_a_broken_file_is_named(self, tmp_path: Path, save_picture) -> None:
        paths = [save_picture(tmp_path / f"{n}.png") for n in range(4)]
        for path in paths[1:3]:
            path.write_bytes(path.read_bytes()[:40])
        with pytest.raises(DatasetError, match=r"1\.png cannot be read .*; delete or replace it \(and 1 more files\)"):
            read_images(paths)

    @pytest.mark.parametrize("content", [b"", b"text", b"\x89PNG\r\n\x1a\n"])
    def test_so_is_one_that_is_no_image(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(DatasetError, match=r"a\.png cannot be read"):
            read_image(tmp_path / "a.png")

    def test_a_jpeg_cut_short_is_broken(self, tmp_path: Path) -> None:
        noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "a.jpg")
        content = (tmp_path / "a.jpg").read_bytes()
        (tmp_path / "a.jpg").write_bytes(content[: len(content) // 2])
        with pytest.raises(DatasetError, match=r"a\.jpg cannot be read"):
            read_image(tmp_path / "a.jpg")

    def test_sixteen_bits_are_refused(self, tmp_path: Path) -> None:
        Image.fromarray(np.full((4, 4), 40_000, dtype=np.uint16)).save(tmp_path / "a.png")
        with pytest.raises(DatasetError, match="more than 8 bits a pixel"):
            read_image(tmp_path / "a.png")

    def test_two_sizes_name_both(self, tmp_path: Path, save_picture) -> None:
        paths = [save_picture(tmp_path / "a.png", size=(8, 9)), save_picture(tmp_path / "b.png", size=(7, 9))]
        with pytest.raises(DatasetError, match=r"b\.png is 7x9, the images before it 8x9: scale all .* --image-size"):
            read_images(paths)

    def test_large_images_have_another_way(self, tmp_path: Path, save_picture) -> None:
        path = save_picture(tmp_path / "a.png", size=(30, 65))
        with pytest.raises(DatasetError, match=r"a\.png is 30x65, larger than 64x64: .* --image-size 64.*folder_batch"):
            read_images([path])

    @pytest.mark.parametrize("image_size", [0, 65])
    def test_so_have_large_sizes(self, tmp_path: Path, save_picture, image_size: int) -> None:
        with pytest.raises(DatasetError, match=f"image size {image_size} is not between 1 and 64"):
            read_images([save_picture(tmp_path / "a.png")], image_size)
