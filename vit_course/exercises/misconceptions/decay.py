"""Known mistakes of lesson 06: who is decayed. Each goes through the model's parts and deals their tensors out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import Tensor, nn

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.decay import parameter_groups

DECAYED = "06_cifar, Who is decayed"
Groups = list[dict[str, Any]]
_NAMES = re.compile("norm|bias|class_token|positions")
_MULTIPLIES = (nn.Linear, nn.Conv2d)


def _dealt(model: nn.Module, weight_decay: float, belongs: Callable[[nn.Module, str, Tensor], bool]) -> Groups:
    """Two groups: the tensors that ``belongs(part, name in the part, tensor)`` chooses, and the others."""
    piles: tuple[list[Tensor], list[Tensor]] = ([], [])
    for part, name, tensor in _tensors(model):
        piles[not belongs(part, name, tensor)].append(tensor)
    return [{"params": piles[0], "weight_decay": weight_decay}, {"params": piles[1], "weight_decay": 0.0}]


def _tensors(model: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    met: set[int] = set()
    for part in model.modules():
        for name, tensor in part.named_parameters(recurse=False):
            if id(tensor) not in met:
                yield part, name, tensor
            met.add(id(tensor))


def _multiplies(part: nn.Module, name: str, _: Tensor) -> bool:
    return isinstance(part, _MULTIPLIES) and name == "weight"


@parameter_groups.misconception("What does decay do to the scale of a norm, which should stay near 1?", DECAYED)
def everything_decayed(model: nn.Module, weight_decay: float) -> Groups:
    """Every parameter is decayed, norms, biases and positions too."""
    return _dealt(model, weight_decay, lambda *_: True)


@parameter_groups.misconception("Which of your two lists has anything in it?", DECAYED)
def nothing_decayed(model: nn.Module, weight_decay: float) -> Groups:
    """No parameter is decayed: the first group is empty."""
    return _dealt(model, weight_decay, lambda *_: False)


@parameter_groups.misconception("Which group should get weight_decay, and which one 0?", DECAYED)
def the_wrong_group_decayed(model: nn.Module, weight_decay: float) -> Groups:
    """The two groups have each other's weight decay, so the matrices are spared and all else is decayed."""
    return _dealt(model, weight_decay, lambda *given: not _multiplies(*given))


@parameter_groups.misconception("Which tensors of the model have several axes and multiply nothing?", DECAYED)
def sorted_by_axes_alone(model: nn.Module, weight_decay: float) -> Groups:
    """All that has two axes or more is decayed, and class token and positions have three."""
    return _dealt(model, weight_decay, lambda part, name, tensor: tensor.ndim > 1)


@parameter_groups.misconception("What is the scale of a LayerNorm called?", DECAYED)
def sorted_by_the_name_weight_alone(model: nn.Module, weight_decay: float) -> Groups:
    """All that is called weight is decayed, and so is the scale of every norm."""
    return _dealt(model, weight_decay, lambda part, name, tensor: name == "weight")


@parameter_groups.misconception("Is a bias the only thing that should not be decayed?", DECAYED)
def only_biases_spared(model: nn.Module, weight_decay: float) -> Groups:
    """Only biases are spared; the scales of the norms, the class token and the positions are decayed."""
    return _dealt(model, weight_decay, lambda part, name, tensor: name != "bias")


@parameter_groups.misconception("What has a position in common with a bias?", DECAYED)
def only_norms_and_biases_spared(model: nn.Module, weight_decay: float) -> Groups:
    """Norms and biases are spared, but class token and positions are decayed."""
    return _dealt(model, weight_decay, lambda part, name, tensor: name != "bias" and not isinstance(part, nn.LayerNorm))


@parameter_groups.misconception("Would your rule know a norm that is called `stem.1`?", DECAYED)
def norms_known_by_their_name(model: nn.Module, weight_decay: float) -> Groups:
    """A norm is known by the letters `norm` in its name, so in other people's models it goes unseen."""
    named = {id(part) for name, part in model.named_modules() if "norm" in name}
    return _dealt(model, weight_decay, lambda part, name, _: name == "weight" and id(part) not in named)


@parameter_groups.misconception("Would your list of names do for a model that somebody else has written?", DECAYED)
def spared_by_a_list_of_names(model: nn.Module, weight_decay: float) -> Groups:
    """What is spared is known by the names in this one model, so in another one norms and tables are decayed."""
    spared = {id(each) for name, each in model.named_parameters() if _NAMES.search(name)}
    return _dealt(model, weight_decay, lambda part, name, tensor: id(tensor) not in spared)


@parameter_groups.misconception("Which layers multiply, apart from Linears?", DECAYED)
def convolutions_forgotten(model: nn.Module, weight_decay: float) -> Groups:
    """Only the weights of Linears are decayed, and those of convolutions are not."""
    return _dealt(model, weight_decay, lambda part, name, _: isinstance(part, nn.Linear) and name == "weight")


@parameter_groups.misconception("How many axes has the weight of a convolution?", DECAYED)
def matrices_of_two_axes_alone(model: nn.Module, weight_decay: float) -> Groups:
    """All that has exactly two axes is decayed, and the weights of convolutions are not."""
    return _dealt(model, weight_decay, lambda part, name, tensor: tensor.ndim == 2)


