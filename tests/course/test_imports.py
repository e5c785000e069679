"""Who may import whom: read off the syntax trees of the modules that exist.

import-linter does not say the same: it sees no name that `vit_course` loads on demand, and allows no circle or any.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import networkx
import pytest

import exercise_kit
import vit_course
from vit_course.exercises.catalog import EXERCISES

PACKAGE, KIT = Path(vit_course.__file__).parent, Path(exercise_kit.__file__).parent
LAYERS: dict[str, set[str]] = {"config": set()}
LAYERS |= {name: {"config"} for name in ("patches", "positions", "attention")}
LAYERS["encoder"] = {"config", "patches", "positions", "attention"}
LAYERS["initialisation"] = {"config"}
LAYERS["vit"] = LAYERS["encoder"] | {"encoder", "initialisation"}
LAYERS["pretrained"] = LAYERS["vit"] | {"vit"}
MODEL = set(LAYERS) - {"config"}
# what `from vit_course import name` loads on demand
LAZY = {name: module.partition(".")[2] for name, module in vit_course._MODULE_OF.items() if "vit_course" in module}


def modules_of(package: Path) -> dict[str, Path]:
    """Dotted names inside the package ("vit", "checks.compare", "checks" for its __init__) and their files."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import, in functions too, but not those that only a type checker sees."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in child.orelse:
                yield from statements(other)
        else:
            yield from statements(child)


def imported_names(statement: ast.Import | ast.ImportFrom, module: str, is_package: bool) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    base = statement.module or ""
    if statement.level:
        here = ["vit_course", *module.split(".")] if module else ["vit_course"]
        here = here[: len(here) - statement.level + is_package]
        base = ".".join([*here, base]).rstrip(".")
    return [f"{base}.{alias.name}" for alias in statement.names]


def imports_of(module: str, path: Path, known: set[str]) -> set[str]:
    """The modules of the package that ``module`` imports itself."""
    found = set()
    for statement in statements(ast.parse(path.read_text("utf-8"))):
        for name in imported_names(statement, module, path.name == "__init__.py"):
            root, *rest = name.split(".")
            if root != "vit_course" or not rest:
                continue
            rest[0] = LAZY.get(rest[0], rest[0])
            inside = [".".join(rest[:length]) for length in range(len(rest), 0, -1)]
            found |= {next((dotted for dotted in inside if dotted in known), rest[0])}
    return found - {module}


def import_graph(package: Path) -> dict[str, set[str]]:
    modules = modules_of(package)
    graph = {name: imports_of(name, path, set(modules)) for name, path in modules.items()}
    graph[""] -= set(LAZY.values())  # loaded on demand, by name
    return graph


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def top(module: str) -> str:
    return module.split(".")[0]


def layers_point_one_way(graph: dict[str, set[str]]) -> list[str]:
    return [
        f"{module} imports {name}"
        for module, allowed in LAYERS.items()
        for name in graph.get(module, set())
        if name not in allowed
    ]


def helpers_know_no_model(graph: dict[str, set[str]]) -> list[str]:
    helpers = ("data", "plots", "recording", "interpret")
    return [
        f"{module} reaches {name}"
        for module in graph
        if top(module) in helpers
        for name in reachable(graph, module)
        if name in MODEL
    ]


def nothing_imports_cli(graph: dict[str, set[str]]) -> list[str]:
    return [
        f"{module} imports {name}"
        for module, names in graph.items()
        if module != "__main__" and top(module) != "cli"
        for name in names
        if top(name) == "cli"
    ]


def only_the_command_line_imports_hunts(graph: dict[str, set[str]]) -> list[str]:
    """Hunting grounds hold answers, and are in no view of the package that a submission sees while it is graded."""
    return [
        f"{module} imports {name}"
        for module, names in graph.items()
        if top(module) not in ("hunts", "cli")
        for name in names
        if top(name) == "hunts"
    ]


RULES = [layers_point_one_way, helpers_know_no_model, nothing_imports_cli, only_the_command_line_imports_hunts]
Rule = Callable[[dict[str, set[str]]], list[str]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_of_our_package(rule: Rule) -> None:
    graph = import_graph(PACKAGE)
    assert {"config", "vit", "pretrained"} <= graph.keys()
    assert rule(graph) == []


def imports_of_kit() -> list[str]:
    """Return what the kit's modules import of the course, in functions and under TYPE_CHECKING too."""
    found = []
    for path in sorted(KIT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
                names = imported_names(node, "", False)
                found += [f"{path.relative_to(KIT)}: {name}" for name in names if name.split(".")[0] == "vit_course"]
    return found


def test_the_kit_imports_nothing_of_the_course() -> None:
    """All that it has to know of one comes as a Course (:mod:`exercise_kit.engine.course`)."""
    assert imports_of_kit() == []


# the exercises of ours that are called by a word that everybody uses
WORDS = {"evaluate"}
# as they stand anywhere in a text, and the names of our exercises and of what students write in them
_NAMES = {part for each in EXERCISES.values() for part in (each.name, *each.objects)} - WORDS
OURS = re.compile(rf"(?i:patchify|cifar|vision transformer)|\bViTs?\b|(?<!\w)(?:{'|'.join(sorted(_NAMES))})(?!\w)")


def about_ours(folder: Path) -> list[str]:
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
    assert about_ours(KIT) == []


FLAT = (*LAYERS, "recording", "interpret", "metrics")


def test_the_reference_imports_nothing_of_the_kit() -> None:
    for name in FLAT:
        assert "exercise_kit" not in (PACKAGE / f"{name}.py").read_text("utf-8"), name


def not_public(tree: ast.Module) -> list[str]:
    """Return what is imported of ours from a module without ``__all__``, or is not in it."""
    found = []
    for statement in statements(tree):
        names = imported_names(statement, "", False)
        if names[0].split(".")[0] in ("vit_course", "exercise_kit"):
            home = statement.module if isinstance(statement, ast.ImportFrom) else None
            offered = getattr(import_module(home), "__all__", ()) if home else ()
            found += [name for name in names if name.rpartition(".")[2] not in offered]
    return found


@pytest.mark.parametrize("lesson", sorted((PACKAGE.parent / "solutions").glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_a_lesson_imports_public_names_alone(lesson: Path) -> None:
    """What students see and copy: a module that says in ``__all__`` what it offers, and a name that stands there."""
    assert not_public(ast.parse(lesson.read_text("utf-8"))) == []


def arrows_in(root: str, modules: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """Each module with each other one of its package that it imports, at its top or in a function."""
    for name, path in modules.items():
        here = [root, *name.split(".")] if name else [root]
        for statement in statements(ast.parse(path.read_text("utf-8"))):
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
    modules = modules_of(Path(package.__file__).parent)
    graph = networkx.DiGraph(arrows_in(package.__name__, modules))
    assert graph.number_of_edges() > 100
    assert [each for each in networkx.strongly_connected_components(graph) if len(each) > 2] == []
