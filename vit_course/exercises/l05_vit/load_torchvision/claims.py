"""`load_torchvision`: torchvision's weights in the student's model.

No torchvision is needed: its names are known, every tensor is drawn at random, and the model that receives them is
a stand-in with the right parameter names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import describe_kind, format_shape
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quote_first_line
from exercise_kit.reasons import Reason
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit import LESSON
from vit_course.exercises.l05_vit.small_models import StandIn, draw_config
from vit_course.exercises.l05_vit.vision_transformer.claims import WIDE_MODEL, list_parameter_shapes, logits_of

MODEL = replace(WIDE_MODEL, in_channels=3, image_size=(9, 6), patch_size=3)
TWELVE_BLOCKS = replace(MODEL, embed_dim=4, depth=12)
_IN_A_BLOCK = (
    *("ln_1.weight", "ln_1.bias"),
    *("self_attention.in_proj_weight", "self_attention.in_proj_bias"),
    *("self_attention.out_proj.weight", "self_attention.out_proj.bias"),
    *("ln_2.weight", "ln_2.bias"),
    *("mlp.0.weight", "mlp.0.bias", "mlp.3.weight", "mlp.3.bias"),
)
_AT_THE_END = ("encoder.ln.weight", "encoder.ln.bias", "heads.head.weight", "heads.head.bias")


class StateDict(dict[str, Tensor]):
    """A state dict that shows itself in a few words."""

    def __repr__(self) -> str:
        return f"a state dict of {len(self)} tensors"


def map_names_to_torchvision(config: ViTConfig) -> dict[str, str]:
    """Our name of each parameter → torchvision's."""
    theirs = ["class_token", "encoder.pos_embedding", "conv_proj.weight", "conv_proj.bias"]
    for number in range(config.depth):
        theirs += [f"encoder.layers.encoder_layer_{number}.{name}" for name in _IN_A_BLOCK]
    return dict(zip(list_parameter_shapes(config), [*theirs, *_AT_THE_END], strict=True))


def draw_torchvision_weights(probe: Probe, config: ViTConfig) -> tuple[StateDict, dict[str, Tensor]]:
    """A state dict with torchvision's names and shapes, and the same numbers under our names, in our shapes."""
    ours = probe.weights(list_parameter_shapes(config))
    theirs = StateDict({name: ours[mine].clone() for mine, name in map_names_to_torchvision(config).items()})
    kernel = (config.embed_dim, config.in_channels, config.patch_size, config.patch_size)
    theirs["conv_proj.weight"] = theirs["conv_proj.weight"].reshape(kernel)
    return theirs, ours


def make_stand_in_model(probe: Probe, config: ViTConfig) -> StandIn:
    """A model whose parameters are random and none of them zero."""
    model = StandIn(list_parameter_shapes(config))
    with torch.no_grad():
        for name, tensor in probe.weights(list_parameter_shapes(config)).items():
            model.get_parameter(name).copy_(tensor)
    return model


load_torchvision = Exercise("load_torchvision", LESSON, in_training=InTraining.WORSE)


class _Loading:
    """One call of load_torchvision: what went in, what came back, and what the model holds after it."""

    def __init__(self, student: Student, probe: Probe, config: ViTConfig) -> None:
        self.theirs, self.wanted = draw_torchvision_weights(probe, config)
        self.names = map_names_to_torchvision(config)
        model = make_stand_in_model(probe, config)
        self.before = _copy_parameters(model)
        seen = student.see(model, self.theirs)
        self.model, self.state = seen.inputs
        self.returned, self.shares_memory = seen.result, seen.shares_memory
        self.loaded = self.returned if isinstance(self.returned, nn.Module) else self.model
        student.note(tuple(_copy_parameters(self.loaded).items()))

    def expect_most_is_loaded(self) -> None:
        """Fail unless most numbers arrive, so that nothing is earned by refusing or returning alone."""
        held = _copy_parameters(self.model)
        if held.keys() == self.before.keys() and all(torch.equal(held[name], self.before[name]) for name in held):
            raise Failure("load_torchvision left the model as it was", "torchvision's weights in it")
        loaded = _copy_parameters(self.loaded)
        if 2 * sum(_is_equal(loaded.get(name), right) for name, right in self.wanted.items()) <= len(self.wanted):
            self.expect_loaded(lambda name: True)

    def expect_loaded(self, of: Callable[[str], bool]) -> None:
        """Fail in words unless every parameter whose name ``of`` picks holds the right numbers."""
        found = _copy_parameters(self.loaded)
        for name, right in self.wanted.items():
            if of(name) and not _is_equal(found.get(name), right):
                raise Failure(
                    f"after loading, `{name}` {self._describe_held_numbers(found.get(name), name)}",
                    f"the numbers of `{self.names[name]}`, which is "
                    f"{format_shape(self.theirs[self.names[name]])} there",
                    "Print your list of pairs, their name and yours, and read this one aloud.",
                )

    def _describe_held_numbers(self, found: Tensor | None, ours: str) -> str:
        if found is None:
            return "is gone"
        if torch.equal(found, self.before[ours]):
            return "holds what it held before"
        values = found.flatten().sort().values
        for name, tensor in self.theirs.items():
            if torch.equal(found.flatten(), tensor.flatten()):
                return f"holds the numbers of `{name}`"
            if torch.equal(values, tensor.flatten().sort().values):
                return f"holds the numbers of `{name}` in another order"
        if found.shape != self.wanted[ours].shape:
            return f"has the shape {format_shape(found)}"
        return f"is wrong in {(found != self.wanted[ours]).float().mean():.0%} of its entries"


