"""Calls of forbidden functions, read off the code."""

import pytest

from vit_course.grading.submissions.forbidden import FORBIDDEN, forbidden_call
from vit_course.grading.submissions.submission import CellSource

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
BODY = "def scaled_dot_product_attention(query, key, value):\n    return "


def found(*sources, exercise="scaled_dot_product_attention"):
    cells = [CellSource(index, source) for index, source in enumerate((HEAD, *sources))]
    return forbidden_call(exercise, (exercise,), cells)


@pytest.mark.parametrize(
    "sources",
    [
        [BODY + "F.scaled_dot_product_attention(query, key, value)"],
        [BODY + "torch.nn.functional.scaled_dot_product_attention(query, key, value)"],
        ["from torch.nn.functional import scaled_dot_product_attention as sdpa", BODY + "sdpa(query, key, value)"],
        ["import torch.nn as layers", BODY + "layers.MultiheadAttention(4, 1)(query, key, value)"],
        [BODY + "getattr(F, 'scaled_dot_product_attention')(query, key, value)"],
        [BODY + "F.__dict__['scaled_dot_product_attention'](query, key, value)"],
        ["def helper(*x): return F.scaled_dot_product_attention(*x)", BODY + "helper(query, key, value)"],
        ["quick = F.scaled_dot_product_attention", BODY + "quick(query, key, value)"],
        ["def scaled_dot_product_attention(q, k, v):\n    from torch.nn import functional as G\n"
         "    return G.scaled_dot_product_attention(q, k, v)"],
        ["from torch.nn.functional import scaled_dot_product_attention"],
        ["scaled_dot_product_attention = F.scaled_dot_product_attention"],
        [BODY + "__import__('torch').ops.aten.scaled_dot_product_attention(query, key, value)"],
    ],
)  # fmt: skip
def test_every_way_to_call_it_is_found(sources):
    why = found(*sources)
    assert why
    assert "This exercise asks you to write attention yourself" in why


@pytest.mark.parametrize(
    "sources",
    [
        [BODY + "(query @ key.mT).softmax(-1) @ value"],
        ["expected = F.scaled_dot_product_attention", BODY + "query"],
        [BODY + "query  # not F.scaled_dot_product_attention", "other = nn.MultiheadAttention(4, 1)"],
        ["def scaled_dot_product_attention(q, k, v):\n    'Not F.scaled_dot_product_attention.'\n    return q"],
        ["x = F.scaled_dot_product_attention", "def scaled_dot_product_attention(q, k, v):\n    x = q\n    return x"],
    ],
)
def test_code_that_the_answer_does_not_reach_is_its_own_affair(sources):
    assert found(*sources) is None


def test_an_exercise_without_a_rule_allows_all():
    assert found("def patchify(x, p): return F.unfold(x, p)", exercise="patchify") is None


def test_layer_norm_is_forbidden_where_it_is_written_and_allowed_in_the_block():
    assert found("def layer_norm(x, w, b, e): return torch.layer_norm(x, (4,), w, b, e)", exercise="layer_norm")
    assert found("class EncoderBlock(nn.Module):\n    norm1 = nn.LayerNorm(4)", exercise="EncoderBlock") is None


@pytest.mark.parametrize("lesson", ["00_start", "01_patchify", "02_positions", "03_attention", "04_block", "05_vit"])
def test_the_model_answers_call_nothing_forbidden(work, lesson):
    submission = work(lesson, solved=True).read()
    assert [each.forbidden for each in submission.exercises] == [None] * len(submission.exercises)


def test_rules_are_of_exercises_that_there_are(lessons):
    assert set(FORBIDDEN) <= {name for lesson in lessons for name in lesson.names}


def test_a_call_is_flagged_and_told(work):
    submission = (
        work("03_attention")
        .answer(scaled_dot_product_attention=BODY + "F.scaled_dot_product_attention(query, key, value), 0")
        .read()
    )
    assert submission.flags == ("forbidden-function",)
    assert "may not be called" in submission.exercises[0].forbidden
