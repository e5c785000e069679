"""What a run of the proofs found of an exercise's mutants, kept for as long as the code is the same."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from exercise_kit.files import write

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".cache" / "proof"
# whatever an answer, a check or a mutant is made of
SOURCES = ("exercise_kit", "vit_course", "solutions", "tests", "pyproject.toml")
KINDS = (".py", ".json", ".toml", ".txt")


def compute_or_recall(name: str, compute: Callable[[], Any]) -> Any:
    """Return what ``compute`` gives, JSON; not computed again until any of the sources, or torch, is another one.

    Only results are kept, never a verdict on them: a test compares them anew each time.
    """
    folder = KEPT / _digest_sources()
    file = folder / f"{name}.json"
    try:
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        pass
    found = json.loads(json.dumps(compute()))
    if not folder.is_dir():
        shutil.rmtree(KEPT, ignore_errors=True)  # what was found of other code
    folder.mkdir(parents=True, exist_ok=True)
    write(file, json.dumps(found).encode())
    return found


@cache
def _digest_sources() -> str:
    digest = hashlib.sha256(
        repr((torch.__version__, np.__version__, platform.platform(), platform.python_version())).encode()
    )
    for path in _iterate_files():
        content = path.read_bytes()
        digest.update(f"{path}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()


def _iterate_files() -> Iterator[Path]:
    for source in (ROOT / each for each in SOURCES):
        every = sorted(source.rglob("*")) if source.is_dir() else [source]
        yield from (path for path in every if path.suffix in KINDS and path.is_file())
