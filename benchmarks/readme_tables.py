"""The tables of README.md that tell what recipes reach, written from measured.json.

python benchmarks/readme_tables.py
"""

from __future__ import annotations

from pathlib import Path

from vit_course.recipes import RECIPES
from vit_course.recipes.listing import expected, first_measured, minutes
from vit_course.recipes.published import AS_PUBLISHED

README = Path(__file__).resolve().parents[1] / "README.md"
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


TABLES = {"our recipes": our_recipes, "published notebooks": published_recipes}


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
