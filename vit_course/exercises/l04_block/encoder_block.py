"""`EncoderBlock`: attention and MLP, each after a norm and beside a residual connection; and `fix_block`, its bug
hunt.

The oracles are torch's own functions on the loaded weights: ``F.layer_norm``, ``F.linear`` and
``F.multi_head_attention_forward``. The wrong blocks hold the right parameters and compute with torch's functions;
what is wrong is how they put the parts together.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import (
    expect_gradients_of_inputs,
    expect_left_alone,
    expect_modes_kept,
    gradient_of,
    located,
)
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l04_block import LESSON
from vit_course.exercises.l04_block.layer_norm import TOKEN_AXES
from vit_course.exercises.l04_block.mlp import Weights, expect_gradients, transformed
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


ROAD = "04_block, The residual stream and its branches"
ORDER = "04_block, Before or after?"
_EPS = "04_block, What eps is for"


class _Block(nn.Module):
    """What the wrong blocks have in common: the right parameters, and the right way wherever none is overridden."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
        qkv_bias: bool = True,
        layer_norm_eps: float = EPS,
    ) -> None:
        super().__init__()
        self.num_heads, self.eps = num_heads, layer_norm_eps
        hidden_dim = round(embed_dim * mlp_ratio)
        sizes = {"attention.qkv": (embed_dim, 3 * embed_dim), "attention.projection": (embed_dim, embed_dim)}
        sizes |= {"mlp.fc1": (embed_dim, hidden_dim), "mlp.fc2": (hidden_dim, embed_dim)}
        for name, size in sizes.items():
            parent, child = name.split(".")
            if not hasattr(self, parent):
                self.add_module(parent, nn.Module())
            self.get_submodule(parent).add_module(child, nn.Linear(*size, bias=qkv_bias or child != "qkv"))
        for name in ("norm1", "norm2"):
            self.add_module(name, nn.LayerNorm(embed_dim))

    def norm(self, number: int, x: Tensor) -> Tensor:
        return normed(self.state_dict(keep_vars=True), f"norm{number}", x, self.eps)

    def attend(self, x: Tensor) -> Tensor:
        return attended(self.state_dict(keep_vars=True), x, self.num_heads)

    def think(self, x: Tensor) -> Tensor:
        return transformed(self.state_dict(keep_vars=True), x, "mlp.")

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(1, x))
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("To what do you add: to the stream, or to its normed copy?", ROAD)
class ResidualFromTheNormedStream(_Block):
    """The branches are added to the normed tokens and not to the stream, so each norm rewrites the stream."""

    def forward(self, x: Tensor) -> Tensor:
        for number, branch in ((1, self.attend), (2, self.think)):
            x = self.norm(number, x)
            x = x + branch(x)
        return x


@EncoderBlock.misconception("Is it one branch that leaves the stream alone, or are both?", ROAD)
class SecondNormOnTheStream(_Block):
    """The first branch leaves the stream as it is, but norm2 overwrites it before the second one is added."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(2, x + self.attend(self.norm(1, x)))
        return x + self.think(x)


@EncoderBlock.misconception("What is left of the tokens when both branches give zero?", ROAD)
class NoResidual(_Block):
    """Nothing is added to the stream: the output of each branch replaces it."""

    def forward(self, x: Tensor) -> Tensor:
        return self.think(self.norm(2, self.attend(self.norm(1, x))))


@EncoderBlock.misconception("How many additions are in the figure?", ROAD)
class OnlyAttentionIsAdded(_Block):
    """The second addition is missing: what the mlp gives replaces the stream."""

    def forward(self, x: Tensor) -> Tensor:
        return self.think(self.norm(2, x + self.attend(self.norm(1, x))))


@EncoderBlock.misconception("Does the stream run through a norm in your block?", ORDER)
class PostNorm(_Block):
    """The norms stand on the stream, behind each addition, as in the first Transformer."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(1, x + self.attend(x))
        return self.norm(2, x + self.think(x))


