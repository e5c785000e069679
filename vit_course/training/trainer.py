"""A training from its first step to its end: the loop of `vit_course.training.loop`, and what hours of it need."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.data.image_dataset import generator_of
from vit_course.training.checkpoints import check_fits
from vit_course.training.early_stopping import EarlyStopping
from vit_course.training.feeding import Feed
from vit_course.training.graph import Replayed, recorder_for
from vit_course.training.growing import Growing
from vit_course.training.hardware import (
    Fusible,
    Processes,
    advice,
    autocast,
    choose_precision,
    in_precision,
    largest_that_fits,
)
from vit_course.training.history import Ending, History, OutOfMemoryError, TrainingDivergedError
from vit_course.training.loop import Tally, counts, evaluating
from vit_course.training.progress import Bar
from vit_course.training.run_folder import RunFolder, RunState
from vit_course.training.settings import TrainingSettings
from vit_course.training.updates import Updates

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker


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
        self.precision = choose_precision(settings.precision, self.device)
        self.model = model.to(self.device)
        self.fusible = Fusible(self.model) if settings.compile else None
        self.growing = Growing(self.model, settings.growth) if settings.growth else None
        learner = self.fusible or self.growing or self.model
        self.network = processes.wrap(in_precision(learner, self.precision, self.device))
        self.batch_sizes = feed.batch_sizes()
        total_steps = settings.epochs * len(self.batch_sizes)
        recorder = recorder_for(processes) if settings.compile else None
        self.updates = Updates(
            self.model,
            settings,
            total_steps,
            self.device,
            scaled=self.precision == "fp16",
            recordable=recorder is not None,
        )
        self.draws = torch.Generator(self.device) if recorder is None else recorder.draws
        self.learned, self.measured = Tally(self.device), Tally(self.device)
        self.learn: Callable[..., Tensor] = self._learn
        self.measure: Callable[..., Tensor] = self._measure
        if recorder is not None:
            self.learn = Replayed(self._learn, recorder, self.updates.forget_unfinished)
            self.measure = Replayed(self._measure, recorder)
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
            started, cpu_started = time.perf_counter(), time.process_time()
            bar.begin(epoch + 1)
            learned = self._train_one_epoch(epoch, bar)
            measured = self._measure_all()
            bar.show_validation(measured)
            self._note(learned, measured, time.perf_counter() - started, time.process_time() - cpu_started)
            stop = stopping is not None and stopping.step(measured.loss)
            self._keep(is_last=stop or epoch + 1 == self.settings.epochs)
            for tracker in trackers:
                tracker.log(self.history.rows()[-1], step=epoch + 1)
        return "finished"

    def _train_one_epoch(self, epoch: int, bar: Bar) -> Tally:
        """Update the model once per batch; everything random follows from the seed and the epoch alone."""
        torch.manual_seed(generator_of(self.settings.seed, epoch, self.processes.rank).initial_seed())
        order = self._seed_draws(epoch)
        self.feed.train.epoch = epoch
        self.network.train()
        tally, unread = self.learned.clear(), list[Tensor]()
        read_every = reads_every(self.device)
        for number, inputs in enumerate(self.feed.train.choices(order), 1):
            if self.growing is not None:
                self.growing.share = self.updates.steps / self.updates.total_steps
            self.updates.begin()
            unread.append(self.learn(self.batch_sizes[number - 1], *inputs))
            tally.images += self.processes.share(self.batch_sizes[number - 1])
            if len(unread) == read_every or number == len(self.batch_sizes):
                self._read(unread)
                bar.advance(sum(self.batch_sizes[number - len(unread) : number]), tally)
                unread.clear()
        return self._gather_tally(tally, self.feed.num_train)

    def _seed_draws(self, epoch: int) -> torch.Generator:
        """Seed what draws the changes of an epoch's images, and give what draws their order: the same one on a CPU."""
        order = generator_of(self.settings.seed, epoch)
        self.draws.manual_seed(order.initial_seed())
        return self.draws if self.draws.device.type == "cpu" else order

    def _learn(self, batch_size: int, *inputs: Tensor) -> Tensor:
        """Take one step, on the device alone: what a graph records.

        Args:
            batch_size: images of all processes.
            inputs: what `choices` gives.

        Returns:
            The sum of this process's losses, (); the gradient is of their mean over the images of all processes.
        """
        images, labels = self.feed.train.prepare(self.draws, *inputs)
        with autocast(self.precision, self.device):
            logits = self.network(images)  # (batch, num_classes)
        smoothing = self.settings.label_smoothing
        loss_sum = F.cross_entropy(logits.float(), labels, label_smoothing=smoothing, reduction="sum")
        self.updates.apply(loss_sum * (self.processes.count / batch_size))  # the processes' gradients are averaged
        self.learned.sums += counts(loss_sum, logits, labels)
        return loss_sum.detach()

    def _read(self, losses: list[Tensor]) -> None:
        """Look at the losses of the last steps, and stop at the first that is no number."""
        first = self.updates.steps - len(losses) + 1
        for step, loss in enumerate(self.processes.sum(torch.stack(losses)).tolist(), first):
            if not math.isfinite(loss):
                self._diverge(f"the loss is {loss} at step {step} of {self.updates.total_steps}")

    def _measure_all(self) -> Tally:
        """Measure the model, or its average, on the validation images."""
        tally = self.measured.clear()
        with evaluating(self.updates.measured), torch.inference_mode():
            for inputs in self.feed.validation.choices(self.draws):
                self.measure(0, *inputs)
        tally = self._gather_tally(tally, self.feed.num_validation)
        if not math.isfinite(tally.loss):
            self._diverge(f"the validation loss is {tally.loss} after step {self.updates.steps}")
        return tally

    def _measure(self, _: int, *inputs: Tensor) -> Tensor:
        """Measure one batch, on the device alone; its arguments are those of `_learn`."""
        images, labels = self.feed.validation.prepare(self.draws, *inputs)
        with autocast(self.precision, self.device):
            logits = in_precision(self.updates.measured, self.precision, self.device)(images)
            loss_sum = F.cross_entropy(logits.float(), labels, reduction="sum")
        self.measured.sums += counts(loss_sum, logits, labels)
        return loss_sum

    def _gather_tally(self, tally: Tally, images: int) -> Tally:
        tally.sums, tally.images = self.processes.sum(tally.sums), images
        return tally

    def _diverge(self, what: str) -> NoReturn:
        best = self.history.best_epoch
        kept = f"; the model is left as it was after epoch {best}" if best is not None else ""
        raise TrainingDivergedError(f"{what}: try a smaller learning rate or a longer warm-up{kept}")

    def _note(self, learned: Tally, measured: Tally, seconds: float, cpu_seconds: float) -> None:
        self.history.append(
            train_loss=learned.loss,
            train_accuracy=learned.accuracy,
            train_top5=learned.top5,
            validation_loss=measured.loss,
            validation_accuracy=measured.accuracy,
            validation_top5=measured.top5,
            learning_rate=self.updates.learning_rate,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
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
            share = self.processes.share(batch_size)
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
