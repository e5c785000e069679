from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vit_course.data import DatasetError
from vit_course.data.decoding import fit_to_square, own_picture, read_image, read_images


def test_pixels_stand_where_the_file_has_them(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")
    assert (image.dtype, image.shape) == (torch.uint8, (3, 5, 7))
    assert torch.equal(image, torch.from_numpy(pixels).permute(2, 0, 1))


def test_gray_images_have_one_channel(tmp_path: Path, save_picture) -> None:
    paths = [save_picture(tmp_path / f"{n}.png", n, mode="L") for n in (3, 9)]
    assert read_images(paths).shape == (2, 1, 8, 8)


def test_a_gray_image_among_colored_ones_gets_three(tmp_path: Path, save_picture) -> None:
    paths = [save_picture(tmp_path / "a.png", 7, mode="L"), save_picture(tmp_path / "b.png", (1, 2, 3))]
    images = read_images(paths)
    assert images[:, :, 0, 0].tolist() == [[7, 7, 7], [1, 2, 3]]


def test_palettes_become_colors(tmp_path: Path, save_picture) -> None:
    save_picture(tmp_path / "a.png", 5, mode="P")
    save_picture(tmp_path / "b.png", (1, 2, 3))
    assert read_images([tmp_path / "a.png", tmp_path / "b.png"]).shape == (2, 3, 8, 8)


class TestTransparency:
    """A doodle drawn in black on nothing must not become a black picture."""

    @pytest.fixture
    def transparent_image(self) -> Image.Image:
        """A black dot, solid, half and not at all there: alpha 255, 128, 0."""
        image = Image.new("RGBA", (3, 1))
        for column, alpha in enumerate((255, 128, 0)):
            image.putpixel((column, 0), (0, 0, 0, alpha))
        return image

    @pytest.mark.parametrize(("mode", "channels"), [("RGBA", 3), ("LA", 1)])
    def test_it_becomes_white(self, tmp_path: Path, transparent_image: Image.Image, mode: str, channels: int) -> None:
        transparent_image.convert(mode).save(tmp_path / "a.png")
        assert read_image(tmp_path / "a.png").tolist() == [[[0, 127, 255]]] * channels

    def test_of_a_palette_too(self, tmp_path: Path, transparent_image: Image.Image) -> None:
        transparent_image.save(tmp_path / "a.gif")
        assert read_image(tmp_path / "a.gif")[0, 0, [0, 2]].tolist() == [0, 255]

    @pytest.mark.parametrize(("mode", "ink", "nothing"), [("L", 0, 9), ("RGB", (0, 0, 0), (9, 9, 9)), ("1", 0, 1)])
    def test_of_one_color_that_stands_for_it(self, tmp_path: Path, mode: str, ink, nothing) -> None:
        image = Image.new(mode, (2, 1), nothing)
        image.putpixel((0, 0), ink)
        image.save(tmp_path / "a.png", transparency=nothing)
        assert read_image(tmp_path / "a.png")[0].tolist() == [[0, 255]]

    def test_solid_colors_stay_as_they_are(self, tmp_path: Path) -> None:
        pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 4), dtype=np.uint8)
        pixels[..., 3] = 255
        Image.fromarray(pixels).save(tmp_path / "a.png")
        assert np.array_equal(read_image(tmp_path / "a.png").permute(1, 2, 0), pixels[..., :3])


def save_photo_turned_by_exif(path: Path) -> Path:
    """Six columns and four rows, the left half red; held upright, red is above."""
    image = Image.new("RGB", (6, 4), "white")
    image.paste("red", (0, 0, 3, 4))
    exif = image.getexif()
    exif[0x0112] = 6  # a quarter turn clockwise
    image.save(path, exif=exif, quality=95, subsampling=0)
    return path


def test_a_photograph_is_turned_upright(tmp_path: Path) -> None:
    image = read_image(save_photo_turned_by_exif(tmp_path / "a.jpg"))
    assert image.shape == (3, 6, 4)
    assert image[1, :3].max() < 60 < 200 < image[1, 3:].min()  # green: none in red, all of it in white


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
        with pytest.raises(DatasetError, match=r"1\.png cannot be read .*, or leave it out \(and 1 more files\)"):
            read_images(paths)

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


