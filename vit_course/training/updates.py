"""One update of a model: gradients, clipping, optimizers and their rates, the scale of float16, the average of weights.

What `Updates.differentiate_and_update` does stays on the device: nothing is read from it and no number of this step is
written into what is launched, so that a CUDA graph may record it. What belongs to one step, its rates, is set by
`Updates.begin_step` before.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import get_ema_multi_avg_fn

from vit_course.training.checkpoints import CheckpointError
from vit_course.training.muon import Muon
from vit_course.training.optimizers import build_optimizers, warmup_cosine
from vit_course.training.settings import Precision, TrainingSettings


class Together:
    """Several optimizers as one, for the scale of float16 gradients: where one overflows, none steps.

    GradScaler hands `found_inf` to optimizers that leave a step out by themselves, and would otherwise wait to read it.

    Attributes:
        found_inf: () float32, 1 where a gradient has overflowed; None where nothing is scaled.
    """

    _step_supports_amp_scaling = True  # GradScaler's word for it

    def __init__(self, optimizers: Sequence[Optimizer]) -> None:
        self.optimizers = optimizers
        self.param_groups = [group for optimizer in optimizers for group in optimizer.param_groups]

    def step(self) -> None:
        """Take a step with each."""
        for optimizer in self.optimizers:
            optimizer.found_inf = getattr(self, "found_inf", None)  # type: ignore[attr-defined]
            optimizer.step()
            del optimizer.found_inf  # type: ignore[attr-defined]


class Updates:
    """The optimizers, their learning rates, the scale of float16 gradients and the average of weights.

    Args:
        model: on the device.
        settings: see `TrainingSettings`.
        total_steps: of the run.
        device: where it computes.
        precision: in which the model computes; gradients of "fp16" are scaled.
        recordable: keep the learning rates as tensors on the device, where a recorded step reads them.

    Attributes:
        steps: how many were begun.
        learning_rate: of AdamW at the last step.
        average: the model with the moving average of its parameters, or None.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: TrainingSettings,
        total_steps: int,
        device: torch.device,
        precision: Precision,
        recordable: bool = False,
    ) -> None:
        self.model, self.settings, self.device = model, settings, device
        self.steps, self.total_steps = 0, total_steps
        self.learning_rate = 0.0
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizers = build_optimizers(model, settings)
        for each in self.optimizers:
            if isinstance(each, Muon) and device.type == "cpu" and precision == "bf16":
                each.products = torch.bfloat16  # a CPU that is faster at it
        self.peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in self.optimizers]
        self.together = cast(Optimizer, Together(self.optimizers))
        self.scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
        self.average = None if settings.ema_decay is None else copy.deepcopy(model).requires_grad_(False)
        for group in self.together.param_groups if recordable else ():
            group["lr"] = torch.tensor(group["lr"], device=device)
            if "capturable" in group:
                group["capturable"] = True

    @property
    def model_to_measure(self) -> nn.Module:
        """The model to measure and keep: the average where there is one."""
        return self.model if self.average is None else self.average

    def begin_step(self) -> None:
        """Count a step, and set its learning rates."""
        warmup_steps = round(self.settings.warmup * self.total_steps)
        factor = warmup_cosine(self.steps, warmup_steps, self.total_steps)
        if self.settings.schedule == "constant" and self.steps >= warmup_steps:
            factor = 1.0
        for optimizer, peaks in zip(self.optimizers, self.peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(peak * factor)
                else:
                    group["lr"] = peak * factor
        self.learning_rate = self.peaks[0][0] * factor
        self.steps += 1

    def differentiate_and_update(self, loss: Tensor) -> None:
        """Differentiate the loss, clip, and update every parameter once."""
        self.clear_gradients()
        self.scaler.scale(loss).backward()
        self.clip_and_update()

    def clip_and_update(self) -> None:
        """Clip the gradients that are there, and update every parameter once."""
        self.scaler.unscale_(self.together)
        if self.settings.gradient_clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.settings.gradient_clip)
        self.scaler.step(self.together)
        self.scaler.update()
        self._move_average()

    @torch.no_grad()
    def _move_average(self) -> None:
        """As torch's AveragedModel does, which counts in a tensor: reading that would make a GPU wait at every step."""
        if self.average is None or self.settings.ema_decay is None:
            return
        averages, parameters = (list[Tensor](each.parameters()) for each in (self.average, self.model))
        if self.steps == 1:
            torch._foreach_copy_(averages, parameters)
        else:
            get_ema_multi_avg_fn(self.settings.ema_decay)(averages, parameters, 0)

    def clear_gradients(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def forget_unfinished_step(self) -> None:
        """Let the next step begin anew after one that broke off before it changed anything."""
        self.clear_gradients()
        state = self.scaler.state_dict()
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.scaler.is_enabled())
        if state:
            self.scaler.load_state_dict(state)

    def collect_state_tensors(self) -> dict[str, Tensor]:
        """Everything that a later step depends on, by name."""
        found = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        if self.average is not None:
            found |= {f"average.{name}": tensor for name, tensor in self.average.state_dict().items()}
        for number, optimizer in enumerate(self.optimizers):
            for index, state in optimizer.state_dict()["state"].items():
                found |= {f"optimizer.{number}.{index}.{name}": tensor for name, tensor in state.items()}
        return found

    def collect_state_numbers(self) -> dict[str, Any]:
        """Return what belongs to `collect_state_tensors` and is none, as JSON can hold it."""
        return {"steps": self.steps, "scaler": self.scaler.state_dict()}

    def load_state(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Put everything back as it was.

        Raises:
            CheckpointError: when tensors are missing or of another shape.
        """
        try:
            self.model.load_state_dict(_select_by_prefix("model", tensors))
            if self.average is not None:
                self.average.load_state_dict(_select_by_prefix("average", tensors))
            for number, optimizer in enumerate(self.optimizers):
                state = optimizer.state_dict()
                state["state"] = _group_state_by_parameter(_select_by_prefix(f"optimizer.{number}", tensors))
                _check_state(optimizer, state["state"])
                optimizer.load_state_dict(state)
            if numbers["scaler"]:  # empty where the run was begun in another precision than fp16
                self.scaler.load_state_dict(numbers["scaler"])
            self.steps = int(numbers["steps"])
        except (RuntimeError, ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"the run's state does not fit this model: {error}") from error


def _check_state(optimizer: Optimizer, state: Mapping[int, Mapping[str, Tensor]]) -> None:
    """Check that what an optimizer remembers of a parameter has its shape, but for the count of steps."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, remembered in state.items():
        for name, tensor in remembered.items():
            wanted = torch.Size() if name == "step" else parameters[index].shape
            if tensor.shape != wanted:
                raise ValueError(f"{name} of parameter {index} is {tuple(tensor.shape)} and not {tuple(wanted)}")


def _select_by_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def _group_state_by_parameter(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Name "3.exp_avg" → state of parameter 3."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = tensor
    return state
