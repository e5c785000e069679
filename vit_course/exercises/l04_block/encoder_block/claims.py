"""`EncoderBlock`: attention and MLP, each after a norm and beside a residual connection; and `fix_block`, its bug
hunt.

The oracles are torch's own functions on the loaded weights: ``F.layer_norm``, ``F.linear`` and
``F.multi_head_attention_forward``. The wrong blocks hold the right parameters and compute with torch's functions;
what is wrong is how they put the parts together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    compute_gradient,
    expect_gradients_of_inputs,
    expect_inputs_unchanged,
    expect_modes_kept,
    make_wrong_part_describer,
)
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l04_block import LESSON
from vit_course.exercises.l04_block.layer_norm.claims import TOKEN_AXES
from vit_course.exercises.l04_block.mlp.claims import (
    Weights,
    compute_expected_output,
    expect_gradient_of_every_parameter,
)
from vit_course.exercises.repeatability import expect_same_in_every_run

PARTS = ("norm1", "attention", "norm2", "mlp")
EPS, OTHER_EPS = 1e-6, (1e-4, 4e-4, 1e-3)
# of an even embed_dim each makes a whole width; where no ratio is given it is 4
RATIOS, RATIO_BY_DEFAULT = (0.5, 1.5, 2.0, 2.5, 3.0, 5.0), 4.0
CPU = torch.device("cpu")
# beginnings of the names of the parameters that are zero, so that a branch adds nothing
ATTENTION_IS_SILENT, MLP_IS_SILENT, LINEARS = ("attention.projection.",), ("mlp.fc2.",), ("attention.", "mlp.")


def compute_expected_attention(weights: Weights, x: Tensor, num_heads: int) -> Tensor:
    """The oracle of the attention branch's second half, for x (batch, tokens, embed_dim)."""
    tokens_first = x.transpose(0, 1)
    output, _ = F.multi_head_attention_forward(
        tokens_first, tokens_first, tokens_first, x.shape[-1], num_heads,
        weights["attention.qkv.weight"], weights.get("attention.qkv.bias"), None, None, False, 0.0,
        weights["attention.projection.weight"], weights["attention.projection.bias"], need_weights=False,
    )  # fmt: skip
    return output.transpose(0, 1)


def apply_layer_norm(weights: Weights, name: str, x: Tensor, eps: float = EPS) -> Tensor:
    """The oracle of the norm called ``name``."""
    return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], eps)


EncoderBlock = Exercise("EncoderBlock", LESSON, is_class=True)


def _map_exercises_to_points(own: float, mended: float) -> dict[str, float]:
    """The points of a claim in EncoderBlock, and in fix_block."""
    return {"EncoderBlock": own, "fix_block": mended}


@dataclass(frozen=True)
class _Block:
    """The student's block, and what a right one with the same weights computes."""

    module: StudentModule
    weights: Weights
    num_heads: int
    eps: float = EPS

    @property
    def embed_dim(self) -> int:
        return len(self.weights["norm1.weight"])

    def compute_output(self, x: Tensor) -> Tensor:
        """Compute what a right block gives for tokens x (batch, tokens, embed_dim)."""
        stages = self.compute_inputs_and_outputs_of_parts(x)
        return stages["norm2:in"] + stages["mlp:out"]

    def compute_inputs_and_outputs_of_parts(self, x: Tensor) -> dict[str, Tensor]:
        """Compute what a right block's parts are given and give, in order."""
        first = apply_layer_norm(self.weights, "norm1", x, self.eps)
        attention = compute_expected_attention(self.weights, first, self.num_heads)
        second = apply_layer_norm(self.weights, "norm2", x + attention, self.eps)
        return {
            "norm1:in": x,
            "attention:in": first,
            "attention:out": attention,
            "norm2:in": x + attention,
            "mlp:in": second,
            "mlp:out": compute_expected_output(self.weights, second, "mlp."),
        }

    def cast_to_float64(self) -> _Block:
        """Cast the student's module; give it with weights in float64."""
        self.module.double()
        return replace(self, weights={name: tensor.double() for name, tensor in self.weights.items()})

    def expect_right_output(self, x: Tensor, look: str) -> None:
        """Fail unless the block gives what a right one gives; zeros say that nothing of the tokens is left."""
        actual, expected = self.module(x), self.compute_output(x)
        if not expect_tensor(actual, expected.shape, "the block's output").any():
            zero = "What becomes of the stream in your forward when a branch gives zero?"
            raise Failure("the block's output is 0 everywhere: nothing is left of the tokens", "the tokens in it", zero)
        where = make_wrong_part_describer(
            self.module, self.compute_inputs_and_outputs_of_parts(x), PARTS, x, axes=TOKEN_AXES
        )
        expect_equal(actual, expected, "the block's output", TOKEN_AXES, where, look)