@parameter_groups.misconception("Which weight decay does AdamW take for a group that names none?", DECAYED)
def no_decay_named_for_the_second_group(model: nn.Module, weight_decay: float) -> Groups:
    """The second group names no weight decay, so it gets the optimiser's default, which for AdamW is not 0."""
    groups = _dealt(model, weight_decay, _multiplies)
    del groups[1]["weight_decay"]
    return groups


@parameter_groups.misconception("Where does the argument weight_decay go?", DECAYED)
def a_decay_written_into_the_code(model: nn.Module, weight_decay: float) -> Groups:
    """The weight decay is a number in the code, whatever the one is that was asked for."""
    return _dealt(model, 0.05, _multiplies)


@parameter_groups.misconception("Which tensors belong to the model itself, and to no layer in it?", DECAYED)
def layers_alone(model: nn.Module, weight_decay: float) -> Groups:
    """Only the layers' weights and biases are dealt out; class token and positions are in no group and never learn."""
    groups = _dealt(model, weight_decay, _multiplies)
    own = {id(tensor) for tensor in model.parameters(recurse=False)}
    groups[1]["params"] = [tensor for tensor in groups[1]["params"] if id(tensor) not in own]
    return groups


@parameter_groups.misconception(
    "Which parameters are in the second group, besides those that belong there?", DECAYED, InTraining.STOPS
)
def matrices_in_both_groups(model: nn.Module, weight_decay: float) -> Groups:
    """The second group holds all parameters, and the first some of them again, which an optimiser refuses."""
    groups = _dealt(model, weight_decay, _multiplies)
    return [groups[0], groups[1] | {"params": list(model.parameters())}]


@parameter_groups.misconception(
    "What is left of a generator when somebody has gone through it once?", DECAYED, InTraining.UNSEEN
)
def params_that_run_dry(model: nn.Module, weight_decay: float) -> Groups:
    """The params are generators, which are empty as soon as anybody has counted or printed them."""
    return [
        group | {"params": (each for each in group["params"])} for group in _dealt(model, weight_decay, _multiplies)
    ]


@parameter_groups.misconception("What does an optimiser move: names, or tensors?", DECAYED, InTraining.STOPS)
def names_for_parameters(model: nn.Module, weight_decay: float) -> Groups:
    """The groups hold the parameters' names, and an optimiser needs the parameters."""
    return _in_names(model, _dealt(model, weight_decay, _multiplies))


def _in_names(model: nn.Module, groups: Iterable[dict[str, Any]]) -> Groups:
    names = {id(tensor): name for name, tensor in model.named_parameters()}
    return [group | {"params": [names[id(tensor)] for tensor in group["params"]]} for group in groups]


@parameter_groups.misconception("What does an optimiser move that was given copies?", DECAYED, InTraining.STUCK)
def copies_of_the_parameters(model: nn.Module, weight_decay: float) -> Groups:
    """The groups hold copies of the parameters, so an optimiser moves the copies and the model learns nothing."""
    groups = _dealt(model, weight_decay, _multiplies)
    return [group | {"params": [nn.Parameter(each.detach().clone()) for each in group["params"]]} for group in groups]


@parameter_groups.misconception("Which group is named first?", DECAYED, InTraining.UNSEEN)
def the_spared_group_first(model: nn.Module, weight_decay: float) -> Groups:
    """The groups are right, but they come in the wrong order: the decayed one was asked for first."""
    return _dealt(model, weight_decay, _multiplies)[::-1]


@parameter_groups.misconception("Does the exercise say anything of requires_grad?", DECAYED, InTraining.UNSEEN)
def frozen_ones_left_out(model: nn.Module, weight_decay: float) -> Groups:
    """Parameters that ask for no gradient are in no group, and would not learn when they are thawed."""
    groups = _dealt(model, weight_decay, _multiplies)
    return [group | {"params": [each for each in group["params"] if each.requires_grad]} for group in groups]


@parameter_groups.misconception("How often do you meet a tensor that two layers share?", DECAYED, InTraining.UNSEEN)
def shared_weights_listed_twice(model: nn.Module, weight_decay: float) -> Groups:
    """A weight that two layers share is listed once for each of them, and an optimiser moves it twice."""
    chosen = {id(each) for each in _dealt(model, weight_decay, _multiplies)[0]["params"]}
    every = [tensor for _, tensor in model.named_parameters(remove_duplicate=False)]
    piles = [each for each in every if id(each) in chosen], [each for each in every if id(each) not in chosen]
    return [{"params": piles[0], "weight_decay": weight_decay}, {"params": piles[1], "weight_decay": 0.0}]


@parameter_groups.misconception("Where in its name does a Linear's weight say so?", DECAYED)
def weight_anywhere_in_the_name(model: nn.Module, weight_decay: float) -> Groups:
    """All with two axes that has `weight` anywhere in its name is decayed, and a table `weight_table` too."""
    return _dealt(model, weight_decay, lambda part, name, tensor: tensor.ndim > 1 and "weight" in name)


@parameter_groups.misconception("How many groups does the exercise ask for?", DECAYED)
def a_single_group(model: nn.Module, weight_decay: float) -> Groups:
    """Only the group that is decayed is given, and all other parameters are never trained."""
    return _dealt(model, weight_decay, _multiplies)[:1]
