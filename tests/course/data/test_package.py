"""The package's names come on demand: a module that is not there hides its own names and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import vit_course.data as data

HERE = Path(data.__file__).parent


def test_every_name_that_it_offers_is_there() -> None:
    assert set(data.__all__) == {name for names in data._HOME.values() for name in names}
    assert all(getattr(data, name) is not None for name in data.__all__)


def test_no_name_is_that_of_a_module() -> None:
    """Python would put the module in the place of the name as soon as it is imported."""
    assert set(data.__all__) & {path.stem for path in HERE.glob("*.py")} == set()


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'vit_course\.data' has no attribute 'nothing'"):
        data.nothing  # noqa: B018


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = "{'torchvision', 'sklearn', 'matplotlib', 'PIL', 'scipy'}"
    batches = "next(iter(Batches(shapes(20), 8, Augmentation(max_shift=2, flip=True, erase=4), shuffle=True)))"
    names = "Augmentation, Batches, DatasetError, folder_batches, load_dataset, load_npz, shapes"
    code = f"import sys; from vit_course.data import {names}; {batches}; print({heavy} & set(sys.modules))"
    assert run(code) == "set()"


def test_the_rest_works_where_the_splits_are_hidden() -> None:
    code = (
        "import sys; sys.modules['vit_course.data.splits'] = None\n"
        "from vit_course.data import Batches, ImageDataset, digits, load_dataset, load_folder, shapes\n"
        "print(len(list(Batches(shapes(20), 5))))"
    )
    assert run(code) == "4"
