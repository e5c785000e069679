"""What students get, as a folder: the notebooks, the course's wheel, and two pages to read; no answer, no hidden check.

A second release into the same folder replaces the release's files one by one. A marker in the folder lists these files
with their digests. A file that somebody has changed is moved aside, and every other file in the folder is left alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from uuid import uuid4

from exercise_kit.authoring.build import STUDENT_FOLDER
from exercise_kit.authoring.route import FILE as ROUTE
from exercise_kit.authoring.route import read_route
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.release_settings import FILE as SETTINGS
from exercise_kit.engine.release_settings import ReleaseSettings, Route
from exercise_kit.files import write, write_and_make_folder
from exercise_kit.nbgrader.class_folder import move_into_place

MARKER = ".vit-course-release"
NOTES = Path("docs") / "site" / "notes"
_RESULTS = re.compile(r"benchmarks/results/[\w/]+\.json")
SHEET = Path("docs") / "cheat_sheet.html"  # of a clone, where it has one
TEMPLATES = files("exercise_kit") / "templates"
# what every file of a wheel and of a zip is dated, so that the same course gives the same bytes
EPOCH, DATE = "315532800", (1980, 1, 1, 0, 0, 0)


class ReleaseError(Exception):
    """A release cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Release:
    """A release: its folder, its files by their paths in it, and somebody's changed files that were moved aside."""

    path: Path
    files: tuple[Path, ...]
    put_aside: tuple[Path, ...] = ()


def release(directory: Path, root: Path, settings: ReleaseSettings | None = None) -> Release:
    """Make the folder that students get, or make it again.

    Args:
        directory: it does not exist, is empty, or is an earlier release.
        root: a clone of the course, whose `notebooks/` are built.
        settings: which lessons it holds, and what students may do.

    Raises:
        ReleaseError: the folder holds something else, there is no notebook, or the wheel cannot be built.
    """
    directory = directory.resolve()
    before = _read_earlier_digests(directory)
    content = _collect_release_files(root, settings or ReleaseSettings())
    digests = {path.as_posix(): hashlib.sha256(each).hexdigest() for path, each in content.items()}
    content[Path(MARKER)] = json.dumps(digests, indent=1).encode() + b"\n"
    if before is None:
        draft = directory.with_name(f".{directory.name}-{uuid4().hex[:8]}")
        try:
            for path, each in content.items():
                write_and_make_folder(draft / path, each)
            move_into_place(draft, directory)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return Release(directory, tuple(content))
    return Release(directory, tuple(content), _replace_release_files(directory, content, before))


def as_zip(made: Release) -> Path:
    """The files of a release as one file beside its folder; the same files give the same bytes.

    Raises:
        ReleaseError: there is a file of that name which is no zip of a release.
    """
    target = made.path.with_name(f"{made.path.name}.zip")
    if target.exists() and not _is_zip_of_release(target):
        raise ReleaseError(f"{target} exists and is no zip of a release; move it away")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(made.files):
            entry = zipfile.ZipInfo(f"{made.path.name}/{path.as_posix()}", DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, (made.path / path).read_bytes())
    write(target, packed.getvalue())
    return target


def build_wheel(root: Path, folder: Path, settings: ReleaseSettings | None = None) -> Path:
    """The wheel of a clone's packages as they are in its working tree, without what is not the project's.

    The settings of the release travel in it.

    Raises:
        ReleaseError: it cannot be built; the message ends in what pip said.
    """
    ready = importlib.util.find_spec("setuptools") is not None
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    command += ["--no-build-isolation", "--no-index"] if ready else []
    with tempfile.TemporaryDirectory() as source:
        for path in list_package_files(root):
            write_and_make_folder(Path(source) / path, (root / path).read_bytes())
        if settings:
            write_and_make_folder(Path(source) / read_package_name() / SETTINGS, settings.as_json())
        environment = os.environ | {"SOURCE_DATE_EPOCH": EPOCH}
        done = subprocess.run([*command, source], env=environment, capture_output=True, text=True, check=False)
    built = sorted(folder.glob("*.whl"))
    if done.returncode or not built:
        raise ReleaseError(f"the wheel cannot be built: {' '.join(done.stderr.split())[-400:]}")
    return built[-1]


def list_tracked_files(root: Path) -> list[Path]:
    """The project's files by their paths in a clone; where git does not say, all that are there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    names = listed.stdout.decode().split("\0") if not listed.returncode else []
    paths = [Path(name) for name in names if name] or [path.relative_to(root) for path in sorted(root.rglob("*"))]
    return [path for path in paths if (root / path).is_file() and "__pycache__" not in path.parts]


def list_package_files(root: Path) -> list[Path]:
    """The project's files that a wheel is made of: those at the top, and those in packages."""
    packages = {each.parent.name for each in root.glob("*/__init__.py")} - {"tests"}
    return [path for path in list_tracked_files(root) if len(path.parts) == 1 or path.parts[0] in packages]


