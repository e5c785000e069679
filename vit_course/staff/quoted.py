"""What the pages of the clone quote: what recipes reach, what proves the checks, and how fast the reference is.

From the logs in `benchmarks/results/`; `vit-course build` writes it between marks (`exercise_kit/authoring/quoted.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from exercise_kit.engine.rendering import render_text
from exercise_kit.engine.run import check
from vit_course.exercises.catalog import EXERCISES
from vit_course.recipes import RECIPES
from vit_course.recipes.builtin import AS_PUBLISHED
from vit_course.recipes.listing import (
    Measured,
    calculate_minutes,
    describe_accuracy,
    find_first_measured,
    format_minutes,
)

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
PROOF = RESULTS / "proof.json"
OURS = ("cpu-minute", "cpu-coffee", "cpu-coffee-mnist", "cpu-coffee-cifar100", "cpu-lunch", "cpu-course")
ON_GPUS = ("gpu-minute", "gpu-best", "colab-t4")
GPU = RESULTS / "gpu"
NOT_RUN = "not run yet"
# logs of what was tried for cpu-lunch, in the order of the trials, and the recipe's own
LUNCHES = {
    "cpu_lunch/class-token-unwhitened-0": "a class token, patches not whitened",
    "cpu_lunch/42-epochs-0": "the mean over tokens, patches whitened",
    "cpu_lunch/class-token-faster-0": "a class token, whitened, photos turned and recolored",
    "cpu_lunch/class-token-faster-0-float32": "the same on the slower machine",
    "cpu_lunch/wide-mlp-class-token-0": "as the third, an MLP twice as wide",
    "cpu_lunch/wide-class-token-faster-0": "as the third, 128 numbers a token",
    "recipes/cpu-lunch-0": "**the recipe**, seed 0: the mean, turned and recolored, smaller rates",
}


def write_example_report() -> str:
    """Return what a student reads who runs down the columns in `patchify`."""
    (wrong,) = (each for each in EXERCISES["patchify"].misconceptions if each.name == "column order")
    with redirect_stdout(StringIO()):
        answer = check("patchify", *wrong.objects)
    return f"```\n{render_text(answer)}\n```"


def write_recipe_table() -> str:
    """Return what recipes for a CPU reach."""
    lines = ["| recipe | test accuracy | minutes of one core |", "|---|---|---|"]
    for name in OURS:
        measured = find_first_measured(RECIPES[name])
        accuracy = describe_accuracy(measured.accuracy) if measured else NOT_RUN
        lines.append(f"| `{name}` | {accuracy} | {format_minutes(measured)} |")
    return "\n".join(lines)


def _read_measured(name: str) -> Measured:
    measured = find_first_measured(RECIPES[name])
    assert measured is not None
    return measured


def write_gpu_recipe_table() -> str:
    """For each recipe and card: measured, or predicted and calculated."""
    lines = ["| recipe | GPU | test accuracy | minutes without compiling |", "|---|---|---|---|"]
    for name in ON_GPUS:
        recipe, measured = RECIPES[name], find_first_measured(RECIPES[name])
        calculated = calculate_minutes(recipe)
        assert calculated is not None
        if measured:
            accuracy = describe_accuracy(measured.accuracy)
            lines.append(f"| `{name}` | {measured.device} | {accuracy} | {format_minutes(measured)} |")
        else:
            accuracy = f"{NOT_RUN}; predicted {read_accuracy_prediction(name)}"
            lines.append(f"| `{name}` | {recipe.hardware} | {accuracy} | calculated: {calculated:.1f} |")
    return "\n".join(lines)


def read_accuracy_prediction(name: str) -> str:
    """The accuracy that was written down for a recipe before it ran."""
    table = json.loads((GPU / "predictions.json").read_text(encoding="utf-8"))["predictions"]
    found = next(each for each in table if each["what"] == name and each["quantity"] == "test accuracy")
    return f"{100 * found['low']:.1f} to {100 * found['high']:.1f} %"


def write_gpu_run_table() -> str:
    """List what ran on a GPU before these recipes: two that they replace, and two trials of the step as a graph."""
    lines = ["| run | precision | epochs | training images | test images |", "|---|---|---|---|---|"]
    for name, title in (("h200_minute_of_before", "`h200-minute`"), ("colab_t4_of_before_on_h200", "`colab-t4`")):
        run = json.loads((GPU / f"{name}.json").read_text(encoding="utf-8"))
        learned = f"{100 * run['history']['train_accuracy'][-1]:.1f} %"
        reached = f"{100 * run['test']['top1']:.2f} %"
        lines.append(f"| {title} as it was | {run['precision']} | {run['epochs']} | {learned} | {reached} |")
    for name, title in (("light_40", "light changes"), ("strong_180", "strong changes")):
        run = json.loads((GPU / f"trial_graph_{name}_epochs.json").read_text(encoding="utf-8"))
        lines.append(f"| trial, {title} | bf16 | {run['epochs']} | – | {100 * run['test']:.2f} % |")
    return "\n".join(lines)


def describe_gpu_step() -> str:
    """A sentence about one step, part by part, and as a graph."""
    steps = json.loads((GPU / "h200_minute_step_by_parts.json").read_text(encoding="utf-8"))
    trial = json.loads((GPU / "trial_graph_light_40_epochs.json").read_text(encoding="utf-8"))
    return (
        f"A step of 512 images of that `h200-minute` took {steps['eager_full_step_ms']:.1f} ms by Python,"
        f" {steps['compiled_full_step_ms']:.1f} compiled,\nand {steps['graph_full_step_ms']:.2f} as one CUDA graph;"
        f" {trial['ms_per_step']:.2f} with three heads and the changes of the images inside."
    )


def write_gpu_peer_table() -> str:
    """Return how many times our time the others take on the GPU, forward and backward in bfloat16."""
    report = json.loads((RESULTS / "models_cuda.json").read_text(encoding="utf-8"))
    modes = {size: mode["bfloat16"]["forward + backward"] for size, mode in report["sizes"].items()}
    lines = [f"| times our time | {' | '.join(modes)} |", "|---" * (len(modes) + 1) + "|"]
    first = next(iter(report["sizes"].values()))["bfloat16"]["models"]
    for name, facts in first.items():
        if "version" in facts:
            cells = [_format_with_quartiles(part["seconds_over_ours"][name]) for part in modes.values()]
            lines.append(f"| {name} {facts['version']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_published_recipe_table() -> str:
    """Return what published notebooks reach, as they are and without their mistakes."""
    lines = ["| notebook | published | ours as published | without its mistakes, by our recipe |", "|---|---|---|---|"]
    for recipe in AS_PUBLISHED:
        assert recipe.published is not None
        cells = [_describe_recipe_result(recipe.name), _describe_recipe_result(f"{recipe.name}-mended")]
        of = "" if recipe.published.of == "test" else f" ({recipe.published.of})"
        lines.append(f"| `{recipe.name}` | {100 * recipe.published.accuracy:.1f} %{of} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _describe_recipe_result(name: str) -> str:
    measured = find_first_measured(RECIPES[name])
    return f"{describe_accuracy(measured.accuracy)}, {format_minutes(measured)} min" if measured else NOT_RUN


def read_proof_total(name: str) -> str:
    """A total of the proof's log."""
    return f"{json.loads(PROOF.read_text(encoding='utf-8'))['totals'][name]:,}"


