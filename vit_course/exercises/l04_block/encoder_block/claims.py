"""`EncoderBlock`: attention and MLP, each after a norm and beside a residual connection; and `fix_block`, its bug
hunt.

The oracles are torch's own functions on the loaded weights: ``F.layer_norm``, ``F.linear`` and
``F.multi_head_attention_forward``. The wrong blocks hold the right parameters and compute with torch's functions;
what is wrong is how they put the parts together.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    expect_gradients_of_inputs,
    expect_left_alone,
    expect_modes_kept,
    gradient_of,
    located,
)
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l04_block import LESSON
from vit_course.exercises.l04_block.layer_norm.claims import TOKEN_AXES
from vit_course.exercises.l04_block.mlp.claims import Weights, expect_gradients, transformed
from vit_course.exercises.repeatability import expect_same_in_every_run

PARTS = ("norm1", "attention", "norm2", "mlp")
EPS = 1e-6
EMBED_DIM, NUM_HEADS = 12, 3
ARGUMENTS = EMBED_DIM, NUM_HEADS, 4.0
WRITES_ATTENTION = ("attention.projection.weight", "attention.projection.bias")
WRITES_MLP = ("mlp.fc2.weight", "mlp.fc2.bias")


def attended(weights: Weights, x: Tensor, num_heads: int) -> Tensor:
    """The oracle of the attention branch's second half, for x (batch, tokens, embed_dim)."""
    tokens_first = x.transpose(0, 1)
    output, _ = F.multi_head_attention_forward(
        tokens_first, tokens_first, tokens_first, x.shape[-1], num_heads,
        weights["attention.qkv.weight"], weights.get("attention.qkv.bias"), None, None, False, 0.0,
        weights["attention.projection.weight"], weights["attention.projection.bias"], need_weights=False,
    )  # fmt: skip
    return output.transpose(0, 1)


def normed(weights: Weights, name: str, x: Tensor, eps: float = EPS) -> Tensor:
    """The oracle of the norm called ``name``."""
    return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], eps)


EncoderBlock = Exercise("EncoderBlock", LESSON, is_class=True)


def _shapes(hidden_dim: int) -> dict[str, tuple[int, ...]]:
    norm = {"weight": (EMBED_DIM,), "bias": (EMBED_DIM,)}
    linears = {
        "attention.qkv": (3 * EMBED_DIM, EMBED_DIM),
        "attention.projection": (EMBED_DIM, EMBED_DIM),
        "mlp.fc1": (hidden_dim, EMBED_DIM),
        "mlp.fc2": (EMBED_DIM, hidden_dim),
    }
    shapes: dict[str, tuple[int, ...]] = {
        f"{n}.{part}": size for n in ("norm1", "norm2") for part, size in norm.items()
    }
    for name, size in linears.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    return shapes


def _block(student: Student, probe: Probe, *silent: str) -> tuple[StudentModule, dict[str, Tensor]]:
    """A block of mlp_ratio 4 with random weights, those of the ``silent`` parameters zero."""
    module = student.build(*ARGUMENTS)
    weights = probe.weights(_shapes(4 * EMBED_DIM))
    weights |= {name: torch.zeros_like(weights[name]) for name in silent}
    module.load(weights)
    return module, weights


def _first_half(weights: Weights, x: Tensor, eps: float = EPS) -> Tensor:
    return x + attended(weights, normed(weights, "norm1", x, eps), NUM_HEADS)


def _second_half(weights: Weights, x: Tensor, eps: float = EPS) -> Tensor:
    return x + transformed(weights, normed(weights, "norm2", x, eps), "mlp.")


def _stages(weights: Weights, x: Tensor) -> dict[str, Tensor]:
    """What a right block's parts are given and give, in order."""
    first = normed(weights, "norm1", x)
    stream = _first_half(weights, x)
    second = normed(weights, "norm2", stream)
    return {
        "norm1:in": x,
        "attention:in": first,
        "attention:out": stream - x,
        "norm2:in": stream,
        "mlp:in": second,
        "mlp:out": transformed(weights, second, "mlp."),
    }


def _expect_stream(module: StudentModule, weights: Weights, x: Tensor, look: str) -> None:
    """Fail unless a block gives what a right one gives; zeros say that nothing of the tokens is left."""
    actual, expected = module(x), _second_half(weights, _first_half(weights, x))
    if not expect_tensor(actual, expected.shape, "the block's output").any():
        zero = "What becomes of the stream in your forward when a branch gives zero?"
        raise Failure("the block's output is 0 everywhere: nothing is left of the tokens", "the tokens in it", zero)
    where = located(module, _stages(weights, x), PARTS, x, axes=TOKEN_AXES)
    expect_equal(actual, expected, "the block's output", TOKEN_AXES, where, look)


