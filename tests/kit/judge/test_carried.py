"""A wrong answer that others call: it costs points once, and the report says where the mistake is."""

import ast

import pytest

from tests.answers import read_empty_cell, write_answer_cell

STRIPS, UNWRITTEN = write_answer_cell("patchify", "strips not squares"), read_empty_cell("patchify")
NO_ACTIVATION = write_answer_cell("Mlp", "no activation")
UNDOES_UNPATCHIFY = """
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    tokens, numbers = height * width // patch_size**2, channels * patch_size**2
    order = unpatchify(torch.arange(tokens * numbers).reshape(1, tokens, numbers), patch_size, (height, width))
    return images.flatten(1)[:, order.flatten().argsort()].reshape(batch, tokens, numbers)
"""
UNDOES_PATCHIFY = """
def unpatchify(patches, patch_size, image_size):
    batch, channels = len(patches), patches.shape[2] // patch_size**2
    order = patchify(torch.arange(patches[0].numel()).reshape(1, channels, *image_size), patch_size)
    return patches.flatten(1)[:, order.flatten().argsort()].reshape(batch, channels, *image_size)
"""
FLOAT32 = """
class PatchEmbedding(nn.Module):
    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)

    def forward(self, images):
        return self.projection(patchify(images, self.patch_size)).float()
"""
ACTIVATED = FLOAT32.replace("return self", "return F.gelu(self").replace(".float()", ")")
WITHOUT_GRADIENT = FLOAT32.replace("    def forward", "    @torch.no_grad()\n    def forward").replace(".float()", "")


@pytest.fixture
def grade_solved_lesson(open_judge, work):
    """The exercises by name, of a solved lesson in which some answers are others."""

    def grade(lesson, **answers):
        result = open_judge.grade(work(lesson, solved=True).answer(**answers).read())
        assert result.status == "graded"
        return {each.name: each for each in result.exercises}

    return grade


@pytest.mark.parametrize("source", [STRIPS, UNWRITTEN, ""], ids=["wrong", "unwritten", "empty"])
def test_a_right_answer_keeps_its_points(grade_solved_lesson, source):
    found = grade_solved_lesson("01_patchify", patchify=source)
    assert found["patchify"].score < found["patchify"].max_score / 2
    assert found["PatchEmbedding"].score == found["PatchEmbedding"].max_score
    assert "It calls your `patchify`, which is not right" in found["PatchEmbedding"].problem
    assert all(each.verdict == "pass" for each in found["PatchEmbedding"].checks)


@pytest.mark.parametrize("source", [FLOAT32, ACTIVATED, WITHOUT_GRADIENT])
def test_its_own_mistake_is_told_where_a_part_is_not_written(grade_solved_lesson, source):
    """Nothing that is true of the part's stub is said of the answer, and what is right in it counts."""
    alone = grade_solved_lesson("01_patchify", PatchEmbedding=source)["PatchEmbedding"]
    found = grade_solved_lesson("01_patchify", PatchEmbedding=source, patchify=UNWRITTEN)["PatchEmbedding"]
    assert found.misconception == alone.misconception
    assert 0 < found.score == alone.score < found.max_score
    assert "calls your `patchify`, which is not right" in found.problem
    assert not any("not written" in (each.message or "") for each in found.checks)


def test_its_own_mistake_still_costs_points_and_has_its_name(grade_solved_lesson):
    alone = grade_solved_lesson("01_patchify", PatchEmbedding=FLOAT32)["PatchEmbedding"]
    both = grade_solved_lesson("01_patchify", PatchEmbedding=FLOAT32, patchify=STRIPS)["PatchEmbedding"]
    assert 0 < both.score == alone.score < both.max_score
    assert both.misconception == alone.misconception
    assert "what fails below is the mistake of PatchEmbedding" in both.problem
    assert alone.problem is None


