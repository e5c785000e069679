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

from vit_course.data.image_dataset import make_generator
from vit_course.training.checkpoints import check_weights_fit
from vit_course.training.early_stopping import EarlyStopping
from vit_course.training.feeding import Feed
from vit_course.training.graph import Replayed, make_recorder
from vit_course.training.growing import Growing
from vit_course.training.hardware import (
    Fusible,
    Processes,
    autocast,
    choose_precision,
    describe_out_of_memory,
    find_largest_batch_size,
    wrap_in_precision,
)
from vit_course.training.history import Ending, History, OutOfMemoryError, TrainingDivergedError
from vit_course.training.loop import Tally, count_right_guesses, evaluating
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
        self.growing = Growing(self.model, settings.growth) if settings.growth else None
        self.fusible = Fusible(self.growing or self.model) if settings.compile else None
        learner = self.fusible or self.growing or self.model
        self.network = processes.wrap(wrap_in_precision(learner, self.precision, self.device))
        self.batch_sizes = feed.list_batch_sizes()
        total_steps = settings.epochs * len(self.batch_sizes)
        recorder = make_recorder(processes) if settings.compile else None
        self.updates = Updates(
            self.model,
            settings,
            total_steps,
            self.device,
            self.precision,
            recordable=recorder is not None,
        )
        self.draws = torch.Generator(self.device) if recorder is None else recorder.draws
        self.learned, self.measured = Tally(self.device), Tally(self.device)
        self.learn: Callable[..., Tensor] = self._take_training_step
        self.measure: Callable[..., Tensor] = self._measure_batch
        if recorder is not None:
            self.learn = Replayed(
                self._take_training_step, recorder, self.updates.forget_unfinished_step, self._get_scale
            )
            self.measure = Replayed(self._measure_batch, recorder)
        self.history = History()
        self.best: dict[str, Tensor] | None = None
        self.best_is_written = True
        self.unwritten: RunState | None = None  # of the last whole epoch, until it is on disk
        self.written = time.perf_counter()
        if folder is not None and folder.state is not None:
            self.updates.load_state(folder.state.tensors, folder.state.numbers)
            self.history, self.best = folder.state.history, folder.best
            check_weights_fit(folder.path / "best.safetensors", folder.best or {}, self.model.state_dict())

    def run(self, bar: Bar, trackers: Sequence[GeneralTracker]) -> History:
        """Train until the last epoch, early stopping or Ctrl-C, and leave the weights of `fit` in the model."""
        out_of_memory = False
        try:
            with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
                if self.fusible is not None and len(self.history.seconds) < self.settings.epochs:
                    self.history.compile_seconds = self.fusible.compile_or_leave(
                        self.processes, self._compile_every_batch_size
                    )
                self.history.ending = self._run_epochs(bar, trackers)
        except KeyboardInterrupt:
            self.history.ending = "interrupted"
            self._write_state()
        except TrainingDivergedError:
            self._write_state()
            self._restore_best()
            raise
        except torch.OutOfMemoryError:
            out_of_memory = True  # and reported below, since until here the error holds the step's tensors
        if out_of_memory:
            self._write_state()
            self._raise_out_of_memory()
        self.updates.clear_gradients()
        if self.history.ending == "finished":
            self.model.load_state_dict(self.updates.model_to_measure.state_dict())
        else:
            self._restore_best()
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
            measured = self._measure_validation()
            bar.show_validation(measured)
            self._add_to_history(learned, measured, time.perf_counter() - started, time.process_time() - cpu_started)
            stop = stopping is not None and stopping.step(measured.loss)
            self._keep_best_and_state(is_last=stop or epoch + 1 == self.settings.epochs)
            for tracker in trackers:
                tracker.log(self.history.rows()[-1], step=epoch + 1)
        return "finished"

    def _train_one_epoch(self, epoch: int, bar: Bar) -> Tally:
        """Update the model once per batch; everything random follows from the seed and the epoch alone."""
        torch.manual_seed(make_generator(self.settings.seed, epoch, self.processes.rank).initial_seed())
        order = self._seed_random_draws(epoch)
        self.feed.train.epoch = epoch
        self.network.train()
        tally, unread = self.learned.clear(), list[Tensor]()
        read_every = choose_reading_interval(self.device)
        for number, inputs in enumerate(self.feed.train.choices(order), 1):
            if self.growing is not None:
                self.growing.grow(self.updates.steps / self.updates.total_steps)
            self.updates.begin_step()
            unread.append(self.learn(self.batch_sizes[number - 1], *inputs))
            tally.images += self.processes.count_own_images(self.batch_sizes[number - 1])
            if len(unread) == read_every or number == len(self.batch_sizes):
                self._check_losses(unread)
                bar.advance(sum(self.batch_sizes[number - len(unread) : number]), tally)
                unread.clear()
        return self._gather_tally(tally, self.feed.num_train)

    def _get_scale(self) -> float:
        return 1.0 if self.growing is None else self.growing.scale

    def _seed_random_draws(self, epoch: int) -> torch.Generator:
        """Seed what draws the changes of an epoch's images, and give what draws their order: the same one on a CPU."""
        order = make_generator(self.settings.seed, epoch)
        self.draws.manual_seed(order.initial_seed())
        return self.draws if self.draws.device.type == "cpu" else order

    def _take_training_step(self, batch_size: int, *inputs: Tensor) -> Tensor:
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
        # the processes' gradients are averaged
        self.updates.differentiate_and_update(loss_sum * (self.processes.count / batch_size))
        self.learned.sums += count_right_guesses(loss_sum, logits, labels)
        return loss_sum.detach()

    def _check_losses(self, losses: list[Tensor]) -> None:
        """Look at the losses of the last steps, and stop at the first that is no number."""
        first = self.updates.steps - len(losses) + 1
        for step, loss in enumerate(self.processes.sum_over_processes(torch.stack(losses)).tolist(), first):
            if not math.isfinite(loss):
                self._raise_diverged(f"the loss is {loss} at step {step} of {self.updates.total_steps}")

    def _measure_validation(self) -> Tally:
        """Measure the model, or its average, on the validation images."""
        tally = self.measured.clear()
        with evaluating(self.updates.model_to_measure), torch.inference_mode():
            for inputs in self.feed.validation.choices(self.draws):
                self.measure(0, *inputs)
        tally = self._gather_tally(tally, self.feed.num_validation)
        if not math.isfinite(tally.loss):
            self._raise_diverged(f"the validation loss is {tally.loss} after step {self.updates.steps}")
        return tally

    def _measure_batch(self, _: int, *inputs: Tensor) -> Tensor:
        """Measure one batch, on the device alone; its arguments are those of `_learn`."""
        images, labels = self.feed.validation.prepare(self.draws, *inputs)
        with autocast(self.precision, self.device):
            logits = wrap_in_precision(self.updates.model_to_measure, self.precision, self.device)(images)
            loss_sum = F.cross_entropy(logits.float(), labels, reduction="sum")
        self.measured.sums += count_right_guesses(loss_sum, logits, labels)
        return loss_sum

    def _gather_tally(self, tally: Tally, images: int) -> Tally:
        tally.sums, tally.images = self.processes.sum_over_processes(tally.sums), images
        return tally

    def _raise_diverged(self, what: str) -> NoReturn:
        best = self.history.best_epoch
        kept = f"; the model is left as it was after epoch {best}" if best is not None else ""
        raise TrainingDivergedError(f"{what}: try a smaller learning rate or a longer warm-up{kept}")

    def _add_to_history(self, learned: Tally, measured: Tally, seconds: float, cpu_seconds: float) -> None:
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

    def _keep_best_and_state(self, is_last: bool) -> None:
        """Keep the best weights, and on disk, now and then, everything that a killed run needs to go on."""
        if self.history.best_epoch == len(self.history.seconds):
            weights = self.updates.model_to_measure.state_dict()
            self.best = {name: tensor.detach().clone() for name, tensor in weights.items()}
            self.best_is_written = False
        if self.folder is None or not self.processes.is_main:
            return
        self.folder.add_epoch(self.history)
        tensors = {name: tensor.detach().clone() for name, tensor in self.updates.collect_state_tensors().items()}
        self.unwritten = RunState(tensors, self.updates.collect_state_numbers(), copy.deepcopy(self.history))
        if is_last or time.perf_counter() - self.written >= WRITE_EVERY:
            self._write_state()

    def _write_state(self) -> None:
        if self.folder is not None and self.unwritten is not None:
            self._write_best()
            self.folder.save_state(self.unwritten)
            self.written, self.unwritten = time.perf_counter(), None

    def _restore_best(self) -> None:
        """Leave the best weights in the model, if any epoch has been measured, and on disk."""
        if self.best is not None:
            self.model.load_state_dict(self.best)
            if self.folder is not None and self.processes.is_main:
                self._write_best()

    def _write_best(self) -> None:
        if self.folder is not None and self.best is not None and not self.best_is_written:
            self.folder.save_best(self.model, self.best, self.feed.about)
            self.best_is_written = True

    def _compile_every_batch_size(self) -> None:
        """Compile for each scale before the first epoch, so that no epoch's seconds hold it."""
        assert self.fusible is not None
        self.fusible.train()
        images, labels = next(iter(self.feed.train))
        for scale in self.growing.list_scales() if self.growing else [1.0]:
            if self.growing is not None:
                self.growing.scale = scale
            for batch_size in sorted(set(self.batch_sizes), reverse=True):
                share = self.processes.count_own_images(batch_size)
                self._differentiate(self.fusible, images[:share], labels[:share])

    def _differentiate(self, network: nn.Module, images: Tensor, labels: Tensor) -> None:
        with autocast(self.precision, self.device):
            logits = network(images)
        F.cross_entropy(logits.float(), labels).backward()
        self.updates.clear_gradients()

    def _raise_out_of_memory(self) -> NoReturn:
        """Find a batch size that does not run out of memory, by trying."""
        self.updates.clear_gradients()
        alone = self.processes.count == 1
        model = self.model if alone else copy.deepcopy(self.model)  # a copy tells no other process of its gradients
        images, labels = next(iter(self.feed.train))
        fitting = find_largest_batch_size(
            lambda size: self._differentiate(model, images[:size], labels[:size]), len(labels)
        )
        fitting = None if fitting is None else fitting * self.processes.count
        raise OutOfMemoryError(describe_out_of_memory(self.settings.batch_size, fitting), fitting)


def choose_reading_interval(device: torch.device) -> int:
    """Steps between two looks at the losses: a GPU waits each time, a CPU has them at hand."""
    return 1 if device.type == "cpu" else 50
