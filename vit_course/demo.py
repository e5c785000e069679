"""``vit-course demo``: the course's main job from end to end, on real notebooks and a real training run.

A small ViT learns our own shapes from nothing on one core, for at most a minute: how many it sees follows from how fast
the machine turns out to be.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn

from exercise_kit.authoring.build import build
from exercise_kit.engine.rendering import render_text
from exercise_kit.judge.graded_report import make_graded_report
from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import Graded, grade_demo_class, read_model_answers
from vit_course.config import ViTConfig
from vit_course.data import Augmentation, ImageDataset, shapes, train_validation_split
from vit_course.plots import plot_history, show_attention
from vit_course.recording import record
from vit_course.training import TrainingSettings, fit
from vit_course.vit import VisionTransformer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CONFIG = ViTConfig(image_size=32, patch_size=4, embed_dim=64, depth=3, num_heads=4, mlp_ratio=2.0, position_std=0.5)
SETTINGS = TrainingSettings(
    epochs=6, batch_size=64, learning_rate=2e-3, muon_learning_rate=0.02, augmentation=Augmentation(max_shift=2)
)
NUM_TRAIN, NUM_VALIDATION = 10_000, 1_000
NUM_TIMED = 512  # images on which the machine's speed is measured
SECONDS, PLANNED = 60.0, 50.0  # at which training is stopped, and which it is planned for


@dataclass(frozen=True)
class DemoResult:
    """What the demo reached: accuracy in [0, 1] on validation images, and the pictures written.

    ``images`` were seen in ``seconds`` of training, each image as often as there are epochs.
    """

    accuracy: float
    seconds: float
    images: int
    parameters: int
    curves: Path
    attention: Path


def train_demo(out_dir: Path, progress: bool | None = None) -> DemoResult:
    """Draw a data set, train a ViT on it, and write curves.png and attention.png.

    Args:
        out_dir: made when it does not exist; files of the same names are written over.
        progress: as for `vit_course.training.fit`.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    with _use_one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(SETTINGS.seed)
        dataset = shapes(_choose_images_per_epoch() + NUM_VALIDATION)
        train, validation = train_validation_split(dataset, NUM_VALIDATION)
        model = VisionTransformer(CONFIG)
        started = time.perf_counter()
        with _stop_training_at(model, started + SECONDS):
            history = fit(model, train, validation, SETTINGS, progress)
        seconds = time.perf_counter() - started
    whole = history.ending == "finished"  # else it has the weights of its best epoch
    if not whole and seconds < SECONDS:
        raise KeyboardInterrupt
    curves, attention = out_dir / "curves.png", out_dir / "attention.png"
    plot_history(history, "A small ViT learns ten shapes").savefig(curves, dpi=150)
    _draw_attention_maps(model, validation).savefig(attention, dpi=150)
    return DemoResult(
        accuracy=history.validation_accuracy[-1 if whole or history.best_epoch is None else history.best_epoch - 1],
        seconds=seconds,
        images=len(train) * len(history.seconds),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        curves=curves,
        attention=attention,
    )


def _choose_images_per_epoch() -> int:
    """Return how many images an epoch may have, so that all epochs take the planned time on this machine."""
    few = shapes(NUM_TIMED)
    timed = fit(VisionTransformer(CONFIG), few, few.subset(slice(1)), replace(SETTINGS, epochs=2), progress=False)
    seconds = timed.seconds[-1] / NUM_TIMED  # of one image; the first epoch also loads what torch loads late
    return min(NUM_TRAIN, max(SETTINGS.batch_size, int(PLANNED / SETTINGS.epochs / seconds)))


