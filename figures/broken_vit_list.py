"""Figure of lesson 07: every slip of the library by name, with the accuracy that a ViT with it reached."""

from __future__ import annotations

from statistics import mean

from canvas import Canvas
from slips import LESSONS, RADIUS, Results, Scale, WrongModel, choose_color, read_results
from style import INK, QUIET, save_all_figures

from exercise_kit.engine.in_training import TIE

TITLES = {"published": "seen in a published notebook"}
TOP, HEAD, ROW = 78, 26, 15.5


def broken_vit_list() -> Canvas:
    """Every slip by name with its number, in two columns, exercise by exercise."""
    results = read_results()
    order = [exercise for exercises in LESSONS.values() for exercise in exercises]
    groups = {name: [model for model in results.models if model.exercise == name] for name in order}
    groups = {name: models for name, models in groups.items() if models}
    columns = _split_into_two_columns({name: HEAD + ROW * len(models) for name, models in groups.items()})
    height = max(sum(HEAD + ROW * len(groups[name]) for name in names) for names in columns)
    canvas = Canvas(
        round(TOP + height + 44),
        "Every slip by name",
        f"Test images right, %, after {results.conditions_in_words}; the band is the right model.",
        width=700,
    )
    canvas.text(676, 30, results.missing_runs_in_words, 12, QUIET, align="right")
    for number, names in enumerate(columns):
        left = 24 + 334 * number
        scale, top = Scale(left + 206, 82), TOP
        used = sum(HEAD + ROW * len(groups[name]) for name in names)
        scale.draw_grid(canvas, TOP, TOP + used, results)
        for name in names:
            top = _draw_exercise(canvas, left, top, TITLES.get(name, name), groups[name], scale, results)
    named = "; ".join(
        f"{TITLES.get(name, name)}: " + ", ".join(f"{model.name} {model.accuracy:.1%}" for model in models)
        for name, models in groups.items()
    )
    return canvas.describe(
        f"A list of {len(results.models)} slips with the test accuracy that a ViT with each of them reached.",
        f"""Two columns of names, each with a dot and its accuracy over a band that marks {100 * TIE:.0f} points
        around the right model's mean of {mean(results.right):.1%}; best first in each exercise. {named}.""",
    )


def _split_into_two_columns(heights: dict[str, float]) -> tuple[list[str], list[str]]:
    """The exercises in order, cut where the two columns come out most alike."""
    names = list(heights)
    totals = [sum(heights[name] for name in names[:cut]) for cut in range(len(names) + 1)]
    cut = min(range(len(names)), key=lambda number: abs(2 * totals[number] - totals[-1]))
    return names[:cut], names[cut:]


def _draw_exercise(
    canvas: Canvas, left: float, top: float, title: str, models: list[WrongModel], scale: Scale, results: Results
) -> float:
    """One exercise, from ``top`` down; gives where the next may start."""
    canvas.text(left, top + HEAD - 10, title, 11.5, weight="bold")
    for number, model in enumerate(models):
        y = top + HEAD + (number + 0.5) * ROW
        canvas.text(left, y, model.name, 10, INK)
        canvas.disc(scale.find_x(model.accuracy), y, RADIUS, "", choose_color(model, results))
        canvas.text(left + 320, y, f"{100 * model.accuracy:.1f}", 10, INK, align="right")
    return top + HEAD + ROW * len(models)


FIGURES = {"broken_vit_list": broken_vit_list}

if __name__ == "__main__":
    save_all_figures(FIGURES)
