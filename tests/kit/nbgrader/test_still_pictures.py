"""What a student says is a picture becomes a PNG of pixels alone, or nothing."""

import base64
import io
import zlib

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from exercise_kit.nbgrader.cleaning import MOST_PIXELS, clean_png, make_picture_outputs

WORDS = "<script>attack()</script>"


def make_png(size=(5, 3), mode="RGB", **options):
    about, buffer = PngInfo(), io.BytesIO()
    about.add_text("comment", WORDS)
    Image.new(mode, size).save(buffer, format="png", pnginfo=about, **options)
    return buffer.getvalue()


def clean_picture(picture):
    return clean_png(base64.b64encode(picture).decode())


def make_png_chunk(kind, content):
    return len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P"])
def test_the_pixels_of_a_png_stay_and_nothing_else_of_it(mode):
    picture = make_png(mode=mode) + WORDS.encode()
    kept = base64.b64decode(clean_picture(picture))
    assert WORDS.encode() in picture
    assert WORDS.encode() not in kept
    assert np.array_equal(Image.open(io.BytesIO(kept)), Image.open(io.BytesIO(picture)))
    (output,) = make_picture_outputs(base64.b64encode(picture).decode())
    assert (output.output_type, list(output.data), output.metadata) == ("display_data", ["image/png"], {})


GOOD = make_png()
BROKEN = {
    "a page": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "a page behind a signature": GOOD[:8] + b"<script>" * 9,
    "half of one": GOOD[:-20],
    "a wrong checksum": GOOD[:20] + b"\x07" + GOOD[21:],
    "no head": GOOD[:8] + make_png_chunk(b"IDAT", b"") + make_png_chunk(b"IEND", b""),
    "two heads": GOOD[:33] + GOOD[8:],
    "no end": GOOD[:33],
    "a length beyond the end": GOOD[:8] + b"\xff\xff\xff\xff" + GOOD[12:],
    "too wide": make_png((MOST_PIXELS + 1, 1)),
    "too high": make_png((1, MOST_PIXELS + 1)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_picture_or_a_large_one_is_left_out(name):
    assert clean_picture(BROKEN[name]) is None


@pytest.mark.parametrize("text", [None, 7, ["iVBOR"], "", "iVBORw0KGgo", '"><script>', "ä"])
def test_what_is_no_text_of_a_picture_is_left_out(text):
    assert clean_png(text) is None
    assert make_picture_outputs(text) == []
