"""The recipes, to be read: a table of all, a page on one, JSON for programs.

What a recipe costs was measured (measured.json, which benchmarks/recipes.py writes from logged runs). For a GPU on
which nobody has run it here, the cost is calculated from its number of multiplications.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from vit_course.data.torchvision_sets import PUBLISHED
from vit_course.metrics import Spread, spread
from vit_course.recipes import RECIPES
from vit_course.recipes.recipe import Published, Recipe
from vit_course.recipes.result import RunResult, make_recipe_definition

if TYPE_CHECKING:
    from rich.table import Table


# operations a second in half precision with float32 sums, by NVIDIA's data sheets: fp16 on a T4, else dense bf16
PEAKS = {"Tesla T4": 65e12, "H200 or H100": 989e12}
# of that: a step of 512 images took 6.38 ms as one CUDA graph on an H200 on 2026-11-26, which is 9.0 percent
# (benchmarks/results/gpu/trial_graph_light_40_epochs.json), and a twentieth of the time goes to validation. A T4's peak
# and its memory are both 15 times slower.
SHARE = 0.085


def calculate_minutes(recipe: Recipe) -> float | None:
    """Minutes of training on the recipe's GPU, without compiling; None for another device than a known GPU."""
    peak = PEAKS.get(recipe.hardware)
    return None if peak is None else count_training_operations(recipe) / (peak * SHARE) / 60


@cache
def count_training_operations(recipe: Recipe) -> float:
    """Multiplications and additions of all epochs; a backward pass takes twice as many as its forward pass."""
    from torch.utils.flop_counter import FlopCounterMode

    config = recipe.config
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        recipe.build(config)(torch.empty(1, config.in_channels, config.height, config.width))
    images = PUBLISHED[recipe.dataset].training_images - recipe.num_validation
    return 3 * counter.get_total_flops() * images * recipe.settings.epochs


MEASURED = Path(__file__).with_name("measured.json")
VERSION = 1


@dataclass(frozen=True)
class Measured:
    """One recipe on one machine, over its seeds.

    Attributes:
        device: in words, with the number of threads on a CPU, or those of all runs; precision: of the products.
        seeds: those that were run.
        accuracy, top5: on the test images, in [0, 1].
        seconds: of training and validation by the clock.
        cpu_seconds: of all threads, which tells more than the clock where other work ran beside; None where no run
            counted them.
        images_per_second: training images.
        parameters: how many the training may change.
    """

    device: str
    precision: str
    seeds: tuple[int, ...]
    accuracy: Spread
    top5: Spread
    seconds: Spread
    cpu_seconds: Spread | None
    images_per_second: Spread
    parameters: int


def summarize_runs(recipes: Iterable[Recipe], results: Iterable[RunResult]) -> dict[str, Any]:
    """Return what measured.json holds: for each recipe the runs that count, by machine, then by seed.

    A run counts when it was made by the recipe as it is now, unchanged, on the recipe's own data, in one
    process, and whole.
    """
    table: dict[str, Any] = {}
    found = sorted(results, key=lambda result: (result.device, result.threads, result.precision, result.seed))
    for recipe in recipes:
        runs = [
            _describe_run(result) for result in found if result.recipe == recipe.name and is_counted_run(recipe, result)
        ]
        if runs:
            table[recipe.name] = {"runs": runs}
    return {"version": VERSION, "recipes": table}


def is_counted_run(recipe: Recipe, result: RunResult) -> bool:
    """Say whether this run says something about this recipe as it is now."""
    return (
        result.definition == make_recipe_definition(recipe)
        and not result.changed
        and result.processes == 1
        and result.data["name"] == recipe.dataset
        and result.data["validation_images"] == recipe.num_validation
        and result.ending in ("finished", "stopped early")
    )


def _describe_run(result: RunResult) -> dict[str, Any]:
    return {
        "seed": result.seed,
        "accuracy": result.test["top1"],
        "top5": result.test["top5"],
        "seconds": result.seconds,
        "cpu_seconds": result.cpu_seconds if result.device == "CPU" else None,
        "images_per_second": result.images_per_second,
        "parameters": result.parameters,
        "device": describe_device(result),
        "precision": result.precision,
        "torch": result.torch,
        "date": result.date[:10],
    }


def describe_device(result: RunResult) -> str:
    """The machine in words: a GPU's name, or "CPU, 2 threads"."""
    threads = f"{result.threads} thread{'s' * (result.threads != 1)}"
    return f"{result.device}, {threads}" if result.device == "CPU" else result.device


