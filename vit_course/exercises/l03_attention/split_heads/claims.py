"""`split_heads` and `merge_heads`: tokens cut into heads, and joined again.

The oracles cut and join columns, one head at a time. Answers are the input's numbers in other places, so any two
mistakes of layout can be made at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from exercise_kit.engine.compare import Describe, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_value_error, ignore_wrong_numbers
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Layout, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention import LESSON

SPLIT_AXES = ("image", "head", "token", "dimension")
TOKEN_AXES = ("image", "token", "dimension")


def heads_of(x: Tensor, num_heads: int) -> Tensor:
    """The oracle of split_heads: cut the columns, stack the pieces."""
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def merged_heads_of(x: Tensor) -> Tensor:
    """The oracle of merge_heads: the heads' columns side by side."""
    return torch.cat(list(x.unbind(1)), dim=-1)


split_heads = Exercise("split_heads", LESSON, objects=("split_heads", "merge_heads"))


@split_heads.check(guard=True)
def heads_get_an_axis_of_their_own(student: Student, probe: Probe) -> None:
    """split_heads gives (batch, num_heads, tokens, head_dim)."""
    for num_heads, head_dim in ((3, 4), (5, 2)):
        split = student(probe.normal(2, 7, num_heads * head_dim), num_heads)
        expect_tensor(split, (2, num_heads, 7, head_dim), f"split_heads of (2, 7, {num_heads * head_dim})")


@split_heads.check(needs=heads_get_an_axis_of_their_own, points=1.5)
def a_head_gets_a_slice_of_every_token(student: Student, probe: Probe) -> None:
    """Head h gets head_dim neighboring numbers of every token, those from h · head_dim on."""
    look = "Print split_heads of a tensor whose numbers count up. Who sits beside whom in memory?"
    for x, num_heads in _draw_distinct_tokens(probe):
        for each in (x, x.flip(0, 1)):
            right = heads_of(each, num_heads)
            expect_equal(student(each, num_heads), right, "split_heads", SPLIT_AXES, _make_describe_origin(each), look)


@split_heads.check(guard=True)
def merging_gives_the_shape_back(student: Student, probe: Probe) -> None:
    """merge_heads gives (batch, tokens, embed_dim)."""
    merged_back = student.call("merge_heads", probe.normal(2, 3, 7, 4))
    expect_tensor(merged_back, (2, 7, 12), "merge_heads of (2, 3, 7, 4)")


@split_heads.check(needs=merging_gives_the_shape_back, points=1.5)
def a_token_gets_its_pieces_back(student: Student, probe: Probe) -> None:
    """merge_heads lays the pieces of each token side by side, head 0 first."""
    look = "Undo the steps of split_heads one by one, the last one first."
    for x, num_heads in _draw_distinct_tokens(probe):
        for each in (x, x.flip(0, 1)):
            together = student.call("merge_heads", heads_of(each, num_heads).contiguous())
            expect_equal(together, each, "merge_heads", TOKEN_AXES, _make_describe_origin(each), look)


@split_heads.check(needs=(a_head_gets_a_slice_of_every_token, a_token_gets_its_pieces_back), guard=True, points=1)
def scattered_memory_and_any_dtype_will_do(student: Student, probe: Probe) -> None:
    """Both keep the dtype, and take non-contiguous tensors."""
    batch, tokens, num_heads, head_dim = probe.sizes(4, shown=(2, 7, 3, 4))
    x = probe.normal(batch, num_heads * head_dim, tokens).mT
    expect_right_split(student, x, num_heads, "split_heads of a non-contiguous tensor")
    swapped = probe.normal(batch, tokens, num_heads, head_dim).transpose(1, 2)
    turned = probe.normal(head_dim, tokens, num_heads, batch).permute(3, 2, 1, 0)
    for heads in (swapped, turned):
        expect_right_merge(student, heads, "merge_heads of a non-contiguous tensor")
    for dtype in (torch.float64, torch.float16, torch.int64):
        whole = probe.every_digit(batch, tokens, num_heads * head_dim, dtype=dtype)
        expect_right_split(student, whole, num_heads, f"split_heads of {dtype}")
        expect_right_merge(student, heads_of(whole, num_heads), f"merge_heads of {dtype}")


