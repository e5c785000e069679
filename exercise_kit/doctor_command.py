"""``vit-course doctor``: the findings on a terminal, or plainly in a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from exercise_kit.doctor import Finding, Verdict, examine

CLONE = Path(__file__).resolve().parents[1]
COLOURS: dict[Verdict, str] = {"fine": "green", "weaker": "yellow", "missing": "bold red"}


def doctor(
    hidden: Annotated[Path, typer.Option(help="The folder of the hidden checks.")] = CLONE / "tests" / "hidden",
) -> None:
    """Tell what this machine can do: torch, GPU, nbgrader, sandbox; each with what to do about it."""
    findings, sandboxed = examine(hidden)
    # a path or a command is never broken over two lines: it is there to be copied
    console = Console(highlight=False, soft_wrap=True)
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        console.print(_line(finding, width))
    if sandboxed:
        console.print("\nGrading can run in the sandbox.")
        return
    console.print("\nGrading cannot run in the sandbox here: see what is missing above.")
    console.print("vit-course grade --no-sandbox grades all the same, with nothing between the students' code and you.")
    raise typer.Exit(1)


def _line(finding: Finding, width: int) -> Text:
    line = Text(f"{finding.verdict:<8}", style=COLOURS[finding.verdict])
    line.append(f"{finding.subject:<{width}}  {finding.seen}", style="default")
    if finding.advice:
        line.append(f"\n{'':<{8 + width}}  → {finding.advice}", style="default")
    return line