def write_proof_table() -> str:
    """List what is proved of the checks; a bug hunt shares its exercise's checks and counts as one of its own."""
    report = json.loads(PROOF.read_text(encoding="utf-8"))
    totals = report["totals"]
    checks = f"{totals['public checks']} public and {totals['hidden checks']} hidden checks"
    rows = [
        (f"{len(report['exercises'])} exercises", f"{checks}; each is failed by some known mistake"),
        (f"{totals['right variants']:,} right variants", "all pass, every check"),
        (f"{totals['misconceptions']:,} known mistakes", "all fail, and all get their name"),
        ("their pairs, on hidden checks", f"all told apart but {totals['pairs alike']}, listed with the reason"),
        (f"{totals['reference mutants']:,} mutants of the reference", _describe_caught(totals, "caught", "equivalent")),
        (
            f"{totals['solution mutants']:,} mutants of the model solutions",
            _describe_caught(totals, "also caught", "also equivalent"),
        ),
        (
            "each known mistake, with its own name removed from the library",
            f"{totals['unknown but named']} get another's",
        ),
        (
            "mutants of the solutions, as wrong answers that nobody foresaw",
            f"{totals['mutants named']} get a name; for {totals['rightly']} it describes the behavior in every check",
        ),
    ]
    return "\n".join(["| what is proved | outcome |", "|---|---|", *(f"| {what} | {how} |" for what, how in rows)])


def _describe_caught(totals: dict[str, int], caught: str, equivalent: str) -> str:
    return f"{totals[caught]:,} caught, {totals[equivalent]:,} listed one by one with the reason"


