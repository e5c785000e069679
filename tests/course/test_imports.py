"""Who may import whom: the contracts in pyproject.toml, and what import-linter does not say.

It knows no words, no lessons and no ``__all__``, and it allows no circle or any.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import networkx
import pytest
from importlinter.cli import lint_imports

import exercise_kit
import vit_course
from vit_course.exercises.catalog import EXERCISES

PACKAGE, KIT = Path(vit_course.__file__).parent, Path(exercise_kit.__file__).parent


def list_modules(package: Path) -> dict[str, Path]:
    """Dotted names inside the package ("vit", "checks.compare", "checks" for its __init__) and their files."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def iterate_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import, in functions too, but not those that only a type checker sees."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in child.orelse:
                yield from iterate_imports(other)
        else:
            yield from iterate_imports(child)


def test_the_contracts_on_imports_are_kept() -> None:
    """Layers, kit and worker: ``tool.importlinter`` in pyproject.toml."""
    assert lint_imports(str(PACKAGE.parent / "pyproject.toml"), cache_dir=None, no_cache=True) == 0


# the exercises of ours that are called by a word that everybody uses
WORDS = {"evaluate"}
# as they stand anywhere in a text, and the names of our exercises and of what students write in them
_NAMES = {part for each in EXERCISES.values() for part in (each.name, *each.objects)} - WORDS
OURS = re.compile(rf"(?i:patchify|cifar|vision transformer)|\bViTs?\b|(?<!\w)(?:{'|'.join(sorted(_NAMES))})(?!\w)")


def find_lines_about_course(folder: Path) -> list[str]:
    """The lines of a folder's modules and templates that tell of our course."""
    texts = [path for path in sorted(folder.rglob("*")) if path.suffix not in (".pyc", ".png") and path.is_file()]
    lines = ((path, *line) for path in texts for line in enumerate(path.read_text("utf-8").splitlines(), 1))
    return [f"{path.relative_to(folder)}:{number}: {line.strip()}" for path, number, line in lines if OURS.search(line)]


def test_no_word_of_the_kit_is_about_our_course() -> None:
    """Neither code nor comments nor what users read: another course's students and instructors would read it too.

    The names vit-course and vit_course may stand there. The one distribution that holds the kit is called so, and with
    it the command that a message shows, the extras to install, the variables of the environment and the folders that
    classes made long ago have; and a course that the operator does not name has to be called by some name.
    """
    assert find_lines_about_course(KIT) == []


def test_the_reference_imports_nothing_of_the_kit() -> None:
    reference = "config patches positions attention encoder initialisation vit pretrained recording interpret metrics"
    for name in reference.split():
        assert "exercise_kit" not in (PACKAGE / f"{name}.py").read_text("utf-8"), name


def find_imports_not_public(tree: ast.Module) -> list[str]:
    """Return what is imported of ours from a module without ``__all__``, or is not in it."""
    found = []
    for statement in iterate_imports(tree):
        home = statement.module if isinstance(statement, ast.ImportFrom) else None
        names = [alias.name for alias in statement.names]
        if (home or names[0]).split(".")[0] in ("vit_course", "exercise_kit"):
            offered = getattr(import_module(home), "__all__", ()) if home else ()
            found += [f"{home}: {name}" for name in names if name not in offered]
    return found


@pytest.mark.parametrize("lesson", sorted((PACKAGE.parent / "solutions").glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_a_lesson_imports_public_names_alone(lesson: Path) -> None:
    """What students see and copy: a module that says in ``__all__`` what it offers, and a name that stands there."""
    assert find_imports_not_public(ast.parse(lesson.read_text("utf-8"))) == []


def iterate_module_imports(root: str, modules: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """Each module with each other one of its package that it imports, at its top or in a function."""
    for name, path in modules.items():
        here = [root, *name.split(".")] if name else [root]
        for statement in iterate_imports(ast.parse(path.read_text("utf-8"))):
            base = [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []
            if base and statement.level:
                base = [*here[: len(here) - statement.level + (path.name == "__init__.py")], *filter(None, base)]
            for alias in statement.names:
                dotted = ".".join([*base, alias.name]).removeprefix(f"{root}.")
                target = dotted if dotted in modules else dotted.rpartition(".")[0]
                if target in modules and target not in ("", name):
                    yield name, target


@pytest.mark.parametrize("package", [exercise_kit, vit_course], ids=["kit", "course"])
def test_no_more_than_two_modules_import_each_other_in_a_circle(package):
    modules = list_modules(Path(package.__file__).parent)
    graph = networkx.DiGraph(iterate_module_imports(package.__name__, modules))
    assert graph.number_of_edges() > 100
    assert [each for each in networkx.strongly_connected_components(graph) if len(each) > 2] == []