@EncoderBlock.misconception("Does a branch norm what it reads, or what it writes?", ORDER)
class NormOnTheBranchOutput(_Block):
    """Each branch reads the raw stream, and its output is normed before it is added."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.norm(1, self.attend(x))
        return x + self.norm(2, self.think(x))


@EncoderBlock.misconception("Which module of yours is made and never used?", ROAD)
class AttentionTwice(_Block):
    """The second branch calls the attention again, and the mlp is never used."""

    def forward(self, x: Tensor) -> Tensor:
        for number in (1, 2):
            x = x + self.attend(self.norm(number, x))
        return x


@EncoderBlock.misconception("Which of the two norms gets no gradient?", ROAD)
class Norm1UsedTwice(_Block):
    """Both branches read norm1 of the stream, and norm2 is never used."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(1, x))
        return x + self.think(self.norm(1, x))


# both norms start alike, so it trains as "norm1 used twice" does, which was measured
@EncoderBlock.misconception("Which of the two norms gets no gradient?", ROAD, InTraining.HIDDEN)
class Norm2UsedTwice(_Block):
    """Both branches read norm2 of the stream, and norm1 is never used."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(2, x))
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("How many LayerNorms does your __init__ make?", ROAD)
class OneNormUnderTwoNames(_Block):
    """norm1 and norm2 are one and the same module, so what one learns the other learns."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0, **options: Any) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio, **options)
        self.add_module("norm2", self.get_submodule("norm1"))


@EncoderBlock.misconception("What does the mlp read: the stream, or a normed copy of it?", ORDER)
class Norm2Forgotten(_Block):
    """The mlp reads the raw stream, and norm2 is never used."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(1, x))
        return x + self.think(x)


@EncoderBlock.misconception("What stands at the start of each branch in the figure?", ROAD)
class NormsNeverUsed(_Block):
    """Both branches read the raw stream: the norms are made, and forward never calls them."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        return x + self.think(x)


@EncoderBlock.misconception("Which branch does a token meet first in the figure?", ROAD)
class MlpBeforeAttention(_Block):
    """The mlp's branch comes first and the attention's second."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.think(self.norm(2, x))
        return x + self.attend(self.norm(1, x))


@EncoderBlock.misconception("Does the mlp read what attention has added to the stream?", ROAD)
class BothBranchesFromTheInput(_Block):
    """Both branches read the block's input, side by side."""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attend(self.norm(1, x)) + self.think(self.norm(2, x))


@EncoderBlock.misconception("Is what attention wrote still in the stream at the end?", ROAD)
class SecondResidualFromTheInput(_Block):
    """The mlp's output is added to the block's input, so what attention wrote is dropped from the stream."""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.think(self.norm(2, x + self.attend(self.norm(1, x))))


@EncoderBlock.misconception("What does the second norm read: the branch, or the whole stream?", ROAD)
class MlpReadsAttentionAlone(_Block):
    """The mlp reads what attention wrote, and not the stream that it was added to."""

    def forward(self, x: Tensor) -> Tensor:
        attention = self.attend(self.norm(1, x))
        return x + attention + self.think(self.norm(2, attention))


@EncoderBlock.misconception("What would you see if you ran the block twice on the same tokens?", ROAD)
class DropoutNobodyAskedFor(_Block):
    """Both branches pass a dropout that the exercise does not ask for, so every run gives another answer."""

    def attend(self, x: Tensor) -> Tensor:
        return F.dropout(super().attend(x), 0.1)

    def think(self, x: Tensor) -> Tensor:
        return F.dropout(super().think(x), 0.1)


@EncoderBlock.misconception("Which eps does the exercise ask for, and which one is torch's default?", _EPS)
class TheEpsOfTorch(_Block):
    """The norms keep torch's own eps of 1e-5, which is not the one that ViT's weights were trained with."""

    def norm(self, number: int, x: Tensor) -> Tensor:
        return normed(self.state_dict(keep_vars=True), f"norm{number}", x, 1e-5)


@EncoderBlock.misconception("What is the difference between x = x + y and x += y for the one who passed you x?", ROAD)
class StreamChangedInPlace(_Block):
    """The branches are added by +=, which writes into the caller's tokens and into what the gradient needs."""

    def forward(self, x: Tensor) -> Tensor:
        x += self.attend(self.norm(1, x))
        x += self.think(self.norm(2, x))
        return x


@EncoderBlock.misconception("Which dtype has a new tensor when nobody names one?", ROAD)
class StreamInFloat32(_Block):
    """The branches are added up in a new tensor, which is float32 whatever the tokens are."""

    def forward(self, x: Tensor) -> Tensor:
        stream = torch.zeros(x.shape) + x.float()
        stream += self.attend(self.norm(1, x))
        stream += self.think(self.norm(2, stream.to(x.dtype)))
        return stream