def test_a_bug_hunt_is_not_answered_by_the_model_solution(grade_solved_lesson):
    hands_on = "def fix_patchify(images, patch_size):\n    return patchify(images, patch_size)\n"
    found = grade_solved_lesson("01_patchify", patchify=STRIPS, fix_patchify=hands_on)
    assert found["fix_patchify"].score < found["fix_patchify"].max_score / 2


@pytest.mark.proof
def test_layers_that_a_bug_hunt_inherits_cost_it_nothing(grade_solved_lesson):
    found = grade_solved_lesson("04_block", Mlp=NO_ACTIVATION)
    assert found["Mlp"].score < found["Mlp"].max_score
    for name in ("EncoderBlock", "fix_block"):
        assert found[name].score == found[name].max_score
        assert "`Mlp`, which is not right" in found[name].problem
        assert "`EncoderBlock`" not in found[name].problem


@pytest.mark.proof
def test_a_bug_hunt_that_only_inherits_is_not_answered_either(grade_solved_lesson):
    wrong = "class EncoderBlock(nn.Module):\n    def __init__(self, *sizes):\n        super().__init__()\n"
    found = grade_solved_lesson("04_block", EncoderBlock=wrong, fix_block="class FixedBlock(EncoderBlock):\n    pass\n")
    assert found["fix_block"].score == 0


def test_no_exception_shows_the_model_solution(grade_solved_lesson):
    found = grade_solved_lesson(
        "01_patchify",
        patchify=STRIPS,
        PatchEmbedding=FLOAT32.replace("return", "raise ValueError(patchify.__code__.co_varnames)\n        return"),
    )
    messages = " ".join(each.message or "" for each in found["PatchEmbedding"].checks)
    assert "ValueError" in messages
    assert "rows" not in messages
    assert found["PatchEmbedding"].score == 0


def test_no_class_s_name_shows_the_model_solution(grade_solved_lesson):
    leak = "return type('LEAK_' + '_'.join(getattr(patchify, '__co' + 'de__').co_varnames), (), {})()"
    found = grade_solved_lesson(
        "01_patchify", patchify=STRIPS, PatchEmbedding=FLOAT32.replace("return", f"{leak}\n        return")
    )
    messages = " ".join(each.message or "" for each in found["PatchEmbedding"].checks)
    assert "LEAK_images" in messages
    assert "rows" not in messages


def test_two_answers_that_each_undo_the_other_are_both_wrong(grade_solved_lesson):
    found = grade_solved_lesson("01_patchify", patchify=UNDOES_UNPATCHIFY, unpatchify=UNDOES_PATCHIFY)
    assert found["patchify"].score == 0
    assert found["unpatchify"].score <= found["unpatchify"].max_score
    assert "unpatchify" not in (found["patchify"].problem or "")


def test_a_part_is_lent_without_what_the_rule_names(work):
    hunted = "class FixedBlock(EncoderBlock):\n    def forward(self, x):\n        return self.mlp(x)\n"
    (answer,) = work("04_block", solved=True).answer(fix_block=hunted).read().keep_exercises(["fix_block"]).exercises
    (block,) = [each for each in answer.parts if each.exercise == "EncoderBlock"]
    methods = [each.name for each in ast.walk(ast.parse(block.source)) if isinstance(each, ast.FunctionDef)]
    assert "__init__" in methods
    assert "forward" not in methods[methods.index("__init__") :]


def test_parts_are_read_off_the_answer(work):
    solved = work("03_attention", solved=True)
    parts = {each.name: [part.exercise for part in each.parts] for each in solved.read().exercises}
    assert parts["MultiHeadSelfAttention"] == ["scaled_dot_product_attention", "split_heads"]
    assert parts["split_heads"] == parts["is_attention"] == []
    compared = "def is_attention(attend):\n    return attend is scaled_dot_product_attention\n"
    (named,) = solved.answer(is_attention=compared).read().keep_exercises(["is_attention"]).exercises
    assert named.parts == (), "its rule names that"
    assert not any(each.parts for each in work("03_attention").read().exercises)
