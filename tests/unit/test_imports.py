"""Who may import whom: section 2 of the design, read off the syntax trees of the modules that exist."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import vit_course

PACKAGE = Path(vit_course.__file__).parent
LAYERS: dict[str, set[str]] = {"config": set()}
LAYERS |= {name: {"config"} for name in ("patches", "positions", "attention")}
LAYERS["encoder"] = {"config", "patches", "positions", "attention"}
LAYERS["vit"] = LAYERS["encoder"] | {"encoder"}
LAYERS["pretrained"] = LAYERS["vit"] | {"vit"}
MODEL = set(LAYERS) - {"config"}
# what `from vit_course import name` loads on demand
LAZY = {"PRESETS": "config", "ViTConfig": "config", "VisionTransformer": "vit", "check": "checks"}


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
    helpers = ("data", "plots", "interpret", "checks")
    return [
        f"{module} reaches {name}"
        for module in graph
        if top(module) in helpers
        for name in reachable(graph, module)
        if name in MODEL
    ]


def grading_imports_no_authoring(graph: dict[str, set[str]]) -> list[str]:
    return [
        f"{module} imports {name}"
        for module, names in graph.items()
        if top(module) == "grading"
        for name in names
        if top(name) == "authoring"
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


OF_THE_COURSE = (
    *("checks.catalogue", "checks.lessons", "checks.misconceptions", "checks.pairs", "checks.practice"),
    *("checks.practice_pieces", "checks.weights_file", "checks.weights_model"),
    *(f"grading.judging.{name}" for name in ("attends", "exam", "practice_exam", "reference", "results")),
    "grading.judging.wrong_attends",
)
HELPERS_OF_THE_KIT = {"files", "reasons", "refusals", "supported"}


def is_of_the_kit(module: str) -> bool:
    """Whether a module checks, grades, reports or authors, and knows no exercise by name."""
    of_course = any(module == name or module.startswith(f"{name}.") for name in OF_THE_COURSE)
    return top(module) in ("checks", "grading", "authoring") and not of_course


def the_kit_knows_no_course(graph: dict[str, set[str]]) -> list[str]:
    """All that it has to know of one comes as a Course (:mod:`exercise_kit.engine.course`)."""
    return [
        f"{module} imports {name}"
        for module, names in graph.items()
        if is_of_the_kit(module)
        for name in names
        if name and name not in HELPERS_OF_THE_KIT and not is_of_the_kit(name)
    ]


RULES = [layers_point_one_way, helpers_know_no_model, grading_imports_no_authoring, nothing_imports_cli]
RULES += [only_the_command_line_imports_hunts, the_kit_knows_no_course]
Rule = Callable[[dict[str, set[str]]], list[str]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_of_our_package(rule: Rule) -> None:
    graph = import_graph(PACKAGE)
    assert {"config", "vit", "pretrained"} <= graph.keys()
    assert rule(graph) == []


BREACHES = [
    (layers_point_one_way, "attention.py", "from vit_course.encoder import Mlp"),
    (layers_point_one_way, "patches.py", "def f():\n    import vit_course.positions"),
    (layers_point_one_way, "encoder.py", "from . import vit"),
    (layers_point_one_way, "vit.py", "from vit_course import check"),
    (layers_point_one_way, "vit.py", "from vit_course.training import fit"),
    (helpers_know_no_model, "data/__init__.py", "from vit_course import VisionTransformer"),
    (helpers_know_no_model, "data/loaders.py", "from ..vit import VisionTransformer"),
    (helpers_know_no_model, "plots.py", "from vit_course import encoder"),
    (helpers_know_no_model, "interpret.py", "from .vit import VisionTransformer"),
    (helpers_know_no_model, "checks/compare.py", "from ..patches import patchify"),
    (helpers_know_no_model, "checks/lessons/first.py", "from vit_course.training import fit"),
    (grading_imports_no_authoring, "grading/judge.py", "from exercise_kit.authoring.lesson import read"),
    (grading_imports_no_authoring, "grading/__init__.py", "from .. import authoring"),
    (nothing_imports_cli, "data/sources.py", "from vit_course.cli import main"),
    (nothing_imports_cli, "checks/__init__.py", "import vit_course.cli"),
    (only_the_command_line_imports_hunts, "checks/compare.py", "from vit_course.hunts import hunt"),
    (the_kit_knows_no_course, "checks/compare.py", "from vit_course.config import ViTConfig"),
    (the_kit_knows_no_course, "checks/__init__.py", "from vit_course.exercises.checks import first"),
    (the_kit_knows_no_course, "grading/judge.py", "def f():\n    from vit_course.data import loaders"),
    (the_kit_knows_no_course, "authoring/lesson.py", "from vit_course.exercises.judging.exam import Exam"),
    (only_the_command_line_imports_hunts, "vit.py", "def f():\n    import vit_course.hunts.drawing"),
]
INNOCENT = [
    ("vit.py", "from vit_course.encoder import Encoder\nfrom .config import ViTConfig"),
    ("checks/compare.py", "if TYPE_CHECKING:\n    from vit_course.vit import VisionTransformer"),
    ("checks/lessons/first.py", "from vit_course import ViTConfig\nfrom .. import compare"),
    ("grading/judging/exam.py", "import vit_course.vit\nfrom vit_course import checks, data"),
    ("__main__.py", "from vit_course.cli import main"),
    ("plots.py", "import matplotlib.pyplot\nimport encoder"),
    ("hunts/drawing.py", "from exercise_kit.engine import compare\nfrom vit_course.hunts import ground"),
]


def tiny_package(root: Path, changed: str, source: str) -> dict[str, set[str]]:
    names = ["__init__", "__main__", "config", "patches", "positions", "attention", "encoder", "vit", "training"]
    names += ["data/__init__", "data/loaders", "data/sources", "plots", "interpret", "cli"]
    names += ["checks/__init__", "checks/compare", "checks/lessons/first"]
    names += ["grading/__init__", "grading/judge", "grading/judging/exam", "authoring/__init__", "authoring/lesson"]
    names += ["hunts/__init__", "hunts/ground", "hunts/drawing"]
    package = root / "vit_course"
    for name in names:
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from vit_course.vit import VisionTransformer\n" if name == "training" else "")
    (package / changed).write_text(source)
    return import_graph(package)


@pytest.mark.parametrize(("rule", "path", "source"), BREACHES, ids=[f"{row[1]}-{row[2]}" for row in BREACHES])
def test_a_breach_is_seen(tmp_path: Path, rule: Rule, path: str, source: str) -> None:
    assert rule(tiny_package(tmp_path, path, source)) != []


@pytest.mark.parametrize(("path", "source"), INNOCENT, ids=[row[0] for row in INNOCENT])
def test_what_is_allowed_is_not_a_breach(tmp_path: Path, path: str, source: str) -> None:
    graph = tiny_package(tmp_path, path, source)
    assert [rule.__name__ for rule in RULES if rule(graph)] == []
