"""Hidden checks of split_heads and merge_heads."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_gradients_of_inputs,
    expect_left_alone,
    expect_result_of_its_own,
    expect_value_error,
)
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention.split_heads.claims import SPLIT_AXES, TOKEN_AXES

SIDE_BY_SIDE = "Print the result for a tensor whose numbers count up. Who sits beside whom in memory?"
BACKWARDS = "Undo the steps of split_heads one by one, the last one first."


def draw_sizes(probe):
    """(batch, num_heads, tokens, head_dim) with more heads than tokens, with fewer, and larger ones."""
    batch, head_dim, *rest = probe.sizes(4)
    few, many = sorted(rest)
    return (batch, many, few, head_dim), (head_dim, few, many, batch), probe.sizes(4, low=10, high=19)


def whence(x, axes):
    """Say which entry of ``x``, a tensor of distinct numbers, stands where another one should."""

    def entry(number):
        places = (x == number).nonzero()
        if len(places) != 1:
            return None
        return ", ".join(f"{axis} {int(place)}" for axis, place in zip(axes, places[0], strict=True))

    def describe(actual, expected):
        first = tuple((actual != expected).nonzero()[0].tolist())
        found, wanted = entry(actual[first]), entry(expected[first])
        return (f"entry {first} is that of {found}", f"the entry of {wanted}") if found and wanted else None

    return describe


def expect_split(student, reference, x, num_heads, described=""):
    """Compare split_heads of x (batch, tokens, embed_dim) with the right one; give the student's back."""
    name = f"split_heads in {num_heads} head{'s' if num_heads > 1 else ''}{described}"
    split = student(x, num_heads)
    expect_equal(split, reference.split_heads(x, num_heads), name, SPLIT_AXES, whence(x, TOKEN_AXES), SIDE_BY_SIDE)
    return split


def expect_merged(student, reference, x, described=""):
    """Compare merge_heads of x (batch, num_heads, tokens, head_dim) with the right one; give the student's back."""
    merged = student.call("merge_heads", x)
    name = f"merge_heads of {x.shape[1]} head{'s' if x.shape[1] > 1 else ''}{described}"
    expect_equal(merged, reference.merge_heads(x), name, TOKEN_AXES, whence(x, SPLIT_AXES), BACKWARDS)
    return merged


@pytest.mark.exercise("split_heads", points=1.5)
def test_a_head_gets_its_slice_of_every_token(student, reference, probe):
    """Head h gets head_dim neighboring numbers of every token, those from h · head_dim on."""
    for batch, num_heads, tokens, head_dim in draw_sizes(probe):
        x = probe.permutation(batch * tokens * num_heads * head_dim).float()
        expect_split(student, reference, x.reshape(batch, tokens, num_heads * head_dim), num_heads)


@pytest.mark.exercise("split_heads", points=1.5)
def test_a_token_gets_its_pieces_back(student, reference, probe):
    """merge_heads lays the pieces of each token side by side, head 0 first."""
    for sizes in draw_sizes(probe):
        x = probe.permutation(torch.Size(sizes).numel()).float()
        expect_merged(student, reference, x.reshape(sizes))


@pytest.mark.exercise("split_heads", points=0.75)
def test_one_of_anything_will_do(student, reference, probe):
    """One head, heads of one number, one token and a batch of one work too."""
    batch, tokens, num_heads, head_dim = probe.sizes(4)
    for sizes in (
        (batch, tokens, 1, head_dim),
        (1, tokens, num_heads, 1),
        (batch, 1, num_heads, head_dim),
    ):
        first, second, heads, width = sizes
        expect_split(student, reference, probe.normal(first, second, heads * width), heads, f" for {sizes[:2]}")
        expect_merged(student, reference, probe.normal(first, heads, second, width), f" for {sizes[:2]}")