@EncoderBlock.check(guard=True)
def it_is_made_of_four_named_parts(student: Student, probe: Probe) -> None:
    """It is made of norm1, attention, norm2 and mlp, and tokens keep their shape."""
    module, _ = _block(student, probe)
    for batch, tokens in ((2, 5), (3, 7), (1, 5)):  # one block for all of them
        expect_tensor(module(probe.normal(batch, tokens, EMBED_DIM)), (batch, tokens, EMBED_DIM), "the block's output")


@EncoderBlock.check(guard=True)
def its_layers_are_made_before_forward(student: Student, probe: Probe) -> None:
    """All its parameters exist as soon as the block is built; forward adds none."""
    module = student.build(EMBED_DIM, NUM_HEADS, 4.0)
    before = set(module.tensors())
    module(probe.normal(2, 5, EMBED_DIM))
    new = sorted(set(module.tensors()) - before)
    # what forward gives is not the matter here, and random weights would make it another for everyone
    student.record[:] = [("made in forward", tuple(new))]
    if new:
        raise Failure(
            f"forward made {len(new)} new tensors, among them `{new[0]}`",
            "none: an optimizer made before the first forward would never learn of them",
            "In which of your two methods is a layer made, and in which is it used?",
        )


@EncoderBlock.check(needs=it_is_made_of_four_named_parts, guard=True)
def the_mlp_is_as_wide_as_mlp_ratio_says(student: Student, probe: Probe) -> None:
    """The hidden layer has embed_dim · mlp_ratio units, and 4 · embed_dim where no ratio is given."""
    for ratio in (1.5, 2.5, 4):
        module = student.build(EMBED_DIM, NUM_HEADS, *([] if ratio == 4 else [ratio]))
        module.load(probe.weights(_shapes(round(EMBED_DIM * ratio))))


@EncoderBlock.check(needs=it_is_made_of_four_named_parts, guard=True)
def nothing_is_left_to_chance(student: Student, probe: Probe) -> None:
    """The same tokens give the same result twice."""
    module, weights = _block(student, probe)
    x = probe.normal(1, 3, EMBED_DIM)
    expect_same_in_every_run(student, module, weights, x)


@EncoderBlock.check(needs=nothing_is_left_to_chance, guard=True)
def a_block_that_adds_nothing_is_the_identity(student: Student, probe: Probe) -> None:
    """With the weights and biases of all Linears at zero, the tokens are returned unchanged."""
    linears = [name for name in _shapes(1) if not name.startswith("norm")]
    module, weights = _block(student, probe, *linears)
    x = 3 * probe.normal(2, 5, EMBED_DIM)
    look = "Both branches add zero here. What else does your forward do to the stream?"
    _expect_stream(module, weights, x, look)


@EncoderBlock.check(needs=nothing_is_left_to_chance)
def attention_is_added_to_the_stream(student: Student, probe: Probe) -> None:
    """With zeros in mlp.fc2, the block adds to the stream what attention makes of norm1 of the stream."""
    module, weights = _block(student, probe, *WRITES_MLP)
    x = 3 * probe.normal(2, 5, EMBED_DIM)
    look = "What does the attention read, and to what is its output added?"
    _expect_stream(module, weights, x, look)


@EncoderBlock.check(needs=nothing_is_left_to_chance)
def the_mlp_is_added_to_the_stream(student: Student, probe: Probe) -> None:
    """With zeros in attention.projection, the block adds to the stream what the mlp makes of norm2 of the stream."""
    module, weights = _block(student, probe, *WRITES_ATTENTION)
    x = 3 * probe.normal(2, 5, EMBED_DIM)
    look = "What does the mlp read, and to what is its output added?"
    _expect_stream(module, weights, x, look)


@EncoderBlock.check(needs=nothing_is_left_to_chance)
def the_second_branch_starts_where_the_first_ended(student: Student, probe: Probe) -> None:
    """The mlp's branch leaves from, and returns to, the stream that attention has been added to."""
    module, weights = _block(student, probe)
    x = 3 * probe.normal(2, 5, EMBED_DIM)
    look = "The two branches come one after the other. Which x does the second one see?"
    _expect_stream(module, weights, x, look)


@EncoderBlock.check(needs=the_second_branch_starts_where_the_first_ended, worth=0.5, guard=True)
def nothing_depends_on_the_mode(student: Student, probe: Probe) -> None:
    """The result is the same after `.eval()` and after `.train()`, and forward leaves every part in its mode."""
    module, weights = _block(student, probe)
    for change in (module.train, module.eval, module.train):
        change()
        x = 3 * probe.normal(2, 5, EMBED_DIM)
        _expect_stream(module, weights, x, "Which line of yours does something else in training than in evaluation?")
    expect_modes_kept(student, ARGUMENTS, x)