@contextmanager
def _stop_training_at(model: VisionTransformer, deadline: float) -> Iterator[None]:
    """Inside, training ends at this time as by Ctrl-C, but not before an epoch was measured: there is a result."""
    measured: list[bool] = []

    def stop_after_deadline(module: nn.Module, _: object) -> None:
        if not module.training:
            measured.append(True)
        elif measured and time.perf_counter() > deadline:
            raise KeyboardInterrupt

    hook = model.register_forward_pre_hook(stop_after_deadline)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def _use_one_thread() -> Iterator[None]:
    """Compute with one thread, so that the time does not depend on who else is at work.

    Two threads on two idle cores are faster, but beside four busy processes they took six times the CPU seconds.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _draw_attention_maps(model: VisionTransformer, validation: ImageDataset, num_images: int = 6) -> Figure:
    """Where the class token looks in the last block, on the first image of each of several classes."""
    first = torch.stack([(validation.labels == label).nonzero()[0, 0] for label in range(num_images)])
    images: Tensor = validation.images[first]  # (num_images, 3, 32, 32)
    model.eval()
    with torch.inference_mode():
        stages = record(model, validation.normalize(images))
    weights = stages[f"blocks.{CONFIG.depth - 1}.attention.weights"]
    names = [validation.classes[answer] for answer in stages["logits"].argmax(dim=-1)]
    figure = show_attention(images, weights, CONFIG.grid_size, names)
    figure.suptitle("Where the class token looks in the last block, head by head; left, what the model calls it")
    return figure


LESSON = "01_patchify"

STRIPS = """\
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    for side in (height, width):
        if side % patch_size:
            raise ValueError(f"{side} is not divisible by patch_size {patch_size}")
    tokens = (height // patch_size) * (width // patch_size)
    return images.reshape(batch, tokens, channels * patch_size**2)
"""
COLUMN_ORDER = """\
def fix_patchify(images, patch_size):
    batch, channels, height, width = images.shape
    rows, columns = height // patch_size, width // patch_size
    patches = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return patches.permute(0, 4, 2, 1, 3, 5).reshape(batch, rows * columns, -1)
"""


def make_students(class_dir: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """The invented students of a released class: what their work is like, and their answers by exercise."""
    right = read_model_answers(class_dir, LESSON)
    half = {name: right[name] for name in ("patchify", "unpatchify", "patches-or-pixels")}
    classic = right | {"patchify": STRIPS, "fix_patchify": COLUMN_ORDER}
    return {
        "ada": ("everything right", right),
        "ben": ("the first half right, the rest not begun", half),
        "cleo": ("a plain reshape for patchify, the bug not found", classic),
        "dan": ("nothing written", {}),
    }  # fmt: skip


MARKER = ".vit-course-demo"


class DemoError(Exception):
    """The demo cannot run; the message says what to do."""


def run_demo(out: Path, root: Path, console: Console) -> None:
    """Build the lessons, make and grade a class, train a small ViT, and say what to open.

    Args:
        out: where everything is written; a folder that an earlier demo made is replaced.
        root: the clone whose lessons are used.
        console: where progress and results are printed.

    Raises:
        DemoError: ``out`` holds something that no demo wrote.
        AuthoringError, ClassFolderError, RehearsalError: a step failed; the message says which and why.
    """
    _clear_demo_folder(out)
    _print_headline(console, 1, "Build the notebooks from their sources", "some seconds")
    report = build(root, pages=False)
    console.print(f"{len(report.written)} written, {len(report.unchanged)} unchanged.")

    _print_headline(console, 2, f"Make a class of four and grade {LESSON} with nbgrader", "half a minute to three")
    class_dir = new_class(out / "class", root).path
    with console.status("nbgrader") as status:
        graded = grade_demo_class(
            class_dir, LESSON, make_students, lambda words: _show_progress(console, status, words)
        )
    console.print(_make_points_table(graded))

    _print_headline(console, 3, "What each student reads")
    for student in graded:
        _print_reports_of_student(console, student)

    _print_headline(
        console,
        4,
        "Train a small ViT on drawings that need no download",
        "a minute or two; the training alone one at most",
    )
    result = train_demo(out)
    most = SETTINGS.epochs * NUM_TRAIN
    fewer = "" if result.images >= most else f" A faster machine, or one with nothing else to do, shows it {most:,}."
    console.print(
        f"{result.accuracy:.1%} of the validation drawings are named rightly by a ViT of {result.parameters:,} "
        f"parameters, which was shown {result.images:,} drawings in {result.seconds:.0f} seconds.{fewer}"
    )

    _print_headline(console, 5, "What to open next")
    for what, where in _list_next_steps(out, graded):
        console.print(Text.assemble((f"{what:<46}", ""), (where, "bold")), soft_wrap=True)


def _clear_demo_folder(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not (out / MARKER).exists():
            raise DemoError(f"{out} is in use by something else than a demo; choose another folder with --out")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARKER).write_text("Made by vit-course demo, which replaces this folder when it runs again.\n")


def _print_headline(console: Console, number: int, words: str, takes: str = "") -> None:
    """Say what comes, and how long it ``takes``: on a quiet machine of today, and on an old one beside other work."""
    console.print()
    console.rule(f"[bold]{number}. {words}", align="left", style="blue")
    if takes:
        console.print(f"This takes {takes}.", style="dim")


def _show_progress(console: Console, status: object, words: str) -> None:
    if console.is_terminal:
        status.update(words)  # type: ignore[attr-defined]  # rich's Status
    else:
        console.print(words)


def _make_points_table(graded: list[Graded]) -> Table:
    """Points: a row for every exercise and a column for every student, which fits a terminal of 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("points")
    for student in graded:
        table.add_column(student.student, justify="right")
    for row in zip(*(student.exercises for student in graded), strict=True):
        table.add_row(row[0][0], *(f"{score:.3g} of {worth:g}" for _, score, worth in row))
    table.add_row("all", *(f"{student.score:.3g} of {student.max_score:g}" for student in graded), style="bold")
    return table


def _print_reports_of_student(console: Console, student: Graded) -> None:
    console.print(f"\n[bold]{student.student}[/bold] ({student.handed_in})")
    for report in student.reports:
        console.print(Text(indent(render_text(make_graded_report(report)), "  ")), soft_wrap=True)


def _list_next_steps(out: Path, graded: list[Graded]) -> list[tuple[str, str]]:
    classic = next(student for student in graded if student.student == "cleo")
    is_active = os.environ.get("VIRTUAL_ENV") == sys.prefix or sys.prefix == sys.base_prefix
    first = [] if is_active else [("First, in this shell:", f'. "{_shorten_path(Path(sys.prefix))}/bin/activate"')]
    return [
        *first,
        ("A lesson, as a student:", "jupyter lab notebooks/00_start.ipynb"),
        ("Cleo's feedback page:", _shorten_path(classic.feedback)),
        ("The training curves:", _shorten_path(out / "curves.png")),
        ("What the trained ViT looks at:", _shorten_path(out / "attention.png")),
        ("The gradebook, in formgrader:", f'cd "{_shorten_path(out / "class")}" && jupyter lab'),
        ("A class of your own:", "vit-course new-class ../my-class"),
    ]


def _shorten_path(path: Path) -> str:
    """A path as the reader would type it from here."""
    path = path.resolve()
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
