"""Which exercises have changed since every one of their proofs ran: what `.ci/run` has to prove before a landing.

``python -m tests.proof.stamps`` prints their names for pytest's ``-k``, with the long roads where what they lead
through has changed; nothing where all is proved, and "everything" where the machinery has changed. ``--write`` after a
whole run of ``make proof`` keeps the stamps of today.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from exercise_kit.engine.exercise import Exercise
from exercise_kit.files import write
from tests.proof.mutants import find_definitions
from vit_course.exercises.catalog import EXERCISES
from vit_course.staff.references import REFERENCE

ROOT = Path(__file__).parents[2]
SOLUTIONS = ROOT / "solutions"
STAMPS = Path(__file__).with_name("proved.json")
EVERYTHING = "machinery"
# what evaluates an answer, and what the proofs are made of
_ROOMS = ("engine", "hidden_checks", "judge", "worker", "simulate")
MACHINERY = (*(f"exercise_kit/{each}" for each in _ROOMS), "tests/proof")
SHARED = "vit_course/exercises"  # beside the lessons' folders: what exercises of several lessons are made of
# the folders of tests that no exercise's proofs are in, as pytest's -k has them, and what these tests lead through
ROADS = "e2e or kit or training"
LED_THROUGH = ("exercise_kit", "vit_course", "tests/e2e", "tests/kit")


def compute_stamps() -> dict[str, str]:
    """For each exercise, for the machinery, and for the roads, a digest of what the proofs depend on."""
    machinery = [path for folder in MACHINERY for path in (ROOT / folder).rglob("*")]
    tests = ROOT / "tests"
    proofs = (path for path in (tests / "course").rglob("*.py") if "mark.proof" in path.read_text("utf-8"))
    shared = (*(ROOT / SHARED).glob("*.py"), *tests.glob("*.py"))
    found = {EVERYTHING: compute_digest([*machinery, *proofs, *shared])}
    roads = (path for folder in LED_THROUGH for path in (ROOT / folder).rglob("*"))
    found[ROADS] = compute_digest(path for path in roads if not path.is_relative_to(ROOT / SHARED))
    return found | {name: compute_digest(_iterate_sources(each)) for name, each in EXERCISES.items()}


def find_changed(proved: dict[str, str], now: dict[str, str]) -> list[str]:
    """The names that have no stamp, or another one than today's."""
    return [name for name, digest in now.items() if proved.get(name) != digest]


def _iterate_sources(exercise: Exercise) -> Iterable[Path]:
    """Its folder or file, what its lesson's exercises share, its lesson and its reference."""
    home = ROOT / SHARED
    folder = home.joinpath(*(exercise.checks[0].function.__module__).split(".")[2:-1])
    yield from folder.glob("*")
    yield from (folder if folder.parent == home else folder.parent).glob("*.py")
    yield SOLUTIONS / f"{exercise.lesson}.py"
    modules = {module for module, _ in find_definitions(exercise.name)} if exercise.name in REFERENCE else ()
    yield from (ROOT.joinpath(*module.split(".")).with_suffix(".py") for module in modules)


def compute_digest(paths: Iterable[Path]) -> str:
    """Of what the files say to Python, so that neither prose nor the length of a line asks for a proof."""
    digest = hashlib.sha256()
    for path in sorted({each for each in paths if each.suffix in (".py", ".toml", ".txt") and each.is_file()}):
        text = path.read_text("utf-8")
        # the wrong programs stand in the comments of the right one, and points in those above a lesson's cells
        said = text if path.suffix != ".py" or path.name == "program.py" else ast.dump(ast.parse(text))
        if path.parent == SOLUTIONS:
            said += "".join(line for line in text.splitlines() if line.startswith("# %%") and "points=" in line)
        digest.update(f"{path.relative_to(ROOT)}\n{said}\n".encode())
    return digest.hexdigest()[:16]


def main() -> None:
    """Print what is to be proved, or keep that all is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="all of today's proofs have run")
    now = compute_stamps()
    if parser.parse_args().write:
        write(STAMPS, (json.dumps(now, indent=1) + "\n").encode())
        return
    names = find_changed(json.loads(STAMPS.read_text("utf-8")) if STAMPS.exists() else {}, now)
    print("everything" if EVERYTHING in names else " or ".join(names))


if __name__ == "__main__":
    main()
