"""The processes that train one model together, each on its device.

`torchrun --nproc-per-node 2 -m vit_course train ...` or `accelerate launch --multi_gpu --num_processes 2 -m vit_course
train ...` starts two, on a CPU as well with `--device cpu`. Started otherwise, this process is alone, and nothing here
needs accelerate.
"""

from __future__ import annotations

import atexit
import gc
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.distributed
from torch import Tensor, nn

from vit_course.training.settings import check_device

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

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in each of them."""
        return tensor if self.accelerator is None else self.accelerator.reduce(tensor, reduction="sum")

    def wait(self) -> None:
        """Go on once all are here."""
        if self.accelerator is not None:
            self.accelerator.wait_for_everyone()


def is_main_process() -> bool:
    """Whether this process writes files and speaks: true unless a launcher started it as another than the first."""
    return int(os.environ.get("RANK", "0")) == 0


def start_processes(device: str) -> Processes:
    """Meet the other processes, if a launcher has started some.

    Args:
        device: "cpu", "cuda", or "auto" for CUDA where there is one.

    Raises:
        ValueError: when CUDA is asked for and not there.
        ImportError: when there are several processes and accelerate is missing.
    """
    chosen = device_named(device)
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
    atexit.unregister(_part)
    atexit.register(_part)
    return Processes(accelerator.device, accelerator.process_index, accelerator.num_processes, accelerator)


def device_named(name: str) -> torch.device:
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


def _part() -> None:
    """Leave the group, and end its threads, before Python ends: a finished run would now and then abort there."""
    if torch.distributed.is_initialized():
        gc.collect()  # a wrapped model of an ended training holds the group, too
        torch.distributed.destroy_process_group()