@EncoderBlock.misconception("Where did you use mlp_ratio?", ROAD)
class RatioFixedAtFour(_Block):
    """The hidden layer is 4 · embed_dim wide, whatever mlp_ratio says."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0, **options: Any) -> None:
        super().__init__(embed_dim, num_heads, **options)


@EncoderBlock.misconception("Which attributes of self does nn.Module look at when it lists its parameters?", ROAD)
class LayersInPlainList(_Block):
    """The layers lie where nn.Module does not look, in a plain list or a local variable, so it has no parameters."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0, **options: Any) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio, **options)
        self.layers = [(name, self._modules.pop(name)) for name in ("attention", "mlp", "norm1", "norm2")]

    def forward(self, x: Tensor) -> Tensor:
        return x


@EncoderBlock.misconception("When does an optimizer ask a model for its parameters?", ROAD)
class LayersMadeInForward(nn.Module):
    """The layers are made in forward, so the block has no parameters until it has run."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0, **options: Any) -> None:
        super().__init__()
        self.sizes, self.options = (embed_dim, num_heads, mlp_ratio), options

    def forward(self, x: Tensor) -> Tensor:
        for name, child in _Block(*self.sizes, **self.options).named_children():
            self.add_module(name, child)
        return x


@EncoderBlock.misconception("By which way does the gradient get from the last block down to the first?", ROAD)
class StreamOutOfTheGraph(_Block):
    """The stream is detached before something is added to it, so the gradient's straight way down is cut."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach() + self.attend(self.norm(1, x))
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("Which layers get their gradient through the tokens that you have detached?", ROAD)
class TokensOutOfTheGraph(_Block):
    """The tokens are detached on the way in, so no block below this one ever learns."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.detach())


@EncoderBlock.misconception("What does squeeze do to a batch of one?", ROAD)
class BatchOfOneSqueezedAway(_Block):
    """A squeeze takes the axis of the batch away when there is one image in it."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).squeeze(0)


@EncoderBlock.misconception("Which value has mlp_ratio when nobody gives one?", ROAD)
class AnotherRatioByDefault(_Block):
    """The hidden layer is 2 · embed_dim wide where no mlp_ratio is given."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 2.0, **options: Any) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio, **options)


@EncoderBlock.misconception("What does the attention read: the stream, or a normed copy of it?", ORDER)
class Norm1Forgotten(_Block):
    """The attention reads the raw stream, and norm1 is never used."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("What is left of the tokens when the attention gives zero?", ROAD)
class OnlyTheMlpIsAdded(_Block):
    """The first addition is missing: what the attention gives replaces the stream."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.attend(self.norm(1, x))
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("Which norm belongs to which branch?", ROAD)
class NormsTradePlaces(_Block):
    """The attention reads norm2 of the stream and the mlp norm1, so loaded weights land in the wrong branch."""

    def norm(self, number: int, x: Tensor) -> Tensor:
        return super().norm(3 - number, x)


@EncoderBlock.misconception("Which lines of yours run in evaluation alone, and may they change a number?", ROAD)
class Norm2SkippedInEvaluation(_Block):
    """After `.eval()` the mlp reads the raw stream."""

    def norm(self, number: int, x: Tensor) -> Tensor:
        return x if number == 2 and not self.training else super().norm(number, x)


@EncoderBlock.misconception("Which axis stands first in what you return, and which stood first in x?", ROAD)
class TokensLeftInFront(_Block):
    """The axes of batch and tokens are swapped on the way, and never swapped back."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).transpose(0, 1)


@EncoderBlock.misconception("Which of your parts takes an argument for its bias?", ROAD, InTraining.UNSEEN)
class QkvBiasNotPassedOn(_Block):
    """qkv_bias is accepted and not passed on to the attention, so its qkv always has a bias."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0, **options: Any) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio, **options | {"qkv_bias": True})


@EncoderBlock.misconception("What becomes of layer_norm_eps in your __init__?", _EPS, InTraining.UNSEEN)
class EpsNotPassedOn(_Block):
    """layer_norm_eps is accepted and not passed on to the norms, which always use 1e-6."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0, **options: Any) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio, **options | {"layer_norm_eps": EPS})
