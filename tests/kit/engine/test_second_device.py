"""On the other device operators refuse what a GPU refuses, and nothing that a GPU takes."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from exercise_kit.engine.expect import expect_device_of_input
from exercise_kit.engine.student import Student
from exercise_kit.engine.training_fixtures import call_on_other_device
from exercise_kit.engine.verdict import Failure, Undecided

X = torch.ones(2, 3, 4, 6)


def _into_a_new_tensor(x):
    made = torch.empty(2, 3, 4, 6)
    made[:, 0] = x[:, 0]
    return made


def _into_one_of_its_own(x):
    made = torch.zeros_like(x)
    made[:, 0] = torch.ones(4, 6)
    made[:, [0, 1]] += 1
    made[torch.tensor([0])] = 2.0
    return made


def _by_a_mask(x):
    made = torch.zeros(3, 4, device=x.device)
    made[torch.eye(3, 4, device=x.device).bool()] = x[0, 0, 0, :3]
    return made


def _scripted(x: torch.Tensor):
    return x + torch.ones(6)


MIXED = {
    "plus": lambda x: x + torch.arange(6),
    "first": lambda x: torch.arange(6) * x,
    "matmul": lambda x: x @ torch.ones(6, 6),
    "bmm": lambda x: torch.bmm(x[0], torch.ones(3, 6, 2)),
    "linear": lambda x: F.linear(x, torch.ones(3, 6)),
    "einsum": lambda x: torch.einsum("bchw,wk->bchk", x, torch.ones(6, 2)),
    "cat": lambda x: torch.cat([torch.zeros(1, 3, 4, 6), x]),
    "where": lambda x: torch.where(x > 0, x, torch.zeros(6)),
    "mask": lambda x: x.masked_fill(torch.ones(4, 6).bool(), 0),
    "indexed": lambda x: torch.arange(4)[x.long()],
    "gather": lambda x: x.gather(0, torch.zeros(1, 3, 4, 6).long()),
    "conv": lambda x: F.conv2d(x, torch.ones(3, 3, 2, 2)),
    "layer_norm": lambda x: F.layer_norm(x, (6,), torch.ones(6)),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, torch.ones(2, 3, 4, 6)),
    "in place": lambda x: x.add_(torch.ones(6)),
    "scripted": torch.jit.script(_scripted),
}
FINE = {
    "number": lambda x: x + torch.tensor(1.0),
    "indices": lambda x: x[torch.tensor([0, 1])],
    "lists": lambda x: x[:, [0, 2]],
    "arange": lambda x: x + torch.arange(6, device=x.device),
    "new": lambda x: x - x.new_tensor([1.0] * 6),
    "like": lambda x: torch.tensor([1.0] * 6).to(x) * x,
    "as_tensor": lambda x: torch.as_tensor([1.0] * 6, dtype=x.dtype, device=x.device) * x,
    "written": _into_one_of_its_own,
    "unfold": lambda x: F.unfold(x, 2, stride=2),
    "interpolate": lambda x: F.interpolate(x, size=(5, 5), mode="bicubic"),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "there and back": lambda x: (x.cpu() + torch.arange(6)).to(x.device),
    "pair": lambda x: (x, [x.mean(-1)]),
    "written by a mask": _by_a_mask,
    "integers in place": lambda x: x.long().floor_divide_(x.long()).fmod_(x.long() + 1),
    "shifted": lambda x: x[0].long() << x.long(),
    "in place": lambda x: x.clone().mul_(2).clamp_(0, 1).transpose_(0, 1)[:, 0].add_(x[0, 0, :, 0, None]),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_a_gpu_refuses_is_refused(name):
    assert call_on_other_device(MIXED[name], [X])["mixed"]


@pytest.mark.parametrize("name", FINE)
def test_what_a_gpu_takes_is_taken(name):
    notes = call_on_other_device(FINE[name], [X])
    assert notes["raised"] == "", notes
    assert set(notes["devices"]) == {"meta"}


@pytest.mark.parametrize(
    "answer", [lambda x: torch.ones(3), _into_a_new_tensor, lambda x: x.cpu() + 1, lambda x: torch.tensor(x.tolist())]
)
def test_a_result_on_the_cpu_is_reported(answer):
    with pytest.raises(Failure, match="gave a tensor on the CPU"):
        expect_device_of_input(Student({"answer": answer}), X)


LOOKS = [
    lambda x: x + x.sum().item(),
    lambda x: torch.from_numpy(x.numpy() + 1),
    lambda x: x if x.sum() > 1 else -x,
    lambda x: torch.stack([each / each.sum().item() for each in x]),
]


@pytest.mark.parametrize("answer", LOOKS)
def test_what_looks_at_numbers_is_left_undecided(answer):
    with pytest.raises(Undecided):
        expect_device_of_input(Student({"answer": answer}), X)


def _raises_there(x):
    if x.device.type != "cpu":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return x + 1


def _looks_there_alone(x):
    return x + (x.sum().item() if x.is_meta else 1)


def _copies_there_alone(x):
    if x.is_meta:
        x.cpu()
        raise ValueError
    return x + 1


@pytest.mark.parametrize("answer", [_raises_there, _looks_there_alone, _copies_there_alone])
def test_an_exception_of_its_own_leaves_nothing_undecided(answer):
    with pytest.raises(Failure, match="on another device, say a GPU, answer raised"):
        expect_device_of_input(Student({"answer": answer}), X)


def test_a_module_goes_along_with_its_parameters_and_buffers():
    class Shift(torch.nn.Module):
        def __init__(self, registered):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(6))
            if registered:
                self.register_buffer("shift", torch.ones(6))
            else:
                self.shift = torch.ones(6)

        def forward(self, x, negative=False):
            return self.scale * x + self.shift if not negative else -x

    expect_device_of_input(Student({"Shift": Shift}), X, arguments=(True,))
    expect_device_of_input(Student({"Shift": Shift}), X, arguments=(False,), options={"negative": True})
    with pytest.raises(Failure, match="another device"):
        expect_device_of_input(Student({"Shift": Shift}), X, arguments=(False,))


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: (x.transpose(1, 2) * 2).view(-1),
        lambda x: (x[:1].expand(5, 3, 4, 6) + 1).view(-1),
        lambda x: x.permute(0, 3, 1, 2).softmax(-1).view(2, 6, 12),
        lambda x: (x[:, ::2] @ x[:, ::2].mT).view(2, 2, 16),
    ],
)
def test_results_lie_in_memory_as_on_the_cpu(answer):
    try:
        answer(X)
        raised = ""
    except RuntimeError:
        raised = "RuntimeError"
    assert call_on_other_device(answer, [X])["raised"] == raised


def test_arithmetic_there_does_not_import_torchs_compiler():
    program = """
import sys, torch
from exercise_kit.engine.training_fixtures import call_on_other_device
tensors = [torch.ones(2, 3, 4, 6)] * 2
notes = call_on_other_device(lambda q, k: ((q @ k.mT / 2).softmax(-1) @ k).mul_(2).div_(4), tensors)
print(notes["devices"], "torch._dynamo" in sys.modules, "sympy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "['meta'] False False\n", done.stderr