@cache
def read_measured_runs(path: Path = MEASURED) -> dict[str, list[Measured]]:
    """For each recipe that was measured, one entry for each machine, the one with the most seeds first."""
    table = json.loads(path.read_text(encoding="utf-8"))["recipes"]
    return {name: _group_runs_by_machine(entry["runs"]) for name, entry in table.items()}


def _group_runs_by_machine(runs: list[dict[str, Any]]) -> list[Measured]:
    machines: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in sorted(runs, key=itemgetter("seed")):
        kind = run["device"].partition(", ")[0]  # threads change how long it takes, and not what is learned
        machines.setdefault((kind, run["precision"]), []).append(run)
    entries = [
        Measured(
            device=_name_machine(sorted({run["device"] for run in of_one})),
            precision=precision,
            seeds=tuple(run["seed"] for run in of_one),
            accuracy=_measure_spread(of_one, "accuracy"),
            top5=_measure_spread(of_one, "top5"),
            seconds=_measure_spread(of_one, "seconds"),
            cpu_seconds=_measure_spread(counted, "cpu_seconds")
            if (counted := _list_uninterrupted_runs(of_one))
            else None,
            images_per_second=_measure_spread(of_one, "images_per_second"),
            parameters=of_one[0]["parameters"],
        )
        for (_, precision), of_one in machines.items()
    ]
    return sorted(entries, key=lambda entry: -len(entry.seeds))


def _name_machine(devices: list[str]) -> str:
    """Of "CPU, 1 thread" and "CPU, 2 threads": "CPU, 1 or 2 threads"."""
    *fewer, most = devices
    counts = (each.removeprefix("CPU, ").split()[0] for each in fewer)
    return most.replace("CPU, ", f"CPU, {''.join(f'{count} or ' for count in counts)}")


