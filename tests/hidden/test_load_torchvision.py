"""Hidden checks of ``load_torchvision``.

The model that receives the weights is a stand-in with the right parameter names; no two of its numbers, or of
those to be loaded, are equal.
"""

from dataclasses import replace

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, kind_of, shape
from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quoted
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit.load_torchvision.claims import (
    StateDict,
    stand_in,
    torchvision_names,
    torchvision_weights,
)

ENDS = ("class_token", "positions", "norm.", "head.")
LOOK = "Print your list of pairs, their name and yours, and read this one aloud."


def _config(probe, **choices):
    """A small model, tall or wide, with a patch as high as it is wide, as torchvision has it."""
    patch_size, rows, columns, channels = probe.sizes(4, high=5)
    num_heads, classes = probe.sizes(2, low=2, high=5)
    sizes = {
        "image_size": (rows * patch_size, columns * patch_size),
        "patch_size": patch_size,
        "in_channels": channels,
        "num_classes": classes + 5,
        "embed_dim": 2 * num_heads,
        "num_heads": num_heads,
        "depth": probe.choice((1, 2)),
        "mlp_ratio": probe.choice((1.5, 2.5, 3.0)),
    }
    return ViTConfig(**(sizes | choices))


def _numbers(model):
    return {name: tensor.detach().clone() for name, tensor in model.named_parameters()}


def _equal(found, wanted):
    return found is not None and found.shape == wanted.shape and torch.equal(found, wanted)


class _Loading:
    """One call: what went in, what came back, and what the model holds after it."""

    def __init__(self, student, probe, config, state=None):
        drawn, self.wanted = torchvision_weights(probe, config)
        self.theirs = dict(drawn if state is None else state)
        self.names = torchvision_names(config)
        self.model = stand_in(probe, config)
        self.before = _numbers(self.model)
        given = StateDict({name: tensor.clone() for name, tensor in self.theirs.items()})
        self.seen = student.see(self.model, given)
        self.held = _numbers(self.seen.inputs[0])

    def expect(self, *parts):
        """Fail in words unless every parameter with one of ``parts`` in its name holds the right numbers."""
        for name, right in self.wanted.items():
            if not any(part in name for part in parts):
                continue
            found = self.held.get(name)
            if not _equal(found, right):
                theirs = self.names[name]
                raise Failure(
                    f"after loading, `{name}` {self._described(name, found)}",
                    f"the numbers of `{theirs}`, which is {shape(self.theirs[theirs])} there",
                    LOOK,
                )

    def _described(self, name, found):
        if found is None:
            return "is gone"
        if _equal(found, self.before[name]):
            return "holds what it held before"
        numbers = found.flatten().sort().values
        for theirs, tensor in self.theirs.items():
            if torch.equal(numbers, tensor.flatten().sort().values):
                order = "" if torch.equal(found.flatten(), tensor.flatten()) else " in another order"
                return f"holds the numbers of `{theirs}`{order}"
        return "holds other numbers" if found.shape == self.before[name].shape else f"has the shape {shape(found)}"


def _expect_loaded(student, probe, config):
    """Fail unless most of right weights arrive, so that nothing is earned by refusing or returning alone."""
    loading = _Loading(student, probe, config)
    arrived = [name for name, right in loading.wanted.items() if _equal(loading.held.get(name), right)]
    if 2 * len(arrived) <= len(loading.wanted):
        loading.expect("")  # any name
    return loading


def _expect_named(student, probe, config, state, names, described):
    """Fail unless ``state`` is refused by a ValueError that holds one of ``names``."""
    error = student.error_of(stand_in(probe, config), state)
    wanted = f"a ValueError that names `{names[0]}`"
    look = "Compare the names and shapes of both sides before you copy, or catch torch's error and say it as yours."
    if error is None:
        raise Failure(f"load_torchvision accepted {described}", wanted, look)
    named = any(name in error.words for name in names)
    student.record.append(("named", named))
    if not error.is_a("ValueError") or not named:
        seen = f"ValueError with {quoted(error.words, 80) or 'no text'}" if error.is_a("ValueError") else str(error)
        raise Failure(f"load_torchvision raised {seen} on {described}", wanted, look)


@pytest.mark.exercise("load_torchvision", points=0.75)
def test_kernels_become_rows_of_the_projection(student, reference, probe):
    """The patch embedding's kernels become rows of your Linear, in the order of your patches."""
    _Loading(student, probe, _config(probe)).expect("patch_embedding.")


@pytest.mark.exercise("load_torchvision", points=0.75)
def test_queries_keys_and_values_stay_in_order(student, reference, probe):
    """The rows of in_proj, which makes queries, keys and values, arrive in qkv in their order, in every block."""
    _Loading(student, probe, _config(probe)).expect(".qkv.")


@pytest.mark.exercise("load_torchvision", points=1.25)
def test_every_block_gets_its_own_weights(student, reference, probe):
    """However many blocks there are, here more than ten, the tensors of each arrive where they belong."""
    config = _config(probe, depth=probe.choice((13, 14, 15)), embed_dim=4, num_heads=2, mlp_ratio=1.5)
    loading = _Loading(student, probe, config)
    loading.expect(*[name for name in loading.wanted if name.startswith("blocks.") and ".qkv." not in name])


