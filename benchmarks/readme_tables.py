"""The tables of README.md: what recipes reach, from measured.json, and what proves the checks, from proof.json.

python benchmarks/readme_tables.py
"""

from __future__ import annotations

import json
from pathlib import Path

from vit_course.checks.library import as_json
from vit_course.recipes import RECIPES
from vit_course.recipes.listing import expected, first_measured, minutes
from vit_course.recipes.published import AS_PUBLISHED

README = Path(__file__).resolve().parents[1] / "README.md"
PROOF = Path(__file__).resolve().parent / "results" / "proof.json"
OURS = ("cpu-minute", "cpu-coffee", "cpu-coffee-mnist", "cpu-coffee-cifar100")
NOT_RUN = "not run yet"


def our_recipes() -> str:
    lines = ["| recipe | test accuracy | minutes |", "|---|---|---|"]
    for name in OURS:
        measured = first_measured(RECIPES[name])
        accuracy = expected(measured.accuracy) if measured else NOT_RUN
        lines.append(f"| `{name}` | {accuracy} | {minutes(measured)} |")
    return "\n".join(lines)


def published_recipes() -> str:
    lines = ["| notebook | published | ours as published | ours mended |", "|---|---|---|---|"]
    for recipe in AS_PUBLISHED:
        assert recipe.published is not None
        cells = [_reached(recipe.name), _reached(f"{recipe.name}-mended")]
        lines.append(f"| `{recipe.name}` | {100 * recipe.published.accuracy:.1f} % | {' | '.join(cells)} |")
    return "\n".join(lines)


def _reached(name: str) -> str:
    measured = first_measured(RECIPES[name])
    return f"{expected(measured.accuracy)}, {minutes(measured)} min" if measured else NOT_RUN


def proof() -> str:
    """What was asked of the checks; a bug hunt shares its exercise's checks and counts as an exercise of its own."""
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
            "each known mistake, asked while the library lacks it",
            f"{totals['unknown but named']} of {totals['misconceptions']} get a name, which is then another's",
        ),
        (
            "the solutions' mutants, as wrong answers that nobody foresaw",
            f"{totals['mutants named']} get a name, {totals['rightly']} of them do in every check what it says",
        ),
    ]
    return "\n".join(["| asked of the checks | outcome |", "|---|---|", *(f"| {what} | {how} |" for what, how in rows)])


def _caught(totals: dict[str, int], caught: str, equivalent: str) -> str:
    return f"{totals[caught]:,} caught, {totals[equivalent]:,} listed one by one with the reason"


TABLES = {"our recipes": our_recipes, "published notebooks": published_recipes, "proof": proof}


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