class TestOwnPicture:
    """Lesson 08 has to get along with whatever a student finds in a folder of pictures."""

    OTHERWISE = torch.full((3, 6, 4), 77, dtype=torch.uint8)

    @pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.gif", "a.bmp", "a.tif", "a.webp", "a.ppm"])
    def test_the_middle_square_of_any_kind(self, tmp_path: Path, name: str) -> None:
        image = Image.new("RGB", (60, 20), "blue")
        image.paste("white", (20, 0, 40, 20))
        image.save(tmp_path / name, **({"quality": 95} if name == "a.jpg" else {}))
        found = own_picture(tmp_path / name, self.OTHERWISE)
        assert (found.dtype, found.shape) == (torch.uint8, (3, 20, 20))
        assert found[:, :, 2:-2].min() > 240

    def test_of_an_animation_the_first(self, tmp_path: Path) -> None:
        first, *others = [Image.new("RGB", (9, 9), color) for color in ("red", "lime", "blue")]
        first.save(tmp_path / "a.gif", save_all=True, append_images=others)
        assert own_picture(tmp_path / "a.gif", self.OTHERWISE)[:, 4, 4].tolist() == [255, 0, 0]

    def test_transparent_upright_and_gray_as_read_image_has_them(self, tmp_path: Path, save_picture) -> None:
        assert own_picture(save_picture(tmp_path / "a.png", (0, 0, 0, 0), mode="RGBA"), self.OTHERWISE).min() == 255
        assert own_picture(save_photo_turned_by_exif(tmp_path / "a.jpg"), self.OTHERWISE)[1, :2].max() < 60
        assert own_picture(save_picture(tmp_path / "b.png", 7, mode="L"), self.OTHERWISE).unique().tolist() == [7]
        assert own_picture(save_picture(tmp_path / "c.jpg", (0, 0, 0, 0), mode="CMYK"), self.OTHERWISE).min() == 255

    @pytest.mark.parametrize(
        ("name", "dtype", "values"),
        [
            ("a.png", np.uint16, [0, 30_000, 60_000]),
            ("a.tif", np.int32, [-9, 50, 100]),
            ("a.tif", np.float32, [0, 2, 4]),
        ],
    )
    def test_more_bits_are_scaled_until_the_brightest_is_white(
        self, tmp_path: Path, name: str, dtype: type, values: list[int]
    ) -> None:
        Image.fromarray(np.array([values] * 3, dtype=dtype)).save(tmp_path / name)
        assert own_picture(tmp_path / name, self.OTHERWISE)[0, 0].tolist() == [0, 127, 255]

    def test_black_stays_black(self, tmp_path: Path) -> None:
        Image.fromarray(np.zeros((4, 4), dtype=np.uint16)).save(tmp_path / "a.png")
        assert own_picture(tmp_path / "a.png", self.OTHERWISE).max() == 0

    @pytest.mark.parametrize("name", ["a.png", "a.jpg"])
    def test_a_large_one_is_scaled_down(self, tmp_path: Path, save_picture, name: str) -> None:
        path = save_picture(tmp_path / name, (10, 20, 30), size=(900, 2000))
        assert own_picture(path, self.OTHERWISE).shape == (3, 512, 512)
        assert own_picture(path, self.OTHERWISE, largest=32).shape == (3, 32, 32)
        assert (own_picture(path, self.OTHERWISE)[:, 99, 99] - torch.tensor([10, 20, 30])).abs().max() <= 2

    def test_a_hundred_megapixels_are_no_attack(self, tmp_path: Path, save_picture, recwarn, monkeypatch) -> None:
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)  # Pillow warns above, and refuses above twice as many
        assert own_picture(save_picture(tmp_path / "a.png"), self.OTHERWISE).shape == (3, 8, 8)
        assert [str(each.message) for each in recwarn] == []

    @pytest.mark.parametrize("size", [(400, 1), (1, 400)])
    def test_of_one_that_is_a_pixel_wide_there_is_little_to_see(self, tmp_path, capsys, save_picture, size) -> None:
        path = save_picture(tmp_path / "a.png", size=size)
        assert own_picture(path, self.OTHERWISE).flatten().tolist() == [10, 20, 30]
        said = f"{path} is {size[0]} pixels high and {size[1]} wide: there is little to see in it.\n"
        assert capsys.readouterr().out == said

    def test_without_a_path_there_is_the_other_one(self, capsys) -> None:
        assert torch.equal(own_picture("", self.OTHERWISE), self.OTHERWISE[:, 1:5])
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize("content", [b"", b"text", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\0"])
    def test_what_is_no_picture_gets_one_sentence(self, tmp_path: Path, capsys, content: bytes) -> None:
        (tmp_path / "a.png").write_bytes(content)
        assert torch.equal(own_picture(tmp_path / "a.png", self.OTHERWISE), self.OTHERWISE[:, 1:5])
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith(f"{tmp_path / 'a.png'} cannot be read (")
        assert line.endswith("; save it as PNG or JPEG, or leave it out. Going on without it.")

    def test_so_do_a_wrong_path_a_folder_and_what_is_far_too_large(
        self, tmp_path: Path, capsys, monkeypatch, save_picture
    ) -> None:
        monkeypatch.chdir(tmp_path)
        own_picture("mine.png", self.OTHERWISE)
        own_picture(tmp_path, self.OTHERWISE)
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
        own_picture(save_picture(tmp_path / "a.png"), self.OTHERWISE)
        missing, folder, large = capsys.readouterr().out.splitlines()
        assert missing == f"There is no file {tmp_path / 'mine.png'}. Going on without it."
        assert folder.startswith(f"{tmp_path} cannot be read (")
        assert "a.png is too large (" in large
        assert "save a smaller copy" in large
