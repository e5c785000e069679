"""Training fixtures of lesson 06: a small model, and a loader, an optimizer and a schedule that note their use.

They run beside a student's code, in a kernel or in a judge's worker. They take and return plain values and tensors,
hold no answer, judge nothing, and import nothing else of the package but the kit's fixtures.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exercise_kit.engine.training_fixtures import Calls

Batch = tuple[Tensor, Tensor]
_TWO_DEVICES = "is not on the expected device"  # in torch's words for it


class FixedDropout(nn.Module):
    """A dropout without chance: in training it multiplies by ``keep`` (features,), in evaluation by nothing."""

    keep: Tensor

    def __init__(self, keep: Tensor) -> None:
        super().__init__()
        self.register_buffer("keep", keep.clone())

    def forward(self, features: Tensor) -> Tensor:
        """Features (batch, features), some of them missing in training."""
        return features * self.keep if self.training else features


class _Notes(list[Any]):
    """A list that copies of a model share: a loop may work on a copy of the model."""

    def __deepcopy__(self, _: object) -> _Notes:
        return self


class SmallClassifier(nn.Module):
    """A linear classifier of flattened images behind a :class:`FixedDropout`; notes how it is used.

    Args:
        weights: "classifier.weight" (classes, features), "classifier.bias" (classes,), "dropout.keep" (features,).
        events: where it notes "forward" and "backward".

    Attributes:
        forwards: for each forward pass, whether it trained, whether torch recorded it, and how many images it had.
        places: for each forward pass, the kind of device of its images.
    """

    def __init__(self, weights: Mapping[str, Tensor], events: list[str]) -> None:
        super().__init__()
        classes, features = weights["classifier.weight"].shape
        self.dropout = FixedDropout(weights["dropout.keep"])
        self.classifier = nn.Linear(features, classes)
        self.load_state_dict(dict(weights))
        self.events = events
        self.forwards = _Notes()
        self.places = _Notes()

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, classes) of images (batch, channels, height, width)."""
        self.events.append("forward")
        self.places.append(images.device.type)
        logits: Tensor = self.classifier(self.dropout(images.flatten(1)))
        self.forwards.append((self.dropout.training, logits.requires_grad, len(images)))
        if logits.requires_grad:
            logits.register_hook(lambda _: self.events.append("backward"))
        return logits


