"""What a command says instead of a traceback: a missing package, an error of ours or of the disk, as a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from exercise_kit.engine.course_named import read_package_name
from exercise_kit.quoting import make_legible


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Turn a missing package into a sentence that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in (read_package_name(), "exercise_kit"):
            raise
        install = f'pip install "vit-course[{extra}]"'
        raise stop(f"This command needs {missing}, which is not installed. Install it with: {install}") from None


@contextmanager
def exit_on_errors(*expected_errors: type[Exception]) -> Iterator[None]:
    """Turn errors of ours, and of the disk, into a sentence."""
    try:
        yield
    except expected_errors as error:
        raise stop(str(error)) from None
    except OSError as error:
        where = error.filename2 or error.filename
        raise stop(f"cannot use {where}: {error.strerror}" if where else error.strerror or str(error)) from None


def stop(message: str, status: int = 1) -> typer.Exit:
    """Say why on stderr; the exit is to be raised."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(make_legible(message), markup=False)
    return typer.Exit(status)
