"""A page for each known mistake, as MyST Markdown for a site: what it is, how it looks in training, the question.

Never the answer: neither right code nor the wrong one, which is right but for a line. A page's path is permanent; a
list of all that were ever published says where those lead that were renamed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from exercise_kit.engine.arguments import write_check_call
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.in_training import InTraining, Trained, TrainingEffect, read_training_setup
from exercise_kit.engine.library import iterate_exercises_with_own_mistakes

# what is seen in training → the name of the page about it, and what that means to who looks for a bug
SYMPTOMS: dict[InTraining, tuple[str, str]] = {
    InTraining.STUCK: ("loss-hardly-falls", "Training shows that something is wrong, but not what."),
    InTraining.WORSE: ("accuracy-lower", "Only a comparison with a right model shows it."),
    InTraining.HIDDEN: ("nothing-to-see", "No curve gives it away: a check does, or somebody who reads the code."),
    InTraining.BETTER: ("accuracy-higher", "A better number is no proof of right code, and this one is a single run."),
    InTraining.STOPS: ("training-stops", "The error's last line shows where it surfaced, seldom where it was made."),
    InTraining.MISREAD: ("wrong-numbers", "The model is fine. The numbers that describe it are wrong."),
    InTraining.FLATTERED: ("numbers-too-good", "The worst kind: there is nothing to worry about until others measure."),
    InTraining.UNSEEN: ("never-met", "It waits for other sizes, other weights, or somebody else's data."),
    InTraining.UNMEASURED: ("not-measured", "Nobody has trained with it yet."),
}
_RENAMED = " -> "
_CODE = re.compile(r"(`[^`]+`)")
_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~$&^])")


class PagesError(Exception):
    """Pages would be lost; the message says which, and what to write where."""


def render_pages(only: Collection[str] = ()) -> dict[str, str]:
    """All pages about known mistakes, by their paths without an ending: mistakes, their exercises, symptoms, lists.

    Lessons are linked to as ``/lessons/NAME``, what was measured as ``/mistakes/index.md#how-this-was-measured``.

    Args:
        only: the names of exercises, where not all are wanted.
    """
    exercises = [each for each in iterate_exercises_with_own_mistakes() if not only or each.name in only]
    texts = {
        wrong.page: _render_mistake_page(each, wrong)
        for each in exercises
        for wrong in each.misconceptions
        if wrong.page
    }
    texts |= {f"mistakes/{each.name}/index": _render_exercise_page(each) for each in exercises}
    for kind, (name, meaning) in SYMPTOMS.items():
        texts[f"mistakes/seen/{name}"] = _render_symptom_page(kind, meaning, exercises)
    return texts | {
        "mistakes/by_symptom": _render_symptom_table(exercises),
        "mistakes/by_exercise": _render_exercise_list(exercises),
    }


def _render_mistake_page(exercise: Exercise, mistake: Misconception) -> str:
    cause, effect = mistake.cause, mistake.effect
    lesson, _, heading = cause.section.partition(", ")
    there, back = f"/lessons/{lesson}.ipynb", f"/mistakes/{exercise.name}/index.md"
    parts = [
        _render_front_matter(
            f"{cause.explanation} In training: {effect.kind}. A known mistake in {exercise.name}, PyTorch."
        ),
        f"# `{exercise.name}`: {escape_markdown(cause.name)}\n",
        f"*A known mistake in* [`{exercise.name}`]({back}), lesson []({there}).\n",
        f"## What it is\n\n{escape_markdown(cause.explanation)}\n",
        f"## The question that leads out of it\n\n> {escape_markdown(cause.question)}\n",
        f"Read on in the lesson: [{escape_markdown(heading)}]({there}#{make_anchor(heading)}).\n",
        f"## How it looks in training\n\n{_render_training_effect(effect)}",
        "## Does your code make it?\n",
        "The course's `check` runs what you wrote and tells you, in a notebook or anywhere in Python:\n",
        f"```python\nfrom {read_package_name()} import check\n\n{write_check_call(exercise).strip('`')}\n```\n",
        f"[{_write_all_mistakes_count(exercise)} in `{exercise.name}`]({back})\n",
    ]
    return "\n".join(parts)


def _render_training_effect(effect: TrainingEffect) -> str:
    name, meaning = SYMPTOMS[effect.kind]
    text = f"**{_capitalize(effect.kind)}.** {meaning} [Others that look like this](/mistakes/seen/{name}.md)\n"
    trained = read_training_setup()
    if trained is None or effect.accuracy is None or effect.right is None:
        return text
    return f"{text}\n{_render_accuracy_bars(trained, effect.accuracy, effect.right)}\n"


def _render_accuracy_bars(trained: Trained, accuracy: float, right_accuracy: float) -> str:
    """Two bars as HTML, with their text inside; the link tells what was trained."""

    def render_bar(label: str, share: float, kind: str) -> str:
        return (
            f'<div class="bar-row"><span>{label}</span><span class="bar" aria-hidden="true">'
            f'<span class="bar-{kind}" style="width:{share:.1%}"></span></span><strong>{share:.1%}</strong></div>'
        )

    rows = render_bar("with this mistake", accuracy, "wrong") + render_bar("the right model", right_accuracy, "right")
    return (
        f'```{{raw}} html\n<div class="bars">{rows}</div>\n```\n\n'
        f"Accuracy on {trained.test_data} of {trained.model}, trained with it and without it "
        f"(guessing reaches {trained.guessing:.0%}): "
        "[how this was measured](/mistakes/index.md#how-this-was-measured).\n"
    )


def _write_mistake_count(exercise: Exercise) -> str:
    count = len(exercise.misconceptions)
    return f"{count} known mistake{'' if count == 1 else 's'}"


def _write_all_mistakes_count(exercise: Exercise) -> str:
    return "The 1 known mistake" if len(exercise.misconceptions) == 1 else f"All {_write_mistake_count(exercise)}"


def _render_exercise_page(exercise: Exercise) -> str:
    entries = [_render_mistake_list_item(wrong) for wrong in sorted(exercise.misconceptions, key=_get_mistake_name)]
    count = _write_mistake_count(exercise)
    about = f"{count} in {exercise.name}, each with its symptom in training and a question. PyTorch."
    lesson = f"lesson [](/lessons/{exercise.lesson}.ipynb)"
    intro = f"What goes wrong in `{exercise.name}`, from {lesson}, and how each mistake looks in training.\n"
    return "\n".join([_render_front_matter(about), f"# Known mistakes in `{exercise.name}`\n", intro, *entries, ""])


def _render_symptom_page(kind: InTraining, meaning: str, exercises: Iterable[Exercise]) -> str:
    trained = read_training_setup()
    bugs = f"Bugs in {trained.bugs_in}" if trained else "Bugs"
    about = f"{bugs}: {kind}. A list of known mistakes, each with a page."
    lines = [
        _render_front_matter(about),
        f"# {_capitalize(kind)}\n",
        f"{meaning} The known mistakes that look like this:\n",
    ]
    for exercise in exercises:
        found = [wrong for wrong in exercise.misconceptions if wrong.effect.kind == kind]
        if found:
            lines.append(f"## `{exercise.name}`\n")
            lines += [_render_mistake_list_item(wrong) for wrong in sorted(found, key=_get_mistake_name)] + [""]
    return "\n".join(lines)


def _render_mistake_list_item(mistake: Misconception) -> str:
    named = f"[{escape_markdown(mistake.name)}](/{mistake.page}.md)" if mistake.page else escape_markdown(mistake.name)
    return f"- {named}: {escape_markdown(mistake.cause.explanation)}"


def _render_symptom_table(exercises: Iterable[Exercise]) -> str:
    kinds = [wrong.effect.kind for exercise in exercises for wrong in exercise.misconceptions]
    rows = [
        f"| [{_capitalize(kind)}](/mistakes/seen/{name}.md) | {kinds.count(kind)} |"
        for kind, (name, _) in SYMPTOMS.items()
        if kind in kinds
    ]
    return "\n".join(["| what you see | known mistakes |", "|---|---:|", *rows, ""])


def _render_exercise_list(exercises: Iterable[Exercise]) -> str:
    lines: list[str] = []
    lesson = ""
    for each in exercises:
        if each.lesson != lesson:
            lesson = each.lesson
            lines.append(f"\n**[](/lessons/{lesson}.ipynb)**\n")
        lines.append(f"- [`{each.name}`](/mistakes/{each.name}/index.md): {len(each.misconceptions)}")
    return "\n".join([*lines, ""])


def _render_front_matter(description: str) -> str:
    """A page's front matter: no menu lists it, and search engines show ``description``."""
    words = " ".join(description.replace("`", "").split())
    return f"---\norphan: true\nmyst:\n  html_meta:\n    description: {_quote_for_yaml(words)}\n---\n"


