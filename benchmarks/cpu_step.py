"""Where the time of a step goes on a CPU: its operations beside the rate of matrix products, and each operator's share.

    python benchmarks/cpu_step.py OUT.json [RECIPE]      # one core; cpu-coffee

A step is timed in float32, under autocast, and in bfloat16 from end to end, in turns. The rate that it could reach is
that of its own Linear layers alone: the same products, forward and backward, with nothing between them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from timing import Stopwatch, describe_machine, time_in_turns
from torch import nn
from torch.profiler import profile
from torch.utils.flop_counter import FlopCounterMode

from vit_course.recipes import RECIPES
from vit_course.training.hardware import InBfloat16, choose_precision
from vit_course.training.updates import Updates

CPU = torch.device("cpu")
ROUNDS, LONGEST = 15, 8


def count_operations(work: Callable[[], object]) -> int:
    """Floating point operations of matrix products, attention's among them; a product and a sum are two."""
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def make_linear_products(model: nn.Module, images: torch.Tensor, dtype: torch.dtype) -> Callable[[], None]:
    """All Linear layers of a model on inputs of their sizes, forward and backward."""
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []

    def keep_inputs_and_weight(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        rows = inputs[0].detach().reshape(-1, module.weight.shape[1])  # type: ignore[arg-type, union-attr]
        pairs.append((rows.to(dtype).requires_grad_(), module.weight.detach().to(dtype).requires_grad_()))  # type: ignore[operator, union-attr]

    hooks = [
        each.register_forward_hook(keep_inputs_and_weight) for each in model.modules() if isinstance(each, nn.Linear)
    ]
    model(images)
    for each in hooks:
        each.remove()
    cotangents = [torch.randn(len(rows), len(weight)).to(dtype) for rows, weight in pairs]

    def multiply_all_pairs() -> None:
        for (rows, weight), cotangent in zip(pairs, cotangents, strict=True):
            torch.autograd.grad(F.linear(rows, weight), (rows, weight), cotangent)

    return multiply_all_pairs


def profile_time_by_operator(work: Callable[[], object]) -> dict[str, float]:
    """The operators that take longest, with their share of a step."""
    with profile() as found:
        work()
    times = {each.key: each.self_cpu_time_total for each in found.key_averages()}
    total = sum(times.values())
    longest = sorted(times, key=lambda name: -times[name])[:LONGEST]
    return {name: round(times[name] / total, 3) for name in longest}


def main() -> None:
    output, name = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "cpu-coffee"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    recipe = RECIPES[name]
    model, size = recipe.build(recipe.config), recipe.settings.batch_size
    images, labels = torch.randn(size, 3, 32, 32), torch.randint(10, (size,))
    updates = Updates(model, recipe.settings, 1000, CPU, choose_precision(recipe.settings.precision, CPU))
    narrow = InBfloat16(model)

    def make_training_step(network: nn.Module, autocast: bool = False) -> Callable[[], None]:
        def take_training_step() -> None:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                logits = network(images)
            updates.begin_step()
            updates.differentiate_and_update(F.cross_entropy(logits.float(), labels))

        return take_training_step

    steps = {
        "float32": make_training_step(model),
        "autocast": make_training_step(model, autocast=True),
        "bfloat16": make_training_step(narrow),
    }
    operations = count_operations(steps["float32"])
    works = steps | {
        f"products in {name}": make_linear_products(model, images, dtype)
        for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16))
    }
    works["update alone"] = updates.clip_and_update
    product_operations = count_operations(works["products in float32"])
    seconds = {name: min(each) for name, each in time_in_turns(works, ROUNDS, Stopwatch("cpu")).items()}
    found = {
        "recipe": name,
        "batch_size": size,
        "operations": operations,
        "milliseconds": {name: round(1e3 * each, 2) for name, each in seconds.items()},
        "operations_per_second": {name: round(operations / seconds[name] / 1e9, 1) for name in steps},
        "of_products": {
            name: round(product_operations / seconds[f"products in {name}"] / 1e9, 1)
            for name in ("float32", "bfloat16")
        },
        "operators": {name: profile_time_by_operator(work) for name, work in steps.items()},
        "machine": describe_machine("cpu"),
    }
    output.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
