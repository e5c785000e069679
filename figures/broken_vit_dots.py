"""Figure of lesson 07: every slip of the library as a dot, trained alike with the right model, lesson by lesson."""

from __future__ import annotations

from collections import Counter
from statistics import mean

from canvas import Canvas
from slips import LESSONS, RADIUS, Results, Scale, WrongModel, choose_color, read_results
from style import BLUE, GRAY, HAIR, INK, QUIET, VERMILION, save_all_figures

from exercise_kit.engine.in_training import TIE

STEP = 7.2


def stack_dots(models: list[WrongModel], scale: Scale) -> list[tuple[float, int, WrongModel]]:
    """(x, floor, slip): dots of one column of pixels stand on one another."""
    heights: Counter[int] = Counter()
    placed = []
    for model in models:
        column = round(scale.find_x(model.accuracy) / STEP)
        placed.append((column * STEP, heights[column], model))
        heights[column] += 1
    return placed


def broken_vit_dots() -> Canvas:
    """A strip of dots for each lesson, over the right model's band."""
    results, scale = read_results(), Scale(292, 384)
    groups = {
        title: [model for model in results.models if model.exercise in exercises]
        for title, exercises in LESSONS.items()
    }
    groups = {title: models for title, models in groups.items() if models}
    strips = {title: stack_dots(models, scale) for title, models in groups.items()}
    heights = {title: max(78, 22 + STEP * max(floor + 1 for _, floor, _ in strip)) for title, strip in strips.items()}
    top = 112
    bottom = top + sum(heights.values())
    total, passing = len(results.models), results.count_passing(results.models)
    canvas = Canvas(
        round(bottom + 62),
        f"{passing} of {total} broken ViTs look as good as the right one, or better",
        f"Each dot is one slip. All trained alike: {results.conditions_in_words}; test images right, %.",
        width=700,
    )
    scale.draw_grid(canvas, top - 8, bottom, results)
    canvas.text(scale.find_x(mean(results.right)), top - 20, "the right model", 12, BLUE, align="center", weight="bold")
    canvas.text(scale.find_x(0.1), top - 20, "chance", 12, QUIET, align="center")
    base = float(top)
    for title, strip in strips.items():
        base += heights[title]
        _draw_strip(canvas, title, strip, base, heights[title], results)
    canvas.disc(30, bottom + 40, 4, "", VERMILION)
    canvas.text(42, bottom + 40, "accuracy does not give it away", 12, INK)
    canvas.disc(262, bottom + 40, 4, "", GRAY)
    canvas.text(274, bottom + 40, "clearly worse than the right model", 12, INK)
    canvas.text(676, bottom + 40, results.missing_runs_in_words, 12, QUIET, align="right")
    return canvas.describe(*_write_descriptions(results, groups))


def _draw_strip(
    canvas: Canvas, title: str, strip: list[tuple[float, int, WrongModel]], base: float, height: float, results: Results
) -> None:
    models = [model for _, _, model in strip]
    canvas.line([(24, base), (676, base)], HAIR, 1)
    middle = base - height / 2
    canvas.text(24, middle - 22, title, 13, weight="bold")
    canvas.text(24, middle - 3, f"{results.count_passing(models)} of {len(models)} look right", 12, QUIET)
    best, worst = models[0], models[-1]
    canvas.text(24, middle + 13, f"▲ {best.accuracy:.0%} {best.name}", 11, QUIET)
    canvas.text(24, middle + 28, f"▼ {worst.accuracy:.0%} {worst.name}", 11, QUIET)
    for x, floor, model in strip:
        canvas.disc(x, base - 6 - RADIUS - STEP * floor, RADIUS, "", choose_color(model, results))


def _write_descriptions(results: Results, groups: dict[str, list[WrongModel]]) -> tuple[str, str]:
    total, passing = len(results.models), results.count_passing(results.models)
    above = sum(model.accuracy > results.high for model in results.models)
    guessing = sum(model.accuracy < 0.12 for model in results.models)
    alt = (
        f"Test accuracy of {total} broken ViTs as dots, lesson by lesson: {passing} lie within {100 * TIE:.0f} points "
        f"of the right model or above it."
    )
    lessons = "; ".join(
        f"lesson {title}: {results.count_passing(models)} of {len(models)}, from {models[-1].name} "
        f"{models[-1].accuracy:.1%} to {models[0].name} {models[0].accuracy:.1%}"
        for title, models in groups.items()
    )
    return (
        alt,
        f"""One strip for each lesson, a dot for each slip, placed by its accuracy on
        {results.facts["data"]["test_images"]:,} test images; a blue band marks {100 * TIE:.0f} points around the right
        model's mean of {mean(results.right):.1%} ({len(results.right)} seeds). Trained on
        {results.conditions_in_words}. Of {total} slips {passing} lie in the band or above it, {above} of them
        above, and {guessing} at chance. In the band or above, of each lesson: {lessons}.
        {results.missing_runs_in_words}""",
    )


FIGURES = {"broken_vit_dots": broken_vit_dots}

if __name__ == "__main__":
    save_all_figures(FIGURES)
