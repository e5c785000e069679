"""A student's code as a check meets it: copies go in, modules are built, loaded and differentiated."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure, NotWritten
from tests.kit.engine.patchify_student import INPUT, make_raising_patchify, make_student


def test_calls_get_copies() -> None:
    def spoil(images: Tensor, sizes: list[int]) -> Tensor:
        images.zero_()
        sizes.clear()
        return images

    images, sizes = INPUT.clone(), [2, 3]
    mine = make_student(spoil)
    assert not mine(images, sizes).any()
    assert torch.equal(images, INPUT)
    assert sizes == [2, 3]
    assert mine.changed_inputs == ["(2, 3)"]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.t_(),
        lambda x: x.resize_(1),
        lambda x: setattr(x, "data", x.data.double()),
        lambda x: x.fill_(float("nan")),
        lambda x: x.mul_(1 + 2**-22),
    ],
)
def test_every_change_of_an_input_is_seen(change: Callable[[Tensor], object]) -> None:
    mine = make_student(lambda x: (change(x), 0)[1])
    mine(INPUT)
    assert mine.changed_inputs == ["(2, 3)"]


def test_an_input_that_is_read_and_returned_is_not_changed() -> None:
    mine = make_student(lambda x: x.requires_grad_())
    mine(INPUT)
    assert mine.changed_inputs == []


def test_the_user_may_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        make_student(make_raising_patchify(KeyboardInterrupt))(INPUT)
    with pytest.raises(KeyboardInterrupt):
        make_student(make_raising_patchify(KeyboardInterrupt)).catch_error(INPUT)


def test_the_error_of_a_call_can_be_requested() -> None:
    error = ValueError("height 3 is not divisible by 2")
    raised = make_student(make_raising_patchify(error)).catch_error(INPUT)
    assert raised is not None
    assert raised.is_a("ValueError")
    assert not raised.is_a("TypeError")
    assert raised.words == "height 3 is not divisible by 2"
    assert raised.line == "`raise error`"
    assert raised.functions[-1] == "patchify"
    assert make_student(lambda x: x).catch_error(INPUT) is None
    ended = make_student(make_raising_patchify(SystemExit)).catch_error(INPUT)
    assert ended is not None
    assert ended.is_a("SystemExit")


@pytest.mark.parametrize(
    ("function", "shares"),
    [
        (lambda model, state: model, False),
        (lambda model, state: state["weight"].mT, True),
        (lambda model, state: [1, (model.weight[1:],)], True),
        (lambda model, state: model.weight.clone(), False),
        (lambda model, state: nn.Linear(3, 2), False),
        (lambda model, state: setattr(model, "bias", nn.Parameter(state["weight"][0])), True),
        (lambda model, state: setattr(nn.Linear(3, 2), "weight", model.weight), False),
        (lambda model, state: None, False),
    ],
)
def test_shared_memory_is_seen(function: Callable[..., Any], shares: bool) -> None:
    assert make_student(function).see(nn.Linear(3, 2), {"weight": torch.ones(2, 3)}).shares_memory is shares


def test_gradients_of_inputs_are_those_of_any_right_implementation() -> None:
    x, scale = torch.randn(2, 3).mT, torch.randn(2)
    first = make_student(lambda x, scale, power: ((x * scale) ** power, x.sum(0))).input_gradients(x, scale, 2)
    second = make_student(lambda x, scale, power: [x * x * scale * scale, torch.ones(3) @ x]).input_gradients(
        x, scale, 2
    )
    for one, other in zip(first[:2], second[:2], strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    assert first[2] is None
    assert not x.requires_grad
    assert x.grad is None


def test_what_does_not_depend_on_an_input_has_no_gradient() -> None:
    assert make_student(lambda x, y: x.detach() * y).input_gradients(INPUT, INPUT)[0] is None
    assert make_student(lambda x: 3).input_gradients(INPUT) == (None,)
    with pytest.raises(Failure, match="patchify raised RuntimeError"):
        make_student(lambda x: x.exp().sin_().mul_(2)).input_gradients(INPUT)


class Projection(nn.Module):
    """A Linear called projection, and a parameter that forward may leave out."""

    def __init__(self, dim: int, used: bool = True) -> None:
        super().__init__()
        self.projection = nn.Linear(dim, 4)
        self.used = used

    def forward(self, x: Tensor) -> Tensor:
        return self.projection(x) if self.used else self.projection(x).detach()


def build_module(kind: Callable[..., Any], *arguments: Any) -> StudentModule:
    return Student({"Projection": kind}).build(*arguments)


def make_weights(dim: int) -> dict[str, Tensor]:
    return {"projection.weight": torch.ones(4, dim), "projection.bias": torch.zeros(4)}


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        (lambda dim: None, "Projection(...) gives None"),
        (lambda dim: Projection, "Projection(...) gives the class Projection"),
        (dict[str, int], "Projection raised TypeError"),
    ],
)
def test_what_is_no_module_is_said(kind: Callable[..., Any], seen: str) -> None:
    with pytest.raises(Failure) as caught:
        build_module(kind, 3)
    assert seen in caught.value.seen


WEIGHT, BIAS = {"projection.weight": torch.ones(4, 3)}, {"projection.bias": torch.zeros(4)}


@pytest.mark.parametrize(
    ("dim", "wanted", "seen", "look"),
    [
        (5, WEIGHT | BIAS, "`projection.weight` (4, 5) for (4, 3)", "How many numbers go"),
        (3, {"linear.weight": torch.ones(4, 3), "linear.bias": torch.ones(4)},
         "has no parameter `linear.weight` (4, 3), `linear.bias` (4,) and has `projection.weight` (4, 3)",
         "The shapes are right. What does the exercise call"),
        (3, WEIGHT | BIAS | {"scale": torch.ones(2)}, "has no parameter `scale` (2,)", "attribute of self"),
        (3, WEIGHT, "has `projection.bias` (4,), which the exercise does not ask for", "Which part of yours"),
    ],
)  # fmt: skip
def test_parameters_that_are_not_as_evaluated_are_named(
    dim: int, wanted: dict[str, Tensor], seen: str, look: str
) -> None:
    with pytest.raises(Failure) as caught:
        build_module(Projection, dim).load(wanted)
    assert seen in caught.value.seen
    assert look in caught.value.look
    assert caught.value.expected.startswith("the parameters `")


def test_a_module_tells_its_parameters_and_its_state() -> None:
    module = Student({"Projection": Projection}).build(3, used=False)
    assert module.parameter_shapes() == {"projection.weight": (4, 3), "projection.bias": (4,)}
    module.load(make_weights(3))
    module.double()
    tensors = module.tensors()
    assert tensors["projection.weight"].dtype == torch.float64
    assert tensors["projection.weight"].eq(1).all()
    tensors["projection.weight"].zero_()
    assert module._backend.module.get_parameter("projection.weight").eq(1).all()


def test_a_module_changes_its_mode_and_its_dtype() -> None:
    class Dropped(Projection):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(super().forward(x), training=self.training)

    module = build_module(Dropped, 3)
    module.load(make_weights(3) | {"projection.bias": torch.ones(4)})
    module.eval()
    assert module(INPUT).all()
    module.train()
    module.to(torch.float64)
    assert not torch.cat([module(INPUT.double()) for _ in range(9)]).all()


def test_gradients_of_parameters_start_from_the_same_cotangent() -> None:
    module = build_module(Projection, 3)
    module.load(make_weights(3))
    gradients = module.gradients(module(INPUT))
    start = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(gradients["projection.bias"], start.sum(0))
    assert torch.allclose(gradients["projection.weight"], start.T @ INPUT)
    module = build_module(Projection, 3, False)
    assert module.gradients(module(INPUT)) == {"projection.weight": None, "projection.bias": None}


def test_a_method_of_the_students_that_raises_is_reported() -> None:
    class Odd(Projection):
        def state_dict(self, *_: Any, **__: Any) -> dict[str, Tensor]:
            raise KeyError("no state")

        def train(self, mode: bool = True) -> Odd:
            raise ValueError("never")

    for method in (StudentModule.tensors, StudentModule.parameter_shapes):
        with pytest.raises(Failure, match=r"Projection.state_dict raised KeyError"):
            method(build_module(Odd, 3))
    with pytest.raises(Failure, match=r"Projection.eval raised ValueError: `never`"):
        build_module(Odd, 3).eval()


def test_a_lazy_layer_has_no_shape_yet() -> None:
    class Lazy(Projection):
        def __init__(self, dim: int) -> None:
            super().__init__(dim)
            self.projection = nn.LazyLinear(4)

    with pytest.raises(Failure) as caught:
        build_module(Lazy, 3).load(make_weights(3))
    assert caught.value.seen == "`projection.weight` has no shape yet"


def test_a_module_without_forward_is_reported_so() -> None:
    class NoForward(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()

        def foward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(Failure) as caught:
        build_module(NoForward, 3)(INPUT)
    assert not isinstance(caught.value, NotWritten)
    assert caught.value.seen == "Projection.forward does not exist"


def test_parameters_without_a_gradient_are_named() -> None:
    module = build_module(Projection, 3, False)
    assert module.list_parameters_without_gradient(module(INPUT)) == ["projection.weight", "projection.bias"]


class Backward(torch.autograd.Function):
    """Its backward pass fails as it is told to."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, fails: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.fails = fails
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return ctx.fails(gradients[0]), None


