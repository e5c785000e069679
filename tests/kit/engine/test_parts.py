"""Where a module goes wrong, in words."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.expect import make_wrong_part_describer
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure

NAMES = ("norm", "fc1", "fc2")
X = torch.arange(24.0).sin().reshape(2, 3, 4)


class Right(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.fc1 = nn.Linear(4, 5)
        self.fc2 = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.fc2(self.fc1(self.norm(x)))


class NormOfSquares(Right):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.fc2(self.fc1(self.norm(x * x)))


class ReluBetween(Right):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.fc2(self.fc1(self.norm(x)).relu())


class OtherNorm(Right):
    def __init__(self) -> None:
        super().__init__()
        self.norm.eps = 1.0


class NormedStream(Right):
    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x) + self.fc2(self.fc1(self.norm(x)))


class Functional(Right):
    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(x).abs() @ self.fc1.weight.T
        return x + self.fc2(hidden)


class TokensFirst(Right):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(0, 1)).transpose(0, 1) + 0.1 * x


class NoPartIsCalled(Right):
    def forward(self, x: Tensor) -> Tensor:
        return x.cos()


class Dropped(Right):
    def forward(self, x: Tensor) -> Tensor:
        return torch.dropout(super().forward(x), 0.5, True)


class RaisesTheSecondTime(Right):
    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "ran"):
            raise ValueError("once is enough")
        self.ran = True
        return x.cos()


def build_loaded_module(of: type[nn.Module]) -> StudentModule:
    module = Student({of.__name__: of}).build()
    shapes = module.parameter_shapes().items()
    module.load({name: torch.linspace(-1, 1, torch.Size(size).numel()).reshape(size) for name, size in shapes})
    return module


def describe_difference(of: type[nn.Module]) -> str:
    module, right = build_loaded_module(of), build_loaded_module(Right)
    actual, expected = module(X), right(X).detach()
    where = make_wrong_part_describer(module, right, NAMES, X, axes=("image", "token", "dimension"))
    with pytest.raises(Failure) as caught:
        expect_equal(actual, expected, "the output", describe=where)
    return caught.value.seen


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (NormOfSquares, "what enters `norm` is wrong already: 96 % of its values differ; the first is at image 0"),
        (OtherNorm, "what enters `norm` is still right and what `norm` gives is wrong: "),
        (ReluBetween, "what `fc1` gives is still right and what enters `fc2` is wrong: "),
        (NormedStream, "what `fc2` gives is still right, and goes wrong behind that: "),
        (Functional, "what `norm` gives is still right and what enters `fc2` is wrong: "),
        (NoPartIsCalled, "all of its values differ; the first is at"),
        (Dropped, "it gives other numbers when it runs again on the same input"),
        (RaisesTheSecondTime, "all of its values differ; the first is at"),
    ],
)
def test_the_first_part_that_differs_is_named(of: type[nn.Module], words: str) -> None:
    assert f"as expected, but {words}" in describe_difference(of)


def test_parts_that_are_fed_in_another_layout_accuse_nobody() -> None:
    assert "wrong" not in describe_difference(TokensFirst)


def test_listening_leaves_no_trace() -> None:
    module = build_loaded_module(Right)
    before = list(module._student.record)
    x = X.clone()
    found = module.parts(NAMES, x)
    assert list(found) == [f"{name}:{way}" for name in NAMES for way in ("in", "out")]
    assert torch.equal(found["norm:in"], x)
    assert module._student.record == before
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in module._backend.module.modules())
