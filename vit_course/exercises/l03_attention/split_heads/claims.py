"""`split_heads` and `merge_heads`: tokens cut into heads, and joined again.

The oracles cut and join columns, one head at a time. Answers are the input's numbers in other places, so any two
mistakes of layout can be made at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exercise_kit.engine.compare import Describe, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_value_error
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Layout, declare
from vit_course.exercises.l03_attention import LESSON

SPLIT_AXES = ("image", "head", "token", "dimension")
TOKEN_AXES = ("image", "token", "dimension")


def heads_of(x: Tensor, num_heads: int) -> Tensor:
    """The oracle of split_heads: cut the columns, stack the pieces."""
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def merged(x: Tensor) -> Tensor:
    """The oracle of merge_heads: the heads' columns side by side."""
    return torch.cat(list(x.unbind(1)), dim=-1)


split_heads = Exercise("split_heads", LESSON, objects=("split_heads", "merge_heads"))


@split_heads.check(guard=True)
def heads_get_an_axis_of_their_own(student: Student, probe: Probe) -> None:
    """split_heads gives (batch, num_heads, tokens, head_dim)."""
    for num_heads, head_dim in ((3, 4), (5, 2)):
        split = student(probe.normal(2, 7, num_heads * head_dim), num_heads)
        expect_tensor(split, (2, num_heads, 7, head_dim), f"split_heads of (2, 7, {num_heads * head_dim})")


@split_heads.check(needs=heads_get_an_axis_of_their_own)
def a_head_gets_a_slice_of_every_token(student: Student, probe: Probe) -> None:
    """Head h gets head_dim neighboring numbers of every token, those from h · head_dim on."""
    for num_heads, head_dim in ((3, 4), (5, 2)):
        embed_dim = num_heads * head_dim
        x = torch.arange(2.0 * 7 * embed_dim).reshape(2, 7, embed_dim)
        look = "Print split_heads of a tensor whose numbers count up. Who sits beside whom in memory?"
        expect_equal(student(x, num_heads), heads_of(x, num_heads), "split_heads", SPLIT_AXES, _where_from(x), look)


@split_heads.check(guard=True)
def merging_gives_the_shape_back(student: Student, probe: Probe) -> None:
    """merge_heads gives (batch, tokens, embed_dim)."""
    merged_back = student.call("merge_heads", probe.normal(2, 3, 7, 4))
    expect_tensor(merged_back, (2, 7, 12), "merge_heads of (2, 3, 7, 4)")


@split_heads.check(needs=merging_gives_the_shape_back)
def a_token_gets_its_pieces_back(student: Student, probe: Probe) -> None:
    """merge_heads lays the pieces of each token side by side, head 0 first."""
    for num_heads, head_dim in ((3, 4), (5, 2)):
        x = torch.arange(2.0 * 7 * num_heads * head_dim).reshape(2, 7, num_heads * head_dim)
        look = "Undo the steps of split_heads one by one, the last one first."
        together = student.call("merge_heads", heads_of(x, num_heads).contiguous())
        expect_equal(together, x, "merge_heads", TOKEN_AXES, _where_from(x), look)


@split_heads.check(guard=True)
def scattered_memory_and_any_dtype_will_do(student: Student, probe: Probe) -> None:
    """Both keep the dtype, and take non-contiguous tensors."""
    x = probe.normal(2, 12, 7).transpose(1, 2)
    expect_equal(student(x, 3), heads_of(x, 3), "split_heads of a non-contiguous tensor", SPLIT_AXES)
    heads = probe.normal(2, 7, 3, 4).transpose(1, 2)
    together = student.call("merge_heads", heads)
    expect_equal(together, merged(heads), "merge_heads of a non-contiguous tensor", TOKEN_AXES)
    for dtype in (torch.float64, torch.float16):
        whole = probe.normal(2, 7, 12, dtype=dtype)
        expect_equal(student(whole, 3), heads_of(whole, 3), f"split_heads of {dtype}", SPLIT_AXES)
        together = student.call("merge_heads", heads_of(whole, 3))
        expect_equal(together, whole, f"merge_heads of {dtype}", TOKEN_AXES)


@split_heads.check(needs=(a_head_gets_a_slice_of_every_token, a_token_gets_its_pieces_back), worth=0.5, guard=True)
def one_of_anything_will_do(student: Student, probe: Probe) -> None:
    """A batch of one, one token, one head and heads of one number keep their axes."""
    for batch, tokens, num_heads, head_dim in ((1, 7, 3, 4), (2, 1, 3, 4), (2, 7, 1, 4), (2, 7, 3, 1)):
        x = probe.normal(batch, tokens, num_heads * head_dim)
        described = f"of {batch} x {tokens} tokens and {num_heads} heads of {head_dim}"
        expect_equal(student(x, num_heads), heads_of(x, num_heads), f"split_heads {described}", SPLIT_AXES)
        together = student.call("merge_heads", heads_of(x, num_heads))
        expect_equal(together, x, f"merge_heads {described}", TOKEN_AXES)


@split_heads.check(needs=a_head_gets_a_slice_of_every_token, worth=0.5, guard=True)
def the_gradient_finds_its_way_back(student: Student, probe: Probe) -> None:
    """A gradient flows back through both."""
    x = probe.normal(2, 7, 12)
    inputs = {"split_heads": ((x, 3), heads_of), "merge_heads": ((heads_of(x, 3),), merged)}
    for name, (given, right) in inputs.items():
        found, wanted = student.input_gradients(*given, of=name), Student({name: right}).input_gradients(*given)
        expect_gradients_of_inputs(found[:1], wanted[:1], [f"the input of {name}"])


@split_heads.check(guard=True)
def a_number_of_heads_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """An embed_dim that num_heads does not divide raises ValueError naming both numbers."""
    for embed_dim, num_heads in ((10, 4), (14, 3)):
        described = f"embed_dim {embed_dim} with {num_heads} heads"
        expect_value_error(student, (probe.normal(2, 5, embed_dim), num_heads), (embed_dim, num_heads), described)


split_heads.example(
    """
>>> x = torch.tensor([[[0, 1, 2, 3], [10, 11, 12, 13]]])  # two tokens of four numbers
>>> split_heads(x, 2).tolist()
[[[[0, 1], [10, 11]], [[2, 3], [12, 13]]]]
""",
    of="split_heads",
)
split_heads.example(
    """
>>> merge_heads(torch.tensor([[[[0, 1], [10, 11]], [[2, 3], [12, 13]]]])).tolist()
[[[0, 1, 2, 3], [10, 11, 12, 13]]]
""",
    of="merge_heads",
)


def _where_from(x: Tensor) -> Describe:
    """Say of which entry of ``x``, a tensor that counts up, a wrong number is."""
    _, tokens, embed_dim = x.shape

    def entry(number: float) -> str:
        image, rest = divmod(int(number), tokens * embed_dim)
        token, column = divmod(rest, embed_dim)
        return f"number {column} of token {token} of image {image}"

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str]:
        index = tuple(int(each) for each in (actual != expected).nonzero()[0])
        axes = SPLIT_AXES if len(index) == len(SPLIT_AXES) else TOKEN_AXES
        place = ", ".join(f"{axis} {each}" for axis, each in zip(axes, index, strict=True))
        return f"at {place} there is {entry(float(actual[index]))}", entry(float(expected[index]))

    return describe


read_mistakes(split_heads, __name__)
declare(split_heads, Layout(heads_of, (torch.empty(2, 7, 12), 3)))
declare(split_heads, Layout(merged, (torch.empty(2, 3, 7, 4),), place=1))
