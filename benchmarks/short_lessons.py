"""What lessons 00, 01, 03, 04, 05 and 07 quote of their own short cells, from three seeds.

    python benchmarks/short_lessons.py --data cifar10.npz

Runs the cells of the lessons themselves, with the right answers, as far as the last one that is quoted. A seed is
added to every seed of a lesson, so with seed 0 the cells do what they do for a student. The data are for lesson 00,
whose model is fed wrongly, and for lesson 07: one model with small positions, from one seed. Takes ten minutes on an
idle core; a run that was stopped goes on where it was. Writes results/short_lessons.json.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import torch
from arms import Log, collect_conditions, make_parser
from lesson_cifar import SEEDS

import vit_course
from exercise_kit.authoring.lesson import Role, read_lesson
from vit_course.data import load_dataset

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "short_lessons.json"
SILENT = ("check", "hunt", "keep", "predict", "progress", "reveal")  # nothing that is quoted comes from these
LOOKED_AT = (0, 1, 10, 40, 79)  # the steps at which lesson 04 looks at its tokens
MIRROR = r"step 300: error ([\d.]+), +(\d+)% of the weight"


def play_lesson(lesson: str, last: str, seed: int) -> tuple[dict[str, Any], str]:
    """The names that a lesson's cells leave, as far as the first cell with the text ``last``, and what they print."""
    names: dict[str, Any] = {}
    printed, seeded = io.StringIO(), torch.manual_seed
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(stack.enter_context(tempfile.TemporaryDirectory())))  # no parts are kept
        stack.enter_context(patch.multiple(vit_course, **{name: MagicMock() for name in SILENT}))
        stack.enter_context(patch.object(torch, "manual_seed", lambda number: seeded(number + seed)))
        stack.enter_context(contextlib.redirect_stdout(printed))
        for cell in read_lesson(ROOT, ROOT / "solutions" / f"{lesson}.py").cells:
            if cell.role in (Role.CODE, Role.EXERCISE) and "raises-exception" not in cell.tags:
                exec(compile(cell.source, lesson, "exec", dont_inherit=True), names)
                if last in cell.source:
                    return names, printed.getvalue()
    raise ValueError(f"no cell of {lesson} holds {last}")


def run_note(name: str, names: dict[str, Any]) -> None:
    """Run the code of a side note below the cells of its lesson, which left ``names``; its own are added."""
    text = (ROOT / "docs" / "site" / "notes" / f"{name}.md").read_text(encoding="utf-8")
    for source in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(source, f"{name}.md", "exec", dont_inherit=True), names)


def parse_printed_numbers(pattern: str, printed: str) -> dict[str, float]:
    """Return what cells have printed, by name; the pattern has a group for the name and one for the number."""
    return {name: float(number) for name, number in re.findall(pattern, printed, re.MULTILINE)}


def measure_start_lesson(seed: int) -> dict[str, Any]:
    """Per cent of the drawings right, of three models: row by row, column by column, with attention over the batch.

    The training losses of the last, epoch by epoch, and by how much two drawings' scores differ in each model.
    """
    names, printed = play_lesson("00_start", "pair = ", seed)
    differences = [float(line.split()[-1]) for line in printed.split("\n") if "drawings' scores" in line]
    losses = names["history"].train_loss
    return {"accuracies": names["accuracies"], "losses_over_the_batch": losses, "differences": differences}


def measure_wrong_preprocessing(_: int) -> dict[str, Any]:
    """Per cent of the test photos that the course's model gets right, by how lesson 00 prepares them."""
    names, _ = play_lesson("00_start", 'reveal("errors-raised"', 0)
    vit, by_columns, (_, test) = names["vit"], names["by_columns"], load_dataset("cifar10")
    found: dict[str, float] = dict.fromkeys(names["inputs"], 0.0)
    for pixels, labels in zip(test.images.split(500), test.labels.split(500), strict=True):
        small = pixels.float() / 255
        ready = vit.normalize(small)
        others = vit.normalize(255 * small), vit.normalize(small.flip(1))
        inputs = zip(found, (ready, small, *others, by_columns(ready, 4)), strict=True)
        with torch.no_grad():
            for name, given in inputs:
                found[name] += 100 * (vit.model(given).argmax(dim=1) == labels).sum().item() / len(test)
    return {"right": found}


def measure_patchify_lesson(seed: int) -> dict[str, Any]:
    """The share of the variance that few directions keep, and how far a Linear is from its convolution."""
    names, _ = play_lesson("01_patchify", "by_convolution = ", seed)
    with contextlib.redirect_stdout(io.StringIO()):
        run_note("directions", names)
    return {"kept": names["shares"], "difference": (names["by_linear"] - names["by_convolution"]).abs().max().item()}


