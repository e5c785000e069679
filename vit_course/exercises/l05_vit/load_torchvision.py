"""`load_torchvision`: torchvision's weights in the student's model.

No torchvision is needed: its names are known, every tensor is drawn at random, and the model that receives them is
a stand-in with the right parameter names. The known mistakes copy by the right pairs and slip once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import kind_of, shape
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quoted
from exercise_kit.reasons import Reason
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit import LESSON
from vit_course.exercises.l05_vit.vision_transformer.claims import WIDE_MODEL, StandIn, logits_of, parameter_shapes

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


def torchvision_names(config: ViTConfig) -> dict[str, str]:
    """Our name of each parameter → torchvision's."""
    theirs = ["class_token", "encoder.pos_embedding", "conv_proj.weight", "conv_proj.bias"]
    for number in range(config.depth):
        theirs += [f"encoder.layers.encoder_layer_{number}.{name}" for name in _IN_A_BLOCK]
    return dict(zip(parameter_shapes(config), [*theirs, *_AT_THE_END], strict=True))


def torchvision_weights(probe: Probe, config: ViTConfig) -> tuple[StateDict, dict[str, Tensor]]:
    """A state dict with torchvision's names and shapes, and the same numbers under our names, in our shapes."""
    ours = probe.weights(parameter_shapes(config))
    theirs = StateDict({name: ours[mine].clone() for mine, name in torchvision_names(config).items()})
    kernel = (config.embed_dim, config.in_channels, config.patch_size, config.patch_size)
    theirs["conv_proj.weight"] = theirs["conv_proj.weight"].reshape(kernel)
    return theirs, ours


def stand_in(probe: Probe, config: ViTConfig) -> StandIn:
    """A model whose parameters are random and none of them zero."""
    model = StandIn(parameter_shapes(config))
    with torch.no_grad():
        for name, tensor in probe.weights(parameter_shapes(config)).items():
            model.get_parameter(name).copy_(tensor)
    return model


load_torchvision = Exercise("load_torchvision", LESSON, in_training=InTraining.WORSE)


class _Loading:
    """One call of load_torchvision: what went in, what came back, and what the model holds after it."""

    def __init__(self, student: Student, probe: Probe, config: ViTConfig) -> None:
        self.theirs, self.wanted = torchvision_weights(probe, config)
        self.names = torchvision_names(config)
        model = stand_in(probe, config)
        self.before = _numbers(model)
        seen = student.see(model, self.theirs)
        self.model, self.state = seen.inputs
        self.returned = seen.result
        self.loaded = self.returned if isinstance(self.returned, nn.Module) else self.model
        student.record.append(tuple(_numbers(self.loaded).items()))

    def expect_something(self) -> None:
        """Fail when the model holds what it held before, so that nothing can be said of the loading."""
        held = _numbers(self.model)
        if held.keys() == self.before.keys() and all(torch.equal(held[name], self.before[name]) for name in held):
            raise Failure("load_torchvision left the model as it was", "torchvision's weights in it")

    def expect(self, of: Callable[[str], bool]) -> None:
        """Fail in words unless every parameter whose name ``of`` picks holds the right numbers."""
        found = _numbers(self.loaded)
        for name, right in self.wanted.items():
            if of(name) and not torch.equal(found.get(name, torch.empty(0)), right):
                raise Failure(
                    f"after loading, `{name}` {self._held(found.get(name), name)}",
                    f"the numbers of `{self.names[name]}`, which is {shape(self.theirs[self.names[name]])} there",
                    "Print your list of pairs, their name and yours, and read this one aloud.",
                )

    def _held(self, found: Tensor | None, ours: str) -> str:
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
            return f"has the shape {shape(found)}"
        return f"is wrong in {(found != self.wanted[ours]).float().mean():.0%} of its entries"