def _copy_parameters(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


def _is_equal(found: Tensor | None, wanted: Tensor) -> bool:
    return found is not None and torch.equal(found, wanted)


def _expect_error_naming(
    student: Student, probe: Probe, config: ViTConfig, state: StateDict, names: tuple[str, ...], described: str
) -> None:
    """Fail unless loading ``state`` raises a ValueError that holds one of ``names``."""
    error = student.catch_error(make_stand_in_model(probe, config), state)
    wanted = f"a ValueError that names `{names[0]}`"
    look = "Compare the names and shapes of both sides before you copy, or catch torch's error and say it as yours."
    if error is None:
        raise Failure(f"load_torchvision accepted {described}", wanted, look)
    named = any(name in error.words for name in names)
    student.note(("named", named))
    if not error.is_a("ValueError"):
        raise Failure(f"load_torchvision raised {error} on {described}", wanted, look, Reason.RAISED)
    if not named:
        text = quote_first_line(error.words, 80) or "no text"
        raise Failure(f"load_torchvision raised ValueError with {text} on {described}", wanted, look, Reason.RAISED)


@load_torchvision.check(guard=True, points=0.5)
def the_model_comes_back(student: Student, probe: Probe) -> None:
    """It returns the model that it was given, which can go on learning."""
    loading = _Loading(student, probe, draw_config(probe, MODEL))
    if loading.returned is not loading.model:
        kind = "another model" if isinstance(loading.returned, nn.Module) else describe_kind(loading.returned)
        raise Failure(f"load_torchvision gave {kind}", "the model itself", "What does your last line return?")
    if frozen := [name for name, each in loading.model.named_parameters() if not each.requires_grad]:
        seen = f"after the call `{frozen[0]}` of the model requires no gradient"
        raise Failure(seen, "a model that goes on learning", "Which line freezes a parameter, and what undoes it?")
    loading.expect_most_is_loaded()


@load_torchvision.check(points=0.75)
def kernels_become_rows_of_the_projection(student: Student, probe: Probe) -> None:
    """The patch embedding's kernels become rows of your Linear, in the order of your patches."""
    _Loading(student, probe, draw_config(probe, MODEL)).expect_loaded(lambda name: name.startswith("patch_embedding."))


@load_torchvision.check(points=0.75)
def queries_keys_and_values_stay_in_order(student: Student, probe: Probe) -> None:
    """The rows of in_proj, which makes queries, keys and values, arrive in qkv in their order."""
    _Loading(student, probe, draw_config(probe, MODEL, depth=2)).expect_loaded(lambda name: ".qkv." in name)


@load_torchvision.check(points=0.75)
def every_block_gets_its_own_weights(student: Student, probe: Probe) -> None:
    """In a model of more than ten blocks the tensors of every block arrive where they belong."""
    loading = _Loading(student, probe, _draw_config_of_many_blocks(probe))
    loading.expect_loaded(lambda name: name.startswith("blocks.") and ".qkv." not in name)


def _draw_config_of_many_blocks(probe: Probe) -> ViTConfig:
    return draw_config(probe, TWELVE_BLOCKS, depth=probe.choice((13, 14, 15)), embed_dim=4, num_heads=2, mlp_ratio=1.5)


@load_torchvision.check(points=0.75)
def both_ends_are_loaded(student: Student, probe: Probe) -> None:
    """Class token, positions, final norm and head arrive too."""
    ends = ("class_token", "positions", "norm.", "head.")
    _Loading(student, probe, draw_config(probe, MODEL)).expect_loaded(lambda name: name.startswith(ends))


@load_torchvision.check(points=1.75)
def the_logits_become_torchvisions(student: Student, probe: Probe) -> None:
    """After loading, the model gives torchvision's logits."""
    config = _draw_config_of_many_blocks(probe)
    loading = _Loading(student, probe, config)
    found = _copy_parameters(loading.loaded)
    images = probe.images(4, config.in_channels, config.height, config.width)
    if {name: each.shape for name, each in found.items()} != {
        name: each.shape for name, each in loading.before.items()
    }:
        raise Failure("the model's parameters have other names or shapes after loading", "those that it had before")
    difference = float((logits_of(found, images, config) - logits_of(loading.wanted, images, config)).abs().max())
    if not difference < 1e-4:
        raise Failure(
            f"the logits of the loaded model and of torchvision's differ by up to {difference:.2g}",
            "less than 1e-4",
            "The other checks say which tensors did not arrive.",
        )


@load_torchvision.check(guard=True, points=0.25)
def the_weights_are_copies(student: Student, probe: Probe) -> None:
    """The model keeps its numbers when the state dict is changed afterward."""
    loading = _Loading(student, probe, draw_config(probe, MODEL))
    loading.expect_most_is_loaded()
    student.note(("shares memory", loading.shares_memory))
    if loading.shares_memory:
        look = "What is the difference between copying numbers and pointing at a tensor?"
        raise Failure("the model's numbers lie in the state dict's own tensors", "a model that owns its numbers", look)


@load_torchvision.check(guard=True, points=0.25)
def the_state_dict_is_left_alone(student: Student, probe: Probe) -> None:
    """The state dict has the same names and tensors after the call as before."""
    loading = _Loading(student, probe, draw_config(probe, MODEL))
    loading.expect_most_is_loaded()
    gone = [name for name in loading.theirs if name not in loading.state]
    new = [name for name in loading.state if name not in loading.theirs]
    changed = [
        name
        for name, tensor in loading.theirs.items()
        if name not in gone and not _is_equal(loading.state[name], tensor)
    ]
    student.note((tuple(gone), tuple(new), tuple(changed)))
    for names, what in ((gone, "is gone from"), (new, "is new in"), (changed, "has changed in")):
        if names:
            raise Failure(
                f"after the call `{names[0]}` {what} the state dict that you were given",
                "a state dict as it was: somebody else may want to read it",
                "Which line writes into the caller's dict? What could it write into instead?",
            )


@load_torchvision.check(guard=True, points=0.5)
def a_missing_tensor_is_named(student: Student, probe: Probe) -> None:
    """A state dict that lacks a tensor raises ValueError naming it."""
    config = draw_config(probe, MODEL)
    _Loading(student, probe, config).expect_most_is_loaded()
    state, _ = draw_torchvision_weights(probe, config)
    names = list(map_names_to_torchvision(config).items())
    ours, theirs = probe.choice(names, shown=("norm.bias", "encoder.ln.bias"))
    del state[theirs]
    _expect_error_naming(student, probe, config, state, (theirs, ours), f"a state dict without `{theirs}`")


@load_torchvision.check(guard=True, points=0.25)
def a_tensor_too_many_is_named(student: Student, probe: Probe) -> None:
    """A tensor that has no place in the model, be it of one more block or a stranger, raises ValueError naming it."""
    config = draw_config(probe, MODEL)
    _Loading(student, probe, config).expect_most_is_loaded()
    deeper, _ = draw_torchvision_weights(probe, replace(config, depth=config.depth + 1))
    names = (f"encoder_layer_{config.depth}", f"blocks.{config.depth}")
    _expect_error_naming(
        student, probe, config, deeper, names, f"{config.depth + 1} blocks for a model of {config.depth}"
    )
    state, _ = draw_torchvision_weights(probe, config)
    stranger = f"moving_average_{probe.choice(range(10, 100))}"  # a name that no list of pieces has a piece of
    state[stranger] = probe.normal(config.embed_dim)
    _expect_error_naming(student, probe, config, state, (stranger,), f"a state dict with `{stranger}` in it")


@load_torchvision.check(guard=True, points=0.5)
def a_tensor_that_does_not_fit_is_named(student: Student, probe: Probe) -> None:
    """A tensor of another size, as those of a head for more classes, raises ValueError naming it."""
    config = draw_config(probe, MODEL)
    _Loading(student, probe, config).expect_most_is_loaded()
    classes = config.num_classes + 4
    state, _ = draw_torchvision_weights(probe, replace(config, num_classes=classes))
    described = f"a head of {classes} classes for a model of {config.num_classes}"
    _expect_error_naming(student, probe, config, state, ("heads.head", "head.weight", "head.bias"), described)
    names = map_names_to_torchvision(config)
    for ours in ("patch_embedding.projection.weight", probe.choice(list(names))):
        state, _ = draw_torchvision_weights(probe, config)
        theirs, right = names[ours], state[names[ours]]
        others = [torch.cat([right, right[..., :1]], dim=-1)]
        if right.ndim == 4:  # a size that would stretch
            others.append(right[:1])
        for other in others:
            described = f"`{theirs}` of the shape {format_shape(other)} for a model that wants {format_shape(right)}"
            state[theirs] = other
            _expect_error_naming(student, probe, config, state, (theirs, ours), described)


read_mistakes(load_torchvision, __name__)
declare_pairs(load_torchvision, Edits(slow=True))
