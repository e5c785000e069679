from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch

from exercise_kit.versions import MINIMUM_PYTHON, MINIMUM_TORCH, find_version_problem, require_supported_versions


@pytest.mark.parametrize("torch_version", ["2.9.0", "2.11.0+cu128", "2.10.0a0+git1234", "3.0"])
@pytest.mark.parametrize("python", [(3, 11, 0), (3, 13, 2), (4, 0)])
def test_new_enough_versions_are_no_problem(python: tuple[int, ...], torch_version: str) -> None:
    assert find_version_problem(python, torch_version) is None


@pytest.mark.parametrize(
    ("python", "torch_version", "wanted", "found", "remedy"),
    [
        ((3, 10, 14), "2.11.0", "Python 3.11", "Python 3.10", "Runtime > Change runtime type"),
        ((2, 7, 18), None, "Python 3.11", "Python 2.7", "new environment"),
        ((3, 12, 1), "2.8.1+cpu", "PyTorch 2.9", "2.8.1+cpu", "pip install --upgrade torch"),
        ((3, 12, 1), "1.13.1", "PyTorch 2.9", "1.13.1", "pip install --upgrade torch"),
        ((3, 12, 1), None, "PyTorch", "not installed", "pip install torch torchvision"),
    ],
)
def test_message_says_what_is_wanted_what_was_found_and_what_to_do(
    python: tuple[int, ...], torch_version: str | None, wanted: str, found: str, remedy: str
) -> None:
    problem = find_version_problem(python, torch_version)
    assert problem is not None
    for part in (wanted, found, remedy):
        assert part in problem


def test_require_supported_raises_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    require_supported_versions()
    monkeypatch.setattr(torch, "__version__", "2.1.0")
    with pytest.raises(ImportError, match=re.escape("this is 2.1.0")):
        require_supported_versions()


def test_missing_torch_is_an_import_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_not_installed(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr("exercise_kit.versions.version", raise_not_installed)
    with pytest.raises(ImportError, match="pip install torch torchvision"):
        require_supported_versions()


def test_minimum_versions_agree_with_the_package_metadata() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == f">={MINIMUM_PYTHON[0]}.{MINIMUM_PYTHON[1]}"
    assert f"torch>={MINIMUM_TORCH[0]}.{MINIMUM_TORCH[1]}" in project["dependencies"]


def list_loaded_packages(program: str) -> set[str]:
    """The packages that a program loads beyond its first statement's, in a process of its own."""
    first, _, rest = program.partition("; ")
    program = f"{first}; import sys; known = {{*sys.modules}}; {rest}; print(*{{*sys.modules}} - known)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_loads_nothing_heavy() -> None:
    assert "torch" not in list_loaded_packages("import sys; import vit_course")


def test_the_model_loads_torch_and_nothing_heavier() -> None:
    own = list_loaded_packages("import torch; from vit_course import PRESETS, VisionTransformer, ViTConfig")
    heavy = {"torchvision", "matplotlib", "sklearn", "scipy", "pandas", "PIL", "nbgrader", "nbformat"}
    heavy |= {"jupyterlab", "IPython", "timm", "transformers", "torchinfo", "einops", "typer", "rich"}
    assert "vit_course" in own
    assert not own & heavy


def test_unknown_attribute_of_the_package_is_an_attribute_error() -> None:
    import vit_course

    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        _ = vit_course.chekc


def test_every_public_name_is_what_its_module_has() -> None:
    import vit_course

    assert {*vit_course.__all__} == {"__version__", *vit_course._MODULE_OF}
    for name, module in vit_course._MODULE_OF.items():
        assert getattr(vit_course, name) is getattr(import_module(module), name)
        assert name in dir(vit_course)
