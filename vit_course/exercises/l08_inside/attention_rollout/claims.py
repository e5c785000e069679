"""`attention_rollout`: how attention flows through all layers.

The oracle walks every path from an input token to an output token and adds up what flows along it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_equal, expect_tensor, format_dtype, format_shape
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, ignore_wrong_numbers
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l08_inside import LESSON

AXES = ("image", "output token", "input token")
DEPTH = 3
_ONE_LAYER = (
    "Take one layer with one head and two tokens, and do it with a pencil. Which number is the first to differ?"
)
_ORDER = "A row asks: what is this output token made of? Of which tensor must the rows of the last layer pick rows?"


def sum_flow_over_paths(steps: Sequence[Tensor]) -> Tensor:
    """Compute what flows from each input to each output token, summed over all paths: (batch, tokens, tokens).

    Args:
        steps: one (batch, tokens, tokens) per layer, first layer first; what a token (row) takes of each (column).
    """
    batch, tokens = steps[0].shape[:2]
    there = torch.arange(tokens, device=steps[0].device)
    paths = torch.cartesian_prod(*[there] * (len(steps) + 1))  # (paths, 1 + depth), input token first
    shares = torch.ones(batch, len(paths), dtype=torch.float64, device=there.device)
    for number, step in enumerate(steps):
        shares = shares * step.double()[:, paths[:, number + 1], paths[:, number]]
    total = torch.zeros_like(shares[:, :1]).repeat(1, tokens * tokens)
    total.index_add_(1, paths[:, -1] * tokens + paths[:, 0], shares)
    return total.reshape(batch, tokens, tokens).to(steps[0].dtype)


def mix_attention_with_identity(layer: Tensor) -> Tensor:
    """Compute what a token takes of each in one layer: half of itself, half of what its heads look at in the mean."""
    itself = torch.eye(layer.shape[-1], dtype=torch.float64, device=layer.device)
    return torch.lerp(itself, layer.double().mean(1), 0.5).to(layer.dtype)


def compute_expected_rollout(layers: Sequence[Tensor]) -> Tensor:
    """The oracle: (batch, tokens, tokens)."""
    return sum_flow_over_paths([mix_attention_with_identity(layer) for layer in layers])


def draw_attention_layers(probe: Probe, depth: int = DEPTH, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Attention weights of ``depth`` layers, (batch, num_heads, tokens, tokens) each; their rows sum to 1."""
    batch, heads, tokens = probe.sizes(3, high=7, shown=(2, 4, 5))
    return [probe.normal(batch, heads, tokens, tokens, scale=2.0).softmax(-1).to(dtype) for _ in range(depth)]


def _expected_shape_of(layers: Sequence[Tensor]) -> tuple[int, int, int]:
    batch, _, tokens, _ = layers[0].shape
    return batch, tokens, tokens


attention_rollout = Exercise("attention_rollout", LESSON, in_training=InTraining.UNSEEN)


@attention_rollout.check(guard=True)
def each_image_gets_one_table(student: Student, probe: Probe) -> None:
    """However many layers and heads there are, each image gets one (tokens, tokens) table."""
    for depth, subject in ((1, "attention_rollout of 1 layer"), (DEPTH, f"attention_rollout of {DEPTH} layers")):
        layers = draw_attention_layers(probe, depth)
        expect_tensor(student(layers), _expected_shape_of(layers), subject)


@attention_rollout.check(needs=each_image_gets_one_table, guard=True)
def every_row_sums_to_one(student: Student, probe: Probe) -> None:
    """Every row sums to one: an output token is made of the input tokens and of nothing else."""
    layers = draw_attention_layers(probe)
    rollout = expect_tensor(student(layers), _expected_shape_of(layers), student.name).detach()
    sums = rollout.double().sum(dim=-1)
    if (sums - 1).abs().max() < 1e-4:  # float32 sums of so few numbers are right to 1e-6
        return
    columns = rollout.double().sum(dim=-2)
    elsewhere = "; its columns do" if (columns - 1).abs().max() < 1e-4 else ""
    least, most = f"{sums.min():.3g}", f"{sums.max():.3g}"
    raise Failure(
        f"the sums of the rows {f'are all {least}' if least == most else f'run from {least} to {most}'}{elsewhere}",
        "1 for every row",
        "What do the rows of one layer sum to once the token itself is added, and what has to be done about it?",
    )


@attention_rollout.check(needs=each_image_gets_one_table, points=0.5)
def one_layer_is_half_the_token_itself(student: Student, probe: Probe) -> None:
    """In one layer a token is half itself and half the mean of what its heads look at."""
    layers = draw_attention_layers(probe, depth=1)
    expect_equal(
        student(layers), compute_expected_rollout(layers), "attention_rollout of one layer", AXES, look=_ONE_LAYER
    )


