"""Every example in a docstring of the two packages gives what it says."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("exercise_kit", "vit_course")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_give_what_they_say(module):
    imported = importlib.import_module(module)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    report = []
    for example in finder.find(imported, module):
        runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)
