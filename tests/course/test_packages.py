"""The names of data and training come on demand: a module that is not there hides its own names and no others."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import vit_course
from exercise_kit import engine
from vit_course import data, training

each_package = pytest.mark.parametrize("package", [data, training], ids=lambda package: package.__name__)


@each_package
def test_every_name_that_it_offers_is_there(package: ModuleType) -> None:
    assert set(package.__all__) == {name for names in package._HOME.values() for name in names}
    assert all(getattr(package, name) is not None for name in package.__all__)


@pytest.mark.parametrize("package", [data, training, engine, vit_course], ids=lambda package: package.__name__)
def test_no_name_is_that_of_a_module(package: ModuleType) -> None:
    """Python would put the module in the place of the name as soon as it is imported."""
    modules = {each.name for each in pkgutil.iter_modules(package.__path__)}
    assert set(package.__all__) & modules == set()


@each_package
def test_another_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=rf"module '{package.__name__}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


TRAIN = """
import torch
from vit_course.data import Augmentation, Batches, DatasetError, folder_batches, load_dataset, load_npz, shapes
from vit_course.training import TrainingSettings, fit
next(iter(Batches(shapes(20), 8, Augmentation(max_shift=2, flip=True, erase=4), shuffle=True)))
print({'PIL', 'scipy'} & set(sys.modules))
fit(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10)), *[shapes(20, image_size=8)] * 2,
    TrainingSettings(epochs=1))
"""


def test_data_and_a_training_that_keeps_nothing_need_torch_and_nothing_heavier() -> None:
    heavy = "{'torchvision', 'sklearn', 'matplotlib', 'accelerate', 'tensorboard', 'transformers', 'psutil'}"
    assert run_python(f"import sys\n{TRAIN}\nprint({heavy} & set(sys.modules))").split("\n") == ["set()", "set()"]


def test_data_fit_and_checkpoints_can_be_imported_where_lesson_06_is_graded() -> None:
    hidden = ["data.splits", *(f"training.{name}" for name in ("loop", "early_stopping", "optimizers"))]
    code = (
        f"import sys; sys.modules |= {{f'vit_course.{{name}}': None for name in {hidden}}}\n"
        "from vit_course.data import Batches, ImageDataset, digits, load_dataset, load_folder, shapes\n"
        "from vit_course.training import History, TrainingSettings, draws_progress, fit, load_model, save_model\n"
        "print(fit.__name__, len(list(Batches(shapes(20), 5))))"
    )
    assert run_python(code) == "fit 4"
