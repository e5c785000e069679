"""The package as a student of one lesson sees it while the judge grades: nothing in it holds this lesson's answers.

The modules of earlier lessons are there, since later exercises build on them. Those of the lesson itself and of later
ones have their names alone: a lesson's own cells import some for their text, and whoever uses one reads why it is not
there. ``check`` and its like are replaced by functions that decide nothing. A view is written once for a lesson and a
state of the package, read-only, and every submission of that lesson reads it.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import hashlib
import importlib.util
import os
import py_compile
import re
import shutil
import sys
import tempfile
from functools import cache
from importlib import resources
from pathlib import Path

from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.files import find_user_folder
from exercise_kit.submission.slice import list_definitions

_KIT = __name__.partition(".")[0]
_ATTEMPTS = 5
_SYSTEM_CACHE = Path("/var/cache/vit_course")
# of the kit's own modules what a course's may import, and what tries students' functions out: in every view
_OF_THE_KIT = ("files", "versions", "engine/dispatch_mode", "engine/training_fixtures")

_CHECK = '''"""Stands where the public checks, a student's own parts and their progress are while a student works."""

from importlib import import_module


class Note:
    """What a check shows while the judge grades."""

    def __repr__(self) -> str:
        return "graded by the judge; its verdict is in the feedback"


def check(exercise: str = "", *objects: object, points: float | None = None) -> Note:
    """Decide nothing."""
    return Note()


def keep(*names: str) -> None:
    """Keep nothing."""


def own(*names: str) -> object:
    """The course's own parts."""
    found = tuple(getattr(import_module("{package}"), name) for name in names)
    return found[0] if len(found) == 1 else found


def borrow(name: str) -> None:
    """Lend nothing: a name that a student has not defined stays without a value."""


def reset(name: str) -> None:
    """Show nothing."""


def predict(name: str, guess: object = ..., choices: object = ()) -> None:
    """Note nothing."""


def reveal(name: str, actual: object, within: object = None) -> None:
    """Show nothing."""


def progress() -> None:
    """Show nothing."""
'''

# in the place of a module that holds answers; its functions stand in its own file
_WITHHELD = '''"""Stands where answers are while a student works: their names, and nothing behind them."""


class _Withheld(type):
    """A class that can be imported and named, and nothing more."""

    def __getattr__(cls, name):
        if name.startswith("_"):  # asked for by whoever shows or copies a class
            raise AttributeError(name)
        raise RuntimeError(cls.__doc__)

    def __instancecheck__(cls, thing):
        raise RuntimeError(cls.__doc__)
'''
_WITHHELD_CLASS = '''

class {name}(metaclass=_Withheld):
    """{why}"""

    def __new__(cls, *inputs, **options):
        raise RuntimeError("{why}")

    def __init_subclass__(cls, **options):
        raise RuntimeError("{why}")
'''
_WITHHELD_FUNCTION = '''

def {name}(*inputs, **options):
    """{why}"""
    raise RuntimeError("{why}")
