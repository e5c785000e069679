"""Everything that waits for a GPU, by one command, in at most twelve minutes of a machine that has one.

    python benchmarks/on_gpu.py --pack DIR --data DATA     # here: what travels, in DIR/1, DIR/2, ...
    python ALL/on_gpu.py --out OUT                         # there, all their files in one folder; nothing to install

The most wanted comes first: grading, the tests that skip without CUDA, the recipes, their company, the libraries. Each
item is a process of its own with a time limit; OUT/results.json is written after each, and a command that was killed
goes on where it was. Copy each part out of the folder that it travels in, which the next call may take away.
Predictions (results/gpu/predictions.json) stand beside outcomes in OUT/report.txt.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BUDGET = 12 * 60.0
TESTS = ("tests/course/training", "tests/course/data/test_augmentation.py")
PLUGIN = "exercise_kit.pytest_plugin.submission_option"
LONG = ("lunches", "gpu-best", "libraries")
TAIL = 3000  # characters of an item's output that are kept


@dataclass(frozen=True)
class Item:
    """One thing to run: a command for Python, and for how many seconds it may; or only where another one failed."""

    name: str
    command: tuple[str, ...]
    limit: float
    where_failed: str = ""


def list_items(place: Path, out: Path, device: str, tiny: bool) -> list[Item]:
    """Return what is run, the most wanted first; tiny sizes show on a CPU that all of it starts and ends."""
    course, data = ("-m", "vit_course"), str(next(place.glob("*.npz")))
    graded = ["solutions/00_start.ipynb"] if tiny else sorted(f"solutions/{n.name}" for n in _list_solutions(place))
    jobs = ("--device", device, "--jobs", "1" if tiny else "4")
    short = ("--epochs", "1", "--batch-size", "16") if tiny else ()

    def make_grade_command(name: str, *what: str) -> tuple[str, ...]:
        return (*course, "grade", *what, *jobs, "--json", str(out / f"{name}.json"))

    def make_train_command(recipe: str, seed: int, *more: str) -> tuple[str, ...]:
        run = ("--device", device, "--seed", str(seed), "--out", str(out / f"{recipe}-{seed}"), "--resume")
        return (*course, "train", recipe, "--data", data, *run, *more, *short)

    # an installed package has told pytest of its plug-in, and twice is an error
    known = any(each.value == PLUGIN for each in importlib.metadata.entry_points(group="pytest11"))
    submission = (*(() if known else ("-p", PLUGIN)), "--submission", str(place / "homework.ipynb"))
    lunches = ("benchmarks/cpu_lunch.py", "--data", data, "--device", device, "--runs", str(out / "lunches"))
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    hidden = ("tests/hidden", *("-k", "normalize_images") * tiny)
    found = [
        Item("grade one notebook", make_grade_command("one", graded[0]), 90),
        Item(
            "grade one unsandboxed",
            (*make_grade_command("unsandboxed", graded[0]), "--no-sandbox"),
            60,
            "grade one notebook",
        ),
        Item("what keeps CUDA from starting", ("benchmarks/gpu_sandbox.py", f"{device}:0"), 240, "grade one notebook"),
        Item("grade the answers", make_grade_command("answers", *graded), 150),
        Item("grade a class", make_grade_command("class", str(place / "class" / "submitted")), 120),
        Item("hidden checks by pytest", (*pytest, *hidden, *submission, "--device", device), 60),
        Item("tests that need a GPU", (*pytest, "-k", "cuda or gpu", *TESTS), 90),
        Item("a step", ("benchmarks/gpu_step.py", str(out / "step.json"), device, *["tiny"] * tiny), 90),
        Item("gpu-minute", make_train_command("gpu-minute", 0), 120),
        Item("lunches", (*lunches, "wide", "slower", "class-token"), 300),
        Item("gpu-best", make_train_command("gpu-best", 0), 420),
        Item(
            "colab-t4 in fp16",
            make_train_command("colab-t4", 0, *(() if device == "cpu" else ("--precision", "fp16"))),
            240,
        ),
        Item("gpu-minute again", make_train_command("gpu-minute", 1), 120),
        Item("libraries", ("benchmarks/models.py", "--device", device, "--output", str(out / "models.json")), 240),
    ]
    if tiny:  # without the long ones, on a machine that may be busy
        found = [replace(each, limit=4 * each.limit) for each in found if each.name not in LONG]
    return found


def _list_solutions(place: Path) -> list[Path]:
    return list((place / "tree" / "solutions").glob("*.ipynb"))


def run_item(item: Item, place: Path, limit: float) -> dict[str, Any]:
    """Run one, and tell how it went; its process is ended, with all that it started, when its time is over."""
    environment = os.environ | {"PYTHONPATH": f"{place / 'tree'}{os.pathsep}{place / 'site'}", "HOME": str(place)}
    started = time.perf_counter()
    log = place / "output.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *item.command],
            cwd=place / "tree",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            code = None
    tail = log.read_text(errors="replace")[-TAIL:]
    seconds = round(time.perf_counter() - started, 1)
    return {"exit": code, "seconds": seconds, "limit": round(limit), "output": tail}


def run_all(place: Path, out: Path, device: str, tiny: bool, budget: float) -> None:
    """Run what has not run yet, as long as there is time, and write after each."""
    results: dict[str, Any] = {}
    if (out / "results.json").exists():
        results = json.loads((out / "results.json").read_text())
    until = time.perf_counter() + budget
    for item in list_items(place, out, device, tiny):
        left = until - time.perf_counter()
        needless = item.where_failed and results.get(item.where_failed, {}).get("exit") == 0
        if item.name in results or needless or left < 10:
            continue
        print(f"{item.name} (at most {min(item.limit, left):.0f} s) ...", flush=True)
        results[item.name] = run_item(item, place, min(item.limit, left))
        print(f"  exit {results[item.name]['exit']}, {results[item.name]['seconds']} s", flush=True)
        write_text(out / "results.json", json.dumps(results, indent=1))
        write_text(out / "report.txt", write_report(place / "tree", out, results))


def write_text(path: Path, text: str) -> None:
    """Write a file in one piece."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def write_report(tree: Path, out: Path, results: dict[str, Any]) -> str:
    """Return how each item went, and each prediction beside its outcome."""
    lines = [f"{name}: exit {each['exit']}, {each['seconds']} s" for name, each in results.items()]
    lines += ["", *list_grades(out)]
    predictions = json.loads((tree / "benchmarks/results/gpu/predictions.json").read_text(encoding="utf-8"))
    for each in predictions["predictions"]:
        seen = find_outcome(out, each["what"], each["quantity"])
        fits = "not run" if seen is None else "as predicted" if each["low"] <= seen <= each["high"] else "CONTRADICTED"
        shown = "" if seen is None else f" {seen:.4g}"
        lines.append(
            f"{each['what']}, {each['quantity']}:{shown} {fits} ({each['low']} to {each['high']}, goal {each['goal']})"
        )
    return "\n".join(lines) + "\n"


