from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import vit_course
from tests.answers import read_empty_cell
from vit_course.encoder import EncoderBlock, Mlp
from vit_course.exercises.catalog import EXERCISES

pytestmark = pytest.mark.usefixtures("seed_torch")


@pytest.mark.parametrize(("gelu", "approximate"), [("exact", "none"), ("tanh", "tanh")])
def test_mlp_has_the_gelu_that_it_names_between_its_linears(gelu: Any, approximate: str) -> None:
    mlp = Mlp(6, 10, gelu=gelu).double()
    x = 3 * torch.randn(2, 5, 6, dtype=torch.float64)
    expected = mlp.fc2(F.gelu(mlp.fc1(x), approximate=approximate))
    # the two kinds differ by up to 5e-4 before fc2
    torch.testing.assert_close(mlp(x), expected, atol=1e-12, rtol=0)


@torch.no_grad()
def test_mlp_dropout_follows_the_activation_and_the_last_linear() -> None:
    hidden, rate = 32, 0.25
    mlp = Mlp(6, hidden, dropout=rate)
    mlp.fc1.weight.zero_()
    mlp.fc1.bias.fill_(1.0)
    mlp.fc2.weight.fill_(1.0)
    mlp.fc2.bias.zero_()
    x = torch.randn(50, 6)
    # an output counts the hidden units that were kept, or is dropped itself
    kept = mlp(x) * (1 - rate) ** 2 / F.gelu(torch.tensor(1.0))
    torch.testing.assert_close(kept, kept.round(), atol=1e-3, rtol=0)
    assert 0.15 < (kept == 0).float().mean() < 0.35
    assert 0.65 < kept[kept > 0].mean() / hidden < 0.85
    assert kept[kept > 0].unique().numel() > 2
    full = torch.full((50, 6), hidden * F.gelu(torch.tensor(1.0)).item())
    torch.testing.assert_close(mlp.eval()(x), full)


@pytest.mark.parametrize(("mlp_ratio", "hidden_dim"), [(4.0, 400), (0.5, 50), (29 / 100, 29)])
def test_mlp_ratio_sets_the_hidden_width(mlp_ratio: float, hidden_dim: int) -> None:
    assert EncoderBlock(100, 4, mlp_ratio).mlp.fc1.out_features == hidden_dim


def _list_parameter_names(part: ast.stmt) -> list[str]:
    """Of a function or of a class's ``__init__``, without ``self``; none of a class that has not written one."""
    if isinstance(part, ast.ClassDef):
        return next((_list_parameter_names(each) for each in part.body if getattr(each, "name", "") == "__init__"), [])
    return [each.arg for each in part.args.args if each.arg != "self"] if isinstance(part, ast.FunctionDef) else []


@pytest.mark.parametrize("exercise", [name for name, each in EXERCISES.items() if not each.file])
def test_a_part_takes_by_position_what_its_lesson_names(exercise: str) -> None:
    for part in ast.parse(read_empty_cell(exercise)).body:
        if ours := getattr(vit_course, getattr(part, "name", ""), None):
            parameters = _list_parameter_names(part)
            assert list(inspect.signature(ours).parameters)[: len(parameters)] == parameters
