"""Cells made of the library's objects."""

from functools import partial

import pytest
import torch

from exercise_kit.simulate.cells import write_cell
from exercise_kit.simulate.modules import NoSource
from exercise_kit.simulate.scopes import inline_required_cells, rewrite_in_other_style
from vit_course.config import ViTConfig
from vit_course.exercises.catalog import EXERCISES
from vit_course.exercises.l01_patchify.patchify.claims import patches_of
from vit_course.exercises.l01_patchify.patchify.variants import patchify_by_loops
from vit_course.exercises.l03_attention.is_attention.right_suspects import attend_by_fused_kernel
from vit_course.exercises.l05_vit.small_models import StandIn
from vit_course.exercises.l05_vit.vision_transformer.claims import LibraryLayersForTheBlocks
from vit_course.exercises.simulated_answers import SIMULATION

SMALL = ViTConfig(image_size=8, patch_size=4, embed_dim=8, depth=1, num_heads=2, num_classes=3)


def run_source(source):
    namespace = {"__name__": "__main__"}
    exec(source, namespace)
    return namespace


def test_an_edit_of_a_program_is_a_cell_without_the_words_that_give_it_away():
    wrong = EXERCISES["patchify"].mistake("pixels from all over the image")
    source = write_cell({"patchify": wrong.objects[0]}, "patchify")
    assert "def patchify(images, patch_size):" in source
    assert "# bug" not in source
    assert "raster order" not in source, "a docstring"
    image = torch.arange(48.0).reshape(1, 1, 6, 8)
    assert torch.equal(run_source(source)["patchify"](image, 2), wrong.objects[0](image, 2))


def test_helpers_come_along_under_names_of_the_exercise():
    source = write_cell({"patchify": patchify_by_loops}, "patchify")
    assert "patchify_refuse" in source
    image = torch.arange(48.0).reshape(1, 1, 6, 8)
    assert torch.equal(run_source(source)["patchify"](image, 2), patchify_by_loops(image, 2))


def test_a_class_brings_its_bases():
    source = write_cell({"VisionTransformer": LibraryLayersForTheBlocks}, "vit")
    assert "class VisionTransformer(vit_StandIn):" in source
    assert "vit_course" not in source
    made = run_source(source)["VisionTransformer"](SMALL)
    assert "blocks.0.linear1.weight" in dict(made.named_parameters())


def test_what_is_kept_may_be_imported():
    wrong = EXERCISES["VisionTransformer"].mistake("global in place of the config").objects
    source = write_cell({"VisionTransformer": wrong[0]}, "vit", lambda name: name == "vit_course.config")
    assert "vit_course" not in source.replace("from vit_course.config import", "")
    images = torch.zeros(2, 4, 15, 9)
    assert run_source(source)["VisionTransformer"](SMALL)(images).shape == (2, 6), "the mistake's own sizes"


def test_what_is_forbidden_is_written_out():
    name = "scaled_dot_product_attention"
    source = write_cell({name: attend_by_fused_kernel}, name, replacements=SIMULATION.stand_ins[name])
    assert "F.scaled_dot_product_attention" not in source
    inputs = tuple(torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(1)) for _ in range(3))
    wanted = attend_by_fused_kernel(*inputs)
    for one, other in zip(run_source(source)[name](*inputs), wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_what_was_put_together_is_put_together_again():
    made = type("Both", (LibraryLayersForTheBlocks, StandIn), {"__module__": StandIn.__module__})
    source = write_cell({"VisionTransformer": made}, "vit")
    assert "class VisionTransformer(vit_LibraryLayersForTheBlocks, vit_StandIn):" in source
    source = write_cell({"patchify": partial(patches_of, patch_size=3)}, "patchify")
    assert run_source(source)["patchify"](torch.zeros(1, 2, 6, 9)).shape == (1, 6, 18)


@pytest.mark.parametrize("value", [lambda images: images, 5, "text", print], ids=["lambda", "number", "text", "print"])
def test_what_cannot_be_written_down_is_reported(value):
    with pytest.raises(NoSource):
        write_cell({"patchify": value}, "patchify")


def test_an_answer_in_other_words_does_the_same():
    source = "def f(result):\n    '''Doubles.'''\n    return 2 * result\n\ndef g(x):\n    return x"
    changed = rewrite_in_other_style(source)
    assert changed.count("answer") == 2
    assert "return x" in changed
    assert run_source(changed)["f"](4) == run_source(source)["f"](4) == 8


def test_an_answer_brings_its_own_copy_of_what_it_calls():
    source = inline_required_cells("def g(x):\n    return f(x) + 1", ["def f(x):\n    return 2 * x"], {"f": "g_f"})
    namespace = run_source(source + "\n\ndef f(x):\n    return 0")
    assert namespace["g"](3) == 7