@EncoderBlock.check(needs=the_second_branch_starts_where_the_first_ended, worth=0.5)
def the_gradient_takes_the_stream_and_both_branches(student: Student, probe: Probe) -> None:
    """The tokens get the gradient of the stream and of both branches."""
    module, weights = _block(student, probe)
    x = 3 * probe.normal(2, 5, EMBED_DIM)
    wanted = gradient_of(lambda tokens: _second_half(weights, _first_half(weights, tokens)), x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the tokens"])


def _expect_eps(student: Student, probe: Probe, eps: float, **options: float) -> None:
    """Fail unless both norms of a block that is built with these options use that eps; tokens of that variance tell."""
    for norm, zeros, oracle in (("norm1", WRITES_MLP, _first_half), ("norm2", WRITES_ATTENTION, _second_half)):
        module = student.build(*ARGUMENTS, **options)
        weights = probe.weights(_shapes(4 * EMBED_DIM))
        weights |= {name: torch.zeros_like(weights[name]) for name in zeros}
        module.load(weights)
        module.double()
        doubled = {name: tensor.double() for name, tensor in weights.items()}
        x = probe.normal(2, 5, EMBED_DIM, scale=eps**0.5, dtype=torch.float64)

        def describe(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
            known = (each for each in (1e-6, 1e-5, 1e-12, 1e-8, 1e-3, 0.0) if each != eps)
            used = [each for each in known if close(actual, oracle(doubled, x, each))]  # noqa: B023  # called in this turn of the loop
            return (f"{norm} uses an eps of {used[0]:g}", f"an eps of {eps:g}") if used else None  # noqa: B023

        look = f"Which eps does {norm} get in your __init__?"
        expect_equal(module(x), oracle(doubled, x, eps), "the block's output", TOKEN_AXES, describe, look)


@EncoderBlock.check(needs=the_second_branch_starts_where_the_first_ended)
def both_norms_have_an_eps_of_1e_6(student: Student, probe: Probe) -> None:
    """Where no layer_norm_eps is given, both norms use an eps of 1e-6; tokens of variance 1e-6 tell."""
    _expect_eps(student, probe, EPS)


@EncoderBlock.check(needs=both_norms_have_an_eps_of_1e_6, worth=0.5)
def both_norms_have_the_eps_that_is_given(student: Student, probe: Probe) -> None:
    """With layer_norm_eps=1e-4, both norms use an eps of 1e-4; tokens of variance 1e-4 tell."""
    _expect_eps(student, probe, 1e-4, layer_norm_eps=1e-4)


@EncoderBlock.check(needs=it_is_made_of_four_named_parts, worth=0.5, guard=True)
def the_queries_keys_and_values_have_a_bias_only_if_asked(student: Student, probe: Probe) -> None:
    """With qkv_bias=False attention.qkv has no bias, with qkv_bias=True it has one; all other Linears have one."""
    for given in ({"qkv_bias": False}, {"qkv_bias": True}):
        module = student.build(*ARGUMENTS, **given)
        shapes = _shapes(4 * EMBED_DIM)
        if not given["qkv_bias"]:
            del shapes["attention.qkv.bias"]
        module.load(probe.weights(shapes))


@EncoderBlock.check(needs=it_is_made_of_four_named_parts)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches every parameter, those of both norms too."""
    module, _ = _block(student, probe)
    x = probe.normal(2, 5, EMBED_DIM)
    expect_gradients(module, expect_tensor(module(x), x.shape, "the block's output"))


@EncoderBlock.check(needs=the_second_branch_starts_where_the_first_ended, guard=True)
def it_follows_its_dtype(student: Student, probe: Probe) -> None:
    """After `.double()` it computes in float64, also on non-contiguous tokens."""
    module, weights = _block(student, probe)
    module.double()
    doubled = {name: tensor.double() for name, tensor in weights.items()}
    # variance 1e4, so that the norms' eps is the business of its own check
    x = 100 * probe.normal(2, EMBED_DIM, 5, dtype=torch.float64).transpose(1, 2)
    expected = _second_half(doubled, _first_half(doubled, x))
    expect_equal(module(x), expected, "the block's output in float64", TOKEN_AXES)


@EncoderBlock.check(needs=it_is_made_of_four_named_parts, guard=True)
def the_tokens_that_go_in_are_left_alone(student: Student, probe: Probe) -> None:
    """The caller's tokens are not changed; what the block adds, it adds to a new tensor."""
    module, _ = _block(student, probe)
    module(probe.normal(2, 5, EMBED_DIM))
    expect_left_alone(student)


EncoderBlock.example("""
>>> block = EncoderBlock(embed_dim=8, num_heads=2)
>>> tuple(block(torch.zeros(3, 5, 8)).shape)
(3, 5, 8)
>>> sum(parameter.numel() for parameter in block.parameters())  # 2 · 16 + 288 + 552
872
""")

fix_block = EncoderBlock.share_checks("fix_block", objects=("FixedBlock",))
fix_block.example("""
>>> block = FixedBlock(8, 2).requires_grad_(False)
>>> zeros = [each.zero_() for each in block.parameters()]
>>> tokens = torch.arange(40.0).reshape(1, 5, 8)
>>> torch.equal(block(tokens), tokens)
True
""")


# both norms start alike, so it trains as "norm1 used twice" does, which was measured


read_mistakes(EncoderBlock, __name__)