@attention_rollout.check(needs=each_image_gets_one_table, points=0.75)
def a_later_layer_mixes_what_earlier_ones_mixed(student: Student, probe: Probe) -> None:
    """A later layer mixes what the earlier ones have mixed, whether there are two layers or four."""
    for depth in probe.sizes(2, high=5, shown=(2, 4)):
        layers = draw_attention_layers(probe, depth)
        one_is_right = are_close(
            expect_tensor(student(layers[:1]), _expected_shape_of(layers), student.name),
            mix_attention_with_identity(layers[0]),
        )
        look = _ORDER if one_is_right else _ONE_LAYER
        for these in (layers, layers[::-1]):  # other numbers of the same sizes
            expect_equal(
                student(these), compute_expected_rollout(these), f"attention_rollout of {depth} layers", AXES, look=look
            )


@attention_rollout.check(needs=a_later_layer_mixes_what_earlier_ones_mixed, guard=True, points=0.5)
def the_dtype_is_kept(student: Student, probe: Probe, device: str | torch.device = "cpu") -> None:
    """float16 weights give a float16 table, and float64 ones a float64 table."""
    for dtype in (torch.float16, torch.float64):
        layers = [layer.to(device) for layer in draw_attention_layers(probe, 2, dtype)]
        expect_equal(
            student(layers),
            compute_expected_rollout(layers),
            f"attention_rollout of {format_dtype(dtype)} weights",
            AXES,
        )


@attention_rollout.check(
    needs=each_image_gets_one_table, guard=True, points=0.15, first=a_later_layer_mixes_what_earlier_ones_mixed
)
def the_weights_are_left_alone(student: Student, probe: Probe) -> None:
    """The weights that go in are not changed."""
    layers = draw_attention_layers(probe)
    notes = student.run_fixture("rollout", inputs=[layers])
    expect_tensor(notes["returned"], _expected_shape_of(layers), student.name)
    changed = [number for number, each in enumerate(notes["layers"]) if not torch.equal(each, layers[number])]
    if changed:
        raise Failure(
            f"attention_rollout changed the weights of layer {changed[0]}, of the shape "
            f"{format_shape(layers[changed[0]])}",
            "the same numbers in them after the call as before",
            "Which operation works in place: `+=`, a name that ends in an underscore, an assignment into a slice?",
        )
    if notes["kept"] != len(layers):
        seen = f"of {len(layers)} layers in the list that went in {notes['kept']} are left"
        raise Failure(seen, "the list as it was", "Which method of a list takes something out of it?")


@attention_rollout.check(
    needs=a_later_layer_mixes_what_earlier_ones_mixed,
    worth=0.5,
    guard=True,
    points=0.25,
    first=a_later_layer_mixes_what_earlier_ones_mixed,
)
def it_computes_where_the_weights_are(student: Student, probe: Probe) -> None:
    """The table lies on the device of the weights."""
    expect_device_of_input(student, draw_attention_layers(probe))


@attention_rollout.check(
    needs=a_later_layer_mixes_what_earlier_ones_mixed,
    guard=True,
    points=0.25,
    first=a_later_layer_mixes_what_earlier_ones_mixed,
)
def one_image_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A single image gets a table, too, and keeps its batch axis."""
    layers = [layer[:1] for layer in draw_attention_layers(probe)]
    expect_equal(student(layers), compute_expected_rollout(layers), "attention_rollout of a single image", AXES)


@attention_rollout.check(
    needs=each_image_gets_one_table,
    guard=True,
    points=0.25,
    first=ignore_wrong_numbers(a_later_layer_mixes_what_earlier_ones_mixed),
)
def no_layer_at_all_is_refused(student: Student, probe: Probe) -> None:
    """An empty list of layers raises ValueError."""
    error = student.catch_error([])
    if error is None or not error.is_a("ValueError"):
        did = "accepted" if error is None else f"raised {error} on"
        look = "The exercise's text says which error to raise; test for it before you compute."
        raise Failure(f"attention_rollout {did} an empty list", "a ValueError", look)


attention_rollout.example(
    """
>>> first, second = torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
>>> attention_rollout([first[None, None], second[None, None]])
tensor([[[0.5000, 0.5000],
         [0.2500, 0.7500]]])
""",
    points=0.25,
    first=a_later_layer_mixes_what_earlier_ones_mixed,
)


read_mistakes(attention_rollout, __name__)
