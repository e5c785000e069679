"""`attention_rollout`: how attention flows through all layers.

The oracle walks every path from an input token to an output token and adds up what flows along it. The known
mistakes follow all paths, and go wrong before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor, shape, short
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l08_inside import LESSON

AXES = ("image", "output token", "input token")
BATCH, HEADS, TOKENS, DEPTH = 2, 4, 5, 3


def followed(steps: Sequence[Tensor]) -> Tensor:
    """What flows from each input to each output token, summed over all paths: (batch, tokens, tokens).

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


def half_itself(layer: Tensor) -> Tensor:
    """What a token takes of each in one layer: half of itself, half of what its heads look at in the mean."""
    itself = torch.eye(layer.shape[-1], dtype=torch.float64, device=layer.device)
    return torch.lerp(itself, layer.double().mean(1), 0.5).to(layer.dtype)


def right_rollout(layers: Sequence[Tensor]) -> Tensor:
    """The oracle: (batch, tokens, tokens)."""
    return followed([half_itself(layer) for layer in layers])


def attention_layers(probe: Probe, depth: int = DEPTH, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Attention weights of ``depth`` layers, (BATCH, HEADS, TOKENS, TOKENS) each; their rows sum to 1."""
    return [probe.normal(BATCH, HEADS, TOKENS, TOKENS, scale=2.0).softmax(-1).to(dtype) for _ in range(depth)]


attention_rollout = Exercise("attention_rollout", LESSON, in_training=InTraining.UNSEEN)


@attention_rollout.check(guard=True)
def each_image_gets_one_table(student: Student, probe: Probe) -> None:
    """However many layers and heads there are, each image gets one (tokens, tokens) table."""
    for depth, subject in ((1, "attention_rollout of 1 layer"), (DEPTH, f"attention_rollout of {DEPTH} layers")):
        expect_tensor(student(attention_layers(probe, depth)), (BATCH, TOKENS, TOKENS), subject)


@attention_rollout.check(needs=each_image_gets_one_table, guard=True)
def every_row_sums_to_one(student: Student, probe: Probe) -> None:
    """Every row sums to one: an output token is made of the input tokens and of nothing else."""
    rollout = expect_tensor(student(attention_layers(probe)), (BATCH, TOKENS, TOKENS), student.name).detach()
    sums = rollout.double().sum(dim=-1)
    if (sums - 1).abs().max() < 1e-4:  # float32 sums of five numbers are right to 1e-6
        return
    columns = rollout.double().sum(dim=-2)
    elsewhere = "; its columns do" if (columns - 1).abs().max() < 1e-4 else ""
    least, most = f"{sums.min():.3g}", f"{sums.max():.3g}"
    raise Failure(
        f"the sums of the rows {f'are all {least}' if least == most else f'run from {least} to {most}'}{elsewhere}",
        "1 for every row",
        "What do the rows of one layer sum to once the token itself is added, and what has to be done about it?",
    )


@attention_rollout.check(needs=each_image_gets_one_table)
def one_layer_is_half_the_token_itself(student: Student, probe: Probe) -> None:
    """In one layer a token is half itself and half the mean of what its heads look at."""
    layers = attention_layers(probe, depth=1)
    look = "Take one layer with one head and two tokens, and do it with a pencil. Which number is the first to differ?"
    expect_equal(student(layers), right_rollout(layers), "attention_rollout of one layer", AXES, look=look)


@attention_rollout.check(needs=each_image_gets_one_table)
def a_later_layer_mixes_what_earlier_ones_mixed(student: Student, probe: Probe) -> None:
    """A later layer mixes what the earlier ones have mixed, whether there are two layers or four."""
    for depth in (2, 4):
        layers = attention_layers(probe, depth)
        look = (
            "A row asks: what is this output token made of? Of which tensor must the rows of the last layer pick rows?"
        )
        expect_equal(student(layers), right_rollout(layers), f"attention_rollout of {depth} layers", AXES, look=look)


@attention_rollout.check(needs=a_later_layer_mixes_what_earlier_ones_mixed, guard=True)
def the_dtype_is_kept(student: Student, probe: Probe) -> None:
    """float16 weights give a float16 table, and float64 ones a float64 table."""
    for dtype in (torch.float16, torch.float64):
        layers = attention_layers(probe, 2, dtype)
        expect_equal(student(layers), right_rollout(layers), f"attention_rollout of {short(dtype)} weights", AXES)


@attention_rollout.check(needs=each_image_gets_one_table, guard=True)
def the_weights_are_left_alone(student: Student, probe: Probe) -> None:
    """The weights that go in are not changed."""
    layers = attention_layers(probe)
    notes = student.run_fixture("rollout", inputs=[layers])
    expect_tensor(notes["returned"], (BATCH, TOKENS, TOKENS), student.name)
    changed = [number for number, each in enumerate(notes["layers"]) if not torch.equal(each, layers[number])]
    if changed:
        raise Failure(
            f"attention_rollout changed the weights of layer {changed[0]}, of the shape {shape(layers[changed[0]])}",
            "the same numbers in them after the call as before",
            "Which operation works in place: `+=`, a name that ends in an underscore, an assignment into a slice?",
        )
    if notes["kept"] != len(layers):
        seen = f"of {len(layers)} layers in the list that went in {notes['kept']} are left"
        raise Failure(seen, "the list as it was", "Which method of a list takes something out of it?")


@attention_rollout.check(needs=each_image_gets_one_table, worth=0.5, guard=True)
def it_computes_where_the_weights_are(student: Student, probe: Probe) -> None:
    """The table lies on the device of the weights."""
    expect_device_of_input(student, attention_layers(probe))


@attention_rollout.check(needs=each_image_gets_one_table, guard=True)
def one_image_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A single image gets a table, too, and keeps its batch axis."""
    layers = [layer[:1] for layer in attention_layers(probe)]
    expect_equal(student(layers), right_rollout(layers), "attention_rollout of a single image", AXES)


@attention_rollout.check(needs=each_image_gets_one_table, guard=True)
def no_layer_at_all_is_refused(student: Student, probe: Probe) -> None:
    """An empty list of layers raises ValueError."""
    error = student.error_of([])
    if error is None or not error.is_a("ValueError"):
        did = "accepted" if error is None else f"raised {error} on"
        look = "The exercise's text says which error to raise; test for it before you compute."
        raise Failure(f"attention_rollout {did} an empty list", "a ValueError", look)


attention_rollout.example("""
>>> first, second = torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
>>> attention_rollout([first[None, None], second[None, None]])
tensor([[[0.5000, 0.5000],
         [0.2500, 0.7500]]])
""")


ROLLOUT = "08_inside, All layers at once"


def _itself(layer: Tensor) -> Tensor:
    return torch.eye(layer.shape[-1], dtype=layer.dtype, device=layer.device).expand(len(layer), -1, -1)


def _layers(weights: Sequence[Tensor]) -> Sequence[Tensor]:
    """The same; ValueError where there are none, which is another mistake than those below."""
    if len(weights) == 0:
        raise ValueError("no layer")
    return weights


def _shared_out(step: Tensor) -> Tensor:
    return torch.nn.functional.normalize(step, p=1.0, dim=-1)


@attention_rollout.misconception("What does a block add its attention to?", ROLLOUT)
def identity_forgotten(weights: Sequence[Tensor]) -> Tensor:
    """The layers' mean attentions are multiplied without an identity, as if there were no residual stream."""
    return followed([layer.mean(1) for layer in _layers(weights)])


@attention_rollout.misconception("What does a row sum to once the token itself has been added?", ROLLOUT)
def rows_not_shared_out_again(weights: Sequence[Tensor]) -> Tensor:
    """The identity is added, and the rows, which now sum to 2, are not divided, so everything doubles in each layer."""
    return followed([layer.mean(1) + _itself(layer) for layer in _layers(weights)])


@attention_rollout.misconception("Which layer comes last, and on which side of the product does it stand?", ROLLOUT)
def earlier_layers_on_the_left(weights: Sequence[Tensor]) -> Tensor:
    """The tables are multiplied in the wrong order, as if the last layer came first."""
    return followed([half_itself(layer) for layer in reversed(_layers(weights))])


@attention_rollout.misconception("Is the head with the largest weight the whole layer?", ROLLOUT)
def strongest_head_only(weights: Sequence[Tensor]) -> Tensor:
    """The largest weight of all heads is taken where their mean is asked for."""
    return followed([_shared_out(layer.amax(1) + _itself(layer)) for layer in _layers(weights)])


@attention_rollout.misconception("How much does the token itself weigh beside the heads of its layer?", ROLLOUT)
def heads_summed(weights: Sequence[Tensor]) -> Tensor:
    """The heads are summed where their mean is asked for, so the token itself counts no more than one head."""
    return followed([_shared_out(layer.sum(1) + _itself(layer)) for layer in _layers(weights)])


@attention_rollout.misconception("Do two layers stand side by side, or does one read what the other wrote?", ROLLOUT)
def layers_averaged(weights: Sequence[Tensor]) -> Tensor:
    """The layers' tables are averaged, but each layer reads what the one before it has mixed."""
    return torch.stack([half_itself(layer) for layer in _layers(weights)]).mean(0)


@attention_rollout.misconception("Which layers have mixed the tokens that the last layer looks at?", ROLLOUT)
def last_layer_only(weights: Sequence[Tensor]) -> Tensor:
    """The last layer alone is looked at."""
    return half_itself(_layers(weights)[-1])


@attention_rollout.misconception("Which of Python's operators multiplies tables row by column?", ROLLOUT)
def multiplied_place_by_place(weights: Sequence[Tensor]) -> Tensor:
    """The layers' tables are multiplied number by number; mixing what was mixed is a product of matrices."""
    return torch.stack([half_itself(layer) for layer in _layers(weights)]).prod(0)


@attention_rollout.misconception("How many residuals does the stream pass on its way through the model?", ROLLOUT)
def identity_once_at_the_end(weights: Sequence[Tensor]) -> Tensor:
    """The identity is added once, to the product; every layer has a residual of its own."""
    return torch.lerp(_itself(_layers(weights)[0]), followed([layer.mean(1) for layer in _layers(weights)]), 0.5)


@attention_rollout.misconception("Is the first layer a layer like the others?", ROLLOUT)
def first_layer_without_itself(weights: Sequence[Tensor]) -> Tensor:
    """The product starts with the first layer without an identity; only the later layers get theirs."""
    return followed([_layers(weights)[0].mean(1), *map(half_itself, weights[1:])])


@attention_rollout.misconception("Which weights have to sum to 1: those in a row, or those in a column?", ROLLOUT)
def columns_sum_to_one(weights: Sequence[Tensor]) -> Tensor:
    """The columns are made to sum to 1 in each layer, but it is a row that says what a token is made of."""
    return followed([_shared_out((layer.mean(1) + _itself(layer)).mT).mT for layer in _layers(weights)])


@attention_rollout.misconception("What are the four axes of the weights, and which of them are heads?", ROLLOUT)
def averaged_over_the_images(weights: Sequence[Tensor]) -> Tensor:
    """The mean runs over the images and the heads are kept; it should run over the heads."""
    return followed([half_itself(layer.transpose(0, 1)) for layer in _layers(weights)])


@attention_rollout.misconception("How many images came in, and how many went out?", ROLLOUT)
def first_image_only(weights: Sequence[Tensor]) -> Tensor:
    """The answer is that of the first image, and the batch axis is gone."""
    return right_rollout(_layers(weights))[0]


@attention_rollout.misconception("Does `+=` make a new tensor?", ROLLOUT)
def written_into_the_weights(weights: Sequence[Tensor]) -> Tensor:
    """The identity is added to the caller's weights in place."""
    rollout = right_rollout(_layers(weights))
    for layer in weights:
        layer += torch.eye(layer.shape[-1], dtype=layer.dtype, device=layer.device)
    return rollout


@attention_rollout.misconception(
    "Which dtype, and which device, does a table of ones have when none is named?", ROLLOUT
)
def identity_of_another_dtype(weights: Sequence[Tensor]) -> Tensor:
    """The identity is made in float32 whatever the weights are, so that half precision is lost on the way."""
    return right_rollout(_layers(weights)) * torch.ones(1)


@attention_rollout.misconception("What does your function do with an empty list?", ROLLOUT)
def no_layer_left_to_python(weights: Sequence[Tensor]) -> Tensor:
    """Nothing is tested, so an empty list ends in an IndexError that does not say what is wrong."""
    rollout = weights[0]
    return right_rollout(weights).to(rollout.dtype)


@attention_rollout.misconception("On which device is a table of ones that is made without naming one?", ROLLOUT)
def identity_on_the_cpu(weights: Sequence[Tensor]) -> Tensor:
    """The identity is made on the CPU, wherever the weights are, and on a GPU the two cannot be added."""
    tables = [(layer.mean(1) + torch.eye(layer.shape[-1], dtype=layer.dtype)) / 2 for layer in _layers(weights)]
    return followed(tables)


@attention_rollout.misconception("Which axes does squeeze() drop when there is one image?", ROLLOUT)
def batch_of_one_squeezed(weights: Sequence[Tensor]) -> Tensor:
    """squeeze() drops every axis of size 1, and with a single image the batch is one."""
    return right_rollout(_layers(weights)).squeeze(0)


Steps = list[Tensor]


def _rolled(
    weights: Sequence[Tensor],
    *,
    heads: Callable[[Tensor], Tensor] = lambda layer: layer.mean(1),
    itself: Callable[[Tensor], Tensor] = _itself,
    shared: Callable[[Tensor], Tensor] = _shared_out,
    ordered: Callable[[Steps], Steps] = list,
    product: Callable[[Steps], Tensor] = followed,
    postprocess: Callable[[Tensor, Sequence[Tensor]], Tensor] = lambda rollout, weights: rollout,
) -> Tensor:
    layers = [heads(layer.double()) for layer in _layers(weights)]
    rollout = product(ordered([shared(layer + itself(layer)) for layer in layers]))
    return postprocess(rollout.to(weights[0].dtype), weights)


def _overwritten(rollout: Tensor, weights: Sequence[Tensor]) -> Tensor:
    for layer in weights:
        layer += torch.eye(layer.shape[-1], dtype=layer.dtype, device=layer.device)
    return rollout


declare(
    attention_rollout,
    Parts(
        _rolled,
        {
            identity_forgotten: {"itself": torch.zeros_like},
            rows_not_shared_out_again: {"shared": lambda step: step},
            earlier_layers_on_the_left: {"ordered": lambda steps: steps[::-1]},
            strongest_head_only: {"heads": lambda layer: layer.amax(1)},
            heads_summed: {"heads": lambda layer: layer.sum(1)},
            layers_averaged: {"product": lambda steps: torch.stack(steps).mean(0)},
            last_layer_only: {"product": lambda steps: steps[-1]},
            multiplied_place_by_place: {"product": lambda steps: torch.stack(steps).prod(0)},
            columns_sum_to_one: {"shared": lambda step: _shared_out(step.mT).mT},
            averaged_over_the_images: {"heads": lambda layer: layer.mean(0)},
            first_image_only: {"postprocess": lambda rollout, weights: rollout[0]},
            written_into_the_weights: {"postprocess": _overwritten},
        },
    ),
)