def list_grades(out: Path) -> list[str]:
    """Points and seconds of every graded notebook."""
    lines = []
    for name in ("one", "answers", "class"):
        path = out / f"{name}.json"
        if path.exists() and path.read_text():
            for each in json.loads(path.read_text())["submissions"]:
                points = f"{each['score']} of {each['max_score']} points, {each['seconds']} s, {each['status']}"
                lines.append(f"{name}: {Path(each['path']).name} {points} {each['reason'] or ''}")
    return lines + list_wrong_grades(out)


def list_wrong_grades(out: Path) -> list[str]:
    """Where a notebook of the simulated class got other points than it was made to deserve."""
    truth, graded = out / "place" / "class" / "truth.json", out / "class.json"
    if not graded.exists() or not graded.read_text():
        return []
    deserved = {
        (each["student"], each["lesson"]): each["score"]
        for each in json.loads(truth.read_text())["submissions"]
        if each["status"] == "graded"
    }
    given = {
        tuple(Path(each["path"]).parts[-3:-1]): each["score"] for each in json.loads(graded.read_text())["submissions"]
    }
    both = sorted(deserved.keys() & given.keys())
    wrong = [
        f"truth: {key} deserves {deserved[key]}, got {given[key]}"
        for key in both
        if abs(given[key] - deserved[key]) > 0.01
    ]
    return [*wrong, f"truth: {len(both) - len(wrong)} of {len(deserved)} as they deserve"]


def find_outcome(out: Path, what: str, quantity: str) -> float | None:
    """Return what a GPU said of a prediction, or None; a run that was changed says nothing of its recipe."""
    result, step, graded = out / f"{what}-0" / "result.json", out / "step.json", out / "answers.json"
    if quantity in ("test accuracy", "seconds of training") and result.exists():
        run = json.loads(result.read_text())
        if (
            run["device"] != "CPU"
            and run["ending"] == "finished"
            and run["definition"]["settings"]["epochs"] == run["epochs"]
        ):
            return float(run["test"]["top1"] if quantity == "test accuracy" else run["seconds"])
    if step.exists() and what in (measured := json.loads(step.read_text())) and measured["device"] != "CPU":
        return float(measured[what])
    if what.startswith("grade") and graded.exists() and graded.read_text():
        seconds = [each["seconds"] for each in json.loads(graded.read_text())["submissions"]]
        return max(seconds[1:], default=None)
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", type=Path, help="make a pack in this new folder")
    parser.add_argument("--data", type=Path, help="with --pack: where the data set is, as for vit-course train")
    parser.add_argument("--dataset", default="cifar10", help="with --pack: its name")
    parser.add_argument("--students", type=int, default=2, help="with --pack: of the simulated class")
    parser.add_argument("--lesson", action="append", default=[], help="with --pack: of the class; all by default")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where results go")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds in all")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to see on a CPU that it runs")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(HERE))
    import gpu_pack

    if options.pack:
        size = gpu_pack.make_pack(options.pack, options.dataset, options.data, options.students, options.lesson)
        for name in ("on_gpu.py", "gpu_pack.py"):
            shutil.copy(HERE / name, options.pack / "1")
        print(f"{options.pack}: {size / 1e6:.1f} MB")
        return
    out = options.out.resolve()
    place = out / "place"
    if not (place / "homework.ipynb").exists():
        gpu_pack.unpack(HERE, place)
        shutil.copy(place / "tree" / "solutions" / "00_start.ipynb", place / "homework.ipynb")
    run_all(place, out, options.device, options.tiny, options.budget)
    shutil.rmtree(place / "tree" / ".pytest_cache", ignore_errors=True)


if __name__ == "__main__":
    main()