def _list_parameter_shapes(embed_dim: int, hidden_dim: int, qkv_bias: bool = True) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        f"{norm}.{part}": (embed_dim,) for norm in ("norm1", "norm2") for part in ("weight", "bias")
    }
    linears = {
        "attention.qkv": (3 * embed_dim, embed_dim),
        "attention.projection": (embed_dim, embed_dim),
        "mlp.fc1": (hidden_dim, embed_dim),
        "mlp.fc2": (embed_dim, hidden_dim),
    }
    for name, size in linears.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    if not qkv_bias:
        del shapes["attention.qkv.bias"]
    return shapes


def _draw_arguments(probe: Probe) -> tuple[int, int, float]:
    """embed_dim, num_heads and mlp_ratio."""
    num_heads, head_dim = probe.choice((2, 3, 5), shown=3), probe.choice((2, 4, 6), shown=4)
    return num_heads * head_dim, num_heads, probe.choice(RATIOS, shown=4.0)


def _build_block_with_random_weights(
    student: Student,
    probe: Probe,
    silent: tuple[str, ...] = (),
    arguments: tuple[int, int] | tuple[int, int, float] | None = None,
    **options: Any,
) -> _Block:
    """A block with random weights, those of the ``silent`` parameters zero."""
    arguments = arguments or _draw_arguments(probe)
    embed_dim, num_heads, ratio = (*arguments, RATIO_BY_DEFAULT)[:3]
    module = student.build(*arguments, **options)
    drawn = probe.weights(_list_parameter_shapes(embed_dim, round(embed_dim * ratio), options.get("qkv_bias", True)))
    weights = {name: torch.zeros_like(each) if name.startswith(silent) else each for name, each in drawn.items()}
    module.load(weights)
    return _Block(module, weights, num_heads, options.get("layer_norm_eps", EPS))


