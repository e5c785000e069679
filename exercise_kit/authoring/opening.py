"""What the builder adds below a lesson's title: the Colab badge and the setup cell."""

from __future__ import annotations

import tomllib
from pathlib import Path

from exercise_kit.authoring.colab_badge import ALT, FILE
from exercise_kit.authoring.figures import data_address
from exercise_kit.authoring.problems import AuthoringError, Problem
from exercise_kit.engine.course import package
from exercise_kit.supported import MINIMUM_PYTHON

SETUP = '''\
# Setup: run this cell first. It finds the course's package, or installs it where it is missing (Colab).
import os
import sys
from importlib.util import find_spec

class NotReady(Exception):
    def _render_traceback_(self):
        return [str(self)]  # so that Jupyter shows a sentence and no traceback

if sys.version_info < {python}:
    raise NotReady("This course needs Python {python_words} or newer, and this is " + sys.version.split()[0] +
                   ". On Colab: Runtime > Change runtime type. Elsewhere: Kernel > Change Kernel.")
sys.path.append(os.path.abspath(".."))  # where the package is when you work in a clone of the course
if find_spec("{package}") is None:
    %pip install --quiet "{distribution} @ git+{repository}"
try:
    from {package} import check
except ImportError as problem:
    raise NotReady(f"The course's package is not ready: {{problem}}") from None\
'''  # fmt: skip


def repository_address(root: Path) -> str:
    """The repository's address, read from the one place where it stands.

    Raises:
        AuthoringError: `pyproject.toml` is missing or does not name it.
    """
    path = Path("pyproject.toml")
    try:
        settings = tomllib.loads((root / path).read_text(encoding="utf-8"))
        return str(settings["project"]["urls"]["Repository"]).removesuffix("/")
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        message = "cannot read the repository's address; it stands in [project.urls] as Repository"
        raise AuthoringError([Problem(path, message)]) from error


def badge_source(repository: str, lesson: str) -> str:
    """Markdown of a button that opens the student's notebook in Colab; its picture is inside."""
    owner_and_name = "/".join(repository.split("/")[-2:])
    page = f"https://colab.research.google.com/github/{owner_and_name}/blob/main/notebooks/{lesson}.ipynb"
    return f"[![{ALT}]({data_address(FILE)})]({page})"


def setup_source(repository: str) -> str:
    """The setup cell's code."""
    words = ".".join(map(str, MINIMUM_PYTHON))
    names = {"package": package(), "distribution": package().replace("_", "-"), "repository": repository}
    return SETUP.format(python=MINIMUM_PYTHON, python_words=words, **names)
