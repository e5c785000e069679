"""The recipes, to be read: a table of all, a page on one, JSON for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vit_course.metrics import Spread
from vit_course.recipes import RECIPES
from vit_course.recipes.calculated import SHARES, minutes_by_calculation
from vit_course.recipes.measured import Measured, read_measured
from vit_course.recipes.recipe import Published, Recipe
from vit_course.recipes.result import definition

if TYPE_CHECKING:
    from rich.table import Table

UNMEASURED = "not measured yet"
LINE = 100


def as_table() -> Table:
    """A row for each recipe: name, data, device, minutes, accuracy over its seeds, and what was published.

    It fits into 80 columns: how many seeds there are is told by `as_page`.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("recipe", "data", "device"):
        table.add_column(column, no_wrap=True)
    for column in ("min", "test accuracy", "published"):
        table.add_column(column, justify="right", no_wrap=True)
    for recipe in RECIPES.values():
        measured = first_measured(recipe)
        published = f"{recipe.published.accuracy:.1%}" if recipe.published else ""
        table.add_row(
            recipe.name,
            recipe.dataset,
            measured.device if measured else recipe.hardware,
            minutes(measured),
            _percent(measured.accuracy) if measured else UNMEASURED,
            published,
        )
    return table


def as_page(recipe: Recipe) -> str:
    """All about one recipe: what it is, what it costs, what it reaches, what it repeats or mends."""
    lines = [
        f"vit-course train {recipe.name}",
        "",
        recipe.summary,
        "",
        f"meant for   {recipe.hardware}",
        *_measured_lines(recipe),
        *_published_lines(recipe),
        "",
        f"data        {recipe.dataset}, {recipe.num_validation:,} training images kept back for validation",
        f"model       {_model_in_words(recipe)}",
        f"training    {_training_in_words(recipe)}",
    ]
    if recipe.slips:
        lines += ["", "What the notebook does and this recipe repeats:"]
        lines += _wrapped(f"{slip.name}: {slip.sentence}" for slip in recipe.slips)
    if recipe.differences:
        lines += ["", "Where this recipe departs from the notebook:"]
        lines += _wrapped(recipe.differences)
    return "\n".join(lines)


def as_json(recipes: list[Recipe]) -> str:
    """A list with an object for each recipe: its definition, what was published, what was measured."""
    return json.dumps([_entry(recipe) for recipe in recipes], indent=2, ensure_ascii=False)


def first_measured(recipe: Recipe) -> Measured | None:
    """What was measured on the machine with the most seeds, or None."""
    entries = read_measured().get(recipe.name)
    return entries[0] if entries else None


def expected(accuracy: Spread) -> str:
    """Percent with the spread over seeds: "98.61 ± 0.05 % (3 seeds)"."""
    return f"{_percent(accuracy)} ({accuracy.count} seed{'s' * (accuracy.count != 1)})"


def _percent(accuracy: Spread) -> str:
    deviation = "" if accuracy.deviation is None else f" ± {100 * accuracy.deviation:.2f}"
    return f"{100 * accuracy.mean:.2f}{deviation} %"


def minutes(measured: Measured | None) -> str:
    """How long a run takes by the clock, or a dash."""
    return f"{measured.seconds.mean / 60:.1f}" if measured else "–"


def _wrapped(paragraphs: Iterable[str]) -> list[str]:
    wrap = textwrap.TextWrapper(LINE, initial_indent="  ", subsequent_indent="    ").wrap
    return [line for paragraph in paragraphs for line in wrap(paragraph)]


def _measured_lines(recipe: Recipe) -> list[str]:
    entries = read_measured().get(recipe.name)
    if not entries:
        return [f"expected    {UNMEASURED}", *_calculated_lines(recipe)]
    lines = []
    for entry in entries:
        lines += [
            f"expected    {expected(entry.accuracy)} of the test images, in {entry.seconds.mean / 60:.1f} minutes",
            f"            on {entry.device}, {entry.precision}, {entry.images_per_second.mean:,.0f} images/s, "
            f"seeds {', '.join(map(str, entry.seeds))}",
        ]
        if entry.cpu_seconds is not None:
            lines.append(f"            {entry.cpu_seconds.mean / 60:.1f} minutes of one core's work")
    return lines


def _calculated_lines(recipe: Recipe) -> list[str]:
    minutes_of_training = minutes_by_calculation(recipe)
    if minutes_of_training is None:
        return []
    few, many = minutes_of_training
    most, least = (f"1/{round(1 / share)}" for share in SHARES)
    return [
        f"calculated  {few:.1f} to {many:.1f} minutes, where the {recipe.hardware} does {most} to {least} of its peak"
    ]


def _published_lines(recipe: Recipe) -> list[str]:
    published = recipe.published
    if published is None:
        return []
    facts = [f"{published.accuracy:.2%} of the {published.of} images"]
    facts += [f"{published.epochs} epochs"] if published.epochs else []
    facts += [published.device] if published.device else []
    facts += [f"{published.seconds / 60:.0f} minutes"] if published.seconds else []
    return [f"published   {', '.join(facts)}"]


def _model_in_words(recipe: Recipe) -> str:
    config = recipe.config
    return (
        f"patch_size {config.patch_size}, embed_dim {config.embed_dim}, depth {config.depth}, num_heads "
        f"{config.num_heads}, mlp_ratio {config.mlp_ratio:g}, positions {config.positions}, pooling {config.pooling}"
    )


def _training_in_words(recipe: Recipe) -> str:
    settings = recipe.settings
    muon = "" if settings.muon_learning_rate is None else f", Muon {settings.muon_learning_rate:g} inside the blocks"
    return (
        f"{settings.epochs} epochs, batch_size {settings.batch_size}, AdamW {settings.learning_rate:g}{muon}, "
        f"{settings.schedule} schedule"
    )


def _entry(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "command": f"vit-course train {recipe.name}",
        "hardware": recipe.hardware,
        "seeds": list(recipe.seeds),
        "published": _published(recipe.published),
        "slips": {slip.name: slip.sentence for slip in recipe.slips},
        "differences": list(recipe.differences),
        "measured": [asdict(entry) for entry in read_measured().get(recipe.name, [])],
        "definition": definition(recipe),
    }


def _published(published: Published | None) -> dict[str, Any] | None:
    return None if published is None else asdict(published)
