"""What training code is practised on: a small model, a loader and an optimiser that note what is done with them.

This runs beside a student's code, in a kernel or in a judge's worker. Plain values and tensors go in, the same come
out; it imports nothing else of the package, holds no answer, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

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
    """A list that copies of a model go on writing into: a loop may work on a copy of the model."""

    def __deepcopy__(self, _: object) -> _Notes:
        return self


class PracticeModel(nn.Module):
    """A linear classifier of flattened images behind a :class:`FixedDropout`; notes how it is used.

    Args:
        weights: "classifier.weight" (classes, features), "classifier.bias" (classes,), "dropout.keep" (features,).
        events: where it notes "forward" and "backward".

    Attributes: ``forwards``, for each forward pass whether it trained, whether torch recorded it, and its images;
    ``places``, the kind of device on which those were.
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


class PracticeLoader:
    """The same batches (images, labels) each time that somebody goes through them, with the look of a DataLoader.

    Attributes: ``dataset``, the images and labels one by one; ``batch_size``; ``passes``, how often it was begun.
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
) -> dict[str, Any]:
    """Call a training loop as (model, loader, optimizer, device), or without a learning rate (model, loader, device).

    Args:
        weights: of a :class:`PracticeModel`.
        batches: images (batch, channels, height, width) float32 and labels (batch,) int64, on the CPU.
        training: the model's mode before.
        learning_rate, momentum: of the SGD.
        stale: by the parameter's name, the gradients that are there before.
        device: of the model.

    Returns:
        "returned"; "weights" and "gradients" after it, by name; "frozen", names of the parameters that no longer ask
        for a gradient; "training", the mode after it, "mixed" where parts differ; "hooks", how many the model has;
        "recording", whether torch still records gradients; "forwards", "events", "passes" as noted.
    """
    events = _Notes()
    model = PracticeModel(weights, events).to(device)
    model.train(training)
    for name, gradient in (stale or {}).items():
        model.get_parameter(name).grad = gradient.clone().to(device)
    loader = PracticeLoader(batches)
    arguments: list[Any] = [model, loader, torch.device(device)]
    _note_calls(events, model, "zero_grad")
    if learning_rate is not None:
        arguments.insert(2, torch.optim.SGD(model.parameters(), learning_rate, momentum))
        _note_calls(events, arguments[2], "zero_grad", "step")
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
    """Call a training loop as :func:`loop` does, with the batches on the CPU and a model that is not there.

    The model's device is torch's "meta", which every machine has: it computes shapes and no numbers. So the loop comes
    as far as its first number, and what it raises then says nothing of it.

    Returns:
        "images", for each forward pass the kind of device on which its images were; "mixed", whether torch refused to
        compute with tensors of two devices.
    """
    model = PracticeModel(weights, []).to("meta")
    arguments: list[Any] = [model, PracticeLoader(batches), torch.device("meta")]
    if learning_rate is not None:
        arguments.insert(2, torch.optim.SGD(model.parameters(), learning_rate))
    mixed = False
    try:
        function(*arguments)
    except Exception as error:
        mixed = _TWO_DEVICES in str(error)
    return {"images": list(model.places), "mixed": mixed}


def _note_calls(events: list[str], owner: object, *methods: str) -> None:
    """From here on, calls of the owner's methods are ``events`` too."""

    def noting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*inputs: Any, **options: Any) -> Any:
            events.append(name)
            return method(*inputs, **options)

        return noted

    for name in methods:
        setattr(owner, name, noting(name, getattr(owner, name)))


PRACTICES: dict[str, Callable[..., dict[str, Any]]] = {"loop": loop, "elsewhere": elsewhere}