def _numbers(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


def _expect_named(student: Student, state: StateDict, probe: Probe, names: tuple[str, ...], described: str) -> None:
    """Fail unless loading ``state`` raises a ValueError that holds one of ``names``, and loading a right one none."""
    _Loading(student, probe, MODEL).expect_something()
    error = student.error_of(stand_in(probe, MODEL), state)
    wanted = f"a ValueError that names `{names[0]}`"
    look = "Compare the names and shapes of both sides before you copy, or catch torch's error and say it as yours."
    if error is None:
        raise Failure(f"load_torchvision accepted {described}", wanted, look)
    named = any(name in error.words for name in names)
    student.record.append(("named", named))
    if not error.is_a("ValueError"):
        raise Failure(f"load_torchvision raised {error} on {described}", wanted, look, Reason.RAISED)
    if not named:
        text = quoted(error.words, 80) or "no text"
        raise Failure(f"load_torchvision raised ValueError with {text} on {described}", wanted, look, Reason.RAISED)


@load_torchvision.check(guard=True)
def the_model_comes_back(student: Student, probe: Probe) -> None:
    """It returns the model that it was given."""
    loading = _Loading(student, probe, MODEL)
    if loading.returned is not loading.model:
        kind = "another model" if isinstance(loading.returned, nn.Module) else kind_of(loading.returned)
        raise Failure(f"load_torchvision gave {kind}", "the model itself", "What does your last line return?")


@load_torchvision.check
def kernels_become_rows_of_the_projection(student: Student, probe: Probe) -> None:
    """The patch embedding's kernels become rows of your Linear, in the order of your patches."""
    _Loading(student, probe, MODEL).expect(lambda name: name.startswith("patch_embedding."))


@load_torchvision.check
def queries_keys_and_values_stay_in_order(student: Student, probe: Probe) -> None:
    """The rows of in_proj, which makes queries, keys and values, arrive in qkv in their order."""
    _Loading(student, probe, MODEL).expect(lambda name: ".qkv." in name)


@load_torchvision.check
def every_block_gets_its_own_weights(student: Student, probe: Probe) -> None:
    """In a model of twelve blocks the tensors of every block arrive where they belong."""
    _Loading(student, probe, TWELVE_BLOCKS).expect(lambda name: name.startswith("blocks.") and ".qkv." not in name)


@load_torchvision.check
def both_ends_are_loaded(student: Student, probe: Probe) -> None:
    """Class token, positions, final norm and head arrive too."""
    ends = ("class_token", "positions", "norm.", "head.")
    _Loading(student, probe, MODEL).expect(lambda name: name.startswith(ends))


@load_torchvision.check
def the_logits_become_torchvisions(student: Student, probe: Probe) -> None:
    """After loading, the model gives torchvision's logits."""
    loading = _Loading(student, probe, MODEL)
    found = _numbers(loading.loaded)
    images = probe.images(4, MODEL.in_channels, MODEL.height, MODEL.width)
    if {name: each.shape for name, each in found.items()} != {
        name: each.shape for name, each in loading.before.items()
    }:
        raise Failure("the model's parameters have other names or shapes after loading", "those that it had before")
    difference = float((logits_of(found, images, MODEL) - logits_of(loading.wanted, images, MODEL)).abs().max())
    if not difference < 1e-4:
        raise Failure(
            f"the logits of the loaded model and of torchvision's differ by up to {difference:.2g}",
            "less than 1e-4",
            "The other checks say which tensors did not arrive.",
        )


@load_torchvision.check(guard=True)
def the_weights_are_copies(student: Student, probe: Probe) -> None:
    """The model keeps its numbers when the state dict is changed afterward."""
    loading = _Loading(student, probe, MODEL)
    loading.expect_something()
    before = _numbers(loading.loaded)
    with torch.no_grad():
        for tensor in loading.state.values():
            tensor.zero_()
    after = _numbers(loading.loaded)
    changed = [name for name in after if not torch.equal(before[name], after[name])]
    student.record.append(("changed with the state dict", tuple(changed)))
    if changed:
        raise Failure(
            f"setting the state dict to zero after loading also changed the model's `{changed[0]}`",
            "a model that owns its numbers",
            "What is the difference between copying numbers and pointing at a tensor?",
        )


@load_torchvision.check(guard=True)
def the_state_dict_is_left_alone(student: Student, probe: Probe) -> None:
    """The state dict has the same names and tensors after the call as before."""
    loading = _Loading(student, probe, MODEL)
    loading.expect_something()
    gone = [name for name in loading.theirs if name not in loading.state]
    new = [name for name in loading.state if name not in loading.theirs]
    changed = [
        name for name, tensor in loading.theirs.items() if name not in gone and not _equal(loading.state[name], tensor)
    ]
    student.record.append((tuple(gone), tuple(new), tuple(changed)))
    for names, what in ((gone, "is gone from"), (new, "is new in"), (changed, "has changed in")):
        if names:
            raise Failure(
                f"after the call `{names[0]}` {what} the state dict that you were given",
                "a state dict as it was: somebody else may want to read it",
                "Which line writes into the caller's dict? What could it write into instead?",
            )


def _equal(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.equal(first, second)


@load_torchvision.check(guard=True)
def a_missing_tensor_is_named(student: Student, probe: Probe) -> None:
    """A state dict that lacks a tensor raises ValueError naming it."""
    state, _ = torchvision_weights(probe, MODEL)
    del state["encoder.ln.bias"]
    _expect_named(student, state, probe, ("encoder.ln.bias", "norm.bias"), "a state dict without `encoder.ln.bias`")


@load_torchvision.check(guard=True)
def a_tensor_too_many_is_named(student: Student, probe: Probe) -> None:
    """A state dict of a deeper model raises ValueError naming a tensor that has no place."""
    state, _ = torchvision_weights(probe, replace(MODEL, depth=MODEL.depth + 1))
    names = (f"encoder_layer_{MODEL.depth}", f"blocks.{MODEL.depth}")
    _expect_named(student, state, probe, names, f"{MODEL.depth + 1} blocks for a model of {MODEL.depth}")


@load_torchvision.check(guard=True)
def a_tensor_that_does_not_fit_is_named(student: Student, probe: Probe) -> None:
    """A head for another number of classes raises ValueError naming it."""
    state, _ = torchvision_weights(probe, replace(MODEL, num_classes=11))
    names = ("heads.head", "head.weight", "head.bias")
    _expect_named(student, state, probe, names, "a head of 11 classes for a model of 7")


NAMES = "05_vit, Somebody else's names"


def _pairs(model: nn.Module) -> dict[str, str]:
    """Our name → theirs, for a model of any depth."""
    depth = len({name.split(".")[1] for name, _ in model.named_parameters() if name.startswith("blocks.")})
    return torchvision_names(ViTConfig(depth=depth))


def _translated(model: nn.Module, state: StateDict) -> dict[str, Tensor]:
    """Their tensors under our names and in our shapes; a tensor that is missing raises ValueError naming it."""
    pairs = _pairs(model)
    if unpaired := (set(pairs.values()) ^ set(state)):
        raise ValueError(f"these names have no partner: {', '.join(sorted(unpaired)[:4])}")
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    for ours, theirs in pairs.items():
        if state[theirs].numel() != shapes[ours].numel():
            raise ValueError(f"{theirs} does not fit {ours}")
    return {ours: state[theirs].reshape(shapes[ours]).clone() for ours, theirs in pairs.items()}


def _fill(model: nn.Module, tensors: dict[str, Tensor]) -> nn.Module:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in tensors:
                parameter.copy_(tensors[name])
    return model


@load_torchvision.misconception("In which order does your patchify unroll a patch?", NAMES)
def kernels_unrolled_channels_last(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The kernels are permuted before they are flattened, so a row goes pixel by pixel with the channels inside."""
    tensors = _translated(model, state_dict)
    tensors["patch_embedding.projection.weight"] = state_dict["conv_proj.weight"].movedim(1, -1).flatten(1)
    return _fill(model, tensors)


@load_torchvision.misconception("Does your patchify go through a patch row by row or column by column?", NAMES)
def kernels_on_their_side(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """Rows and columns of each kernel are swapped before it is flattened."""
    tensors = _translated(model, state_dict)
    tensors["patch_embedding.projection.weight"] = state_dict["conv_proj.weight"].mT.flatten(1)
    return _fill(model, tensors)


@load_torchvision.misconception("Which third of in_proj_weight makes the queries?", NAMES)
def keys_before_queries(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The thirds of in_proj are taken as keys, queries, values."""
    tensors = _translated(model, state_dict)
    for name in [name for name in tensors if ".qkv." in name]:
        query, key, value = tensors[name].chunk(3)
        tensors[name] = torch.cat([key, query, value])
    return _fill(model, tensors)


@load_torchvision.misconception("Are the rows of qkv sorted by head first, or by query, key and value?", NAMES)
def rows_sorted_by_head(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The rows of in_proj are regrouped by head, as if each head kept its query, key and value together."""
    tensors = _translated(model, state_dict)
    for name in [name for name in tensors if ".qkv." in name]:
        tensors[name] = tensors[name].unflatten(0, (3, 2, -1)).transpose(0, 1).flatten(0, 2)
    return _fill(model, tensors)


@load_torchvision.misconception("Which of the two norms of a block stands before attention?", NAMES)
def norms_swapped(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """ln_1 is loaded into norm2 and ln_2 into norm1: the shapes fit, so there is no error."""
    tensors = _translated(model, state_dict)
    swap = {"norm1": "norm2", "norm2": "norm1"}
    for ours, theirs in _pairs(model).items():
        for mine, other in swap.items():
            if mine in ours:
                tensors[ours.replace(mine, other)] = state_dict[theirs]
    return _fill(model, tensors)


@load_torchvision.misconception("Which other names begin with encoder_layer_1?", NAMES)
def block_1_mistaken_for_10_and_11(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """A name is replaced by its beginning, and encoder_layer_1 is the beginning of encoder_layer_10 too."""
    tensors = _translated(model, state_dict)
    for name in [name for name in tensors if name.startswith("blocks.1.")]:
        for number in ("10", "11"):
            tensors[name.replace("blocks.1.", f"blocks.{number}.")] = tensors[name]
    return _fill(model, tensors)


@load_torchvision.misconception("How does Python sort the words '2' and '10'?", NAMES)
def blocks_sorted_as_words(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The blocks are paired in alphabetical order, in which 10 and 11 come before 2."""
    tensors = _translated(model, state_dict)
    depth = len({name.split(".")[1] for name in tensors if name.startswith("blocks.")})
    words = sorted(str(number) for number in range(depth))
    moved = {
        name.replace(f"blocks.{word}.", f"blocks.{place}.", 1): tensors[name]
        for place, word in enumerate(words)
        for name in tensors
        if name.startswith(f"blocks.{word}.")
    }
    return _fill(model, tensors | moved)


@load_torchvision.misconception("Whose position is in row 0?", NAMES, InTraining.HIDDEN)
def class_row_of_the_positions_dropped(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The positions of the patches are loaded, the class token's row is not."""
    tensors = _translated(model, state_dict)
    own = model.get_parameter("positions").detach()
    tensors["positions"] = torch.cat([own[:, :1], tensors["positions"][:, 1:]], dim=1)
    return _fill(model, tensors)


@load_torchvision.misconception(
    "Which parameters are not inside any part with a longer name?", NAMES, InTraining.HIDDEN
)
def class_token_left_out(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The class token keeps its own numbers."""
    tensors = _translated(model, state_dict)
    del tensors["class_token"]
    return _fill(model, tensors)


@load_torchvision.misconception("Which layer turns the class token into the 1000 classes?", NAMES)
def head_left_out(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The head keeps its own numbers, as one does for a new task; here the old task is wanted."""
    tensors = {name: tensor for name, tensor in _translated(model, state_dict).items() if not name.startswith("head.")}
    return _fill(model, tensors)


@load_torchvision.misconception("Which differences does strict=False not report?", NAMES, InTraining.UNSEEN)
def what_does_not_fit_is_skipped(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """Tensors that are missing, left over or of another shape are skipped without an error."""
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    pairs = {ours: theirs for ours, theirs in _pairs(model).items() if theirs in state_dict}
    fitting = {ours: theirs for ours, theirs in pairs.items() if state_dict[theirs].numel() == shapes[ours].numel()}
    return _fill(model, {ours: state_dict[theirs].reshape(shapes[ours]) for ours, theirs in fitting.items()})


@load_torchvision.misconception("Which of their tensors did you never look at?", NAMES, InTraining.UNSEEN)
def left_over_tensors_unnoticed(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """Only the names that the model wants are looked up, so tensors that have no place are not noticed."""
    wanted = set(_pairs(model).values())
    return _fill(model, _translated(model, StateDict({name: state_dict[name] for name in wanted & set(state_dict)})))


@load_torchvision.misconception(
    "Which error does load_state_dict raise, and which one was asked for?", NAMES, InTraining.UNSEEN
)
def error_of_torch_passed_on(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """What does not fit raises torch's RuntimeError, where a ValueError was asked for."""
    try:
        return _fill(model, _translated(model, state_dict))
    except ValueError as error:
        raise RuntimeError(str(error)) from None


@load_torchvision.misconception("Could a reader of your error find the tensor?", NAMES, InTraining.UNSEEN)
def error_without_a_name(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The ValueError does not say which tensor is at fault."""
    try:
        return _fill(model, _translated(model, state_dict))
    except ValueError:
        raise ValueError("the weights do not fit") from None


@load_torchvision.misconception("What does load_state_dict return?", NAMES, InTraining.STOPS)
def the_list_of_keys_returned(model: nn.Module, state_dict: StateDict) -> object:
    """The answer of load_state_dict is returned: a pair of lists of names, and not the model."""
    return model.load_state_dict(_translated(model, state_dict))


@load_torchvision.misconception("Does your function have a return?", NAMES, InTraining.STOPS)
def nothing_returned(model: nn.Module, state_dict: StateDict) -> None:
    """The weights are loaded, but the model is not returned."""
    _fill(model, _translated(model, state_dict))


@load_torchvision.misconception("Does an assignment to .data copy, or point?", NAMES, InTraining.UNSEEN)
def weights_shared_not_copied(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The parameters point at the state dict's own tensors, so training the model would change the file's numbers."""
    _translated(model, state_dict)
    for ours, theirs in _pairs(model).items():
        parameter = model.get_parameter(ours)
        parameter.data = state_dict[theirs].view(parameter.shape)
    return model


@load_torchvision.misconception("Whose dict does pop change?", NAMES, InTraining.UNSEEN)
def state_dict_renamed_in_place(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The names are changed inside the caller's state dict, which nobody else can use afterward."""
    tensors = _translated(model, state_dict)
    for ours, theirs in _pairs(model).items():
        state_dict.pop(theirs)
        state_dict[ours] = tensors[ours]
    return _fill(model, tensors)


Load = Callable[[nn.Module, StateDict], Any]
_LOADS = (
    kernels_unrolled_channels_last,
    kernels_on_their_side,
    keys_before_queries,
    rows_sorted_by_head,
    norms_swapped,
    class_row_of_the_positions_dropped,
    class_token_left_out,
    head_left_out,
)


def _loaded(
    model: nn.Module,
    state_dict: StateDict,
    *,
    error: Callable[[ValueError], Exception] = lambda error: error,
    postprocess: Callable[[nn.Module], Any] = lambda model: model,
    **loads: Load,
) -> Any:
    """Every parameter as the one of ``loads`` has it that does not load it as the others do."""
    try:
        right = _translated(model, state_dict)
    except ValueError as misfit:
        raise error(misfit) from None
    own = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    found = dict(right)
    for load in loads.values():
        for name, parameter in load(_fill(model, own), state_dict).named_parameters():
            if not torch.equal(parameter, right[name]):
                found[name] = parameter.detach().clone()
    return postprocess(_fill(model, found))


declare(
    load_torchvision,
    Parts(
        _loaded,
        {
            **{each: {each.__name__: each} for each in _LOADS},
            error_of_torch_passed_on: {"error": lambda misfit: RuntimeError(str(misfit))},
            error_without_a_name: {"error": lambda misfit: ValueError("the weights do not fit")},
            nothing_returned: {"postprocess": lambda model: None},
        },
        slow=True,
    ),
)