def _list_uninterrupted_runs(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that were not interrupted, on a CPU."""
    return [run for run in runs if run["cpu_seconds"] is not None]


def _measure_spread(runs: list[dict[str, Any]], name: str) -> Spread:
    return spread([run[name] for run in runs])


UNMEASURED = "not measured yet"
LINE = 100


def make_recipe_table() -> Table:
    """A row for each recipe: name, data, device, minutes, accuracy over its seeds, and what was published.

    It fits into 80 columns: how many seeds there are stands in `write_recipe_page`.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("recipe", "data", "device"):
        table.add_column(column, no_wrap=True)
    for column in ("min", "test accuracy", "published"):
        table.add_column(column, justify="right", no_wrap=True)
    for recipe in RECIPES.values():
        measured = find_first_measured(recipe)
        published = f"{recipe.published.accuracy:.1%}" if recipe.published else ""
        table.add_row(
            recipe.name,
            recipe.dataset,
            measured.device if measured else recipe.hardware,
            format_minutes(measured),
            _format_percent(measured.accuracy) if measured else UNMEASURED,
            published,
        )
    return table


def write_recipe_page(recipe: Recipe) -> str:
    """All about one recipe: what it is, what it costs, what it reaches, what it repeats or mends."""
    lines = [
        f"vit-course train {recipe.name}",
        "",
        recipe.summary,
        "",
        f"meant for   {recipe.hardware}",
        *_write_measured_lines(recipe),
        *_write_published_lines(recipe),
        "",
        f"data        {recipe.dataset}, {recipe.num_validation:,} training images kept back for validation",
        f"model       {_write_model_line(recipe)}",
        f"training    {_write_training_line(recipe)}",
        f"images      {_write_images_line(recipe)}",
    ]
    if recipe.deviations:
        lines += ["", "What the notebook does and this recipe repeats:"]
        lines += _wrap_paragraphs(f"{deviation.name}: {deviation.sentence}" for deviation in recipe.deviations)
    if recipe.differences:
        lines += ["", "Where this recipe departs from the notebook:"]
        lines += _wrap_paragraphs(recipe.differences)
    return "\n".join(lines)


def write_recipes_json(recipes: list[Recipe]) -> str:
    """A list with an object for each recipe: its definition, what was published, what was measured."""
    return json.dumps([_make_json_entry(recipe) for recipe in recipes], indent=2, ensure_ascii=False)


def find_first_measured(recipe: Recipe) -> Measured | None:
    """Return what was measured on the machine with the most seeds, or None."""
    entries = read_measured_runs().get(recipe.name)
    return entries[0] if entries else None


def describe_accuracy(accuracy: Spread) -> str:
    """Percent with the spread over seeds: "98.61 ± 0.05 % (3 seeds)"."""
    return f"{_format_percent(accuracy)} ({accuracy.count} seed{'s' * (accuracy.count != 1)})"


def _format_percent(accuracy: Spread) -> str:
    deviation = "" if accuracy.deviation is None else f" ± {100 * accuracy.deviation:.2f}"
    return f"{100 * accuracy.mean:.2f}{deviation} %"


def format_minutes(measured: Measured | None) -> str:
    """Return how long a run takes: the work of one core on a CPU, where other work ran beside; else by the clock."""
    return f"{(measured.cpu_seconds or measured.seconds).mean / 60:.1f}" if measured else "–"


def describe_time(measured: Measured) -> str:
    """Return `format_minutes` with their unit."""
    return f"{format_minutes(measured)} minutes{' of one core' if measured.cpu_seconds else ''}"


def _wrap_paragraphs(paragraphs: Iterable[str]) -> list[str]:
    wrap = textwrap.TextWrapper(LINE, initial_indent="  ", subsequent_indent="    ").wrap
    return [line for paragraph in paragraphs for line in wrap(paragraph)]


def _write_measured_lines(recipe: Recipe) -> list[str]:
    entries = read_measured_runs().get(recipe.name)
    if not entries:
        return [f"expected    {UNMEASURED}", *_write_calculated_lines(recipe)]
    lines = []
    for entry in entries:
        lines += [
            f"expected    {describe_accuracy(entry.accuracy)} of the test images, in {describe_time(entry)}",
            f"            on {entry.device}, {entry.precision}, {entry.images_per_second.mean:,.0f} images/s, "
            f"seeds {', '.join(map(str, entry.seeds))}",
        ]
    return lines


def _write_calculated_lines(recipe: Recipe) -> list[str]:
    minutes_of_training = calculate_minutes(recipe)
    if minutes_of_training is None:
        return []
    return [f"calculated  {minutes_of_training:.1f} minutes on {recipe.hardware}, at {SHARE:.1%} of the GPU's peak"]


def _write_published_lines(recipe: Recipe) -> list[str]:
    published = recipe.published
    if published is None:
        return []
    facts = [f"{published.accuracy:.2%} of the {published.of} images"]
    facts += [f"{published.epochs} epochs"] if published.epochs else []
    facts += [published.device] if published.device else []
    facts += [f"{published.seconds / 60:.0f} minutes"] if published.seconds else []
    return [f"published   {', '.join(facts)}"]


def _write_model_line(recipe: Recipe) -> str:
    config = recipe.config
    return (
        f"patch_size {config.patch_size}, embed_dim {config.embed_dim}, depth {config.depth}, num_heads "
        f"{config.num_heads}, mlp_ratio {config.mlp_ratio:g}, positions {config.positions}, pooling {config.pooling}"
        + (", attention starts as if trained" if recipe.mimetic else "")
        + (", patches whitened" if recipe.whitened else "")
    )


def _write_training_line(recipe: Recipe) -> str:
    settings = recipe.settings
    muon = "" if settings.muon_learning_rate is None else f", Muon {settings.muon_learning_rate:g} inside the blocks"
    return (
        f"{settings.epochs} epochs, batch_size {settings.batch_size}, AdamW {settings.learning_rate:g}{muon}, "
        f"{settings.schedule} schedule"
    )


def _write_images_line(recipe: Recipe) -> str:
    settings = recipe.settings
    changes = [
        each.name if value is True else f"{each.name} {value:g}"
        for each in fields(settings.augmentation)
        if (value := getattr(settings.augmentation, each.name)) != each.default
    ]
    sizes = [f"{scale:g} of their size until {share:.0%} of the steps" for share, scale in settings.growth]
    return ", ".join([*changes, *sizes]) or "as they are"


def _make_json_entry(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "command": f"vit-course train {recipe.name}",
        "hardware": recipe.hardware,
        "seeds": list(recipe.seeds),
        "published": _convert_published_to_dict(recipe.published),
        "slips": {deviation.name: deviation.sentence for deviation in recipe.deviations},
        "differences": list(recipe.differences),
        "measured": [asdict(entry) for entry in read_measured_runs().get(recipe.name, [])],
        "definition": make_recipe_definition(recipe),
    }


def _convert_published_to_dict(published: Published | None) -> dict[str, Any] | None:
    return None if published is None else asdict(published)
