"""What every exercise asks and every known mistake is told, as one JSON file; and the differences between two of them.

A change of form must not change a word that a student reads. Run it before the change and after it:

    python benchmarks/catalog.py --write before.json [--exercise NAME ...]
    python benchmarks/catalog.py --compare before.json after.json
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import time
from pathlib import Path
from typing import Any

from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.run import check
from exercise_kit.engine.verdict import Part
from vit_course.exercises.catalog import EXERCISES


def describe_exercise(exercise: Exercise) -> dict[str, Any]:
    """An exercise: its claims, and for each known mistake its words and the report of one who makes it."""
    claims = {each.name: [each.claim, sorted(each.needs), each.worth, each.guard] for each in exercise.checks}
    mistakes = {}
    for wrong in exercise.misconceptions:
        report = check(exercise.name, *wrong.objects)
        told = [wrong.cause.explanation, wrong.cause.question, wrong.cause.section, wrong.effect.sentence]
        kind = wrong.effect.kind.name
        mistakes[wrong.name] = {"words": [*told, kind], "named": list(report.misconceptions), "report": str(report)}
    return {"claims": claims, "mistakes": mistakes}


def write_catalog(file: Path, names: list[str]) -> None:
    """Write what is known of these exercises, exercise by exercise, so that a run that is stopped keeps the others."""
    found = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for name in names:
        if name not in found:
            start = time.perf_counter()
            found[name] = describe_exercise(EXERCISES[name])
            file.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
            print(f"{name}: {len(found[name]['mistakes'])} mistakes, {time.perf_counter() - start:.0f} s", flush=True)


def describe_differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Each difference in words, of exercises that stand in both; other numbers in a sentence are no difference."""
    found = []
    for name in before.keys() & after.keys():
        for part in ("claims", "mistakes"):
            old, new = before[name][part], after[name][part]
            found += [f"{name}: {part}: {each} is gone" for each in old.keys() - new.keys()]
            found += [f"{name}: {part}: {each} is new" for each in new.keys() - old.keys()]
            for each in old.keys() & new.keys():
                lines = difflib.unified_diff(*(_list_sentences(one[each]) for one in (old, new)), lineterm="", n=0)
                if changed := [line for line in lines if line[:2] not in ("--", "++", "@@")]:
                    found.append("\n".join([f"{name}: {part}: {each}:", *changed]))
    return sorted(found)


def _list_sentences(described: Any) -> list[str]:
    """Return what is said, line by line, without its numbers and as if no line were broken."""
    if isinstance(described, list):
        return [str(each) for each in described]
    report = " ".join(described["report"].split())
    numberless = re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "#", report)
    return [
        *described["words"],
        str(described["named"]),
        *re.split(rf" (?=[✓✗·] |{'|'.join(f'{part}:' for part in Part)})", numberless),
    ]


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--exercise", action="append")
    parser.add_argument("--compare", type=Path, nargs=2)
    options = parser.parse_args()
    if options.write:
        write_catalog(options.write, options.exercise or list(EXERCISES))
    if options.compare:
        found = describe_differences(*(json.loads(each.read_text("utf-8")) for each in options.compare))
        print("\n".join([*found, f"{len(found)} differences"]))


if __name__ == "__main__":
    main()