def write_speed_table() -> str:
    """Return how many times our time the others take: other libraries at two sizes; and what loops cost."""
    sizes = json.loads((RESULTS / "models_cpu.json").read_text(encoding="utf-8"))["sizes"]
    works = ("forward", "forward + backward")
    parts = [size["float32"][work] for size in sizes.values() for work in works]
    heads = [f"{size}: {work}" for size in sizes for work in works]
    lines = [f"| times our time | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, facts in next(iter(sizes.values()))["float32"]["models"].items():
        if "version" in facts:
            cells = [_format_with_quartiles(part["seconds_over_ours"][name]) for part in parts]
            lines.append(f"| {name} {facts['version']} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_describe_cost_of_loops()])


def _format_with_quartiles(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


def _describe_cost_of_loops() -> list[str]:
    """A sentence about the loops of published notebooks, at the sizes of two of them."""
    sizes = json.loads((RESULTS / "loops.json").read_text(encoding="utf-8"))["sizes"].values()
    cut, step = (
        " and ".join(f"{size[what]['times_ours']['looped']['median']:.0f}" for size in sizes)
        for what in ("patchify", "whole model, forward + backward")
    )
    return [
        f"Cutting patches one by one, as some published notebooks do, takes {cut} times as long as `patchify`, at the",
        "sizes of two of them (MNIST, CIFAR-10). If attention loops over images and heads, too, a training step takes",
        f"{step} times as long.",
    ]


def read_cpu_race_rows() -> list[dict[str, Any]]:
    """Return the rows of the race on a CPU; the recipe's is the first."""
    rows: list[dict[str, Any]] = json.loads((RESULTS / "cpu_race.json").read_text(encoding="utf-8"))
    return rows


def write_cpu_race_table() -> str:
    """Compare what was tried for `cpu-coffee` with its recipe, at about as many seconds of one core."""
    lines = ["| on one core | epochs | seconds | validation images | points gained |", "|---|---|---|---|---|"]
    for row in read_cpu_race_rows():
        points = f"{100 * row['difference']:+.1f} ± {100 * row['half_interval']:.1f}".replace("-", "−")
        gain = points if row["difference"] else "–"
        seeds = f" ({row['seeds']} seeds)" if row["seeds"] > 1 else ""
        star = r" \*" if row["on_slower_machine"] else ""
        lines.append(
            f"| {row['racer']}{star} | {row['epochs']} | {row['cpu_seconds']} | {row['accuracy']:.1%}{seeds} | {gain} |"
        )
    return "\n".join(lines).replace("%", " %")


def write_lunch_table() -> str:
    """List what was tried for `cpu-lunch`, with the work of all cores."""
    lines = ["| | epochs | in | minutes of one core | images held back | test images |", "|---" * 6 + "|"]
    for name, says in LUNCHES.items():
        run = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        minutes = f"{run['cpu_seconds'] / 60:.0f}"
        right = " | ".join(f"{100 * run[part]['top1']:.2f} %" for part in ("validation", "test"))
        lines.append(f"| {says} | {run['epochs']} | {run['precision']} | {minutes} | {right} |")
    return "\n".join(lines)


TABLES = {
    "report": write_example_report,
    "our recipes": write_recipe_table,
    "race on a CPU": write_cpu_race_table,
    "lunches": write_lunch_table,
    "recipes for GPUs": write_gpu_recipe_table,
    "runs on a GPU": write_gpu_run_table,
    "a step on a GPU": describe_gpu_step,
    "libraries on a GPU": write_gpu_peer_table,
    "published notebooks": write_published_recipe_table,
    "proof": write_proof_table,
    "speed": write_speed_table,
}
COLUMNS = ("public checks", "hidden checks", "right variants", "reference mutants", "caught", "equivalent")
QUOTED: dict[str, Callable[[], str]] = {
    **TABLES,
    "coffee minutes": lambda: f"{float(format_minutes(_read_measured('cpu-coffee'))):.0f}",
    "coffee accuracy": lambda: f"{100 * _read_measured('cpu-coffee').accuracy.mean:.1f}",
    "lunch accuracy": lambda: f"{100 * _read_measured('cpu-lunch').accuracy.mean:.1f}",
    "timm in the race": lambda: next(
        f"{100 * row['accuracy']:.0f}" for row in read_cpu_race_rows() if row["racer"].startswith("timm")
    ),
    "recipe in the race": lambda: next(
        f"{100 * row['accuracy']:.0f}" for row in read_cpu_race_rows() if "whitens" in row["racer"]
    ),
    "attacks": lambda: str(len(json.loads((RESULTS / "attacks.json").read_text(encoding="utf-8"))["attacks"])),
    **{f"proof: {name}": partial(read_proof_total, name) for name in (*COLUMNS, "misconceptions", "unknown but named")},
}