'''


def get_or_build_view(lesson: str, folder: Path | None = None) -> Path:
    """A folder with the package as it is while ``lesson`` is graded, to be put on the path of Python.

    Args:
        lesson: as "03_attention".
        folder: the folder that keeps the views; by default one in the user's cache, where that can be written to,
            otherwise one that is gone when this process ends.

    Raises:
        ValueError: ``lesson`` does not begin with a number.
        OSError: the view cannot be written.
    """
    files = _collect_view_files(lesson)
    digest = hashlib.sha256(sys.version.encode())  # of what is compiled, too
    for name, source in files.items():
        digest.update(f"{name} {len(source)} ".encode() + source)
    folder = folder or find_views_folder()
    folder.mkdir(parents=True, exist_ok=True)
    view = folder / f"{lesson[:2]}-{digest.hexdigest()[:24]}"
    if not _is_intact_view(view, files):
        _write_view_atomically(view, files)
    return view


def _collect_view_files(lesson: str) -> dict[str, bytes]:
    """File of the view → what stands in it."""
    if not re.match("[0-9]{2}", lesson):
        raise ValueError(f"a lesson begins with two digits, as 03_attention does; {lesson!r} does not")
    number, ours, modules = int(lesson[:2]), read_package_name(), course().modules
    files = {f"{_KIT}/__init__.py": b"", f"{_KIT}/engine/__init__.py": _CHECK.replace("{package}", ours).encode()}
    for name in _OF_THE_KIT:
        files |= _read_sources(_KIT, name)
    lesson_of = {**modules.answers, **modules.tools}
    for name in (*modules.shared, *lesson_of):
        files |= _read_sources(ours, name)
    later = [name for name, first in modules.answers.items() if first >= number]
    for name in (*later, *(name for name, first in modules.tools.items() if first == number)):
        first = lesson_of[name]
        whose = "this lesson's answers" if first == number else f"answers of lesson {first:02}"
        holds = f"{ours}.{name.replace('/', '.')} holds {whose}"
        files |= {file: _write_stand_in_module(source, holds) for file, source in _read_sources(ours, name).items()}
    files |= {f"{ours}/{name}": text.encode() for name, text in modules.stand_ins.items()}
    for name, first in modules.fixtures.items():
        files |= _read_sources(ours, name) if first <= number else {}
    return files


@cache
def _find_package_folder(name: str) -> Path:
    return Path(str(resources.files(name)))


def _read_sources(package: str, name: str) -> dict[str, bytes]:
    """File → its content, for one module of ``package``, or all modules of a package in it."""
    folder = _find_package_folder(package)
    module = folder / f"{name}.py"
    paths = [module] if module.is_file() else sorted((folder / name).rglob("*.py"))
    return {f"{package}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in paths}


def _write_stand_in_module(source: bytes, holds: str) -> bytes:
    """Return what stands in the place of a module: each public name that it defines, and of no name more than that.

    Args:
        source: of the module.
        holds: a clause that says whose answers are in it.
    """
    text = _WITHHELD
    for statement in ast.parse(source).body:
        form = _WITHHELD_FUNCTION if isinstance(statement, ast.FunctionDef) else _WITHHELD_CLASS
        for name in sorted(list_definitions(ast.Module([statement], []))):
            if not name.startswith("_"):
                text += form.format(name=name, why=f"{name} cannot be used while grading: {holds}")
    return text.encode()


def _is_intact_view(view: Path, files: dict[str, bytes]) -> bool:
    """Say whether a view is there and as it was written."""
    try:
        return all((view / name).read_bytes() == source for name, source in files.items())
    except OSError:
        return False


def _write_view_atomically(view: Path, files: dict[str, bytes]) -> None:
    """Write a view beside its place and move it there, so that nobody sees half of one."""
    made = Path(tempfile.mkdtemp(dir=view.parent, prefix=f"{view.name}."))
    try:
        _write_view_files(made, files)
        made.chmod(0o555)
        for attempt in range(_ATTEMPTS):
            try:
                made.rename(view)
                return
            except OSError:  # something has that name: another process was quicker, or the view was damaged
                if _is_intact_view(view, files):
                    return
                with contextlib.suppress(OSError):
                    view.rename(made.with_name(f"{made.name}.{attempt}"))
        raise FileExistsError(f"{view} is in the way of the package's view, and cannot be moved")
    finally:
        for left in view.parent.glob(f"{made.name}*"):
            remove_view(left)


def _write_view_files(view: Path, files: dict[str, bytes]) -> None:
    """Write the modules, and Python's compiled form of each, which nobody can write later."""
    for name, source in files.items():
        module = view / name
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_bytes(source)
        compiled = importlib.util.cache_from_source(str(module))
        py_compile.compile(
            str(module), compiled, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )
    for each in view.rglob("*"):
        each.chmod(0o555 if each.is_dir() else 0o444)


def remove_view(view: Path) -> None:
    """Delete a view, or what is left of one."""
    for folder in (view, *(each for each in view.rglob("*") if each.is_dir())):
        folder.chmod(0o755)
    shutil.rmtree(view)


@cache
def find_views_folder() -> Path:
    """Where views are kept: in the user's cache, or in a folder of this process's own where that is read-only.

    Those of root lie in the system's cache, since a worker under another user's id cannot look into root's home.
    """
    try:
        folder = (_SYSTEM_CACHE if os.geteuid() == 0 else find_user_folder("cache")) / "views"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="vit_course-views-"))
        folder.chmod(0o755)
        atexit.register(_remove_view_if_same_process, folder, os.getpid())
        return folder


def _remove_view_if_same_process(folder: Path, process: int) -> None:
    if os.getpid() == process:  # and not a child of it
        remove_view(folder)