@pytest.mark.parametrize(
    ("fails", "seen"),
    [
        (lambda gradient: gradient / 0, "the gradient of projection.weight, projection.bias is not finite"),
        (lambda gradient: 1 / 0, "the backward pass raised ZeroDivisionError `division by zero`"),
        (lambda gradient: gradient[:1], "the backward pass raised RuntimeError"),
    ],
)
def test_a_broken_backward_pass_becomes_words(fails: Callable[[Tensor], Tensor], seen: str) -> None:
    class Broken(Projection):
        def forward(self, x: Tensor) -> Tensor:
            return Backward.apply(self.projection(x), fails)

    module = build_module(Broken, 3)
    with pytest.raises(Failure) as caught:
        module.list_parameters_without_gradient(module(INPUT))
    assert seen in caught.value.seen


@pytest.mark.filterwarnings("error")
def test_a_coroutine_that_nobody_awaits_leaves_no_warning() -> None:
    async def patchify(images: torch.Tensor) -> torch.Tensor:
        return images

    Student({"patchify": patchify})(torch.ones(2))
    gc.collect()


def test_gradients_come_from_the_tensors_of_a_dict_too() -> None:
    (gradient,) = Student({"double": lambda x: {"twice": 2 * x}}).input_gradients(torch.ones(3))
    assert gradient is not None
    assert gradient.abs().sum() > 0
