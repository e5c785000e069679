"""Code and words that are shown in a lecture tell nothing of whose they are."""

import pytest

from exercise_kit.report.examples import Anonymizer, Unshowable

NAMES = ["Zoë Quist", "max", "s4711", "zq@example.org", "张伟", "O'Brien"]


@pytest.fixture(scope="module")
def anonymizer():
    return Anonymizer(NAMES)


def anonymize(anonymizer, body, objects=("patchify",)):
    return anonymizer.anonymize_code(f"def patchify(images, patch_size):\n{body}", objects)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("x = images.max()  # Zoë", "x = images.max()"),
        ("num_patches_h = 3", "num_patches_h = 3"),
        ("quist_tokens = 3", "name1 = 3"),
        ("self.bobs_layer = 3", "self.name1 = 3"),
        ("max = 3", "name1 = 3"),
        ("张伟 = 3", "name1 = 3"),
        ("x = 20231234", "x = number"),
        ("x = 20231234.0", "x = number"),
        ("x = -1000000", "x = -1000000"),
        ("x = -1e999", "x = -1e309"),
        ("x = 'b c (h p) (w q) -> b (h w) (c p q)'", "x = 'b c (h p) (w q) -> b (h w) (c p q)'"),
        ("x = '<script>alert(1)</script>'", "x = '…'"),
        ("x = f'patches of {images}, says Quist'", "x = f'patches of {images}…'"),
        ("x = b'Quist'", "x = '…'"),
        ("global quist", "global name1"),
        ("images.to(quist=3)", "images.to(name1=3)"),
    ],
)
def test_a_line(anonymizer, line, kept):
    assert anonymize(anonymizer, f"    {line}\n    return images").splitlines()[1:-1] == [f"    {kept}"]


def test_what_does_nothing_goes(anonymizer):
    imports = "    import quist_tools, torch\n    from zoe import x\n    from torch.quist import x\n"
    body = f'    """By Zoë Quist."""\n{imports}    print("Zoë")\n    "Zoë"\n    return 1'
    assert anonymize(anonymizer, body) == "def patchify(images, patch_size):\n    return 1"


def test_a_body_that_vanishes_is_a_body(anonymizer):
    assert anonymize(anonymizer, "    '''Zoë'''") == "def patchify(images, patch_size):\n    pass"


def test_only_what_the_answer_needs_is_shown(anonymizer):
    source = "import torch\nquist = 3\nother = 4\ndef helper():\n    return quist\nprint(other)\n"
    code = anonymizer.anonymize_code(source + "def patchify(images, patch_size):\n    return helper()", ("patchify",))
    assert code.splitlines()[0] == "name1 = 3"
    assert "other" not in code


@pytest.mark.parametrize("source", ["def (", "x = 1", "\0", "(" * 5000])
def test_what_cannot_be_shown(anonymizer, source):
    with pytest.raises(Unshowable):
        anonymizer.anonymize_code(source, ("patchify",))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("patchify raised ValueError: `Quist says no`", "patchify raised ValueError: `…`"),
        ("it raised at `tokens = images.reshape(b)`", "it raised at `tokens = images.reshape(b)`"),
        ("Zoë Quist and s4711 and O'Brien wrote it", "… and … and … wrote it"),
        ("the maximum of max, every value is 1 too large", "the maximum of max, every value is 1 too large"),
        ("`20231234`", "`…`"),
    ],
)
def test_a_message(anonymizer, text, kept):
    assert anonymizer.anonymize_text(text) == kept


def test_words_of_what_the_class_read_tell_nothing():
    assert Anonymizer([], ["zebras"]).is_harmless("zebras_left")
    assert not Anonymizer([]).is_harmless("zebras_left")