class SmallLoader:
    """The same batches (images, labels) in every pass; it looks like a DataLoader.

    Attributes:
        dataset: the images and labels one by one.
        batch_size: of the first batch.
        passes: how many have begun.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self.dataset = [pair for images, labels in batches for pair in zip(images, labels, strict=True)]
        self.batch_size = len(batches[0][1])
        self.passes = 0

    def __iter__(self) -> Iterator[Batch]:
        self.passes += 1
        for images, labels in self._batches:
            yield images.clone(), labels.clone()

    def __len__(self) -> int:
        return len(self._batches)


def loop(
    function: Callable[..., Any],
    weights: Mapping[str, Tensor],
    batches: Sequence[Batch],
    training: bool,
    learning_rate: float | None = None,
    momentum: float = 0.0,
    stale: Mapping[str, Tensor] | None = None,
    device: str = "cpu",
    frozen: Sequence[str] = (),
    plain: bool = False,
) -> dict[str, Any]:
    """Call a training loop as (model, loader, optimizer, device), or without a learning rate (model, loader, device).

    Args:
        weights: of a :class:`SmallClassifier`.
        batches: images (batch, channels, height, width) float32 and labels (batch,) int64, on the CPU.
        training: the model's mode before.
        learning_rate, momentum: of the SGD.
        stale: by the parameter's name, the gradients that are there before.
        device: of the model.
        frozen: names of the parameters that require no gradient.
        plain: whether the batches come in a list, which has no ``dataset`` as a loader has.

    Returns:
        "returned": the result.
        "weights", "gradients": afterward, by name.
        "frozen": names of the parameters that require no gradient afterward.
        "training": the mode afterward; "mixed" where parts differ.
        "hooks": how many the model has.
        "recording": whether torch still records gradients.
        "forwards", "events", "passes": as noted.
    """
    events = _Notes()
    model = SmallClassifier(weights, events).to(device)
    model.train(training)
    for name, gradient in (stale or {}).items():
        model.get_parameter(name).grad = gradient.clone().to(device)
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    loader = SmallLoader(batches)
    arguments: list[Any] = [model, list(loader) if plain else loader, torch.device(device)]
    _wrap_methods_to_note_calls(events, model, "zero_grad")
    if learning_rate is not None:
        arguments.insert(2, torch.optim.SGD(model.parameters(), learning_rate, momentum))
        _wrap_methods_to_note_calls(events, arguments[2], "zero_grad", "step")
    returned = function(*arguments)
    modes = {module.training for module in model.modules()}
    grads = {name: each.grad for name, each in model.named_parameters()}
    return {
        "returned": returned,
        "weights": {name: each.detach().cpu().clone() for name, each in model.named_parameters()},
        "gradients": {name: None if each is None else each.detach().cpu().clone() for name, each in grads.items()},
        "frozen": [name for name, each in model.named_parameters() if not each.requires_grad],
        "training": modes.pop() if len(modes) == 1 else "mixed",
        "hooks": sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()),
        "recording": torch.is_grad_enabled(),
        "forwards": list(model.forwards),
        "events": list(events),
        "passes": loader.passes,
    }


def elsewhere(
    function: Callable[..., Any],
    weights: Mapping[str, Tensor],
    batches: Sequence[Batch],
    learning_rate: float | None = None,
) -> dict[str, Any]:
    """Call a training loop as :func:`loop` does, with the batches on the CPU and the model on another device.

    That device is torch's "meta", which every machine has: it computes shapes and no numbers. So the loop stops at the
    first number that it needs, and the exception that it raises there says nothing about it.

    Returns:
        "images": for each forward pass, the kind of device of its images.
        "mixed": whether torch refused to compute with tensors of two devices.
        "read": whether it stopped for want of numbers.
    """
    models: list[SmallClassifier] = []
    here, there = Calls(), Calls()

    def run_loop_on_device(device: str, calls: Calls) -> None:
        model = SmallClassifier(weights, []).to(device)
        arguments: list[Any] = [model, SmallLoader(batches), torch.device(device)]
        if learning_rate is not None:
            arguments.insert(2, torch.optim.SGD(model.parameters(), learning_rate))
        models.append(model)
        with calls:
            function(*arguments)

    mixed = read = False
    with suppress(Exception):
        run_loop_on_device("cpu", here)
    try:
        run_loop_on_device("meta", there)
    except Exception as error:
        mixed, read = _TWO_DEVICES in str(error), there.lacks_numbers(error, here)
    return {"images": list(models[-1].places), "mixed": mixed, "read": read}


def _wrap_methods_to_note_calls(events: list[str], owner: object, *methods: str) -> None:
    """From here on, calls of the owner's methods are ``events`` too."""

    def wrap_method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def note_and_call(*inputs: Any, **options: Any) -> Any:
            events.append(name)
            return method(*inputs, **options)

        return note_and_call

    for name in methods:
        setattr(owner, name, wrap_method(name, getattr(owner, name)))


_PARTS: dict[str, Callable[..., nn.Module | nn.Parameter]] = {
    "Linear": nn.Linear,
    "Conv2d": nn.Conv2d,
    "LayerNorm": nn.LayerNorm,
    "Parameter": lambda *size: nn.Parameter(torch.zeros(size)),
}


