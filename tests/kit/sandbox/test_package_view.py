"""The package as a student sees it while grading: earlier answers, none of this lesson's, and nothing half-written."""

import ast
import os
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import exercise_kit
import vit_course
from exercise_kit.engine.course import course
from exercise_kit.sandbox import package_view
from exercise_kit.sandbox.package_view import find_views_folder, get_or_build_view

PACKAGE = Path(vit_course.__file__).parent
SHARED, ANSWERS, TOOLS = course().modules.shared, course().modules.answers, course().modules.tools
FIXTURES = course().modules.fixtures
SOLUTIONS = PACKAGE.parent / "solutions"
LESSONS = tuple(path.stem for path in sorted(SOLUTIONS.glob("[0-9]*.py")))


def run_python_with_view(folder, code):
    """Return what a Python prints that has the view on its path, and the project nowhere."""
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def views_folder(tmp_path):
    yield tmp_path / "views"
    for each in (tmp_path / "views").glob("*"):
        package_view.remove_view(each)


def iterate_lesson_imports(lesson):
    """All of the lesson's own lines that import from the package, whatever they import."""
    for node in ast.walk(ast.parse((SOLUTIONS / f"{lesson}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vit_course"):
            yield ast.unparse(node)


def read_view_modules(folder):
    """File of a view's package, without its ending → what stands in it."""
    package = folder / "vit_course"
    return {path.relative_to(package).with_suffix("").as_posix(): path.read_text() for path in package.rglob("*.py")}


def is_whole_in_view(name, lesson):
    """Say whether a module that holds answers is whole in the view of a lesson."""
    number = int(lesson[:2])
    return ANSWERS[name] < number if name in ANSWERS else TOOLS[name] != number


@pytest.mark.proof
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_s_own_imports_work_in_its_view(lesson, views_folder):
    lines = "\n".join([*iterate_lesson_imports(lesson), "from vit_course import *"])
    where = run_python_with_view(
        get_or_build_view(lesson, views_folder), f"{lines}\nimport vit_course; print(vit_course.__file__)"
    )
    assert Path(where).is_relative_to(views_folder)


@pytest.mark.parametrize("lesson", [*LESSONS, "07_train"])
def test_no_view_holds_answers_of_its_lesson_or_a_later_one(lesson, views_folder):
    folder = get_or_build_view(lesson, views_folder)
    modules = read_view_modules(folder)
    data = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in (PACKAGE / "data").glob("*.py")}
    fixtures = {name for name, first in FIXTURES.items() if first <= int(lesson[:2])}
    note = {"exercises/__init__", "hunts/__init__", "recipes/__init__", "whole_vit"}
    note |= {"diagnosis/__init__", "diagnosis/asking"}
    assert set(modules) == {*SHARED, *ANSWERS, *TOOLS, *data, *fixtures, *note} - {"data"}
    assert {path.name for path in folder.iterdir()} == {"vit_course", "exercise_kit"}
    kit = {path.relative_to(folder / "exercise_kit").as_posix() for path in (folder / "exercise_kit").rglob("*.py")}
    assert kit == {"__init__.py", "engine/__init__.py", *(f"{name}.py" for name in package_view._OF_THE_KIT)}
    for name in (*ANSWERS, *TOOLS):
        whole = (PACKAGE / f"{name}.py").read_text()
        if is_whole_in_view(name, lesson):
            assert modules[name] == whole
        else:
            assert list_statements(modules[name]) & list_statements(whole) == set()
            assert len(modules[name]) < 4000


def list_statements(source):
    """The statements of a module, in functions too; what names them is left out."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    return {ast.unparse(node) for node in nodes if not isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_fixtures_hold_no_answer():
    """They import the standard library, torch, numpy and the config, and each other: none of the oracles."""
    kit = Path(exercise_kit.__file__).parent
    paths = [PACKAGE / f"{name}.py" for name in FIXTURES] + [kit / f"{name}.py" for name in package_view._OF_THE_KIT]
    known = {*FIXTURES, *package_view._OF_THE_KIT, "config"}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            home = node.module if isinstance(node, ast.ImportFrom) else None
            names = [home] if home else [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for each in names:
                root, _, rest = each.partition(".")
                allowed = rest.replace(".", "/") in known
                assert root not in ("vit_course", "exercise_kit") or allowed, f"{path.name} imports {each}"


def test_every_module_of_the_package_that_a_view_has_can_be_imported(views_folder):
    found = read_view_modules(get_or_build_view("99_beyond", views_folder))
    names = (name.replace("/", ".").removesuffix(".__init__") for name in found if name != "__init__")
    code = "".join(f"import vit_course.{name}\n" for name in names)
    assert run_python_with_view(get_or_build_view("99_beyond", views_folder), f"{code}print('all')") == "all"


USES = """
import copy, inspect, pickle
import vit_course
from torch import nn

def uses(thing):
    yield lambda: thing(1, 2)
    if isinstance(thing, type):
        yield lambda: thing.forward
        yield lambda: isinstance(3, thing)
        yield lambda: type("Own", (thing,), {})
        yield lambda: type("Own", (nn.Module, thing), {})

for name in ("scaled_dot_product_attention", "MultiHeadSelfAttention", "VisionTransformer", "initialise"):
    thing = getattr(vit_course, name)
    for use in uses(thing):
        try:
            use()
            print(name, "was used")
        except RuntimeError as error:
            print(error)
    assert copy.copy(thing) is copy.deepcopy(thing) is pickle.loads(pickle.dumps(thing)) is thing
    assert repr(thing) and "raise RuntimeError" in inspect.getsource(thing)
print("there:", vit_course.patchify.__name__)
"""


def test_what_is_hidden_can_be_imported_and_says_why_when_it_is_used(views_folder):
    *printed, last = run_python_with_view(get_or_build_view("03_attention", views_folder), USES).splitlines()
    names = (
        ["scaled_dot_product_attention"] + 5 * ["MultiHeadSelfAttention"] + 5 * ["VisionTransformer"] + ["initialise"]
    )
    modules = {"VisionTransformer": "vit", "initialise": "initialisation"}
    whose = dict.fromkeys(modules, "answers of lesson 05")
    assert printed == [
        f"{name} cannot be used while grading: vit_course.{modules.get(name, 'attention')} holds "
        + whose.get(name, "this lesson's answers")
        for name in names
    ]
    assert last == "there: patchify"


def test_guesses_and_progress_show_nothing_while_grading(views_folder):
    """A cell that makes a prediction, compares it or sums up runs to its end there, and prints nothing."""
    code = 'predict("a", 3); predict("b", ..., choices=("x", "y")); reveal("a", 3, within=1); print(progress())'
    assert (
        run_python_with_view(
            get_or_build_view("01_patchify", views_folder), f"from vit_course import predict, progress, reveal; {code}"
        )
        == "None"
    )


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_hunt_draws_nothing_and_holds_no_answer(lesson, views_folder):
    code = """
from vit_course.hunts import hunt
suspect = hunt("patchify", seed=7, bugs=2)
print(suspect, suspect.check(len), repr(suspect.code), sep="|")
for program in (suspect, suspect.program):
    try:
        program(None, 4)
    except RuntimeError as error:
        print(error)
"""
    folder = get_or_build_view(lesson, views_folder)
    shown, *printed = run_python_with_view(folder, code).splitlines()
    assert shown == "|".join(["a bug hunt is not shown while grading; no point depends on it"] * 2 + ["''"])
    assert printed == ["bug hunts are not there while grading; no point depends on them"] * 2
    assert [path.name for path in (folder / "vit_course" / "hunts").glob("*.py")] == ["__init__.py"]
    programs = [path.read_text() for path in PACKAGE.glob("exercises/*/*/program.py")]
    lines = {line.strip() for program in programs for line in program.splitlines() if '# bug "' in line}
    assert len(lines) > 500
    held = "\n".join(read_view_modules(folder).values())
    assert not [line for line in lines if line in held]


def test_a_view_is_made_once_and_nobody_writes_into_it(views_folder):
    folder = get_or_build_view("02_positions", views_folder)
    before = folder.stat().st_ino
    assert get_or_build_view("02_positions", views_folder) == folder
    assert folder.stat().st_ino == before
    assert get_or_build_view("03_attention", views_folder) != folder
    assert all(not each.stat().st_mode & 0o222 for each in (folder, *folder.rglob("*")))
    assert len(list(folder.rglob("*.pyc"))) == len(list(folder.rglob("*.py")))
    assert sorted(each.name for each in views_folder.iterdir()) == sorted(
        {folder.name, get_or_build_view("03_attention", views_folder).name}
    )


def test_a_changed_package_gets_another_view(views_folder, tmp_path, monkeypatch):
    old = get_or_build_view("01_patchify", views_folder)
    package = tmp_path / "vit_course"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "authoring"))
    (package / "config.py").write_text((package / "config.py").read_text() + "\nNEW = 3\n")
    folder_of = package_view._find_package_folder
    monkeypatch.setattr(
        package_view, "_find_package_folder", lambda name: package if name == "vit_course" else folder_of(name)
    )
    new = get_or_build_view("01_patchify", views_folder)
    assert new != old
    assert run_python_with_view(new, "from vit_course.config import NEW; print(NEW)") == "3"


def test_a_damaged_view_is_made_again(views_folder):
    folder = get_or_build_view("01_patchify", views_folder)
    (folder / "vit_course").chmod(0o755)
    (folder / "vit_course" / "config.py").unlink()
    assert get_or_build_view("01_patchify", views_folder) == folder
    assert run_python_with_view(folder, "from vit_course.config import ViTConfig; print(ViTConfig().depth)").isdigit()
    assert [each.name for each in views_folder.iterdir()] == [folder.name]


def test_processes_do_not_get_in_each_other_s_way(views_folder):
    with ProcessPoolExecutor(2) as pool:
        made = list(pool.map(get_or_build_view, ["04_block", "05_vit"] * 6, [views_folder] * 12))
    assert len(set(made)) == 2
    assert sorted(views_folder.iterdir()) == sorted(set(made))


def test_views_are_kept_where_the_user_keeps_such_things(tmp_path, monkeypatch):
    find_views_folder.cache_clear()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_views_folder() == tmp_path / "vit_course" / "views"
    find_views_folder.cache_clear()
    (tmp_path / "a file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a file"))
    elsewhere = find_views_folder()
    assert elsewhere.is_dir()
    assert not elsewhere.is_relative_to(tmp_path)
    find_views_folder.cache_clear()


def test_a_lesson_has_a_number(views_folder):
    with pytest.raises(ValueError, match="begins with two digits"):
        get_or_build_view("patchify", views_folder)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_view_holds_all_that_its_modules_import_at_once(lesson):
    """A lesson's own cell imports ``vit_course.interactive``; it failed when that imported what no view holds."""
    files = package_view._collect_view_files(lesson)
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files}
    packages = {name.rpartition(".")[0] for name in modules} | modules
    missing = {
        (name, module)
        for name, source in files.items()
        if name.endswith(".py")
        for module in iterate_imports_at_once(ast.parse(source))
        if module.partition(".")[0] in ("vit_course", "exercise_kit") and module not in packages
    }
    assert not missing


def iterate_imports_at_once(tree):
    """The modules that a file imports when it is imported itself: not in functions, not for a type checker."""
    for statement in tree.body:
        for node in [statement, *getattr(statement, "body", ())] if isinstance(statement, ast.Try) else [statement]:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield node.module
