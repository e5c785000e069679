"""The files around the package agree with each other and name nothing that they should not."""

import itertools
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _committed_text_files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: nobody can say which files are committed")
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.suffix not in {".png", ".jpg", ".safetensors"} and path.is_file():
            yield name, path.read_text(encoding="utf-8")


def _name(requirement):
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def test_environment_yml_installs_this_project_with_known_extras():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    extras = re.search(r"--editable \.\[([\w,]+)\]", text)[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert {"notebooks", "grading"} <= set(extras)
    minor = int(re.search(r"python=3\.(\d+)", text)[1])
    assert 11 <= minor <= 13
    assert "constraints.txt" in text


def test_every_dependency_is_pinned_by_name_and_version_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!]+", pin) for pin in pins), pins
    pinned = {_name(pin) for pin in pins}
    extras = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *itertools.chain.from_iterable(extras)]
    assert {_name(each) for each in wanted} - {"vit-course"} <= pinned


def test_a_student_needs_neither_nbgrader_nor_jupyterlab():
    assert not {"nbgrader", "jupyterlab"} & {_name(each) for each in PROJECT["dependencies"]}


def test_the_repository_address_stands_once():
    address = PROJECT["urls"]["Repository"]
    built = re.compile(r"^(solutions|notebooks)/.*\.ipynb$")  # made from pyproject.toml by the builder
    holders = [name for name, text in _committed_text_files() if address in text and not built.match(name)]
    assert holders == ["pyproject.toml"]


def test_the_citation_has_the_package_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {PROJECT['version']}" in text
    assert PROJECT["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_committed_file_names_a_path_of_one_machine():
    machine = re.compile(r"(?<![\w.])/(?:work|root|home|farm)/\w|pypi\.org|pythonhosted|/opt/")
    found = [name for name, text in _committed_text_files() if machine.search(text)]
    assert found in ([], ["tests/course/test_project_files.py"])