@split_heads.check(
    needs=(a_head_gets_a_slice_of_every_token, a_token_gets_its_pieces_back), worth=0.5, guard=True, points=0.75
)
def one_of_anything_will_do(student: Student, probe: Probe) -> None:
    """A batch of one, one token, one head and heads of one number keep their axes."""
    some, many, few, width = probe.sizes(4, shown=(2, 7, 3, 4))
    for batch, tokens, num_heads, head_dim in (
        (1, many, few, width),
        (some, 1, few, width),
        (some, many, 1, width),
        (some, many, few, 1),
        (1, many, few, 1),
    ):
        x = probe.normal(batch, tokens, num_heads * head_dim)
        described = f"of {batch} x {tokens} tokens and {num_heads} heads of {head_dim}"
        expect_right_split(student, x, num_heads, f"split_heads {described}")
        expect_right_merge(student, heads_of(x, num_heads), f"merge_heads {described}")


@split_heads.check(needs=a_head_gets_a_slice_of_every_token, worth=0.5, guard=True, points=0.25)
def the_gradient_finds_its_way_back(student: Student, probe: Probe) -> None:
    """A gradient flows back through both."""
    x, num_heads = draw_tokens_and_num_heads(probe)
    inputs = {"split_heads": ((x, num_heads), heads_of), "merge_heads": ((heads_of(x, num_heads),), merged_heads_of)}
    for name, (given, right) in inputs.items():
        found, wanted = student.input_gradients(*given, of=name), Student({name: right}).input_gradients(*given)
        expect_gradients_of_inputs(found[:1], wanted[:1], [f"the input of {name}"])


@split_heads.check(guard=True, points=0.5, first=ignore_wrong_numbers(a_head_gets_a_slice_of_every_token))
def a_number_of_heads_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """An embed_dim that num_heads does not divide raises ValueError naming both numbers."""
    few, width = probe.sizes(2, low=3, shown=(3, 4))
    for embed_dim, num_heads in ((few * width + 1, few), (few, few * width)):
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


def draw_tokens_and_num_heads(probe: Probe) -> tuple[Tensor, int]:
    """Tokens (batch, tokens, embed_dim), and num_heads."""
    batch, tokens, num_heads, head_dim = probe.sizes(4, shown=(2, 7, 3, 4))
    return probe.normal(batch, tokens, num_heads * head_dim), num_heads


def expect_right_split(student: Student, x: Tensor, num_heads: int, name: str = "split_heads") -> None:
    """split_heads of x (batch, tokens, embed_dim) is right to the last digit: nothing is computed."""
    _expect_exactly_equal(student(x, num_heads), heads_of(x, num_heads), name, SPLIT_AXES)


def expect_right_merge(student: Student, heads: Tensor, name: str = "merge_heads") -> None:
    """merge_heads of (batch, num_heads, tokens, head_dim) is right to the last digit."""
    _expect_exactly_equal(student.call("merge_heads", heads), merged_heads_of(heads), name, TOKEN_AXES)


def _expect_exactly_equal(actual: Tensor, expected: Tensor, name: str, axes: tuple[str, ...]) -> None:
    expect_equal(actual, expected, name, axes)
    if not torch.equal(actual, expected):
        look = "Which line goes through another dtype on the way?"
        raise Failure(f"{name} rounds its numbers", "the very numbers that went in", look)


def _draw_distinct_tokens(probe: Probe) -> Iterator[tuple[Tensor, int]]:
    """Tokens of which no two numbers are equal, and num_heads: less than there are tokens, more, and larger ones."""
    sizes, large = probe.sizes(4, shown=(2, 7, 3, 4)), probe.sizes(4, low=10, high=19, shown=(2, 4, 5, 2))
    for batch, tokens, num_heads, head_dim in (sizes, sizes[::-1], large):
        count = batch * tokens * num_heads * head_dim
        numbers = probe.permutation(count) if probe.is_secret else torch.arange(count)
        yield numbers.float().reshape(batch, tokens, num_heads * head_dim), num_heads


def _make_describe_origin(x: Tensor) -> Describe:
    """Say of which entry of ``x``, whose numbers are all different, a wrong number is."""

    def find_origin_of_number(number: Tensor) -> str | None:
        places = (x == number).nonzero().tolist()
        return "number {2} of token {1} of image {0}".format(*places[0]) if places else None

    def describe_origins(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        index = tuple(int(each) for each in (actual != expected).nonzero()[0])
        axes = SPLIT_AXES if len(index) == len(SPLIT_AXES) else TOKEN_AXES
        place = ", ".join(f"{axis} {each}" for axis, each in zip(axes, index, strict=True))
        here, there = find_origin_of_number(actual[index]), find_origin_of_number(expected[index])
        return (f"at {place} there is {here}", there) if here and there else None

    return describe_origins


read_mistakes(split_heads, __name__)
declare_pairs(split_heads, Layout(heads_of, (torch.empty(2, 7, 12), 3)))
declare_pairs(split_heads, Layout(merged_heads_of, (torch.empty(2, 3, 7, 4),), place=1))
