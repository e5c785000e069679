"""The machine that trains: devices and processes, precision, compiling, and what to do when memory runs out.

`torchrun --nproc-per-node 2 -m vit_course train ...` or `accelerate launch --multi_gpu --num_processes 2 -m vit_course
train ...` starts two processes that train one model together, on a CPU as well with `--device cpu`. Started otherwise,
this process is alone, and nothing here needs accelerate.
"""

from __future__ import annotations

import atexit
import gc
import os
import time
import timeit
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from vit_course.training.history import OutOfMemoryError
from vit_course.training.settings import Precision, check_device

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class Processes:
    """This process among those that train together.

    Attributes:
        device: where this one computes.
        rank: its number, from 0.
        count: how many there are.
    """

    device: torch.device
    rank: int = 0
    count: int = 1
    accelerator: Accelerator | None = None

    @property
    def is_main(self) -> bool:
        """Whether this is the one that writes and speaks."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model, with its gradients averaged over all processes when there are several."""
        if self.accelerator is None:
            return model
        # said of the class token, whose gradient is cut out of a larger one: one row, so nothing is slower
        warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
        return self.accelerator.prepare_model(model)

    def count_own_images(self, batch_size: int) -> int:
        """Return how many images of such a batch this one gets."""
        return len(range(self.rank, batch_size, self.count))

    def sum_over_processes(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in each of them."""
        return tensor if self.accelerator is None else self.accelerator.reduce(tensor, reduction="sum")

    def wait_for_all(self) -> None:
        """Go on once all are here."""
        if self.accelerator is not None:
            self.accelerator.wait_for_everyone()


def is_main_process() -> bool:
    """Say whether this process writes files and speaks: true unless a launcher started it as another than the first."""
    return int(os.environ.get("RANK", "0")) == 0


def start_processes(device: str) -> Processes:
    """Meet the other processes, if a launcher has started some.

    Args:
        device: "cpu", "cuda", or "auto" for CUDA where there is one.

    Raises:
        ValueError: when CUDA is asked for and not there.
        ImportError: when there are several processes and accelerate is missing.
    """
    chosen = find_device(device)
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Processes(chosen)
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise ImportError(
            'several processes need accelerate, which is missing: pip install "vit-course[train]"'
        ) from error
    # DistributedDataParallel imports this. Its functions take the group that there is by then for a default, and keep
    # it, with threads that outlive destroy_process_group and now and then abort Python's end; before, there is none.
    import torch.distributed.nn  # noqa: F401

    accelerator = Accelerator(cpu=chosen.type == "cpu", mixed_precision="no")  # precision is chosen elsewhere
    atexit.unregister(_leave_process_group)
    atexit.register(_leave_process_group)
    return Processes(accelerator.device, accelerator.process_index, accelerator.num_processes, accelerator)


def find_device(name: str) -> torch.device:
    """The device that a setting means.

    Raises:
        ValueError: for another word, or when CUDA, or a GPU of that number, is asked for and not there.
    """
    check_device(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f'device "{name}": torch sees no CUDA device here; use "cpu" or "auto"')
    if device.index and device.index >= torch.cuda.device_count():
        raise ValueError(f'device "{name}": torch sees {torch.cuda.device_count()} CUDA devices, counted from 0')
    return device


def _leave_process_group() -> None:
    """Leave the group, and end its threads, before Python ends: a finished run would now and then abort there."""
    if torch.distributed.is_initialized():
        gc.collect()  # a wrapped model of an ended training holds the group, too
        torch.distributed.destroy_process_group()


DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
FASTER = 1.3  # by so much a product in bfloat16 has to be faster to be worth it, since all else is not


def choose_precision(requested: Precision, device: torch.device) -> Precision:
    """Resolve "auto": bf16 where the device is faster with it, on CUDA otherwise fp16, on a CPU otherwise fp32.

    Raises:
        ValueError: for fp16 on a CPU, whose small gradients would vanish and which is slower there anyway.
    """
    if requested == "fp16" and device.type == "cpu":
        raise ValueError('precision "fp16" is for GPUs; on a CPU use "auto", "bf16" or "fp32"')
    if requested != "auto":
        return requested
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    return "bf16" if measure_bfloat16_speedup() >= FASTER else "fp32"


@cache
def measure_bfloat16_speedup() -> float:
    """Measure how many times as fast this CPU multiplies in bfloat16 as in float32; one that lacks it emulates."""
    seconds = []
    for dtype in (torch.float32, torch.bfloat16):
        tokens, weight = torch.zeros(4096, 96, dtype=dtype), torch.zeros(96, 96, dtype=dtype)
        seconds.append(min(timeit.repeat(lambda: F.linear(tokens, weight), repeat=5, number=3)))  # noqa: B023
    return seconds[0] / seconds[1]


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """The context of a forward pass in this precision; a CPU needs none, see `InBfloat16`."""
    dtype = DTYPES.get(precision, torch.bfloat16)
    return torch.autocast(device.type, dtype, enabled=precision in DTYPES and device.type != "cpu")


class InBfloat16(nn.Module):
    """Runs a model in bfloat16 from end to end; its parameters stay float32, and so do their gradients.

    autocast converts what goes in and comes out of every product, and computes the rest in float32: on a CPU that takes
    longer than narrow products save. A step of `cpu-coffee`, 64 images, took 154 ms of one core in float32, 209 under
    autocast and 93 so (benchmarks/results/cpu_step.json).

    Args:
        model: images (batch, channels, height, width) → logits (batch, num_classes), which come out as float32.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """As the model does, but for rounding."""
        state = chain(self.model.named_parameters(), self.model.named_buffers())
        rounded = {name: each.bfloat16() if each.is_floating_point() else each for name, each in state}
        return cast(Tensor, functional_call(self.model, rounded, images.bfloat16())).float()


def wrap_in_precision(model: nn.Module, precision: Precision, device: torch.device) -> nn.Module:
    """The model as it computes in this precision inside `autocast`."""
    return InBfloat16(model) if precision == "bf16" and device.type == "cpu" else model


class Fusible(nn.Module):
    """A model with the same parameters, that torch.compile runs once `fuse` has been called and has succeeded.

    torch.compile needs more than torch: a C compiler, Python's headers, and for a GPU Triton, which knows no old ones.

    Args:
        model: images (batch, channels, height, width) → logits (batch, num_classes).
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.run: Callable[[Tensor], Tensor] = model.__call__  # the method, since a module would count as a second one

    def forward(self, images: Tensor) -> Tensor:
        """As the model does."""
        return self.run(images)

    def compile_or_leave(self, processes: Processes, attempt: Callable[[], None]) -> float:
        """Compile; where that fails, in one process of many or in all, say so once and leave the model as it was.

        Args:
            processes: this one among those that train together.
            attempt: does a forward and a backward pass of this module, in no need of the other processes, with each
                size of batch that will come.

        Returns:
            The seconds that it took; 0 when it failed.

        Raises:
            torch.OutOfMemoryError: by `attempt`.
        """
        started, reason = time.perf_counter(), ""
        plain = self.run
        try:
            # code for each size of batch: code for any size is slower, and an epoch has two sizes at most
            self.run = cast(nn.Module, torch.compile(self.model, dynamic=False)).__call__
            attempt()
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # of torch, Triton, a C compiler, the disk; one of the model's own comes again
            reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        failed = processes.sum_over_processes(torch.tensor(float(reason != ""), device=processes.device))
        if failed.item() == 0:
            return time.perf_counter() - started
        self.run = plain
        if processes.is_main:
            detail = f" ({reason})" if reason else ""
            warnings.warn(f"torch.compile cannot compile here{detail}; training goes on without it", stacklevel=2)
        return 0.0


def find_largest_batch_size(attempt: Callable[[int], None], batch_size: int) -> int | None:
    """Halve a batch size until a step with it does not run out of memory.

    Args:
        attempt: does a forward and a backward pass with so many images.
        batch_size: that ran out of memory.

    Returns:
        The first half, quarter and so on that fits; None when one image does not.
    """
    while batch_size > 1:
        batch_size //= 2
        if _fits_in_memory(attempt, batch_size):
            return batch_size
    return None


def _fits_in_memory(attempt: Callable[[int], None], batch_size: int) -> bool:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    try:
        attempt(batch_size)
    except torch.OutOfMemoryError:
        return False
    return True


def describe_out_of_memory(batch_size: int, fitting: int | None) -> str:
    """Return what to tell somebody whose batch did not fit."""
    if fitting is None:
        return f"out of memory with {batch_size} images a step, and with one: take a smaller model, or train on the CPU"
    return f"out of memory with {batch_size} images a step; {fitting} fit: take batches of {fitting}, or fewer"


@contextmanager
def explain_out_of_memory(device: torch.device) -> Iterator[None]:
    """Tell it in words when what a run keeps on its device from the start finds no room there.

    Raises:
        OutOfMemoryError: of no batch size, since not one step was taken.
    """
    try:
        yield
    except RuntimeError as error:
        # torch has a class of its own for what it allocates, and none for a device that is too full to be opened
        if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error):
            raise
        raise OutOfMemoryError(
            f"{device} is out of memory before the first step: other programs hold it (nvidia-smi names them), or the "
            "images and the model do not fit; make room, take fewer images or a smaller model, or train on the CPU",
            None,
        ) from error