def _draw_tokens(probe: Probe, embed_dim: int, scale: float = 3.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """(batch, tokens, embed_dim); their variance is far above the norms' eps where that is not the matter."""
    batch, tokens = probe.sizes(2, shown=(2, 5))
    return probe.normal(batch, tokens, embed_dim, scale=scale, dtype=dtype)


def expect_block_is_right(student: Student, probe: Probe) -> None:
    """The block is right in both modes."""
    expect_right_in_both_modes(student, probe, "The numbers come first: what do the checks above say?")


def expect_tokens_are_changed(student: Student, probe: Probe) -> None:
    """A block with random weights adds something to the tokens."""
    block = _build_block_with_random_weights(student, probe)
    x = _draw_tokens(probe, block.embed_dim)
    if are_close(expect_tensor(block.module(x), x.shape, "the block's output"), x):
        look = "Which two things should it add?"
        raise Failure("a block with random weights gives back its tokens unchanged", "tokens to which it added", look)


@EncoderBlock.check(guard=True)
def it_is_made_of_four_named_parts(student: Student, probe: Probe) -> None:
    """It is made of norm1, attention, norm2 and mlp, and tokens keep their shape."""
    block = _build_block_with_random_weights(student, probe)
    for batch, tokens in ((2, 5), (3, 7), (1, 5)):  # one block for all of them
        x = probe.normal(batch, tokens, block.embed_dim)
        expect_tensor(block.module(x), x.shape, "the block's output")


@EncoderBlock.check(guard=True, points=_map_exercises_to_points(0.125, 0.025), first=expect_block_is_right)
def its_layers_are_made_before_forward(student: Student, probe: Probe) -> None:
    """All its parameters exist as soon as the block is built; forward adds none."""
    arguments = _draw_arguments(probe)
    module = student.build(*arguments)
    before = set(module.tensors())
    module(_draw_tokens(probe, arguments[0]))
    new = sorted(set(module.tensors()) - before)
    # what forward gives is not the matter here, and random weights would make it another for everyone
    student.note_only(("made in forward", tuple(new)))
    if new:
        raise Failure(
            f"forward made {len(new)} new tensors, among them `{new[0]}`",
            "none: an optimizer made before the first forward would never learn of them",
            "In which of your two methods is a layer made, and in which is it used?",
        )


@EncoderBlock.check(
    needs=it_is_made_of_four_named_parts,
    guard=True,
    points=_map_exercises_to_points(0.25, 0.0625),
    first=expect_block_is_right,
)
def the_mlp_is_as_wide_as_mlp_ratio_says(student: Student, probe: Probe) -> None:
    """The hidden layer has embed_dim · mlp_ratio units, and 4 · embed_dim where no ratio is given."""
    embed_dim, num_heads, _ = _draw_arguments(probe)
    for ratio in (probe.choice(RATIOS[:3], shown=1.5), probe.choice(RATIOS[3:], shown=2.5)):
        _build_block_with_random_weights(student, probe, arguments=(embed_dim, num_heads, ratio))
    block = _build_block_with_random_weights(student, probe, arguments=(embed_dim, num_heads))
    x = _draw_tokens(probe, embed_dim)
    expect_tensor(block.module(x), x.shape, "the block's output")


@EncoderBlock.check(
    needs=it_is_made_of_four_named_parts,
    guard=True,
    points=_map_exercises_to_points(0.125, 0.025),
    first=expect_block_is_right,
)
def nothing_is_left_to_chance(student: Student, probe: Probe) -> None:
    """The same tokens give the same result twice."""
    block = _build_block_with_random_weights(student, probe)
    batch, tokens = probe.sizes(2, high=5, shown=(2, 3))
    expect_same_in_every_run(student, block.module, block.weights, probe.normal(batch, tokens, block.embed_dim))


@EncoderBlock.check(
    needs=nothing_is_left_to_chance,
    guard=True,
    points=_map_exercises_to_points(0.75, 0.25),
    first=expect_tokens_are_changed,
)
def a_block_that_adds_nothing_is_the_identity(student: Student, probe: Probe) -> None:
    """With the weights and biases of all Linears at zero, the tokens are returned unchanged."""
    block = _build_block_with_random_weights(student, probe, LINEARS)
    look = "Both branches add zero here. What else does your forward do to the stream?"
    block.expect_right_output(_draw_tokens(probe, block.embed_dim), look)


@EncoderBlock.check(needs=nothing_is_left_to_chance, points=_map_exercises_to_points(1, 0.5))
def attention_is_added_to_the_stream(student: Student, probe: Probe) -> None:
    """With zeros in mlp.fc2, the block adds to the stream what attention makes of norm1 of the stream."""
    look = "What does the attention read, and to what is its output added?"
    embed_dim = probe.choice((12, 24), shown=12)
    for num_heads in probe.sizes(2, high=4, shown=(3, 2)):
        arguments = embed_dim, num_heads, probe.choice(RATIOS, shown=4.0)
        _build_block_with_random_weights(student, probe, MLP_IS_SILENT, arguments).expect_right_output(
            _draw_tokens(probe, embed_dim), look
        )


@EncoderBlock.check(needs=nothing_is_left_to_chance, points=_map_exercises_to_points(1, 0.5))
def the_mlp_is_added_to_the_stream(student: Student, probe: Probe) -> None:
    """With zeros in attention.projection, the block adds to the stream what the mlp makes of norm2 of the stream."""
    block = _build_block_with_random_weights(student, probe, ATTENTION_IS_SILENT)
    look = "What does the mlp read, and to what is its output added?"
    block.expect_right_output(_draw_tokens(probe, block.embed_dim), look)


@EncoderBlock.check(needs=nothing_is_left_to_chance, points=_map_exercises_to_points(1, 0.5))
def the_second_branch_starts_where_the_first_ended(student: Student, probe: Probe) -> None:
    """The mlp's branch leaves from, and returns to, the stream that attention has been added to."""
    block = _build_block_with_random_weights(student, probe)
    x = _draw_tokens(probe, block.embed_dim)
    for tokens in (x, x[:1], x.flip(1)):
        look = "The two branches come one after the other. Which x does the second one see?"
        block.expect_right_output(tokens, look)


@EncoderBlock.check(
    needs=the_second_branch_starts_where_the_first_ended,
    worth=0.5,
    guard=True,
    points=_map_exercises_to_points(0.125, 0.05),
)
def nothing_depends_on_the_mode(student: Student, probe: Probe) -> None:
    """The result is the same after `.eval()` and after `.train()`, and forward leaves every part in its mode."""
    expect_right_in_both_modes(
        student, probe, "Which line of yours does something else in training than in evaluation?"
    )
    arguments = _draw_arguments(probe)
    expect_modes_kept(student, arguments, _draw_tokens(probe, arguments[0]))


@EncoderBlock.check(
    needs=the_second_branch_starts_where_the_first_ended,
    worth=0.5,
    points=_map_exercises_to_points(0.375, 0.25),
    first=expect_block_is_right,
)
def the_gradient_takes_the_stream_and_both_branches(student: Student, probe: Probe) -> None:
    """The tokens and all parameters get the gradient of the stream and of both branches."""
    block = _build_block_with_random_weights(student, probe)
    x = _draw_tokens(probe, block.embed_dim)
    expect_gradients_of_inputs(
        block.module.input_gradients(x), [compute_gradient(block.compute_output, x)], ["the tokens"]
    )
    found = block.module.gradients(block.module(x))
    for name, weight in block.weights.items():

        def compute_output_with_parameter(changed: Tensor, name: str = name) -> Tensor:
            return replace(block, weights={**block.weights, name: changed}).compute_output(x)

        expect_gradients_of_inputs(
            [found[name]], [compute_gradient(compute_output_with_parameter, weight)], [f"`{name}`"]
        )


def _expect_eps_of_both_norms(student: Student, probe: Probe, eps: float, **options: Any) -> None:
    """Fail unless both norms of a block that is built with these options use that eps; tokens of that variance tell."""
    for norm, silent in (("norm1", MLP_IS_SILENT), ("norm2", ATTENTION_IS_SILENT)):
        block = _build_block_with_random_weights(student, probe, silent, **options).cast_to_float64()
        x = _draw_tokens(probe, block.embed_dim, eps**0.5, torch.float64)

        def describe_used_eps(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
            known = (each for each in (1e-6, 1e-5, 1e-12, 1e-8, 1e-3, 0.0) if each != eps)
            used = [each for each in known if are_close(actual, replace(block, eps=each).compute_output(x))]  # noqa: B023  # called in this turn of the loop
            return (f"{norm} uses an eps of {used[0]:g}", f"an eps of {eps:g}") if used else None  # noqa: B023

        look = f"Which eps does {norm} get in your __init__?"
        expect_equal(
            block.module(x), block.compute_output(x), "the block's output", TOKEN_AXES, describe_used_eps, look
        )


@EncoderBlock.check(
    needs=the_second_branch_starts_where_the_first_ended,
    points=_map_exercises_to_points(0.5, 0.25),
    first=expect_block_is_right,
)
def both_norms_have_an_eps_of_1e_6(student: Student, probe: Probe) -> None:
    """Where no layer_norm_eps is given, both norms use an eps of 1e-6; tokens of variance 1e-6 tell."""
    _expect_eps_of_both_norms(student, probe, EPS)


@EncoderBlock.check(
    needs=both_norms_have_an_eps_of_1e_6,
    worth=0.5,
    points=_map_exercises_to_points(0.25, 0.0625),
    first=expect_block_is_right,
)
def both_norms_have_the_eps_that_is_given(student: Student, probe: Probe) -> None:
    """With a layer_norm_eps of 1e-4, say, both norms use that eps; tokens of that variance tell."""
    eps = probe.choice(OTHER_EPS, shown=OTHER_EPS[0])
    _expect_eps_of_both_norms(student, probe, eps, layer_norm_eps=eps)


@EncoderBlock.check(
    needs=it_is_made_of_four_named_parts,
    worth=0.5,
    guard=True,
    points=_map_exercises_to_points(0.25, 0.0625),
    first=expect_block_is_right,
)
def the_queries_keys_and_values_have_a_bias_only_if_asked(student: Student, probe: Probe) -> None:
    """With qkv_bias=False attention.qkv has no bias, with qkv_bias=True it has one; all other Linears have one."""
    for asked in (False, True):
        block = _build_block_with_random_weights(student, probe, qkv_bias=asked)
        x = _draw_tokens(probe, block.embed_dim)
        expect_tensor(block.module(x), x.shape, "the block's output")


@EncoderBlock.check(needs=it_is_made_of_four_named_parts, points=_map_exercises_to_points(0.25, 0.125))
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches every parameter, those of both norms too."""
    block = _build_block_with_random_weights(student, probe)
    x = _draw_tokens(probe, block.embed_dim, 1.0)
    expect_gradient_of_every_parameter(block.module, expect_tensor(block.module(x), x.shape, "the block's output"))


@EncoderBlock.check(
    needs=the_second_branch_starts_where_the_first_ended,
    guard=True,
    points=_map_exercises_to_points(0.375, 0.125),
    first=expect_block_is_right,
)
def it_follows_its_dtype(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """After `.double()` it computes in float64, also on non-contiguous tokens."""
    block = _build_block_with_random_weights(student, probe).cast_to_float64()
    block.module.to(device)
    # variance 1e4, so that the norms' eps is the business of its own check
    x = _draw_tokens(probe, block.embed_dim, 100.0, torch.float64).mT.contiguous().mT
    expected = block.compute_output(x).to(device)
    expect_equal(block.module(x.to(device)), expected, "the block's output in float64", TOKEN_AXES)


@EncoderBlock.check(
    needs=it_is_made_of_four_named_parts,
    guard=True,
    points=_map_exercises_to_points(0.125, 0.025),
    first=expect_block_is_right,
)
def the_tokens_that_go_in_are_left_alone(student: Student, probe: Probe) -> None:
    """The caller's tokens are not changed; what the block adds, it adds to a new tensor."""
    block = _build_block_with_random_weights(student, probe)
    for change in (block.module.train, block.module.eval):
        change()
        block.module(_draw_tokens(probe, block.embed_dim, 1.0))
        expect_inputs_unchanged(student)


EncoderBlock.example(
    """
>>> block = EncoderBlock(embed_dim=8, num_heads=2)
>>> tuple(block(torch.zeros(3, 5, 8)).shape)
(3, 5, 8)
>>> sum(parameter.numel() for parameter in block.parameters())  # 2 · 16 + 288 + 552
872
""",
    points=_map_exercises_to_points(0.25, 0.125),
    first=expect_block_is_right,
)

fix_block = EncoderBlock.share_checks("fix_block", objects=("FixedBlock",))
fix_block.example("""
>>> block = FixedBlock(8, 2).requires_grad_(False)
>>> zeros = [each.zero_() for each in block.parameters()]
>>> tokens = torch.arange(40.0).reshape(1, 5, 8)
>>> torch.equal(block(tokens), tokens)
True
""")


def expect_right_in_both_modes(student: Student, probe: Probe, look: str, without_ratio: bool = False) -> None:
    """The block is right while it trains and in evaluation, for tokens that are other in number each time."""
    embed_dim, num_heads, ratio = _draw_arguments(probe)
    block = _build_block_with_random_weights(
        student, probe, arguments=(embed_dim, num_heads) if without_ratio else (embed_dim, num_heads, ratio)
    )
    for change in (block.module.train, block.module.eval, block.module.train):
        change()
        block.expect_right_output(_draw_tokens(probe, block.embed_dim), look)


# both norms start alike, so it trains as "norm1 used twice" does, which was measured
read_mistakes(EncoderBlock, __name__)
