"""Hidden checks of ``EncoderBlock``, and of ``fix_block``, which mends a broken one.

Tokens have a variance far above the norms' eps of 1e-6 wherever that is not the matter.
"""

from dataclasses import dataclass

import pytest
import torch

from exercise_kit.engine.compare import close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_left_alone, expect_modes_kept, located
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.repeatability import expect_one_kind, kinds_of_results

AXES = ("image", "token", "dimension")
PARTS = ("norm1", "attention", "norm2", "mlp")
# embed_dim is even, so that embed_dim · ratio is whole, and cutting and rounding agree; 4 would be the default
RATIOS = (0.5, 1.5, 2.0, 2.5, 3.0, 5.0)
WRITES_ATTENTION, WRITES_MLP = ("attention.projection.",), ("mlp.fc2.",)
LINEARS = ("attention.", "mlp.")


@dataclass
class _Pair:
    """The student's block and the right one, with the same weights."""

    block: object
    twin: object
    weights: dict
    embed_dim: int

    def load(self, silent=()):
        """Random weights into both, zeros where a name starts with one of ``silent``."""
        drawn = {n: torch.zeros_like(w) if n.startswith(tuple(silent)) else w for n, w in self.weights.items()}
        for each in (self.block, self.twin):
            each.load(drawn)

    def expect_same(self, x, look, name="the block's output"):
        """Fail unless both give the same for tokens x."""
        where = located(self.block, self.twin, PARTS, x, axes=AXES)
        expect_equal(self.block(x), self.twin(x), name, AXES, where, look)


def _pair(student, reference, probe, ratio=None, silent=(), heads=None):
    num_heads, head_dim = probe.choice((2, 3, 5)), probe.choice((2, 4, 6))
    embed_dim, num_heads = heads or (num_heads * head_dim, num_heads)
    sizes = embed_dim, num_heads, probe.choice(RATIOS) if ratio is None else ratio
    arguments = sizes if ratio != 4 else sizes[:2]
    twin = Student({"reference": reference.EncoderBlock}).build(*sizes)
    pair = _Pair(student.build(*arguments), twin, probe.weights(twin.parameter_shapes()), sizes[0])
    pair.load(silent)
    pair.block.eval()
    return pair


def _tokens(probe, embed_dim, scale=3.0, batch=None):
    images, tokens = probe.sizes(2)
    return probe.normal(batch or images, tokens, embed_dim, scale=scale)


@pytest.mark.exercise("EncoderBlock", points=0.75)
@pytest.mark.exercise("fix_block", points=0.25)
def test_a_silent_block_is_the_identity(student, reference, probe):
    """With all its Linears at zero a block gives back the tokens, whatever its norms are; otherwise it adds to them."""
    pair = _pair(student, reference, probe)
    x = _tokens(probe, pair.embed_dim)
    if close(expect_tensor(pair.block(x), x.shape, "the block's output"), x):
        look = "Which two things should it add?"
        raise Failure("a block with random weights gives back its tokens unchanged", "tokens to which it added", look)
    pair.load(silent=LINEARS)
    look = "Both branches add zero here. What else does your forward do to the stream?"
    expect_equal(pair.block(x), x, "the output of a block whose Linears are zero", AXES, look=look)


@pytest.mark.exercise("EncoderBlock", points=1)
@pytest.mark.exercise("fix_block", points=0.5)
def test_attention_is_added_to_the_stream(student, reference, probe):
    """With zeros in mlp.fc2, the block adds to the stream what attention, of num_heads heads, makes of norm1 of it."""
    look = "What does the attention read, in how many heads, and to what is its output added?"
    embed_dim = probe.choice((12, 24))
    for num_heads in probe.sizes(2, high=4):
        pair = _pair(student, reference, probe, silent=WRITES_MLP, heads=(embed_dim, num_heads))
        pair.expect_same(_tokens(probe, pair.embed_dim), look)


@pytest.mark.exercise("EncoderBlock", points=1)
@pytest.mark.exercise("fix_block", points=0.5)
def test_the_mlp_is_added_to_the_stream(student, reference, probe):
    """With zeros in attention.projection, the block adds to the stream what the mlp makes of norm2 of it."""
    pair = _pair(student, reference, probe, silent=WRITES_ATTENTION)
    look = "What does the mlp read, and to what is its output added?"
    pair.expect_same(_tokens(probe, pair.embed_dim), look)


@pytest.mark.exercise("EncoderBlock", points=1)
@pytest.mark.exercise("fix_block", points=0.5)
def test_one_branch_follows_the_other(student, reference, probe):
    """The mlp reads, and is added to, the stream that attention was added to; for one image as for many."""
    look = "The two branches come one after the other. Which x does the second one see?"
    pair = _pair(student, reference, probe)
    for batch in (None, 1):
        pair.expect_same(_tokens(probe, pair.embed_dim, batch=batch), look)


@pytest.mark.exercise("EncoderBlock", points=0.5)
@pytest.mark.exercise("fix_block", points=0.25)
def test_both_norms_have_an_eps_of_1e_6(student, reference, probe):
    """Both norms have an eps of 1e-6, inside the root; tokens of a variance of 1e-6 tell."""
    pair = _pair(student, reference, probe)
    look = "Which eps does torch's LayerNorm take when you do not tell it one?"
    for norm, silent in (("norm1", WRITES_MLP), ("norm2", WRITES_ATTENTION)):
        pair.load(silent)
        # times 1e-3, so that the output is of the order of 1 beside it: eps 1e-5 in place of 1e-6 halves what is added
        x = _tokens(probe, pair.embed_dim, scale=1e-3)
        pair.expect_same(x, look, f"the output for tokens of variance 1e-6, {norm} at work,")


