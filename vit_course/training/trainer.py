"""A training from its first step to its end: the loop of `vit_course.training.loop`, and what hours of it need."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import get_ema_multi_avg_fn

from vit_course.data.image_dataset import generator_of
from vit_course.training.checkpoints import CheckpointError, check_fits
from vit_course.training.early_stopping import EarlyStopping
from vit_course.training.feeding import Feed
from vit_course.training.hardware import Fusible, Processes, advice, autocast, choose_precision, largest_that_fits
from vit_course.training.history import Ending, History, OutOfMemoryError, TrainingDivergedError
from vit_course.training.loop import Tally, measure
from vit_course.training.optimizers import build_optimizers, warmup_cosine
from vit_course.training.progress import Bar
from vit_course.training.run_folder import RunFolder, RunState
from vit_course.training.settings import TrainingSettings

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker


class Together:
    """Several optimizers as one, for the scale of float16 gradients: where one overflows, none steps."""

    def __init__(self, optimizers: Sequence[Optimizer]) -> None:
        self.optimizers = optimizers
        self.param_groups = [group for optimizer in optimizers for group in optimizer.param_groups]

    def step(self) -> None:
        """Take a step with each."""
        for optimizer in self.optimizers:
            optimizer.step()


class Updates:
    """The optimizers, their learning rates, the scale of float16 gradients and the average of weights.

    Attributes:
        steps: how many were taken.
        learning_rate: of AdamW at the last step.
        average: the model with the moving average of its parameters, or None.
    """

    def __init__(
        self, model: nn.Module, settings: TrainingSettings, total_steps: int, device: torch.device, scaled: bool
    ) -> None:
        self.model, self.settings = model, settings
        self.steps, self.total_steps = 0, total_steps
        self.learning_rate = 0.0
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizers = build_optimizers(model, settings)
        self.peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in self.optimizers]
        self.together = cast(Optimizer, Together(self.optimizers))
        self.scaler = torch.amp.GradScaler(device.type, enabled=scaled)
        self.average = None if settings.ema_decay is None else copy.deepcopy(model).requires_grad_(False)

    @property
    def measured(self) -> nn.Module:
        """The model to measure and keep: the average where there is one."""
        return self.model if self.average is None else self.average

    def step(self, loss: Tensor) -> None:
        """Differentiate the loss, clip, and update every parameter once."""
        self.clear()
        self.scaler.scale(loss).backward()
        self.update()

    def update(self) -> None:
        """Clip the gradients that are there, and update every parameter once."""
        self._set_rates()
        if self.settings.gradient_clip is not None:
            self.scaler.unscale_(self.together)
            nn.utils.clip_grad_norm_(self.parameters, self.settings.gradient_clip)
        self.scaler.step(self.together)
        self.scaler.update()
        self._move_average()
        self.steps += 1

    @torch.no_grad()
    def _move_average(self) -> None:
        """As torch's AveragedModel does, which counts in a tensor: reading that would make a GPU wait at every step."""
        if self.average is None or self.settings.ema_decay is None:
            return
        averages, parameters = (list[Tensor](each.parameters()) for each in (self.average, self.model))
        if self.steps == 0:
            torch._foreach_copy_(averages, parameters)
        else:
            get_ema_multi_avg_fn(self.settings.ema_decay)(averages, parameters, 0)

    def clear(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def _set_rates(self) -> None:
        warmup_steps = round(self.settings.warmup * self.total_steps)
        factor = warmup_cosine(self.steps, warmup_steps, self.total_steps)
        if self.settings.schedule == "constant" and self.steps >= warmup_steps:
            factor = 1.0
        for optimizer, peaks in zip(self.optimizers, self.peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = peak * factor
        self.learning_rate = self.peaks[0][0] * factor

    def tensors(self) -> dict[str, Tensor]:
        """Everything that a later step depends on, by name."""
        found = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        if self.average is not None:
            found |= {f"average.{name}": tensor for name, tensor in self.average.state_dict().items()}
        for number, optimizer in enumerate(self.optimizers):
            for index, state in optimizer.state_dict()["state"].items():
                found |= {f"optimizer.{number}.{index}.{name}": tensor for name, tensor in state.items()}
        return found

    def numbers(self) -> dict[str, Any]:
        """What belongs to `tensors` and is none, as JSON can hold it."""
        return {"steps": self.steps, "scaler": self.scaler.state_dict()}

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Put everything back as it was.

        Raises:
            CheckpointError: when tensors are missing or of another shape.
        """
        try:
            self.model.load_state_dict(_under("model", tensors))
            if self.average is not None:
                self.average.load_state_dict(_under("average", tensors))
            for number, optimizer in enumerate(self.optimizers):
                state = optimizer.state_dict()
                state["state"] = _by_index(_under(f"optimizer.{number}", tensors))
                _check_state(optimizer, state["state"])
                optimizer.load_state_dict(state)
            if numbers["scaler"]:  # empty where the run was begun in another precision than fp16
                self.scaler.load_state_dict(numbers["scaler"])
            self.steps = int(numbers["steps"])
        except (RuntimeError, ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"the run's state does not fit this model: {error}") from error


def _check_state(optimizer: Optimizer, state: Mapping[int, Mapping[str, Tensor]]) -> None:
    """What an optimizer remembers of a parameter has its shape, but for the count of steps."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, remembered in state.items():
        for name, tensor in remembered.items():
            wanted = torch.Size() if name == "step" else parameters[index].shape
            if tensor.shape != wanted:
                raise ValueError(f"{name} of parameter {index} is {tuple(tensor.shape)} and not {tuple(wanted)}")


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def _by_index(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Name "3.exp_avg" → state of parameter 3."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = tensor
    return state


WRITE_EVERY = 5.0  # seconds; epochs that are shorter share a checkpoint, which on a GPU would cost more than they do


class Trainer:
    """One run.

    Args:
        model: trained in place.
        feed: its images.
        settings: see `TrainingSettings`.
        processes: this one among those that train together.
        folder: where the run is kept, or None.
    """

    def __init__(
        self, model: nn.Module, feed: Feed, settings: TrainingSettings, processes: Processes, folder: RunFolder | None
    ) -> None:
        self.feed, self.settings, self.processes, self.folder = feed, settings, processes, folder
        self.device = processes.device
        self.precision = choose_precision(settings.precision, self.device, model)
        self.model = model.to(self.device)
        self.fusible = Fusible(self.model) if settings.compile else None
        self.network = processes.wrap(self.fusible or self.model)
        self.batch_sizes = feed.batch_sizes()
        total_steps = settings.epochs * len(self.batch_sizes)
        self.updates = Updates(self.model, settings, total_steps, self.device, scaled=self.precision == "fp16")
        self.history = History()
        self.best: dict[str, Tensor] | None = None
        self.best_is_written = True
        self.unwritten: RunState | None = None  # of the last whole epoch, until it is on disk
        self.written = time.perf_counter()
        if folder is not None and folder.state is not None:
            self.updates.load(folder.state.tensors, folder.state.numbers)
            self.history, self.best = folder.state.history, folder.best
            check_fits(folder.path / "best.safetensors", folder.best or {}, self.model.state_dict())

    def run(self, bar: Bar, trackers: Sequence[GeneralTracker]) -> History:
        """Train until the last epoch, early stopping or Ctrl-C, and leave the weights of `fit` in the model."""
        out_of_memory = False
        try:
            with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
                if self.fusible is not None and len(self.history.seconds) < self.settings.epochs:
                    self.history.compile_seconds = self.fusible.fuse(self.processes, self._differentiate_every_size)
                self.history.ending = self._run_epochs(bar, trackers)
        except KeyboardInterrupt:
            self.history.ending = "interrupted"
            self._write_state()
        except TrainingDivergedError:
            self._write_state()
            self._leave_best()
            raise
        except torch.OutOfMemoryError:
            out_of_memory = True  # and reported below, since until here the error holds the step's tensors
        if out_of_memory:
            self._write_state()
            self._suggest_batch_size()
        self.updates.clear()
        if self.history.ending == "finished":
            self.model.load_state_dict(self.updates.measured.state_dict())
        else:
            self._leave_best()
        return self.history

    def _run_epochs(self, bar: Bar, trackers: Sequence[GeneralTracker]) -> Ending:
        stopping = None if self.settings.patience is None else EarlyStopping(self.settings.patience)
        stop = False
        for loss in self.history.validation_loss:
            stop = stopping is not None and stopping.step(loss)
        for epoch in range(len(self.history.seconds), self.settings.epochs):
            if stop:
                return "stopped early"
            started = time.perf_counter()
            bar.begin(epoch + 1)
            learned = self._train_one_epoch(epoch, bar)
            measured = self._measure()
            bar.measured(measured)
            self._note(learned, measured, time.perf_counter() - started)
            stop = stopping is not None and stopping.step(measured.loss)
            self._keep(is_last=stop or epoch + 1 == self.settings.epochs)
            for tracker in trackers:
                tracker.log(self.history.rows()[-1], step=epoch + 1)
        return "finished"

    def _train_one_epoch(self, epoch: int, bar: Bar) -> Tally:
        """Update the model once per batch; everything random follows from the seed and the epoch alone."""
        torch.manual_seed(generator_of(self.settings.seed, epoch, self.processes.rank).initial_seed())
        self.feed.train.epoch = epoch
        self.network.train()
        tally, unread = Tally(self.device), list[Tensor]()
        read_every = reads_every(self.device)
        for number, (images, labels) in enumerate(self.feed.train, 1):
            unread.append(self._step(images, labels, tally, self.batch_sizes[number - 1]))
            if len(unread) == read_every or number == len(self.batch_sizes):
                self._read(unread)
                bar.advance(sum(self.batch_sizes[number - len(unread) : number]), tally)
                unread.clear()
        tally.sums, tally.images = self.processes.sum(tally.sums), self.feed.num_train
        return tally

    def _step(self, images: Tensor, labels: Tensor, tally: Tally, batch_size: int) -> Tensor:
        """Take one step; the sum of this process's losses is divided by the images of all processes."""
        with autocast(self.precision, self.device):
            logits = self.network(images)  # (batch, num_classes)
        smoothing = self.settings.label_smoothing
        loss_sum = F.cross_entropy(logits.float(), labels, label_smoothing=smoothing, reduction="sum")
        self.updates.step(loss_sum * (self.processes.count / batch_size))  # the processes' gradients are averaged
        tally.add(loss_sum, logits, labels)
        return loss_sum.detach()

    def _read(self, losses: list[Tensor]) -> None:
        """Look at the losses of the last steps, and stop at the first that is no number."""
        first = self.updates.steps - len(losses) + 1
        for step, loss in enumerate(self.processes.sum(torch.stack(losses)).tolist(), first):
            if not math.isfinite(loss):
                self._diverge(f"the loss is {loss} at step {step} of {self.updates.total_steps}")

    def _measure(self) -> Tally:
        with autocast(self.precision, self.device):
            tally = measure(self.updates.measured, self.feed.validation, self.device)
        tally.sums, tally.images = self.processes.sum(tally.sums), self.feed.num_validation
        if not math.isfinite(tally.loss):
            self._diverge(f"the validation loss is {tally.loss} after step {self.updates.steps}")
        return tally

    def _diverge(self, what: str) -> NoReturn:
        best = self.history.best_epoch
        kept = f"; the model is left as it was after epoch {best}" if best is not None else ""
        raise TrainingDivergedError(f"{what}: try a smaller learning rate or a longer warm-up{kept}")

    def _note(self, learned: Tally, measured: Tally, seconds: float) -> None:
        self.history.append(
            train_loss=learned.loss,
            train_accuracy=learned.accuracy,
            train_top5=learned.top5,
            validation_loss=measured.loss,
            validation_accuracy=measured.accuracy,
            validation_top5=measured.top5,
            learning_rate=self.updates.learning_rate,
            seconds=seconds,
        )

    def _keep(self, is_last: bool) -> None:
        """Keep the best weights, and on disk, now and then, everything that a killed run needs to go on."""
        if self.history.best_epoch == len(self.history.seconds):
            weights = self.updates.measured.state_dict()
            self.best = {name: tensor.detach().clone() for name, tensor in weights.items()}
            self.best_is_written = False
        if self.folder is None or not self.processes.is_main:
            return
        self.folder.add_epoch(self.history)
        tensors = {name: tensor.detach().clone() for name, tensor in self.updates.tensors().items()}
        self.unwritten = RunState(tensors, self.updates.numbers(), copy.deepcopy(self.history))
        if is_last or time.perf_counter() - self.written >= WRITE_EVERY:
            self._write_state()

    def _write_state(self) -> None:
        if self.folder is not None and self.unwritten is not None:
            self._write_best()
            self.folder.save_state(self.unwritten)
            self.written, self.unwritten = time.perf_counter(), None

    def _leave_best(self) -> None:
        """Leave the best weights in the model, if any epoch has been measured, and on disk."""
        if self.best is not None:
            self.model.load_state_dict(self.best)
            if self.folder is not None and self.processes.is_main:
                self._write_best()

    def _write_best(self) -> None:
        if self.folder is not None and self.best is not None and not self.best_is_written:
            self.folder.save_best(self.model, self.best, self.feed.about)
            self.best_is_written = True

    def _differentiate_every_size(self) -> None:
        """Before the first epoch, so that no epoch's seconds hold the compiling."""
        assert self.fusible is not None
        self.fusible.train()
        images, labels = next(iter(self.feed.train))
        for batch_size in sorted(set(self.batch_sizes), reverse=True):
            share = len(range(self.processes.rank, batch_size, self.processes.count))
            self._differentiate(self.fusible, images[:share], labels[:share])

    def _differentiate(self, network: nn.Module, images: Tensor, labels: Tensor) -> None:
        with autocast(self.precision, self.device):
            logits = network(images)
        F.cross_entropy(logits.float(), labels).backward()
        self.updates.clear()

    def _suggest_batch_size(self) -> NoReturn:
        """Find a batch size that does not run out of memory, by trying."""
        self.updates.clear()
        alone = self.processes.count == 1
        model = self.model if alone else copy.deepcopy(self.model)  # a copy tells no other process of its gradients
        images, labels = next(iter(self.feed.train))
        fitting = largest_that_fits(lambda size: self._differentiate(model, images[:size], labels[:size]), len(labels))
        fitting = None if fitting is None else fitting * self.processes.count
        raise OutOfMemoryError(advice(self.settings.batch_size, fitting), fitting)


def reads_every(device: torch.device) -> int:
    """Steps between two looks at the losses: a GPU waits each time, a CPU has them at hand."""
    return 1 if device.type == "cpu" else 50
