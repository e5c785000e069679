"""A step that is recorded once and then replayed: a CUDA graph.

A GPU works on a small model's step for a few milliseconds, and Python takes longer to launch its thousand kernels. A
graph launches all of them at once. It repeats them on the same memory: inputs are copied to where the recorded step
reads them, learning rates are tensors, and generators that the graph knows draw anew at each replay.

Source: docs.pytorch.org, "CUDA semantics", section "CUDA Graphs".
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from vit_course.training.hardware import Processes

Work = Callable[[], Tensor]
WARM_UP = 3  # steps before one is recorded: optimizers make their state, libraries their workspaces


class Recorder(Protocol):
    """What records work on a device.

    Attributes:
        draws: a generator on the device, which draws anew at each replay, as torch's own one does.
    """

    draws: torch.Generator

    def run(self, work: Work) -> Tensor:
        """Do the work as it will be recorded, and give what it returns."""
        ...

    def record(self, work: Work) -> tuple[Tensor, Callable[[], object]]:
        """Record the work without doing it: the memory of its result, and what does it."""
        ...


class CudaRecorder:
    """Records on a GPU, on a stream of its own, as graphs need it."""

    def __init__(self, device: torch.device) -> None:
        self.draws = torch.Generator(device)
        self.stream = torch.cuda.Stream(device)

    def run(self, work: Work) -> Tensor:
        """Do the work on the stream; what was launched before comes first, what is launched after comes later."""
        outside = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(outside)
        with torch.cuda.stream(self.stream):
            result = work()
        outside.wait_stream(self.stream)
        return result

    def record(self, work: Work) -> tuple[Tensor, Callable[[], object]]:
        """Record the work as one CUDA graph.

        Raises:
            RuntimeError: for work that waits for the GPU or copies from memory that may move.
            torch.OutOfMemoryError: a graph keeps all memory of its step to itself.
        """
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.draws)
        # other threads, which pin a loader's batches, may go on
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            result = work()
        return result, graph.replay


def make_recorder(processes: Processes) -> Recorder | None:
    """Return what records a run's steps: on one GPU alone; several wait for each other, which stays outside a graph."""
    alone = processes.count == 1
    return CudaRecorder(processes.device) if alone and processes.device.type == "cuda" else None


@dataclass(frozen=True)
class Recording:
    """Recorded work: where it reads its inputs and writes its result, and what does it."""

    inputs: tuple[Tensor, ...]
    result: Tensor
    replay: Callable[[], object]


class Replayed:
    """A step that runs as it is a few times, is recorded, and from then on is replayed; each size of batch by itself.

    Args:
        step: batch size and inputs → a tensor. It waits for nothing on the device, and what it is to remember
            it writes into memory that outlives it.
        recorder: records it.
        clean_up: called after a recording that failed, in the middle of the step.
        choose_kind: says what else, beside sizes, makes a step another one, with a recording of its own.
    """

    def __init__(
        self,
        step: Callable[..., Tensor],
        recorder: Recorder,
        clean_up: Callable[[], None] = lambda: None,
        choose_kind: Callable[[], Hashable] = lambda: None,
    ) -> None:
        self.step, self.clean_up, self.choose_kind = step, clean_up, choose_kind
        self.recorder: Recorder | None = recorder
        self.runs = Counter[Hashable]()
        self.recordings: dict[Hashable, Recording] = {}

    def __call__(self, batch_size: int, *inputs: Tensor) -> Tensor:
        """Do the step, and give a result that later steps leave alone."""
        kind = (self.choose_kind(), batch_size, *(each.shape for each in inputs))
        if self.recorder is not None and kind not in self.recordings:
            if self.runs[kind] < WARM_UP:
                self.runs[kind] += 1
                return self.recorder.run(lambda: self.step(batch_size, *inputs))
            self._record(kind, self.recorder, batch_size, inputs)
        if self.recorder is None:
            return self.step(batch_size, *inputs)
        recording = self.recordings[kind]
        for place, each in zip(recording.inputs, inputs, strict=True):
            place.copy_(each, non_blocking=True)
        recording.replay()
        return recording.result.clone()

    def _record(self, kind: Hashable, recorder: Recorder, batch_size: int, inputs: tuple[Tensor, ...]) -> None:
        """Record the step; where that fails say so once, and go on without."""
        places = tuple(each.clone() for each in inputs)
        try:
            result, replay = recorder.record(lambda: self.step(batch_size, *places))
        except Exception as error:  # of torch, CUDA, a model's own code; one of the model's own comes again
            reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            warnings.warn(
                f"the step cannot be recorded as a CUDA graph here ({reason}); training goes on without one",
                stacklevel=2,
            )
            self.recorder = None
            self.recordings.clear()
            self.clean_up()
        else:
            self.recordings[kind] = Recording(places, result, replay)