def _quote_for_yaml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _capitalize(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _get_mistake_name(mistake: Misconception) -> str:
    return mistake.name


def escape_markdown(text: str) -> str:
    """``text`` as Markdown that reads as it stands, but for `code`."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if _CODE.fullmatch(part) else _SIGNS.sub(r"\\\1", part) for part in parts)


def make_anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def map_redirects(published_list: str) -> dict[str, str]:
    """Where the pages lead that were published once and are no more.

    Args:
        published_list: a line for each page, "moving_average/summed-up", and for one that moved, where to:
            "moving_average/added -> moving_average/summed-up".

    Raises:
        PagesError: a page is lost, or leads nowhere.
    """
    there = {
        each.page.removeprefix("mistakes/")
        for exercise in iterate_exercises_with_own_mistakes()
        for each in exercise.misconceptions
    }
    lines = dict(_parse_published_pages(published_list))
    if lost := sorted(name for name, target in lines.items() if not target and name not in there):
        raise PagesError(
            "these pages were published, and their mistakes are gone or have another name. Write behind each where it "
            f"leads now, as `{lost[0]}{_RENAMED}EXERCISE/NEW-NAME`: {', '.join(lost)}"
        )
    moved = {name: target for name, target in lines.items() if target}
    if astray := sorted(f"{name}{_RENAMED}{target}" for name, target in moved.items() if target not in there):
        raise PagesError(f"these lead to a page that is not there: {'; '.join(astray)}")
    if both := sorted(name for name in moved if name in there):
        raise PagesError(f"these lead elsewhere, and there is a mistake of that name: {', '.join(both)}")
    return moved


def add_new_pages_to_list(published_list: str) -> str:
    """The list of published pages with those of all mistakes that are not yet in it; its comments stay on top."""
    lines = published_list.splitlines()
    known = dict(_parse_published_pages(published_list))
    there = (
        each.page.removeprefix("mistakes/")
        for exercise in iterate_exercises_with_own_mistakes()
        for each in exercise.misconceptions
    )
    comments = [line for line in lines if line.startswith("#")]
    entries = [line for line in lines if line.strip() and not line.startswith("#")]
    return "\n".join([*comments, *sorted({*entries, *(name for name in there if name and name not in known)}), ""])


def _parse_published_pages(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, target = line.partition(_RENAMED)
            yield name.strip(), target.strip()


def write_pages(folder: Path, texts: Mapping[str, str]) -> None:
    """Write pages as ``.md`` files below a folder."""
    for path, text in texts.items():
        file = folder / f"{path}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