@pytest.mark.exercise("split_heads", points=0.75)
def test_scattered_memory_will_do(student, reference, probe):
    """Both take tensors that are not contiguous in memory."""
    batch, tokens, num_heads, head_dim = probe.sizes(4)
    x = probe.normal(batch, num_heads * head_dim, tokens).mT
    expect_split(student, reference, x, num_heads, " of a non-contiguous tensor")
    heads = probe.normal(batch, tokens, num_heads, head_dim).transpose(1, 2)
    expect_merged(student, reference, heads, " of a non-contiguous tensor")
    heads = probe.normal(head_dim, tokens, num_heads, batch).permute(3, 2, 1, 0)
    expect_merged(student, reference, heads, " of a non-contiguous tensor")


@pytest.mark.exercise("split_heads", points=0.25)
def test_the_dtype_is_kept(student, reference, probe):
    """Whole numbers stay whole numbers, float16 stays float16 and float64 keeps all its digits."""
    batch, tokens, num_heads, head_dim = probe.sizes(4)
    wide = probe.normal(batch, tokens, num_heads * head_dim, dtype=torch.float64) / 3
    for x in (wide, wide.half(), (wide * 2**40).long()):
        heads = reference.split_heads(x, num_heads)
        split = expect_split(student, reference, x, num_heads, f" of {short(x.dtype)}")
        merged = expect_merged(student, reference, heads, f" of {short(x.dtype)}")
        for name, result, right in (("split_heads", split, heads), ("merge_heads", merged, x)):
            if not torch.equal(result, right):  # nothing is computed here, so nothing may be rounded
                look = "Which line goes through another dtype on the way?"
                raise Failure(f"{name} rounds numbers of {short(x.dtype)}", "the very numbers that went in", look)


@pytest.mark.exercise("split_heads", points=0.5)
def test_a_number_of_heads_that_does_not_fit_is_refused(student, reference, probe):
    """An embed_dim that num_heads does not divide raises ValueError naming both numbers, and one that fits none."""
    batch, tokens, num_heads, head_dim = probe.sizes(4, low=3)
    fitting = num_heads * head_dim
    expect_split(student, reference, probe.normal(batch, tokens, fitting), num_heads)
    for embed_dim, heads in ((fitting + 1, num_heads), (num_heads, fitting)):
        described = f"embed_dim {embed_dim} with {heads} heads"
        expect_value_error(student, (probe.normal(batch, tokens, embed_dim), heads), (embed_dim, heads), described)


@pytest.mark.exercise("split_heads", points=0.25)
def test_the_gradient_finds_its_way_back(student, reference, probe):
    """A gradient flows back through both to the numbers that it came from."""
    batch, tokens, num_heads, head_dim = probe.sizes(4)
    x = probe.normal(batch, tokens, num_heads * head_dim)
    expect_split(student, reference, x, num_heads)
    heads = probe.normal(batch, num_heads, tokens, head_dim)
    expect_merged(student, reference, heads)
    for name, given in (("split_heads", (x, num_heads)), ("merge_heads", (heads,))):
        wanted = Student({name: getattr(reference, name)}).input_gradients(*given)
        found = student.input_gradients(*given, of=name)
        expect_gradients_of_inputs(found[:1], wanted[:1], [f"the input of {name}"])


@pytest.mark.exercise("split_heads", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The examples in both docstrings give the results that they show, and other numbers give the right results too."""
    batch, tokens, num_heads, head_dim = probe.sizes(4)
    expect_split(student, reference, probe.normal(batch, tokens, num_heads * head_dim), num_heads)
    expect_merged(student, reference, probe.normal(batch, num_heads, tokens, head_dim))
    expect_example(student)


@pytest.mark.exercise("split_heads", points=0.25)
def test_they_work_where_their_inputs_lie(student, reference, probe, device):
    """The results lie on the device of the inputs, those are left as they were, and no later call changes a result."""
    batch, tokens, num_heads, head_dim = probe.sizes(4)
    x = probe.normal(batch, tokens, num_heads * head_dim).to(device)
    expect_split(student, reference, x, num_heads)
    expect_merged(student, reference, probe.normal(batch, num_heads, tokens, head_dim).to(device))
    expect_left_alone(student)
    expect_result_of_its_own(student, (x, num_heads), (x + 1, num_heads))