@pytest.mark.exercise("load_torchvision", points=0.75)
def test_both_ends_are_loaded(student, reference, probe):
    """Class token, positions, final norm and head arrive, as numbers of their own."""
    loading = _Loading(student, probe, _config(probe))
    ends = [name for name in loading.wanted if name.startswith(ENDS)]
    loading.expect(*ends)


@pytest.mark.exercise("load_torchvision", points=1)
def test_the_logits_become_torchvisions(student, reference, probe):
    """A VisionTransformer of torchvision's own and a right model with the loaded numbers give the same logits."""
    from torchvision.models import VisionTransformer  # 2 seconds that the other checks do without

    patch_size, side, num_heads, classes = probe.sizes(4, low=2, high=6)
    config = ViTConfig(side * patch_size, patch_size, 3, classes + 5, 2 * num_heads, 2, num_heads, 2.5)
    theirs = VisionTransformer(
        config.height, patch_size, config.depth, num_heads, config.embed_dim, config.hidden_dim, num_classes=classes + 5
    ).eval()
    state, _ = torchvision_weights(probe, config)
    theirs.load_state_dict(state)
    loading = _Loading(student, probe, config, theirs.state_dict())
    if {name: each.shape for name, each in loading.held.items()} != {
        name: each.shape for name, each in loading.before.items()
    }:
        raise Failure("the model's parameters have other names or shapes after loading", "those that it had before")
    ours = reference.VisionTransformer(config)
    ours.load_state_dict(loading.held)
    images = probe.images(3, 3, config.height, config.width)
    with torch.no_grad():
        expect_equal(ours(images), theirs(images), "the logits after loading", ("image", "class"), look=LOOK)


@pytest.mark.exercise("load_torchvision", points=1)
def test_the_model_comes_back_and_the_weights_stay(student, reference, probe):
    """It returns the model that it was given; the state dict is left as it was, and no number is shared with it."""
    loading = _expect_loaded(student, probe, _config(probe))
    if loading.seen.result is not loading.seen.inputs[0]:
        kind = kind_of(loading.seen.result)
        raise Failure(f"load_torchvision gave {kind}", "the model itself", "What does your last line return?")
    if frozen := [name for name, each in loading.seen.result.named_parameters() if not each.requires_grad]:
        seen = f"after the call `{frozen[0]}` of the model requires no gradient"
        raise Failure(seen, "a model that goes on learning", "Which line freezes a parameter, and what undoes it?")
    after = loading.seen.inputs[1]
    gone, new = (sorted(set(a) - set(b)) for a, b in ((loading.theirs, after), (after, loading.theirs)))
    changed = [name for name, tensor in loading.theirs.items() if name in after and not _equal(after[name], tensor)]
    student.record.append((len(gone), len(new), len(changed), bool(loading.seen.shares_memory)))
    for names, what in ((gone, "is gone from"), (new, "is new in"), (changed, "has changed in")):
        if names:
            raise Failure(
                f"after the call `{names[0]}` {what} the state dict that you were given",
                "a state dict as it was: somebody else may want to read it",
                "Which line writes into the caller's dict? What could it write into instead?",
            )
    if loading.seen.shares_memory:
        look = "What is the difference between copying numbers and pointing at a tensor?"
        raise Failure("the model's numbers lie in the state dict's own tensors", "a model that owns its numbers", look)


@pytest.mark.exercise("load_torchvision", points=0.5)
def test_a_missing_tensor_is_named(student, reference, probe):
    """A state dict that lacks a tensor, whichever it is, raises ValueError naming it."""
    config = _config(probe)
    _expect_loaded(student, probe, config)
    state, _ = torchvision_weights(probe, config)
    ours, theirs = probe.choice(list(torchvision_names(config).items()))
    del state[theirs]
    _expect_named(student, probe, config, state, (theirs, ours), f"a state dict without `{theirs}`")


@pytest.mark.exercise("load_torchvision", points=0.5)
def test_a_tensor_too_many_is_named(student, reference, probe):
    """A tensor that has no place in the model, be it of one more block or a stranger, raises ValueError naming it."""
    config = _config(probe)
    _expect_loaded(student, probe, config)
    deeper, _ = torchvision_weights(probe, replace(config, depth=config.depth + 1))
    names = (f"encoder_layer_{config.depth}", f"blocks.{config.depth}")
    _expect_named(student, probe, config, deeper, names, f"{config.depth + 1} blocks for a model of {config.depth}")
    state, _ = torchvision_weights(probe, config)
    stranger = f"moving_average_{int(probe.integers(1, high=90)) + 10}"  # a name that no list of pieces has a piece of
    state[stranger] = probe.normal(config.embed_dim)
    _expect_named(student, probe, config, state, (stranger,), f"a state dict with `{stranger}` in it")


@pytest.mark.exercise("load_torchvision", points=0.5)
def test_a_tensor_that_does_not_fit_is_named(student, reference, probe):
    """A tensor of another size, whichever it is, raises ValueError naming it."""
    config = _config(probe)
    _expect_loaded(student, probe, config)
    state, _ = torchvision_weights(probe, config)
    ours, theirs = probe.choice(list(torchvision_names(config).items()))
    right = state[theirs]
    longer = torch.cat([right, right.narrow(right.ndim - 1, 0, 1)], dim=-1)
    state[theirs] = longer
    described = f"`{theirs}` of the shape {shape(longer)} for a model that wants {shape(right)}"
    _expect_named(student, probe, config, state, (theirs, ours), described)
