"""The tables of README.md: what recipes reach, from measured.json; what proves the checks, from proof.json; and how
fast the reference is, from models_cpu.json and loops.json.

python benchmarks/readme_tables.py
"""

from __future__ import annotations

import json
from pathlib import Path

from exercise_kit.engine.library import as_json
from vit_course.recipes import RECIPES
from vit_course.recipes.builtin import AS_PUBLISHED
from vit_course.recipes.listing import expected, first_measured, minutes, minutes_by_calculation

README = Path(__file__).resolve().parents[1] / "README.md"
RESULTS = Path(__file__).resolve().parent / "results"
PROOF = RESULTS / "proof.json"
OURS = ("cpu-minute", "cpu-coffee", "cpu-coffee-mnist", "cpu-coffee-cifar100", "cpu-lunch")
ON_GPUS = ("colab-t4", "h200-minute", "h200-best")
NOT_RUN = "not run yet"


def our_recipes() -> str:
    lines = ["| recipe | test accuracy | minutes |", "|---|---|---|"]
    for name in OURS:
        measured = first_measured(RECIPES[name])
        accuracy = expected(measured.accuracy) if measured else NOT_RUN
        lines.append(f"| `{name}` | {accuracy} | {minutes(measured)} |")
    return "\n".join(lines)


def recipes_for_gpus() -> str:
    lines = ["| recipe | GPU | test accuracy | minutes by calculation |", "|---|---|---|---|"]
    for name in ON_GPUS:
        recipe, measured = RECIPES[name], first_measured(RECIPES[name])
        accuracy = f"{expected(measured.accuracy)}, {minutes(measured)} min" if measured else NOT_RUN
        calculated = minutes_by_calculation(recipe)
        assert calculated is not None
        few, many = calculated
        lines.append(f"| `{name}` | {recipe.hardware} | {accuracy} | {few:.1f} to {many:.1f} |")
    return "\n".join(lines)


def published_recipes() -> str:
    lines = ["| notebook | published | ours as published | without its mistakes, by our recipe |", "|---|---|---|---|"]
    for recipe in AS_PUBLISHED:
        assert recipe.published is not None
        cells = [_reached(recipe.name), _reached(f"{recipe.name}-mended")]
        lines.append(f"| `{recipe.name}` | {100 * recipe.published.accuracy:.1f} % | {' | '.join(cells)} |")
    return "\n".join(lines)


def _reached(name: str) -> str:
    measured = first_measured(RECIPES[name])
    return f"{expected(measured.accuracy)}, {minutes(measured)} min" if measured else NOT_RUN


def proof() -> str:
    """What is proved of the checks; a bug hunt shares its exercise's checks and counts as an exercise of its own."""
    report = json.loads(PROOF.read_text(encoding="utf-8"))
    totals, known = report["totals"], len(json.loads(as_json()))
    checks = f"{totals['public checks']} public and {totals['hidden checks']} hidden checks"
    rows = [
        (f"{len(report['exercises'])} exercises", f"{checks}; each is failed by some known mistake"),
        (f"{totals['right variants']:,} right variants", "all pass, every check"),
        (f"{known:,} known mistakes", "all fail, and all get their name"),
        ("their pairs, on hidden checks", f"all told apart but {totals['pairs alike']}, listed with the reason"),
        (f"{totals['reference mutants']:,} mutants of the reference", _caught(totals, "caught", "equivalent")),
        (
            f"{totals['solution mutants']:,} mutants of the model solutions",
            _caught(totals, "also caught", "also equivalent"),
        ),
        (
            "each known mistake, with its own name removed from the library",
            f"{totals['unknown but named']} of {totals['misconceptions']} get the name of another mistake",
        ),
        (
            "mutants of the solutions, as wrong answers that nobody foresaw",
            f"{totals['mutants named']} get a name; for {totals['rightly']} it describes the behavior in every check",
        ),
    ]
    return "\n".join(["| what is proved | outcome |", "|---|---|", *(f"| {what} | {how} |" for what, how in rows)])


def _caught(totals: dict[str, int], caught: str, equivalent: str) -> str:
    return f"{totals[caught]:,} caught, {totals[equivalent]:,} listed one by one with the reason"


def speed() -> str:
    """How many times our time the others take: other libraries at two sizes; and what loops cost."""
    sizes = json.loads((RESULTS / "models_cpu.json").read_text(encoding="utf-8"))["sizes"]
    works = ("forward", "forward + backward")
    parts = [size["float32"][work] for size in sizes.values() for work in works]
    heads = [f"{size}: {work}" for size in sizes for work in works]
    lines = [f"| times our time | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, facts in next(iter(sizes.values()))["float32"]["models"].items():
        if "version" in facts:
            cells = [_with_quartiles(part["seconds_over_ours"][name]) for part in parts]
            lines.append(f"| {name} {facts['version']} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_loops()])


def _with_quartiles(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


def _loops() -> list[str]:
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


TABLES = {
    "our recipes": our_recipes,
    "recipes for GPUs": recipes_for_gpus,
    "published notebooks": published_recipes,
    "proof": proof,
    "speed": speed,
}


def with_tables(text: str) -> str:
    """The text with each table between its two marks made anew."""
    for name, make in TABLES.items():
        before, start, rest = text.partition(f"<!-- table: {name} -->\n")
        _, end, after = rest.partition("<!-- end of table -->\n")
        if not start or not end:
            raise SystemExit(f"README.md lacks the marks of the table {name!r}")
        text = f"{before}{start}{make()}\n{end}{after}"
    return text


def main() -> None:
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