def _collect_release_files(root: Path, settings: ReleaseSettings) -> dict[Path, bytes]:
    """Every file of a release by its path in it."""
    notebooks = _list_notebooks(root, settings.route)
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(root, Path(folder), settings)
        found = {Path(wheel.name): wheel.read_bytes()}
    found |= {STUDENT_FOLDER / path.name: path.read_bytes() for path in notebooks}
    pointed_to = _find_linked_files(root, notebooks)
    found |= {path: (root / path).read_bytes() for path in pointed_to}
    words = {
        "package": read_package_name(),
        "own_parts": course().own_parts,
        "wheel": wheel.name,
        "first": notebooks[0].name,
        "lessons": ", ".join(path.stem for path in notebooks),
        "route": _ROUTE_WORDS[settings.route],
        "sheet": _SHEET_ROW if (root / SHEET).is_file() else "",
        "notes": _NOTES_ROW if pointed_to else "",
        "borrow": _BORROW_WORDS[settings.borrow],
    }
    for name, template in (("README.md", "release_readme.md"), ("AGENTS.md", "release_agents.md")):
        text = Template((TEMPLATES / template).read_text(encoding="utf-8"))
        found[Path(name)] = text.substitute(words).encode()
    for path in (Path("LICENSE"), SHEET):
        if (root / path).is_file():
            found[Path(path.name)] = (root / path).read_bytes()
    return found


def _find_linked_files(root: Path, notebooks: Iterable[Path]) -> list[Path]:
    """The results that notebooks quote, the side notes that they link to, and what these link to; by their paths."""
    text = "\n".join(path.read_text("utf-8") for path in notebooks)
    notes = {NOTES / f"{name}.md" for name in re.findall(rf"{re.escape(course().site)}notes/([\w-]+)\.html", text)}
    found = {Path(name) for name in _RESULTS.findall(text)} | notes
    for note in (each for each in notes if (root / each).is_file()):
        links = re.findall(r"\]\(([^)\s:#]+)", (root / note).read_text("utf-8"))
        found |= {Path(os.path.normpath(note.parent / link)) for link in links if not link.endswith(".ipynb")}
    return sorted(path for path in found if (root / path).is_file())


_NOTES_ROW = (
    f"| `{NOTES.as_posix()}/`, `benchmarks/results/`, `figures/` | side notes and results that lessons name |\n"
)
_SHEET_ROW = f"| `{SHEET.name}` | shapes, operations and names on two pages, to be printed |\n"
_ROUTE_WORDS = {
    Route.ALL: "All lessons are here. In those of the core `progress()` says so.",
    Route.CORE: "These are the lessons of the core; the course has more.",
}
_BORROW_WORDS = {
    True: 'Stuck after hint 3? `borrow("NAME")` gives you the course\'s version, so that you can go on. It earns '
    "no points.",
    False: "Stuck after hint 3? Ask your teacher: `borrow` is switched off in this release.",
}


def _list_notebooks(root: Path, route: Route) -> list[Path]:
    """The notebooks of a route, in order."""
    found = sorted((root / STUDENT_FOLDER).glob("*.ipynb"))
    if not found:
        raise ReleaseError(f"no notebook in {root / STUDENT_FOLDER}; run 'vit-course build' there first")
    if route is Route.ALL:
        return found
    lessons = read_route(root)
    # what a teacher has added belongs to every route
    core = [path for path in found if lessons and (path.stem not in lessons or lessons[path.stem].core)]
    if not core:
        raise ReleaseError(f"no lesson belongs to the core: {Path(read_package_name()) / ROUTE} marks none")
    return core


def _read_earlier_digests(directory: Path) -> Mapping[str, str] | None:
    """The digests of the release that is there; None: nothing is there."""
    if directory.exists() and not directory.is_dir():
        raise ReleaseError(f"{directory} is not a folder; name a new one")
    if not directory.exists() or not any(directory.iterdir()):
        return None
    try:
        found = json.loads((directory / MARKER).read_text(encoding="utf-8"))
        return {str(name): str(digest) for name, digest in found.items()}
    except FileNotFoundError:
        raise ReleaseError(f"{directory} is not empty and no earlier release; name a new folder") from None
    except (ValueError, AttributeError):
        raise ReleaseError(f"{directory / MARKER} cannot be read; name a new folder") from None


def _replace_release_files(
    directory: Path, content: Mapping[Path, bytes], earlier_digests: Mapping[str, str]
) -> tuple[Path, ...]:
    """Give a release its new files; what somebody has changed is put beside."""
    aside = []
    for path, new in content.items():
        place = directory / path
        if place.is_file() and path != Path(MARKER):
            old = place.read_bytes()
            if old == new:
                continue
            if hashlib.sha256(old).hexdigest() != earlier_digests.get(path.as_posix()):
                aside.append(_move_aside(place))
        write_and_make_folder(place, new)
    for name, digest in earlier_digests.items():
        place = directory / name
        gone = Path(name) not in content and place.resolve().is_relative_to(directory)
        if gone and place.is_file() and hashlib.sha256(place.read_bytes()).hexdigest() == digest:
            place.unlink()
    return tuple(aside)


def _move_aside(place: Path) -> Path:
    """Move a file out of the way, to a name that nothing has."""
    numbers = (f"-{number}" if number else "" for number in range(1000))
    names = (place.with_name(f"{place.stem}.before{number}{place.suffix}") for number in numbers)
    target = next(each for each in names if not each.exists())
    place.rename(target)
    return target


def _is_zip_of_release(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(Path(name).name == MARKER for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False