def groups(
    function: Callable[..., Any],
    parts: Mapping[str, tuple[str, Sequence[int]]],
    weight_decay: float,
    frozen: Sequence[str] = (),
    tied: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Call ``function(model, weight_decay)``, which sorts the parameters of a model for an optimizer.

    Args:
        parts: of the model, by their dotted names: a kind (a key of ``_PARTS``) and the arguments that make one.
        frozen: names of the parameters that require no gradient.
        tied: part → another part that shares its weight.

    Returns:
        "returned": its type's name.
        "groups": for each dict its "keys", "weight_decay", "holder" (the type of its "params") and "names" ("?" and the
            type's name for what is no parameter of the model); None for anything that is no dict.
        "frozen": names of the parameters that require no gradient afterward.
    """
    model = build_model_of_parts(parts)
    for name, other in (tied or {}).items():
        model.get_submodule(name).weight = model.get_submodule(other).weight
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    returned = function(model, weight_decay)
    listed = returned if isinstance(returned, list | tuple) else []
    return {
        "returned": type(returned).__name__,
        "groups": [_describe_group(each, names) for each in listed],
        "frozen": [name for name, each in model.named_parameters() if not each.requires_grad],
    }


def build_model_of_parts(parts: Mapping[str, tuple[str, Sequence[int]]]) -> nn.Module:
    """A model of these parts, by their dotted names: a kind (a key of ``_PARTS``) and what makes one."""
    model = nn.Module()
    for name, (kind, sizes) in parts.items():
        _place_part(model, name.split("."), _PARTS[kind](*sizes))
    return model


def _place_part(home: nn.Module, path: list[str], part: nn.Module | nn.Parameter) -> None:
    for name in path[:-1]:
        if not hasattr(home, name):
            home.add_module(name, nn.Module())
        home = home.get_submodule(name)
    setattr(home, path[-1], part)


def _describe_group(group: object, names: Mapping[int, str]) -> dict[str, Any] | None:
    if not isinstance(group, dict):
        return None
    params: Any = group.get("params", ())
    held = list(params) if hasattr(params, "__iter__") and not isinstance(params, Tensor) else [params]
    return {
        "keys": [str(key) for key in group],
        "weight_decay": group.get("weight_decay"),
        "holder": type(params).__name__,
        "names": [names.get(id(each), f"? {type(each).__name__}") for each in held],
    }


def stopping(
    kind: Callable[..., Any], patience: int, losses: Sequence[float], beside: Sequence[float] = ()
) -> dict[str, Any]:
    """Make ``kind(patience)`` and give its ``step`` one loss after the other.

    Args:
        beside: losses for a second object with another patience, given in turn with the first one's; often none.

    Returns:
        "answers": what step gave.
        "best", "bad_epochs": these attributes, before the first loss and after each.
        "patience": that attribute at the end. An attribute that is not there is "missing".
    """
    stopper = kind(patience)
    other = kind(patience + 2) if beside else None
    answers, seen = [], [_read_stopping_state(stopper)]
    for number, loss in enumerate(losses):
        if other is not None and number < len(beside):
            other.step(beside[number])
        answers.append(stopper.step(loss))
        seen.append(_read_stopping_state(stopper))
    best, bad_epochs, patiences = map(list, zip(*seen, strict=True))
    return {"answers": answers, "best": best, "bad_epochs": bad_epochs, "patience": patiences[-1]}


def _read_stopping_state(stopper: object) -> list[Any]:
    return [getattr(stopper, name, "missing") for name in ("best", "bad_epochs", "patience")]


def chance(function: Callable[..., Any], inputs: Sequence[Any], global_seed: int = 0) -> dict[str, Any]:
    """Call ``function(*inputs)`` with the global random generators at a seed, and see which of them it moves.

    The generators are put back.

    Returns:
        "returned": arrays as tensors, and ranges as lists.
        "kinds": of its parts, the dtype of a tensor or the type's name.
        "touched": of "torch", "numpy" and "random", the generators that the call moved.
    """
    kept = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        torch.default_generator.manual_seed(global_seed)
        np.random.seed(global_seed)
        random.seed(global_seed)
        torch.rand(77), np.random.random(77), random.randbytes(77)  # or to seed them anew would change nothing
        before = _read_generator_states()
        returned = function(*inputs)
        moved = [name for name, state in _read_generator_states().items() if state != before[name]]
    finally:
        torch.set_rng_state(kept[0])
        np.random.set_state(kept[1])
        random.setstate(kept[2])
    kinds = [_name_kind(each) for each in returned] if isinstance(returned, list | tuple) else []
    return {"returned": _convert_for_sending(returned), "kinds": kinds, "touched": moved}


def refusal(function: Callable[..., Any], *inputs: Any) -> dict[str, Any]:
    """Call ``function(*inputs)``, which should raise an error.

    Returns:
        "raised", the name of the exception's class, "" where there was none; "is_value_error"; "words", its text.
    """
    try:
        function(*inputs)
    except Exception as error:
        is_value_error = isinstance(error, ValueError)
        return {"raised": type(error).__name__, "is_value_error": is_value_error, "words": str(error)[:500]}
    return {"raised": "", "is_value_error": False, "words": ""}


def _name_kind(part: Any) -> str:
    return str(part.dtype).removeprefix("torch.") if isinstance(part, Tensor) else type(part).__name__


def _read_generator_states() -> dict[str, Any]:
    numpy = np.random.get_state(legacy=False)["state"]
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": (numpy["key"].tolist(), numpy["pos"]),
        "random": random.getstate(),
    }


def _convert_for_sending(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(list(each) if isinstance(each, range) else _convert_array_to_tensor(each) for each in value)
    return _convert_array_to_tensor(value)


def _convert_array_to_tensor(value: Any) -> Any:
    is_array = isinstance(value, np.ndarray) and value.dtype != object
    return torch.from_numpy(value.copy()) if is_array else value


FIXTURES: dict[str, Callable[..., dict[str, Any]]] = {
    "loop": loop,
    "elsewhere": elsewhere,
    "groups": groups,
    "stopping": stopping,
    "chance": chance,
}
