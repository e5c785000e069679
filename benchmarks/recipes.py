"""Run recipes over their seeds, one log for each run, and write what `vit-course recipes` tells from all logs.

    python benchmarks/recipes.py --recipe cpu-minute --recipe cpu-coffee --data DIR --threads 2
    python benchmarks/recipes.py --summary          # train nothing; make measured.json anew from the logs

A run is a process of its own, `vit-course train`. Its log is results/recipes/RECIPE-SEED.json. A finished run is kept
as long as the recipe is what it was; a run that was stopped goes on where it was, then without CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from vit_course.metrics import spread
from vit_course.plots_training import plot_runs
from vit_course.recipes import RECIPES, Recipe, find
from vit_course.recipes.listing import MEASURED, is_counted_run, summarize_runs
from vit_course.recipes.result import RunResult, read_result, write_json, write_result
from vit_course.recipes.run import RESULT_FILE
from vit_course.training import History

LOGS = Path(__file__).parent / "results" / "recipes"
RUNS = Path(tempfile.gettempdir()) / "vit_course_recipes"


def find_log_path(recipe: Recipe, seed: int, logs: Path = LOGS) -> Path:
    return logs / f"{recipe.name}-{seed}.json"


def read_logs(logs: Path = LOGS) -> list[RunResult]:
    return [read_result(path) for path in sorted(logs.glob("*.json"))]


def is_done(recipe: Recipe, seed: int, logs: Path = LOGS) -> bool:
    path = find_log_path(recipe, seed, logs)
    return path.exists() and is_counted_run(recipe, read_result(path))


def train_and_log(recipe: Recipe, seed: int, arguments: argparse.Namespace) -> None:
    """Train once in a process of its own, and copy the result to the logs."""
    folder = arguments.runs / f"{recipe.name}-{seed}"
    command = [sys.executable, "-m", "vit_course", "train", recipe.name, "--seed", str(seed), "--out", str(folder)]
    command += ["--device", arguments.device] + (["--data", str(arguments.data)] if arguments.data else [])
    command += ["--resume"] if folder.exists() else []
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments.threads)} if arguments.threads else None
    if subprocess.run(command, env=environment).returncode:
        raise SystemExit(f"stopped: {' '.join(command[2:])}")
    result = read_result(folder / RESULT_FILE)
    if not is_counted_run(recipe, result):
        raise SystemExit(f"{folder} holds a run of another {recipe.name}; remove it and run this again")
    arguments.logs.mkdir(parents=True, exist_ok=True)
    write_result(find_log_path(recipe, seed, arguments.logs), result)


def format_table(results: list[RunResult]) -> str:
    """Each recipe's accuracy over its seeds, and how long it took."""
    lines = []
    for recipe in RECIPES.values():
        runs = [result for result in results if result.recipe == recipe.name and is_counted_run(recipe, result)]
        if runs:
            accuracy, seconds = spread([each.test["top1"] for each in runs]), spread([each.seconds for each in runs])
            deviation = f" ± {accuracy.deviation:.2%}" if accuracy.deviation is not None else ""
            seeds = ", ".join(str(each.seed) for each in runs)
            lines.append(f"{recipe.name:24} {accuracy.mean:7.2%}{deviation}  {seconds.mean:7.1f} s  seeds {seeds}")
    return "\n".join(lines)


def draw_curves(results: list[RunResult], folder: Path) -> None:
    """A picture for each recipe: its curves, with a band over the seeds."""
    folder.mkdir(parents=True, exist_ok=True)
    for recipe in RECIPES.values():
        runs = [
            History(**each.history) for each in results if each.recipe == recipe.name and is_counted_run(recipe, each)
        ]
        if runs:
            plot_runs(runs, recipe.name).savefig(folder / f"{recipe.name}.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", action="append", type=find, default=[], help="may be given more than once")
    parser.add_argument("--seeds", type=int, nargs="*", help="in place of the recipe's own")
    parser.add_argument("--data", type=Path, help="as for vit-course train")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU; 0 leaves it to torch")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where the run folders go")
    parser.add_argument("--logs", type=Path, default=LOGS, help="where the logs go")
    parser.add_argument("--measured", type=Path, default=MEASURED, help="what is written from the logs")
    parser.add_argument("--curves", type=Path, help="a folder, for pictures of all logged curves")
    parser.add_argument("--summary", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    for recipe in [] if arguments.summary else arguments.recipe:
        for seed in arguments.seeds or recipe.seeds:
            if not is_done(recipe, seed, arguments.logs):
                train_and_log(recipe, seed, arguments)
                write_json(arguments.measured, summarize_runs(RECIPES.values(), read_logs(arguments.logs)))
    write_json(arguments.measured, summarize_runs(RECIPES.values(), read_logs(arguments.logs)))
    if arguments.curves:
        draw_curves(read_logs(arguments.logs), arguments.curves)
    print(format_table(read_logs(arguments.logs)))


if __name__ == "__main__":
    main()
