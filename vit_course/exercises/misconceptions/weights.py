"""Known mistakes of lesson 05: loading torchvision's weights. Each copies by the right pairs and slips once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exercise_kit.engine.exercise import InTraining
from vit_course.config import ViTConfig
from vit_course.exercises.checks.weights import StateDict, load_torchvision, torchvision_names

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
    """ln_1 is loaded into norm2 and ln_2 into norm1: the shapes fit, so nothing complains."""
    tensors = _translated(model, state_dict)
    swap = {"norm1": "norm2", "norm2": "norm1"}
    for ours, theirs in _pairs(model).items():
        for mine, other in swap.items():
            if mine in ours:
                tensors[ours.replace(mine, other)] = state_dict[theirs]
    return _fill(model, tensors)


@load_torchvision.misconception("What else does encoder_layer_1 stand at the beginning of?", NAMES)
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


@load_torchvision.misconception("Who says military uniform in the end?", NAMES)
def head_left_out(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The head keeps its own numbers, as one does for a new task; here the old task is wanted."""
    tensors = {name: tensor for name, tensor in _translated(model, state_dict).items() if not name.startswith("head.")}
    return _fill(model, tensors)


@load_torchvision.misconception("What does strict=False keep silent about?", NAMES, InTraining.UNSEEN)
def what_does_not_fit_is_skipped(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """Tensors that are missing, left over or of another shape are passed over in silence."""
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    pairs = {ours: theirs for ours, theirs in _pairs(model).items() if theirs in state_dict}
    fitting = {ours: theirs for ours, theirs in pairs.items() if state_dict[theirs].numel() == shapes[ours].numel()}
    return _fill(model, {ours: state_dict[theirs].reshape(shapes[ours]) for ours, theirs in fitting.items()})


@load_torchvision.misconception("Which of their tensors did you never look at?", NAMES, InTraining.UNSEEN)
def left_over_tensors_unnoticed(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """Only the names that the model wants are looked up, so nobody notices tensors that have no place."""
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


@load_torchvision.misconception("Could a reader of your error mend the file?", NAMES, InTraining.UNSEEN)
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


@load_torchvision.misconception("Whose dict does pop take its entry from?", NAMES, InTraining.UNSEEN)
def state_dict_renamed_in_place(model: nn.Module, state_dict: StateDict) -> nn.Module:
    """The names are changed inside the caller's state dict, which nobody else can use afterwards."""
    tensors = _translated(model, state_dict)
    for ours, theirs in _pairs(model).items():
        state_dict.pop(theirs)
        state_dict[ours] = tensors[ours]
    return _fill(model, tensors)