def measure_attention_lesson(seed: int) -> dict[str, Any]:
    """Undivided scores, shuffled tokens, and the head that learns to mirror."""
    names, printed = play_lesson("03_attention", "learn_to_mirror(table)", seed)
    found: dict[str, Any] = {"largest_weight": {}, "stuck": {}, "gradient": {}}
    for head_dim in (4, 64, 256):
        for name, divisor in (("undivided", 1), ("divided", head_dim**0.5)):
            which = f"{head_dim}, {name}"
            stuck, gradient = names["rows_and_gradients"](head_dim, divisor)
            each = {"stuck": gradient[stuck], "others": gradient[~stuck]}
            found["largest_weight"][which] = names["largest_weight"](names["scores_of"](head_dim, divisor)).item()
            found["stuck"][which] = stuck.float().mean().item()
            found["gradient"][which] = {name: rows.median().item() for name, rows in each.items() if len(rows)}
    found["shuffled"] = parse_printed_numbers(r"(with|without) positions the mean changes by ([\d.]+)%", printed)
    for name, (error, share) in zip(("without", "with"), re.findall(MIRROR, printed), strict=True):
        found[f"mirror, {name} positions"] = {"error": float(error), "share": float(share)}
    return found


def measure_block_lesson(seed: int) -> dict[str, Any]:
    """The stream, gradients and losses of stacks with norms in two places, and of stacks without additions."""
    names, printed = play_lesson("04_block", 'losses = {"fixed"', seed)
    lengths = {name: each[-1] for name, each in names["lengths"].items()}
    return {
        "branch": {name: length / lengths["stream"] for name, length in lengths.items() if name != "stream"},
        "gradients": names["pulls"],
        "losses": {name: each[-1].item() for name, each in (names["deep"] | names["bare"]).items()},
        "spreads": {name: [each[step] for step in LOOKED_AT] for name, each in names["spreads"].items()},
        "tokens": parse_printed_numbers(r"(\w+) +tokens of one image differ by (\S+)", printed),
        "4 blocks": {name: each[-1].item() for name, each in names["shallow"].items()},
        "24 blocks": {name: each[-1].item() for name, each in names["losses"].items() if name != "guessing"},
    }


def replay_vit_lesson(seed: int) -> dict[str, Any]:
    """The stream's spread, first losses, and per cent of the drawings right of three models."""
    names, printed = play_lesson("05_vit", 'reveal("scrambled"', seed)
    return {
        "spread": names["heights"],
        "first_loss": parse_printed_numbers(r"first loss, (.+?) +([\d.]+)$", printed),
        "accuracies": {name: 100 * each.validation_accuracy[-1] for name, each in names["histories"].items()},
    }


def measure_experiments_lesson(seed: int) -> dict[str, Any]:
    """The spreads that lesson 07 prints for positions that start at 0.02, before the training and after it."""
    names, _ = play_lesson("07_experiments", "def accuracies_of", 0)
    arm = names["Arm"](replace(names["BASE"], position_std=0.02))
    torch.manual_seed(seed)
    models = {"before": names["VisionTransformer"](arm.config).to(names["device"])}
    names["accuracies_of"](arm, (seed,))
    models["after"] = names["trained"][arm, seed]
    images = names["train"].normalize(names["train"].images[:100]).to(names["device"])
    return {
        when: {
            "positions": model.positions.std(dim=1).mean().item(),
            "patches": model.patch_embedding(images).std().item(),
        }
        for when, model in models.items()
    }


MEASURES: dict[str, tuple[Callable[[int], dict[str, Any]], tuple[int, ...]]] = {
    "00_start": (measure_start_lesson, SEEDS),
    "00_fed_wrongly": (measure_wrong_preprocessing, SEEDS[:1]),
    "01_patchify": (measure_patchify_lesson, SEEDS),
    "03_attention": (measure_attention_lesson, SEEDS),
    "04_block": (measure_block_lesson, SEEDS),
    "05_vit": (replay_vit_lesson, SEEDS),
    "07_experiments": (measure_experiments_lesson, SEEDS[:1]),
}


def main() -> None:
    arguments = make_parser(__doc__, RESULTS).parse_args()
    torch.set_num_threads(1)
    os.environ["VIT_COURSE_DATA"] = str(arguments.data.parent.resolve())  # where the lesson's load_dataset looks
    log = Log(arguments.output, collect_conditions("short_lessons"))
    for lesson, (measure, seeds) in MEASURES.items():
        for seed in seeds:
            log.measure_once(lesson, str(seed), by=partial(measure, seed))


if __name__ == "__main__":
    main()