@pytest.mark.exercise("EncoderBlock", points=0.25)
@pytest.mark.exercise("fix_block", points=0.125)
def test_qkv_bias_and_eps_are_passed_on(student, reference, probe):
    """With qkv_bias=False the qkv has no bias, and both norms use the layer_norm_eps that is given."""
    num_heads, eps = probe.choice((2, 3)), probe.choice((1e-4, 4e-4, 1e-3))
    sizes = 4 * num_heads, num_heads, probe.choice(RATIOS)
    for options in ({"qkv_bias": False}, {"layer_norm_eps": eps}):
        twin = Student({"reference": reference.EncoderBlock}).build(*sizes, **options)
        pair = _Pair(student.build(*sizes, **options), twin, probe.weights(twin.parameter_shapes()), sizes[0])
        pair.load()
        pair.expect_same(_tokens(probe, sizes[0], scale=eps**0.5), "Which part of the block is each argument for?")


@pytest.mark.exercise("EncoderBlock", points=0.25)
@pytest.mark.exercise("fix_block", points=0.125)
def test_every_parameter_learns(student, reference, probe):
    """Every parameter, those of both norms too, gets the gradient that is its own."""
    pair = _pair(student, reference, probe)
    x = _tokens(probe, pair.embed_dim)
    output, right = pair.block(x), pair.twin(x)
    found = pair.block.gradients(expect_tensor(output, right.shape, "the block's output"))
    for name, wanted in pair.twin.gradients(right).items():
        look = "Is that layer used in forward, once, and is all that it computes added to the stream?"
        if found.get(name) is None:
            raise Failure(f"no gradient reaches {name}", "one for every parameter", look)
        # a relative tolerance of the largest, for sums over many tokens that nearly cancel
        scale = max(1.0, float(wanted.abs().max()))
        expect_equal(found[name] / scale, wanted / scale, f"the gradient of {name}", look=look)


@pytest.mark.exercise("EncoderBlock", points=0.5)
@pytest.mark.exercise("fix_block", points=0.125)
def test_the_mlp_is_as_wide_as_asked(student, reference, probe):
    """The hidden layer is 4 · embed_dim wide where no mlp_ratio is given, and the block works with it."""
    pair = _pair(student, reference, probe, ratio=4)
    look = "Which value does mlp_ratio have when nobody gives one?"
    pair.expect_same(_tokens(probe, pair.embed_dim), look)


@pytest.mark.exercise("EncoderBlock", points=0.5)
@pytest.mark.exercise("fix_block", points=0.125)
def test_it_follows_device_and_dtype(student, reference, probe, device):
    """Moved, and cast to float64, it computes there in float64, also on tokens that lie out of order in memory."""
    pair = _pair(student, reference, probe)
    for each in (pair.block, pair.twin):
        each.to(device)
        each.double()
    tokens, batch = probe.sizes(2)
    # a variance of 1e4, at which the norms' eps shows in no digit that is compared
    x = 100 * probe.normal(batch, pair.embed_dim, tokens, dtype=torch.float64).transpose(1, 2).to(device)
    pair.expect_same(x, "Which line makes a new tensor, of which dtype, and on which device?", "the output in float64")


@pytest.mark.exercise("EncoderBlock", points=0.5)
@pytest.mark.exercise("fix_block", points=0.125)
def test_every_run_is_the_same(student, reference, probe):
    """Training or not, and whatever ran before, a run is right, changes no input and makes no parameters."""
    pair = _pair(student, reference, probe)
    for mode in (pair.block.train, pair.block.eval, pair.block.train):  # last in training, where much is drawn
        mode()
        x = _tokens(probe, pair.embed_dim)  # of another batch, and other in number, than in the run before
        pair.expect_same(x, "Which layer draws random numbers, or remembers the run before?")
    expect_left_alone(student)
    if new := sorted(set(pair.block.parameter_shapes()) - set(pair.weights)):
        look = "In which of your two methods is a layer made, and in which is it used?"
        raise Failure(f"forward made new parameters, among them `{new[0]}`", "none that __init__ did not make", look)
    x = _tokens(probe, pair.embed_dim)
    expect_one_kind(kinds_of_results(student, lambda: pair.block(x), x.shape))
    expect_modes_kept(student, (12, 3), probe.normal(2, 3, 12))


@pytest.mark.exercise("EncoderBlock", points=0.5)
@pytest.mark.exercise("fix_block", points=0.25)
def test_the_tokens_get_their_gradient(student, reference, probe):
    """The tokens get the gradient of the stream and of both branches."""
    pair = _pair(student, reference, probe)
    x = _tokens(probe, pair.embed_dim)
    pair.expect_same(x, "The numbers come first: what do the checks above say?")
    expect_gradients_of_inputs(pair.block.input_gradients(x), pair.twin.input_gradients(x), ["the tokens"])


@pytest.mark.exercise("EncoderBlock", points=0.25)
@pytest.mark.exercise("fix_block", points=0.125)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    pair = _pair(student, reference, probe)
    pair.expect_same(_tokens(probe, pair.embed_dim), "The numbers come first: what do the checks above say?")
    expect_example(student)
