"""``vit-course diagnose``: a model out of a file that is run, its report printed or written as JSON."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from exercise_kit.progress_bar import progress_bar
from vit_course.diagnosis.answers import describe_error, find_raising_line
from vit_course.diagnosis.asking import OF_A_VIT, OF_ANY_MODEL, diagnose

if TYPE_CHECKING:
    from rich.console import Console


class DiagnoseError(Exception):
    """There is no model to ask: what is the matter, where, and what to do."""


USER_ERRORS: tuple[type[Exception], ...] = (DiagnoseError,)
_SIZES = re.compile(r"(\d+)x(\d+)x(\d+)")


def diagnose_file(source: str, call: str | None, images: str, output: str | None, console: Console) -> None:
    """Run a file, make a model by ``call`` in it, ask it with random images, and print or write what is found.

    Args:
        source: "FILE:MODEL".
        call: an expression in the file's names that makes the model; None: MODEL itself, called where it is a class.
        images: "CxHxW".
        output: a JSON file, "-" for stdout, or None for the report in words.
        console: for the report.

    Raises:
        DiagnoseError: the file, the name, the expression or the sizes do not give a model and images; or the model does
            not run on them, which the report tells, too.
    """
    sizes = _SIZES.fullmatch(images)
    if not sizes or not all(int(each) for each in sizes.groups()):
        raise DiagnoseError(f"--images must be CxHxW, such as 3x32x32, not {images!r}")
    if output not in (None, "-") and not Path(output).absolute().parent.is_dir():
        raise DiagnoseError(f"there is no folder {Path(output).absolute().parent} to write {output} into")
    # what the file prints must not stand in the JSON
    with contextlib.redirect_stdout(sys.stderr):
        model = _load_model(source, call)
        drawn = torch.randn(2, *map(int, sizes.groups()), generator=torch.Generator().manual_seed(0))
        with progress_bar(type(console)(stderr=True), "asking", len(OF_ANY_MODEL + OF_A_VIT)) as step:
            report = diagnose(model, drawn, after_each=step)
    if output is None:
        console.print(str(report), markup=False)
    elif output == "-":
        print(json.dumps(report.as_dict(), indent=1))
    else:
        Path(output).write_text(json.dumps(report.as_dict(), indent=1), "utf-8")
    if not report.ran:
        raise DiagnoseError(f"nothing could be asked: {report.findings[0].seen}")


def _load_model(source: str, call: str | None) -> nn.Module:
    file, colon, name = source.rpartition(":")
    path = Path(file)
    if not colon or not name.isidentifier():
        raise DiagnoseError(f"name the file and the model in it as FILE:MODEL, such as vit.py:ViT, not {source!r}")
    if not path.is_file():
        raise DiagnoseError(f"there is no file {path}")
    print(f"Running {path}, as any import does.", file=sys.stderr)
    space = _run_file(path)
    if name not in space:
        raise DiagnoseError(
            f"{path} defines no {name}; it has {', '.join(_list_model_classes(space)) or 'no model at all'}"
        )
    try:
        made = eval(call, space) if call else space[name]
        if isinstance(made, type):
            made = made()
    except Exception as error:
        how = "" if call else f"say with --call how to make {name}: "
        raise DiagnoseError(
            f"{how}{call or name + '()'} raises {describe_error(error)}{_describe_line(error)}"
        ) from error
    if not isinstance(made, nn.Module):
        raise DiagnoseError(f"{call or name} gives {type(made).__name__}, and not a torch.nn.Module")
    return made


def _run_file(path: Path) -> dict[str, Any]:
    """The names that a file defines, with the modules beside it in reach."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise DiagnoseError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.absolute().parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise DiagnoseError(f"running {path} raises {describe_error(error)}{_describe_line(error)}") from error
    finally:
        sys.path.pop(0)
    return vars(module)


def _describe_line(error: BaseException) -> str:
    """The line of the file that failed."""
    file, line = find_raising_line(error)
    return f" ({Path(file).name}, line {line})" if line and Path(file).is_file() else ""


def _list_model_classes(space: dict[str, Any]) -> list[str]:
    found = (name for name, each in space.items() if isinstance(each, type) and issubclass(each, nn.Module))
    return sorted(found)
